//! Scores that the golden values lack, against their definition in plain code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::{at, set_of};
use conformax::{
    Draw, EntmaxScore, Gamma, KnownScores, Lambda, MarginScore, Predictor, RankedRow, RapsScore, Row,
    SapsScore, Score, ScoreSpec, SizeScratch, Thresholds, softmax,
};

/// Two paths in `f64` to the same number.
const ROUNDING: f64 = 1e-12;

const ROWS: [&[f64]; 7] = [
    &[3.0, 1.0, 2.0, 0.0],
    &[0.5, 2.0, 2.0, 1.0],
    &[1.0, 1.0, 1.0],
    &[-1.0, -3.0, -1.5],
    &[2.0, f64::NEG_INFINITY, 1.0, 1.0],
    &[0.0, 700.0],
    &[4.0],
];

/// `max_{j≠y} p_j − p_y`, the largest of no others being 0.
#[test]
fn the_margin_is_to_the_best_other_label() {
    for row in ROWS {
        let p = softmax(row).unwrap();
        let others = |label: usize| p.iter().enumerate().filter(move |(other, _)| *other != label);
        for label in 0..row.len() {
            let best = others(label).map(|(_, p)| *p).fold(0.0, f64::max);
            let wanted = if row[label] > f64::NEG_INFINITY { best - p[label] } else { f64::INFINITY };
            let found = MarginScore.score(Row::new(row).unwrap(), label as u32);
            let equal = found == wanted || (found - wanted).abs() < ROUNDING;
            assert!(equal, "{row:?}, label {label}: {found}, wanted {wanted}");
        }
    }
}

/// The row ranked once for many candidates gives the bits of the score, and the sizes of the sets.
#[test]
fn a_ranked_row_says_what_scores_and_sets_say() {
    let raps = |lambda: f64| RapsScore {
        lambda: Lambda::new(lambda).unwrap(),
        k_reg: 1,
        draw: Draw::Seeded(7),
        ..RapsScore::default()
    };
    let specs = [
        ScoreSpec::Raps(raps(0.1)),
        ScoreSpec::Raps(raps(2.0)),
        ScoreSpec::Entmax(EntmaxScore::default()),
        ScoreSpec::Margin(MarginScore),
    ];
    for logits in ROWS {
        let row = Row::new(logits).unwrap();
        let ranked = RankedRow::new(row, Draw::Seeded(7));
        for spec in specs {
            let scores: Vec<f64> = (0..row.classes() as u32).map(|label| spec.score(row, label)).collect();
            for (label, score) in (0..).zip(&scores) {
                assert_eq!(ranked.score(&spec, row, label).to_bits(), score.to_bits(), "{spec} of {label}");
            }
            let cutoff = scores.iter().copied().filter(|score| *score < f64::INFINITY).fold(0.0, f64::max);
            let (mut known, mut scratch) = (KnownScores::default(), SizeScratch::default());
            ranked.with_sizes(&spec, row, &mut known, cutoff, &mut scratch, |sizes| {
                for threshold in scores.iter().flat_map(|score| [*score, score.next_down()]) {
                    let plain = scores.iter().filter(|score| **score <= threshold).count();
                    assert_eq!(sizes.at(threshold), plain, "{spec} at {threshold}");
                }
            });
        }
    }
}

/// Three labels, of which the second is too close to the threshold to be decided by an estimate and the third, though
/// its gap is no larger than the threshold, is out: for γ > 2 a small gap ahead of it weighs much.
#[test]
fn what_follows_a_close_label_is_not_taken_for_granted() {
    for gamma in [2.5, 3.0, 8.0, 16.0] {
        let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
        let row = [0.0, -(1.0 - 5e-9), -1.0];
        assert!(score.score(Row::new(&row).unwrap(), 2) > 1.0);
        assert_eq!(set_of(&at(score, 1.0), &row, None), [0, 1], "{gamma}");
    }
}

/// Rows of every width that has a path of its own: dense ones on a grid, so that ties happen, some classes masked, and
/// few labels ahead of a gap; scaled beyond what can be squared.
fn rows() -> Vec<Vec<f64>> {
    let dense = |classes: usize, seed: usize| -> Vec<f64> {
        let logit = |class: usize| match (class + seed) % 13 {
            5 if classes > 3 && class > 0 => f64::NEG_INFINITY,
            _ => ((class * 7919 + seed * 104_729) % 101) as f64 / 8.0 - 6.0,
        };
        (0..classes).map(logit).collect()
    };
    let sparse = |head: &[f64], classes: usize| [head, &vec![-50.0; classes - head.len()]].concat();
    let mut rows = vec![vec![1.0, 1.0], vec![0.0, 2.0, 2.0], vec![-3.0, -1.0]];
    for classes in [3, 8, 9, 32, 33, 100] {
        rows.extend((0..2).map(|seed| dense(classes, seed)));
        rows.extend(
            [&[0.0, -1.0][..], &[-1.5, 0.0, -1.0], &[0.0, -5.0, -20.0]].map(|head| sparse(head, classes)),
        );
    }
    let scaled = |scale: f64| rows.iter().map(move |row| row.iter().map(|logit| logit * scale).collect());
    [1.0, 1e-170, 1e150].into_iter().flat_map(scaled).collect()
}

