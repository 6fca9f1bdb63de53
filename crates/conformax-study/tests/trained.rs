//! The studies of `studies/`: of the classifiers trained here, one of them cut down to what a debug build runs in
//! seconds, and of one whose logits are to be made first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use conformax::Alpha;
use conformax_study::{Results, RunOptions, Study};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn study(file: &str) -> Study {
    Study::read(&root().join("studies").join(file)).unwrap()
}

/// The rows and the accuracy of each benchmark must be those of its card under `cards`.
fn compare_with_the_cards(results: &Results, benchmarks: usize, cards: &str) {
    assert_eq!(results.benchmarks.len(), benchmarks);
    for benchmark in &results.benchmarks {
        let card = root().join(cards).join(&benchmark.name).join("card.json");
        let card: serde_json::Value = serde_json::from_slice(&std::fs::read(card).unwrap()).unwrap();
        assert_eq!(Some(benchmark.accuracy), card["test_accuracy"].as_f64(), "{}", benchmark.name);
        assert_eq!(Some(benchmark.rows), card["rows"]["test"].as_u64());
    }
}

#[test]
fn runs_on_the_logits_whose_accuracy_the_cards_state() {
    let mut trained = study("trained.toml");
    trained.levels = vec![Alpha::new(0.1).unwrap()];
    trained.splits = 1;
    trained.sweep.clear();
    let results = trained.run(&RunOptions::default(), &()).unwrap();
    compare_with_the_cards(&results, 3, "benchmarks/trained");
    assert_eq!(results.records.len(), 3 * trained.procedures.len());
}

#[test]
fn compares_losses_on_the_logits_whose_accuracy_the_cards_state_with_the_sizes_of_the_document() {
    let mut losses = study("losses.toml");
    losses.sweep.clear();
    let results = losses.run(&RunOptions::default(), &()).unwrap();
    compare_with_the_cards(&results, 12, "benchmarks/trained/losses");
    let document = std::fs::read_to_string(root().join("docs/training.md")).unwrap();
    let tuned: Vec<&str> = results.tuned.iter().map(|record| record.procedure.as_str()).collect();
    let mut procedures: Vec<&str> = results.procedures.iter().map(String::as_str).collect();
    for name in tuned {
        if !procedures.contains(&name) {
            procedures.push(name);
        }
    }
    assert_eq!(procedures.len(), 10, "{procedures:?}");
    for seeds in [&["-1", "-2", "-3"][..], &[""]] {
        let task = if seeds.len() > 1 { "newsgroups" } else { "cifar10" };
        for procedure in &procedures {
            let cells = [0.1, 0.05, 0.01].into_iter().flat_map(|alpha| {
                let of_loss = |loss| {
                    let of_seed = |seed| format!("{task}-{loss}{seed}");
                    let sizes =
                        seeds.iter().map(|seed| mean_size(&results, &of_seed(seed), procedure, alpha));
                    shown(&sizes.collect::<Vec<_>>())
                };
                ["cross-entropy", "entmax15", "sparsemax"].map(of_loss)
            });
            let row = format!("| {procedure} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
            assert!(document.contains(&row), "docs/training.md has no {row}");
        }
    }
}

/// Over the splits.
fn mean_size(results: &Results, benchmark: &str, procedure: &str, alpha: f64) -> f64 {
    let all = results.records.iter().chain(&results.tuned);
    let its = all.filter(|it| {
        (it.benchmark.as_str(), it.procedure.as_str(), it.alpha) == (benchmark, procedure, alpha)
    });
    mean(&its.map(|record| record.average_size).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty());
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean, and the standard deviation where there are several.
fn shown(values: &[f64]) -> String {
    let middle = mean(values);
    let spread = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    if values.len() > 1 { format!("{middle:.2} ± {:.2}", spread.sqrt()) } else { format!("{middle:.2}") }
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
