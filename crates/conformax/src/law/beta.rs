//! The Beta distribution to nearly full precision, for parameters from one to a trillion.
//!
//! Differences of log-gammas lose all their digits at such sizes. Everything here is built instead on
//!
//! ```text
//! ln [xᵃ yᵇ / B(a, b)] = ½ ln(ab / 2πs) + δ(s) − δ(a) − δ(b) − D(a, sx) − D(b, sy),    x + y = 1, s = a + b
//! ```
//!
//! with `δ` the small error of Stirling's formula and `D(v, μ) = v ln(v/μ) + μ − v ≥ 0` the deviance, which never
//! cancel against each other.

use std::f64::consts::TAU;

use crate::kernel::math::{exp, ln};

/// A Beta distribution; both parameters are at least one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beta {
    pub a: f64,
    pub b: f64,
}

/// A point `x` of the unit interval with its complement `y = 1 − x`, so that neither end loses digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
}

/// The two sides of a cut through a distribution: `lower + upper = 1`, the smaller one to full relative precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tails {
    pub lower: f64,
    pub upper: f64,
}

impl Point {
    pub(super) fn at(x: f64) -> Self {
        Self { x, y: 1.0 - x }
    }

    fn swapped(self) -> Self {
        Self { x: self.y, y: self.x }
    }
}

impl Tails {
    pub(super) fn from_lower(lower: f64) -> Self {
        let lower = lower.min(1.0);
        Self { lower, upper: 1.0 - lower }
    }

    pub(super) fn from_upper(upper: f64) -> Self {
        Self::from_lower(upper).swapped()
    }

    pub(super) fn swapped(self) -> Self {
        Self { lower: self.upper, upper: self.lower }
    }
}

impl Beta {
    fn swapped(self) -> Self {
        Self { a: self.b, b: self.a }
    }

    /// The mass below and above `at`, in a number of steps that grows as `√(a + b)`.
    pub(super) fn tails(self, at: Point) -> Tails {
        if at.x <= 0.0 {
            return Tails::from_lower(0.0);
        }
        if at.y <= 0.0 {
            return Tails::from_upper(0.0);
        }
        // The fraction converges fast, with positive terms, on the side of the mean away from the bulk.
        if self.excess(at) >= 0.0 {
            Tails::from_lower(self.lower_tail(at))
        } else {
            Tails::from_upper(self.swapped().lower_tail(at.swapped()))
        }
    }

    /// The point with mass `tails.lower` below it, by Newton's method on the logarithm of the smaller tail.
    ///
    /// In the logarithm a tail is nearly a parabola however small it is; a bracket catches the steps that leave it.
    pub(super) fn quantile(self, tails: Tails) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        let mut x = self.a / (self.a + self.b);
        // Bisection alone would be done after about 60 steps; Newton takes fewer than ten.
        for _ in 0..200 {
            let at = Point::at(x);
            let found = self.tails(at);
            let density = exp(self.ln_kernel(at)) / (at.x * at.y);
            let beyond = if tails.lower <= tails.upper {
                ln(found.lower / tails.lower) * (found.lower / density)
            } else {
                ln(tails.upper / found.upper) * (found.upper / density)
            };
            if found.lower < tails.lower || found.upper > tails.upper {
                low = x;
            } else {
                high = x;
            }
            let newton = x - beyond;
            let next = if newton > low && newton < high { newton } else { f64::midpoint(low, high) };
            if (next - x).abs() <= f64::EPSILON * x {
                return next;
            }
            x = next;
        }
        x
    }

    /// `ln [xᵃ yᵇ / B(a, b)]`, the density times `xy`.
    fn ln_kernel(self, at: Point) -> f64 {
        let Self { a, b } = self;
        let sum = a + b;
        let excess = self.excess(at);
        self.ln_kernel_at_mean() - deviance(a, sum * at.x, excess) - deviance(b, sum * at.y, -excess)
    }

    /// [`Self::ln_kernel`] at the mean, where both deviances vanish.
    pub(super) fn ln_kernel_at_mean(self) -> f64 {
        let Self { a, b } = self;
        let sum = a + b;
        0.5 * ln(a / sum * b / TAU) + (stirling_error(sum) - stirling_error(a) - stirling_error(b))
    }

    /// `a − (a + b) x`: how far below the mean the point lies, times `a + b`.
    fn excess(self, at: Point) -> f64 {
        let sum = self.a + self.b;
        if at.x <= at.y { minus_product(self.a, sum, at.x) } else { -minus_product(self.b, sum, at.y) }
    }

    /// The mass below `at`, for a point at or below the mean, by the continued fraction of Didonato and Morris.
    fn lower_tail(self, at: Point) -> f64 {
        let Self { a, b } = self;
        let excess = self.excess(at);
        let numerator = |k: f64| {
            let scale = at.x / (a + 2.0 * k - 1.0);
            ((a + k - 1.0) * scale) * ((a + b + k - 1.0) * scale) * k * (b - k)
        };
        let denominator = |k: f64| {
            let inner = k * (b - k) * at.x / (a + 2.0 * k - 1.0);
            k + inner + (a + k) * (excess + 1.0 + k * (1.0 + at.y)) / (a + 2.0 * k + 1.0)
        };
        // Steed's form adds ever smaller corrections, so slow convergence does not pile up rounding.
        let mut fraction = a * (excess + 1.0) / (a + 1.0);
        let mut inverse = 1.0 / denominator(1.0);
        let mut correction = numerator(1.0) * inverse;
        fraction += correction;
        let mut k = 2.0;
        while correction.abs() > NEGLIGIBLE * fraction {
            let top = numerator(k);
            let next = 1.0 / (denominator(k) + top * inverse);
            correction *= -top * inverse * next;
            fraction += correction;
            inverse = next;
            k += 1.0;
        }
        exp(self.ln_kernel(at)) / fraction
    }
}

