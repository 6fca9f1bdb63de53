//! `exp`, `ln`, `pow` and their relatives, with the same bits on every machine.
//!
//! Only `+ − × ÷`, selects and integer operations on the bits: no table, no branch, no fused multiply-add. So
//! a loop over lanes becomes vector code by itself, and a lane gives the bits of a lone call.
//!
//! | function | method | largest error seen, ulp |
//! |---|---|---|
//! | [`exp`] | `x = k·ln 2 + r`, then `2ᵏ·(1 + r + r²/2 + r³·P(r))`, rounded as it goes | 0.91 |
//! | [`exp_m1`] | the same with `1 + r + r²/2` exact and one last rounding | 0.89 |
//! | [`ln`], [`ln_1p`] | `x = 2ⁿ·m`, then `n·ln 2 + s·(3 + w + w²·P(w))` in two words, to 2⁻⁶⁴ | 0.501, 0.67 |
//! | [`pow`] | `y·ln x` in two words, then as `exp_m1` | 0.57, rising to 0.82 where `|y·ln x|` nears 700 |
//!
//! Rounding again into a subnormal adds at most half of that subnormal's ulp. All are non-decreasing from one
//! `f64` to the next (`pow` in `x`, for `y ≥ 1/15`): noise before the last rounding is smaller than a step of
//! the argument. Tried on 10⁸ neighbours, and wherever `k` or `n` changes.

use std::f64::consts::LOG2_E;

/// Adding it rounds to an integer and leaves that integer in the low bits of the sum: 1.5 · 2⁵².
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// `ln 2` in two words; the first has 42 bits, so that its product with an exponent is exact.
const LN_2: Words =
    Words { hi: f64::from_bits(0x3fe6_2e42_fefa_3800), lo: f64::from_bits(0x3d2e_f357_93c7_6730) };

/// `exp` is 0 below the first and ∞ above the second.
const EXP_RANGE: (f64, f64) = (-746.0, 710.0);

/// `(eʳ − 1 − r − r²/2)/r³` for `|r| ≤ ln 2 / 2`: minimax, 2⁻⁵⁷ off in `eʳ` (fixtures/math/coefficients.py).
const EXP_TAIL: [f64; 9] = [
    0.16666666666666685,
    0.04166666666660284,
    0.008333333333313972,
    0.0013888888927245054,
    0.00019841269904809328,
    2.4801508125290693e-05,
    2.755722616855143e-06,
    2.7625404989207157e-07,
    2.511506804102479e-08,
];

/// `(3·atanh(√w)/√w − 3 − w)/w²` for `√w ≤ 3 − √8`: minimax, 2⁻⁷² off in `ln m` (fixtures/math/coefficients.py).
const LN_TAIL: [f64; 8] = [
    0.5999999999999996,
    0.4285714285716767,
    0.333333333263047,
    0.2727272830547141,
    0.23076835306537682,
    0.20004476127526183,
    0.1751222776353015,
    0.17983519895729455,
];

/// `eˣ`.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let x = if x > EXP_RANGE.1 { EXP_RANGE.1 } else { x };
    exp_scaled(x, Scale::of(x))
}

/// `eˣ` for `x ≤ 0`, with the bits of [`exp`]: a fifth faster, as only one end of the exponents is at risk.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f64) -> f64 {
    exp_scaled(x, Scale::DOWN)
}

/// `eˣ` for `−700 ≤ x ≤ 0`, with the bits of [`exp`]: no power of two leaves its word there, so that one product, which
/// is exact, does for two, which are.
#[inline(always)]
pub(crate) fn exp_near(x: f64) -> f64 {
    let (k, power) = Scale::NONE.split(x);
    exp_of_parts(x, k) * power
}

#[inline(always)]
fn exp_scaled(x: f64, scale: Scale) -> f64 {
    let x = if EXP_RANGE.0 > x { EXP_RANGE.0 } else { x };
    let (k, power) = scale.split(x);
    exp_of_parts(x, k) * power * scale.rest
}

