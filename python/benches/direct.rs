//! What the core takes for the jobs that `overhead.py` times in Python and in the command: same data, best of several.
//!
//! Arguments: a file of little-endian `f32` logits and one of `u32` labels that calibrate, two such files that are
//! predicted and evaluated, the number of classes, the threads. An evaluation looks for rows that calibrated.
//! Prints one line per job: its name and its seconds.

#![allow(clippy::print_stdout, reason = "the result goes to the script that asked")]

use std::time::Instant;
use std::{env, fs};

use conformax::{Alpha, Calibrator, EntmaxScore, Evaluator, Logits, Remember, ScoreSpec, score_labels};

const REPEATS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let mut next = || arguments.next().ok_or("wanted logits and labels twice, classes and threads");
    let mut rows = || -> Result<(Vec<f32>, Vec<u32>), Box<dyn std::error::Error>> {
        Ok((
            numbers(&fs::read(next()?)?, f32::from_le_bytes),
            numbers(&fs::read(next()?)?, u32::from_le_bytes),
        ))
    };
    let ((held, held_labels), (logits, labels)) = (rows()?, rows()?);
    let (classes, threads): (usize, usize) = (next()?.parse()?, next()?.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;

    let score = ScoreSpec::Entmax(EntmaxScore::default());
    let mut calibrator = Calibrator::new(score, classes)?.remembering(Remember::Rows);
    calibrator.extend(Logits::new(&held, classes)?.labelled(&held_labels)?)?;
    let calibration = calibrator.finish()?;
    let model = calibration.at(Alpha::new(0.1)?).0;
    let logits = Logits::new(&logits, classes)?;
    println!(
        "score_labels {}",
        best(|| score_labels(&score, logits.labelled(&labels)?).map(|scores| scores.len()))?
    );
    println!("predict {}", best(|| model.predict(logits).map(|sets| sets.len()))?);
    let evaluate = || {
        let seen = vec![calibration.rows().clone()];
        let mut evaluator = Evaluator::new(vec![model.clone()], classes)?.watching_for(seen);
        evaluator.extend(logits.labelled(&labels)?)?;
        Ok(evaluator.finish()?.tallies.len())
    };
    println!("evaluate {}", best(evaluate)?);
    Ok(())
}

fn numbers<T>(bytes: &[u8], read: fn([u8; 4]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| read(*bytes)).collect()
}

fn best(mut job: impl FnMut() -> conformax::Result<usize>) -> conformax::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        std::hint::black_box(job()?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
