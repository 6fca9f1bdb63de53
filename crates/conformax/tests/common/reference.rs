//! The activations again, slow and plain: what the library's own algorithms are compared with.
//!
//! Nothing here shares an idea with the library beyond the definition, and the platform's `exp`, `ln` and `powf`
//! are used on purpose.
#![allow(clippy::disallowed_methods, dead_code)]

use conformax::Gamma;

/// γ-entmax of `beta · logits` by bisection.
pub fn entmax_bisect(logits: &[f64], gamma: Gamma, beta: f64) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let distances =
        logits.iter().map(|z| if *z == f64::NEG_INFINITY { f64::INFINITY } else { beta * (max - z) });
    let delta = gamma.delta();
    if delta == f64::INFINITY {
        return normalized(distances.map(|d| (-d).exp()).collect());
    }
    let gaps: Vec<f64> = distances.map(|d| d / delta).collect();
    if delta >= 1.0 { bisect_depth(&gaps, delta) } else { bisect_last_mass(&gaps, delta) }
}

/// Halves the interval of `x` in `p = (1 − x − g)₊^δ` until it is empty.
fn bisect_depth(gaps: &[f64], delta: f64) -> Vec<f64> {
    let masses = |x: f64| -> Vec<f64> {
        gaps.iter().map(|g| if x + g < 1.0 { (delta * (-(x + g)).ln_1p()).exp() } else { 0.0 }).collect()
    };
    // All labels tied is the deepest that x can be.
    let deepest = -(-(gaps.len() as f64).ln() / delta).exp_m1();
    let x = bisect(0.0, deepest, |x| masses(x).iter().sum::<f64>() > 1.0);
    normalized(masses(x))
}

/// For δ < 1 a label at the edge of the support has a slack far below what `x` resolves, so the mass of the last
/// label is bisected, down the sorted labels that have any.
fn bisect_last_mass(gaps: &[f64], delta: f64) -> Vec<f64> {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ahead =
        |g: f64| sorted.iter().filter(|other| **other < g).map(|other| (g - other).powf(delta)).sum::<f64>();
    let support: Vec<f64> = sorted.iter().copied().take_while(|g| *g < 1.0 && ahead(*g) < 1.0).collect();
    let last = support[support.len() - 1];
    let mass = |g: f64, y: f64| if g == last { y } else { (y.powf(1.0 / delta) + (last - g)).powf(delta) };
    let y = bisect(0.0, 1.0, |y| support.iter().map(|g| mass(*g, y)).sum::<f64>() < 1.0);
    normalized(gaps.iter().map(|g| if *g <= last { mass(*g, y) } else { 0.0 }).collect())
}

/// Where `below` turns from true to false.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn normalized(masses: Vec<f64>) -> Vec<f64> {
    let total: f64 = masses.iter().sum();
    masses.into_iter().map(|mass| mass / total).collect()
}

/// The paper's Algorithm 1: sparsemax by sorting.
pub fn sparsemax_sorted(logits: &[f64]) -> Vec<f64> {
    let mut sorted = logits.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut tau) = (0.0, 0.0);
    for (index, z) in sorted.iter().enumerate() {
        let j = index as f64 + 1.0;
        if 1.0 + j * z > sum + z {
            sum += z;
            tau = (sum - 1.0) / j;
        } else {
            break;
        }
    }
    logits.iter().map(|z| (z - tau).max(0.0)).collect()
}

/// `H_γ` as the paper prints it: fine away from γ = 1, where it cancels.
pub fn entropy_as_printed(p: &[f64], gamma: Gamma) -> f64 {
    let g = gamma.value();
    if g == 1.0 {
        return -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
    }
    (1.0 - p.iter().map(|p| p.powf(g)).sum::<f64>()) / (g * (g - 1.0))
}

/// The Fenchel–Young loss by its definition, `p·βz + H_γ(p) − βz_y`, with the logits shifted to a maximum of 0.
pub fn loss_as_defined(logits: &[f64], label: usize, gamma: Gamma, beta: f64) -> f64 {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let p = entmax_bisect(logits, gamma, beta);
    let expected: f64 =
        p.iter().zip(logits).filter(|(p, _)| **p > 0.0).map(|(p, z)| p * beta * (z - max)).sum();
    expected + entropy_as_printed(&p, gamma) - beta * (logits[label] - max)
}
