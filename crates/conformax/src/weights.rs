//! Weights of rows: calibration scores that count for more or less, where the rows to come differ from those that
//! calibrate.
//!
//! `q(x)` is the smallest calibration score `t` with `Σ_{s_i ≤ t} w_i ≥ (1 − α)(Σ w_i + w(x))`, else +∞. Sums are
//! exact: weights are taken as multiples of a power of two that is at most 2⁻⁵² of the largest (2⁵² rows or fewer), so
//! their order does not matter, and with equal weights of any size the rule is that of split conformal prediction. A
//! weight whose bits reach below the unit, which takes one of less than 2⁻⁷ of the largest with 2⁵² rows, or of less
//! than 2⁻²⁹ with a billion, is rounded to it.

use std::sync::Arc;

use crate::sorted_scores::PValue;
use crate::{Alpha, Error, Result};

/// Bits that the sum of all weights may take: enough to be exact, and room for the weight of a row to come.
const SUM_BITS: i32 = 112;

/// A weight beyond this many units is taken for this many: thresholds are infinite long before.
const MOST_UNITS: u128 = 1 << 126;

/// The error of a weight that is none: NaN, infinite or negative.
pub(crate) fn check_weights(weights: &[f64]) -> Result<()> {
    match weights.iter().position(|weight| !(0.0..f64::INFINITY).contains(weight)) {
        Some(row) => Err(Error::Weight { row: row as u64, value: weights[row] }),
        None => Ok(()),
    }
}

/// `value · 2^−unit`, rounded to the nearest integer.
fn in_units(value: f64, unit: i32) -> u128 {
    let (digits, exponent) = parts(value);
    let shift = exponent - unit;
    match u32::try_from(shift) {
        Ok(up) if up < 73 => u128::from(digits) << up,
        Ok(_) if digits == 0 => 0,
        Ok(_) => MOST_UNITS,
        Err(_) => {
            let down = shift.unsigned_abs();
            if down > 54 { 0 } else { (u128::from(digits) + (1 << (down - 1))) >> down }
        }
    }
    .min(MOST_UNITS)
}

/// A positive number as `digits · 2^exponent`.
pub(crate) fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (biased, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

/// Calibration scores in ascending order, each with the weight of its row.
///
/// ```
/// use conformax::{Alpha, WeightedScores};
/// let scores = WeightedScores::new(vec![(0.5, 0.1), (0.1, 0.1), (0.9, 0.1), (0.3, 0.1)])?;
/// assert_eq!(scores.threshold(Alpha::new(0.4)?, 0.1), 0.5); // as without weights
/// assert_eq!(scores.threshold(Alpha::new(0.4)?, 3.0), f64::INFINITY); // a row that outweighs them all
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedScores {
    scores: Vec<f64>,
    weights: Vec<f64>,
    /// The sum of the weights up to each score, in units of `2^unit`.
    through: Vec<u128>,
    unit: i32,
}

impl WeightedScores {
    /// Puts the scores of calibration rows in order, each with its row's weight. An error where there is no row, a
    /// score is NaN, or no weight is positive.
    pub fn new(mut rows: Vec<(f64, f64)>) -> Result<Self> {
        if rows.is_empty() {
            return Err(Error::NoCalibrationRows);
        }
        if let Some(row) = rows.iter().position(|(score, _)| score.is_nan()) {
            return Err(Error::ScoreIsNan { row: row as u64 });
        }
        let mut largest = 0.0_f64;
        for (row, (score, weight)) in (0..).zip(&mut rows) {
            if !(0.0..f64::INFINITY).contains(weight) {
                return Err(Error::Weight { row, value: *weight });
            }
            // −0 would sort below 0 while being equal to it.
            (*score, *weight) = (*score + 0.0, *weight + 0.0);
            largest = largest.max(*weight);
        }
        if largest == 0.0 {
            return Err(Error::NoWeight);
        }
        rows.sort_unstable_by(|(a, v), (b, w)| a.total_cmp(b).then(v.total_cmp(w)));
        let (digits, exponent) = parts(largest);
        let log_largest = exponent + (64 - digits.leading_zeros() as i32);
        let log_rows = 64 - (rows.len() as u64).leading_zeros() as i32;
        // Nothing is smaller than the smallest number, in which all others are whole.
        let unit = (log_largest + log_rows - SUM_BITS).max(-1074);
        let (scores, weights): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
        let sums = weights.iter().scan(0, |sum, weight| {
            *sum += in_units(*weight, unit);
            Some(*sum)
        });
        // `scan` might end early and so says no length.
        let mut through = Vec::with_capacity(weights.len());
        through.extend(sums);
        Ok(Self { scores, weights, through, unit })
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.scores.len() as u64
    }

    /// The scores, ascending.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The weight of each score's row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// `(Σw)²/Σw²`: as many rows of equal weight would say as much.
    pub fn effective_rows(&self) -> f64 {
        let largest = self.weights.iter().copied().fold(0.0, f64::max);
        let (sum, squares) = self.weights.iter().fold((0.0, 0.0), |(sum, squares), weight| {
            let share = weight / largest;
            (sum + share, squares + share * share)
        });
        sum * sum / squares
    }

    fn total(&self) -> u128 {
        self.through.last().copied().unwrap_or(0)
    }

    /// The threshold of a row, or of a label, of this weight.
    pub fn threshold(&self, alpha: Alpha, weight: f64) -> f64 {
        let whole = self.total() + in_units(weight, self.unit);
        // A sum of units is at least (1 − α)·whole exactly when it is at least whole − ⌊α·whole⌋.
        let wanted = whole - alpha.floor_of(whole);
        let place = self.through.partition_point(|sum| *sum < wanted);
        self.scores.get(place).copied().unwrap_or(f64::INFINITY)
    }

    /// The share of the weight that is at least as strange as this score, the row's own included: a label is in the set
    /// at α exactly when it exceeds α.
    pub fn p_value(&self, score: f64, weight: f64) -> PValue {
        if score.is_nan() {
            return PValue { count: 0, of: self.total() + in_units(weight, self.unit) };
        }
        self.p_value_at(self.scores.partition_point(|calibration| *calibration < score), weight)
    }

    /// The same of a score that so many are below.
    pub(crate) fn p_value_at(&self, below: usize, weight: f64) -> PValue {
        let of = self.total() + in_units(weight, self.unit);
        let below = below.checked_sub(1).map_or(0, |last| self.through[last]);
        PValue { count: of - below, of }
    }

    /// The largest score below +∞.
    pub(crate) fn largest_finite(&self) -> Option<f64> {
        let finite = self.scores.partition_point(|score| *score < f64::INFINITY);
        finite.checked_sub(1).map(|last| self.scores[last])
    }
}

/// The thresholds of a level, by the weight of the row.
///
/// ```
/// use std::sync::Arc;
/// use conformax::{Alpha, WeightRule, WeightedScores};
/// let scores = WeightedScores::new(vec![(1.0, 2.0), (2.0, 1.0)])?;
/// let rule = WeightRule::new(Alpha::new(0.5)?, Arc::new(scores));
/// assert_eq!((rule.threshold(1.0), rule.threshold(2.0)), (1.0, 2.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WeightRule {
    alpha: Alpha,
    scores: Arc<WeightedScores>,
}

