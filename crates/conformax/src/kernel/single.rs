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
