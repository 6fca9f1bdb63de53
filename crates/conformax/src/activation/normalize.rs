//! From gaps to masses: the normaliser of γ-entmax.
//!
//! A gap is `g_j = β(z_max − z_j)/δ ≥ 0`; the masses are `p_j = (1 − x − g_j)₊^δ`, and the depth `x ≥ 0` is what
//! makes them sum to one. No gap of 1 or more has mass, so everything happens among the *pool* of gaps below 1.
//! At γ = 1 the unit δ is infinite, gaps are `β(z_max − z_j)`, and the masses are softmax's.
//!
//! - 1 < γ ≤ 2: the norm `‖(1 − x − g)₊‖_δ` is convex in `x` and at least 1 at `x = 0`, so Newton's steps towards
//!   1 never overshoot and a label once dropped stays dropped. For δ = 1 a step that drops nothing is exact; for
//!   δ = 2 a quadratic ends the search.
//! - γ > 2: `p` has an infinite slope where it reaches zero, and `x` cannot be told from `1 − g` there. The
//!   unknown is the mass `y` of the last label in the support instead: `p_j = (y^{1/δ} + g_last − g_j)^δ` is convex
//!   in `y` with a slope between 0 and 1, and nothing cancels.

use super::passes::{Terms, any_below, fill, sums};
use crate::Gamma;
use crate::kernel::{LANES, Order, math};

/// A sum this close to one has converged: beyond it, steps are rounding.
const CONVERGED: f64 = 1.0 + 2.0 * f64::EPSILON;
/// Far more steps than any row was seen to take; a bound, so that no row can hold the caller up.
const MOST_STEPS: usize = 200;

/// Turns gaps, in any order, at least one of them 0 and +∞ allowed, into masses that sum to one.
pub(crate) fn normalize_gaps(gaps: &mut [f64], gamma: Gamma) {
    Normalizer::new(gaps, gamma, &mut Vec::new()).fill(gaps);
}

/// What gives any gap of one row its mass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Normalizer {
    curve: Curve,
    /// Sum of the masses before division: 1 up to rounding, except at γ = 1.
    total: f64,
}

#[derive(Clone, Copy, Debug)]
enum Curve {
    /// γ = 1.
    Exponential(Exponential),
    /// γ = 2.
    Linear(Linear),
    /// γ = 1.5.
    Square(Square),
    /// Other γ < 2.
    Power(Power),
    /// γ > 2.
    Anchored(Anchored),
}

impl Normalizer {
    /// Finds the normaliser of a row's gaps; `pool` is scratch.
    pub(super) fn new(gaps: &[f64], gamma: Gamma, pool: &mut Vec<f64>) -> Self {
        let order = Order::from(gamma);
        if order != Order::Max {
            collect_pool(gaps, pool);
        }
        match order {
            Order::Max => exponential(gaps),
            Order::One => linear(pool),
            Order::Two => square(pool),
            Order::Other { delta, inverse } if delta > 1.0 => power(pool, delta, inverse),
            Order::Other { delta, inverse } => anchored(pool, delta, inverse),
        }
    }

    /// Replaces every gap by its mass; a gap outside the support gets exactly 0.
    pub(super) fn fill(&self, gaps: &mut [f64]) {
        match self.curve {
            Curve::Exponential(curve) => fill(gaps, f64::INFINITY, curve, self.total),
            Curve::Linear(curve) => fill(gaps, curve.level, curve, self.total),
            Curve::Square(curve) => fill(gaps, curve.level, curve, self.total),
            Curve::Power(curve) => fill(gaps, 1.0, curve, self.total),
            Curve::Anchored(curve) => fill(gaps, curve.gap.next_up(), curve, self.total),
        }
    }

    /// `1 − x − g`, whose power δ is the mass: negative outside the support, and 1 for every label at γ = 1.
    pub(super) fn slack(&self, gap: f64) -> f64 {
        match self.curve {
            Curve::Exponential(_) => 1.0,
            Curve::Linear(Linear { level }) | Curve::Square(Square { level }) => level - gap,
            Curve::Power(Power { depth, .. }) => 1.0 - (depth + gap),
            Curve::Anchored(curve) if gap <= curve.gap => curve.slack + (curve.gap - gap),
            Curve::Anchored(curve) => (curve.slack + (curve.gap - gap)).min(0.0),
        }
    }

