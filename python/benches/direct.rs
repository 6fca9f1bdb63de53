//! What the core takes for the jobs that `overhead.py` times in Python and in the command: same data, best of several.
//!
//! Arguments: a file of little-endian `f32` logits, one of `u32` labels, the number of classes, the threads.
//! Prints one line per job: its name and its seconds.

#![allow(clippy::print_stdout, reason = "the result goes to the script that asked")]

use std::time::Instant;
use std::{env, fs};

use conformax::{Alpha, Calibration, EntmaxScore, Evaluator, Logits, ScoreSpec, score_labels};

const REPEATS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let mut next = || arguments.next().ok_or("wanted logits, labels, classes and threads");
    let logits: Vec<f32> = numbers(&fs::read(next()?)?, f32::from_le_bytes);
    let labels: Vec<u32> = numbers(&fs::read(next()?)?, u32::from_le_bytes);
    let (classes, threads): (usize, usize) = (next()?.parse()?, next()?.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;

    let logits = Logits::new(&logits, classes)?;
    let score = ScoreSpec::Entmax(EntmaxScore::default());
    let model = Calibration::of(score, logits.labelled(&labels)?)?.at(Alpha::new(0.1)?).0;
    println!(
        "score_labels {}",
        best(|| score_labels(&score, logits.labelled(&labels)?).map(|scores| scores.len()))?
    );
    println!("predict {}", best(|| model.predict(logits).map(|sets| sets.len()))?);
    let evaluate = || {
        let mut evaluator = Evaluator::new(vec![model.clone()], classes)?;
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
