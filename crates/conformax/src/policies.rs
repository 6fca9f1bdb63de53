//! Policies: what a −∞ logit means, and what becomes of a set that would be empty.

use crate::{Error, Labelled, Logit, Result};

/// What a −∞ logit means.
///
/// ```
/// use conformax::{Logits, Masked, Predictor, Thresholds, TopKScore};
/// let full = Predictor::new(TopKScore, Thresholds::One(f64::INFINITY));
/// let logits = Logits::new(&[1.0, f32::NEG_INFINITY], 2)?;
/// assert_eq!(full.predict(logits)?.get(0), Some(&[0, 1][..]));
/// assert_eq!(full.with_masked(Masked::Never).predict(logits)?.get(0), Some(&[0][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Masked {
    /// A class of probability zero: its score is +∞ and it is in a set only where the threshold is.
    #[default]
    Allowed,
    /// An impossible class: in no set. A calibration row whose true label it is contradicts that, and is an
    /// error.
    Never,
}

impl Masked {
    /// The error of a masked true label, under [`Masked::Never`].
    pub(crate) fn check<T: Logit>(self, rows: Labelled<'_, T>) -> Result<()> {
        if self == Self::Allowed {
            return Ok(());
        }
        let logits = rows.logits();
        let each = logits.as_slice().chunks_exact(logits.classes()).zip(rows.labels());
        for (row, (logits, label)) in (0..).zip(each) {
            if logits[*label as usize].to_f64() == f64::NEG_INFINITY {
                return Err(Error::MaskedLabel { row, label: *label });
            }
        }
        Ok(())
    }
}

/// What to do where no label is within the threshold, as happens to randomised scores.
///
/// ```
/// use conformax::{Empty, InvProbScore, Logits, Predictor, Thresholds};
/// let strict = Predictor::new(InvProbScore, Thresholds::One(0.1));
/// let logits = Logits::new(&[1.0_f32, 1.5], 2)?;
/// assert_eq!(strict.predict(logits)?.get(0), Some(&[][..]));
/// assert_eq!(strict.with_empty(Empty::TopLabel).predict(logits)?.get(0), Some(&[1][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Empty {
    /// Leave the set empty.
    #[default]
    Allowed,
    /// Put in the top label and its ties, as equal logits share their fate. Coverage can only grow.
    TopLabel,
}
