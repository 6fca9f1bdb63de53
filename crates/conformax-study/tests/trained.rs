//! The study of the classifiers trained here, cut down to what a debug build runs in seconds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use conformax::Alpha;
use conformax_study::{RunOptions, Study};

#[test]
fn runs_on_the_logits_whose_accuracy_the_cards_state() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut study = Study::read(&root.join("studies/trained.toml")).unwrap();
    study.levels = vec![Alpha::new(0.1).unwrap()];
    study.splits = 1;
    study.sweep.clear();
    let results = study.run(&RunOptions::default(), &()).unwrap();
    assert_eq!(results.benchmarks.len(), 3);
    for benchmark in &results.benchmarks {
        let card = root.join("benchmarks/trained").join(&benchmark.name).join("card.json");
        let card: serde_json::Value = serde_json::from_slice(&std::fs::read(card).unwrap()).unwrap();
        assert_eq!(Some(benchmark.accuracy), card["test_accuracy"].as_f64(), "{}", benchmark.name);
        assert_eq!(Some(benchmark.rows), card["rows"]["test"].as_u64());
    }
    assert_eq!(results.records.len(), 3 * study.procedures.len());
}
