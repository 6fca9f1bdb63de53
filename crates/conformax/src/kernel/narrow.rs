//! Rows of few classes, several at a time: one lane is one row, so nothing is folded across lanes and nothing is guessed.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::row_max::{Fault, checked_max, fault};
use super::shortlist::near_bits;
use super::{larger, whole};

/// Rows up to this many classes are narrow: their labels fit a word of bits.
pub(crate) const NARROW: usize = 32;

/// Rows taken together.
const ROWS: usize = 8;

/// What one pass finds of a narrow row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NarrowRow {
    pub(crate) max: f64,
    /// The labels with `fl(max − z) ≤ distance`, as bits.
    pub(crate) near: u32,
}

/// Looks at each row of `classes` logits; `Err` carries the first row at fault.
pub(crate) fn narrow_rows<T: Element>(
    data: &[T],
    classes: usize,
    distance: f64,
    out: &mut Vec<NarrowRow>,
) -> Result<(), (usize, Fault)> {
    out.clear();
    if Isa::best().dispatch(Narrow { data, classes, distance, out }) {
        return Ok(());
    }
    let row = out.len();
    Err((row, fault(&data[row * classes..][..classes])))
}

struct Narrow<'a, 'b, T> {
    data: &'a [T],
    classes: usize,
    distance: f64,
    out: &'b mut Vec<NarrowRow>,
}

impl<T: Element> Kernel for Narrow<'_, '_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        let mut tile = [[T::Wide::ZERO; ROWS]; NARROW];
        let groups = self.data.chunks_exact(ROWS * self.classes);
        let rest = groups.remainder();
        for group in groups {
            for (row, logits) in group.chunks_exact(self.classes).enumerate() {
                for (column, logit) in tile.iter_mut().zip(logits) {
                    column[row] = logit.widen();
                }
            }
            if !self.take_tile(&tile[..self.classes]) && !self.take_each(group) {
                return false;
            }
        }
        self.take_each(rest)
    }
}

impl<T: Element> Narrow<'_, '_, T> {
    /// `false`, and nothing taken, where a row may be at fault.
    #[inline(always)]
    fn take_tile(&mut self, columns: &[[T::Wide; ROWS]]) -> bool {
        let mut max = [T::Wide::NEG_INFINITY; ROWS];
        let mut sum = [T::Wide::ZERO; ROWS];
        for column in columns {
            for row in 0..ROWS {
                max[row] = larger(column[row], max[row]);
            }
            for row in 0..ROWS {
                sum[row] = sum[row] + column[row];
            }
        }
        let mut sound = true;
        for row in 0..ROWS {
            sound &= (sum[row] < T::Wide::INFINITY) & (max[row] > T::Wide::NEG_INFINITY);
        }
        if !sound {
            return false;
        }
        let mut maxima = [0.0; ROWS];
        for row in 0..ROWS {
            maxima[row] = max[row].to_f64() + 0.0;
        }
        let maxima = whole(maxima);
        // Bits as weights in floating point, whose lanes are those of the comparison; 32 of them add up exactly.
        let (mut near, mut weight) = ([0.0; ROWS], 1.0);
        for column in columns {
            let mut gaps = [0.0; ROWS];
            for row in 0..ROWS {
                gaps[row] = maxima[row] - column[row].to_f64();
            }
            for row in 0..ROWS {
                near[row] += if gaps[row] <= self.distance { weight } else { 0.0 };
            }
            weight *= 2.0;
        }
        let near = whole(near);
        self.out.extend((0..ROWS).map(|row| NarrowRow { max: maxima[row], near: near[row] as u32 }));
        true
    }

    #[inline(always)]
    fn take_each(&mut self, rows: &[T]) -> bool {
        for row in rows.chunks_exact(self.classes) {
            let Some(max) = checked_max(row) else { return false };
            self.out.push(NarrowRow { max, near: near_bits(row, max, self.distance) });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::row_max;

    fn rows(count: usize, classes: usize) -> Vec<f32> {
        (0..count * classes).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect()
    }

    #[test]
    fn agrees_with_one_row_at_a_time_on_every_instruction_set() {
        for classes in [1, 2, 3, 8, 10, 16, 31, 32] {
            for count in [1, 7, 8, 9, 40] {
                let mut data = rows(count, classes);
                data[0] = -0.0;
                // Sums of finite logits may overflow, and masked classes are no fault.
                data[(count - 1) * classes..].fill(f32::MAX);
                if classes > 1 {
                    data[1] = f32::NEG_INFINITY;
                }
                for distance in [0.0, 0.7, 3.0, f64::INFINITY] {
                    let plain = data.chunks(classes).map(|row| {
                        let max = row_max(row).unwrap();
                        NarrowRow { max, near: near_bits(row, max, distance) }
                    });
                    let plain: Vec<NarrowRow> = plain.collect();
                    for isa in Isa::available() {
                        let mut out = Vec::new();
                        assert!(isa.dispatch(Narrow { data: &data, classes, distance, out: &mut out }));
                        assert_eq!(out, plain, "{isa:?} {classes} {count} {distance}");
                    }
                }
            }
        }
    }

    #[test]
    fn finds_the_first_row_at_fault() {
        for place in 0..20 {
            let mut data = rows(20, 10);
            data[place * 10 + 3] = f32::NAN;
            let (row, fault) = narrow_rows(&data, 10, 1.0, &mut Vec::new()).unwrap_err();
            assert!(row == place && matches!(fault, Fault::NotFinite { class: 3, .. }));
            data[place * 10..][..10].fill(f32::NEG_INFINITY);
            let (row, fault) = narrow_rows(&data, 10, 1.0, &mut Vec::new()).unwrap_err();
            assert!(row == place && matches!(fault, Fault::AllMasked));
        }
    }
}
