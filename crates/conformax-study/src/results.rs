//! `Results`: everything a study found, as plain values that a report shows and a file keeps.
//!
//! Tables, figures and files all read these values and compute nothing new from logits, so they cannot
//! disagree.

use serde::{Deserialize, Serialize};

/// Everything a study found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Name of the study.
    pub study: String,
    /// What made these numbers.
    pub provenance: Provenance,
    /// Printed names of the procedures, in the study's order.
    pub procedures: Vec<String>,
    /// Levels, in the study's order.
    pub levels: Vec<f64>,
    /// The benchmarks that ran, in the study's order.
    pub benchmarks: Vec<BenchmarkSummary>,
    /// The benchmarks that could not be found, and what to do about it.
    pub absent: Vec<AbsentBenchmark>,
    /// One per benchmark × procedure × α × split, in this order of sorting.
    pub records: Vec<Record>,
    /// Tuned procedures by the other ways to tune, as [`Way::named`] calls them: `opt-entmax (all rows)`. In the order
    /// of `records`, a way after the other; all rows choose on the first splits only. Their parameters and thresholds
    /// are those of the candidate that decides most labels.
    #[serde(default)]
    pub tuned: Vec<Record>,
    /// Mean and spread over the many splits of the claims, per benchmark × procedure × α.
    pub means: Vec<Means>,
    /// The band that the coverage law allows, per benchmark × α and number of calibrating rows.
    pub bands: Vec<CoverageBand>,
    /// What the paper's way of tuning costs, per benchmark × tuned procedure × α.
    pub tuning: Vec<TuningComparison>,
    /// The ways to tune side by side, per benchmark × tuned procedure × α × way.
    #[serde(default)]
    pub tuning_ways: Vec<TuningWay>,
    /// Average size on test rows against α, for many γ.
    pub gamma_on_test: Vec<GammaSize>,
    /// Average size on tuning rows against γ, at several levels.
    pub gamma_on_tuning: Vec<GammaSize>,
    /// The paper's empirical sentences, judged.
    pub claims: Vec<Claim>,
    /// Rows to try procedures on, per benchmark.
    pub examples: Vec<Examples>,
}

/// One procedure on one split of one benchmark at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Number of the split, from 0.
    pub split: u64,
    /// Rows that the threshold was taken from.
    pub n_cal: u64,
    /// Rows that chose parameters and did nothing else.
    pub n_tune: u64,
    /// Rows that the sets were judged on.
    pub n_test: u64,
    /// Largest score in a set; +∞ (written `"inf"`) where there are too few calibrating rows.
    #[serde(with = "infinite")]
    pub threshold: f64,
    /// γ, for members of the entmax family (1 is the log-margin).
    pub gamma: Option<f64>,
    /// λ, for RAPS.
    pub lambda: Option<f64>,
    /// Unpunished ranks, for RAPS.
    pub k_reg: Option<u64>,
    /// Share of test rows whose set holds the true label.
    pub coverage: f64,
    /// Mean number of labels in a set.
    pub average_size: f64,
    /// Share of sets with one label.
    pub singleton_ratio: f64,
    /// Coverage among them; `None` where there are none.
    pub singleton_coverage: Option<f64>,
    /// Share of empty sets.
    pub empty_ratio: f64,
    /// Largest distance between a stratum's coverage and 1 − α.
    pub sscv: f64,
    /// Mean distance between a class's coverage and 1 − α.
    pub covgap: f64,
    /// Coverage by set size.
    pub strata: Vec<Stratum>,
}

/// Sets of `from` to `to` labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stratum {
    /// Smallest size.
    pub from: u64,
    /// Largest size: for the last stratum, the number of classes.
    pub to: u64,
    /// Sets of such a size.
    pub n: u64,
    /// Coverage among them; `None` where there are none.
    pub coverage: Option<f64>,
}

/// What a benchmark is, and how good its classifier.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkSummary {
    /// Name in files: `cifar10`.
    pub name: String,
    /// Name for people: `CIFAR-10`.
    pub title: String,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Width of a logit: `f16`, `bf16`, `f32` or `f64`.
    pub dtype: String,
    /// Share of rows whose true label has the largest logit, ties included.
    pub accuracy: f64,
    /// Fingerprint of the rows, 16 hexadecimal digits, as calibration files have it.
    pub fingerprint: String,
    /// Whether its numbers were taken for logits and look like probabilities: no row is negative, and all sum to one.
    #[serde(default)]
    pub doubtful: bool,
    /// Whether its rows are those of the benchmark of this name that ships, whatever file they came from.
    #[serde(default)]
    pub ships: bool,
    /// The study's splits.
    pub splits: Vec<SplitSummary>,
}

