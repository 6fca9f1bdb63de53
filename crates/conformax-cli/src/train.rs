//! `conformax train`: a classifier from raw data, its weights, and the logits that every other subcommand takes.

use std::path::{Path, PathBuf};

use clap::Args;
use conformax_train::{Card, Config, Device, EpochRecord, Observer, Resumed, RunFolder, train};
use indicatif::ProgressBar;

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt;

/// Train a classifier and write the logits of its test rows.
///
/// The folder then holds model.safetensors (the weights with the lowest validation loss), test.npz (logits and labels, as
/// calibrate and study take them), the curve of loss and accuracy, and a card that says what came out. A run that was
/// stopped goes on from its last checkpoint when the same command is given again.
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
    #[arg(long, short, value_name = "FOLDER")]
    output: PathBuf,
    /// Where to compute: cpu, cuda or cuda:N. GPUs need a build with the feature `tch`.
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
}

pub(crate) fn run(args: &TrainArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let config = Config::read(&args.config)?;
    let (folder, resumed) = RunFolder::open(&args.output, &config)?;
    let paths_from = args.config.parent().unwrap_or(Path::new("."));
    let mut watch = Watch { bar: ProgressBar::hidden(), resumed, epochs: config.training.epochs, console };
    let outcome = train(&config, paths_from, &folder, args.device, &mut watch)?;
    watch.bar.finish_and_clear();
    writeln!(console.out(), "{}", folder.file("test.npz").display())?;
    console.note(summary(&outcome.card))
}

/// A bar where somebody looks, a line per epoch everywhere.
struct Watch<'a, 'b> {
    bar: ProgressBar,
    resumed: Resumed,
    epochs: u64,
    console: &'a mut Console<'b>,
}

impl Watch<'_, '_> {
    fn note(&mut self, line: String) {
        // Training goes on without whoever read standard error.
        let _ = self.bar.suspend(|| self.console.note(line));
    }
}

impl Observer for Watch<'_, '_> {
    fn begin(&mut self, done: u64, steps: u64) {
        self.bar = self.console.steps(steps);
        self.bar.set_position(done);
        self.bar.reset_eta();
        if self.resumed == Resumed::Yes && done > 0 {
            self.note(format!("taken up after {done} of {steps} steps"));
        }
    }

    fn steps(&mut self, done: u64, loss: f64, accuracy: f64) {
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
        self.note(format!(
            "epoch {epoch}/{epochs}: loss {train_loss:.4}, accuracy {train_accuracy:.4}{validation}"
        ));
    }

    fn stop(&mut self) -> bool {
        interrupt::check().is_err()
    }
}

fn summary(card: &Card) -> String {
    let (accuracy, rows) = (card.test_accuracy, card.rows.test);
    let (epoch, speed) = (card.best.epoch, card.steps_per_second);
    format!(
        "test accuracy {accuracy:.4} over {rows} rows with the weights of epoch {epoch}; {speed:.1} steps a second"
    )
}
