//! `compare`: the procedures on one data set at one level, and whether one of them is clearly the best.

use conformax::Alpha;
use serde::Serialize;

use crate::benchmark::Benchmark;
use crate::error::Result;
use crate::progress::Progress;
use crate::results::{Means, Paired, Record, Verdict};
use crate::row_influence::Counted;
use crate::spread::Chance;
use crate::study::Study;

/// One data set's procedures side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Rows of the data set.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Accuracy of the classifier.
    pub accuracy: f64,
    /// Fingerprint of the rows.
    pub fingerprint: String,
    /// Miscoverage level.
    pub alpha: f64,
    /// Random splits behind every number.
    pub splits: u64,
    /// Seed of the first split.
    pub seed: u64,
    /// One per procedure, in the study's order.
    pub procedures: Vec<ComparisonRow>,
}

/// A procedure among the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Means and spreads over the splits.
    #[serde(flatten)]
    pub means: Means,
    /// How much larger its sets are than those of the procedure with the smallest; `None` for that one.
    pub larger_than_smallest: Option<Paired>,
    /// Whether on these rows its sets are smaller than any other's by more than 3 standard errors of the paired
    /// difference.
    pub best: bool,
}

/// The study that [`compare`] runs: the paper's procedures and split, on one level and as many splits as asked.
pub fn comparison_study(alpha: Alpha, splits: usize, seed: u64) -> Study {
    report_study("compare", vec![alpha], splits, seed)
}

/// The study of one data set behind a report: the paper's procedures and split, at the levels asked for or at the
/// paper's where none is, and no claims.
pub fn report_study(name: &str, levels: Vec<Alpha>, splits: usize, seed: u64) -> Study {
    let mut study = Study { name: name.to_owned(), benchmarks: Vec::new(), ..Study::seeded_paper(seed) };
    (study.splits, study.claim_splits) = (splits, 0);
    if !levels.is_empty() {
        study.levels = levels;
    }
    study.sweep.clear();
    study
}

/// Runs the procedures of a study with one level on a data set.
pub fn compare(study: &Study, benchmark: Benchmark, progress: &dyn Progress) -> Result<Comparison> {
    let (results, influences) = study.run_with_influences(std::slice::from_ref(&benchmark), progress)?;
    let alpha = study.levels.first().map_or(0.0, |alpha| alpha.value());
    let records = |procedure: &str| -> Vec<&Record> {
        let of = |record: &&Record| record.procedure == procedure && record.alpha == alpha;
        results.records.iter().filter(of).collect()
    };
    let means: Vec<&Means> = results.means.iter().filter(|means| means.alpha == alpha).collect();
    let smallest = means.iter().min_by(|a, b| a.average_size.mean.total_cmp(&b.average_size.mean));
    let smallest = smallest.map_or("", |means| &means.procedure);
    let differences: Vec<Option<Paired>> = means
        .iter()
        .map(|means| {
            let (own, least) = (records(&means.procedure), records(smallest));
            let pairs = own.iter().zip(&least);
            let differences: Vec<f64> =
                pairs.map(|(own, least)| own.average_size - least.average_size).collect();
            let rows = |procedure: &str| {
                let key = (benchmark.name.clone(), procedure.to_owned(), alpha.to_bits());
                influences.get(&key).map(|influence| influence.of(Counted::Size))
            };
            let chance = Chance::of_rows(rows(&means.procedure)?, rows(smallest)?);
            (means.procedure != smallest).then(|| Paired::of(&differences, chance)).flatten()
        })
        .collect();
    let clear = differences.iter().flatten().all(|paired| paired.verdict() == Verdict::Reproduced);
    let procedures = means.iter().zip(&differences).map(|(means, larger)| ComparisonRow {
        means: (*means).clone(),
        larger_than_smallest: *larger,
        best: larger.is_none() && clear,
    });
    Ok(Comparison {
        rows: benchmark.rows() as u64,
        classes: benchmark.classes as u64,
        accuracy: benchmark.accuracy(),
        fingerprint: benchmark.fingerprint,
        alpha,
        splits: study.splits as u64,
        seed: study.seed,
        procedures: procedures.collect(),
    })
}
