//! `Prior`: logits without the shares of the classes, for long tails.
//!
//! A classifier that was trained on shares `π` prefers common labels. Calibrating on `z − ln π` (Ding and others 2025)
//! keeps the guarantee over all rows and evens out coverage between classes.

use crate::kernel::math::ln;
use crate::{Error, Logit, Logits, Result};

/// The shares of the classes, to be taken out of logits. They need not sum to one.
///
/// ```
/// use conformax::{Logits, Prior};
/// let prior = Prior::new(vec![0.5, 0.25, 0.25])?;
/// let mut adjusted = Vec::new();
/// prior.adjust(Logits::new(&[1.0_f32, 1.0, 0.0], 3)?, &mut adjusted)?;
/// assert!(adjusted[1] > adjusted[0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    shares: Vec<f64>,
    logarithms: Vec<f64>,
}

impl Prior {
    /// A positive number per class.
    pub fn new(shares: Vec<f64>) -> Result<Self> {
        Logits::<f64>::new(&[], shares.len())?;
        if let Some(label) = shares.iter().position(|share| !(*share > 0.0 && *share < f64::INFINITY)) {
            let (what, wanted, value) = ("prior", "a positive number", shares[label]);
            return Err(Error::LabelValue { what, wanted, label: label as u32, value });
        }
        let logarithms = shares.iter().map(|share| ln(*share)).collect();
        Ok(Self { shares, logarithms })
    }

    /// The shares by counted labels of rows that do not calibrate.
    pub fn of_counts(counts: &[u64]) -> Result<Self> {
        Self::new(counts.iter().map(|count| *count as f64).collect())
    }

    /// The shares.
    pub fn as_slice(&self) -> &[f64] {
        &self.shares
    }

    /// Puts `z − ln π` of every row in place of what `out` holds.
    pub fn adjust<T: Logit>(&self, logits: Logits<'_, T>, out: &mut Vec<f64>) -> Result<()> {
        if logits.classes() != self.shares.len() {
            return Err(Error::ClassCount { wanted: self.shares.len(), got: logits.classes() });
        }
        out.clear();
        for row in logits.as_slice().chunks_exact(logits.classes()) {
            out.extend(row.iter().zip(&self.logarithms).map(|(logit, ln)| logit.to_f64() - ln));
        }
        Ok(())
    }
}
