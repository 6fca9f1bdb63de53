//! The losses that train a classifier: cross-entropy and its sparse relatives, computed on the device.
//!
//! The Fenchel–Young loss of γ-entmax, as the core defines it (`conformax::Entmax::loss`): γ = 1 is cross-entropy,
//! 1.5 the loss of entmax15, 2 sparsemax's. Its gradient in the logits is `p − e_y`. As a Bregman divergence it is
//! a sum of terms none of which is negative, so a confident row's small loss keeps its digits in `f32` too:
//!
//! ```text
//! L = Σ_{j≠y} p_j^γ/γ + ∫_{p_y}^1 (1 − t)·t^{γ − 2} dt + (depth_y − δ)₊
//! ```
//!
//! with `p_j = (1 − depth_j/δ)₊^δ`, so that the last term is how far `y` is outside the support.

mod anchored;
mod masses;
mod written;

use burn::prelude::*;
use conformax::Gamma;
use serde::{Deserialize, Serialize};

use masses::Masses;
use written::Written;

/// Which loss trains the classifier; in a configuration, `loss = { name = "entmax", gamma = 1.3 }`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_flex::Flex;
/// use conformax_train::loss::Loss;
///
/// let device = Default::default();
/// let logits = Tensor::<Flex, 2>::from_floats([[1.0, 0.5, -2.0]], &device);
/// let loss = Loss::Sparsemax.forward(logits, Tensor::from_ints([0], &device));
/// assert!((loss.into_scalar() - 0.0625).abs() < 1e-6); // ½‖p − e₀‖² with p = (0.75, 0.25, 0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Loss {
    /// γ = 1: softmax's.
    CrossEntropy,
    /// γ = 2.
    Sparsemax,
    /// γ = 1.5.
    Entmax15,
    /// Any index of the family.
    Entmax {
        /// From 1, which is the cross-entropy, to 16.
        gamma: Gamma,
    },
}

impl Loss {
    /// The index of the activation that belongs to the loss.
    pub fn gamma(&self) -> Gamma {
        match *self {
            Self::CrossEntropy => Gamma::SOFTMAX,
            Self::Sparsemax => Gamma::SPARSEMAX,
            Self::Entmax15 => Gamma::ENTMAX15,
            Self::Entmax { gamma } => gamma,
        }
    }

    /// The mean loss over the rows while training: `smoothing` of each label's weight is spread evenly over all
    /// classes.
    ///
    /// A loss against label `k` differs from that against `y` by `z_y − z_k` whatever γ is, so the mean of them all
    /// needs no loss but the label's own.
    pub fn smoothed<B: Backend>(
        &self,
        logits: Tensor<B, 2>,
        labels: Tensor<B, 1, Int>,
        smoothing: f64,
    ) -> Tensor<B, 1> {
        let loss = self.forward(logits.clone(), labels.clone());
        if smoothing == 0.0 {
            return loss;
        }
        let own = logits.clone().gather(1, labels.unsqueeze_dim(1)).mean();
        loss + (own - logits.mean()) * smoothing
    }

    /// The mean loss over the rows: logits `[batch, classes]`, labels `[batch]` below `classes`, result `[1]`.
    pub fn forward<B: Backend>(&self, logits: Tensor<B, 2>, labels: Tensor<B, 1, Int>) -> Tensor<B, 1> {
        self.rows(logits, labels).mean()
    }

    /// The loss of every row, `[batch]`. A logit that is not finite makes its row's loss NaN.
    ///
    /// Differentiating the search for the normaliser would be slow and, at the edge of the support, wrong. So the
    /// value is computed on detached logits, and a term that is exactly 0 carries the gradient, which is known:
    /// `(z − detached z)·(p − e_y)`.
    pub fn rows<B: Backend>(&self, logits: Tensor<B, 2>, labels: Tensor<B, 1, Int>) -> Tensor<B, 1> {
        let fixed = logits.clone().detach();
        let labels = labels.unsqueeze_dim::<2>(1);
        let masses = Masses::new(fixed.clone(), self.gamma());
        let own = own_class(labels.clone(), fixed.dims()[1]);
        let others = masses.p.clone().mask_fill(own.clone(), 0.0);
        let rest = others.clone().sum_dim(1);
        let depth = masses.depth.clone().gather(1, labels);
        let powers = (others.clone() * masses.slack()).sum_dim(1) / self.gamma().value();
        let value =
            powers + own_term(depth.clone(), rest.clone(), self.gamma()) + beyond(depth, self.gamma());
        // −Σ of the others, where p_y − 1 would cancel.
        let gradient = others.clone().mask_where(own, -rest.expand(others.shape()));
        (value + ((logits - fixed) * gradient).sum_dim(1)).squeeze_dim(1)
    }
}

/// How far the label's depth is outside the support, which at γ = 1 has no end.
fn beyond<B: Backend>(depth: Tensor<B, 2>, gamma: Gamma) -> Tensor<B, 2> {
    if gamma == Gamma::SOFTMAX { depth.zeros_like() } else { (depth - gamma.delta()).clamp_min(0.0) }
}

/// `∫_p^1 (1 − t)·t^{γ − 2} dt = (depth − slack·(1 − p))/γ` for the label's own mass `p = 1 − rest`.
fn own_term<B: Backend>(depth: Tensor<B, 2>, rest: Tensor<B, 2>, gamma: Gamma) -> Tensor<B, 2> {
    /// Below this the closed form loses more digits than the series has terms to add.
    const CONFIDENT: f64 = 0.05;
    let depth = if gamma == Gamma::SOFTMAX { depth } else { depth.clamp_max(gamma.delta()) };
    let slack = -depth.clone() / gamma.delta() + 1.0;
    let closed = (depth - slack * rest.clone()) / gamma.value();
    closed.mask_where(rest.clone().lower_elem(CONFIDENT), confident_term(rest, gamma.value()))
}

/// The same by the binomial series of `t^{γ − 2}` around 1: `rest²·Σ binom(γ − 2, n)(−rest)ⁿ/(n + 2)`.
fn confident_term<B: Backend>(rest: Tensor<B, 2>, gamma: f64) -> Tensor<B, 2> {
    /// Enough for `f32` at γ = 16, whose series is the slowest.
    const TERMS: usize = 12;
    let mut binomial = 1.0;
    let mut coefficients = [0.0; TERMS];
    for (n, coefficient) in (0_u32..).zip(&mut coefficients) {
        *coefficient = binomial / f64::from(n + 2);
        binomial *= -(gamma - 2.0 - f64::from(n)) / f64::from(n + 1);
    }
    let sum = coefficients.iter().rev().fold(rest.zeros_like(), |sum, term| sum * rest.clone() + *term);
    rest.clone() * rest * sum
}

/// Where a column is the row's label: `[batch, classes]` from labels `[batch, 1]`.
fn own_class<B: Backend>(labels: Tensor<B, 2, Int>, classes: usize) -> Tensor<B, 2, Bool> {
    let shape = [labels.dims()[0], classes];
    let columns = Tensor::<B, 1, Int>::arange(0..classes as i64, &labels.device()).unsqueeze::<2>();
    columns.expand(shape).equal(labels.expand(shape))
}
