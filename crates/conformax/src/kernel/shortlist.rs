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
    fn holds(self, logit: f64) -> bool {
        let gap = self.max - logit;
        gap <= self.distance && gap > self.beyond
    }

    #[inline(always)]
    fn collect<T: Element>(self, group: &[T], first: u32, out: &mut Vec<u32>) {
        out.extend(
            (first..).zip(group).filter(|(_, logit)| self.holds(logit.to_f64())).map(|(label, _)| label),
        );
    }

    /// Bounds around every logit that the band holds, in the type that compares fastest.
    #[inline(always)]
    fn bounds<W: Wide>(self) -> (W, W) {
        let slack = |distance: f64| (self.max.abs() + distance.abs()) * 1e-12;
        let lower = W::at_most(self.max - self.distance - slack(self.distance));
        let upper = W::at_least(self.max - self.beyond + slack(self.beyond));
        (lower, upper)
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
        if self.band.beyond == f64::NEG_INFINITY {
            let lower = self.band.bounds::<T::Wide>().0;
            self.collect_groups(|logit| logit >= lower);
        } else {
            let (lower, upper) = self.band.bounds::<T::Wide>();
            self.collect_groups(|logit| (logit >= lower) & (logit <= upper));
        }
    }
}

impl<T: Element> Shortlist<'_, '_, T> {
    #[inline(always)]
    fn collect_groups(self, may_hold: impl Fn(T::Wide) -> bool) {
        let (groups, rest) = self.row.as_chunks::<GROUP>();
        let mut first = 0;
        for group in groups {
            let mut any = false;
            for logit in group {
                any |= may_hold(logit.widen());
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
