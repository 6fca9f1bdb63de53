//! `Model`: what calibration found, as it is kept in a calibration file.
//!
//! The file is JSON with a version; its fields are described in `docs/calibration-file.md`. Reading checks everything
//! that can be checked (order, counts, ranks, thresholds), so that a model in memory is one calibration could have
//! made.

use std::io::Write;
use std::path::Path;

use conformax::{
    Alpha, Calibration, Choice, CoverageLaw, Evidence, FoundThresholds, LawIs, Level, Masked, Predictor,
    Prior, Promise, Ranks, RowSet, Scheme, ScoreSpec, Selection, SortedScores, Stream, StreamOptions,
    Taxonomy, Thresholds, Tuning,
};

use crate::calibration::kind::{Kind, read_whole};
use crate::data::utf8::{text, without_mark};
use crate::error::{Error, InFile, Problem, Result};
use crate::writing::output::{Output, Overwrite};
use crate::{ClassNames, Input, Source};

mod check;
mod group_verdicts;
mod wire;

/// A calibrated score with its levels, and the record of how it came about.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
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
    /// The shares of the classes that are taken out of the logits, where they are.
    pub prior: Option<Prior>,
    /// Calibration rows.
    pub n: u64,
    /// How thresholds follow from them.
    pub scheme: Scheme,
    /// What comes beside the logits of each row, where thresholds go by it.
    pub beside: Beside,
    /// How far down the ranking a label may stand, where that is limited.
    pub ranks: Option<Ranks>,
    /// The probability over calibration rows that coverage may fall short, where it is promised with one.
    pub delta: Option<Alpha>,
    /// The levels asked for, each with its thresholds; at least one.
    pub levels: Vec<KeptLevel>,
    /// What the calibration rows said, unless it was left out: other levels and p-values need it.
    pub evidence: Option<Evidence>,
    /// The rows that calibrated, as far as they can be known again.
    pub calibrating_rows: RowSet,
    /// The rows that found clusters or chose ranks, where some did.
    pub choosing_rows: Option<RowSet>,
    /// How the parameters were chosen, where they were.
    pub tuning: Option<TuningRecord>,
    /// The candidates, where one is chosen anew for every label by all calibration rows; the score is that of the
    /// leader.
    pub selection: Option<SelectionRecord>,
}

/// What comes beside the logits of each row, and where from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// The column of groups or weights, where they come from one.
    pub column: Option<String>,
    /// The names of the groups, in the order of their numbers.
    pub groups: Vec<String>,
    /// What clusters of classes are called, in the order of their numbers; empty where they have no names.
    pub clusters: Vec<String>,
    /// Whether weights were estimated, so that what is promised holds approximately.
    pub estimated: bool,
}

/// A level with its thresholds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeptLevel {
    /// What is promised.
    pub promise: Promise,
    /// Largest scores that are in a set; +∞ makes sets full.
    pub thresholds: Thresholds,
}

impl KeptLevel {
    /// One threshold for all rows.
    pub fn one(level: Level, threshold: f64) -> Self {
        Self { promise: Promise::Marginal(level), thresholds: Thresholds::One(threshold) }
    }

    /// Miscoverage level, or the bound on a loss.
    pub fn alpha(&self) -> Alpha {
        self.promise.alpha()
    }

    /// The level, where all rows share one threshold by their rank and coverage follows its law.
    pub fn level(&self) -> Option<Level> {
        match &self.promise {
            Promise::Marginal(level) => Some(*level),
            _ => None,
        }
    }

    /// The level whose rank gives the one threshold that all rows share, whether or not coverage has a law.
    pub fn ranked_level(&self) -> Option<Level> {
        match &self.promise {
            Promise::Marginal(level) | Promise::Selected(level) => Some(*level),
            _ => None,
        }
    }

    /// The levels of the groups, where each has its own.
    pub fn group_levels(&self) -> &[Level] {
        match &self.promise {
            Promise::Groups { levels, .. } => levels,
            _ => &[],
        }
    }

    /// The threshold, where there is one for all rows.
    pub fn threshold(&self) -> Option<f64> {
        match &self.thresholds {
            Thresholds::One(threshold) => Some(*threshold),
            _ => None,
        }
    }

