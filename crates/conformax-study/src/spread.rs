//! Means over splits: how far they spread, and whether a difference is more than chance.
//!
//! Splits of one data set share its rows, so their mean does not settle however many there are: `deviation / √splits`
//! would call anything clear. The variance of the mean has two parts: which splits were drawn, which more splits
//! average away, and which rows there are, which nothing does. [`Chance`] says what is known of the second.

use crate::results::{Paired, Record, Spread, Verdict};
use crate::row_influence::variance_of_mean;

/// A difference is clear when it exceeds this many standard errors.
pub const CLEAR: f64 = 3.0;

/// The spread of fewer splits than this is too rough to judge by.
pub const FEWEST_SPLITS: u64 = 5;

/// What a mean over splits of one data set may owe to chance, besides which splits were drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chance {
    /// Nothing. So it is with coverage: over all splits of any rows whose scores do not tie, its mean is exactly
    /// `rank / (n + 1)`, so other rows would not have given another.
    OfSplits,
    /// Which rows there are, with this variance: that of the rows' influences over their number, as a bootstrap over
    /// rows would give it.
    OfRows {
        /// Variance of the mean.
        variance: f64,
    },
    /// Which rows there are, where no influences are known: Nadeau and Bengio's (2003) correction, the variance between
    /// splits times this. It is exact where chance enters through the test rows, and cautious where it enters through
    /// the threshold: over data sets drawn from the benchmarks that ship the true factor was 0 to 0.9, not 1.5.
    OfSharedRows {
        /// Rows that test over rows that do not.
        test_over_calibration: f64,
    },
}

impl Chance {
    /// Of the difference of two means over the same rows, from the rows' influences on each.
    pub(crate) fn of_rows(first: &[f32], second: &[f32]) -> Self {
        let differences =
            first.iter().zip(second).map(|(first, second)| f64::from(*first) - f64::from(*second));
        Self::OfRows { variance: variance_of_mean(differences) }
    }

    pub(crate) fn of_shared_rows(record: &Record) -> Self {
        let others = record.n_cal + record.n_tune;
        Self::OfSharedRows { test_over_calibration: record.n_test as f64 / others.max(1) as f64 }
    }

    /// The part of a mean's variance that more splits cannot average away.
    fn lasting(self, between_splits: f64) -> f64 {
        match self {
            Self::OfSplits => 0.0,
            Self::OfRows { variance } => variance,
            Self::OfSharedRows { test_over_calibration } => between_splits * test_over_calibration,
        }
    }
}

impl Spread {
    /// Mean and standard deviation of one value per split; `None` without values.
    ///
    /// ```
    /// let spread = conformax_study::Spread::of(&[1.0, 3.0]).unwrap();
    /// assert_eq!((spread.mean, spread.deviation), (2.0, 2.0_f64.sqrt()));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / n)?;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Some(Self { mean, deviation, splits: values.len() as u64 })
    }
}

impl Paired {
    /// The mean of differences taken split by split; `None` without any.
    ///
    /// ```
    /// use conformax_study::{Chance, Paired};
    /// let paired = Paired::of(&[1.0, 3.0], Chance::OfSplits).unwrap();
    /// assert_eq!((paired.mean, paired.standard_error), (2.0, 1.0));
    /// let shared = Paired::of(&[1.0, 3.0], Chance::OfSharedRows { test_over_calibration: 1.5 }).unwrap();
    /// assert_eq!((shared.mean, shared.standard_error), (2.0, 2.0));
    /// ```
    pub fn of(differences: &[f64], chance: Chance) -> Option<Self> {
        let Spread { mean, deviation, splits } = Spread::of(differences)?;
        let between = deviation * deviation;
        let variance = between / splits as f64 + chance.lasting(between);
        Some(Self { mean, standard_error: variance.sqrt(), splits })
    }

    /// Whether the mean is clearly above zero, clearly below it, or neither. Few splits decide nothing.
    ///
    /// ```
    /// use conformax_study::{Paired, Verdict};
    /// let clear = Paired { mean: -0.31, standard_error: 0.1, splits: 100 };
    /// assert_eq!(clear.verdict(), Verdict::NotReproduced);
    /// ```
    pub fn verdict(self) -> Verdict {
        let margin = CLEAR * self.standard_error;
        if self.splits < FEWEST_SPLITS {
            Verdict::Undecided
        } else if self.mean > margin {
            Verdict::Reproduced
        } else if self.mean < -margin {
            Verdict::NotReproduced
        } else {
            Verdict::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Chance = Chance::OfSharedRows { test_over_calibration: 1.5 };

    #[test]
    fn equal_values_are_undecided_and_a_constant_lead_is_not() {
        assert_eq!(Paired::of(&[0.0; 5], ROWS).unwrap().verdict(), Verdict::Undecided);
        assert_eq!(Paired::of(&[0.5; 5], ROWS).unwrap().verdict(), Verdict::Reproduced);
        assert_eq!(Paired::of(&[0.5; 4], ROWS).unwrap().verdict(), Verdict::Undecided);
        assert!(Paired::of(&[], ROWS).is_none());
    }

    #[test]
    fn splits_without_end_do_not_make_a_difference_clear() {
        // One standard deviation away from zero, however often it is measured.
        let differences: Vec<f64> = (0..100_000).map(|i| 1.0 + f64::from(i % 2) * 2.0 - 1.0).collect();
        let paired = Paired::of(&differences, ROWS).unwrap();
        assert_eq!(paired.verdict(), Verdict::Undecided);
        assert!(paired.standard_error > 1.2, "{paired:?}");
        assert_eq!(Paired::of(&differences, Chance::OfSplits).unwrap().verdict(), Verdict::Reproduced);
    }
}
