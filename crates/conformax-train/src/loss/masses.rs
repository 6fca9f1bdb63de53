//! From logits to γ-entmax's probabilities in tensor operations: no sort, no copy to the host.
//!
//! Everything is in gaps below the row's maximum, `g_j = z_max − z_j`, in the logits' own unit: then large logits
//! cost no digits, and near γ = 1, where δ = 1/(γ − 1) grows without bound, nothing is divided by it too early.
//! With `depth_j = x + g_j` the mass is `p_j = (1 − depth_j/δ)₊^δ`, which tends to `e^{−depth_j}`, and the row's `x`
//! is found by halving an interval a fixed number of times: on a device a test for convergence would cost more
//! than the steps it saves.

use burn::prelude::*;
use conformax::Gamma;

use super::anchored;

/// After so many halvings the interval is finer than `f32` can tell.
pub(super) const HALVINGS: usize = 26;

/// The probabilities of a batch and what the loss needs beside them, each `[batch, classes]`.
pub(super) struct Masses<B: Backend> {
    pub(super) p: Tensor<B, 2>,
    /// `−ln p` at γ = 1; δ and beyond outside the support.
    pub(super) depth: Tensor<B, 2>,
    delta: f64,
}

impl<B: Backend> Masses<B> {
    pub(super) fn new(logits: Tensor<B, 2>, gamma: Gamma) -> Self {
        let gaps = logits.clone().max_dim(1) - logits;
        let delta = gamma.delta();
        let (p, depth) = if delta == f64::INFINITY {
            exponential(gaps)
        } else if delta >= 1.0 {
            power(gaps, delta)
        } else {
            anchored::masses(gaps, delta)
        };
        // What the search left over is shared out, as the core does.
        Self { p: p.clone() / p.sum_dim(1), depth, delta }
    }

    /// `(1 − depth/δ)₊`, whose power δ is the mass; 1 everywhere at γ = 1.
    pub(super) fn slack(&self) -> Tensor<B, 2> {
        (-self.depth.clone() / self.delta + 1.0).clamp_min(0.0)
    }
}

/// γ = 1, where `x = ln Σe^{−g}` needs no search.
fn exponential<B: Backend>(gaps: Tensor<B, 2>) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let p = (-gaps.clone()).exp();
    let depth = gaps + p.clone().sum_dim(1).log();
    (p, depth)
}

/// 1 < γ ≤ 2: the sum of the masses falls from at least 1 as `x` grows from 0, and `K` equal masses bound the root.
fn power<B: Backend>(gaps: Tensor<B, 2>, delta: f64) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let [rows, classes] = gaps.dims();
    let mut x = Tensor::<B, 2>::zeros([rows, 1], &gaps.device());
    let mut half = -delta * (-(classes as f64).ln() / delta).exp_m1();
    for _ in 0..HALVINGS {
        half /= 2.0;
        let total = power_of(gaps.clone() + (x.clone() + half), delta).sum_dim(1);
        x = x + total.greater_equal_elem(1.0).float() * half;
    }
    let depth = gaps + x;
    (power_of(depth.clone(), delta), depth)
}

/// `(1 − depth/δ)₊^δ`.
fn power_of<B: Backend>(depth: Tensor<B, 2>, delta: f64) -> Tensor<B, 2> {
    if delta == 1.0 {
        (-depth + 1.0).clamp_min(0.0)
    } else if delta == 2.0 {
        (-depth * 0.5 + 1.0).clamp_min(0.0).square()
    } else {
        // Without rounding 1 − depth/δ first: near γ = 1 that would lose the depth altogether.
        let log = (-(depth / delta).clamp_max(1.0)).log1p();
        (log * delta).exp()
    }
}
