//! Whole runs of a small network on small images, on the CPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod small;

use conformax_io::{Block, Data, Source, SourceOptions, Values};
use conformax_train::{EpochRecord, Error, Observer, Resumed, RunFolder, StepPart, Unobserved};
use small::{Small, alone};

/// Stops after so many more steps.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn stop(&mut self) -> bool {
        self.0 -= 1;
        self.0 == 0
    }
}

/// Remembers the epochs.
#[derive(Default)]
struct Epochs(Vec<EpochRecord>);

impl Observer for Epochs {
    fn epoch(&mut self, record: &EpochRecord) {
        self.0.push(*record);
    }
}

/// Remembers what it is told of the speed, and stops after so many steps.
struct Paces {
    told: Vec<(f64, u64)>,
    stop: StopAfter,
}

impl Observer for Paces {
    fn pace(&mut self, seconds: f64, left: u64) {
        self.told.push((seconds, left));
    }

    fn stop(&mut self) -> bool {
        self.stop.stop()
    }
}

#[test]
fn the_speed_is_told_once_after_two_steps_with_the_steps_that_are_left() {
    let _alone = alone();
    // Three steps an epoch, nine in all.
    let small = Small::new("epochs = 3\nbatch_size = 16\nlearning_rate = 1e-3", "");
    for (stop, left) in [(5, 7), (1, 0), (9, 1)] {
        let mut paces = Paces { told: Vec::new(), stop: StopAfter(stop) };
        let _ = small.train("run", &mut paces);
        // A command that does one step has no speed to tell.
        let told: Vec<u64> = paces.told.iter().map(|(_, left)| *left).collect();
        assert_eq!(told, if stop > 1 { vec![left] } else { vec![] });
        assert!(paces.told.iter().all(|(seconds, _)| seconds.is_finite() && *seconds >= 0.0));
    }
}

/// Remembers the parts of steps.
#[derive(Default)]
struct Parts(Vec<StepPart>);

impl Observer for Parts {
    fn wants_parts(&self) -> bool {
        true
    }

    fn part(&mut self, part: StepPart, seconds: f64) {
        assert!(seconds.is_finite() && seconds >= 0.0);
        self.0.push(part);
    }
}

#[test]
fn every_step_tells_its_parts_in_order_and_the_weights_are_the_same() {
    let _alone = alone();
    // Three steps an epoch, six in all.
    let small = Small::new("epochs = 2\nbatch_size = 16\nlearning_rate = 1e-3", "");
    let mut parts = Parts::default();
    small.train("watched", &mut parts).unwrap();
    small.train("unwatched", &mut Unobserved).unwrap();
    use StepPart::{Backward, Forward, Input, Optimiser, Waiting};
    assert_eq!(parts.0, [Waiting, Input, Forward, Backward, Optimiser].repeat(6));
    let weights = |run| small.bytes(run, "model.safetensors");
    assert!(weights("watched") == weights("unwatched"));
}

#[test]
fn the_cnn_learns_a_small_set_by_heart() {
    let _alone = alone();
    let small = Small::new("epochs = 30\nbatch_size = 16\nlearning_rate = 5e-3", "");
    let mut epochs = Epochs::default();
    small.train("run", &mut epochs).unwrap();
    let (first, last) = (epochs.0[0], epochs.0[epochs.0.len() - 1]);
    assert!(first.train_accuracy < 0.9, "{first:?}");
    assert!(last.train_accuracy > 0.98 && last.train_loss < 0.2, "{last:?}");
}

#[test]
fn stopped_in_mid_epoch_and_taken_up_it_ends_with_the_same_weights() {
    let _alone = alone();
    // 48 rows in batches of 10: five steps an epoch, the last one of 8 rows.
    let small =
        Small::new("epochs = 3\nbatch_size = 10\nlearning_rate = 1e-2\nclip_norm = 1.0\nwarmup = 0.2", "");
    small.train("whole", &mut Unobserved).unwrap();
    // Twice inside an epoch, once at the end of one.
    for (stop, at) in [(3, 3), (4, 7), (3, 10)] {
        let error = small.train("parts", &mut StopAfter(stop)).unwrap_err();
        assert!(matches!(error, Error::Stopped { step } if step == at), "{error}");
    }
    small.train("parts", &mut Unobserved).unwrap();
    for file in ["model.safetensors", "test.npz", "curve.csv", "curve.svg", "config.toml"] {
        assert!(small.bytes("whole", file) == small.bytes("parts", file), "{file} differs");
    }
    // Not even a run with other dropout would have passed: a different seed gives different weights.
    let other = small.with("seed = 5", "seed = 6");
    other.train("other", &mut Unobserved).unwrap();
    assert!(small.bytes("whole", "model.safetensors") != other.bytes("other", "model.safetensors"));
}

#[test]
fn mixed_images_and_smoothed_labels_are_taken_up_to_the_same_bits() {
    let _alone = alone();
    let training =
        "epochs = 2\nbatch_size = 10\nlearning_rate = 1e-2\nlabel_smoothing = 0.1\ndecayed = 'all'";
    let small = Small::new(training, "").with("padding = 1", "padding = 1\nmixup = 0.4");
    small.train("whole", &mut Unobserved).unwrap();
    small.train("parts", &mut StopAfter(7)).unwrap_err();
    small.train("parts", &mut Unobserved).unwrap();
    assert!(small.bytes("whole", "model.safetensors") == small.bytes("parts", "model.safetensors"));
    small.with("epochs = 2", "epochs = 1").train("one", &mut Unobserved).unwrap();
    // Each of the three reaches the weights.
    for (from, to) in
        [("mixup = 0.4", "mixup = 0.0"), ("smoothing = 0.1", "smoothing = 0.0"), ("'all'", "'weights'")]
    {
        let other = small.with(from, to).with("epochs = 2", "epochs = 1");
        other.train(to, &mut Unobserved).unwrap();
        assert!(small.bytes("one", "model.safetensors") != other.bytes(to, "model.safetensors"), "{to}");
    }
}

