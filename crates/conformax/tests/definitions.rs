//! Scores that the golden values lack, against their definition in plain code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use conformax::{
    Draw, EntmaxScore, Gamma, MarginScore, RankedSoftmax, RapsScore, Row, SapsScore, Score, softmax,
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

/// The row ranked once for many candidates gives the bits of the score.
#[test]
fn a_ranked_row_scores_as_the_score_does() {
    let score = RapsScore { lambda: 0.1, k_reg: 1, ..RapsScore::default() };
    for row in ROWS {
        let row = Row::new(row).unwrap();
        let ranked = RankedSoftmax::new(row, Draw::Seeded(7));
        let score = RapsScore { draw: Draw::Seeded(7), ..score };
        let mut possible: Vec<u32> =
            (0..row.classes() as u32).filter(|label| row.logit(*label) > f64::NEG_INFINITY).collect();
        possible.sort_by(|a, b| row.logit(*b).total_cmp(&row.logit(*a)).then(a.cmp(b)));
        assert_eq!(ranked.labels(), possible);
        for (place, label) in possible.into_iter().enumerate() {
            assert_eq!(ranked.raps(&score, place).to_bits(), score.score(row, label).to_bits());
        }
    }
}

/// Three labels, of which the second is too close to the threshold to be decided by an estimate and the third, though its
/// gap is no larger than the threshold, is out: for γ > 2 a small gap ahead of it weighs much.
#[test]
fn what_follows_a_close_label_is_not_taken_for_granted() {
    for gamma in [2.5, 3.0, 8.0, 16.0] {
        let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
        let row = Row::new(&[0.0, -(1.0 - 5e-9), -1.0]).unwrap();
        let mut set = Vec::new();
        score.set_into(row, 1.0, &mut set);
        assert!(score.score(row, 2) > 1.0);
        assert_eq!(set, [0, 1], "{gamma}");
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
                let (labels, bits): (Vec<u32>, Vec<u64>) =
                    (0..classes).filter(within).map(|place| (ranked[place], scores[place].to_bits())).unzip();
                let (mut set, mut scored, mut found) = (vec![9], vec![9], Vec::new());
                score.set_into(row, threshold, &mut set);
                score.scored_set_into(row, threshold, &mut scored, &mut found);
                assert_eq!(set[1..], labels, "{logits:?}, gamma {gamma}, threshold {threshold:e}");
                assert_eq!(scored, set);
                assert_eq!(found.into_iter().map(f64::to_bits).collect::<Vec<_>>(), bits);
            }
        }
    }
}

/// `U·p₁` and `p₁ − U·p₁` at the top: without a draw 0 and all of it.
#[test]
fn a_score_without_a_draw_does_not_draw() {
    let row = Row::new(&[2.0, 0.0]).unwrap();
    let top = softmax(&[2.0, 0.0]).unwrap()[0];
    assert_eq!(SapsScore { lambda: 0.3, draw: Draw::Zero }.score(row, 0), 0.0);
    let raps = RapsScore { lambda: 0.0, draw: Draw::Zero, ..RapsScore::default() };
    assert!((raps.score(row, 0) - top).abs() < ROUNDING);
}

#[test]
fn a_checked_score_is_the_same_score() {
    let saps = SapsScore { lambda: 0.3, draw: Draw::Zero };
    assert_eq!(saps.checked().unwrap(), saps);
    let raps = RapsScore { lambda: 0.3, k_reg: 2, draw: Draw::Zero, ..RapsScore::default() };
    assert_eq!(raps.checked().unwrap(), raps);
    for lambda in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(SapsScore { lambda, ..saps }.checked().is_err());
        assert!(RapsScore { lambda, ..raps }.checked().is_err());
    }
}
