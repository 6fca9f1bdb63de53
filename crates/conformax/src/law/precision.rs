//! `rows_for_precision`: how many calibration rows buy a given precision of coverage.
//!
//! The rank is an integer, so expected coverage is a saw-tooth over `1 − α` and precision gains and loses a little as
//! rows are added. Two facts tame it. The mass of a window under Beta(`a`, `b`) rises and then falls in `a`, in `b` and
//! along `a + b = const` (powers of `t` and of `1 − t` are totally positive kernels), so on a stretch of any of these
//! kinds the worst is at an end. And the envelope of the saw-tooth, a real rank from `(n + 1)(1 − α)` to one more, has
//! no teeth.

use super::beta::{Beta, Point};
use super::{CoverageLaw, at_most, first_where};
use crate::{Alpha, Error, Result, conformal_rank};

/// Beyond this no one calibrates, and sums of counts stay exact.
const MOST_ROWS: u64 = 1_000_000_000_000;

/// Calibration rows from which on coverage lies within `precision` of `1 − α` with `probability`.
///
/// This is the smallest `n` such that `n` rows and any larger number all keep the statement; because the rank is an
/// integer, some smaller numbers may keep it too. The threshold is finite from there on: full sets for want of rows do
/// not count as precise.
///
/// ```
/// use conformax::{Alpha, CoverageLaw, rows_for_precision};
/// let alpha = Alpha::new(0.1)?;
/// let n = rows_for_precision(alpha, 0.01, 0.95)?;
/// assert_eq!(n, 3450);
/// let law = CoverageLaw::at_level(n, alpha);
/// assert!(law.cdf(0.91) - law.cdf(0.89) >= 0.95);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn rows_for_precision(alpha: Alpha, precision: f64, probability: f64) -> Result<u64> {
    if !(probability > 0.0 && probability < 1.0) {
        return Err(Error::Probability(probability));
    }
    if !(precision > 0.0 && precision < 1.0) {
        return Err(Error::Precision(precision));
    }
    let plan = Plan { alpha, precision, outside: 1.0 - probability };
    let enough = plan.enough_for_any_rank().ok_or(Error::Parameter {
        name: "precision",
        wanted: "within reach of 10^12 calibration rows",
        got: precision,
    })?;
    Ok(plan.fewest(enough))
}

#[derive(Clone, Copy)]
struct Plan {
    alpha: Alpha,
    precision: f64,
    /// The probability allowed outside the window.
    outside: f64,
}

impl Plan {
    /// Rows at which even the worst real rank keeps the statement, or `None` beyond [`MOST_ROWS`].
    fn enough_for_any_rank(self) -> Option<u64> {
        // With a few dozen expected ranks on either side the Beta is close enough to its limit for the envelope to
        // improve with every row; below, every stretch is looked at anyway.
        let mut high = (32.0 / self.alpha.value().min(self.alpha.confidence())).ceil() as u64;
        let mut low = high;
        while high <= MOST_ROWS && !self.any_rank_holds(high) {
            low = high;
            high *= 2;
        }
        (high <= MOST_ROWS).then(|| first_where(low, high, |n| self.any_rank_holds(n)))
    }

    /// Steps down from `n`, where the statement holds, to just above the last number of rows where it does not.
    fn fewest(self, mut n: u64) -> u64 {
        let floor = self.alpha.rows_needed();
        loop {
            if !self.holds(n) {
                return n + 1;
            }
            let start = self.stretch_start(n).max(floor);
            if !self.holds(start) {
                return first_where(start, n, |n| self.holds(n));
            }
            if start == floor {
                return floor;
            }
            n = start - 1;
        }
    }

    /// The least number of rows from which either the rank or the scores above it stay as many as with `n`.
    fn stretch_start(self, n: u64) -> u64 {
        let rank = |n: u64| conformal_rank(n, self.alpha).unwrap_or(n + 1);
        let above = |n: u64| n + 1 - rank(n);
        let same_rank = first_where(0, n, |fewer| rank(fewer) >= rank(n));
        let same_above = first_where(0, n, |fewer| above(fewer) >= above(n));
        same_rank.min(same_above)
    }

    fn any_rank_holds(self, n: u64) -> bool {
        let (a, b) = ((n + 1) as f64 * self.alpha.confidence(), (n + 1) as f64 * self.alpha.value());
        self.holds_under(Beta { a, b }) && self.holds_under(Beta { a: a + 1.0, b: b - 1.0 })
    }

    fn holds(self, n: u64) -> bool {
        CoverageLaw::at_level(n, self.alpha).beta().is_some_and(|beta| self.holds_under(beta))
    }

    fn holds_under(self, beta: Beta) -> bool {
        let (promise, alpha) = (self.alpha.confidence(), self.alpha.value());
        let low = Point { x: promise - self.precision, y: alpha + self.precision };
        let high = Point { x: promise + self.precision, y: alpha - self.precision };
        at_most(beta.tails(low).lower + beta.tails(high).upper, self.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same number by asking every number of rows up to `most`.
    fn by_scan(alpha: f64, precision: f64, probability: f64, most: u64) -> u64 {
        let alpha = Alpha::new(alpha).unwrap();
        let plan = Plan { alpha, precision, outside: 1.0 - probability };
        let floor = alpha.rows_needed();
        (floor..=most).rev().find(|&n| !plan.holds(n)).map_or(floor, |last| last + 1)
    }

    #[test]
    fn agrees_with_scanning() {
        for alpha in [0.001, 0.01, 0.05, 0.1, 0.13, 0.18, 0.37, 0.5, 0.7, 0.9, 0.99] {
            for precision in [0.02, 0.05, 0.1, 0.3, 0.7] {
                for probability in [0.01, 0.3, 0.8, 0.95, 0.999] {
                    let got = rows_for_precision(Alpha::new(alpha).unwrap(), precision, probability).unwrap();
                    let most = (2 * got).max(1_500);
                    let want = by_scan(alpha, precision, probability, most);
                    assert_eq!(got, want, "alpha {alpha}, precision {precision}, probability {probability}");
                }
            }
        }
    }

    #[test]
    fn counts_a_tie_as_kept() {
        // Two rows give Beta(2, 1), which lies below 0.01 with probability 1e-4 exactly.
        assert_eq!(rows_for_precision(Alpha::new(0.49).unwrap(), 0.5, 0.9999), Ok(2));
    }

    #[test]
    fn reaches_a_billion_rows() {
        let n = rows_for_precision(Alpha::new(0.1).unwrap(), 2e-5, 0.95).unwrap();
        // 1.96² · 0.09 / 4e-10, the normal limit.
        assert!((n as f64 / 864_330_000.0 - 1.0).abs() < 1e-4, "{n}");
    }

    #[test]
    fn rejects_what_is_no_precision_or_probability() {
        let alpha = Alpha::new(0.1).unwrap();
        for bad in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
            assert!(matches!(rows_for_precision(alpha, bad, 0.9), Err(Error::Precision(_))), "{bad}");
            assert!(matches!(rows_for_precision(alpha, 0.1, bad), Err(Error::Probability(_))), "{bad}");
        }
        assert!(matches!(rows_for_precision(alpha, 1e-9, 0.9), Err(Error::Parameter { .. })));
        assert!(rows_for_precision(Alpha::new(1e-300).unwrap(), 0.1, 0.9).is_err());
    }
}
