//! The γ-entmax score: `s(z, y) = ‖(z − z_y)₊‖_δ`, `δ = 1/(γ − 1)`.
//!
//! Calibrating it picks a temperature: `{y : s(z, y) ≤ q}` is the support of `γ-entmax(βz)` at `β = δ/q`, plus
//! labels that sit on the boundary. No ranking is needed and ties need no rule.

use super::{Score, softmax_over, sort_best_first};
use crate::activation::normalize_gaps;
use crate::kernel::{Order, gap_norm, math, shortlist};
use crate::{Gamma, Logit, Row};

/// γ = 1 is the log-margin `max z − z_y`, 1.5 the Euclidean norm of the gaps, 2 (sparsemax) their sum.
///
/// ```
/// use conformax::{EntmaxScore, Gamma, Row, Score};
/// let row = Row::new(&[4.0_f32, 3.0, 0.0])?;
/// assert_eq!(EntmaxScore { gamma: Gamma::SOFTMAX }.score(row, 2), 4.0);
/// assert_eq!(EntmaxScore { gamma: Gamma::ENTMAX15 }.score(row, 2), 5.0);
/// assert_eq!(EntmaxScore { gamma: Gamma::SPARSEMAX }.score(row, 2), 7.0);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EntmaxScore {
    /// Index of the family.
    pub gamma: Gamma,
}

impl Score for EntmaxScore {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        let logit = row.logit(label);
        if logit == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        gap_norm(row.logits(), row.max(), logit, Order::from(self.gamma))
    }

    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        // s ≥ max z − z_y for every γ, so nobody further down can be in.
        shortlist(row.logits(), row.max(), threshold, out);
        sort_best_first(row, &mut out[start..]);
        if threshold == f64::INFINITY || out.len() - start <= 1 {
            return;
        }
        let kept = match Order::from(self.gamma) {
            Order::Max => return,
            Order::One => self.walk(row, threshold, &mut out[start..], |sums| sums.gaps, threshold),
            Order::Two => {
                self.walk(row, threshold, &mut out[start..], |sums| sums.squares, threshold * threshold)
            }
            Order::Other { delta, inverse } => self.search(row, threshold, &mut out[start..], delta, inverse),
        };
        out.truncate(start + kept);
    }

    fn temperature(&self, threshold: f64) -> Option<f64> {
        (self.gamma.delta() < f64::INFINITY).then(|| self.gamma.delta() / threshold)
    }

    /// The activation itself at the calibrated temperature: `p_j = ((z_j − t)₊/q)^δ`, `t` such that they sum to 1.
    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        let start = out.len();
        if self.gamma == Gamma::SOFTMAX {
            softmax_over(row, set, out);
        } else if threshold > 0.0 && threshold < f64::INFINITY {
            out.extend(set.iter().map(|label| (row.max() - row.logit(*label)) / threshold));
            normalize_gaps(&mut out[start..], self.gamma);
        } else {
            // β = ∞ spreads the mass over the top label and its ties, which are the set; β = 0 over all that
            // is possible.
            out.extend(set.iter().map(|label| f64::from(row.logit(*label) > f64::NEG_INFINITY)));
            let count: f64 = out[start..].iter().sum();
            out[start..].iter_mut().for_each(|p| *p /= count);
        }
    }
}

/// How far, relatively, an estimate of a score may be from the score without deciding anything: far above the
/// rounding of either, for any number of classes.
const SLACK: f64 = 1e-8;

/// Thresholds whose squares are safe to compare; outside, every label is scored.
const ESTIMATES_ARE_SAFE: std::ops::Range<f64> = 1e-140..1e140;

/// Sums of the gaps and of their squares over the labels ahead, updated down the ranking by adding
/// non-negative terms only.
struct GapSums {
    gaps: f64,
    squares: f64,
    ahead: f64,
    logit: f64,
}

impl GapSums {
    #[inline]
    fn step(&mut self, logit: f64) {
        let gap = self.logit - logit;
        self.squares += 2.0 * gap * self.gaps + self.ahead * gap * gap;
        self.gaps += self.ahead * gap;
        self.ahead += 1.0;
        self.logit = logit;
    }
}

impl EntmaxScore {
    /// Keeps the labels of the sorted shortlist that are in, and says how many; `estimate` is compared with
    /// `limit`, and the score itself decides wherever they are close.
    fn walk<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut [u32],
        estimate: impl Fn(&GapSums) -> f64,
        limit: f64,
    ) -> usize {
        if threshold > 0.0 && !ESTIMATES_ARE_SAFE.contains(&threshold) {
            return self.keep_by_score(row, threshold, labels, 0);
        }
        let mut sums = GapSums { gaps: 0.0, squares: 0.0, ahead: 0.0, logit: row.max() };
        let mut kept = 0;
        for place in 0..labels.len() {
            let label = labels[place];
            sums.step(row.logit(label));
            let estimate = estimate(&sums);
            if estimate > limit * (1.0 + SLACK) {
                break;
            }
            if estimate <= limit * (1.0 - SLACK) || self.score(row, label) <= threshold {
                labels[kept] = label;
                kept += 1;
            }
        }
        kept
    }

    /// As `walk` where no recurrence gives the next estimate from the last: bisects down the ranking.
    fn search<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut [u32],
        delta: f64,
        inverse: f64,
    ) -> usize {
        let estimate = |labels: &[u32], place: usize| {
            let logit = row.logit(labels[place]);
            let largest = row.max() - logit;
            if largest == 0.0 {
                return 0.0;
            }
            let ahead = labels[..place]
                .iter()
                .map(|label| math::pow_unit((row.logit(*label) - logit) / largest, delta));
            largest * math::pow(ahead.sum::<f64>(), inverse)
        };
        let clearly_in = |labels: &[u32], place: usize| estimate(labels, place) <= threshold * (1.0 - SLACK);
        let (mut inside, mut end) = (0, labels.len());
        while inside < end {
            let middle = usize::midpoint(inside, end);
            if clearly_in(labels, middle) { inside = middle + 1 } else { end = middle }
        }
        let mut open = inside;
        while open < labels.len() && estimate(labels, open) <= threshold * (1.0 + SLACK) {
            open += 1;
        }
        self.keep_by_score(row, threshold, &mut labels[..open], inside)
    }

    /// Keeps the first `inside` labels and, of the others, those whose score says so.
    fn keep_by_score<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut [u32],
        inside: usize,
    ) -> usize {
        let mut kept = inside;
        for place in inside..labels.len() {
            if self.score(row, labels[place]) <= threshold {
                labels[kept] = labels[place];
                kept += 1;
            }
        }
        kept
    }
}
