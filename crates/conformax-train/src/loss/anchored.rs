//! The masses for γ > 2, where `p_j = (level − g_j)₊^δ` has an infinite slope at the edge of the support.
//!
//! At γ = 16 one unit in the last place of `level` moves a mass at the edge by a third, so `level` cannot be the
//! unknown. Two searches avoid it: which labels are in the support, decided by comparing `f32` numbers exactly; then
//! the mass `y` of the last of them, in which all others, `(y^{1/δ} + g_last − g_j)^δ`, are well conditioned.

use burn::prelude::*;

use super::masses::HALVINGS;

/// Masses before division by their sum, and depths.
pub(super) fn masses<B: Backend>(gaps: Tensor<B, 2>, delta: f64) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let edge = edge_of_support(gaps.clone(), delta);
    let outside = gaps.clone().greater_equal(edge.expand(gaps.shape()));
    let last = gaps.clone().mask_fill(outside.clone(), 0.0).max_dim(1);
    let support = Support { above: (last.clone() - gaps.clone()) / delta, outside, delta };
    let y = support.last_mass();
    let p = support.masses_at(y.clone());
    let level = y.powf_scalar(1.0 / delta) * delta + last;
    (p, gaps - level + delta)
}

/// The least `f32` at which `Σ((t − g)₊/δ)^δ` reaches 1, `[batch, 1]`: exactly the gaps below it are in the support.
///
/// Halving the exponent first, then the interval, ends between two neighbouring numbers, so no gap is undecided
/// however close it lies to another.
fn edge_of_support<B: Backend>(gaps: Tensor<B, 2>, delta: f64) -> Tensor<B, 2> {
    /// 2¹²⁶ to 1 in the exponent takes 7, the 24 bits of the fraction the rest.
    const TO_NEIGHBOURS: usize = 32;
    let shape = [gaps.dims()[0], 1];
    let device = gaps.device();
    let mut inside = Tensor::<B, 2>::full(shape, f32::MIN_POSITIVE, &device);
    let mut edge = Tensor::<B, 2>::full(shape, delta, &device);
    for _ in 0..TO_NEIGHBOURS {
        let far = edge.clone().greater(inside.clone() * 2.0);
        let middle = ((inside.clone() + edge.clone()) * 0.5)
            .mask_where(far, inside.clone().sqrt() * edge.clone().sqrt());
        let slack = (middle.clone() - gaps.clone()).clamp_min(0.0) / delta;
        let reached = slack.powf_scalar(delta).sum_dim(1).greater_equal_elem(1.0);
        edge = edge.mask_where(reached.clone(), middle.clone());
        inside = middle.mask_where(reached, inside);
    }
    edge
}

/// How far each label lies above the last one of the support, in units of δ.
struct Support<B: Backend> {
    above: Tensor<B, 2>,
    outside: Tensor<B, 2, Bool>,
    delta: f64,
}

impl<B: Backend> Support<B> {
    /// The last label's mass `[batch, 1]`: the smallest of all, so at most an equal share.
    fn last_mass(&self) -> Tensor<B, 2> {
        let size = self.outside.clone().bool_not().float().sum_dim(1);
        let mut half = size.recip();
        let mut y = half.zeros_like();
        for _ in 0..HALVINGS {
            half = half * 0.5;
            let middle = y.clone() + half.clone();
            let fits = self.masses_at(middle.clone()).sum_dim(1).lower_equal_elem(1.0);
            y = y.mask_where(fits, middle);
        }
        y
    }

    fn masses_at(&self, y: Tensor<B, 2>) -> Tensor<B, 2> {
        let slack = y.clone().powf_scalar(1.0 / self.delta) + self.above.clone().clamp_min(0.0);
        // The last mass is not recomputed from a slack that may have underflowed.
        let at_last = self.above.clone().lower_equal_elem(0.0);
        let masses = slack.powf_scalar(self.delta).mask_where(at_last, y.expand(self.above.shape()));
        masses.mask_fill(self.outside.clone(), 0.0)
    }
}
