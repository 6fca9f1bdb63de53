//! `Model`: what calibration found, as it is kept in a calibration file.
//!
//! The file is JSON with a version; its fields are described in `docs/calibration-file.md`. Reading checks everything
//! that can be checked (order, counts, ranks, thresholds), so that a model in memory is one calibration could have made.

use std::io::Write;
use std::path::Path;

use conformax::{
    Alpha, Calibration, Choice, FoundThresholds, LawIs, Level, Masked, Predictor, RowSet, ScoreSpec,
    SortedScores, Thresholds, Tuning,
};

use crate::calibration::kind::{Kind, read_whole};
use crate::data::utf8::{text, without_mark};
use crate::error::{Error, InFile, Problem, Result};
use crate::writing::output::{Output, Overwrite};
use crate::{ClassNames, Input, Source};

mod check;
mod wire;

/// A calibrated score with its levels, and the record of how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The score with its parameters.
    pub score: ScoreSpec,
    /// What −∞ logits mean.
    pub masked: Masked,
    /// What the numbers were that calibrated, and must be that are predicted.
    pub input: Input,
    /// Number of classes.
    pub classes: usize,
    /// Their names, where known.
    pub names: Option<ClassNames>,
    /// Calibration rows.
    pub n: u64,
    /// The levels asked for, each with its threshold; at least one.
    pub levels: Vec<KeptLevel>,
    /// The calibration scores, unless they were left out: other levels and p-values need them.
    pub scores: Option<SortedScores>,
    /// The rows that calibrated, as far as they can be known again.
    pub calibrating_rows: RowSet,
    /// How the parameters were chosen, where they were.
    pub tuning: Option<TuningRecord>,
}

/// A level with its threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptLevel {
    /// What is promised.
    pub level: Level,
    /// Largest score that is in a set; +∞ makes sets full.
    pub threshold: f64,
}

impl KeptLevel {
    /// The threshold as a rule.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds::One(self.threshold)
    }
}

/// What tuning tried and what it chose.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningRecord {
    /// Where candidates' thresholds came from.
    pub tuning: Tuning,
    /// The level candidates were judged at.
    pub alpha: Alpha,
    /// Every candidate and the one chosen.
    pub choice: Choice<ScoreSpec>,
    /// Tuning rows.
    pub n: u64,
    /// The rows that tuned, as far as they can be known again.
    pub rows: RowSet,
}

