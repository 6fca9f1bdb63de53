//! Sparse activations: softmax's relatives that assign exact zeros.
//!
//! `γ-entmax(z)_j = [(γ − 1)·z_j − τ]₊^δ` with `δ = 1/(γ − 1)` and `τ` set so that the result sums to one; γ = 1
//! is softmax, 1.5 entmax15, 2 sparsemax. An inverse temperature β multiplies the logits first. Nothing sorts a
//! row: the normaliser is found by a search among the labels that can still have mass (`normalize`).

mod gradient;
mod lanes;
mod loss;
mod normalize;
mod passes;
mod rows;

use crate::{Error, Gamma, Logit, Result, Row};
use normalize::Normalizer;

pub use loss::entropy;
pub(crate) use normalize::normalize_gaps;
pub use rows::Mass;

/// The logit of a probability: its natural logarithm, with the same bits on every system; −∞ for zero.
///
/// Public, since whoever has probabilities in place of logits must turn them into the same logits everywhere.
///
/// ```
/// assert_eq!(conformax::log_probability(0.0), f64::NEG_INFINITY);
/// assert_eq!(conformax::log_probability(1.0), 0.0);
/// ```
pub fn log_probability(probability: f64) -> f64 {
    crate::kernel::math::ln(probability)
}

/// γ-entmax at an inverse temperature β: forward, backward and the loss that belongs to it.
///
/// ```
/// use conformax::{Entmax, Gamma, Row};
/// let mut p = [0.0; 3];
/// Entmax::new(Gamma::SPARSEMAX).forward(Row::new(&[1.0_f32, 0.5, -2.0])?, &mut p);
/// assert_eq!(p, [0.75, 0.25, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entmax {
    gamma: Gamma,
    beta: f64,
}

impl Default for Entmax {
    /// entmax15 at β = 1.
    fn default() -> Self {
        Self::new(Gamma::default())
    }
}

impl Entmax {
    /// The activation of this index at β = 1.
    pub fn new(gamma: Gamma) -> Self {
        Self { gamma, beta: 1.0 }
    }

    /// The same activation at another inverse temperature; at 0 every finite logit has the same mass.
    pub fn with_beta(self, beta: f64) -> Result<Self> {
        if (0.0..f64::INFINITY).contains(&beta) {
            Ok(Self { beta: beta + 0.0, ..self })
        } else {
            Err(Error::Parameter { name: "beta", wanted: "finite and at least 0", got: beta })
        }
    }

    /// The index of the family.
    pub fn gamma(&self) -> Gamma {
        self.gamma
    }

    /// The inverse temperature.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Writes the probabilities of one row; they sum to one, and a −∞ logit or one outside the support gets
    /// exactly 0. Panics where `out` has not one entry per class, as copying between slices does.
    pub fn forward<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        self.forward_with(row, out, &mut Vec::new());
    }

    fn forward_with<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64], pool: &mut Vec<f64>) -> Normalizer {
        self.gaps(row, out);
        let normalizer = Normalizer::new(out, self.gamma, pool);
        normalizer.fill(out);
        normalizer
    }

    /// `β(z_max − z_j)/δ`, or without δ at γ = 1: what the normaliser works on.
    fn gaps<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        assert_eq!(out.len(), row.classes(), "out has one entry per class");
        let scale = self.scale(row);
        for (gap, logit) in out.iter_mut().zip(row.logits()) {
            *gap = scale.gap(logit.to_f64());
        }
    }

    fn scale<T: Logit>(&self, row: Row<'_, T>) -> Scale {
        /// Beyond this a difference of two finite logits may overflow, and halving them loses nothing.
        const HUGE: f64 = 1e288;
        let unit = if row.max() > HUGE { 0.5 } else { 1.0 };
        let inverse_delta = if self.gamma.delta() < f64::INFINITY { self.gamma.inverse_delta() } else { 1.0 };
        Scale { max: row.max() * unit, unit, beta: self.beta, step: inverse_delta / unit }
    }
}

/// How a row's logits become gaps.
#[derive(Clone, Copy)]
struct Scale {
    max: f64,
    unit: f64,
    beta: f64,
    step: f64,
}

impl Scale {
    #[inline(always)]
    fn gap(self, logit: f64) -> f64 {
        let distance = self.max - logit * self.unit;
        // β may be 0, and 0 · ∞ is not the gap of a masked class.
        if distance < f64::INFINITY { distance * self.beta * self.step } else { f64::INFINITY }
    }
}

/// Softmax of one row.
///
/// ```
/// let p = conformax::softmax(&[0.0_f64, f64::NEG_INFINITY, 0.0])?;
/// assert_eq!(p, [0.5, 0.0, 0.5]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn softmax<T: Logit>(logits: &[T]) -> Result<Vec<f64>> {
    one_row(Gamma::SOFTMAX, logits)
}

/// Sparsemax of one row: its Euclidean projection onto the simplex.
///
/// ```
/// assert_eq!(conformax::sparsemax(&[1.0_f32, 0.5, -2.0])?, [0.75, 0.25, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn sparsemax<T: Logit>(logits: &[T]) -> Result<Vec<f64>> {
    one_row(Gamma::SPARSEMAX, logits)
}

/// 1.5-entmax of one row, exact.
///
/// ```
/// assert_eq!(conformax::entmax15(&[3.0_f32, 3.0, 0.0])?, [0.5, 0.5, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn entmax15<T: Logit>(logits: &[T]) -> Result<Vec<f64>> {
    one_row(Gamma::ENTMAX15, logits)
}

fn one_row<T: Logit>(gamma: Gamma, logits: &[T]) -> Result<Vec<f64>> {
    let row = Row::new(logits)?;
    let mut p = vec![0.0; logits.len()];
    Entmax::new(gamma).forward(row, &mut p);
    Ok(p)
}
