//! The paper's empirical sentences, judged on our numbers.
//!
//! Each sentence is a row of [`table::CLAIMS`]: where it speaks, about which quantity, and what is compared with what.
//! A comparison is a paired difference over the splits, clear where it exceeds 3 standard errors that count which rows
//! there are and not only which splits; a sentence says how many comparisons it speaks for. Splits are seed, seed + 1,
//! …: none is chosen. Verdicts follow from the numbers alone, whichever way they fall.

mod comparison;
mod evidence;
#[cfg(test)]
mod paper_world;
mod quantity;
mod table;

use crate::paper::PROCEDURES;
use crate::results::{BenchmarkSummary, Claim, Record, Results};
use crate::row_influence::Influences;
use evidence::Court;

/// Judges every sentence, where the study has the paper's procedures and no data but what ships: the claims are about
/// nothing else. `records` are those of all splits.
pub(crate) fn judge_claims(results: &Results, records: &[Record], influences: &Influences) -> Vec<Claim> {
    let benchmarks = results.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    let procedures: Vec<&str> = results.procedures.iter().map(String::as_str).collect();
    let ships = |summary: &BenchmarkSummary| summary.ships;
    if !PROCEDURES.iter().all(|name| procedures.contains(name)) || !results.benchmarks.iter().all(ships) {
        return Vec::new();
    }
    let court = Court::new(benchmarks, procedures, results.levels.clone(), records, influences);
    table::CLAIMS.iter().map(|sentence| sentence.judge(&court)).collect()
}
