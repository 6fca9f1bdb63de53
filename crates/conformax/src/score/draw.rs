//! `Draw`: where a randomised score takes its uniform draw from.
//!
//! The draw is a hash of the seed and of the row's own logits. Given the seed, a randomised score is then a
//! fixed function of the row: exchangeability is exact, and scoring row 7 alone gives what the batch gives. An
//! index or a counter would tie a row's draw to its position, and calibration and test rows would share draws.

use crate::random::mix;

/// The uniform draw of APS, RAPS and SAPS. A draw given with the row ([`Row::with_u`](crate::Row::with_u))
/// takes precedence over a seed.
///
/// ```
/// use conformax::{ApsScore, Draw, Row, Score};
/// let row = Row::new(&[1.0_f32, 2.0])?;
/// let (seeded, plain) = (ApsScore { draw: Draw::Seeded(0) }, ApsScore { draw: Draw::Conservative });
/// assert!(seeded.score(row, 0) < plain.score(row, 0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Draw {
    /// `U` in [0, 1) from this seed and the row.
    Seeded(u64),
    /// Not randomised: the largest value of the randomised score, which is at `U = 0` for APS and RAPS and at
    /// `U = 1` for SAPS. Draws given with the row are not used.
    Conservative,
}

impl Default for Draw {
    fn default() -> Self {
        Self::Seeded(0)
    }
}

impl Draw {
    /// The draw of a row with this maximum, this `Σ exp(z − max)` and this many classes; `largest` is the one at which
    /// the score is largest.
    #[inline]
    pub(crate) fn u(self, given: Option<f64>, max: f64, sum: f64, classes: usize, largest: f64) -> f64 {
        match (self, given) {
            (Self::Conservative, _) => largest,
            // + 0.0, since a caller's −0 would come out of SAPS as it is.
            (Self::Seeded(_), Some(u)) => u + 0.0,
            (Self::Seeded(seed), None) => uniform(seed, max, sum, classes),
        }
    }
}

/// The scheme named `splitmix64-chain-1`: `h ← mix(h ⊕ word)` over seed, max, sum and classes, then the upper
/// 53 bits. Its name and bits are stored in calibration files and never change.
fn uniform(seed: u64, max: f64, sum: f64, classes: usize) -> f64 {
    // + 0.0 makes −0 the same row as +0.
    let words = [seed, (max + 0.0).to_bits(), (sum + 0.0).to_bits(), classes as u64];
    let hash = words.into_iter().fold(0, |hash, word| mix(hash ^ word));
    (hash >> 11) as f64 * f64::from_bits((1023 - 53) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_never_change() {
        let bits = [uniform(0, 1.5, 2.25, 10), uniform(7, -3.0, 1.0, 1000)].map(f64::to_bits);
        assert_eq!(bits, [0x3fd4_d583_de61_b240, 0x3fd0_6cd1_6a81_bbfa], "{bits:x?}");
    }

    #[test]
    fn depends_on_every_word_and_not_on_the_sign_of_zero() {
        let base = uniform(1, 0.0, 2.0, 3);
        assert_eq!(base, uniform(1, -0.0, 2.0, 3));
        for other in [
            uniform(2, 0.0, 2.0, 3),
            uniform(1, 0.5, 2.0, 3),
            uniform(1, 0.0, 2.5, 3),
            uniform(1, 0.0, 2.0, 4),
        ] {
            assert_ne!(base, other);
        }
    }

    /// SAPS multiplies by it, and no score is −0.
    #[test]
    fn a_given_draw_is_never_minus_zero() {
        assert_eq!(Draw::Seeded(0).u(Some(-0.0), 1.0, 2.0, 3, 1.0).to_bits(), 0);
        assert_eq!(Draw::Seeded(0).u(Some(0.25), 1.0, 2.0, 3, 1.0), 0.25);
        for largest in [0.0, 1.0] {
            assert_eq!(Draw::Conservative.u(Some(0.25), 1.0, 2.0, 3, largest), largest);
        }
    }

    #[test]
    fn looks_uniform() {
        let mut counts = [0u32; 16];
        for i in 0..16_000 {
            counts[(uniform(3, f64::from(i) / 8.0, 1.0, 10) * 16.0) as usize] += 1;
        }
        let chi2: f64 =
            counts.iter().map(|c| (f64::from(*c) - 1000.0) * (f64::from(*c) - 1000.0) / 1000.0).sum();
        assert!(chi2 < 37.7, "0.1 % quantile of chi-squared with 15 degrees of freedom, got {chi2}");
    }
}