/// What a series may leave out: far below rounding, even where terms shrink slowly.
pub(super) const NEGLIGIBLE: f64 = 1e-20;

/// `v ln(v/μ) + μ − v`, with `gap = v − μ` given apart because the caller knows it more exactly.
pub(super) fn deviance(v: f64, mean: f64, gap: f64) -> f64 {
    let t = -gap / v;
    if t.abs() < 0.3 {
        v * shortfall(t)
    } else if v > 0.0 {
        v * ln(v / mean) - gap
    } else {
        mean
    }
}

/// `t − ln(1 + t)` for small `t`, by the series of `ln(1 + t) = 2 artanh(w)` with its first term cancelled by hand.
fn shortfall(t: f64) -> f64 {
    let w = t / (2.0 + t);
    let square = w * w;
    let series = (0..13).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 3));
    w * t - 2.0 * w * square * series
}

/// `c − uv` as if the product were not rounded.
///
/// In the bulk the difference is a `√(a + b)`-th of its terms, so a rounded product would cost half the digits.
/// Dekker's splitting recovers what rounding took, with the same bits on every system.
fn minus_product(c: f64, u: f64, v: f64) -> f64 {
    let product = u * v;
    let ((u1, u2), (v1, v2)) = (halves(u), halves(v));
    let lost = ((u1 * v1 - product) + u1 * v2 + u2 * v1) + u2 * v2;
    (c - product) - lost
}

/// A number as a sum of two with at most 26 bits each, whose products are exact.
fn halves(v: f64) -> (f64, f64) {
    let shifted = 134_217_729.0 * v; // 2²⁷ + 1
    let high = shifted - (shifted - v);
    (high, v - high)
}

/// `ln Γ(v) − (v − ½) ln v + v − ½ ln 2π`, for `v ≥ 1`.
pub(super) fn stirling_error(v: f64) -> f64 {
    // Bernoulli numbers over 2k(2k − 1); from ten on, the first one left out is worth less than 1e-17.
    const COEFFICIENTS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let (mut v, mut stepped) = (v, 0.0);
    while v < 10.0 {
        stepped += (v + 0.5) * ln(1.0 + 1.0 / v) - 1.0;
        v += 1.0;
    }
    let square = 1.0 / (v * v);
    stepped + COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * square + c) / v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stirling_error_matches_factorials() {
        // ln Γ(v) from the product itself; at ten and above the series stands alone.
        for v in 1..=20_u32 {
            let factorial: f64 = (1..v).map(f64::from).product();
            let v = f64::from(v);
            let want = ln(factorial) - (v - 0.5) * ln(v) + v - 0.5 * ln(TAU);
            assert!((stirling_error(v) - want).abs() < 2e-14, "{v}");
        }
        assert!((stirling_error(1.0) - 0.081_061_466_795_327_26).abs() < 1e-15);
        assert!((stirling_error(1e6) - 1.0 / 12e6).abs() < 1e-20);
    }

    #[test]
    fn deviance_is_one_function_across_its_forms() {
        for mean in [1.299_999, 1.300_001, 0.700_001, 0.699_999, 3.0, 0.01] {
            assert!((deviance(1.0, mean, 1.0 - mean) - (mean - 1.0 - ln(mean))).abs() < 1e-15, "{mean}");
        }
        assert_eq!(deviance(0.0, 2.5, -2.5), 2.5);
        // t²/2 − t³/3 with t = 1e-9, where subtracting a logarithm would leave no digit.
        assert!((deviance(1.0, 1.0 + 1e-9, -1e-9) / 5e-19 - 1.0).abs() < 1e-8);
    }

    #[test]
    fn product_is_subtracted_unrounded() {
        let (u, v) = (1e9 + 1.0, 1.0 / 3.0);
        // 3v is 1 − 2⁻⁵⁴ exactly, so 3(c − uv) is 3c − u + u·2⁻⁵⁴.
        let c = 333_333_334.0;
        assert_eq!(minus_product(c, u, v), (3.0 * c - u) / 3.0 + u / 3.0 * (f64::EPSILON / 4.0));
    }

    #[test]
    fn uniform_and_power_laws_have_their_closed_forms() {
        for x in [1e-12, 0.1, 0.5, 0.77, 1.0 - 1e-9] {
            let uniform = Beta { a: 1.0, b: 1.0 }.tails(Point::at(x));
            assert!(
                (uniform.lower / x - 1.0).abs() < 1e-14 && (uniform.upper / (1.0 - x) - 1.0).abs() < 1e-14
            );
            let cube = Beta { a: 3.0, b: 1.0 }.tails(Point::at(x)).lower;
            assert!((cube / (x * x * x) - 1.0).abs() < 1e-14, "{x}: {cube}");
        }
    }
}
