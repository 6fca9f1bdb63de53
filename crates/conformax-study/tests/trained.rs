//! The studies of `studies/`: of the classifiers trained here, cut down to what a debug build runs in seconds, and of
//! one whose logits are to be made first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use conformax::Alpha;
use conformax_study::{RunOptions, Study};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn study(file: &str) -> Study {
    Study::read(&root().join("studies").join(file)).unwrap()
}

/// At one level and split; the rows and the accuracy of each benchmark must be those of its card under `cards`.
fn run_and_compare_with_the_cards(mut study: Study, benchmarks: usize, cards: &str) {
    study.levels = vec![Alpha::new(0.1).unwrap()];
    study.splits = 1;
    study.sweep.clear();
    let results = study.run(&RunOptions::default(), &()).unwrap();
    assert_eq!(results.benchmarks.len(), benchmarks);
    for benchmark in &results.benchmarks {
        let card = root().join(cards).join(&benchmark.name).join("card.json");
        let card: serde_json::Value = serde_json::from_slice(&std::fs::read(card).unwrap()).unwrap();
        assert_eq!(Some(benchmark.accuracy), card["test_accuracy"].as_f64(), "{}", benchmark.name);
        assert_eq!(Some(benchmark.rows), card["rows"]["test"].as_u64());
    }
    assert_eq!(results.records.len(), benchmarks * study.procedures.len());
}

#[test]
fn runs_on_the_logits_whose_accuracy_the_cards_state() {
    run_and_compare_with_the_cards(study("trained.toml"), 3, "benchmarks/trained");
}

#[test]
fn compares_losses_on_the_logits_whose_accuracy_the_cards_state() {
    let mut losses = study("losses.toml");
    assert_eq!((losses.splits, losses.procedures.len()), (10, 6));
    // The first one tunes nothing; the rows are what is looked at here.
    losses.procedures.truncate(1);
    run_and_compare_with_the_cards(losses, 12, "benchmarks/trained/losses");
}

#[test]
fn takes_the_logits_of_imagenet_from_beside_its_file() {
    let text = std::fs::read_to_string(root().join("studies/imagenet.toml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let missing = Study::parse(&text, "imagenet.toml", folder.path()).unwrap_err().to_string();
    assert!(missing.contains("there is no") && missing.contains("imagenet.npz"), "{missing}");
    std::fs::write(folder.path().join("imagenet.npz"), "").unwrap();
    let study = Study::parse(&text, "imagenet.toml", folder.path()).unwrap();
    assert_eq!((study.name.as_str(), study.splits, study.procedures.len()), ("imagenet", 5, 6));
    // The header's first command writes the file that the study reads.
    assert!(text.contains("conformax logits ") && text.contains(" -o studies/imagenet.npz "), "{text}");
}
