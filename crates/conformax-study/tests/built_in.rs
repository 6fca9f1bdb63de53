//! The benchmarks that ship, and what a study of them looks like.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use conformax::Alpha;
use conformax_study::{Results, RunOptions, Study, Verdict, compare, comparison_study, results_csv};

/// The paper's study cut down to what a debug build runs in seconds.
fn short() -> Study {
    let mut study = Study::paper();
    study.benchmarks.retain(|benchmark| benchmark.name == "newsgroups");
    study.levels = [0.01, 0.1].map(|alpha| Alpha::new(alpha).unwrap()).to_vec();
    study.sweep.truncate(2);
    (study.splits, study.claim_splits) = (2, 4);
    study
}

fn run(study: &Study) -> Results {
    study.run(&RunOptions::default(), &()).unwrap()
}

#[test]
fn accuracies_are_those_of_the_card() {
    let mut study = short();
    study.benchmarks = Study::paper().benchmarks;
    study.procedures.retain(|procedure| procedure.name == "log-margin");
    (study.splits, study.claim_splits) = (1, 0);
    study.sweep.clear();
    let results = run(&study);
    for benchmark in &results.benchmarks {
        let (accuracy, rows, classes, dtype) = match benchmark.name.as_str() {
            "cifar10" => (0.856, 10_000, 10, "f32"),
            "cifar100" => (0.859, 10_000, 100, "f32"),
            "imagenet5k" => (0.781, 5_000, 1_000, "f16"),
            "newsgroups" => (0.738, 3_769, 20, "f32"),
            other => panic!("{other}"),
        };
        assert!((benchmark.accuracy - accuracy).abs() < 0.0005, "{}: {}", benchmark.name, benchmark.accuracy);
        assert_eq!((benchmark.rows, benchmark.classes), (rows, classes));
        assert_eq!(benchmark.dtype, dtype);
        assert_eq!(benchmark.fingerprint.len(), 16);
    }
    assert_eq!(results.benchmarks.len() + results.absent.len(), 4);
}

#[test]
fn the_same_bytes_come_from_one_and_two_threads() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let results = run(&short());
            assert_eq!(results.provenance.threads, threads as u64);
            let claims = serde_json::to_string(&results.claims).unwrap();
            (results_csv(&results), claims)
        })
    };
    let (one, two) = (with(1), with(2));
    assert!(one == two);
    assert_eq!(one.0.lines().count(), 1 + 6 * 2 * 2);
}

#[test]
fn results_survive_json_and_claims_are_judged() {
    let results = run(&short());
    let json = serde_json::to_string(&results).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    assert_eq!(results.claims.len(), 21);
    let by_id = |id: &str| results.claims.iter().find(|claim| claim.id == id).unwrap();
    assert_eq!(by_id("log-margin-imagenet").verdict, Verdict::Undecided, "ImageNet did not run");
    assert!(by_id("log-margin-imagenet").evidence.is_empty());
    assert_eq!(by_id("coverage-close").evidence.len(), 6 * 2);
    assert!(results.claims.iter().flat_map(|claim| &claim.evidence).all(|e| e.difference.splits <= 4));
}

#[test]
fn compare_marks_the_best_only_where_its_lead_is_clear() {
    let study = comparison_study(Alpha::new(0.1).unwrap(), 5, 0);
    let benchmark = conformax_study::Benchmark::built_in("newsgroups").unwrap();
    let comparison = compare(&study, benchmark, &()).unwrap();
    assert_eq!((comparison.rows, comparison.procedures.len()), (3_769, 6));
    let best: Vec<_> = comparison.procedures.iter().filter(|row| row.best).collect();
    assert!(best.len() <= 1);
    for row in &comparison.procedures {
        if let Some(larger) = row.larger_than_smallest {
            assert!(larger.mean >= 0.0 && larger.splits == 5);
            assert!(best.is_empty() || larger.mean > 3.0 * larger.standard_error);
        }
    }
}
