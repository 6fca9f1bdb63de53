//! `Σ exp(z_k − max z)`: softmax's denominator.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::single::{BLOCK, WIDTH, exp2, fold};
use super::{LANES, fold_lanes, math, smaller, sum_lanes, whole, widen};

/// At least 1: the maximum's own term.
#[inline]
pub(crate) fn exp_sum<T: Element>(row: &[T], max: f64) -> f64 {
    Isa::best().dispatch(ExpSum { row, max })
}

struct ExpSum<'a, T> {
    row: &'a [T],
    max: f64,
}

impl<T: Element> Kernel for ExpSum<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut lanes = [0.0; LANES];
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        if least(chunks).to_f64() - self.max >= NEAR {
            for chunk in chunks {
                add(&mut lanes, widen(chunk), self.max, math::exp_near);
            }
        } else {
            for chunk in chunks {
                add(&mut lanes, widen(chunk), self.max, math::exp_nonpositive);
            }
        }
        if !rest.is_empty() {
            add(&mut lanes, widen(rest), self.max, math::exp_nonpositive);
        }
        sum_lanes(lanes)
    }
}

/// Down to here [`math::exp_near`] is right. Few rows but those with masked classes reach further, and a look at a row
/// costs less than looking after every term.
const NEAR: f64 = -700.0;

#[inline(always)]
fn least<T: Element>(chunks: &[[T; LANES]]) -> T::Wide {
    let mut least = [T::Wide::INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            least[lane] = smaller(chunk[lane].widen(), least[lane]);
        }
    }
    fold_lanes(whole(least), smaller)
}

#[inline(always)]
fn add(lanes: &mut [f64; LANES], logits: [f64; LANES], max: f64, exp: impl Fn(f64) -> f64) {
    let mut terms = [0.0; LANES];
    for lane in 0..LANES {
        terms[lane] = exp(logits[lane] - max);
    }
    for lane in 0..LANES {
        lanes[lane] += terms[lane];
    }
}

/// How far, relatively, [`exp_sum_in_single`] may be off the sum, with half as much again to spare.
///
/// A gap to the maximum in the type of the logits, made single and taken to base 2, is rounded three times, which moves
/// its term by 3·2⁻²⁴ times the gap. Terms that make up a share of the sum at all are no further down than the
/// logarithm of the number of classes and a little, 20 for millions of them: 4·10⁻⁶. [`exp2`] adds 4·10⁻⁷, the sum
/// 2.3·10⁻⁶.
pub(crate) const SINGLE_ERROR: f64 = 1e-5;

/// The same sum in single precision, for estimates that decide nothing close.
#[inline]
pub(crate) fn exp_sum_in_single<T: Element>(row: &[T], max: f64) -> f64 {
    Isa::best().dispatch(SingleExpSum { row, max: T::Wide::nearest(max) })
}

struct SingleExpSum<'a, T: Element> {
    row: &'a [T],
    /// A logit, so exact.
    max: T::Wide,
}

impl<T: Element> Kernel for SingleExpSum<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut total = 0.0;
        for block in self.row.chunks(BLOCK) {
            let mut lanes = [0.0; WIDTH];
            let (chunks, rest) = block.as_chunks::<WIDTH>();
            for chunk in chunks {
                self.add(&mut lanes, |lane| chunk[lane].widen());
            }
            if !rest.is_empty() {
                let mut padded = [T::Wide::NEG_INFINITY; WIDTH];
                for (wide, logit) in padded.iter_mut().zip(rest) {
                    *wide = logit.widen();
                }
                self.add(&mut lanes, |lane| padded[lane]);
            }
            total += f64::from(fold(whole(lanes)));
        }
        total
    }
}

