//! `conformax train` as a user meets it: run, killed, taken up, refused, and its logits calibrated.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

#[cfg(all(unix, debug_assertions))]
#[path = "faults/held.rs"]
mod held;

const ROWS: usize = 60;
const SIDE: usize = 16;

/// A folder with images in two classes and a config.
fn folder(training: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let size = |n: usize| (n as u32).to_be_bytes();
    for (name, shift) in [("train", 0), ("t10k", 500)] {
        let mut images = [size(0x803), size(ROWS), size(SIDE), size(SIDE)].concat();
        images.extend((0..ROWS).flat_map(|row| (0..SIDE * SIDE).map(move |at| pixel(row, at, row + shift))));
        let mut labels = [size(0x801), size(ROWS)].concat();
        labels.extend((0..ROWS).map(|row| (row % 2) as u8));
        std::fs::write(folder.path().join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        std::fs::write(folder.path().join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
    let config = format!(
        "seed = 3\ndata = {{ format = \"idx\", path = \".\" }}\nsplit = {{ validation = 0.2 }}\n\
         augment = {{ flip = true, padding = 2 }}\n\
         model = {{ name = \"cnn\", channels = [4, 4], hidden = 8 }}\n[training]\n{training}\n"
    );
    std::fs::write(folder.path().join("small.toml"), config).unwrap();
    folder
}

/// Upright stripes or level ones, under noise.
fn pixel(row: usize, at: usize, noise: usize) -> u8 {
    let along = if row.is_multiple_of(2) { at % SIDE } else { at / SIDE };
    (along / 2 % 2 * 120 + (noise * 7919 + at * 104_729 + noise * at * 31) % 113) as u8
}

fn conformax(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformax"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

fn done(folder: &Path, args: &[&str]) -> Output {
    let output = conformax(folder, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn trains_and_its_logits_calibrate() {
    let folder = folder("epochs = 12\nbatch_size = 16\nlearning_rate = 5e-3\npatience = 12");
    let output = done(folder.path(), &["train", "small.toml", "-o", "run"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "run/test.npz");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("epoch 1/12: loss ") && err.contains("; validation loss "), "{err}");
    assert!(err.contains("test accuracy ") && err.contains(" over 60 rows"), "{err}");
    let card = std::fs::read_to_string(folder.path().join("run/card.md")).unwrap();
    assert!(card.contains("48 training, 12 validation, 60 test"), "{card}");
    done(folder.path(), &["split", "run/test.npz", "--fractions", "0.5,0.5", "-o", "cal.npz", "rest.npz"]);
    done(folder.path(), &["calibrate", "cal.npz", "--alpha", "0.2", "-o", "model.json"]);
    let sets = done(folder.path(), &["evaluate", "model.json", "rest.npz"]);
    assert!(String::from_utf8_lossy(&sets.stdout).contains("coverage"));
}

/// Ten steps make an epoch here, so that the first checkpoint is in the middle of one.
#[cfg(all(unix, debug_assertions))]
#[test]
fn killed_in_mid_epoch_and_taken_up_it_ends_with_the_same_weights() {
    let folder = folder("epochs = 3\nbatch_size = 5\nlearning_rate = 5e-3\ncheckpoint_every = 7");
    done(folder.path(), &["train", "small.toml", "-o", "whole"]);
    let parts = ["train", "small.toml", "-o", "parts", "--quiet"];
    for (moment, steps) in [("synced", 0), ("named", 7), ("synced", 7), ("named", 10)] {
        held::kill_at(moment, "progress.json", &mut conformax(folder.path(), &parts));
        assert_eq!(progress(folder.path()), steps, "killed when its progress was {moment}");
    }
    done(folder.path(), &parts);
    for file in ["model.safetensors", "test.npz", "curve.csv"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(file)).unwrap();
        assert!(read("whole") == read("parts"), "{file} differs");
    }
}

/// Steps that the checkpoint on disk has.
#[cfg(all(unix, debug_assertions))]
fn progress(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("parts/progress.json")).unwrap_or_default();
    let step = text.split("\"step\": ").nth(1).and_then(|rest| rest.split(',').next());
    step.map_or(0, |step| step.parse().unwrap())
}

#[test]
fn says_what_is_wrong_before_any_work() {
    let folder = folder("epochs = 1\nbatch_size = 16\nlearning_rate = 5e-3");
    let text = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
    let cases = [
        ("epochs = 1", "epochs = 0", "training.epochs must be at least 1, got 0"),
        ("epochs = 1", "epoch = 1", "bad.toml:7: unknown field `epoch`"),
        ("epochs = 1", "patience = 1\nepochs = 1\nwarmup = 1.5", "training.warmup must be a share"),
        ("name = \"cnn\"", "name = \"rnn\"", "unknown variant `rnn`"),
        ("[4, 4]", "[4, 4, 4, 4, 4]", "need images of 32×32 or more, got 16×16"),
        ("path = \".\"", "path = \"nowhere\"", "nowhere"),
        ("validation = 0.2", "validation = 0.0", "must lie strictly between 0 and 1, got 0"),
    ];
    for (from, to, wanted) in cases {
        assert!(text.contains(from), "{from}");
        std::fs::write(folder.path().join("bad.toml"), text.replace(from, to)).unwrap();
        let output = conformax(folder.path(), &["train", "bad.toml", "-o", to]).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {err}");
        assert!(err.contains(wanted), "{to}: {err}");
    }
}

#[test]
fn another_config_does_not_touch_the_run() {
    let folder = folder("epochs = 1\nbatch_size = 16\nlearning_rate = 5e-3");
    done(folder.path(), &["train", "small.toml", "-o", "run"]);
    let before = std::fs::read(folder.path().join("run/model.safetensors")).unwrap();
    let text = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
    std::fs::write(folder.path().join("other.toml"), text.replace("seed = 3", "seed = 4")).unwrap();
    let output = conformax(folder.path(), &["train", "other.toml", "-o", "run"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains("seed is 3 there and 4 here"), "{err}");
    assert!(before == std::fs::read(folder.path().join("run/model.safetensors")).unwrap());
}

/// Of so many epochs that no machine is fast enough.
#[cfg(unix)]
#[test]
fn warns_of_hours_on_the_cpu_and_keeps_what_was_done_when_it_is_ended() {
    use std::io::{BufRead, BufReader};
    let folder = folder("epochs = 1_000_000_000_000\nbatch_size = 16\nlearning_rate = 5e-3");
    let mut command = conformax(folder.path(), &["train", "small.toml", "-o", "run"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // After the second step of three, and so before the first epoch's line.
    let first = told.find(|line| line.contains("this takes about") || line.contains("epoch 1/"));
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    let rest: Vec<String> = told.collect();
    assert!(sent.success() && child.wait().unwrap().code() == Some(2), "{rest:?}");
    let first = first.unwrap();
    let wanted = [" d ", " on the CPU", "--device cuda", "configs/cifar10-small.toml", "Ctrl-C"];
    assert!(wanted.iter().all(|wanted| first.contains(wanted)), "{first}");
    assert!(rest.last().unwrap().contains("the same command goes on from there"), "{rest:?}");
    let kept = std::fs::read_to_string(folder.path().join("run/progress.json")).unwrap();
    assert!(kept.contains("\"step\": "), "{kept}");
}

#[test]
fn names_the_build_that_has_gpus() {
    let folder = folder("epochs = 1\nbatch_size = 16\nlearning_rate = 5e-3");
    let output =
        conformax(folder.path(), &["train", "small.toml", "-o", "run", "--device", "gpu"]).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("a device is cpu, cuda or cuda:N, got \"gpu\""), "{err}");
}

#[test]
fn a_checkpoints_own_head_scores_texts() {
    let checkpoint = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/checkpoints/bert");
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..12).map(|row| format!("{},the cat sat\n", row % 3)).collect();
    std::fs::write(folder.path().join("moods.csv"), format!("mood,review\n{rows}")).unwrap();
    let checkpoint = checkpoint.display().to_string();
    let max = ["--max-length", "16"];
    let args = [
        "logits",
        &checkpoint,
        "moods.csv",
        "-o",
        "test.npz",
        "--text",
        "review",
        "--label",
        "mood",
        max[0],
        max[1],
    ];
    let err = String::from_utf8(done(folder.path(), &args).stderr).unwrap();
    assert!(err.contains("over 12 rows; classes were matched to labels by number"), "{err}");
    done(folder.path(), &["calibrate", "test.npz", "--alpha", "0.2", "-o", "model.json"]);
    let twice = conformax(folder.path(), &args).output().unwrap();
    assert_eq!(twice.status.code(), Some(2), "{}", String::from_utf8_lossy(&twice.stderr));
    let other = ["logits", &checkpoint, "moods.csv", "-o", "other.npz", "--text", "words"];
    let err = String::from_utf8(conformax(folder.path(), &other).output().unwrap().stderr).unwrap();
    assert!(err.contains("no column `words`; there are `mood`, `review`"), "{err}");
}
