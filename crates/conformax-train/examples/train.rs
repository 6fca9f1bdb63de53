//! A run without the command:
//! `cargo run --release -p conformax-train --example train -- CONFIG FOLDER [DEVICE] [--parts]`.
//!
//! Beside the loss it tells the speed of an epoch's steps without the first 32, in which a GPU sets itself up. With
//! `--parts` it waits for the device after each part of a step and tells what they took, in milliseconds a step.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use conformax_train::{Config, Device, EpochRecord, Observer, RunFolder, StepPart, train};

/// One line per epoch.
#[derive(Default)]
struct Lines {
    epoch_start: u64,
    /// When the first steps of the epoch were done, and the latest.
    timed: Option<[(u64, Instant); 2]>,
    /// Where parts are wanted: steps begun, and seconds of each part after the first ones.
    parts: Option<(u64, BTreeMap<StepPart, f64>)>,
}

/// Steps of an epoch that are not timed.
const SETTING_UP: u64 = 32;

impl Observer for Lines {
    fn begin(&mut self, done: u64, steps: u64) {
        self.epoch_start = done;
        say(format_args!("{done} of {steps} steps are done"));
    }

    fn wants_parts(&self) -> bool {
        self.parts.is_some()
    }

    fn part(&mut self, part: StepPart, seconds: f64) {
        if let Some((begun, parts)) = &mut self.parts {
            *begun += u64::from(part == StepPart::Waiting);
            if *begun > SETTING_UP {
                *parts.entry(part).or_default() += seconds;
            }
        }
    }

    fn steps(&mut self, done: u64, _loss: f64, _accuracy: f64) {
        let now = (done, Instant::now());
        match &mut self.timed {
            Some([_, latest]) => *latest = now,
            None if done >= self.epoch_start + SETTING_UP => self.timed = Some([now, now]),
            None => {}
        }
    }

    fn epoch(&mut self, record: &EpochRecord) {
        let EpochRecord { epoch, train_loss, train_accuracy, .. } = record;
        let validation = match (record.validation_loss, record.validation_accuracy) {
            (Some(loss), Some(accuracy)) => format!("; validation loss {loss:.4}, accuracy {accuracy:.4}"),
            _ => String::new(),
        };
        let speed = self.timed.take().map_or(String::new(), |[first, latest]| {
            let steps = (latest.0 - first.0) as f64;
            format!("; {:.1} steps a second", steps / (latest.1 - first.1).as_secs_f64())
        });
        self.epoch_start = record.step;
        say(format_args!(
            "epoch {epoch}: loss {train_loss:.4}, accuracy {train_accuracy:.4}{validation}{speed}"
        ));
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // Nobody may be listening, and the run goes on.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let (parts, args): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--parts");
    let [config, folder, device @ ..] = args.as_slice() else {
        return Err("usage: train CONFIG FOLDER [DEVICE] [--parts]".into());
    };
    let device = device.first().map_or(Ok(Device::Cpu), |device| device.parse())?;
    let file = Path::new(config);
    let config = Config::read(file)?;
    let (folder, _) = RunFolder::open(Path::new(folder), &config)?;
    let mut lines = Lines { parts: (!parts.is_empty()).then(Default::default), ..Lines::default() };
    let card = train(&config, file.parent().unwrap_or(Path::new(".")), &folder, device, &mut lines)?.card;
    if let Some((begun, parts)) = lines.parts {
        let steps = begun.saturating_sub(SETTING_UP) as f64;
        let whole: f64 = parts.values().sum();
        for (part, seconds) in parts {
            let (taken, share) = (1000.0 * seconds / steps, 100.0 * seconds / whole);
            say(format_args!("{:24} {taken:8.2} ms {share:5.1} %", part.name()));
        }
    }
    say(format_args!("test accuracy {}, {:.2} steps a second", card.test_accuracy, card.steps_per_second));
    Ok(())
}
