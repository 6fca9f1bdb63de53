//! `Element`: what a kernel may do with one logit of any width.

/// A logit as the kernels see it. Sealed: implemented for the types that [`Logit`](crate::Logit) lists.
pub trait Element: sealed::Sealed + Copy + Send + Sync + std::fmt::Debug + 'static {
    /// The type in which maxima and comparisons run: exact for this one, and the cheapest such.
    #[doc(hidden)]
    type Wide: Wide;

    /// Exact.
    #[doc(hidden)]
    fn widen(self) -> Self::Wide;

    /// Exact.
    #[inline(always)]
    #[doc(hidden)]
    fn to_f64(self) -> f64 {
        self.widen().to_f64()
    }
}

/// `f32` or `f64`.
#[doc(hidden)]
pub trait Wide: Copy + PartialOrd + Send + Sync + std::ops::Add<Output = Self> {
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    /// Whether the last bits of a double that holds such a number are free.
    const LEAVES_LAST_BITS: bool;
    /// A logit and its label as one integer, so that sorting needs no look-ups and no branches.
    type Key: Ord + Copy + Default;
    /// Keys rise as logits fall; equal logits by label.
    fn key(self, label: u32) -> Self::Key;
    fn label(key: Self::Key) -> u32;
    /// Sorts labels by falling logit, equal logits by label; `logits` are theirs.
    fn sort(logits: &[Self], labels: &mut [u32]);
    fn to_f64(self) -> f64;
    /// `self − other` in this type, then in single precision.
    fn above(self, other: Self) -> f32;
    fn nearest(value: f64) -> Self;
    /// The next value above.
    fn following(self) -> Self;
    /// A value no larger than `bound` and close to it.
    fn at_most(bound: f64) -> Self;
    /// A value no smaller than `bound` and close to it.
    fn at_least(bound: f64) -> Self;
}

impl Wide for f32 {
    const ZERO: Self = 0.0;
    const LEAVES_LAST_BITS: bool = true;
    type Key = u64;

    #[inline(always)]
    fn key(self, label: u32) -> u64 {
        // + 0.0 makes −0 equal to +0.
        let bits = (self + 0.0).to_bits();
        let rising = bits ^ ((bits.cast_signed() >> 31).cast_unsigned() | 1 << 31);
        u64::from(!rising) << 32 | u64::from(label)
    }

    #[inline(always)]
    fn label(key: u64) -> u32 {
        key as u32
    }

    fn sort(logits: &[Self], labels: &mut [u32]) {
        super::sort::sort_single(logits, labels);
    }

    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn above(self, other: Self) -> f32 {
        self - other
    }

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn following(self) -> Self {
        self.next_up()
    }

    #[inline(always)]
    fn at_most(bound: f64) -> Self {
        (bound as Self).next_down()
    }

    #[inline(always)]
    fn at_least(bound: f64) -> Self {
        (bound as Self).next_up()
    }
}

impl Wide for f64 {
    const ZERO: Self = 0.0;
    const LEAVES_LAST_BITS: bool = false;
    type Key = u128;

    #[inline(always)]
    fn key(self, label: u32) -> u128 {
        let bits = (self + 0.0).to_bits();
        let rising = bits ^ ((bits.cast_signed() >> 63).cast_unsigned() | 1 << 63);
        u128::from(!rising) << 32 | u128::from(label)
    }

    #[inline(always)]
    fn label(key: u128) -> u32 {
        key as u32
    }

    fn sort(logits: &[Self], labels: &mut [u32]) {
        super::sort::sort_by_keys(logits, labels, super::sort::sort_by_leading_bits);
    }

    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn above(self, other: Self) -> f32 {
        (self - other) as f32
    }

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn following(self) -> Self {
        self.next_up()
    }

    #[inline(always)]
    fn at_most(bound: f64) -> Self {
        bound
    }

    #[inline(always)]
    fn at_least(bound: f64) -> Self {
        bound
    }
}

impl Element for f32 {
    type Wide = Self;

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }
}

impl Element for f64 {
    type Wide = Self;

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }
}

#[cfg(feature = "half")]
impl Element for half::bf16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

#[cfg(feature = "half")]
impl Element for half::f16 {
    type Wide = f32;

    /// Shifts the fields into place and rescales; without a branch, so that loops over it vectorise.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let magnitude = (bits & 0x7fff) << 13;
        // 2^112 moves the exponent's bias from 15 to 127 and normalises subnormals on the way.
        let finite = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
        let special = f32::from_bits(magnitude | 0x7f80_0000);
        let value = if magnitude >= 0x0f80_0000 { special } else { finite };
        f32::from_bits(value.to_bits() | (bits & 0x8000) << 16)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    #[cfg(feature = "half")]
    impl Sealed for half::f16 {}
    #[cfg(feature = "half")]
    impl Sealed for half::bf16 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_falling_logit_then_label() {
        let logits = [f64::NEG_INFINITY, -1e300, -2.5, -1e-310, 0.0, 1e-310, 0.5, 7.0, 1e300];
        for pair in logits.windows(2) {
            assert!(pair[1].key(9) < pair[0].key(3), "{pair:?}");
            let single = [pair[0] as f32, pair[1] as f32];
            assert!(single[0] == single[1] || single[1].key(9) < single[0].key(3), "{single:?}");
        }
        assert!((-0.0_f64).key(1) < 0.0_f64.key(2) && 0.0_f32.key(1) < (-0.0_f32).key(2));
        assert_eq!((f64::label(3.5_f64.key(u32::MAX)), f32::label((-3.5_f32).key(7))), (u32::MAX, 7));
    }

    #[cfg(feature = "half")]
    #[test]
    fn widens_every_half_float_exactly() {
        for bits in 0..=u16::MAX {
            let (f16, bf16) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            assert!(f16.widen().to_bits() == f16.to_f32().to_bits() || f16.is_nan() && f16.widen().is_nan());
            assert!(
                bf16.widen().to_bits() == bf16.to_f32().to_bits() || bf16.is_nan() && bf16.widen().is_nan()
            );
        }
    }
}
