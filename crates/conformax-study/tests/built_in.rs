//! The benchmarks that ship, and what a study of them looks like.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};

use conformax::Alpha;
use conformax_study::paper::{INV_PROB, SPARSEMAX};
use conformax_study::{
    Benchmark, Comparison, Error, Progress, Results, RunOptions, Study, Verdict, compare, comparison_study,
    results_csv,
};

/// The paper's study cut down to what a debug build runs in seconds.
fn short() -> Study {
    let mut study = Study::paper();
    study.benchmarks.retain(|benchmark| benchmark.name == "newsgroups");
    study.levels = [0.01, 0.1].map(|alpha| Alpha::new(alpha).unwrap()).to_vec();
    study.sweep.truncate(2);
    (study.splits, study.claim_splits) = (2, 5);
    study
}

/// Wants a run to end once it has been asked so many times.
struct Until(AtomicUsize, usize);

impl Progress for Until {
    fn stop(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= self.1
    }
}

#[test]
fn ends_within_a_row_of_being_told_to_stop() {
    let threads = rayon::current_num_threads();
    for rows in [0, 1_000] {
        let until = Until(AtomicUsize::new(0), rows);
        let error = short().run(&RunOptions::default(), &until).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
        let asked = until.0.into_inner();
        assert!(asked > rows && asked <= rows + threads, "asked {asked} times");
    }
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
        assert!(benchmark.ships, "{}: {}", benchmark.name, benchmark.fingerprint);
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
    // Six procedures, and two of them tuned by two other ways.
    assert_eq!(one.0.lines().count(), 1 + (6 + 2 * 2) * 2 * 2);
    for name in ["RAPS (all rows)", "opt-entmax (all rows)", "RAPS (paper’s tuning)"] {
        assert_eq!(
            one.0.lines().filter(|line| line.split(',').nth(1) == Some(name)).count(),
            2 * 2,
            "{name}"
        );
    }
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
    assert!(results.claims.iter().flat_map(|claim| &claim.evidence).all(|e| e.difference.splits <= 5));
}

fn newsgroups() -> Benchmark {
    Benchmark::built_in("newsgroups").unwrap()
}

/// Two procedures whose sets differ in size at α = 0.01, over so many splits.
fn two(splits: usize) -> Comparison {
    let mut study = comparison_study(Alpha::new(0.01).unwrap(), splits, 0);
    study.procedures.retain(|procedure| [INV_PROB, SPARSEMAX].contains(&procedure.name.as_str()));
    compare(&study, newsgroups(), &()).unwrap()
}

#[test]
fn compare_marks_the_best_where_its_lead_is_clear() {
    let clear = two(20);
    let [inv_prob, sparsemax] = &clear.procedures[..] else { panic!("{clear:?}") };
    assert!(inv_prob.best && !sparsemax.best);
    assert_eq!(inv_prob.larger_than_smallest, None);
    let larger = sparsemax.larger_than_smallest.unwrap();
    assert!(larger.splits == 20 && larger.mean > 3.0 * larger.standard_error, "{larger:?}");
    assert!(two(4).procedures.iter().all(|row| !row.best), "four splits decide nothing");
}

#[test]
fn compare_marks_none_where_two_are_close() {
    let study = comparison_study(Alpha::new(0.1).unwrap(), 5, 0);
    let close = compare(&study, newsgroups(), &()).unwrap();
    assert_eq!((close.rows, close.procedures.len()), (3_769, 6));
    assert!(close.procedures.iter().all(|row| !row.best), "{close:?}");
    let smallest = close.procedures.iter().filter(|row| row.larger_than_smallest.is_none());
    assert_eq!(smallest.count(), 1);
    let larger = || close.procedures.iter().filter_map(|row| row.larger_than_smallest);
    assert!(larger().all(|larger| larger.mean >= 0.0));
    assert!(larger().any(|larger| larger.mean <= 3.0 * larger.standard_error));
}

#[test]
fn compare_is_no_surer_with_many_splits_than_the_rows_allow() {
    let error = |splits| two(splits).procedures[1].larger_than_smallest.unwrap().standard_error;
    // Sixteen times the splits would make a naive standard error four times smaller.
    assert!(error(320) > 0.7 * error(20), "{} {}", error(320), error(20));
}
