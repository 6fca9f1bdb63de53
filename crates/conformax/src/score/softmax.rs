//! Softmax of a row, term by term, for the scores that read it.

use crate::kernel::{exp_sum, math};
use crate::{Logit, Row};

/// What the terms of a row's softmax need.
#[derive(Clone, Copy)]
pub(super) struct Softmax {
    pub(super) max: f64,
    pub(super) sum: f64,
}

impl Softmax {
    #[inline]
    pub(super) fn of<T: Logit>(row: Row<'_, T>) -> Self {
        Self { max: row.max(), sum: exp_sum(row.logits(), row.max()) }
    }

    /// The probability of a label with this logit.
    #[inline]
    pub(super) fn p(self, logit: f64) -> f64 {
        math::exp_nonpositive(logit - self.max) / self.sum
    }

    /// How far below the maximum a label's logit may lie for its probability to reach `floor`, with slack on
    /// the safe side: whoever asks checks each label by the score's definition.
    #[inline]
    pub(super) fn distance_of(self, floor: f64) -> f64 {
        if floor > 0.0 { 1e-9 - math::ln(floor * self.sum) } else { f64::INFINITY }
    }
}

/// Appends softmax renormalised over `set`, best first; an empty set appends nothing.
pub(crate) fn softmax_over<T: Logit>(row: Row<'_, T>, set: &[u32], out: &mut Vec<f64>) {
    let Some(&top) = set.first() else { return };
    let start = out.len();
    // The first of a set is its best, so no exponent is positive. A set of −∞ alone cannot be: the top label
    // of a row is finite and precedes them.
    let top = row.logit(top);
    out.extend(set.iter().map(|label| math::exp_nonpositive(row.logit(*label) - top)));
    let sum: f64 = out[start..].iter().sum();
    for p in &mut out[start..] {
        *p /= sum;
    }
}
