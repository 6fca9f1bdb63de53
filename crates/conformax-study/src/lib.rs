//! Conformal procedures compared over benchmarks, levels and random splits.

pub mod paper;
mod results;

pub use results::{
    AbsentBenchmark, BenchmarkSummary, Claim, CoverageBand, Evidence, GammaSize, Means, Paired, Provenance,
    Record, Results, SplitSummary, Spread, Stratum, TuningComparison, Verdict,
};
