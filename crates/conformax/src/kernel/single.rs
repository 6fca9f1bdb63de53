//! Sums in single precision, twice as many lanes at a time as in double, for estimates that decide nothing close.
//!
//! A lane adds up [`TERMS`] terms that are not negative, and [`fold`] takes five steps more, so a sum of exact terms is
//! off by less than 37·2⁻²⁴, or 2.3·10⁻⁶, of itself. What the terms are off by is said where they are made.

/// Lanes of these sums. Their number is a matter of speed: no result depends on it.
pub(super) const WIDTH: usize = 32;

/// Terms that a lane adds up before the sum is put aside in double precision.
const TERMS: usize = 32;

/// Logits that are added up in single precision.
pub(super) const BLOCK: usize = TERMS * WIDTH;

/// Orders for which a sum of powers in single precision is as close as [`error_in_single`] says: in smaller ones gaps
/// too small for single precision would count, in larger ones rounded gaps would be off by too much.
pub(crate) const DELTAS_IN_SINGLE: std::ops::RangeInclusive<f64> = 0.5..=64.0;

/// Thresholds that single precision holds, with their inverses, and far from where gaps that count become subnormal.
pub(crate) const THRESHOLDS_IN_SINGLE: std::ops::Range<f64> = 1e-20..1e30;

/// How far, relatively, a sum of powers of gaps over their threshold may be off, with as much again to spare.
///
/// A gap of two logits in the type that holds them, made single and divided by the threshold, is rounded four times:
/// its power by 4δ·2⁻²⁴. Lanes of a block add up 32 terms and are folded in five steps: 2⁻²⁴ for each. [`power`] adds
/// the rounding of `y·log₂x`, 2⁻²³ of an exponent that is 30 at most in terms larger than 10⁻⁹, and δ times 2⁻²² for
/// the logarithm itself. Together 5·10⁻⁶ + 6·10⁻⁷δ. The definition's own rounding is a thousandth of that.
pub(crate) fn error_in_single(delta: f64) -> f64 {
    1e-5 + 1e-6 * delta
}

#[inline(always)]
pub(super) fn fold(mut lanes: [f32; WIDTH]) -> f32 {
    for half in [16, 8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
    }
    lanes[0]
}

/// `xʸ` for `0 < x ≤ 1`, by the method of [`pow`](super::math::pow). A subnormal `x` counts as 2⁻¹²⁷ or so, in sums to
/// which it adds nothing.
#[inline(always)]
pub(super) fn power(x: f32, y: f32) -> f32 {
    const SQRT_HALF: i32 = 0x3f35_04f3;
    // Of s in 2/ln 2 · atanh(s): what is left out is below 2⁻²⁴.
    const LOG: [f32; 4] = [2.885_39, 0.961_796_7, 0.577_078, 0.412_198_6];
    let bits = x.to_bits().cast_signed();
    let exponent = (bits - SQRT_HALF) >> 23;
    let m = f32::from_bits((bits - (exponent << 23)).cast_unsigned());
    let s = (m - 1.0) / (m + 1.0);
    let w = s * s;
    exp2(y * (exponent as f32 + s * (LOG[0] + w * (LOG[1] + w * (LOG[2] + w * LOG[3])))))
}

/// `2ˣ` for `x` up to 127; powers below 2⁻¹²⁶ come out as that.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    /// Adding it rounds to an integer and leaves that in the low bits of the sum: 1.5 · 2²³.
    const ROUNDER: f32 = 12_582_912.0;
    // Of f in 2^f for |f| ≤ ½, powers of ln 2 over factorials: what is left out is below 2⁻²².
    const EXP: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_5,
        0.055_504_11,
        0.009_618_129,
        0.001_333_355_8,
        0.000_154_035_3,
    ];
    let x = if x > -126.0 { x } else { -126.0 };
    let rounded = x + ROUNDER;
    let f = x - (rounded - ROUNDER);
    let mut value = EXP[6];
    for term in [EXP[5], EXP[4], EXP[3], EXP[2], EXP[1], EXP[0]] {
        value = value * f + term;
    }
    value * f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23))
}
