//! A run without the command: `cargo run --release -p conformax-train --example train -- CONFIG FOLDER [DEVICE]`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use conformax_train::{Config, Device, EpochRecord, Observer, RunFolder, train};

/// One line per epoch.
struct Lines;

impl Observer for Lines {
    fn begin(&mut self, done: u64, steps: u64) {
        say(format_args!("{done} of {steps} steps are done"));
    }

    fn epoch(&mut self, record: &EpochRecord) {
        let EpochRecord { epoch, train_loss, train_accuracy, .. } = record;
        let validation = match (record.validation_loss, record.validation_accuracy) {
            (Some(loss), Some(accuracy)) => format!("; validation loss {loss:.4}, accuracy {accuracy:.4}"),
            _ => String::new(),
        };
        say(format_args!("epoch {epoch}: loss {train_loss:.4}, accuracy {train_accuracy:.4}{validation}"));
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // Nobody may be listening, and the run goes on.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [config, folder, device @ ..] = args.as_slice() else {
        return Err("usage: train CONFIG FOLDER [DEVICE]".into());
    };
    let device = device.first().map_or(Ok(Device::Cpu), |device| device.parse())?;
    let file = Path::new(config);
    let config = Config::read(file)?;
    let (folder, _) = RunFolder::open(Path::new(folder), &config)?;
    let card = train(&config, file.parent().unwrap_or(Path::new(".")), &folder, device, &mut Lines)?.card;
    say(format_args!("test accuracy {}, {:.2} steps a second", card.test_accuracy, card.steps_per_second));
    Ok(())
}
