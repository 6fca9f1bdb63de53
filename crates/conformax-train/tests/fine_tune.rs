//! Whole runs from checkpoints: a tiny BERT on texts and a tiny ViT on images, stopped and taken up, whole and frozen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use conformax_train::{Config, Device, Error, Observer, Outcome, RunFolder, Unobserved, train};
use safetensors::SafeTensors;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The backend's generator belongs to the process, so runs that compare bits take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops after so many steps.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn stop(&mut self) -> bool {
        self.0 -= 1;
        self.0 == 0
    }
}

struct Task {
    folder: TempDir,
    config: String,
}

impl Task {
    fn train(&self, run: &str, backbone: &str, observer: &mut dyn Observer) -> Result<Outcome, Error> {
        let config = self.config.replace("BACKBONE", backbone);
        let config = Config::parse(&config, "task.toml").unwrap();
        let (folder, _) = RunFolder::open(&self.folder.path().join(run), &config)?;
        train(&config, self.folder.path(), &folder, Device::Cpu, observer)
    }

    fn bytes(&self, run: &str, file: &str) -> Vec<u8> {
        std::fs::read(self.folder.path().join(run).join(file)).unwrap()
    }
}

fn checkpoint(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints").join(name)
}

const TRAINING: &str =
    "epochs = 3\nbatch_size = 5\nlearning_rate = 1e-2\nclip_norm = 1.0\nloss = { name = 'entmax15' }";

/// Texts whose class is one word among others.
fn texts() -> Task {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..24)
        .map(|row| {
            let (word, class) = [("cat", "animal"), ("game", "sport"), ("mat", "thing")][row % 3];
            format!("the {word} sat on a {}{word},{class}\n", "play again ".repeat(row % 4))
        })
        .collect();
    for name in ["train.csv", "test.csv"] {
        std::fs::write(folder.path().join(name), format!("text,label\n{rows}")).unwrap();
    }
    let config = format!(
        "seed = 3\ndata = {{ format = 'csv', train = 'train.csv', test = 'test.csv' }}\ntokens = {{ max_length = 16 }}\n\
         model = {{ name = 'bert', checkpoint = '{}', backbone = 'BACKBONE' }}\n[training]\n{TRAINING}\n",
        checkpoint("bert").display()
    );
    Task { folder, config }
}

/// Images whose class is their colour, of another size than the model's.
fn images() -> Task {
    let folder = tempfile::tempdir().unwrap();
    for (part, rows) in [("train", 8), ("test", 2)] {
        for (class, colour) in [("blue", [20, 40, 200]), ("red", [210, 30, 50]), ("grey", [120, 120, 120])] {
            let classes = folder.path().join("images").join(part).join(class);
            std::fs::create_dir_all(&classes).unwrap();
            for row in 0..rows {
                let shade = |x: u32, y: u32| colour.map(|value: u32| (value + (x * 3 + y * row) % 17) as u8);
                let image = image::RgbImage::from_fn(12, 12, |x, y| image::Rgb(shade(x, y)));
                image.save(classes.join(format!("{row}.png"))).unwrap();
            }
        }
    }
    let config = format!(
        "seed = 3\ndata = {{ format = 'image-folder', path = 'images' }}\naugment = {{ flip = true, padding = 1 }}\n\
         model = {{ name = 'vit', checkpoint = '{}', backbone = 'BACKBONE' }}\n\
         [images]\nresize = {{ to = {{ height = 8, width = 8 }} }}\n[training]\n{TRAINING}\n",
        checkpoint("vit").display()
    );
    Task { folder, config }
}

/// Trains three times: at once, stopped twice in mid-epoch, and with a frozen backbone stopped once.
/// `parameter` is one of the backbone's, in our words and in the checkpoint's.
fn assert_resumes_and_freezes(task: &Task, checkpoint: &Path, parameter: (&str, &str)) {
    task.train("whole", "trained", &mut Unobserved).unwrap();
    for (steps, at) in [(7, 7), (6, 13)] {
        let error = task.train("parts", "trained", &mut StopAfter(steps)).unwrap_err();
        assert!(matches!(error, Error::Stopped { step } if step == at), "{error}");
    }
    task.train("parts", "trained", &mut Unobserved).unwrap();
    for file in ["model.safetensors", "test.npz"] {
        assert!(task.bytes("whole", file) == task.bytes("parts", file), "{file} differs");
    }
    task.train("frozen", "frozen", &mut StopAfter(7)).unwrap_err();
    task.train("frozen", "frozen", &mut Unobserved).unwrap();
    let loaded = floats(&std::fs::read(checkpoint.join("model.safetensors")).unwrap(), parameter.1);
    assert_ne!(floats(&task.bytes("whole", "model.safetensors"), parameter.0), loaded);
    assert_eq!(floats(&task.bytes("frozen", "model.safetensors"), parameter.0), loaded);
    assert!(floats(&task.bytes("frozen", "model.safetensors"), "head.bias").iter().all(|bias| *bias != 0.0));
}

/// A tensor of f32, or of bf16, which is the upper half of it.
fn floats(file: &[u8], tensor: &str) -> Vec<f32> {
    let file = SafeTensors::deserialize(file).unwrap();
    let tensor = file.tensor(tensor).unwrap();
    let width = tensor.data().len() / tensor.shape().iter().product::<usize>();
    let widened = |chunk: &[u8]| {
        let mut bytes = [0; 4];
        bytes[4 - width..].copy_from_slice(chunk);
        f32::from_le_bytes(bytes)
    };
    tensor.data().chunks(width).map(widened).collect()
}

#[test]
fn bert_resumes_to_the_same_bits_and_freezes() {
    let _alone = alone();
    let parameter = ("layers.1.inner.weight", "bert.encoder.layer.1.intermediate.dense.weight");
    assert_resumes_and_freezes(&texts(), &checkpoint("bert"), parameter);
}

#[test]
fn vit_resumes_to_the_same_bits_and_freezes() {
    let _alone = alone();
    let parameter = ("layers.0.attention.key.weight", "vit.encoder.layer.0.attention.attention.key.weight");
    assert_resumes_and_freezes(&images(), &checkpoint("vit"), parameter);
}

#[test]
fn the_card_says_which_weights_it_started_from_and_what_made_it() {
    let _alone = alone();
    let task = images();
    let card = task.train("run", "frozen", &mut Unobserved).unwrap().card;
    let weights = std::fs::read(checkpoint("vit").join("model.safetensors")).unwrap();
    let sum: String = Sha256::digest(weights).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(card.hashes.checkpoint.as_deref(), Some(sum.as_str()));
    let text = String::from_utf8(task.bytes("run", "card.md")).unwrap();
    for line in [
        format!("| checkpoint | {sum} |\n"),
        format!("| made by | conformax {}, commit ", env!("CARGO_PKG_VERSION")),
        format!("| data | {} |\n", card.hashes.data),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    let json: serde_json::Value = serde_json::from_slice(&task.bytes("run", "card.json")).unwrap();
    assert_eq!(json["hashes"]["checkpoint"], sum.as_str());
}
