//! A small data set of images in four classes, and runs on it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use conformax_train::{Config, Device, Observer, Outcome, Result, Resumed, RunFolder, train};
use tempfile::TempDir;

pub const CLASSES: usize = 4;
pub const TRAIN: usize = 48;
pub const TEST: usize = 24;
const SIDE: usize = 16;

/// The backend's generator belongs to the process, so runs that compare bits take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Small {
    folder: std::sync::Arc<TempDir>,
    text: String,
}

impl Small {
    /// Writes the images; `training` and `split` are lines of the config.
    pub fn new(training: &str, split: &str) -> Self {
        let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
        write_images(&folder.path().join("data"));
        let text = format!(
            "seed = 5\n[data]\nformat = \"idx\"\npath = \"data\"\n[split]\n{split}\n[augment]\nflip = true\npadding = 1\n\
             [model]\nname = \"cnn\"\nchannels = [4, 8]\nhidden = 16\n[training]\n{training}\n"
        );
        Self { folder, text }
    }

    /// The same with something else in the config.
    pub fn with(&self, from: &str, to: &str) -> Self {
        Self { folder: self.folder.clone(), text: self.text.replace(from, to) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn bytes(&self, run: &str, file: &str) -> Vec<u8> {
        std::fs::read(self.path(run).join(file)).unwrap()
    }

    pub fn config(&self) -> Config {
        Config::parse(&self.text, "small.toml").unwrap()
    }

    pub fn open(&self, run: &str) -> Result<(RunFolder, Resumed)> {
        RunFolder::open(&self.path(run), &self.config())
    }

    pub fn train(&self, run: &str, observer: &mut dyn Observer) -> Result<Outcome> {
        let (folder, _) = self.open(run)?;
        train(&self.config(), self.folder.path(), &folder, Device::Cpu, observer)
    }
}

/// The label of row `i` is `i` modulo the classes.
pub fn labels(rows: usize) -> Vec<u32> {
    (0..rows).map(|row| (row % CLASSES) as u32).collect()
}

fn write_images(folder: &std::path::Path) {
    std::fs::create_dir(folder).unwrap();
    for (name, rows, shift) in [("train", TRAIN, 0), ("t10k", TEST, 1000)] {
        let size = |n: usize| (n as u32).to_be_bytes();
        let mut images = [size(0x803), size(rows), size(SIDE), size(SIDE)].concat();
        images.extend((0..rows).flat_map(|row| image(row, row + shift)));
        let mut bytes = [size(0x801), size(rows)].concat();
        bytes.extend(labels(rows).iter().map(|label| *label as u8));
        std::fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        std::fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), bytes).unwrap();
    }
}

/// Stripes whose direction and width are the class, which a flip does not change, under noise of the row's own.
fn image(row: usize, noise: usize) -> Vec<u8> {
    let pixel = |at: usize| {
        let (x, y) = (at % SIDE, at / SIDE);
        let stripe = match row % CLASSES {
            0 => x / 2,
            1 => y / 2,
            2 => x / 4,
            _ => y / 4,
        };
        let scatter = (noise * 7919 + at * 104_729 + noise * at * 31) % 97;
        (stripe % 2 * 128 + scatter) as u8
    };
    (0..SIDE * SIDE).map(pixel).collect()
}
