//! `conformax logits`: what a checkpoint's own head says about data, without training.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use conformax_train::data::{Part, Source};
use conformax_train::{Device, LogitsRequest, Matched, Observer, logits};
use indicatif::ProgressBar;

use crate::args::{Files, OutputArgs};
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;
use crate::train::long_on_the_cpu;

/// Write the logits of a checkpoint's own head on images or texts.
///
/// The checkpoint is a Hugging Face folder of a BERT or a ViT with a classification head: config.json,
/// model.safetensors (or the files that model.safetensors.index.json names) and, for texts, tokenizer.json. Classes of
/// the data are found among its labels (id2label) by name, by number, or by their order.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax logits vit-base-patch16-224 imagenet/val -o test.npz
  conformax logits bert-emotions reviews.csv --text review --label mood -o test.npz
  conformax compare test.npz --alpha 0.1")]
pub(crate) struct LogitsArgs {
    /// Folder of the checkpoint.
    #[arg(value_name = "CHECKPOINT")]
    checkpoint: PathBuf,
    /// A folder of CIFAR-10, CIFAR-100, IDX files, 20 Newsgroups or one folder of images per class, or a CSV file of
    /// texts.
    #[arg(value_name = "DATA")]
    data: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Which rows; without it the test rows, or all of them where the files are not divided.
    #[arg(long, value_enum, value_name = "PART")]
    part: Option<PartChoice>,
    /// Column of texts in a CSV file.
    #[arg(long, value_name = "COLUMN", default_value = "text")]
    text: String,
    /// Column of labels in a CSV file.
    #[arg(long, value_name = "COLUMN", default_value = "label")]
    label: String,
    /// Most tokens of a text; longer ones are cut.
    #[arg(long, value_name = "N", default_value_t = 128)]
    max_length: usize,
    /// Rows that are computed together.
    #[arg(long, value_name = "N", default_value_t = 64)]
    batch_size: usize,
    /// Where to compute: cpu, cuda or cuda:N. GPUs need a build with the feature `tch`.
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PartChoice {
    Train,
    Validation,
    Test,
}

impl LogitsArgs {
    pub(crate) fn files(&self) -> Files {
        Files {
            read: vec![self.checkpoint.clone(), self.data.clone()],
            written: vec![self.output.output.clone()],
        }
    }
}

pub(crate) fn run(args: &LogitsArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let request = LogitsRequest {
        checkpoint: args.checkpoint.clone(),
        data: source(args)?,
        part: args.part.map(|part| match part {
            PartChoice::Train => Part::Train,
            PartChoice::Validation => Part::Validation,
            PartChoice::Test => Part::Test,
        }),
        max_length: args.max_length,
        batch_size: args.batch_size,
    };
    let mut watch =
        Watch { bar: ProgressBar::hidden(), device: args.device, first: None, warned: false, console };
    let output = (args.output.output.as_path(), args.output.overwrite());
    let scored = logits(&request, output, args.device, &mut watch)?;
    watch.bar.finish_and_clear();
    let how = match scored.matched {
        Matched::ByName => "by name",
        Matched::ByNumber => "by number",
        Matched::ByOrder => "by their order, since no name is the same",
    };
    console.note(format_args!(
        "accuracy {:.4} over {} rows; classes were matched to labels {how}",
        scored.accuracy, scored.rows
    ));
    Ok(())
}

/// What lies at the path, with the columns that were named.
fn source(args: &LogitsArgs) -> Result<Source, Failure> {
    let mut source = Source::at(&args.data).map_err(conformax_train::Error::from)?;
    if let Source::Csv { text, label, .. } = &mut source {
        (*text, *label) = (args.text.clone(), args.label.clone());
    }
    Ok(source)
}

struct Watch<'a, 'b> {
    bar: ProgressBar,
    device: Device,
    /// When the first batch was done, and its rows: the second says how long the rest takes.
    first: Option<(Instant, usize)>,
    warned: bool,
    console: &'a mut Console<'b>,
}

/// Seconds until the last row, if the rest take as long as those since the first batch.
fn left(seconds: f64, since: usize, done: usize, rows: usize) -> f64 {
    seconds / done.saturating_sub(since).max(1) as f64 * rows.saturating_sub(done) as f64
}

impl Observer for Watch<'_, '_> {
    fn scored(&mut self, done: usize, rows: usize) {
        if self.bar.is_hidden() {
            self.bar = self.console.progress("logits", Some(rows as u64));
        }
        self.bar.set_position(done as u64);
        let Some((begun, since)) = self.first else {
            self.first = Some((Instant::now(), done));
            return;
        };
        let seconds = left(begun.elapsed().as_secs_f64(), since, done, rows);
        if let Some(warning) = long_on_the_cpu(self.device, seconds).filter(|_| !self.warned) {
            self.bar.suspend(|| self.console.warn(warning));
        }
        // Once at most, and when the second batch tells it.
        self.warned = true;
    }

    fn stop(&mut self) -> bool {
        interrupt::check().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_that_of_the_rows_after_the_first_batch() {
        // The first 64 rows brought the model into memory; the next 64 took two seconds.
        assert_eq!(left(2.0, 64, 128, 50_000), 2.0 / 64.0 * 49_872.0);
        assert_eq!(left(2.0, 64, 70, 70), 0.0);
        let long = long_on_the_cpu(Device::Cpu, left(10.0, 64, 128, 50_000)).unwrap();
        assert!(long.starts_with("this takes about 2 h 9 min on the CPU"), "{long}");
        assert_eq!(long_on_the_cpu(Device::Cuda(0), 1e6), None);
    }
}