/// `eˣ / 2ᵏ`.
#[inline(always)]
fn exp_of_parts(x: f64, k: f64) -> f64 {
    let hi = x - k * LN_2.hi;
    let lo = k * LN_2.lo;
    let r = hi - lo;
    // `hi` is exact and `lo` small: adding them apart loses less than adding `r`.
    1.0 + (hi + (r * r * (0.5 + r * exp_tail(r)) - lo))
}

/// `eˣ − 1` without cancellation near 0.
#[inline(always)]
pub(crate) fn exp_m1(x: f64) -> f64 {
    let bounded = if x < -40.0 { -40.0 } else { x };
    let bounded = if bounded > EXP_RANGE.1 { EXP_RANGE.1 } else { bounded };
    let (k, half) = Scale::HALF.split(bounded);
    let reduced = Words { hi: bounded - k * LN_2.hi, lo: -k * LN_2.lo };
    let (exact, tail) = reduced.exp_reduced();
    let (sum, lost) = two_sum(half * exact, -0.5);
    let y = (sum + (half * tail + lost)) * Scale::HALF.rest;
    // Here eˣ − 1 rounds to x, and halving might lose its last bit.
    if x.abs() < 1e-17 { x } else { y }
}

/// The natural logarithm: −∞ at 0, NaN below.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    let y = Words::ln(x);
    ln_edges(x, y.hi + y.lo)
}

/// `ln(1 + x)` without cancellation near 0.
#[inline(always)]
pub(crate) fn ln_1p(x: f64) -> f64 {
    let (sum, lost) = two_sum(1.0, x);
    let y = Words::ln(sum);
    ln_edges(sum, y.hi + (y.lo + lost / sum))
}

/// Puts what `ln` is at 0, ∞, NaN and below 0 in place of what the arithmetic made of them.
#[inline(always)]
fn ln_edges(x: f64, y: f64) -> f64 {
    let outside = if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    let y = if x > 0.0 { y } else { outside };
    if x == f64::INFINITY { x } else { y }
}

/// `xʸ` for `x ≥ 0`, NaN for others; `x⁰ = 1` and `x¹ = x` exactly.
#[inline(always)]
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    // At an exponent of 2⁷⁰ every x but 1 has gone to 0 or ∞.
    const FAR: f64 = 1_180_591_620_717_411_303_424.0;
    let bounded = if y > FAR { FAR } else { y };
    let bounded = if bounded < -FAR { -FAR } else { bounded };
    let z = Words::ln(x).times(bounded);
    let power = z.exp(Scale::of(z.hi));
    let size = if x == 0.0 { y * f64::NEG_INFINITY } else { z.hi };
    let size = if x == f64::INFINITY { y * f64::INFINITY } else { size };
    let power = if size < EXP_RANGE.0 { 0.0 } else { power };
    let power = if size > EXP_RANGE.1 { f64::INFINITY } else { power };
    let power = if x >= 0.0 { power } else { f64::NAN };
    let power = if y == 1.0 { x } else { power };
    if y == 0.0 { 1.0 } else { power }
}

/// `xʸ` for `0 ≤ x ≤ 1` and `0 < y ≤ 2⁷⁰`, with the bits of [`pow`]: a fifth faster for the edges it lacks.
#[inline(always)]
pub(crate) fn pow_unit(x: f64, y: f64) -> f64 {
    let z = Words::ln(x).times(y);
    let power = z.exp(Scale::DOWN);
    let gone = (z.hi < EXP_RANGE.0) | (x == 0.0);
    let power = if gone { 0.0 } else { power };
    if y == 1.0 { x } else { power }
}

/// How to multiply by `2ᵏ` where `k` passes the exponents of one word: by `2ᵏ / rest`, then by `rest`.
#[derive(Clone, Copy)]
struct Scale {
    rounder: f64,
    rest: f64,
}

impl Scale {
    /// For `k` from −1534 to 511.
    const DOWN: Self = Self::new(-512);
    /// For `k` from −510 to 1535.
    const UP: Self = Self::new(512);
    /// For `k` from −1022 to 1023.
    const NONE: Self = Self::new(0);
    /// For `k` from −1021 to 1024.
    const HALF: Self = Self::new(1);

