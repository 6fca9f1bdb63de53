//! Runs the paper's study and prints how long its stages took: `cargo run --release --example time_study`.
//!
//! Stages of different benchmarks overlap, so they add up to more than the whole; `RAYON_NUM_THREADS=1` keeps
//! them apart.

use std::io::Write;
use std::time::{Duration, Instant};

use conformax_study::{Progress, RunOptions, Stage, Study, results_csv};

/// Writes each stage as it ends.
struct Timed;

impl Progress for Timed {
    fn end(&self, benchmark: &str, stage: &Stage, took: Duration) {
        let line = format!("{benchmark:<12} {stage:<24?} {:>8.3} s\n", took.as_secs_f64());
        // A closed pipe is no reason to stop the clock.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let results = Study::paper().run(&RunOptions::default(), &Timed)?;
    let (csv, json) = (results_csv(&results), serde_json::to_string(&results)?);
    let mut out = std::io::stdout();
    writeln!(out, "{} records in {:.3} s", results.records.len(), started.elapsed().as_secs_f64())?;
    if let Some(folder) = std::env::args().nth(1) {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(format!("{folder}/results.csv"), csv)?;
        std::fs::write(format!("{folder}/results.json"), json)?;
    }
    for claim in &results.claims {
        writeln!(out, "{:<28} {:<16} {}", claim.id, format!("{:?}", claim.verdict), claim.found)?;
    }
    Ok(())
}