    /// `δ(x + g)`, which is `−ln p` at γ = 1 and δ on the edge of the support.
    pub(super) fn depth(&self, gap: f64, gamma: Gamma) -> f64 {
        match self.curve {
            Curve::Exponential(_) => math::ln(self.total) + gap,
            Curve::Power(Power { depth, delta }) => delta * (depth + gap),
            _ => gamma.delta() * (1.0 - self.slack(gap)),
        }
    }
}

/// `e^{−g}`.
#[derive(Clone, Copy, Debug)]
struct Exponential;

impl Terms<1> for Exponential {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        [math::exp_nonpositive(-gap)]
    }
}

/// `(level − g)₊` with `level = 1 − x`.
#[derive(Clone, Copy, Debug)]
struct Linear {
    level: f64,
}

impl Terms<1> for Linear {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        [positive(self.level - gap)]
    }
}

/// `(level − g)₊²`.
#[derive(Clone, Copy, Debug)]
struct Square {
    level: f64,
}

impl Terms<1> for Square {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        let slack = positive(self.level - gap);
        [slack * slack]
    }
}

/// `(1 − w)₊^δ` at `w = depth + g`.
#[derive(Clone, Copy, Debug)]
struct Power {
    depth: f64,
    delta: f64,
}

impl Terms<1> for Power {
    /// Without rounding `1 − w` first: near γ = 1 that would lose `w` altogether.
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        let w = self.depth + gap;
        let mass = math::exp_nonpositive(self.delta * math::ln_1p(-w));
        [if w < 1.0 { mass } else { 0.0 }]
    }
}

/// `(slack + gap − g)^δ` up to the last gap of the support, whose own mass is `mass = slack^δ`.
#[derive(Clone, Copy, Debug)]
struct Anchored {
    gap: f64,
    slack: f64,
    mass: f64,
    delta: f64,
}

impl Terms<1> for Anchored {
    /// The last mass is not recomputed from a slack that may have underflowed.
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        let above = self.gap - gap;
        let mass = math::pow(self.slack + positive(above), self.delta);
        [if above > 0.0 { mass } else { self.mass }]
    }
}

/// Copies the gaps below 1. Most groups hold none and end at one test.
fn collect_pool(gaps: &[f64], pool: &mut Vec<f64>) {
    pool.clear();
    for group in gaps.chunks(LANES) {
        if any_below(group, 1.0) {
            pool.extend(group.iter().copied().filter(|gap| *gap < 1.0));
        }
    }
}

#[inline(always)]
fn positive(value: f64) -> f64 {
    if value > 0.0 { value } else { 0.0 }
}

fn exponential(gaps: &[f64]) -> Normalizer {
    let [total] = sums(gaps, Exponential);
    Normalizer { curve: Curve::Exponential(Exponential), total }
}

/// Count, sum and sum of squares of the positive `level − g`.
#[derive(Clone, Copy)]
struct Moments {
    level: f64,
}

impl Terms<3> for Moments {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 3] {
        let slack = positive(self.level - gap);
        [if slack > 0.0 { 1.0 } else { 0.0 }, slack, slack * slack]
    }
}

fn linear(pool: &mut Vec<f64>) -> Normalizer {
    let mut level = 1.0;
    loop {
        let [count, first, _] = sums(pool, Moments { level });
        level -= (first - 1.0) / count;
        let before = pool.len();
        pool.retain(|gap| *gap < level);
        if pool.len() == before {
            let curve = Linear { level };
            let [total] = sums(pool, curve);
            return Normalizer { curve: Curve::Linear(curve), total };
        }
    }
}

fn square(pool: &mut Vec<f64>) -> Normalizer {
    let mut level = 1.0;
    for _ in 0..MOST_STEPS {
        let [count, first, second] = sums(pool, Moments { level });
        let excess = second - 1.0;
        // The root of Σ(b − t)² = 1, once it drops no label and its discriminant does not cancel.
        if count * excess <= 0.75 * first * first {
            let step = excess / (first + (first * first - count * excess).sqrt());
            if pool.iter().all(|gap| step <= level - gap) {
                level -= step;
                break;
            }
        }
        let next = level - (second - second.sqrt()) / first;
        if next >= level {
            break;
        }
        level = next;
        pool.retain(|gap| *gap < level);
    }
    let curve = Square { level };
    let [total] = sums(pool, curve);
    Normalizer { curve: Curve::Square(curve), total }
}

/// The mass and its slope, `(1 − w)^{δ − 1}`.
#[derive(Clone, Copy)]
struct PowerAndSlope(Power);