/// Thresholds on, just beside and close to the first scores and some of the others, and those beyond all of them.
fn thresholds(scores: &[f64]) -> Vec<f64> {
    let (first, others) = scores.split_at(scores.len().min(4));
    let beside = |score: &f64| [*score, score.next_down(), score * (1.0 - 5e-9), score * (1.0 + 5e-9)];
    let some = others.iter().step_by(others.len().div_ceil(4).max(1));
    let mut all: Vec<f64> = first.iter().chain(some).flat_map(beside).collect();
    all.extend([0.0, -1.0, f64::INFINITY]);
    all
}

/// Every label with `score ≤ threshold`, best first and ties by their class, with the score's own bits: what the fast
/// paths for narrow and wide rows, for each kind of δ and for tiny and huge logits have to give.
#[test]
fn entmax_sets_are_the_definition() {
    for logits in rows() {
        let classes = logits.len();
        let row = Row::new(&logits).unwrap();
        let mut ranked: Vec<u32> = (0..classes as u32).collect();
        ranked.sort_by(|a, b| row.logit(*b).total_cmp(&row.logit(*a)).then(a.cmp(b)));
        for gamma in [1.0, 1.02, 1.3, 1.5, 1.9, 2.0, 2.1, 3.0, 16.0] {
            let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
            let scores: Vec<f64> = ranked.iter().map(|label| score.score(row, *label)).collect();
            for threshold in thresholds(&scores) {
                let within = |place: &usize| scores[*place] <= threshold;
                let labels: Vec<u32> = (0..classes).filter(within).map(|place| ranked[place]).collect();
                let set = set_of(&at(score, threshold), &logits, None);
                assert_eq!(set, labels, "{logits:?}, gamma {gamma}, threshold {threshold:e}");
                // By label, at most this threshold: the label's own score, or just below it.
                let own = |place: usize| {
                    if place.is_multiple_of(3) { scores[place].next_down() } else { scores[place] }
                };
                let mut by_label = vec![0.0; classes];
                (0..classes).for_each(|place| by_label[ranked[place] as usize] = own(place).min(threshold));
                let own_wanted: Vec<u32> = (0..classes)
                    .filter(|place| scores[*place] <= own(*place).min(threshold))
                    .map(|place| ranked[place])
                    .collect();
                let by_label = Predictor::new(score, Thresholds::PerLabel(by_label));
                assert_eq!(
                    set_of(&by_label, &logits, None),
                    own_wanted,
                    "{logits:?}, gamma {gamma}, {threshold:e}"
                );
            }
        }
    }
}

/// Not randomised is the largest value of the randomised score: `U·p₁` with all of it, `p₁ − U·p₁` with none.
#[test]
fn a_score_without_a_draw_takes_its_largest_value() {
    let row = Row::new(&[2.0, 0.0, 1.0]).unwrap();
    let top = softmax(&[2.0, 0.0, 1.0]).unwrap()[0];
    let lambda = Lambda::new(0.3).unwrap();
    let saps = SapsScore { lambda, draw: Draw::Conservative };
    for (label, wanted) in [(0, top), (2, top + 0.3), (1, top + 0.6)] {
        assert!((saps.score(row, label) - wanted).abs() < ROUNDING, "label {label}");
    }
    let raps =
        RapsScore { lambda: Lambda::new(0.0).unwrap(), draw: Draw::Conservative, ..RapsScore::default() };
    assert!((raps.score(row, 0) - top).abs() < ROUNDING);
    for u in [0.0, 0.25, 1.0 - f64::EPSILON / 2.0] {
        let drawn = Row::new(&[2.0, 0.0, 1.0]).unwrap().with_u(u).unwrap();
        for label in 0..3 {
            let seeded = SapsScore { draw: Draw::default(), ..saps };
            assert!(seeded.score(drawn, label) <= saps.score(row, label));
            let seeded = RapsScore { draw: Draw::default(), ..raps };
            assert!(seeded.score(drawn, label) <= raps.score(row, label));
        }
    }
}