#[test]
fn the_card_says_what_it_was_made_from() {
    let _alone = alone();
    let small = Small::new("epochs = 1\nbatch_size = 16\nlearning_rate = 1e-3", "");
    let card = small.train("run", &mut Unobserved).unwrap().card;
    assert_eq!((card.hashes.data.len(), card.hashes.checkpoint), (64, None));
    let text = String::from_utf8(small.bytes("run", "card.md")).unwrap();
    assert!(text.contains(&format!("| data | {} |", card.hashes.data)), "{text}");
}

#[test]
fn a_finished_run_is_only_exported_again() {
    let _alone = alone();
    let small = Small::new("epochs = 1\nbatch_size = 16\nlearning_rate = 1e-3", "");
    small.train("run", &mut Unobserved).unwrap();
    std::fs::remove_file(small.path("run/test.npz")).unwrap();
    let mut epochs = Epochs::default();
    let card = small.train("run", &mut epochs).unwrap().card;
    assert_eq!((epochs.0.len(), card.steps), (0, 3));
    assert!(small.path("run/test.npz").exists());
}

#[test]
fn patience_ends_a_run_and_the_best_weights_stay() {
    let _alone = alone();
    // A step size that makes the validation loss worse soon.
    let small =
        Small::new("epochs = 40\nbatch_size = 8\nlearning_rate = 0.05\npatience = 2", "validation = 0.25");
    let mut epochs = Epochs::default();
    let card = small.train("run", &mut epochs).unwrap().card;
    let losses: Vec<f64> = epochs.0.iter().map(|record| record.validation_loss.unwrap()).collect();
    let best = losses.iter().copied().fold(f64::MAX, f64::min);
    assert!(losses.len() < 40, "{losses:?}");
    assert_eq!(card.best.validation_loss, Some(best));
    assert_eq!(card.best.epoch as usize + 2, losses.len());
}

#[test]
fn the_logits_are_what_other_commands_read() {
    let _alone = alone();
    let small = Small::new("epochs = 15\nbatch_size = 16\nlearning_rate = 5e-3", "");
    let card = small.train("run", &mut Unobserved).unwrap().card;
    let data = Data::Files(vec![small.path("run/test.npz")]);
    let mut source = Source::open(&data, &SourceOptions::default()).unwrap();
    let mut block = Block::default();
    assert!(source.read(&mut block).unwrap());
    let Values::F32(logits) = &block.logits else { panic!("logits are f32") };
    let labels = block.labels.as_ref().unwrap();
    assert_eq!(
        (logits.len(), labels.len(), block.classes),
        (small::TEST * small::CLASSES, small::TEST, small::CLASSES)
    );
    assert_eq!(*labels, small::labels(small::TEST));
    let right = logits
        .chunks(small::CLASSES)
        .zip(labels)
        .filter(|(row, label)| row.iter().all(|logit| *logit <= row[**label as usize]));
    assert_eq!(right.count() as f64 / small::TEST as f64, card.test_accuracy);
    assert!(card.test_accuracy > 0.8, "the classes are easy to tell apart: {:?}", card.test_accuracy);
}

#[test]
fn another_config_is_refused_with_the_difference() {
    let _alone = alone();
    let small = Small::new("epochs = 1\nbatch_size = 16\nlearning_rate = 1e-3", "");
    drop(small.open("run").unwrap());
    let error = small.with("epochs = 1", "epochs = 2").open("run").unwrap_err().to_string();
    assert!(error.contains("training.epochs is 1 there and 2 here"), "{error}");
    assert_eq!(small.open("run").unwrap().1, Resumed::Yes);
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let small = Small::new("epochs = 1\nbatch_size = 16\nlearning_rate = 1e-3", "");
    let held: (RunFolder, Resumed) = small.open("run").unwrap();
    assert!(matches!(small.open("run").unwrap_err(), Error::Busy { .. }));
    drop(held);
    small.open("run").unwrap();
}

#[test]
fn says_which_file_of_a_run_is_damaged() {
    let _alone = alone();
    let small = Small::new("epochs = 2\nbatch_size = 16\nlearning_rate = 1e-3", "");
    small.train("run", &mut StopAfter(2)).unwrap_err();
    let checkpoint = small.path("run/checkpoint-2.mpk");
    let bytes = std::fs::read(&checkpoint).unwrap();
    std::fs::write(&checkpoint, &bytes[..bytes.len() / 2]).unwrap();
    let error = small.train("run", &mut Unobserved).unwrap_err().to_string();
    assert!(error.contains("checkpoint-2.mpk"), "{error}");
    std::fs::remove_file(&checkpoint).unwrap();
    let error = small.train("run", &mut Unobserved).unwrap_err().to_string();
    assert!(error.contains("checkpoint-2.mpk: is missing"), "{error}");
    std::fs::write(small.path("run/progress.json"), "{").unwrap();
    let error = small.train("run", &mut Unobserved).unwrap_err().to_string();
    assert!(error.contains("progress.json"), "{error}");
}

#[test]
fn a_loss_that_is_no_number_stops_the_run() {
    let _alone = alone();
    let small = Small::new("epochs = 20\nbatch_size = 16\nlearning_rate = 1e30", "");
    let error = small.train("run", &mut Unobserved).unwrap_err();
    assert!(matches!(error, Error::Diverged { .. } | Error::Logit { .. }), "{error}");
}
