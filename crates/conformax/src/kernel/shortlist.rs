//! The labels within a band of distances below the maximum: the only ones that a threshold leaves open.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};

/// Labels looked at together; most groups hold none and end at one test.
const GROUP: usize = 32;

/// Appends, in index order, every label with `fl(max − z) ≤ distance`.
///
/// `distance` may be +∞, which takes every label, −∞ logits included.
#[inline]
pub(crate) fn shortlist<T: Element>(row: &[T], max: f64, distance: f64, out: &mut Vec<u32>) {
    shortlist_band(row, max, f64::NEG_INFINITY, distance, out);
}

/// Appends, in index order, every label with `beyond < fl(max − z) ≤ distance`.
#[inline]
pub(crate) fn shortlist_band<T: Element>(
    row: &[T],
    max: f64,
    beyond: f64,
    distance: f64,
    out: &mut Vec<u32>,
) {
    let band = Band { max, beyond, distance };
    if row.len() < GROUP {
        // Shorter than the cost of choosing an instruction set.
        band.collect(row, 0, out);
    } else {
        Isa::best().dispatch(Shortlist { row, band, out });
    }
}

#[derive(Clone, Copy)]
struct Band {
    max: f64,
    beyond: f64,
    distance: f64,
}

impl Band {
    #[inline(always)]
    fn collect<T: Element>(self, group: &[T], first: u32, out: &mut Vec<u32>) {
        for (label, logit) in (first..).zip(group) {
            let gap = self.max - logit.to_f64();
            if gap <= self.distance && gap > self.beyond {
                out.push(label);
            }
        }
    }
}

struct Shortlist<'a, 'b, T> {
    row: &'a [T],
    band: Band,
    out: &'b mut Vec<u32>,
}

impl<T: Element> Kernel for Shortlist<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Band { max, distance, .. } = self.band;
        // A cut below every z that passes the exact test; the test itself is in f64.
        let slack = (max.abs() + distance) * 1e-12;
        let cut = T::Wide::at_most(max - distance - slack);
        let (groups, rest) = self.row.as_chunks::<GROUP>();
        let mut first = 0;
        for group in groups {
            let mut any = false;
            for logit in group {
                any |= logit.widen() >= cut;
            }
            if any {
                self.band.collect(group, first, self.out);
            }
            first += GROUP as u32;
        }
        self.band.collect(rest, first, self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_exactly_the_labels_within_the_distance() {
        for len in [1, 10, 31, 32, 33, 1000] {
            let row: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect();
            let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            for distance in [0.0, 1.0 / 64.0, 1.0, 7.3, f64::INFINITY] {
                let plain: Vec<u32> =
                    (0..len).filter(|i| max - f64::from(row[*i as usize]) <= distance).collect();
                for isa in Isa::available() {
                    let mut out = Vec::new();
                    let band = Band { max, beyond: f64::NEG_INFINITY, distance };
                    isa.dispatch(Shortlist { row: &row, band, out: &mut out });
                    assert_eq!(out, plain, "{isa:?} {len} {distance}");
                }
                let mut out = Vec::new();
                shortlist(&row, max, distance / 2.0, &mut out);
                shortlist_band(&row, max, distance / 2.0, distance, &mut out);
                out.sort_unstable();
                assert_eq!(out, plain, "two bands make the whole");
            }
        }
    }

    #[test]
    fn an_infinite_distance_takes_masked_labels_too() {
        let mut out = Vec::new();
        shortlist(&[0.0, f64::NEG_INFINITY], 0.0, f64::INFINITY, &mut out);
        assert_eq!(out, [0, 1]);
    }
}