    const fn new(rest: i64) -> Self {
        Self { rounder: ROUNDER + (1023 - rest) as f64, rest: f64::from_bits(((1023 + rest) as u64) << 52) }
    }

    #[inline(always)]
    fn of(x: f64) -> Self {
        Self {
            rounder: if x < 0.0 { Self::DOWN.rounder } else { Self::UP.rounder },
            rest: if x < 0.0 { Self::DOWN.rest } else { Self::UP.rest },
        }
    }

    /// `k`, the integer nearest to `x / ln 2`, and `2ᵏ / rest`.
    #[inline(always)]
    fn split(self, x: f64) -> (f64, f64) {
        let sum = x * LOG2_E + self.rounder;
        (sum - self.rounder, f64::from_bits(sum.to_bits() << 52))
    }
}

/// A number as a sum: a word and a much smaller one.
#[derive(Clone, Copy)]
struct Words {
    hi: f64,
    lo: f64,
}

impl Words {
    /// `ln x` for positive finite `x`.
    #[inline(always)]
    fn ln(x: f64) -> Self {
        let (n, m) = split_exponent(x);
        // s = (2/3)·(m − 1)/(m + 1), and ln m = s·t for t = 3 + w + w²·P(w), w = (9/4)·s². Each is cut into
        // a head, short enough for exact products, and what is left.
        let f = m - 1.0;
        let inverse = 1.0 / (1.5 * (m + 1.0));
        let s = f * inverse;
        let s_hi = head::<24>(s);
        let d_hi = head::<24>(m + 1.0);
        let d_lo = m - (d_hi - 1.0);
        let s_lo = ((f - s_hi * (1.5 * d_hi)) - s_hi * (1.5 * d_lo)) * inverse;
        let w_hi = 2.25 * s_hi * s_hi;
        let w_lo = 2.25 * s_lo * (s_hi + s);
        let w = w_hi + w_lo;
        let rest = w * w * ln_tail(w) + w_lo;
        let t_hi = head::<26>(3.0 + (w_hi + rest));
        let t_lo = rest - ((t_hi - 3.0) - w_hi);
        let p_hi = s_hi * t_hi;
        let p_lo = s_lo * t_hi + t_lo * s;
        // n·ln 2 is 0 or larger than ln m, so what the sum loses is exact too.
        let whole = n * LN_2.hi;
        let hi = whole + p_hi;
        Self { hi, lo: (p_hi - (hi - whole)) + (p_lo + n * LN_2.lo) }
    }

    #[inline(always)]
    fn times(self, y: f64) -> Self {
        let (a, b) = (head::<26>(self.hi), head::<26>(y));
        Self { hi: a * b, lo: a * (y - b) + y * ((self.hi - a) + self.lo) }
    }

    /// `e^self`, where `scale` covers it.
    #[inline(always)]
    fn exp(self, scale: Scale) -> f64 {
        let (k, power) = scale.split(self.hi);
        let reduced = Self { hi: self.hi - k * LN_2.hi, lo: self.lo - k * LN_2.lo };
        let (exact, tail) = reduced.exp_reduced();
        (exact + tail) * power * scale.rest
    }

    /// `e^self` for `|self| ≤ ln 2 / 2`, as an exact part and a tail below a hundredth.
    #[inline(always)]
    fn exp_reduced(self) -> (f64, f64) {
        // g is the argument on a grid of 2⁻²⁵, so that 1 + g + g²/2 fits a word.
        const GRID: f64 = ROUNDER / 33_554_432.0;
        let r = self.hi + self.lo;
        let g = (r + GRID) - GRID;
        let h = (self.hi - g) + self.lo;
        (1.0 + (g + 0.5 * g * g), h + (h * (g + 0.5 * h) + r * r * r * exp_tail(r)))
    }
}

