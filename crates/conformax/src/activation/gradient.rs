//! How the probabilities move: with the logits, and with γ.
//!
//! On the support `∂p/∂z = β·(diag(s) − s·sᵀ/Σs)` with `s_j = p_j^{2 − γ}`, a symmetric matrix: its product with
//! `v` is `β·s_j·(v_j − v̄)`, where `v̄` is the mean of `v` under the weights `s`. The derivative in γ has the same
//! form, `s_j·(b_j − b̄)`, with `b = −ln²p · ∫₀¹ t·p^{(γ − 1)t} dt`, which needs no limit at γ = 1.

use super::Entmax;
use super::lanes::Lanes;
use crate::Gamma;
use crate::kernel::{LANES, Order, math};

impl Entmax {
    /// The backward product `Jᵀ·upstream`, where `p` is what [`forward`](Self::forward) gave.
    ///
    /// Labels without mass get exactly 0. Panics where the three lengths differ, as copying between slices does.
    pub fn backward(&self, p: &[f64], upstream: &[f64], out: &mut [f64]) {
        assert_eq!(p.len(), upstream.len(), "upstream has one entry per class");
        weights(p, self.gamma, out);
        centre(out, |class| upstream[class], self.beta);
    }

    /// `∂p/∂γ` at fixed logits and β, where `p` is what [`forward`](Self::forward) gave.
    ///
    /// At γ = 1 it is the exact limit from above, `½·p·(E[ln²p] − ln²p)`. Panics where the lengths differ.
    pub fn gamma_derivative(&self, p: &[f64], out: &mut [f64]) {
        weights(p, self.gamma, out);
        let inverse_delta = self.gamma.inverse_delta();
        centre(out, |class| drift(p[class], inverse_delta), 1.0);
    }
}

/// Above γ = 2 the weight of a vanishing mass is unbounded; beyond this it would only overflow.
const HEAVIEST: f64 = 1e300;

/// `p^{2 − γ}` on the support, 0 elsewhere.
fn weights(p: &[f64], gamma: Gamma, out: &mut [f64]) {
    out.copy_from_slice(p);
    match Order::from(gamma) {
        Order::Max => {}
        Order::One => each_mass(out, |_| 1.0),
        Order::Two => each_mass(out, f64::sqrt),
        Order::Other { .. } => {
            let power = 2.0 - gamma.value();
            each_mass(out, |mass| math::pow(mass, power).min(HEAVIEST));
        }
    }
}

/// Replaces what is positive; most groups of a sparse row hold nothing and end at one test.
fn each_mass(masses: &mut [f64], weight: impl Fn(f64) -> f64) {
    for group in masses.chunks_mut(LANES) {
        if group.iter().fold(false, |any, mass| any | (*mass > 0.0)) {
            for mass in group {
                let weight = weight(*mass);
                *mass = if *mass > 0.0 { weight } else { 0.0 };
            }
        }
    }
}

/// `∂ ln p/∂γ` at a fixed normaliser, times `p^{γ − 1}`.
fn drift(mass: f64, inverse_delta: f64) -> f64 {
    if mass > 0.0 {
        let log = math::ln(mass);
        -log * log * moment(-inverse_delta * log)
    } else {
        0.0
    }
}

/// `∫₀¹ t·e^{−xt} dt = (1 − e^{−x}(1 + x))/x²` for `x ≥ 0`, by its series where that would cancel.
fn moment(x: f64) -> f64 {
    if x > 1.0 {
        return (1.0 - math::exp(-x) * (1.0 + x)) / (x * x);
    }
    MOMENTS.iter().rev().fold(0.0, |sum, coefficient| coefficient - x * sum)
}

/// `1/(n!·(n + 2))`: enough of the series for `x ≤ 1`.
const MOMENTS: [f64; 18] = {
    let mut coefficients = [0.0; 18];
    let (mut n, mut factorial) = (0, 1.0);
    while n < coefficients.len() {
        coefficients[n] = 1.0 / (factorial * (n + 2) as f64);
        n += 1;
        factorial *= n as f64;
    }
    coefficients
};

/// Replaces weights `s_j` by `scale·s_j·(v_j − v̄)`.
///
/// Values are taken relative to that of the heaviest label, which can outweigh all others together: `v_j − v̄`
/// would then cancel for that very label.
fn centre(weights: &mut [f64], value: impl Fn(usize) -> f64, scale: f64) {
    let Some(heaviest) = heaviest(weights) else { return };
    let origin = value(heaviest);
    let mut total = Lanes::ZERO;
    let mut moment = Lanes::ZERO;
    for (class, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        total.add(class % LANES, *weight);
        moment.add(class % LANES, *weight * (value(class) - origin));
    }
    let mean = moment.total() / total.total();
    for (class, weight) in weights.iter_mut().enumerate().filter(|(_, weight)| **weight > 0.0) {
        *weight *= scale * ((value(class) - origin) - mean);
    }
}

fn heaviest(weights: &[f64]) -> Option<usize> {
    (0..weights.len()).reduce(|best, class| if weights[class] > weights[best] { class } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_is_smooth_where_its_two_forms_meet() {
        let (below, above) = (moment(1.0), moment(1.0_f64.next_up()));
        assert!((below / above - 1.0).abs() < 1e-15);
        assert!((below - (1.0 - 2.0 / std::f64::consts::E)).abs() < 1e-16);
        assert_eq!(moment(0.0), 0.5);
    }

    #[test]
    fn a_heaviest_label_keeps_its_own_derivative() {
        // γ = 3: s = 1/p, so the weight of the second label hides the first one's.
        let entmax = Entmax::new(Gamma::new(3.0).unwrap());
        let mut out = [0.0; 2];
        entmax.backward(&[1.0, 1e-20], &[1.0, 0.0], &mut out);
        assert!((out[0] - 1.0).abs() < 1e-15 && (out[1] + 1.0).abs() < 1e-15, "{out:?}");
    }
}
