//! Intervals around what was measured: how far a share or a mean of so many rows can be trusted.

use conformax::CoverageLaw;

/// Confidence of every interval that is printed.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The exact (Clopper–Pearson) interval of a share of `hits` in `n`.
///
/// Its ends are quantiles of Beta distributions, the same that coverage follows.
pub(crate) fn interval(hits: u64, n: u64) -> Option<(f64, f64)> {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let cut = |rank: u64, at: f64| CoverageLaw::new(n, Some(rank)).ok().map(|law| law.quantile(at));
    if n == 0 {
        return None;
    }
    let low = if hits == 0 { 0.0 } else { cut(hits, tail)? };
    let high = if hits == n { 1.0 } else { cut(hits + 1, 1.0 - tail)? };
    Some((low, high))
}

/// The normal interval of a mean, from the sum and the sum of squares of whole numbers.
pub(crate) fn interval_of_mean(sum: u64, squares: u128, n: u64) -> Option<(f64, f64)> {
    if n < 2 {
        return None;
    }
    let (rows, mean) = (n as f64, sum as f64 / n as f64);
    // n·Σx² − (Σx)² is a whole number, so nothing cancels.
    let spread = u128::from(n) * squares - u128::from(sum) * u128::from(sum);
    let error = (spread as f64 / (rows * (rows - 1.0)) / rows).sqrt();
    Some(((mean - NORMAL * error).max(0.0), mean + NORMAL * error))
}

/// The normal distribution lies within this many deviations of its mean with the confidence above.
const NORMAL: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_printed_tables() {
        // Clopper and Pearson 1934: 95 % for 2 of 10 is 0.025 to 0.556.
        let (low, high) = interval(2, 10).unwrap();
        assert!((low - 0.025_210_7).abs() < 1e-6 && (high - 0.556_095_5).abs() < 1e-6, "{low} {high}");
        assert_eq!(interval(0, 10).unwrap().0, 0.0);
        assert_eq!(interval(10, 10).unwrap().1, 1.0);
        assert_eq!(interval(0, 0), None);
    }

    #[test]
    fn mean_of_equal_sizes_is_certain() {
        assert_eq!(interval_of_mean(30, 90, 10), Some((3.0, 3.0)));
        let (low, high) = interval_of_mean(3, 5, 2).unwrap(); // 1 and 2: deviation 1/√2
        assert!((high - low - 2.0 * NORMAL * 0.5).abs() < 1e-12);
    }
}