/// `(n, m)` with `x = 2ⁿ·m` and `m ∈ [√½, √2)`.
#[inline(always)]
fn split_exponent(x: f64) -> (f64, f64) {
    const ONE: u64 = 1.0_f64.to_bits();
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const MANTISSA: u64 = (1 << 52) - 1;
    // The bits of 2⁵² plus a small integer end in that integer.
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    let subnormal = x < f64::MIN_POSITIVE;
    let normal = if subnormal { x * (4.0 * TWO_52) } else { x };
    let bias = if subnormal { TWO_52 + 1077.0 } else { TWO_52 + 1023.0 };
    let bits = normal.to_bits().wrapping_add(ONE - SQRT_HALF);
    let n = f64::from_bits(TWO_52.to_bits() | (bits >> 52)) - bias;
    (n, f64::from_bits((bits & MANTISSA) + SQRT_HALF))
}

#[inline(always)]
fn exp_tail(r: f64) -> f64 {
    let c = EXP_TAIL;
    let r2 = r * r;
    let even = c[0] + r2 * (c[2] + r2 * (c[4] + r2 * (c[6] + r2 * c[8])));
    let odd = c[1] + r2 * (c[3] + r2 * (c[5] + r2 * c[7]));
    even + r * odd
}

#[inline(always)]
fn ln_tail(w: f64) -> f64 {
    let c = LN_TAIL;
    let w2 = w * w;
    let even = c[0] + w2 * (c[2] + w2 * (c[4] + w2 * c[6]));
    let odd = c[1] + w2 * (c[3] + w2 * (c[5] + w2 * c[7]));
    even + w * odd
}

/// The leading `BITS` bits of `x`.
#[inline(always)]
fn head<const BITS: u32>(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & (u64::MAX << (53 - BITS)))
}

