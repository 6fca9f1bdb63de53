//! `Augment`: the small changes that make a training image another image of the same class.

use conformax::Generator;
use serde::{Deserialize, Serialize};

/// How training images are changed at random, anew in each epoch. By default they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Augment {
    /// Half of the images are mirrored, left to right.
    pub flip: bool,
    /// A border of this many black pixels is added on each side, and an image of the old size cut out anywhere.
    pub padding: usize,
    /// Each image is mixed with another of its batch, in shares drawn from a Beta distribution with this number twice;
    /// its loss is mixed alike. 0, which is off, to 1.
    #[serde(skip_serializing_if = "is_off")]
    pub mixup: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_off(mixup: &f64) -> bool {
    *mixup == 0.0
}

/// Where an image lands: shifted into its frame, then perhaps mirrored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Output row `y` shows input row `y + down`, a border where there is none.
    down: isize,
    /// Output column `x`, before mirroring, shows input column `x + right`.
    right: isize,
    mirrored: bool,
}

impl Augment {
    /// Draws a placement. What is not asked for draws nothing, so its draws are not shared with anything else.
    pub(crate) fn place(&self, mut draws: Generator) -> Placement {
        let mirrored = self.flip && draws.below(2) == 1;
        let mut shift = || match self.padding {
            0 => 0,
            padding => draws.below(2 * padding as u64 + 1) as isize - padding as isize,
        };
        Placement { down: shift(), right: shift(), mirrored }
    }

    /// The share of themselves that the images of a batch keep; nothing where images are not mixed.
    ///
    /// Jöhnk's way to draw from a Beta distribution: two powers of uniform numbers, until they sum to at most 1. At
    /// the largest `mixup` allowed every second pair does.
    pub(crate) fn kept(&self, mut draws: Generator) -> Option<f64> {
        if self.mixup == 0.0 {
            return None;
        }
        let mut power = || {
            const STEPS: u64 = 1 << 53;
            ((draws.below(STEPS) as f64 + 0.5) / STEPS as f64).powf(1.0 / self.mixup)
        };
        loop {
            let (one, other) = (power(), power());
            // Both may be too small for a number; then neither says anything.
            if one + other <= 1.0 && one + other > 0.0 {
                return Some(one / (one + other));
            }
        }
    }
}

/// `scale · x + offset`, one for each channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) scale: f32,
    pub(crate) offset: f32,
}

impl Placement {
    /// Writes one channel into `out`, of the same size, with `affine` applied; the border is black before that.
    pub(crate) fn write<T: Copy + Into<f32>>(
        self,
        plane: &[T],
        width: usize,
        affine: Affine,
        out: &mut [f32],
    ) {
        let height = (plane.len() / width) as isize;
        // Columns of the output that show the input; the others are border.
        let from = (-self.right).clamp(0, width as isize) as usize;
        let to = (width as isize - self.right).clamp(0, width as isize) as usize;
        for (y, row) in (0..).zip(out.chunks_exact_mut(width)) {
            row.fill(affine.offset);
            let source = y + self.down;
            if (0..height).contains(&source) && from < to {
                let start = source as usize * width + from.wrapping_add_signed(self.right);
                let source = &plane[start..][..to - from];
                for (value, pixel) in row[from..to].iter_mut().zip(source) {
                    *value = (*pixel).into() * affine.scale + affine.offset;
                }
            }
            if self.mirrored {
                row.reverse();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Affine = Affine { scale: 2.0, offset: 0.5 };

    fn written(placement: Placement) -> Vec<f32> {
        let mut out = vec![f32::NAN; 6];
        placement.write(&[1u8, 2, 3, 4, 5, 6], 3, DOUBLE, &mut out);
        out
    }

    #[test]
    fn shifts_mirrors_and_pads_with_black() {
        let at = |down, right, mirrored| written(Placement { down, right, mirrored });
        assert_eq!(at(0, 0, false), [2.5, 4.5, 6.5, 8.5, 10.5, 12.5]);
        assert_eq!(at(0, 0, true), [6.5, 4.5, 2.5, 12.5, 10.5, 8.5]);
        assert_eq!(at(1, 0, false), [8.5, 10.5, 12.5, 0.5, 0.5, 0.5]);
        assert_eq!(at(-1, -1, false), [0.5, 0.5, 0.5, 0.5, 2.5, 4.5]);
        assert_eq!(at(0, 2, false), [6.5, 0.5, 0.5, 12.5, 0.5, 0.5]);
        assert_eq!(at(0, 2, true), [0.5, 0.5, 6.5, 0.5, 0.5, 12.5]);
        assert_eq!(at(0, 7, false), [0.5; 6]);
        assert_eq!(at(0, -7, false), [0.5; 6]);
    }

    #[test]
    fn every_shift_is_as_likely_and_half_are_mirrored() {
        let augment = Augment { flip: true, padding: 1, ..Augment::default() };
        let mut counts = std::collections::BTreeMap::new();
        let epoch = Generator::new(5, "augment").stream(0);
        for row in 0..18_000 {
            let Placement { down, right, mirrored } = augment.place(epoch.stream(row));
            *counts.entry((down, right, mirrored)).or_insert(0) += 1;
        }
        // Eighteen placements, a thousand each, standard deviation 31.
        assert!(counts.len() == 18 && counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn shares_follow_the_beta_distribution() {
        assert_eq!(Augment::default().kept(Generator::new(1, "mixup")), None);
        for mixup in [0.2, 1.0] {
            let augment = Augment { mixup, ..Augment::default() };
            let draws = Generator::new(3, "mixup");
            let shares: Vec<f64> =
                (0..20_000).map(|step| augment.kept(draws.stream(step)).unwrap()).collect();
            let mean = shares.iter().sum::<f64>() / 20_000.0;
            let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 20_000.0;
            // Half, and 1/(4(2a + 1)).
            assert!((mean - 0.5).abs() < 0.01, "{mean}");
            assert!((variance - 0.25 / (2.0 * mixup + 1.0)).abs() < 0.005, "{variance} at {mixup}");
        }
    }

    #[test]
    fn nothing_is_drawn_by_default() {
        assert_eq!(Augment::default().place(Generator::new(1, "augment")), Placement::default());
    }
}
