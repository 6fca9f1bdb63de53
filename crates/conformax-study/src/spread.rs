//! Means over splits: how far they spread, and whether a difference is more than chance.

use crate::results::{Paired, Spread, Verdict};

/// A difference is clear when it exceeds this many standard errors.
pub const CLEAR: f64 = 3.0;

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
    /// let paired = conformax_study::Paired::of(&[1.0, 3.0]).unwrap();
    /// assert_eq!((paired.mean, paired.standard_error), (2.0, 1.0));
    /// ```
    pub fn of(differences: &[f64]) -> Option<Self> {
        let Spread { mean, deviation, splits } = Spread::of(differences)?;
        Some(Self { mean, standard_error: deviation / (splits as f64).sqrt(), splits })
    }

    /// Whether the mean is clearly above zero, clearly below it, or neither. One split decides nothing.
    ///
    /// ```
    /// use conformax_study::{Paired, Verdict};
    /// let clear = Paired { mean: -0.31, standard_error: 0.1, splits: 100 };
    /// assert_eq!(clear.verdict(), Verdict::NotReproduced);
    /// ```
    pub fn verdict(self) -> Verdict {
        let margin = CLEAR * self.standard_error;
        if self.splits < 2 {
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

    #[test]
    fn equal_values_are_undecided_and_a_constant_lead_is_not() {
        assert_eq!(Paired::of(&[0.0; 5]).unwrap().verdict(), Verdict::Undecided);
        assert_eq!(Paired::of(&[0.5; 5]).unwrap().verdict(), Verdict::Reproduced);
        assert_eq!(Paired::of(&[0.5]).unwrap().verdict(), Verdict::Undecided);
        assert!(Paired::of(&[]).is_none());
    }
}
