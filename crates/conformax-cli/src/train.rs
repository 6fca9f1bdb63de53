//! `conformax train`: a classifier from raw data, its weights, and the logits that every other subcommand takes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use conformax_io::printable;
use conformax_train::{Card, Config, Device, EpochRecord, Observer, Resumed, RunFolder, train};
use indicatif::ProgressBar;

use crate::args::folder;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;

/// Train a classifier and write the logits of its test rows.
///
/// The folder then holds model.safetensors (the weights with the lowest validation loss), test.npz (logits and labels,
/// as calibrate and study take them), the curve of loss and accuracy, and a card that says what came out. A run that
/// was stopped goes on from its last checkpoint when the same command is given again.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax train configs/cifar10-cnn.toml -o run
  conformax train configs/newsgroups-minilm.toml -o run --device cuda
  conformax compare run/test.npz --alpha 0.1")]
pub(crate) struct TrainArgs {
    /// The run in TOML: data, model, training. Relative paths in it start at its folder.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// Folder for the run; one that holds a run of the same config is taken up where that stopped.
    #[arg(long, short, value_name = "FOLDER", value_parser = folder())]
    output: PathBuf,
    /// Where to compute: cpu, cuda or cuda:N. GPUs need a build with the feature `tch`.
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

pub(crate) fn run(args: &TrainArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let config = Config::read(&args.config)?;
    let (folder, resumed) = RunFolder::open(&args.output, &config)?;
    let paths_from = args.config.parent().unwrap_or(Path::new("."));
    let mut watch = Watch {
        bar: ProgressBar::hidden(),
        resumed,
        epochs: config.training.epochs,
        device: args.device,
        begun: Instant::now(),
        steps: Steps::default(),
        console,
    };
    let outcome = train(&config, paths_from, &folder, args.device, &mut watch)?;
    watch.bar.finish_and_clear();
    writeln!(console.out(), "{}", printable(&folder.file("test.npz").to_string_lossy()))?;
    console.note(summary(&outcome.card));
    Ok(())
}

/// A bar where somebody looks, a line per epoch everywhere.
struct Watch<'a, 'b> {
    bar: ProgressBar,
    resumed: Resumed,
    epochs: u64,
    device: Device,
    begun: Instant,
    steps: Steps,
    console: &'a mut Console<'b>,
}

/// Steps of the run, and those that this command found done.
#[derive(Default)]
struct Steps {
    found: u64,
    done: u64,
    all: u64,
}

impl Steps {
    /// Seconds until the last one, if the rest take as long as those of this command, evaluation included.
    fn left(&self, seconds: f64) -> f64 {
        let own = self.done.saturating_sub(self.found).max(1);
        seconds / own as f64 * self.all.saturating_sub(self.done) as f64
    }
}

impl Watch<'_, '_> {
    fn note(&mut self, line: String) {
        self.bar.suspend(|| self.console.note(line));
    }
}

impl Observer for Watch<'_, '_> {
    fn begin(&mut self, done: u64, steps: u64) {
        self.bar = self.console.steps(steps);
        self.bar.set_position(done);
        self.bar.reset_eta();
        self.begun = Instant::now();
        self.steps = Steps { found: done, done, all: steps };
        if self.resumed == Resumed::Yes && done > 0 {
            self.note(format!("taken up after {done} of {steps} steps"));
        }
    }

    fn pace(&mut self, seconds: f64, left: u64) {
        if let Some(warning) = warning(self.device, seconds * left as f64) {
            self.bar.suspend(|| self.console.warn(warning));
        }
    }

    fn steps(&mut self, done: u64, loss: f64, accuracy: f64) {
        self.steps.done = done;
        self.bar.set_position(done);
        self.bar.set_message(format!("loss {loss:.4}, accuracy {accuracy:.4}"));
    }

    fn epoch(&mut self, record: &EpochRecord) {
        let EpochRecord { epoch, train_loss, train_accuracy, .. } = record;
        let validation = match (record.validation_loss, record.validation_accuracy) {
            (Some(loss), Some(accuracy)) => format!("; validation loss {loss:.4}, accuracy {accuracy:.4}"),
            _ => String::new(),
        };
        let epochs = self.epochs;
        let left = match self.steps.left(self.begun.elapsed().as_secs_f64()) {
            0.0 => String::new(),
            seconds => format!("; {} left", duration(seconds)),
        };
        self.note(format!(
            "epoch {epoch}/{epochs}: loss {train_loss:.4}, accuracy {train_accuracy:.4}{validation}{left}"
        ));
    }

    fn stop(&mut self) -> bool {
        interrupt::check().is_err()
    }
}

/// What to know before the CPU is busy for long.
fn warning(device: Device, seconds: f64) -> Option<String> {
    let long = long_on_the_cpu(device, seconds)?;
    Some(format!(
        "{long}; configs/cifar10-small.toml is a run for a CPU; what is done is kept where Ctrl-C ends it"
    ))
}

/// How long so many seconds of the CPU are, where they are more than an hour.
pub(crate) fn long_on_the_cpu(device: Device, seconds: f64) -> Option<String> {
    const HOUR: f64 = 3600.0;
    (device == Device::Cpu && seconds > HOUR).then(|| {
        format!(
            "this takes about {} on the CPU, and a small part of that on a GPU (--device cuda, see docs/training.md)",
            duration(seconds)
        )
    })
}

/// Seconds in the two largest units.
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn summary(card: &Card) -> String {
    let (accuracy, rows) = (card.test_accuracy, card.rows.test);
    let (epoch, speed) = (card.best.epoch, card.steps_per_second);
    format!(
        "test accuracy {accuracy:.4} over {rows} rows with the weights of epoch {epoch}; {speed:.1} steps a second"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_runs_on_the_cpu_are_warned_about() {
        let text = warning(Device::Cpu, 7260.0).unwrap();
        assert!(text.starts_with("this takes about 2 h 1 min on the CPU"), "{text}");
        assert_eq!(warning(Device::Cpu, 3600.0), None);
        assert_eq!(warning(Device::Cuda(0), 1e6), None);
    }

    #[test]
    fn time_left_counts_the_steps_of_this_command() {
        let steps = Steps { found: 100, done: 150, all: 200 };
        assert_eq!(steps.left(20.0), 20.0);
        assert_eq!(Steps { found: 0, done: 200, all: 200 }.left(20.0), 0.0);
        assert_eq!([duration(59.4), duration(61.0), duration(90_000.0)], ["59 s", "1 min 1 s", "1 d 1 h"]);
    }
}