impl Terms<2> for PowerAndSlope {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 2] {
        let [mass] = self.0.at(gap);
        let w = self.0.depth + gap;
        [mass, if w < 1.0 { mass / (1.0 - w) } else { 0.0 }]
    }
}

fn power(pool: &mut Vec<f64>, delta: f64, inverse: f64) -> Normalizer {
    let mut curve = Power { depth: 0.0, delta };
    let [mut total, mut slope] = sums(pool, PowerAndSlope(curve));
    for _ in 0..MOST_STEPS {
        // Newton on the norm, S^{1/δ}: nearly straight in x, and exactly so for tied labels and as γ → 1.
        let next = curve.depth - total * math::exp_m1(-inverse * math::ln(total)) / slope;
        if total <= CONVERGED || next <= curve.depth {
            break;
        }
        curve.depth = next;
        pool.retain(|gap| next + *gap < 1.0);
        [total, slope] = sums(pool, PowerAndSlope(curve));
    }
    Normalizer { curve: Curve::Power(curve), total }
}

/// The mass and its slope in the last label's mass.
#[derive(Clone, Copy)]
struct AnchoredAndSlope(Anchored);

impl Terms<2> for AnchoredAndSlope {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 2] {
        let Self(curve) = self;
        let [mass] = curve.at(gap);
        let above = curve.gap - gap;
        let ratio = curve.slack / (curve.slack + positive(above));
        let slope = if above > 0.0 { mass / curve.mass * ratio } else { 1.0 };
        // The padding of a short group lies below the last label.
        [if above >= 0.0 { mass } else { 0.0 }, if above >= 0.0 { slope } else { 0.0 }]
    }
}

fn anchored(pool: &mut [f64], delta: f64, inverse: f64) -> Normalizer {
    let (size, gap, ahead) = last_of_support(pool, delta);
    let support = &pool[..size];
    let at = |mass: f64| Anchored { gap, slack: math::pow(mass, inverse), mass, delta };
    // The sum's slope in y is at least 1 and every mass at least y: both bound the root from above.
    let mut curve = at((1.0 - ahead).min(1.0 / size as f64));
    let [mut total, mut slope] = sums(support, AnchoredAndSlope(curve));
    for _ in 0..MOST_STEPS {
        let next = curve.mass - (total - 1.0) / slope;
        if total <= CONVERGED || next >= curve.mass || next <= 0.0 {
            break;
        }
        curve = at(next);
        [total, slope] = sums(support, AnchoredAndSlope(curve));
    }
    Normalizer { curve: Curve::Anchored(curve), total }
}

/// Moves the support to the front and returns its size, its largest gap `g` and `Σ(g − g_j)^δ` over it.
///
/// Selecting moves the labels about, so this sum is of the same terms in another order and may round to 1 where the one
/// that selected was below it: then the last label has no mass to tell, and the one before it is the last.
fn last_of_support(pool: &mut [f64], delta: f64) -> (usize, f64, f64) {
    let mut size = select_support(pool, delta);
    loop {
        let gap = pool[..size].iter().copied().fold(0.0, f64::max);
        let [ahead] = sums(&pool[..size], Ahead { pivot: gap, delta });
        if ahead < 1.0 {
            return (size, gap, ahead);
        }
        size = partition(&mut pool[..size], |other| other < gap);
    }
}

/// Moves the support to the front and returns its size: label `i` is in it when `Σ(g_i − g_j)₊^δ < 1`.
///
/// The sum grows with `g_i`, so one pivot settles every label on its side, as in quickselect.
fn select_support(pool: &mut [f64], delta: f64) -> usize {
    let (mut inside, mut end) = (0, pool.len());
    while inside < end {
        let open = &pool[inside..end];
        let pivot = median_of_three(open[0], open[open.len() / 2], open[open.len() - 1]);
        let [ahead] = sums(&pool[..end], Ahead { pivot, delta });
        if ahead < 1.0 {
            inside += partition(&mut pool[inside..end], |gap| gap <= pivot);
        } else {
            end = inside + partition(&mut pool[inside..end], |gap| gap < pivot);
        }
    }
    inside
}

fn median_of_three(a: f64, b: f64, c: f64) -> f64 {
    a.min(b).max(a.max(b).min(c))
}

/// Moves what satisfies `first` to the front and returns how many do.
fn partition(values: &mut [f64], first: impl Fn(f64) -> bool) -> usize {
    let mut count = 0;
    for index in 0..values.len() {
        if first(values[index]) {
            values.swap(count, index);
            count += 1;
        }
    }
    count
}

