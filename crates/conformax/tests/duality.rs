//! The paper's three propositions: a conformal set is the support of a sparse activation.
//!
//! The activations here are unrelated to the library's: bisection, and Algorithm 1 of the paper.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::reference::{entmax_bisect, sparsemax_sorted};
use crate::common::rows::{calm_rows, grid, spread};
use crate::common::tolerance::{BOUNDARY, PROBABILITY, ROUNDING, close};
use crate::common::{at, cases, entmax, for_all, score_each};
use conformax::{
    Alpha, Entmax, EntmaxScore, Gamma, Logits, Predictor, RegularizationPath, Row, calibrate, score_labels,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Far enough from 1 for the masses of a support not to underflow.
const GAMMAS: [f64; 9] = [1.1, 1.25, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 8.0];

fn support_rows() -> BoxedStrategy<Vec<f64>> {
    prop_oneof![grid(1..=24), calm_rows(), spread(1..=60)].boxed()
}

/// Thresholds between, and well away from, the scores: one per interval.
fn thresholds_off_the_boundary(scores: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = scores.iter().copied().filter(|score| *score < f64::INFINITY).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.push(sorted[sorted.len() - 1] * 2.0 + 1.0);
    let clear = |pair: &&[f64]| pair[1] - pair[0] > 4.0 * BOUNDARY * pair[1];
    sorted.windows(2).filter(clear).map(|pair| 0.5 * (pair[0] + pair[1])).collect()
}

fn in_set(score: EntmaxScore, row: Row<'_, f64>, threshold: f64) -> Vec<bool> {
    let model = at(score, threshold);
    model.predict(Logits::new(row.logits(), row.classes()).unwrap()).unwrap().mask()
}

/// Proposition 1: with the sum of the gaps as score and `1/β = q`, the set is sparsemax's support.
#[test]
fn proposition_1_the_set_is_the_support_of_sparsemax() {
    for_all(256, support_rows(), &|logits| {
        let row = Row::new(&logits).unwrap();
        let score = entmax(2.0);
        for threshold in thresholds_off_the_boundary(&score_each(&score, row)) {
            let scaled: Vec<f64> = logits.iter().map(|logit| (logit - row.max()) / threshold).collect();
            let support: Vec<bool> = sparsemax_sorted(&scaled).iter().map(|mass| *mass > 0.0).collect();
            prop_assert_eq!(in_set(score, row, threshold), support, "threshold {}", threshold);
        }
        Ok(())
    });
}

/// Proposition 2: label `j` has mass in `γ-entmax(βz)` exactly when `‖(z − z_j)₊‖_δ < δ/β`.
fn norm_decides_support(gamma: f64, logits: &[f64]) -> TestCaseResult {
    let (row, score) = (Row::new(logits).unwrap(), entmax(gamma));
    let scores = score_each(&score, row);
    for threshold in thresholds_off_the_boundary(&scores) {
        let beta = score.gamma.delta() / threshold;
        let p = entmax_bisect(logits, score.gamma, beta);
        for (label, mass) in p.iter().enumerate() {
            let (s, mass) = (scores[label], *mass);
            prop_assert_eq!(s < threshold, mass > 0.0, "label {} of score {} has mass {}", label, s, mass);
        }
    }
    Ok(())
}

#[test]
fn proposition_2_the_norm_of_the_gaps_decides_the_support() {
    for gamma in GAMMAS {
        for_all(48, support_rows(), &|row| norm_decides_support(gamma, &row));
    }
}

/// Calibration rows, their labels, and a row to predict.
fn calibration_and_row() -> BoxedStrategy<(crate::common::rows::Batch, Vec<f64>)> {
    let same_classes = |k: usize| (crate::common::rows::batches(k..=k, 12..=30), grid(k..=k));
    (2_usize..=8).prop_flat_map(same_classes).boxed()
}

/// Proposition 3: calibrating the δ-norm is calibrating a temperature. From logits to sets and probabilities
/// through the public calls, against `γ-entmax(βz)` at `β = δ/q`.
#[test]
fn proposition_3_calibration_picks_the_temperature_of_entmax() {
    for gamma in GAMMAS {
        for_all(48, calibration_and_row(), &|(cal, test)| {
            let cal_logits = Logits::new(&cal.logits, cal.classes).unwrap();
            let score = entmax(gamma);
            let model = calibrate(score, cal_logits, &cal.labels, Alpha::new(0.25).unwrap()).unwrap();
            let threshold = model.thresholds().as_slice()[0];
            let mut scores = score_labels(&score, cal_logits.labelled(&cal.labels).unwrap()).unwrap();
            scores.sort_by(f64::total_cmp);
            prop_assert_eq!(threshold, scores[((cal.len() + 1) * 3).div_ceil(4) - 1]);
            prop_assume!(threshold > 0.0 && threshold < f64::INFINITY);
            set_is_support_with_its_boundary(&model, &test)
        });
    }
}

/// Off the boundary the set is the support; on it the activation has no mass and the set has the label.
fn set_is_support_with_its_boundary(model: &Predictor<EntmaxScore>, logits: &[f64]) -> TestCaseResult {
    let (threshold, row) = (model.thresholds().as_slice()[0], Row::new(logits).unwrap());
    let p = entmax_bisect(logits, model.score().gamma, model.temperature().unwrap());
    let rows = Logits::new(logits, logits.len()).unwrap();
    let (sets, packed) = model.predict_probabilities(rows).unwrap();
    for (label, s) in score_each(model.score(), row).into_iter().enumerate() {
        let inside = sets.contains(0, label as u32);
        if close(s, threshold, BOUNDARY) {
            prop_assert!(p[label] <= PROBABILITY, "on the boundary with mass {}", p[label]);
            prop_assert_eq!(inside, s <= threshold);
        } else {
            prop_assert_eq!(inside, p[label] > 0.0, "label {}: score {}, q {}", label, s, threshold);
        }
    }
    for (label, mass) in sets.labels().iter().zip(packed) {
        let wanted = p[*label as usize];
        prop_assert!((mass - wanted).abs() <= PROBABILITY, "label {}: {} for {}", label, mass, wanted);
    }
    Ok(())
}

/// At a threshold that is a label's own score: `β = δ/s` is where its mass reaches zero.
#[test]
fn a_label_on_the_boundary_is_in_the_set_without_mass() {
    for gamma in GAMMAS {
        for_all(48, support_rows(), &|logits| {
            let row = Row::new(&logits).unwrap();
            for s in score_each(&entmax(gamma), row) {
                if s > 0.0 && s < f64::INFINITY {
                    let model = at(entmax(gamma), s);
                    set_is_support_with_its_boundary(&model, &logits)?;
                }
            }
            Ok(())
        });
    }
}

/// The two ends of the temperature: `q = 0` is all mass on the top label and its ties, `q = ∞` on every class
/// that is possible.
#[test]
fn the_ends_of_the_path_are_uniform() {
    let row = [2.0, -1.0, 2.0, f64::NEG_INFINITY];
    for gamma in GAMMAS {
        let predict = |threshold: f64| {
            let model = at(entmax(gamma), threshold);
            let (sets, p) = model.predict_probabilities(Logits::new(&row, 4).unwrap()).unwrap();
            (model.temperature().unwrap(), sets.labels().to_vec(), p)
        };
        assert_eq!(predict(0.0), (f64::INFINITY, vec![0, 2], vec![0.5, 0.5]));
        let third = 1.0 / 3.0;
        assert_eq!(predict(f64::INFINITY), (0.0, vec![0, 2, 1, 3], vec![third, third, third, 0.0]));
    }
}

/// The path of every label against the activation's support over a grid of β, some on a leaving point.
fn path_is_the_support(gamma: f64, logits: &[f64]) -> TestCaseResult {
    let (row, score) = (Row::new(logits).unwrap(), entmax(gamma));
    let path = RegularizationPath::of(score, row);
    let last = path.leaves_at.iter().copied().filter(|beta| *beta < f64::INFINITY).fold(0.0, f64::max);
    prop_assert_eq!(path.saturation, last);
    for (beta, s) in path.leaves_at.iter().zip(score_each(&score, row)) {
        let wanted = if s == f64::INFINITY { 0.0 } else { score.gamma.delta() / s };
        prop_assert!(close(*beta, wanted, ROUNDING));
    }
    let grid = (1..=40).map(|step| f64::from(step) * 0.25);
    for beta in grid.chain([last * (1.0 + 1e-6), last * 1e3 + 1.0]) {
        let mut p = vec![f64::NAN; logits.len()];
        Entmax::new(score.gamma).with_beta(beta).unwrap().forward(row, &mut p);
        for (label, leaves) in path.leaves_at.iter().enumerate() {
            if !close(*leaves, beta, BOUNDARY) {
                prop_assert_eq!(
                    p[label] > 0.0,
                    beta < *leaves,
                    "label {} leaves at {}: {}",
                    label,
                    leaves,
                    beta
                );
            }
        }
        if beta > path.saturation * (1.0 + BOUNDARY) {
            let tops = path.leaves_at.iter().filter(|leaves| **leaves == f64::INFINITY).count() as f64;
            for (p, leaves) in p.iter().zip(&path.leaves_at) {
                let wanted = if *leaves == f64::INFINITY { 1.0 / tops } else { 0.0 };
                prop_assert!((p - wanted).abs() <= PROBABILITY);
            }
        }
    }
    Ok(())
}

#[test]
fn labels_leave_the_support_where_the_path_says() {
    for gamma in GAMMAS {
        for_all(32, support_rows(), &|row| path_is_the_support(gamma, &row));
    }
}

/// Near γ = 1 masses underflow, so a set is never read off them: every label in the set is kept whatever its mass.
#[test]
fn sets_do_not_lose_labels_whose_mass_underflows() {
    let logits = [0.0, -900.0, -2_000.0];
    let model = at(entmax(1.001), 1_000.0);
    let (sets, p) = model.predict_probabilities(Logits::new(&logits, 3).unwrap()).unwrap();
    assert_eq!(sets.labels(), [0, 1]);
    assert_eq!(p, [1.0, 0.0]);
    assert_eq!(entmax(1.001).gamma, Gamma::new(1.001).unwrap());
}

proptest! {
    #![proptest_config(cases(64))]

    /// The two unrelated algorithms agree with each other, or neither is an oracle.
    #[test]
    fn bisection_agrees_with_algorithm_1(row in spread(1..=60), beta in 0.1..4.0_f64) {
        let scaled: Vec<f64> = row.iter().map(|logit| logit * beta).collect();
        let bisected = entmax_bisect(&row, Gamma::SPARSEMAX, beta);
        for (a, b) in bisected.into_iter().zip(sparsemax_sorted(&scaled)) {
            prop_assert!((a - b).abs() <= PROBABILITY, "{} {}", a, b);
        }
    }
}