impl<T: Element> SingleExpSum<'_, T> {
    #[inline(always)]
    fn add(&self, lanes: &mut [f32; WIDTH], logit: impl Fn(usize) -> T::Wide) {
        let mut terms = [0.0; WIDTH];
        for lane in 0..WIDTH {
            terms[lane] = exp2(logit(lane).above(self.max) * std::f32::consts::LOG2_E);
        }
        for lane in 0..WIDTH {
            lanes[lane] += terms[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_sets_agree_to_the_bit() {
        for len in [1, 2, 15, 16, 17, 33, 1000] {
            let row: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1013) as f32 / 31.0 - 8.0).collect();
            let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let bits: Vec<u64> = Isa::available()
                .into_iter()
                .map(|isa| isa.dispatch(ExpSum { row: &row, max }).to_bits())
                .collect();
            assert!(bits.iter().all(|b| *b == bits[0]), "{len} {bits:?}");
            let plain: f64 = row.iter().map(|z| math::exp(f64::from(*z) - max)).sum();
            assert!((f64::from_bits(bits[0]) / plain - 1.0).abs() < 1e-13);
        }
    }

    /// Lane by lane, with nothing left out.
    fn plain(row: &[f32], max: f64) -> f64 {
        let mut lanes = [0.0; LANES];
        for (label, logit) in row.iter().enumerate() {
            lanes[label % LANES] += math::exp(f64::from(*logit) - max);
        }
        sum_lanes(lanes)
    }

    /// A row whose least logit is on either side of where terms need looking after, in a lane of a whole chunk and in
    /// the last, short one.
    #[test]
    fn rows_that_reach_far_down_have_the_sum_of_all_their_terms() {
        for lowest in [-8.0, -600.0, -699.0, -700.0, -701.0, -720.0, -740.0, -760.0, -1e30, f32::NEG_INFINITY]
        {
            for place in [0, 5, 31, 32, 39] {
                let mut row: Vec<f32> = (0..40).map(|i| ((i * 7919) % 1013) as f32 / 127.0 - 7.9).collect();
                row[place] = lowest;
                for max in [0.5, 3.25] {
                    row[7] = max;
                    for isa in Isa::available() {
                        let sum = isa.dispatch(ExpSum { row: &row, max: f64::from(max) });
                        let wanted = plain(&row, f64::from(max));
                        assert_eq!(sum.to_bits(), wanted.to_bits(), "{isa:?} {lowest} at {place}");
                    }
                }
            }
        }
    }

    /// Rows on which single precision has the hardest time: many terms alike, gaps of every size, huge logits, none
    /// that counts but the top.
    #[test]
    fn sums_in_single_precision_are_as_close_as_is_said() {
        let rows: [Vec<f64>; 9] = [
            vec![7.0],
            vec![1.0 / 3.0; 5000],
            (0..1000).map(|i| f64::from((i * 7919) % 1013) / 31.0).collect(),
            (0..100_000).map(|i| if i == 77 { 11.0 } else { f64::from(i % 7) / 70.0 }).collect(),
            (0..1000).map(|i| -f64::from(i) / 3.0).collect(),
            (0..1000).map(|i| 1e6 + f64::from(i % 16) / 16.0).collect(),
            (0..40).map(|i| -f64::from_bits((1003 + i) << 52)).collect(),
            (0..33).map(|i| if i == 32 { 0.0 } else { f64::NEG_INFINITY }).collect(),
            (0..300).map(|i| f64::from(i) * 1e300).collect(),
        ];
        for (index, row) in rows.iter().enumerate() {
            close(index, row);
            if index < 8 {
                close(index, &row.iter().map(|z| *z as f32).collect::<Vec<_>>());
            }
        }
    }

    fn close<T: Element>(index: usize, row: &[T]) {
        let max = row.iter().map(|z| z.to_f64()).fold(f64::NEG_INFINITY, f64::max);
        let exact = exp_sum(row, max);
        for isa in Isa::available() {
            let sum = isa.dispatch(SingleExpSum { row, max: T::Wide::nearest(max) });
            let off = (sum / exact - 1.0).abs();
            assert!(off <= SINGLE_ERROR / 1.5, "row {index}, {isa:?}: off by {off:e}");
        }
    }

    #[test]
    fn masked_classes_add_nothing() {
        assert_eq!(exp_sum(&[f64::NEG_INFINITY, 0.0, 0.0], 0.0), 2.0);
    }
}
