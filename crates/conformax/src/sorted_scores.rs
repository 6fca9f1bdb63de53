//! `SortedScores`: calibration scores in order, from which thresholds and p-values are read.
//!
//! The threshold at α is the r-th smallest, `r = ⌈(n + 1)(1 − α)⌉`; a p-value is `(#{i : s_i ≥ s} + 1)/(n + 1)`, and a
//! label is in the set at α exactly when its p-value exceeds α, a comparison of integers.

use std::sync::Arc;

use crate::level::{Level, conformal_rank};
use crate::{Alpha, Error, Result};

/// Calibration scores in ascending order. A clone shares them.
///
/// ```
/// use conformax::{Alpha, SortedScores};
/// let scores = SortedScores::new(vec![0.5, 0.1, 0.9, 0.3])?;
/// assert_eq!(scores.as_slice(), [0.1, 0.3, 0.5, 0.9]);
/// assert_eq!(scores.threshold(Alpha::new(0.4)?), 0.5);
/// assert_eq!(scores.p_value(0.5).value(), 0.6);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SortedScores(Arc<Vec<f64>>);

impl SortedScores {
    /// Sorts the scores of the calibration rows. An error where there is none, or one is no number.
    pub fn new(scores: Vec<f64>) -> Result<Self> {
        if scores.is_empty() {
            return Err(Error::NoCalibrationRows);
        }
        Self::of_any(scores)
    }

    /// The same, where there may be none: of a group without rows.
    pub(crate) fn of_any(mut scores: Vec<f64>) -> Result<Self> {
        if let Some(row) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::ScoreIsNan { row: row as u64 });
        }
        // −0 would sort below 0 while being equal to it.
        scores.iter_mut().for_each(|score| *score += 0.0);
        scores.sort_unstable_by(f64::total_cmp);
        scores.shrink_to_fit();
        Ok(Self(Arc::new(scores)))
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.0.len() as u64
    }

    /// The scores, ascending.
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// What these rows promise at a level.
    pub fn level(&self, alpha: Alpha) -> Level {
        Level::new(self.n(), alpha)
    }

    /// The threshold at a miscoverage level: the score of the conformal rank, or +∞ where there are too few rows.
    pub fn threshold(&self, alpha: Alpha) -> f64 {
        self.at(self.level(alpha))
    }

    /// The threshold of a level of these very rows.
    pub fn at(&self, level: Level) -> f64 {
        let score = level.rank().and_then(|rank| self.0.get(rank as usize - 1));
        score.copied().unwrap_or(f64::INFINITY)
    }

    /// The threshold by which tuning judges a candidate: as [`threshold`](Self::threshold), but never beyond the
    /// largest score, since a candidate must not win or lose by too few rows.
    ///
    /// Public for whoever judges candidates on scores shared between many splits; everybody else uses `Tuner`.
    pub fn judging_threshold(&self, alpha: Alpha) -> f64 {
        let rank = conformal_rank(self.n(), alpha).unwrap_or(self.n());
        match rank {
            0 => f64::INFINITY,
            rank => self.0[rank as usize - 1],
        }
    }

    /// How many scores equal this one.
    pub fn ties(&self, score: f64) -> u64 {
        let below = self.0.partition_point(|other| *other < score);
        let not_above = self.0.partition_point(|other| *other <= score);
        (not_above - below) as u64
    }

    /// The largest score below +∞.
    pub(crate) fn largest_finite(&self) -> Option<f64> {
        let finite = self.0.partition_point(|score| *score < f64::INFINITY);
        finite.checked_sub(1).map(|last| self.0[last])
    }

    /// The p-value of a score; one that is no number has the p-value of an impossible label.
    pub fn p_value(&self, score: f64) -> PValue {
        if score.is_nan() {
            return PValue::impossible(self.n());
        }
        self.p_value_at(self.0.partition_point(|calibration| *calibration < score))
    }

    /// The p-value of a score that so many are below.
    #[inline(always)]
    pub(crate) fn p_value_at(&self, below: usize) -> PValue {
        PValue { count: u128::from(self.n() - below as u64) + 1, of: u128::from(self.n()) + 1 }
    }

    /// `(#{s_i > s} + v·(#{s_i = s} + 1))/(n + 1)`: exactly uniform for a fresh row if `v` is.
    pub fn smoothed_p_value(&self, score: f64, v: f64) -> f64 {
        let not_above = self.0.partition_point(|calibration| *calibration <= score);
        let (ties, above) = (self.ties(score), self.0.len() - not_above);
        (above as f64 + v * (ties as f64 + 1.0)) / (self.n() as f64 + 1.0)
    }
}

/// Where a score falls among sorted ones, by a table on its leading bits: the bits of positive numbers rise with them.
pub(crate) struct Places<'a> {
    scores: &'a [f64],
    /// Of each cell, the place of its first score or of the next after it; one more for the end.
    starts: Vec<usize>,
    /// The bits of the first cell, and how many bits a cell leaves out.
    first: u64,
    shift: u32,
}

impl<'a> Places<'a> {
    /// So few scores are searched as fast.
    const FEW: usize = 32;

