//! The labels within a band of distances below the maximum: the only ones that a threshold leaves open.

use super::boundary::Boundary;
use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::{GROUP, any_reaches};

/// Labels looked at one by one where one of them may be within the band.
const PART: usize = 8;

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
    shortlist_at_most(row, max, beyond, distance, usize::MAX, out);
}

/// The same unless there are more than `most`: then some of them, and `false`, without a look at the rest of the row.
#[inline]
pub(crate) fn shortlist_at_most<T: Element>(
    row: &[T],
    max: f64,
    beyond: f64,
    distance: f64,
    most: usize,
    out: &mut Vec<u32>,
) -> bool {
    let band = Band { max, beyond, distance };
    let most = out.len().saturating_add(most);
    if row.len() < GROUP {
        // Shorter than the cost of choosing an instruction set.
        band.collect_each(row, 0, band.bound::<T::Wide>(), out);
        out.len() <= most
    } else {
        Isa::best().dispatch(Shortlist { row, band, most, out })
    }
}

/// Appends, in index order, every label from the boundary's outer end up; returns how many of them reach the inner end.
pub(crate) fn labels_above<T: Element>(row: &[T], ends: Boundary<T::Wide>, out: &mut Vec<u32>) -> usize {
    Isa::best().dispatch(Above { row, ends, out })
}

/// The labels with `fl(max − z) ≤ distance` of a row of at most 32, as bits. Without a branch: a mispredicted one would
/// cost more than such a row.
#[inline]
pub(crate) fn near_bits<T: Element>(row: &[T], max: f64, distance: f64) -> u32 {
    row.iter().rev().fold(0, |near, logit| near << 1 | u32::from(max - logit.to_f64() <= distance))
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
        (gap <= self.distance) & (gap > self.beyond)
    }

    #[inline(always)]
    fn collect<T: Element>(
        self,
        group: &[T],
        first: u32,
        bound: T::Wide,
        most: usize,
        out: &mut Vec<u32>,
    ) -> bool {
        let (parts, rest) = group.as_chunks::<PART>();
        for (part, first) in parts.iter().zip((first..).step_by(PART)) {
            if any_reaches(part, bound) {
                self.collect_each(part, first, bound, out);
                if out.len() > most {
                    return false;
                }
            }
        }
        self.collect_each(rest, first + (group.len() - rest.len()) as u32, bound, out);
        out.len() <= most
    }

    /// At most 64 labels. Which of them may be held is a word of bits first: that takes no branch, and a mispredicted
    /// one costs more than the look at a label.
    ///
    /// Not inlined: one copy of this loop keeps the search around it small.
    #[inline(never)]
    fn collect_each<T: Element>(self, part: &[T], first: u32, bound: T::Wide, out: &mut Vec<u32>) {
        let mut open = 0_u64;
        for logit in part.iter().rev() {
            open = open << 1 | u64::from(logit.widen() >= bound);
        }
        while open != 0 {
            let place = open.trailing_zeros();
            if self.holds(part[place as usize].to_f64()) {
                out.push(first + place);
            }
            open &= open - 1;
        }
    }

    /// A bound below every logit that the band holds, in the type that compares fastest.
    #[inline(always)]
    fn bound<W: Wide>(self) -> W {
        let slack = (self.max.abs() + self.distance.abs()) * 1e-12;
        W::at_most(self.max - self.distance - slack)
    }
}

struct Shortlist<'a, 'b, T> {
    row: &'a [T],
    band: Band,
    most: usize,
    out: &'b mut Vec<u32>,
}

impl<T: Element> Kernel for Shortlist<'_, '_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let bound = self.band.bound::<T::Wide>();
        let (groups, rest) = self.row.as_chunks::<GROUP>();
        let mut first = 0;
        for group in groups {
            if any_reaches(group, bound) && !self.band.collect(group, first, bound, self.most, self.out) {
                return false;
            }
            first += GROUP as u32;
        }
        self.band.collect(rest, first, bound, self.most, self.out)
    }
}

struct Above<'a, 'b, T: Element> {
    row: &'a [T],
    ends: Boundary<T::Wide>,
    out: &'b mut Vec<u32>,
}

impl<T: Element> Kernel for Above<'_, '_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Boundary { inside, outside } = self.ends;
        let (groups, rest) = self.row.as_chunks::<GROUP>();
        let (mut reached, mut first) = (0, 0);
        for group in groups {
            if any_reaches(group, outside) {
                // Every label is written and the next one takes its place unless it stays: there are too many for
                // branches, which would often be mispredicted.
                let (mut found, mut len) = ([0; GROUP], 0);
                for (part, first) in group.as_chunks::<PART>().0.iter().zip((first..).step_by(PART)) {
                    if any_reaches(part, outside) {
                        for lane in 0..PART {
                            let logit = part[lane].widen();
                            found[len % GROUP] = first + lane as u32;
                            len += usize::from(logit >= outside);
                            reached += usize::from(logit >= inside);
                        }
                    }
                }
                self.out.extend_from_slice(&found[..len]);
            }
            first += GROUP as u32;
        }
        for (label, logit) in (first..).zip(rest) {
            let logit = logit.widen();
            if logit >= outside {
                self.out.push(label);
                reached += usize::from(logit >= inside);
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_exactly_the_labels_within_the_distance() {
        for len in [1, 10, 31, 32, 33, 63, 64, 65, 100, 1000] {
            let row: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect();
            let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            for distance in [0.0, 1.0 / 64.0, 1.0, 7.3, f64::INFINITY] {
                let plain: Vec<u32> =
                    (0..len).filter(|i| max - f64::from(row[*i as usize]) <= distance).collect();
                for isa in Isa::available() {
                    let mut out = Vec::new();
                    let band = Band { max, beyond: f64::NEG_INFINITY, distance };
                    let whole = isa.dispatch(Shortlist { row: &row, band, most: plain.len(), out: &mut out });
                    assert!(whole && out == plain, "{isa:?} {len} {distance}");
                    out.clear();
                    let less = plain.len() - 1;
                    let whole = isa.dispatch(Shortlist { row: &row, band, most: less, out: &mut out });
                    assert!(!whole && plain.starts_with(&out), "{isa:?} {len} {distance}");
                    // The outer end is a logit of the row, or below all of them.
                    let lowest = plain.iter().map(|label| row[*label as usize]).fold(f32::INFINITY, f32::min);
                    let inside = (max - distance / 2.0) as f32;
                    out.clear();
                    let ends = Boundary { inside, outside: lowest };
                    let reached = isa.dispatch(Above { row: &row, ends, out: &mut out });
                    assert_eq!(out, plain, "{isa:?} {len} {distance}");
                    assert_eq!(
                        reached,
                        row.iter().filter(|z| **z >= inside).count(),
                        "{isa:?} {len} {distance}"
                    );
                }
                let mut out = Vec::new();
                shortlist(&row, max, distance / 2.0, &mut out);
                shortlist_band(&row, max, distance / 2.0, distance, &mut out);
                out.sort_unstable();
                assert_eq!(out, plain, "two bands make the whole");
                if len <= 32 {
                    let bits = plain.iter().fold(0, |bits, label| bits | 1 << label);
                    assert_eq!(near_bits(&row, max, distance), bits);
                }
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
