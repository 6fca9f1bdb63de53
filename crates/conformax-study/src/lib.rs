//! Conformal procedures compared over benchmarks, levels and random splits.

pub mod paper;
mod evaluation;
mod npy;
mod probe;
mod procedure;
mod results;
mod scored;
mod splits;
mod spread;

pub use probe::probe;
pub use evaluation::Stage;
pub use procedure::{Choice, Procedure};
pub use spread::CLEAR;
pub use results::{
    AbsentBenchmark, BenchmarkSummary, Claim, CoverageBand, Evidence, GammaSize, Means, Paired, Provenance,
    Record, Results, SplitSummary, Spread, Stratum, TuningComparison, Verdict,
};
