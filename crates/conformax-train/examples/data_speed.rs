//! Measures the data module: how fast images and documents become batches on this machine.
//!
//! ```text
//! cargo run --release -p conformax-train --example data_speed -- cifar10 FOLDER
//! cargo run --release -p conformax-train --example data_speed -- newsgroups FOLDER TOKENIZER.json
//! ```

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use conformax_train::data::{
    Augment, Batches, ImageTransform, Plan, Preparation, Remove, Source, Splitting, Tokenizing,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cifar10", folder] => cifar10(folder.into()),
        ["newsgroups", folder, tokenizer] => newsgroups(folder.into(), tokenizer.into()),
        _ => Err("usage: data_speed cifar10 FOLDER | newsgroups FOLDER TOKENIZER.json".into()),
    }
}

/// Flip, padded crop and normalisation in batches of 256, as the CNN is trained.
fn cifar10(path: PathBuf) -> Outcome {
    let start = Instant::now();
    let data = Source::Cifar10 { path }.read()?;
    report("read", data.labels.len(), "images", start)?;
    let normal = ImageTransform { mean: vec![0.5; 3], std: vec![0.25; 3], ..ImageTransform::default() };
    let examples = Arc::new(data.prepare(&Preparation::Images(normal))?);
    let plan = Plan::training(examples, 256, Augment { flip: true, padding: 4, mixup: 0.0 }, 0)?;
    for workers in [1, available_parallelism()?.get()] {
        let (start, steps) = (Instant::now(), 3 * plan.steps_per_epoch());
        let rows = Batches::new(plan.clone(), 0..steps, workers)
            .try_fold(0, |rows, batch| batch.map(|batch| rows + batch.labels.len()))?;
        report(&format!("{workers} workers: flip, crop, normalise"), rows, "images", start)?;
    }
    Ok(())
}

/// Reading without header, footer and quotes, then WordPiece cut to 128 tokens.
fn newsgroups(path: PathBuf, tokenizer: PathBuf) -> Outcome {
    let start = Instant::now();
    let data = Source::Newsgroups { path, remove: Remove::all() }.read()?;
    let documents = data.labels.len();
    report("read and strip", documents, "documents", start)?;
    let start = Instant::now();
    let data = data.split(&Splitting { test: Some(0.2), ..Splitting::default() })?;
    data.prepare(&Preparation::Texts(Tokenizing { tokenizer, max_length: 128 }))?;
    report("tokenise", documents, "documents", start)
}

fn report(what: &str, count: usize, of: &str, start: Instant) -> Outcome {
    let seconds = start.elapsed().as_secs_f64();
    let rate = count as f64 / seconds;
    Ok(writeln!(std::io::stdout(), "{what}: {count} {of} in {seconds:.2} s, {rate:.0} a second")?)
}
