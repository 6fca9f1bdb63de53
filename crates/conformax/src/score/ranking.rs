//! `Ranking`: the labels of a row, best first, found and sorted only as far as somebody asks.
//!
//! A set is a prefix of the ranking and mostly a short one. Labels are taken up in bands of distance below the
//! maximum, one pass of comparisons each, and a band is sorted a stretch at a time.

use crate::kernel::{Wide, shortlist_at_most, shortlist_band};
use crate::score::sort_best_first;
use crate::{Logit, Row};

/// Labels sorted at a time; later stretches double.
const STRETCH: usize = 32;

pub(crate) struct Ranking<'a, 'r, T> {
    row: Row<'r, T>,
    /// The caller's buffer; this ranking is its tail.
    labels: &'a mut Vec<u32>,
    start: usize,
    /// End of the part in order.
    sorted: usize,
    /// Ends of the bands not taken up yet, rising.
    bands: &'a [f64],
    beyond: f64,
}

impl<'a, 'r, T: Logit> Ranking<'a, 'r, T> {
    /// The labels within the last of `bands` of the maximum; −∞ logits are part of a last band of +∞.
    #[inline]
    pub(crate) fn new(row: Row<'r, T>, labels: &'a mut Vec<u32>, bands: &'a [f64]) -> Self {
        let start = labels.len();
        Self { row, labels, start, sorted: start, bands, beyond: f64::NEG_INFINITY }
    }

    /// The label at `place`, counted from 0, or `None` beyond the last.
    #[inline]
    pub(crate) fn get(&mut self, place: usize) -> Option<u32> {
        while self.start + place >= self.sorted {
            if self.sorted < self.labels.len() {
                self.sort_stretch();
            } else {
                let (&distance, rest) = self.bands.split_first()?;
                self.bands = rest;
                self.reach(distance);
            }
        }
        Some(self.labels[self.start + place])
    }

    /// The labels within `distance` of the maximum.
    #[inline]
    pub(crate) fn within(row: Row<'r, T>, labels: &'a mut Vec<u32>, distance: f64) -> Self {
        let mut ranking = Self::new(row, labels, &[]);
        ranking.reach(distance);
        ranking
    }

    /// The same, unless there are more than `most`: then the caller's buffer is left as it was.
    #[inline]
    pub(crate) fn within_at_most(
        row: Row<'r, T>,
        labels: &'a mut Vec<u32>,
        distance: f64,
        most: usize,
    ) -> Option<Self> {
        let start = labels.len();
        if shortlist_at_most(row.logits(), row.max(), f64::NEG_INFINITY, distance, most, labels) {
            Some(Self { row, labels, start, sorted: start, bands: &[], beyond: distance })
        } else {
            labels.truncate(start);
            None
        }
    }

    /// The labels whose bits are set.
    #[inline]
    pub(crate) fn of_bits(row: Row<'r, T>, labels: &'a mut Vec<u32>, mut bits: u32) -> Self {
        let ranking = Self::new(row, labels, &[]);
        while bits != 0 {
            ranking.labels.push(bits.trailing_zeros());
            bits &= bits - 1;
        }
        ranking
    }

    /// Labels found so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.labels.len() - self.start
    }

    /// Adds the labels within `distance` of the maximum, once those of the bands have been asked for.
    #[inline]
    pub(crate) fn reach(&mut self, distance: f64) {
        shortlist_band(self.row.logits(), self.row.max(), self.beyond, distance, self.labels);
        self.beyond = distance;
    }

    fn sort_stretch(&mut self) {
        let open = &mut self.labels[self.sorted..];
        let stretch = STRETCH.max(self.sorted - self.start);
        if stretch < open.len() {
            open.select_nth_unstable_by_key(stretch, |label| {
                self.row.logits()[*label as usize].widen().key(*label)
            });
        }
        let stretch = stretch.min(open.len());
        sort_best_first(self.row, &mut open[..stretch]);
        self.sorted += stretch;
    }

    /// The first `end` labels, which have been asked for.
    #[inline]
    pub(crate) fn first(&self, end: usize) -> &[u32] {
        &self.labels[self.start..self.start + end]
    }

    /// Moves `label` to place `kept`; what stood there is passed and no longer needed.
    #[inline]
    pub(crate) fn keep(&mut self, kept: &mut usize, label: u32) {
        self.labels[self.start + *kept] = label;
        *kept += 1;
    }

    #[inline]
    pub(crate) fn row(&self) -> Row<'r, T> {
        self.row
    }

    /// Leaves every label in the caller's buffer, in order.
    #[inline]
    pub(crate) fn finish_all(mut self) {
        while self.get(self.sorted - self.start).is_some() {}
    }

    /// Leaves the first `kept` labels in the caller's buffer.
    #[inline]
    pub(crate) fn finish(self, kept: usize) {
        self.labels.truncate(self.start + kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_sorted_labels_whatever_the_bands() {
        for len in [1u32, 5, 40, 500] {
            let mut logits: Vec<f32> = (0..len).map(|i| ((i * 7919) % 101) as f32 / 8.0).collect();
            logits[len as usize / 2] = if len > 1 { f32::NEG_INFINITY } else { 0.0 };
            let row = Row::new(&logits).unwrap();
            let mut plain: Vec<u32> = (0..len).collect();
            sort_best_first(row, &mut plain);
            for bands in [&[f64::INFINITY][..], &[0.0, 0.1, 3.0, f64::INFINITY]] {
                let mut labels = vec![99];
                let mut ranking = Ranking::new(row, &mut labels, bands);
                let all: Vec<u32> = (0..).map_while(|place| ranking.get(place)).collect();
                assert_eq!(all, plain);
                ranking.finish(2.min(len as usize));
                assert_eq!(labels[0], 99);
            }
        }
    }
}