/// `(pivot − g)₊^δ`.
#[derive(Clone, Copy)]
struct Ahead {
    pivot: f64,
    delta: f64,
}

impl Terms<1> for Ahead {
    #[inline(always)]
    fn at(self, gap: f64) -> [f64; 1] {
        [math::pow(positive(self.pivot - gap), self.delta)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAMMAS: [f64; 14] =
        [1.0, 1.0 + 1e-15, 1.0 + 1e-9, 1.001, 1.02, 1.1, 1.5, 1.9, 1.999, 2.0, 2.001, 2.5, 3.0, 16.0];

    fn masses(gaps: &[f64], gamma: f64) -> Vec<f64> {
        let mut masses = gaps.to_vec();
        normalize_gaps(&mut masses, Gamma::new(gamma).unwrap());
        masses
    }

    #[test]
    fn a_lone_top_label_takes_all() {
        for gamma in GAMMAS {
            assert_eq!(masses(&[0.0], gamma), [1.0]);
            assert_eq!(masses(&[f64::INFINITY, 0.0, f64::INFINITY], gamma), [0.0, 1.0, 0.0]);
        }
    }

    #[test]
    fn tied_labels_share_equally() {
        for gamma in GAMMAS {
            for count in [2_usize, 3, 17, 1000] {
                for mass in masses(&vec![0.0; count], gamma) {
                    assert!((mass * count as f64 - 1.0).abs() < 1e-14, "{gamma} {count} {mass}");
                }
            }
        }
    }

    #[test]
    fn a_gap_of_one_is_outside() {
        for gamma in GAMMAS.into_iter().filter(|gamma| *gamma > 1.0) {
            assert_eq!(masses(&[1.0, 0.0], gamma), [0.0, 1.0], "{gamma}");
        }
    }

    #[test]
    fn sparsemax_and_entmax15_are_exact_on_dyadic_gaps() {
        assert_eq!(masses(&[0.0, 0.25, 0.25, 0.0, 2.0], 2.0), [0.375, 0.125, 0.125, 0.375, 0.0]);
        assert_eq!(masses(&[0.0, 0.5, 0.75], 2.0), [0.75, 0.25, 0.0]);
        // 0.8² + 0.6² = 1.
        let p = masses(&[0.0, 0.2, 0.9], 1.5);
        assert!((p[0] - 0.64).abs() < 1e-15 && (p[1] - 0.36).abs() < 1e-15 && p[2] == 0.0, "{p:?}");
    }

    /// A gap of `N^{−1/δ}` below `N` tied labels is the very edge of the support, where the order of a sum decides on
    /// which side it falls. In these rows, found among a million at random, the two orders disagree.
    #[test]
    fn a_label_that_rounding_puts_on_the_edge_has_no_mass_to_speak_of() {
        let (low, edge) = (0.005625287497992349, 0.00562528749799235);
        let rows: [(usize, &[(usize, f64)]); 4] = [
            (111, &[(35, low), (50, edge), (65, edge), (103, 0.9)]),
            (170, &[(45, 0.9), (99, 0.9), (120, 0.003519704362746951), (158, 0.0035197043627469516)]),
            (310, &[(97, 0.0018176159989679091), (129, 0.9), (167, 0.9), (221, 0.0018176159989679093)]),
            (489, &[(115, 0.0011009313909217618), (301, 0.001100931390921762), (358, 0.9)]),
        ];
        for (tops, others) in rows {
            let mut gaps = vec![0.0; tops];
            gaps.resize(tops + others.len(), 0.0);
            others.iter().for_each(|(place, gap)| gaps[*place] = *gap);
            let p = masses(&gaps, 2.1);
            let sum: f64 = p.iter().sum();
            assert!((sum - 1.0).abs() < 1e-13, "{tops}: {sum}");
            assert!(others.iter().all(|(place, _)| p[*place] < 1e-12), "{tops}: {p:?}");
        }
    }

    /// Two labels at δ = ½: `√a + √b = 1` with `a − b = g` gives `√b = (1 − g)/2`.
    #[test]
    fn masses_on_the_edge_are_accurate_above_two() {
        for edge in [1e-3, 1e-6, 1e-9, 1e-12, 1e-15] {
            let gap = 1.0 - edge;
            let p = masses(&[0.0, gap], 3.0);
            assert!((p[1] - (1.0 - gap) / 2.0).abs() < 4e-16, "{edge} {p:?}");
        }
    }
}
