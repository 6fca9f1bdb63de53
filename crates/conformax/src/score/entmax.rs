//! The γ-entmax score: `s(z, y) = ‖(z − z_y)₊‖_δ`, `δ = 1/(γ − 1)`.
//!
//! Calibrating it picks a temperature: `{y : s(z, y) ≤ q}` is the support of `γ-entmax(βz)` at `β = δ/q`, plus
//! labels that sit on the boundary. No ranking is needed and ties need no rule.

use super::ranking::Ranking;
use super::{Score, softmax_over};
use crate::activation::normalize_gaps;
use crate::kernel::{Order, gap_norm, keep_lanes, math, shortlist};
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
        // s ≥ max z − z_y for every γ, so nobody further down can be in. For γ ≥ 2 most of those go too: several
        // labels ahead add up to more than any gap.
        let bands = [0.4 * threshold, threshold];
        let whole = Ranking::new(row, out, &bands[1..]);
        match Order::from(self.gamma) {
            Order::Max => whole.finish_all(),
            _ if threshold == f64::INFINITY => whole.finish_all(),
            // No score is negative. Below, the top label's is taken to be within the threshold.
            _ if threshold < 0.0 => {}
            _ if threshold > 0.0 && !ESTIMATES_ARE_SAFE.contains(&threshold) => {
                self.keep_by_score(whole, threshold, 0, usize::MAX);
            }
            Order::One => {
                self.walk(Ranking::new(row, out, &bands), threshold, |sums| sums.gaps, threshold);
            }
            Order::Two => self.walk(whole, threshold, |sums| sums.squares, threshold * threshold),
            Order::Other { delta, inverse } => {
                let ranking = if delta < 1.0 { Ranking::new(row, out, &bands) } else { whole };
                self.search(ranking, threshold, delta, inverse);
            }
        }
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        let start = labels.len();
        self.set_into(row, threshold, labels);
        let worst = labels[start..].iter().rev().map(|label| row.logit(*label));
        let Some(worst) = worst.into_iter().find(|logit| *logit > f64::NEG_INFINITY) else { return };
        // Labels that are not ahead add nothing, so the others alone give the same bits, in less time.
        let mut ahead = Vec::new();
        shortlist(row.logits(), row.max(), row.max() - worst, &mut ahead);
        let ahead = keep_lanes(row.logits(), &ahead);
        let order = Order::from(self.gamma);
        let mut last = (f64::INFINITY, 0.0);
        for label in &labels[start..] {
            let logit = row.logit(*label);
            if logit == f64::NEG_INFINITY {
                last = (logit, f64::INFINITY);
            } else if logit != last.0 {
                last = (logit, gap_norm(&ahead, row.max(), logit, order));
            }
            scores.push(last.1);
        }
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
    /// Keeps the labels that are in: `estimate` is compared with `limit`, and the score itself decides wherever
    /// they are close.
    fn walk<T: Logit>(
        &self,
        mut ranking: Ranking<'_, '_, T>,
        threshold: f64,
        estimate: impl Fn(&GapSums) -> f64,
        limit: f64,
    ) {
        let row = ranking.row();
        let mut sums = GapSums { gaps: 0.0, squares: 0.0, ahead: 0.0, logit: row.max() };
        let (mut kept, mut place) = (0, 0);
        while let Some(label) = ranking.get(place) {
            sums.step(row.logit(label));
            let estimate = estimate(&sums);
            if estimate > limit * (1.0 + SLACK) {
                break;
            }
            if estimate <= limit * (1.0 - SLACK) || self.score(row, label) <= threshold {
                ranking.keep(&mut kept, label);
            }
            place += 1;
        }
        ranking.finish(kept);
    }

    /// As `walk` where no recurrence gives the next estimate from the last: doubles down the ranking until a
    /// label is not clearly in, and bisects.
    fn search<T: Logit>(&self, mut ranking: Ranking<'_, '_, T>, threshold: f64, delta: f64, inverse: f64) {
        let row = ranking.row();
        let estimate = |ranking: &Ranking<'_, '_, T>, place: usize| {
            let ranked = ranking.first(place + 1);
            let logit = row.logit(ranked[place]);
            let largest = row.max() - logit;
            if largest == 0.0 {
                return 0.0;
            }
            let ratio = |label: &u32| (row.logit(*label) - logit) / largest;
            let sum: f64 = ranked[..place].iter().map(|label| math::pow_unit(ratio(label), delta)).sum();
            largest * math::pow(sum, inverse)
        };
        let limit = threshold * (1.0 - SLACK);
        let (mut inside, mut outside) = (1, 1); // The top label scores 0.
        while ranking.get(outside).is_some() && estimate(&ranking, outside) <= limit {
            (inside, outside) = (outside + 1, 2 * outside);
            while outside > inside && ranking.get(outside).is_none() {
                outside -= 1;
            }
        }
        while inside < outside {
            let middle = usize::midpoint(inside, outside);
            if estimate(&ranking, middle) <= limit { inside = middle + 1 } else { outside = middle }
        }
        let mut open = inside;
        while ranking.get(open).is_some() && estimate(&ranking, open) <= threshold * (1.0 + SLACK) {
            open += 1;
        }
        self.keep_by_score(ranking, threshold, inside, open);
    }

    /// Keeps the first `inside` labels and, of those up to `open`, the ones whose score says so.
    fn keep_by_score<T: Logit>(
        &self,
        mut ranking: Ranking<'_, '_, T>,
        threshold: f64,
        inside: usize,
        open: usize,
    ) {
        let row = ranking.row();
        let mut kept = inside;
        let mut place = inside;
        while let Some(label) = ranking.get(place).filter(|_| place < open) {
            if self.score(row, label) <= threshold {
                ranking.keep(&mut kept, label);
            }
            place += 1;
        }
        ranking.finish(kept);
    }
}