impl WeightRule {
    /// The rule of a level.
    pub fn new(alpha: Alpha, scores: Arc<WeightedScores>) -> Self {
        Self { alpha, scores }
    }

    /// Miscoverage level.
    pub fn alpha(&self) -> Alpha {
        self.alpha
    }

    /// The calibration scores with their weights.
    pub fn scores(&self) -> &Arc<WeightedScores> {
        &self.scores
    }

    /// The threshold of a row of this weight; it grows with the weight.
    #[inline]
    pub fn threshold(&self, weight: f64) -> f64 {
        self.scores.threshold(self.alpha, weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact_and_rounded_where_they_must_be() {
        assert_eq!(in_units(1.0, 0), 1);
        assert_eq!(in_units(0.75, -2), 3);
        assert_eq!(in_units(3.0, 1), 2, "one and a half rounds up");
        assert_eq!(in_units(f64::from_bits(1), -1074), 1);
        assert_eq!(in_units(f64::from_bits(1), -1000), 0);
        assert_eq!(in_units(f64::MAX, -100), MOST_UNITS);
        assert_eq!(in_units(0.0, -1074), 0);
        assert_eq!(in_units(1.0, 60), 0);
    }

    #[test]
    fn equal_weights_of_any_size_give_the_ranks_of_split_conformal() {
        for weight in [0.1, 1.0, 3.0e-310, 1.0e-315, 5.0e-324, 1.0e300, f64::MAX, 1.0 / 3.0] {
            for n in [1_u32, 8, 9, 10, 99, 100, 149] {
                let scores = WeightedScores::new((0..n).map(|i| (f64::from(i), weight)).collect()).unwrap();
                for alpha in ["0.1", "0.18", "0.05", "0.5", "0.99", "0.0000000001"] {
                    let alpha: Alpha = alpha.parse().unwrap();
                    let wanted = crate::conformal_rank(u64::from(n), alpha);
                    let wanted = wanted.map_or(f64::INFINITY, |rank| rank as f64 - 1.0);
                    assert_eq!(scores.threshold(alpha, weight), wanted, "{weight} {n} {alpha}");
                }
            }
        }
    }

    #[test]
    fn a_threshold_grows_with_the_weight_of_the_row() {
        let scores =
            WeightedScores::new((0..50).map(|i| (f64::from(i), f64::from(i % 5))).collect()).unwrap();
        let alpha = Alpha::new(0.1).unwrap();
        let thresholds: Vec<f64> = [0.0, 1.0, 5.0, 10.0, 1e9, f64::MAX]
            .iter()
            .map(|weight| scores.threshold(alpha, *weight))
            .collect();
        assert!(
            thresholds.is_sorted() && thresholds[0] < 49.0 && thresholds[4] == f64::INFINITY,
            "{thresholds:?}"
        );
        assert!((scores.effective_rows() - 100.0 * 100.0 / 300.0).abs() < 1e-9);
    }
}
