//! `Model`: what calibration found, as it is kept in a calibration file.
//!
//! The file is JSON with a version; its fields are described in `docs/calibration-file.md`. Reading checks everything
//! that can be checked (order, counts, ranks, thresholds), so that a model in memory is one calibration could have made.

use std::io::Write;
use std::path::Path;

use conformax::{
    Alpha, Calibrated, Calibration, CalibrationScores, Candidate, Level, Masked, ScoreSpec, Tuned, Tuning,
};

use crate::error::{Error, InFile, Problem, Result};
use crate::writing::output::{Output, Overwrite};
use crate::{ClassNames, RowSet, Source};

mod check;
mod wire;

/// A calibrated score with its levels, and the record of how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The score with its parameters.
    pub score: ScoreSpec,
    /// What −∞ logits mean.
    pub masked: Masked,
    /// Number of classes.
    pub classes: usize,
    /// Their names, where known.
    pub names: Option<ClassNames>,
    /// Calibration rows.
    pub n: u64,
    /// The levels asked for, each with its rank and threshold; at least one.
    pub levels: Vec<Level>,
    /// The calibration scores, unless they were left out: other levels and p-values need them.
    pub scores: Option<CalibrationScores>,
    /// Fingerprints of the rows that calibrated.
    pub calibrating_rows: RowSet,
    /// How the parameters were chosen, where they were.
    pub tuning: Option<TuningRecord>,
}

/// What tuning tried and what it chose.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningRecord {
    /// Where candidates' thresholds came from.
    pub tuning: Tuning,
    /// The level candidates were judged at.
    pub alpha: Alpha,
    /// Every candidate, in grid order.
    pub candidates: Vec<Candidate<ScoreSpec>>,
    /// Index of the chosen one.
    pub chosen: usize,
    /// Tuning rows.
    pub n: u64,
    /// Fingerprints of the rows that tuned.
    pub rows: RowSet,
}

impl TuningRecord {
    /// The record of a tuning: `n` rows, of these fingerprints, chose at level `alpha`.
    pub fn new(tuned: &Tuned<ScoreSpec>, tuning: Tuning, alpha: Alpha, n: u64, rows: RowSet) -> Self {
        Self { tuning, alpha, candidates: tuned.candidates.clone(), chosen: tuned.chosen, n, rows }
    }
}

impl Model {
    /// The model of a calibration at these levels.
    ///
    /// ```
    /// use conformax::{Alpha, Calibration, CalibrationScores, Masked, ScoreSpec};
    /// use conformax_io::{Model, RowSet};
    /// let scores = CalibrationScores::new(vec![0.0, 1.0, 2.0])?;
    /// let calibration = Calibration::from_scores(ScoreSpec::default(), scores, Masked::Allowed);
    /// let model = Model::new(&calibration, &[Alpha::new(0.25)?], 10, None, RowSet::default());
    /// assert_eq!(model.levels[0].threshold, 2.0);
    /// assert_eq!(Model::from_json(&model.to_json()?)?, model);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        calibration: &Calibration<ScoreSpec>,
        alphas: &[Alpha],
        classes: usize,
        names: Option<ClassNames>,
        calibrating_rows: RowSet,
    ) -> Self {
        let scores = calibration.scores();
        Self {
            score: *calibration.score(),
            masked: calibration.masked(),
            classes,
            names,
            n: scores.n(),
            levels: alphas.iter().map(|&alpha| scores.level(alpha)).collect(),
            scores: Some(scores.clone()),
            calibrating_rows,
            tuning: None,
        }
    }

    /// Reads a calibration file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).in_file(path)?;
        let text = String::from_utf8(bytes).map_err(|_| Problem::NotUtf8).in_file(path)?;
        Self::from_json(&text).in_file(path)
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
        let file = wire::File::from_model(self)?;
        let mut text =
            serde_json::to_string_pretty(&file).map_err(|error| Problem::Model(error.to_string()))?;
        text.push('\n');
        Ok(text)
    }

    /// Reads a calibration file from text.
    pub fn from_json(text: &str) -> std::result::Result<Self, Problem> {
        wire::check_version(text)?;
        let file: wire::File =
            serde_json::from_str(text).map_err(|error| Problem::Model(format!("it is damaged: {error}")))?;
        let model = file.into_model()?;
        check::check(&model)?;
        Ok(model)
    }

    /// The calibration, where the scores are there: any level, any p-value.
    pub fn calibration(&self) -> Option<Calibration<ScoreSpec>> {
        let scores = self.scores.clone()?;
        Some(Calibration::from_scores(self.score, scores, self.masked))
    }

    /// Rank and threshold at a level: a recorded one, or any where the scores are there.
    pub fn level(&self, alpha: Alpha) -> std::result::Result<Level, Problem> {
        let recorded = self.levels.iter().find(|level| level.alpha == alpha).copied();
        recorded.or_else(|| self.scores.as_ref().map(|scores| scores.level(alpha))).ok_or_else(|| {
            let known: Vec<_> = self.levels.iter().map(|level| level.alpha.to_string()).collect();
            Problem::Model(format!(
                "it was saved without scores and knows alpha {} alone, not {alpha}; calibrate again for that level",
                known.join(", ")
            ))
        })
    }

    /// The predictor at a level.
    pub fn at(&self, alpha: Alpha) -> std::result::Result<Calibrated<ScoreSpec>, Problem> {
        Ok(Calibrated::new(self.score, self.level(alpha)?).with_masked(self.masked))
    }

    /// Whether a row, given by its fingerprint, calibrated or tuned this model.
    pub fn has_seen(&self, row: u64) -> bool {
        self.calibrating_rows.contains(row)
            || self.tuning.as_ref().is_some_and(|tuning| tuning.rows.contains(row))
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