impl Model {
    /// The model of a calibration of all rows together, at these levels.
    ///
    /// ```
    /// use conformax::{Alpha, Calibration, ScoreSpec, SortedScores};
    /// use conformax_io::Model;
    /// let scores = SortedScores::new(vec![0.0, 1.0, 2.0])?;
    /// let calibration = Calibration::from_scores(ScoreSpec::default(), 10, scores)?;
    /// let model = Model::new(&calibration, &[Alpha::new(0.25)?], None);
    /// assert_eq!(model.levels[0].threshold, 2.0);
    /// assert_eq!(Model::from_json(&model.to_json()?)?, model);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(calibration: &Calibration<ScoreSpec>, alphas: &[Alpha], names: Option<ClassNames>) -> Self {
        let scores = &calibration.groups()[0];
        Self {
            score: *calibration.score(),
            masked: calibration.masked(),
            input: Input::default(),
            classes: calibration.classes(),
            names,
            n: scores.n(),
            levels: alphas.iter().map(|&alpha| kept(scores, alpha)).collect(),
            scores: Some(scores.clone()),
            calibrating_rows: calibration.rows().clone(),
            tuning: None,
        }
    }

    /// The model of thresholds that were found without keeping scores.
    pub fn of_thresholds(
        found: FoundThresholds<ScoreSpec>,
        classes: usize,
        masked: Masked,
        names: Option<ClassNames>,
    ) -> Self {
        let levels = found.levels.iter().zip(&found.thresholds);
        Self {
            score: found.score,
            masked,
            input: Input::default(),
            classes,
            names,
            n: found.levels.first().map_or(0, |level| level.n()),
            levels: levels
                .map(|(level, threshold)| KeptLevel { level: *level, threshold: *threshold })
                .collect(),
            scores: None,
            calibrating_rows: found.rows,
            tuning: None,
        }
    }

    /// Reads a calibration file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Self> {
        Self::from_bytes(&read_whole(path)?).in_file(path)
    }

    /// Reads the bytes of a calibration file; those of another kind of file are called what they are.
    pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, Problem> {
        Kind::Model.expect(bytes)?;
        Self::from_json(without_mark(bytes).and_then(text)?)
    }

    /// Writes a calibration file, whole or not at all.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let text = self.to_json().in_file(path)?;
        let mut output = Output::create(path, overwrite)?;
        output.write_all(text.as_bytes()).in_file(path)?;
        output.finish()
    }

    /// The calibration file as text.
    pub fn to_json(&self) -> std::result::Result<String, Problem> {
        check::check(self)?;
        wire::File::from_model(self)?.into_text()
    }

    /// Reads a calibration file from text, with or without a byte-order mark before it.
    pub fn from_json(text: &str) -> std::result::Result<Self, Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let model = wire::File::from_text(text)?.into_model()?;
        check::check(&model)?;
        Ok(model)
    }

    /// The calibration, where the scores are there: any level, any p-value.
    pub fn calibration(&self) -> Option<Calibration<ScoreSpec>> {
        let calibration = Calibration::from_scores(self.score, self.classes, self.scores.clone()?);
        calibration.ok().map(|calibration| calibration.with_masked(self.masked))
    }

    /// A level: one of those kept, or any other where the scores are there.
    pub fn level(&self, alpha: Alpha) -> std::result::Result<KeptLevel, Problem> {
        let recorded = self.levels.iter().find(|kept| kept.level.alpha() == alpha).copied();
        recorded.or_else(|| self.scores.as_ref().map(|scores| kept(scores, alpha))).ok_or_else(|| {
            let known: Vec<_> = self.levels.iter().map(|kept| kept.level.alpha().to_string()).collect();
            Problem::Model(format!(
                "it was saved without scores and knows alpha {} alone, not {alpha}; calibrate again for that level",
                known.join(", ")
            ))
        })
    }

    /// The predictor at a level.
    pub fn at(&self, alpha: Alpha) -> std::result::Result<Predictor<ScoreSpec>, Problem> {
        Ok(self.predictor(&self.level(alpha)?))
    }

    /// The predictor of one of its levels.
    pub fn predictor(&self, kept: &KeptLevel) -> Predictor<ScoreSpec> {
        Predictor::new(self.score, kept.thresholds()).with_masked(self.masked)
    }

    /// The rows that had a part in it: those that calibrated, and those that tuned.
    pub fn rows(&self) -> Vec<RowSet> {
        let tuning = self.tuning.as_ref().map(|tuning| tuning.rows.clone());
        [Some(self.calibrating_rows.clone()), tuning].into_iter().flatten().collect()
    }

    /// How coverage at a level follows its law: where the threshold is 0, infinite or shared by several calibration rows,
    /// it may exceed it.
    pub fn law_is(&self, kept: &KeptLevel) -> LawIs {
        let tied = self.scores.as_ref().is_some_and(|scores| scores.ties(kept.threshold) > 1);
        let special = kept.threshold == 0.0 || kept.threshold == f64::INFINITY;
        if tied || special { LawIs::ABound } else { LawIs::Exact }
    }

    /// Whether coverage follows its law: not where the rows that calibrated also had a say in the parameters.
    pub fn law_holds(&self) -> bool {
        self.tuning.as_ref().is_none_or(|record| record.tuning == Tuning::Valid)
    }

    /// Checks that data have the classes this model was calibrated for: their number, names and order.
    pub fn expect_classes(&self, source: &Source) -> Result<()> {
        let path = source.locate(0).0;
        let (wanted, found) = (self.classes, source.classes());
        if wanted != found {
            return Err(Error::new(path, Problem::ClassesDiffer { wanted, found }));
        }
        match (&self.names, source.names()) {
            (Some(wanted), Some(found)) => wanted.expect_same(found).in_file(path),
            _ => Ok(()),
        }
    }
}

fn kept(scores: &SortedScores, alpha: Alpha) -> KeptLevel {
    KeptLevel { level: scores.level(alpha), threshold: scores.threshold(alpha) }
}
