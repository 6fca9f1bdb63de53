//! The laws every score obeys, as checks of one score on one input.

use conformax::{
    Alpha, Calibrator, Logits, PValue, Predictor, Row, Score, SortedScores, Thresholds, score_all_labels,
    score_labels,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::rows::Batch;
use super::tolerance::{ROUNDING, close_at_scale};
use super::{at, bits, one_row, score_each, set_by_definition, set_of};

fn row_of(logits: &[f64], u: Option<f64>) -> Row<'_, f64> {
    let row = Row::new(logits).unwrap();
    u.map_or(row, |u| row.with_u(u).unwrap())
}

/// Thresholds on, right above, right below and between scores, and those at the ends of the line.
pub fn thresholds(scores: &[f64]) -> Vec<f64> {
    const MOST: usize = 8;
    let mut distinct = scores.to_vec();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let step = distinct.len().div_ceil(MOST);
    let mut thresholds =
        vec![f64::NEG_INFINITY, -1.0, -0.0, 0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY];
    for at in (0..distinct.len()).step_by(step) {
        let score = distinct[at];
        thresholds.extend([score.next_down(), score, score.next_up()]);
        if let Some(next) = distinct.get(at + 1) {
            thresholds.push(score / 2.0 + next / 2.0);
        }
    }
    thresholds
}

/// `score` is `score_all_labels` is membership, to the bit; sets are best first. Where thresholds differ by label, the
/// scores that decide are the definition's too: a label is in at its own score and out just below it.
pub fn membership_is_the_definition<S: Score>(score: &S, logits: &[f64], u: Option<f64>) -> TestCaseResult {
    let row = row_of(logits, u);
    let scores = score_each(score, row);
    let all = score_all_labels(score, one_row(logits, &u)).unwrap();
    prop_assert_eq!(bits(&all), bits(&scores), "score_all_labels {:?} for {:?}", all, scores);
    for threshold in thresholds(&scores) {
        let wanted = set_by_definition(logits, &scores, threshold);
        let set = set_of(&at(score, threshold), logits, u);
        prop_assert_eq!(&set, &wanted, "threshold {:e}, scores {:?}", threshold, scores);
        let each = Predictor::new(score, Thresholds::PerLabel(vec![threshold; logits.len()]));
        prop_assert_eq!(&set_of(&each, logits, u), &wanted, "threshold {:e} for each label", threshold);
    }
    for (odd, even) in [(0, 1), (1, 0), (0, 0)] {
        // Some labels at their own score, the others right below it.
        let below = |label: usize| if label.is_multiple_of(2) { even } else { odd } == 1;
        let own = |(label, score): (usize, &f64)| if below(label) { score.next_down() } else { *score };
        let own: Vec<f64> = scores.iter().enumerate().map(own).collect();
        let inside = |label: u32| scores[label as usize] <= own[label as usize];
        let mut wanted = set_by_definition(logits, &scores, f64::INFINITY);
        wanted.retain(|label| inside(*label));
        let by_label = Predictor::new(score, Thresholds::PerLabel(own.clone()));
        prop_assert_eq!(set_of(&by_label, logits, u), wanted, "thresholds {:?}, scores {:?}", own, scores);
    }
    Ok(())
}

/// Never NaN or −0; a masked class, and a label that is none, score +∞.
pub fn scores_are_numbers<S: Score>(score: &S, logits: &[f64], u: Option<f64>) -> TestCaseResult {
    let row = row_of(logits, u);
    for (logit, score) in logits.iter().zip(score_each(score, row)) {
        prop_assert!(!score.is_nan());
        prop_assert!(score.to_bits() != (-0.0_f64).to_bits());
        if *logit == f64::NEG_INFINITY {
            prop_assert_eq!(score, f64::INFINITY);
        }
    }
    prop_assert_eq!(score.score(row, logits.len() as u32), f64::INFINITY);
    Ok(())
}

/// Equal logits have equal scores, to the bit.
pub fn ties_share_their_fate<S: Score>(score: &S, logits: &[f64], u: Option<f64>) -> TestCaseResult {
    let scores = score_each(score, row_of(logits, u));
    for (label, logit) in logits.iter().enumerate() {
        let first = logits.iter().position(|other| other == logit).unwrap();
        prop_assert_eq!(scores[label].to_bits(), scores[first].to_bits(), "labels {} and {}", first, label);
    }
    Ok(())
}

