//! Sets whose labels have thresholds of their own.

use super::super::paths::{LabelScratch, estimated_set_by_label};
use super::super::sort_best_first;
use super::{ESTIMATES_ARE_SAFE, EntmaxScore, GapSums, MOST_OPEN, slack};
use crate::kernel::{Order, Scores, shortlist};
use crate::thresholds::ByLabel;
use crate::{Logit, Row, Score};

/// Appends the labels that score at most their own finite threshold, best first.
pub(super) fn set_into<T: Logit>(
    score: &EntmaxScore,
    row: Row<'_, T>,
    by_label: ByLabel<'_>,
    out: &mut Vec<u32>,
    scratch: &mut LabelScratch<T>,
) {
    let (start, order, thresholds) = (out.len(), Order::from(score.gamma), by_label.thresholds);
    let scores = Scores { row: row.logits(), max: row.max(), order, slack: slack(row.classes()) };
    if !scores.fit(by_label.largest) {
        return estimated_set_by_label(score, row, by_label, out, &mut scratch.scores);
    }
    let (near, exact) = (&mut scratch.near, |label: u32| score.score(row, label));
    let few = FEW_TERMS / row.classes();
    if few >= WORTH_A_LOOK || order == Order::Max {
        scores.gather(by_label.limits, None, near, out);
        if order == Order::Max {
            // The score is the gap.
            let within = |label: &u32| row.max() - row.logit(*label) <= thresholds[*label as usize];
            out.extend(near.labels().iter().filter(|label| within(label)));
            return sort_best_first(row, &mut out[start..]);
        }
        if near.labels().is_empty() {
            return sort_best_first(row, &mut out[start..]);
        }
        if row.classes() <= SHORT {
            out.truncate(start);
            return walk(score, row, by_label, row.max() - near.lowest(), out);
        }
        if near.labels().len() <= few {
            scores.settle_each(thresholds, near, exact, out);
            return sort_best_first(row, &mut out[start..]);
        }
        out.truncate(start);
    }
    scores.gather(by_label.limits, scores.tangent(by_label.largest), near, out);
    if !scores.settle(thresholds, near, MOST_OPEN, exact, out) {
        // Estimates in double precision leave fewer open.
        out.truncate(start);
        return estimated_set_by_label(score, row, by_label, out, &mut scratch.scores);
    }
    sort_best_first(row, &mut out[start..]);
}

/// Where the scores of all labels that are near have so few terms together, none is spared by what is known of others.
const FEW_TERMS: usize = 1024;

/// So few labels are hardly all that are near.
const WORTH_A_LOOK: usize = 4;

/// Labels that are put in order in less time than a few scores take.
const SHORT: usize = 64;

/// Ranks the labels within a distance of the maximum: sums down the ranking decide, or the definition where they are
/// close.
fn walk<T: Logit>(
    score: &EntmaxScore,
    row: Row<'_, T>,
    by_label: ByLabel<'_>,
    distance: f64,
    out: &mut Vec<u32>,
) {
    let start = out.len();
    shortlist(row.logits(), row.max(), distance, out);
    let ranked = &mut out[start..];
    sort_best_first(row, ranked);
    let (order, slack) = (Order::from(score.gamma), slack(row.classes()));
    let (mut sums, mut kept) = (GapSums::new(row.max()), 0);
    for place in 0..ranked.len() {
        let label = ranked[place];
        sums.step(row.logit(label));
        let (least, most) = match order {
            Order::Max => (0.0, f64::INFINITY),
            Order::One => (sums.gaps, sums.gaps),
            Order::Two => (sums.squares.sqrt(), sums.squares.sqrt()),
            Order::Other { delta, .. } => sums.bounds(delta),
        };
        if least > by_label.largest * (1.0 + slack) {
            break;
        }
        let threshold = by_label.thresholds[label as usize];
        let is_in = match ESTIMATES_ARE_SAFE.contains(&threshold) {
            true if most <= threshold * (1.0 - slack) => true,
            true if least > threshold * (1.0 + slack) => false,
            _ => threshold < f64::INFINITY && score.score(row, label) <= threshold,
        };
        // Whoever stood there has been looked at.
        ranked[kept] = label;
        kept += usize::from(is_in);
    }
    out.truncate(start + kept);
}
