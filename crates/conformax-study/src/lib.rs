//! Conformal procedures compared over benchmarks, levels and random splits.
//!
//! ```no_run
//! use conformax_study::{RunOptions, Study};
//!
//! let results = Study::paper().run(&RunOptions::default(), &())?;
//! for record in results.records.iter().filter(|record| record.alpha == 0.1) {
//!     println!("{} {} {}", record.benchmark, record.procedure, record.average_size);
//! }
//! # Ok::<(), conformax_study::Error>(())
//! ```
//!
//! A [`Study`] is data: benchmarks, procedures, levels, splits, a seed. It is read from TOML, and running it
//! gives [`Results`]: plain values that a report shows and a file keeps. The paper's study is built in, with
//! its [`claims`](Claim) judged and its [printed tables](paper) beside.

mod benchmark;
mod claims;
mod compare;
mod conditional;
mod error;
mod evaluation;
mod examples;
pub mod paper;
mod procedure;
mod progress;
mod results;
mod results_csv;
mod row_influence;
mod run;
mod selection;
mod splits;
mod spread;
mod strata;
mod study;
mod test_sizes;

pub use benchmark::{BUILT_IN, Benchmark, BenchmarkFiles, BuiltIn};
pub use compare::{Comparison, ComparisonRow, compare, comparison_study, report_study};
pub use conditional::{ClassCoverage, ConditionalRecord, ConditionalResults, ShiftRecord, conditional_csv};
pub use error::{Error, Place, Result};
pub use procedure::{Procedure, ProcedureScore};
pub use progress::{Progress, Stage};
pub use results::{
    AbsentBenchmark, Answer, BenchmarkSummary, Claim, CoverageBand, Evidence, ExampleRow, ExampleRule,
    ExampleScore, Examples, GammaSize, Means, Paired, Provenance, Record, Results, RowKind, SplitSummary,
    Spread, Stratum, TuningComparison, TuningWay, Verdict, Way,
};
pub use results_csv::{csv_of, results_csv};
pub use run::{RunOptions, SELECTION_CLASSES};
pub use spread::{CLEAR, Chance, FEWEST_SPLITS};
pub use strata::{PooledStratum, pooled_strata};
pub use study::{BenchmarkEntry, CONDITIONAL, Kind, PAPER, Study};
