//! The entropies behind the activations, and the losses that train them.
//!
//! `γ-entmax(z) = argmax p·z + H_γ(p)` over the simplex, with `H_γ(p) = Σ(p − p^γ)/(γ(γ − 1))`; at γ = 1 that is
//! Shannon's. The Fenchel–Young loss of label `y` is `L = max_p (p·z + H_γ(p)) − z_y`, whose gradient is `p − e_y`.
//! Written as a Bregman divergence it is a sum of terms none of which is negative, so a confident row's small
//! loss keeps its digits:
//!
//! ```text
//! L = Σ_{j≠y} p_j^γ/γ + ∫_{p_y}^1 (1 − t)·t^{γ − 2} dt + (δ(x + g_y) − δ)₊
//! ```
//!
//! with gaps `g` and depth `x` as in `normalize`; the last term is how far `y` is outside the support.

use super::Entmax;
use super::lanes::Lanes;
use super::normalize::Normalizer;
use crate::kernel::{LANES, math};
use crate::{Gamma, Logit, Row};

/// The generalised entropy `H_γ(p) = Σ(p − p^γ)/(γ(γ − 1))`, and Shannon's `−Σ p·ln p` at γ = 1.
///
/// It is 0 exactly where one label has all mass and largest where all have the same. Above γ = 1 it is Tsallis's
/// entropy divided by γ.
///
/// ```
/// use conformax::{Gamma, entropy};
/// assert_eq!(entropy(&[0.5, 0.5], Gamma::SPARSEMAX), 0.25); // (1 − Σp²)/2
/// assert_eq!(entropy(&[0.5, 0.5], Gamma::SOFTMAX), std::f64::consts::LN_2);
/// assert_eq!(entropy(&[1.0, 0.0], Gamma::ENTMAX15), 0.0);
/// ```
pub fn entropy(p: &[f64], gamma: Gamma) -> f64 {
    let inverse_delta = gamma.inverse_delta();
    // (p − p^γ)/(γ − 1) = p·(1 − e^{(γ − 1)·ln p})/(γ − 1), which tends to −p·ln p.
    let term = |mass: f64| {
        let log = math::ln(mass);
        let depth = if inverse_delta > 0.0 { math::exp_m1(inverse_delta * log) / inverse_delta } else { log };
        mass * depth
    };
    // The terms are not positive: subtracting from 0 leaves no −0.
    0.0 - Lanes::sum(p.iter().map(|mass| if *mass > 0.0 { term(*mass) } else { 0.0 })) / gamma.value()
}

impl Entmax {
    /// The Fenchel–Young loss of `label` at the logits `β·z`: 0 exactly where `label` has all mass, and +∞ where
    /// its logit is −∞ or it is no class.
    ///
    /// At γ = 1 this is the cross-entropy, `−ln p_y`.
    pub fn loss<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        let mut p = vec![0.0; row.classes()];
        self.loss_with(row, label, &mut p, &mut Vec::new())
    }

    /// The loss, with its gradient in the logits, `β(p − e_y)`, written to `out`.
    ///
    /// Panics where `out` has not one entry per class, as copying between slices does.
    pub fn loss_gradient<T: Logit>(&self, row: Row<'_, T>, label: u32, out: &mut [f64]) -> f64 {
        self.loss_gradient_with(row, label, out, &mut Vec::new())
    }

    pub(super) fn loss_gradient_with<T: Logit>(
        &self,
        row: Row<'_, T>,
        label: u32,
        out: &mut [f64],
        pool: &mut Vec<f64>,
    ) -> f64 {
        let loss = self.loss_with(row, label, out, pool);
        if let Some(own) = out.get_mut(label as usize) {
            *own = 0.0;
            // −Σ of the others, where p_y − 1 would cancel.
            let others = Lanes::sum(out.iter().copied());
            out[label as usize] = 0.0 - others;
        }
        for slope in out {
            *slope *= self.beta;
        }
        loss
    }

    /// The loss; `p` is left holding the probabilities.
    pub(super) fn loss_with<T: Logit>(
        &self,
        row: Row<'_, T>,
        label: u32,
        p: &mut [f64],
        pool: &mut Vec<f64>,
    ) -> f64 {
        let normalizer = self.forward_with(row, p, pool);
        let gap = self.scale(row).gap(row.logit(label));
        if gap == f64::INFINITY {
            return f64::INFINITY;
        }
        self.bregman(row, label as usize, p, &normalizer) + self.outside(gap, &normalizer)
    }

    fn bregman<T: Logit>(&self, row: Row<'_, T>, label: usize, p: &[f64], normalizer: &Normalizer) -> f64 {
        let scale = self.scale(row);
        let mut others = Lanes::ZERO;
        let mut powers = Lanes::ZERO;
        for (class, mass) in p.iter().enumerate().filter(|(class, mass)| *class != label && **mass > 0.0) {
            let slack = normalizer.slack(scale.gap(row.logits()[class].to_f64()));
            others.add(class % LANES, *mass);
            powers.add(class % LANES, *mass * slack); // p^γ = p·p^{1/δ}
        }
        let gap = scale.gap(row.logits()[label].to_f64());
        powers.total() / self.gamma.value() + own_term(others.total(), gap, p[label], normalizer, self.gamma)
    }

    fn outside(&self, gap: f64, normalizer: &Normalizer) -> f64 {
        let beyond = -normalizer.slack(gap);
        if beyond > 0.0 { beyond * self.gamma.delta() } else { 0.0 }
    }
}

/// `∫_p^1 (1 − t)·t^{γ − 2} dt = (δ·w − (1 − w)(1 − p))/γ` with `1 − w = p^{1/δ}`, for the label's own mass `p`.
fn own_term(others: f64, gap: f64, mass: f64, normalizer: &Normalizer, gamma: Gamma) -> f64 {
    /// Below this the closed form loses more digits than the series has terms to add.
    const CONFIDENT: f64 = 0.05;
    if others < CONFIDENT {
        return confident_term(others, gamma.value());
    }
    let slack = normalizer.slack(gap).max(0.0);
    let depth = normalizer.depth(gap, gamma).min(gamma.delta());
    (depth - slack * (1.0 - mass)) / gamma.value()
}

/// The same by the binomial series of `t^{γ − 2}` around 1, where `rest = 1 − p` is small:
/// `rest²·Σ binom(γ − 2, n)(−rest)ⁿ/(n + 2)`.
fn confident_term(rest: f64, gamma: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 0.5);
    for n in 0..16_u32 {
        term *= -rest * (gamma - 2.0 - f64::from(n)) / f64::from(n + 1);
        sum += term / f64::from(n + 3);
    }
    rest * rest * sum
}