    pub(crate) fn new(scores: &'a [f64]) -> Self {
        let start = scores.partition_point(|score| *score <= 0.0);
        let end = scores.partition_point(|score| *score < f64::INFINITY);
        let positive = &scores[start..end.max(start)];
        let (starts, first, shift) = match positive {
            [lowest, .., highest] if positive.len() > Self::FEW => {
                let cells = |shift: u32| (highest.to_bits() >> shift) - (lowest.to_bits() >> shift);
                let mut shift = 40;
                while cells(shift) >= 4 * positive.len() as u64 {
                    shift += 1;
                }
                let first = lowest.to_bits() >> shift;
                let mut place = start;
                let cell_starts = (0..=cells(shift)).map(|cell| {
                    while place < end && (scores[place].to_bits() >> shift) - first < cell {
                        place += 1;
                    }
                    place
                });
                let mut starts: Vec<usize> = cell_starts.collect();
                starts.push(end);
                (starts, first, shift)
            }
            _ => (Vec::new(), 0, 0),
        };
        Self { scores, starts, first, shift }
    }

    /// How many scores are below this one.
    #[inline(always)]
    pub(crate) fn below(&self, score: f64) -> usize {
        if self.starts.is_empty() || !(score > 0.0) {
            return self.scores.partition_point(|other| *other < score);
        }
        let cell = (score.to_bits() >> self.shift).saturating_sub(self.first) as usize;
        let cell = cell.min(self.starts.len() - 2);
        let (start, end) = (self.starts[cell], self.starts[cell + 1]);
        match &self.scores[start..end] {
            [] => start,
            [only] => start + usize::from(*only < score),
            several => start + several.partition_point(|other| *other < score),
        }
    }

    /// The scores on either side of a place: whatever is above the first and not above the second has that place.
    #[inline(always)]
    pub(crate) fn around(&self, below: usize) -> (f64, f64) {
        let before = below.checked_sub(1).map_or(f64::NEG_INFINITY, |last| self.scores[last]);
        (before, self.scores.get(below).copied().unwrap_or(f64::INFINITY))
    }

    /// How many scores are below every number from `least` to `most`, unless that depends on which.
    #[inline(always)]
    pub(crate) fn below_all(&self, least: f64, most: f64) -> Option<usize> {
        let below = self.below(least);
        self.scores.get(below).is_none_or(|next| *next >= most).then_some(below)
    }
}

/// A share of the calibration rows and the row itself, kept as integers: the smallest α at which the label leaves the
/// set.
///
/// ```
/// use conformax::{Alpha, PValue};
/// let p = PValue::new(5, 50);
/// assert_eq!(p.value(), 0.1);
/// assert!(!p.in_set(Alpha::new(0.1)?)); // p > α fails at equality
/// assert!(p.in_set(Alpha::new(0.09999)?));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PValue {
    /// Calibration scores at least as large, and one for the row itself; 0 for a label that can be in no set. Where
    /// rows have weights, units of weight.
    pub count: u128,
    /// Calibration rows, and one for the row itself.
    pub of: u128,
}

impl PValue {
    /// So many of so many, the row itself among them.
    pub fn new(count: u128, of: u128) -> Self {
        Self { count, of }
    }

    /// Of a label that is in no set, whatever the level.
    pub(crate) fn impossible(n: u64) -> Self {
        Self { count: 0, of: u128::from(n) + 1 }
    }

    /// The nearest `f64`, so that a p-value of 0.3 is the number that 0.3 is read as.
    pub fn value(self) -> f64 {
        const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
        if self.of <= EXACT {
            return self.count as f64 / self.of as f64;
        }
        nearest_ratio(self.count, self.of)
    }

    /// Whether `p > α`, exactly: whether the label is in the set at level α.
    pub fn in_set(self, alpha: Alpha) -> bool {
        // For integers, count > of·α is count > ⌊of·α⌋.
        self.count > alpha.floor_of(self.of)
    }
}

/// `count/of`, rounded once, for `count ≤ of < 2¹²⁷`: the digits of a division by hand, and whether anything is left.
fn nearest_ratio(count: u128, of: u128) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let (mut rest, mut exponent) = (count, 0);
    while rest < of {
        rest <<= 1;
        exponent -= 1;
    }
    // One more digit than a double holds.
    let mut digits = 0_u64;
    for _ in 0..=f64::MANTISSA_DIGITS {
        digits = digits << 1 | u64::from(rest >= of);
        rest = if rest >= of { rest - of } else { rest } << 1;
    }
    // A digit that stands for all that is left makes the conversion round as the quotient would.
    let digits = digits << 1 | u64::from(rest > 0);
    let unit = exponent - f64::MANTISSA_DIGITS as i32 - 1;
    digits as f64 * f64::from_bits(((1023 + unit) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_once() {
        // Tenths of a sum whose units are not tenths: dividing two rounded numbers gives 0.30000000000000004.
        for unit in [(1_u128 << 56) + 3, 0x0019_9999_9999_999a << 40, (1 << 100) + 1] {
            for tenths in 0..=10_u32 {
                let p = PValue { count: u128::from(tenths) * unit, of: 10 * unit };
                assert_eq!(p.value(), f64::from(tenths) / 10.0, "{tenths} of ten {unit}");
            }
        }
        // Halfway between two doubles, to the even one, and a little above, up.
        let of = 1_u128 << 100;
        let half = of / 2 + (of >> 54);
        assert_eq!(PValue { count: half, of }.value(), 0.5);
        assert_eq!(PValue { count: half + 1, of }.value(), 0.5_f64.next_up());
    }
}
