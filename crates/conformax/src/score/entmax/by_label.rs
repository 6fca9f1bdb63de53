//! Sets whose labels have thresholds of their own.

use super::super::paths::{LabelScratch, estimated_set_by_label};
use super::super::sort_best_first;
use super::{EntmaxScore, MOST_OPEN, slack};
use crate::kernel::{MANY, Order, Scores};
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
    if row.classes() < MANY {
        // s ≥ max z − z_y, so most labels are out at a glance.
        out.extend((0..).zip(row.logits()).zip(thresholds).filter_map(|((label, logit), threshold)| {
            let near = row.max() - logit.to_f64() <= *threshold && *threshold < f64::INFINITY;
            (near && score.score(row, label) <= *threshold).then_some(label)
        }));
    } else if !scores.fit(by_label.largest) {
        return estimated_set_by_label(score, row, by_label, out, &mut scratch.scores);
    } else {
        let near = &mut scratch.near;
        scores.gather(by_label.limits, by_label.largest, near, out);
        if order == Order::Max {
            // The score is the gap.
            let within = |label: &u32| row.max() - row.logit(*label) <= thresholds[*label as usize];
            out.extend(near.labels().iter().filter(|label| within(label)));
        } else if !scores.settle(thresholds, near, MOST_OPEN, |label| score.score(row, label), out) {
            // Estimates in double precision leave fewer open.
            out.truncate(start);
            return estimated_set_by_label(score, row, by_label, out, &mut scratch.scores);
        }
    }
    sort_best_first(row, &mut out[start..]);
}
