//! An oracle of the tests' own: on a grid of 1/64 the scores of sparsemax and 1.5-entmax are integers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::tolerance::{PROBABILITY, ROUNDING, close};
use crate::common::{at, cases, entmax, set_of};
use conformax::{Logits, Row, Score};
use proptest::collection::vec;
use proptest::prelude::*;

const GRID: f64 = 64.0;

/// Logits in 64ths.
fn rows() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![vec(-8_i64..=8, 1..=12), vec(-512_i64..=512, 1..=64), vec(-4_000_i64..=4_000, 200..=400)]
}

fn logits(row: &[i64]) -> Vec<f64> {
    row.iter().map(|sixty_fourths| *sixty_fourths as f64 / GRID).collect()
}

/// `Σ (z_k − z_y)₊^power`, in 64ths to that power.
fn gap_sum(row: &[i64], label: usize, power: u32) -> i64 {
    row.iter().map(|other| (other - row[label]).max(0).pow(power)).sum()
}

/// Thresholds in 64ths: among them every perfect root of a squared score, where `<` and `≤` differ.
fn thresholds(row: &[i64], power: u32) -> Vec<i64> {
    let roots = (0..row.len()).map(|label| {
        let sum = gap_sum(row, label, power);
        if power == 1 { sum } else { sum.isqrt() }
    });
    let mut all: Vec<i64> = roots.flat_map(|root| [root - 1, root, root + 1]).chain([0, 1, 64]).collect();
    all.sort_unstable();
    all.dedup();
    let step = all.len().div_ceil(60);
    all.into_iter().filter(|threshold| *threshold >= 0).step_by(step).collect()
}

/// The labels with `Σ ≤ thresholdᵖᵒʷᵉʳ`, in integers.
fn exact_set(row: &[i64], power: u32, threshold: i64) -> Vec<u32> {
    (0..row.len())
        .filter(|label| gap_sum(row, *label, power) <= threshold.pow(power))
        .map(|l| l as u32)
        .collect()
}

fn check_sets(row: &[i64], gamma: f64, power: u32) -> Result<usize, TestCaseError> {
    let (score, logits) = (entmax(gamma), logits(row));
    let mut on_the_boundary = 0;
    for threshold in thresholds(row, power) {
        let mut set = set_of(&at(score, threshold as f64 / GRID), &logits, None);
        set.sort_unstable();
        prop_assert_eq!(set, exact_set(row, power, threshold), "threshold {}/64", threshold);
        on_the_boundary += (0..row.len()).filter(|l| gap_sum(row, *l, power) == threshold.pow(power)).count();
    }
    Ok(on_the_boundary)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn sparsemax_scores_and_sets_are_exact(row in rows()) {
        let logits = logits(&row);
        for label in 0..row.len() {
            let score = entmax(2.0).score(Row::new(&logits).unwrap(), label as u32);
            prop_assert_eq!(score, gap_sum(&row, label, 1) as f64 / GRID);
        }
        prop_assert!(check_sets(&row, 2.0, 1)? > 0, "a sum is always on one of its thresholds");
    }

    #[test]
    fn entmax15_scores_and_sets_are_exact(row in rows()) {
        let logits = logits(&row);
        for label in 0..row.len() {
            let score = entmax(1.5).score(Row::new(&logits).unwrap(), label as u32);
            let square = gap_sum(&row, label, 2) as f64 / (GRID * GRID);
            prop_assert!(close(score * score, square, ROUNDING), "{} for the root of {}", score, square);
        }
        check_sets(&row, 1.5, 2)?;
    }

    /// `p_j = (z_j − t)/q` with `t = (Σ_C z − q)/|C|`: rational, and zero for a label on the boundary.
    #[test]
    fn sparsemax_probabilities_are_rational(row in rows(), label in any::<prop::sample::Index>()) {
        let threshold = gap_sum(&row, label.index(row.len()), 1);
        prop_assume!(threshold > 0);
        let logits = logits(&row);
        let model = at(entmax(2.0), threshold as f64 / GRID);
        let (sets, p) = model.predict_probabilities(Logits::new(&logits, row.len()).unwrap()).unwrap();
        let set = exact_set(&row, 1, threshold);
        let (size, sum) = (set.len() as i64, set.iter().map(|label| row[*label as usize]).sum::<i64>());
        prop_assert_eq!(p.len() as i64, size);
        for (label, p) in sets.labels().iter().zip(p) {
            let numerator = size * row[*label as usize] - sum + threshold;
            let wanted = numerator as f64 / (size * threshold) as f64;
            prop_assert!((p - wanted).abs() <= PROBABILITY, "label {}: {} for {}", label, p, wanted);
            prop_assert!(numerator >= 0);
        }
    }
}

/// 3-4-5 and its kin, up to a long row: roots that come out whole are in at equality and out just below.
#[test]
fn perfect_roots_are_on_the_boundary() {
    for gaps in [vec![3, 4], vec![5, 12], vec![1; 4], vec![2; 900], vec![2, 3, 6], vec![1, 4, 8]] {
        let row: Vec<i64> = gaps.iter().copied().chain([0]).collect();
        let root = gap_sum(&row, row.len() - 1, 2).isqrt();
        assert_eq!(root * root, gap_sum(&row, row.len() - 1, 2));
        let (last, logits) = (row.len() as u32 - 1, logits(&row));
        for (threshold, inside) in [(root as f64 / GRID, true), ((root as f64 / GRID).next_down(), false)] {
            let set = set_of(&at(entmax(1.5), threshold), &logits, None);
            assert_eq!(set.contains(&last), inside, "{gaps:?} at {threshold}");
        }
    }
}