/// Down the ranking scores rise, but for rounding; `scale` is the least size of what a score is made of.
pub fn rises_down_the_ranking<S: Score>(
    score: &S,
    logits: &[f64],
    u: Option<f64>,
    scale: f64,
) -> TestCaseResult {
    let scores = score_each(score, row_of(logits, u));
    let ranking = set_by_definition(logits, &scores, f64::INFINITY);
    for pair in ranking.windows(2) {
        let (better, worse) = (scores[pair[0] as usize], scores[pair[1] as usize]);
        prop_assert!(
            worse >= better || close_at_scale(worse, better, ROUNDING, better.abs().max(scale)),
            "label {} scores {:e}, label {} below it {:e}",
            pair[0],
            better,
            pair[1],
            worse
        );
    }
    Ok(())
}

/// The order of the classes does not matter, but for rounding.
pub fn order_does_not_matter<S: Score>(
    score: &S,
    logits: &[f64],
    order: &[usize],
    u: f64,
    scale: f64,
) -> TestCaseResult {
    let shuffled: Vec<f64> = order.iter().map(|label| logits[*label]).collect();
    let plain = score_each(score, row_of(logits, Some(u)));
    for (label, got) in order.iter().zip(score_each(score, row_of(&shuffled, Some(u)))) {
        let wanted = plain[*label];
        prop_assert!(
            close_at_scale(got, wanted, ROUNDING, wanted.abs().max(scale)),
            "{:e} {:e}",
            got,
            wanted
        );
    }
    Ok(())
}

/// Adding a constant does not matter: not at all where it stays on the grid, but for rounding elsewhere.
pub fn shift_does_not_matter<S: Score>(
    score: &S,
    logits: &[f64],
    by: f64,
    u: f64,
    scale: f64,
) -> TestCaseResult {
    let plain = score_each(score, row_of(logits, Some(u)));
    let shifted = |by: f64| -> Vec<f64> {
        let moved: Vec<f64> = logits.iter().map(|logit| logit + by).collect();
        score_each(score, row_of(&moved, Some(u)))
    };
    prop_assert_eq!(bits(&plain), bits(&shifted(by.trunc())), "by {}", by.trunc());
    for (got, wanted) in shifted(by).into_iter().zip(&plain) {
        prop_assert!(
            close_at_scale(got, *wanted, ROUNDING, wanted.abs().max(scale)),
            "{:e} {:e}",
            got,
            wanted
        );
    }
    Ok(())
}

/// The levels that p-values are compared at, with numerator and denominator of each.
const LEVELS: [(&str, u64, u64); 12] = [
    ("0.001", 1, 1_000),
    ("0.05", 1, 20),
    ("0.1", 1, 10),
    ("0.125", 1, 8),
    ("0.18", 18, 100),
    ("0.2", 1, 5),
    ("0.25", 1, 4),
    ("0.3", 3, 10),
    ("0.5", 1, 2),
    ("0.75", 3, 4),
    ("0.9", 9, 10),
    ("0.999", 999, 1_000),
];

/// `p(y)` counts the calibration scores at least as large, and `y` is in the set at α exactly when `p(y) > α`.
pub fn p_values_are_dual_to_sets<S: Score + Clone>(score: &S, cal: &Batch, test: &[f64]) -> TestCaseResult {
    let logits = Logits::new(&cal.logits, cal.classes).unwrap();
    let labelled = logits.labelled(&cal.labels).unwrap();
    let mut calibrator = Calibrator::new(score.clone(), cal.classes).unwrap();
    calibrator.extend(labelled).unwrap();
    let calibration = calibrator.finish().unwrap();
    let test = Logits::new(test, cal.classes).unwrap();
    let scores = score_all_labels(score, test).unwrap();
    let p_values = calibration.p_values(test).unwrap();
    prop_assert_eq!(p_values.len(), scores.len());
    let n = cal.len() as u64;
    let calibration_scores = score_labels(score, labelled).unwrap();
    let sorted = SortedScores::new(calibration_scores.clone()).unwrap();
    prop_assert_eq!(&calibration.groups()[0], &sorted);
    for (p, score) in p_values.iter().zip(&scores) {
        let at_least = calibration_scores.iter().filter(|other| *other >= score).count() as u64;
        prop_assert_eq!(*p, PValue::new(u128::from(at_least) + 1, u128::from(n) + 1));
        prop_assert_eq!(p.value(), (at_least + 1) as f64 / (n + 1) as f64);
        let ties = calibration_scores.iter().filter(|other| *other == score).count() as f64;
        let smoothed = (at_least as f64 - ties + 0.25 * (ties + 1.0)) / (n + 1) as f64;
        let got = sorted.smoothed_p_value(*score, 0.25);
        prop_assert!(close_at_scale(got, smoothed, ROUNDING, 1.0));
    }
    for (alpha, numerator, denominator) in LEVELS {
        let alpha: Alpha = alpha.parse().unwrap();
        let mask = calibration.at(alpha).0.predict(test).unwrap().mask();
        for (p, inside) in p_values.iter().zip(mask) {
            prop_assert_eq!(inside, p.in_set(alpha), "{:?} at {}", p, alpha);
            prop_assert_eq!(inside, p.count * u128::from(denominator) > u128::from(numerator * (n + 1)));
        }
    }
    Ok(())
}

