//! `ConditionalResults`: plain values that a page shows and a file keeps.

use serde::{Deserialize, Serialize};

use crate::results::{AbsentBenchmark, BenchmarkSummary, Provenance};
use crate::results_csv::csv_of;

/// What a conditional study found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConditionalResults {
    /// Name of the study.
    pub study: String,
    /// Miscoverage levels.
    pub levels: Vec<f64>,
    /// Ways to thresholds, by their printed names.
    pub procedures: Vec<String>,
    /// Ways to weigh labels where their shares change, by their printed names.
    pub weightings: Vec<String>,
    /// What ran.
    pub benchmarks: Vec<BenchmarkSummary>,
    /// What the study names and this machine does not have.
    pub absent: Vec<AbsentBenchmark>,
    /// One per benchmark, split, procedure and level.
    pub records: Vec<ConditionalRecord>,
    /// Class by class, of the first split.
    pub classes: Vec<ClassCoverage>,
    /// One per benchmark, split, weighting and level, where the shares of the classes have changed.
    pub shift: Vec<ShiftRecord>,
    /// What made the numbers.
    pub provenance: Provenance,
}

/// One procedure on one split of a benchmark at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConditionalRecord {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Number of the split, from 0.
    pub split: u64,
    /// Rows that calibrated; those that found clusters, ranks or shares not counted.
    pub n_cal: u64,
    /// Rows that tested.
    pub n_test: u64,
    /// Share of test rows whose set holds the true label.
    pub coverage: f64,
    /// Mean number of labels in a set.
    pub average_size: f64,
    /// Share of sets with one label.
    pub singleton_ratio: f64,
    /// Mean distance between a class's coverage and 1 − α.
    pub covgap: f64,
    /// Coverage of the class that fares worst.
    pub worst_class_coverage: f64,
    /// Classes whose threshold is infinite, so that every set holds them: they have too few calibrating rows.
    pub classes_in_every_set: u64,
}

/// One class under one procedure at one level, on the first split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassCoverage {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the procedure.
    pub procedure: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// The class, from 0.
    pub class: u32,
    /// Its rows among those that calibrated.
    pub n_cal: u64,
    /// Its rows among those that test.
    pub n_test: u64,
    /// The share of them that is covered.
    pub coverage: f64,
    /// Where that share lies with probability 0.95 for a class calibrated by itself: lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One weighting on one split of a benchmark at one level, with the test rows drawn anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShiftRecord {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Printed name of the weighting.
    pub weighting: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Number of the split, from 0.
    pub split: u64,
    /// Test rows drawn.
    pub n_test: u64,
    /// Share of them whose set holds the true label; `None` where the weights could not be estimated.
    pub coverage: Option<f64>,
    /// Mean number of labels in a set.
    pub average_size: Option<f64>,
    /// Why there are no weights.
    pub problem: Option<String>,
}

/// The records as CSV, then those under shift: a column tells which.
pub fn conditional_csv(results: &ConditionalResults) -> String {
    let header = "part,benchmark,procedure,alpha,split,n_cal,n_test,coverage,average_size,singleton_ratio,covgap,\
                  worst_class_coverage,classes_in_every_set";
    let header = header.split(',').map(str::to_owned).collect();
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let classes = results.records.iter().map(|record| {
        vec![
            "classes".to_owned(),
            record.benchmark.clone(),
            record.procedure.clone(),
            record.alpha.to_string(),
            record.split.to_string(),
            record.n_cal.to_string(),
            record.n_test.to_string(),
            record.coverage.to_string(),
            record.average_size.to_string(),
            record.singleton_ratio.to_string(),
            record.covgap.to_string(),
            record.worst_class_coverage.to_string(),
            record.classes_in_every_set.to_string(),
        ]
    });
    let shift = results.shift.iter().map(|record| {
        let mut cells = vec![
            "shift".to_owned(),
            record.benchmark.clone(),
            record.weighting.clone(),
            record.alpha.to_string(),
            record.split.to_string(),
            String::new(),
            record.n_test.to_string(),
            optional(record.coverage),
            optional(record.average_size),
        ];
        cells.resize(13, String::new());
        cells
    });
    csv_of(std::iter::once(header).chain(classes).chain(shift))
}