impl BenchmarkSummary {
    /// What [`crate::paper`] calls it; `None` where the paper prints nothing of these rows.
    pub fn name_in_paper(&self) -> Option<&str> {
        self.ships.then_some(self.name.as_str())
    }
}

/// One split of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitSummary {
    /// Number of the split, from 0.
    pub split: u64,
    /// Rows for calibration, those for tuning included.
    pub n_cal: u64,
    /// Rows for testing.
    pub n_test: u64,
    /// Accuracy on the rows for calibration.
    pub calibration_accuracy: f64,
    /// Accuracy on the rows for testing.
    pub test_accuracy: f64,
}

/// A benchmark that the study names and this machine does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AbsentBenchmark {
    /// Name in files.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// How to point the study at it.
    pub advice: String,
}

/// A mean over splits, and how far splits lie from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean over splits.
    pub mean: f64,
    /// Standard deviation over splits (of a sample: divided by one less than their number).
    pub deviation: f64,
    /// Splits that went into it.
    pub splits: u64,
}

/// The metrics of one procedure on one benchmark at one level, over many splits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Coverage.
    pub coverage: Spread,
    /// Average size.
    pub average_size: Spread,
    /// Share of sets with one label.
    pub singleton_ratio: Spread,
    /// Coverage among them, over the splits that have any; `None` where none has.
    pub singleton_coverage: Option<Spread>,
    /// Share of empty sets.
    pub empty_ratio: Spread,
    /// SSCV.
    pub sscv: Spread,
    /// CovGap.
    pub covgap: Spread,
}

/// Where coverage on the test rows lies with a given probability, whatever the model and the data, where no scores tie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoverageBand {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Printed names of the procedures that calibrate on this many rows.
    pub procedures: Vec<String>,
    /// Rows that calibrate.
    pub n_cal: u64,
    /// Rows that test.
    pub n_test: u64,
    /// Probability of the band.
    pub probability: f64,
    /// Mean coverage under the law.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; where scores tie (an accurate model and the entmax family) coverage may exceed it.
    pub high: f64,
}

/// The mean difference of two numbers taken on the same splits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Mean over splits of first minus second.
    pub mean: f64,
    /// Standard error of that mean, which counts which rows there are and not only which splits ([`crate::Chance`]).
    pub standard_error: f64,
    /// Splits.
    pub splits: u64,
}

/// Valid tuning against the paper's: the choice that has not seen the calibrating rows, and the one that has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningComparison {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Mean coverage that the law gives a valid procedure.
    pub promised: f64,
    /// Coverage under valid tuning.
    pub valid_coverage: Spread,
    /// Coverage under the paper's tuning.
    pub paper_coverage: Spread,
    /// The paper's coverage minus the valid one.
    pub coverage_difference: Paired,
    /// Average size under valid tuning.
    pub valid_size: Spread,
    /// Average size under the paper's tuning.
    pub paper_size: Spread,
    /// The paper's average size minus the valid one.
    pub size_difference: Paired,
}

/// Which rows choose a tuned procedure's parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Some, which then do not calibrate: the guarantee and the law hold.
    #[default]
    Split,
    /// Some, but candidates take their thresholds from those that calibrate, as the paper does: no guarantee.
    Paper,
    /// All, which calibrate too, anew for every label: the guarantee holds, and no law.
    AllRows,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Split, Self::Paper, Self::AllRows];

    /// A procedure's name when it is tuned this way.
    pub fn named(self, procedure: &str) -> String {
        match self {
            Self::Split => procedure.to_owned(),
            Self::Paper => format!("{procedure} (paper’s tuning)"),
            Self::AllRows => format!("{procedure} (all rows)"),
        }
    }
}

/// A procedure tuned one way, over the splits on which all ways are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TuningWay {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Which rows choose.
    pub way: Way,
    /// Coverage.
    pub coverage: Spread,
    /// Average size.
    pub average_size: Spread,
}

/// Average set size of the entmax score at one γ, level and split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GammaSize {
    /// Name of the benchmark.
    pub benchmark: String,
    /// γ.
    pub gamma: f64,
    /// Miscoverage level.
    pub alpha: f64,
    /// Number of the split, from 0.
    pub split: u64,
    /// Mean number of labels in a set.
    pub average_size: f64,
}