/// A row gives in a batch what it gives alone.
pub fn alone_or_in_a_batch<S: Score + Clone>(score: &S, batch: &Batch) -> TestCaseResult {
    let logits = Logits::new(&batch.logits, batch.classes).unwrap();
    let all = score_all_labels(score, logits).unwrap();
    let of_labels = score_labels(score, logits.labelled(&batch.labels).unwrap()).unwrap();
    let model = at(score.clone(), of_labels[0]);
    let (sets, p) = model.predict_probabilities(logits).unwrap();
    prop_assert_eq!(&sets, &model.predict(logits).unwrap());
    let mut start = 0;
    for index in 0..batch.len() {
        let row = Row::new(batch.row(index)).unwrap();
        let scores = score_each(score, row);
        prop_assert_eq!(bits(&all[index * batch.classes..][..batch.classes]), bits(&scores));
        let label = batch.labels[index];
        prop_assert_eq!(of_labels[index].to_bits(), scores[label as usize].to_bits());
        let (set, alone) = model.predict_probabilities(one_row(batch.row(index), &None)).unwrap();
        prop_assert_eq!(sets.get(index), set.get(0));
        prop_assert_eq!(bits(&p[start..][..alone.len()]), bits(&alone));
        start += alone.len();
    }
    prop_assert_eq!(start, p.len());
    Ok(())
}

/// In-set probabilities lie in [0, 1], do not rise down the set, and sum to one over any set but an empty one.
pub fn probabilities_sum_to_one<S: Score>(score: &S, logits: &[f64], u: Option<f64>) -> TestCaseResult {
    let row = row_of(logits, u);
    let scores = score_each(score, row);
    for threshold in thresholds(&scores) {
        let (sets, p) = at(score, threshold).predict_probabilities(one_row(logits, &u)).unwrap();
        prop_assert_eq!(p.len(), sets.labels().len());
        if p.is_empty() {
            continue;
        }
        prop_assert!(p.iter().all(|p| (0.0..=1.0 + ROUNDING).contains(p)), "{:?} at {:e}", p, threshold);
        prop_assert!(p.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + ROUNDING)), "{:?}", p);
        let sum: f64 = p.iter().sum();
        prop_assert!(close_at_scale(sum, 1.0, ROUNDING, 1.0), "{} at {:e}: {:?}", sum, threshold, p);
    }
    Ok(())
}

/// The same values in every float type give the same bits.
#[cfg(feature = "half")]
pub fn float_type_does_not_matter<S: Score>(score: &S, logits: &[f64], u: Option<f64>) -> TestCaseResult {
    fn compare<S: Score, T: conformax::Logit>(
        score: &S,
        logits: &[T],
        u: Option<f64>,
        wanted: &[f64],
    ) -> TestCaseResult {
        let row = Row::new(logits).unwrap();
        let row = u.map_or(row, |u| row.with_u(u).unwrap());
        let got: Vec<f64> = (0..logits.len() as u32).map(|label| score.score(row, label)).collect();
        prop_assert_eq!(bits(&got), bits(wanted));
        for threshold in thresholds(wanted) {
            let rows = Logits::new(logits, logits.len()).unwrap();
            let rows = u.as_ref().map_or(rows, |u| rows.with_u(std::slice::from_ref(u)).unwrap());
            let mut set = at(score, threshold).predict(rows).unwrap().labels().to_vec();
            set.sort_unstable();
            let plain = (0..wanted.len() as u32).filter(|label| wanted[*label as usize] <= threshold);
            prop_assert_eq!(
                set,
                plain.collect::<Vec<_>>(),
                "{} at {:e}",
                std::any::type_name::<T>(),
                threshold
            );
        }
        Ok(())
    }
    let wanted = score_each(score, row_of(logits, u));
    let single: Vec<f32> = logits.iter().map(|logit| *logit as f32).collect();
    let f16: Vec<half::f16> = logits.iter().map(|logit| half::f16::from_f64(*logit)).collect();
    let bf16: Vec<half::bf16> = logits.iter().map(|logit| half::bf16::from_f64(*logit)).collect();
    compare(score, &single, u, &wanted)?;
    compare(score, &f16, u, &wanted)?;
    compare(score, &bf16, u, &wanted)
}