    /// The law of coverage over all rows, where there is one.
    pub fn law(&self) -> Option<CoverageLaw> {
        self.level().map(|level| self.thresholds.law(level))
    }
}

/// True labels whose score is infinite: their logit is −∞, or further behind than numbers go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible {
    /// The class, cluster or group; `None` where one threshold is of all rows.
    pub group: Option<String>,
    /// How many there are.
    pub labels: u64,
    /// Among how many calibration rows.
    pub rows: u64,
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

/// Candidates that calibrated on all rows, and how often each decides.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectionRecord {
    /// What the calibration rows left of the candidates.
    pub selection: Selection<ScoreSpec>,
    /// Of how many calibration rows each candidate decides the true label, where that was counted.
    pub wins: Option<Vec<u64>>,
}

impl Model {
    /// The model of a calibration at these levels.
    ///
    /// ```
    /// use conformax::{Alpha, Calibration, ScoreSpec, SortedScores};
    /// use conformax_io::Model;
    /// let scores = SortedScores::new(vec![0.0, 1.0, 2.0])?;
    /// let calibration = Calibration::from_scores(ScoreSpec::default(), 10, scores)?;
    /// let model = Model::new(&calibration, &[Alpha::new(0.25)?], None);
    /// assert_eq!(model.levels[0].threshold(), Some(2.0));
    /// assert_eq!(Model::from_json(&model.to_json()?)?, model);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(calibration: &Calibration<ScoreSpec>, alphas: &[Alpha], names: Option<ClassNames>) -> Self {
        Self {
            score: *calibration.score(),
            masked: calibration.masked(),
            input: Input::default(),
            classes: calibration.classes(),
            names,
            prior: None,
            n: calibration.n(),
            scheme: calibration.scheme().clone(),
            beside: Beside::default(),
            ranks: calibration.ranks().cloned(),
            delta: None,
            levels: alphas.iter().map(|&alpha| kept(calibration, alpha)).collect(),
            evidence: Some(calibration.evidence().clone()),
            calibrating_rows: calibration.rows().clone(),
            choosing_rows: None,
            tuning: None,
            selection: None,
        }
    }

    /// The same with coverage promised with probability `1 − δ` over the calibration rows. An error where the scheme
    /// knows no such promise, or the scores were left out.
    pub fn with_delta(self, delta: Alpha) -> std::result::Result<Self, Problem> {
        let mut model = Self { delta: Some(delta), ..self };
        let alphas: Vec<Alpha> = model.levels.drain(..).map(|kept| kept.alpha()).collect();
        model.levels =
            alphas.into_iter().map(|alpha| model.level(alpha)).collect::<std::result::Result<_, _>>()?;
        Ok(model)
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
            prior: None,
            n: found.levels.first().map_or(0, |level| level.n()),
            scheme: Scheme::default(),
            beside: Beside::default(),
            ranks: None,
            delta: None,
            levels: levels.map(|(level, threshold)| KeptLevel::one(*level, *threshold)).collect(),
            evidence: None,
            calibrating_rows: found.rows,
            choosing_rows: None,
            tuning: None,
            selection: None,
        }
    }

    /// The model of a selection by all calibration rows.
    pub fn of_selection(record: SelectionRecord, names: Option<ClassNames>) -> Self {
        let selection = &record.selection;
        let leader = &selection.rivals()[selection.leader()];
        Self {
            score: leader.score,
            masked: selection.masked(),
            input: Input::default(),
            classes: selection.classes(),
            names,
            prior: None,
            n: selection.n(),
            scheme: Scheme::default(),
            beside: Beside::default(),
            ranks: None,
            delta: None,
            levels: vec![KeptLevel {
                promise: selection.promise(),
                thresholds: Thresholds::One(leader.high),
            }],
            evidence: None,
            calibrating_rows: selection.rows().clone(),
            choosing_rows: None,
            tuning: None,
            selection: Some(record),
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
        let mut output = Output::create(path, overwrite)?;
        self.write_to(&mut output).in_file(path)?;
        output.finish()
    }

    /// Writes what a calibration file holds. Nothing is written of a model that no calibration could have made.
    pub fn write_to(&self, to: &mut impl Write) -> std::result::Result<(), Problem> {
        check::check(self)?;
        wire::File::from_model(self)?.write_to(to)
    }

    /// The calibration file as text.
    pub fn to_json(&self) -> std::result::Result<String, Problem> {
        let mut text = Vec::new();
        self.write_to(&mut text)?;
        Ok(String::from_utf8(text).expect("JSON is text"))
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
        let (scheme, evidence) = (self.scheme.clone(), self.evidence.clone()?);
        let calibration = Calibration::from_evidence(self.score, self.classes, scheme, evidence).ok()?;
        let calibration = calibration.with_masked(self.masked);
        match &self.ranks {
            Some(ranks) => calibration.with_ranks(ranks.clone()).ok(),
            None => Some(calibration),
        }
    }

    /// A stream of sets that begins at one of its levels, or at any other. Refused where no p-values stand behind its
    /// sets.
    ///
    /// ```
    /// use conformax::{Alpha, Calibration, ScoreSpec, SortedScores, StreamOptions};
    /// use conformax_io::Model;
    /// let scores = SortedScores::new(vec![0.0, 1.0, 2.0])?;
    /// let calibration = Calibration::from_scores(ScoreSpec::default(), 10, scores)?;
    /// let model = Model::new(&calibration, &[Alpha::new(0.25)?], None);
    /// assert_eq!(model.stream(None, StreamOptions::default())?.level(), 0.25);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(
        &self,
        alpha: Option<Alpha>,
        options: StreamOptions,
    ) -> std::result::Result<Stream<ScoreSpec>, Problem> {
        let refused = |why: &str| Problem::Refused(format!("it cannot be streamed: {why}"));
        if self.delta.is_some() {
            return Err(refused("its levels are promised with a probability over calibration rows"));
        }
        if self.selection.is_some() {
            return Err(refused("its score was chosen by all rows at one level, and a stream's level moves"));
        }
        let Some(calibration) = self.calibration() else {
            return Err(Problem::NoScores("streamed"));
        };
        let alpha = alpha.unwrap_or_else(|| self.levels[0].alpha());
        Stream::new(calibration, alpha, options).map_err(|error| match error {
            // An option that cannot be is no fault of the model.
            conformax::Error::Parameter { .. } => error.into(),
            other => refused(&other.to_string()),
        })
    }

    /// A level: one of those kept, or any other where the scores are there.
    pub fn level(&self, alpha: Alpha) -> std::result::Result<KeptLevel, Problem> {
        if let Some(recorded) = self.levels.iter().find(|kept| kept.alpha() == alpha) {
            return Ok(recorded.clone());
        }
        if let Some(SelectionRecord { selection, .. }) = &self.selection {
            return Err(Problem::Refused(format!(
                "its score was chosen by all rows at alpha {}, and at {alpha} the choice may be another; tune again at \
                 that level",
                selection.alpha()
            )));
        }
        let Some(calibration) = self.calibration() else {
            let known: Vec<_> = self.levels.iter().map(|kept| kept.alpha().to_string()).collect();
            return Err(Problem::Refused(format!(
                "it was saved without scores and knows alpha {} alone, not {alpha}; calibrate again for that level",
                known.join(", ")
            )));
        };
        self.level_of(&calibration, alpha)
    }

    /// A level of its calibration, with the promise it makes.
    fn level_of(
        &self,
        calibration: &Calibration<ScoreSpec>,
        alpha: Alpha,
    ) -> std::result::Result<KeptLevel, Problem> {
        let Some(delta) = self.delta else { return Ok(kept(calibration, alpha)) };
        let found = calibration.at_with_delta(alpha, delta);
        let (predictor, promise) = found.map_err(|error| Problem::Model(error.to_string()))?;
        Ok(KeptLevel { promise, thresholds: predictor.thresholds().clone() })
    }

    /// The predictor at a level.
    pub fn at(&self, alpha: Alpha) -> std::result::Result<Predictor<ScoreSpec>, Problem> {
        Ok(self.predictor(&self.level(alpha)?))
    }

    /// Why there can be no p-values, where what is promised has none.
    pub fn no_p_values(&self) -> Option<&'static str> {
        match (self.delta, &self.selection, &self.scheme) {
            (Some(_), ..) => Some(
                "promises coverage with a probability over calibration rows, for which there are no p-values",
            ),
            (None, Some(_), _) => {
                Some("chooses its score for one level, and p-values are of all levels at once")
            }
            (None, None, Scheme::Risk(_)) => {
                Some("bounds an expected loss, and p-values cannot be had with risk control")
            }
            (None, None, _) => None,
        }
    }

    /// Whether it promises what split conformal prediction does, with its law, as most models do.
    pub fn is_plain(&self) -> bool {
        self.scheme == Scheme::default() && self.delta.is_none() && self.selection.is_none()
    }

    /// The predictor of one of its levels.
    pub fn predictor(&self, kept: &KeptLevel) -> Predictor<ScoreSpec> {
        if let Some(SelectionRecord { selection, .. }) = &self.selection {
            return selection.predictor().with_masked(self.masked);
        }
        let predictor = Predictor::new(self.score, kept.thresholds.clone()).with_masked(self.masked);
        match &self.ranks {
            Some(ranks) => predictor.with_ranks(ranks.clone()),
            None => predictor,
        }
    }

    /// What is promised, in a sentence.
    pub fn promise(&self) -> String {
        let within = match (&self.scheme, &self.beside.column) {
            (Scheme::Groups(Taxonomy::All), _) => "over all rows".to_owned(),
            (Scheme::Groups(Taxonomy::Label), _) => "within every class".to_owned(),
            (Scheme::Groups(Taxonomy::Cluster(clusters)), _) if clusters.contains(&None) => {
                "within every cluster of classes (classes of no cluster are promised nothing)".to_owned()
            }
            (Scheme::Groups(Taxonomy::Cluster(_)), _) => "within every cluster of classes".to_owned(),
            (Scheme::Groups(Taxonomy::Group(_)), Some(column)) => format!("within every group of `{column}`"),
            (Scheme::Groups(Taxonomy::Group(_)), None) => "within every group of rows".to_owned(),
            (Scheme::RowWeights, _) => "over rows of the given weights".to_owned(),
            (Scheme::LabelWeights(_), _) => "over rows whose labels have the given weights".to_owned(),
            (Scheme::Risk(loss), _) => {
                let what = if loss.is_cost() { "least cost of a set" } else { "severity of what sets miss" };
                return format!("the expected {what} is at most alpha; coverage is not promised");
            }
        };
        let estimated = match self.beside.estimated {
            true => ", approximately, as the weights are estimated",
            false => "",
        };
        match self.delta {
            Some(delta) => {
                // Each group by itself: that all of many hold at once is less likely.
                let each = match &self.scheme {
                    Scheme::Groups(Taxonomy::All) => "",
                    _ => ", for each of them by itself",
                };
                format!(
                    "with probability {} over the calibration rows, coverage is at least 1 - alpha {within}{each}",
                    delta.confidence()
                )
            }
            None if self.selection.is_some() => {
                format!("coverage is at least 1 - alpha {within}, exactly; no law of realised coverage")
            }
            None if !self.law_holds() => "none: the rows that calibrated also tuned".to_owned(),
            None => format!("coverage is at least 1 - alpha {within}, on average{estimated}"),
        }
    }

    /// The same with what it says nothing about, which people take for promised too.
    pub fn promise_and_limits(&self) -> String {
        let limits = match &self.scheme {
            _ if !self.law_holds() => return self.promise(),
            Scheme::Risk(_) => return self.promise(),
            Scheme::Groups(Taxonomy::All) => "not within each class or group",
            Scheme::Groups(Taxonomy::Label) => "not within each group of rows",
            Scheme::Groups(Taxonomy::Cluster(_)) => "not within each class or group of rows",
            Scheme::Groups(Taxonomy::Group(_)) => "not within each class or another group",
            Scheme::RowWeights | Scheme::LabelWeights(_) => {
                "not where other weights would be right, nor within each class or group"
            }
        };
        format!("{}; {limits}", self.promise())
    }

    /// The names of what thresholds differ by, in their order: classes, clusters or groups.
    pub fn group_names(&self) -> Vec<String> {
        let class = |label: usize| match &self.names {
            Some(names) => names.as_slice()[label].clone(),
            None => label.to_string(),
        };
        match &self.scheme {
            Scheme::Groups(Taxonomy::Label) | Scheme::LabelWeights(_) => {
                (0..self.classes).map(class).collect()
            }
            Scheme::Groups(taxonomy @ Taxonomy::Cluster(_)) => {
                let rest = self.no_cluster();
                let name = |cluster: usize| match self.beside.clusters.get(cluster) {
                    Some(name) => name.clone(),
                    None if rest == Some(cluster) => "no cluster".to_owned(),
                    None => format!("cluster {cluster}"),
                };
                (0..taxonomy.groups(self.classes)).map(name).collect()
            }
            Scheme::Groups(Taxonomy::Group(_)) => self.beside.groups.clone(),
            Scheme::Groups(Taxonomy::All) | Scheme::RowWeights | Scheme::Risk(_) => Vec::new(),
        }
    }

    /// Where impossible true labels make a threshold infinite that has rows enough for its level. Nothing where scores
    /// were left out, or are infinite for labels too far down the ranking.
    pub fn impossible(&self, kept: &KeptLevel) -> Vec<Impossible> {
        let (Some(Evidence::Groups(groups)), None) = (&self.evidence, &self.ranks) else { return Vec::new() };
        let names = match kept.ranked_level() {
            Some(_) => vec![None],
            None => self.group_names().into_iter().map(Some).collect(),
        };
        let levels = kept.ranked_level().into_iter().chain(kept.group_levels().iter().copied());
        let is_infinite =
            |level: Level, scores: &SortedScores| level.rank().is_some() && scores.at(level) == f64::INFINITY;
        let found = names.into_iter().zip(levels).zip(groups);
        let found = found.filter(|((_, level), scores)| is_infinite(*level, scores));
        let told = |((group, _), scores): ((Option<String>, Level), &SortedScores)| Impossible {
            group,
            labels: scores.ties(f64::INFINITY),
            rows: scores.n(),
        };
        found.map(told).collect()
    }

    /// The rows that had a part in it: those that calibrated, and those that tuned.
    pub fn rows(&self) -> Vec<RowSet> {
        let tuning = self.tuning.as_ref().map(|tuning| tuning.rows.clone());
        [Some(self.calibrating_rows.clone()), self.choosing_rows.clone(), tuning]
            .into_iter()
            .flatten()
            .collect()
    }

    /// How coverage at a level follows its law: where the threshold is 0, infinite or shared by several calibration
    /// rows, it may exceed it.
    pub fn law_is(&self, kept: &KeptLevel) -> LawIs {
        let (Some(threshold), evidence) = (kept.threshold(), &self.evidence) else { return LawIs::ABound };
        let tied = match evidence {
            Some(Evidence::Groups(groups)) => groups.iter().any(|scores| scores.ties(threshold) > 1),
            _ => false,
        };
        if tied || threshold == 0.0 || threshold == f64::INFINITY { LawIs::ABound } else { LawIs::Exact }
    }

    /// Whether what is promised holds: not where the rows that calibrated also had a say in the parameters.
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
            // Classes without names are known by their numbers, and columns that bear others are others.
            (None, Some(found)) if found.as_slice().iter().all(|name| name.parse::<u64>().is_ok()) => {
                let numbers = (0..wanted).map(|class| class.to_string()).collect();
                ClassNames::new(numbers).and_then(|wanted| wanted.expect_same(found)).in_file(path)
            }
            _ => Ok(()),
        }
    }
}

fn kept(calibration: &Calibration<ScoreSpec>, alpha: Alpha) -> KeptLevel {
    let (predictor, promise) = calibration.at(alpha);
    KeptLevel { promise, thresholds: predictor.thresholds().clone() }
}