/// An empirical sentence of the paper, and what we found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Short name, unique among claims.
    pub id: String,
    /// What the paper says, in our words.
    pub sentence: String,
    /// Where it says so.
    pub place: String,
    /// What would make it true, and what false: the rule that the verdict follows.
    pub rule: String,
    /// Our figures in one sentence.
    pub found: String,
    /// Computed from the evidence by the rule.
    pub verdict: Verdict,
    /// The comparisons behind it.
    pub evidence: Vec<Evidence>,
}

/// One comparison behind a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// What is subtracted from what: `average size: RAPS − opt-entmax`.
    pub quantity: String,
    /// Mean of the first term.
    pub first: f64,
    /// Mean of the second term: another procedure's, or the bound it is held to.
    pub second: f64,
    /// First minus second on the same splits; the claim wants it positive.
    pub difference: Paired,
    /// Whether the difference exceeds 3 standard errors, and which way.
    pub verdict: Verdict,
}

/// What 3 standard errors say, on the rows of the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As the paper says.
    Reproduced,
    /// The opposite of what the paper says.
    NotReproduced,
    /// Neither is clear at 3 standard errors.
    #[default]
    Undecided,
    /// As the paper says, by a rule that no numbers could have spoken against: it counts for nothing.
    Irrefutable,
}

/// Test rows of a benchmark's first split, and what every procedure as that split calibrated it says of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Names of the procedures: the study's, and then the tuned ones once more where all rows choose ([`Way::named`]).
    pub procedures: Vec<String>,
    /// Every score that some procedure uses at some level.
    pub scores: Vec<ExampleScore>,
    /// What decides, by procedure and then level.
    pub rules: Vec<Vec<ExampleRule>>,
    /// The rows.
    pub rows: Vec<ExampleRow>,
}

/// A score of the examples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExampleScore {
    /// Its name, as everywhere.
    pub name: String,
    /// γ, for members of the entmax family (1 is the log-margin).
    pub gamma: Option<f64>,
}

/// A label is in the set where its score is at most the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExampleRule {
    /// Place among the scores.
    pub score: usize,
    /// The threshold; `None` where every label is in the set.
    pub threshold: Option<f64>,
    /// Whether several scores choose among themselves label by label, so that these are but the first one's.
    pub is_a_choice: bool,
}

/// One row, and the answers about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExampleRow {
    /// Its number in the benchmark, from 0.
    pub row: u64,
    /// What it was taken for.
    pub kind: RowKind,
    /// Its true label.
    pub truth: u32,
    /// The labels with the largest logits, best first; the true one last where it is not among them.
    pub labels: Vec<u32>,
    /// Their names, or their numbers where classes have no names.
    pub names: Vec<String>,
    /// Their logits; `None` for −∞.
    pub logits: Vec<Option<f64>>,
    /// Their scores, by score; `None` for +∞.
    pub scores: Vec<Vec<Option<f64>>>,
    /// The library's sets, by procedure and then level.
    pub answers: Vec<Vec<Answer>>,
}

/// A prediction set and the probabilities over it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Labels in the set.
    pub size: u64,
    /// Those of them that the row lists, best first.
    pub labels: Vec<u32>,
    /// Their probabilities.
    pub probabilities: Vec<f64>,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// The true label leads as clearly as on half of the rows that are right, or more.
    Easy,
    /// The true label leads, by less than on nine in ten of the rows that are right.
    Ambiguous,
    /// Another label leads.
    Wrong,
}

/// What made the numbers: enough to make them again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this software.
    pub version: String,
    /// Version of the arithmetic.
    pub arithmetic_version: u32,
    /// Scheme by which randomised scores draw.
    pub draw_scheme: String,
    /// Seed of the study: split `i` uses seed + i.
    pub seed: u64,
    /// Splits behind each record.
    pub splits: u64,
    /// Splits behind claims and the comparison of tunings.
    pub claim_splits: u64,
    /// Operating system, architecture and processor.
    pub machine: String,
    /// Threads that worked.
    pub threads: u64,
    /// Seconds from reading the study to the last number.
    pub duration_seconds: f64,
}

/// JSON has no infinity: it is written as the string `"inf"`.
mod infinite {
    use serde::de::{Error, Unexpected};
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(f64),
        Text(String),
    }

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if *value == f64::INFINITY {
            serializer.serialize_str("inf")
        } else {
            serializer.serialize_f64(*value)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Number(value) => Ok(value),
            Written::Text(text) if text == "inf" => Ok(f64::INFINITY),
            Written::Text(text) => Err(Error::invalid_value(Unexpected::Str(&text), &"a number or \"inf\"")),
        }
    }
}