/// `a + b` rounded, and what rounding took off it.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    /// A small generator of our own: the pinned bits below must not move with a crate.
    struct Draws(u64);

    impl Draws {
        fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        fn between(&mut self, lo: f64, hi: f64) -> f64 {
            lo + (hi - lo) * ((self.bits() >> 11) as f64 / 9_007_199_254_740_992.0)
        }

        /// Positive, of every magnitude, subnormals too.
        fn magnitude(&mut self) -> f64 {
            f64::from_bits(self.bits() % INF.to_bits())
        }
    }

    /// The largest error in ulp of `f` over the lines of a fixture.
    fn worst(fixture: &str, f: impl Fn(&[f64]) -> f64) -> f64 {
        let error = |line: &str| {
            let (values, above) = line.rsplit_once(' ').unwrap();
            let values: Vec<f64> =
                values.split(' ').map(|hex| f64::from_bits(u64::from_str_radix(hex, 16).unwrap())).collect();
            let (nearest, arguments) = values.split_last().unwrap();
            let got = f(arguments);
            assert_eq!(got.is_sign_positive(), nearest.is_sign_positive(), "{arguments:?}");
            let steps = got.abs().to_bits() as i64 - nearest.abs().to_bits() as i64;
            let above = above.parse::<f64>().unwrap() / 1000.0;
            (steps as f64 - above * nearest.signum()).abs()
        };
        assert!(fixture.lines().count() >= 1000);
        fixture.lines().map(error).fold(0.0, f64::max)
    }

    macro_rules! fixture {
        ($name:literal) => {
            include_str!(concat!("../../../../fixtures/math/", $name, ".txt"))
        };
    }

    #[test]
    fn stays_within_the_stated_errors() {
        let errors = [
            (worst(fixture!("exp"), |x| exp(x[0])), 0.91),
            (worst(fixture!("exp_m1"), |x| exp_m1(x[0])), 0.90),
            (worst(fixture!("ln"), |x| ln(x[0])), 0.502),
            (worst(fixture!("ln_1p"), |x| ln_1p(x[0])), 0.67),
            (worst(fixture!("pow"), |x| pow(x[0], x[1])), 0.82),
        ];
        assert!(errors.iter().all(|(error, bound)| error <= bound), "{errors:?}");
    }

    /// Any compiler, CPU or edit that changes a bit of a result changes one of these.
    #[test]
    fn bits_are_pinned() {
        let mut draws = Draws(1);
        let mut pins = [0xcbf2_9ce4_8422_2325_u64; 5];
        for _ in 0..20_000 {
            let x = draws.between(-760.0, 720.0);
            let near = draws.between(-1.0, 1.0);
            let size = draws.magnitude();
            let (ratio, delta) = (draws.between(0.0, 1.0), draws.between(0.06, 15.0));
            let results = [exp(x), exp_m1(near), ln(size), ln_1p(near), pow(ratio, delta)];
            for (pin, result) in pins.iter_mut().zip(results) {
                *pin = (*pin ^ result.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        let pinned = [
            0xa36b_4110_6e57_189e,
            0x4583_d38e_c838_e294,
            0x5860_fc21_1801_88aa,
            0xd6d6_9574_2dc6_e55c,
            0x42af_1ad1_f83f_0c4c,
        ];
        assert_eq!(pins, pinned, "{pins:x?}");
    }

    #[test]
    fn exp_at_its_edges() {
        for exp in [exp, exp_nonpositive] {
            assert_eq!(exp(0.0), 1.0);
            assert_eq!(exp(-0.0), 1.0);
            assert_eq!(exp(-INF), 0.0);
            assert_eq!(exp(f64::MIN), 0.0);
            assert_eq!(exp(-745.14), 0.0);
            assert_eq!(exp(-745.13), f64::from_bits(1));
            assert!(exp(f64::NAN).is_nan());
            assert!(exp(-f64::NAN).is_nan());
            assert!(exp(f64::from_bits(0x7ff8_0000_0000_0fff)).is_nan());
        }
        assert_eq!(exp(INF), INF);
        assert_eq!(exp(f64::MAX), INF);
        assert_eq!(exp(709.79), INF);
        assert!(exp(709.78) < INF);
        assert_eq!(exp(f64::MIN_POSITIVE), 1.0);
    }

    #[test]
    fn exp_m1_at_its_edges() {
        let least = f64::from_bits(1);
        assert_eq!([exp_m1(0.0), exp_m1(-INF), exp_m1(-50.0), exp_m1(INF)], [0.0, -1.0, -1.0, INF]);
        assert_eq!([exp_m1(least), exp_m1(-least), exp_m1(709.79)], [least, -least, INF]);
        assert!(exp_m1(709.78) < INF);
        assert!(exp_m1(f64::NAN).is_nan());
    }

    #[test]
    fn ln_at_its_edges() {
        assert_eq!([ln(0.0), ln(-0.0), ln(1.0), ln(INF)], [-INF, -INF, 0.0, INF]);
        assert_eq!(ln(1.0).to_bits(), 0);
        assert!([ln(-1.0), ln(-INF), ln(f64::NAN), ln(-f64::MIN_POSITIVE)].iter().all(|y| y.is_nan()));
        assert_eq!(ln(f64::from_bits(1)), -744.440_071_921_381_2);
        assert_eq!(ln(2.0), std::f64::consts::LN_2);
        let least = f64::from_bits(1);
        assert_eq!([ln_1p(0.0), ln_1p(-1.0), ln_1p(INF), ln_1p(least)], [0.0, -INF, INF, least]);
        assert!(ln_1p(-1.5).is_nan() && ln_1p(f64::NAN).is_nan());
        assert_eq!(ln_1p(f64::MAX), ln(f64::MAX));
    }

    #[test]
    fn pow_at_its_edges() {
        for x in [0.0, f64::from_bits(1), 0.3, 1.0, 7.5, f64::MAX, INF] {
            assert_eq!(pow(x, 0.0), 1.0, "{x}");
            assert_eq!(pow(x, 1.0), x);
        }
        for y in [-INF, -2.5, 1e-300, 0.07, 1.0, 3.0, 1e16, 1e300, INF] {
            assert_eq!(pow(1.0, y), 1.0, "{y}");
            assert_eq!(pow(0.0, y), if y > 0.0 { 0.0 } else { INF });
            assert_eq!(pow(INF, y), if y > 0.0 { INF } else { 0.0 });
        }
        assert_eq!([pow(0.5, INF), pow(2.0, INF), pow(0.5, -INF), pow(2.0, -INF)], [0.0, INF, INF, 0.0]);
        assert_eq!([pow(0.5, 1e300), pow(2.0, 1e300)], [0.0, INF]);
        assert_eq!([pow(2.0, -1074.0), pow(2.0, -1076.0), pow(2.0, 1024.0)], [f64::from_bits(1), 0.0, INF]);
        assert!([pow(f64::NAN, 2.0), pow(0.5, f64::NAN), pow(-2.0, 2.0)].iter().all(|p| p.is_nan()));
    }

    /// Beside every place where the reduction changes step, and everywhere between.
    #[test]
    fn a_near_exponential_has_the_bits_of_any() {
        let mut draws = Draws(5);
        let same = |x: f64| assert_eq!(exp_near(x).to_bits(), exp(x).to_bits(), "{x:e}");
        [0.0, -0.0, -700.0, -1e-300, -f64::MIN_POSITIVE / 4.0].into_iter().for_each(same);
        for k in -1009..=0 {
            let mut x = ((f64::from(k) - 0.5) * std::f64::consts::LN_2).max(-699.9);
            for _ in 0..40 {
                x = x.next_up();
                same(x);
            }
        }
        (0..1_000_000).for_each(|_| same(draws.between(-700.0, 0.0)));
        (0..100_000).for_each(|_| same(-draws.magnitude() % 700.0));
    }

    #[test]
    fn powers_of_small_integers_are_exact() {
        for base in 2..=10_u64 {
            let (mut product, mut exponent) = (base, 1.0);
            while product < 1 << 53 {
                assert_eq!(pow(base as f64, exponent), product as f64, "{base}^{exponent}");
                (product, exponent) = (product * base, exponent + 1.0);
            }
        }
    }

    /// Checks `f` on `x` and the next `steps` values above.
    fn assert_rises(what: &str, mut x: f64, steps: usize, f: impl Fn(f64) -> f64) {
        let mut before = f(x);
        for _ in 0..steps {
            x = x.next_up();
            let after = f(x);
            assert!(after >= before, "{what}({x:e}) = {after:e} fell from {before:e}");
            before = after;
        }
    }

    #[test]
    fn never_falls_between_neighbours() {
        let mut draws = Draws(2);
        for _ in 0..5_000 {
            assert_rises("exp", draws.between(-1.0, 1.0), 20, exp);
            assert_rises("exp", draws.between(-750.0, 711.0), 5, exp);
            assert_rises("exp_m1", draws.between(-3.0, 3.0), 20, exp_m1);
            assert_rises("ln", draws.between(0.5, 2.0), 20, ln);
            assert_rises("ln", draws.magnitude(), 5, ln);
            assert_rises("ln_1p", draws.between(-1.0, 1.0), 20, ln_1p);
            let root = draws.between(1.0 / 15.0, 1.0);
            assert_rises("pow", draws.between(0.0, 1.0), 20, |x| pow(x, root));
            let order = 1.0 / draws.between(1e-4, 1.0);
            assert_rises("pow", draws.between(0.0, 1.0), 20, |x| pow(x, order));
            assert_rises("pow", draws.between(1.0, 1000.0), 20, |x| pow(x, root));
        }
    }

    #[test]
    fn never_falls_where_the_reduction_changes_step() {
        for k in -1076..=1024 {
            let seam = (f64::from(k) + 0.5) * std::f64::consts::LN_2;
            assert_rises("exp", seam - 20.0 * f64::EPSILON * seam.abs(), 60, exp);
        }
        for n in -1070..=1023 {
            let two_n = f64::from_bits(if n < -1022 { 1 << (n + 1074) } else { ((n + 1023) as u64) << 52 });
            let seam = std::f64::consts::FRAC_1_SQRT_2 * two_n;
            assert_rises("ln", seam * (1.0 - 20.0 * f64::EPSILON), 40, ln);
            assert_rises("pow", seam * (1.0 - 20.0 * f64::EPSILON), 40, |x| pow(x, 0.07));
        }
    }
}
