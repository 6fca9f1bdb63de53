//! What several test files share: tolerances, rows to test on, and algorithms unrelated to the crate's own.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "an oracle owes nothing to the crate's own exp and pow")]

pub mod data;
pub mod laws;
pub mod npy;
pub mod reference;
pub mod rows;
pub mod tolerance;

use conformax::{EntmaxScore, Gamma, Logits, Predictor, Score, Thresholds};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestRunner};

/// This many cases per property, the same in every run. `PROPTEST_CASES` scales them (256 is as they are) and
/// `PROPTEST_RNG_SEED` draws others.
pub fn cases(cases: u32) -> Config {
    let default = Config::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0),
        fixed => fixed,
    };
    let cases = (u64::from(cases) * u64::from(default.cases)).div_ceil(256) as u32;
    Config { cases, rng_seed, failure_persistence: None, ..default }
}

/// Holds `law` to this many values. Compiled once per type of value, where `proptest!` is once per test.
pub fn for_all<V: std::fmt::Debug + 'static>(
    count: u32,
    values: BoxedStrategy<V>,
    law: &dyn Fn(V) -> TestCaseResult,
) {
    if let Err(failure) = TestRunner::new(cases(count)).run(&values, law) {
        panic!("{failure}");
    }
}

/// The entmax score of this index.
pub fn entmax(gamma: f64) -> EntmaxScore {
    EntmaxScore { gamma: Gamma::new(gamma).unwrap() }
}

/// A predictor with this threshold.
pub fn at<S: Score>(score: S, threshold: f64) -> Predictor<S> {
    Predictor::new(score, Thresholds::One(threshold))
}

/// A row as a matrix, with a draw of the caller's where there is one.
pub fn one_row<'a>(logits: &'a [f64], u: &'a Option<f64>) -> Logits<'a, f64> {
    let rows = Logits::new(logits, logits.len()).unwrap();
    u.as_ref().map_or(rows, |u| rows.with_u(std::slice::from_ref(u)).unwrap())
}

/// The set of one row.
pub fn set_of<S: Score>(predictor: &Predictor<S>, logits: &[f64], u: Option<f64>) -> Vec<u32> {
    predictor.predict(one_row(logits, &u)).unwrap().get(0).unwrap().to_vec()
}

/// The labels whose score is within the threshold, by the definition and nothing else: by falling logit, equal
/// logits by index.
pub fn set_by_definition(logits: &[f64], scores: &[f64], threshold: f64) -> Vec<u32> {
    let mut set: Vec<u32> =
        (0..logits.len() as u32).filter(|label| scores[*label as usize] <= threshold).collect();
    set.sort_by(|a, b| logits[*b as usize].partial_cmp(&logits[*a as usize]).unwrap());
    set
}

/// The bits of every number, to compare or print.
pub fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The score of every label, one at a time: the definition.
pub fn score_each<S: Score>(score: &S, row: conformax::Row<'_, f64>) -> Vec<f64> {
    (0..row.classes() as u32).map(|label| score.score(row, label)).collect()
}
