//! The largest logit of a row, and whether the row may be used at all.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::{fold_lanes, halve, larger, whole};

/// Why a row cannot be used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// NaN or +∞.
    NotFinite { class: usize, value: f64 },
    /// −∞ alone.
    AllMasked,
}

/// The maximum of a row that has one.
#[inline]
pub(crate) fn row_max<T: Element>(row: &[T]) -> Result<f64, Fault> {
    Isa::best().dispatch(Max(row)).ok_or_else(|| fault(row))
}

/// The maximum of each row of `classes` logits; `Err` carries the first row at fault, and those before it have theirs.
pub(crate) fn row_maxima<T: Element>(
    data: &[T],
    classes: usize,
    out: &mut Vec<f64>,
) -> Result<(), (usize, Fault)> {
    out.clear();
    let done = Isa::best().dispatch(Maxima { data, classes, out });
    match done {
        true => Ok(()),
        false => {
            let row = out.len();
            Err((row, fault(&data[row * classes..][..classes])))
        }
    }
}

/// Says what is wrong with a row: a second look, taken only once something is.
#[cold]
pub(super) fn fault<T: Element>(row: &[T]) -> Fault {
    let place =
        row.iter().map(|logit| logit.to_f64()).enumerate().find(|(_, value)| !(*value < f64::INFINITY));
    match place {
        Some((class, value)) => Fault::NotFinite { class, value },
        None => Fault::AllMasked,
    }
}

struct Max<'a, T>(&'a [T]);

impl<T: Element> Kernel for Max<'_, T> {
    type Output = Option<f64>;

    #[inline(always)]
    fn run(self) -> Option<f64> {
        checked_max(self.0)
    }
}

struct Maxima<'a, 'b, T> {
    data: &'a [T],
    classes: usize,
    out: &'b mut Vec<f64>,
}

impl<T: Element> Kernel for Maxima<'_, '_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        for row in self.data.chunks_exact(self.classes) {
            match checked_max(row) {
                Some(max) => self.out.push(max),
                None => return false,
            }
        }
        true
    }
}

/// Logits looked at together. Neither a maximum nor the check depends on the order, so this is a matter of speed
/// alone: enough independent chains to keep up with memory, few enough to stay in 16 registers.
const WIDTH: usize = 32;

/// `None` where a logit is NaN or +∞ or all are −∞.
#[inline(always)]
pub(super) fn checked_max<T: Element>(row: &[T]) -> Option<f64> {
    let (best, total) = match row.last_chunk::<WIDTH>() {
        // The last chunk may overlap the one before: a logit that counts twice changes neither answer.
        Some(last) => fold_chunks(row.as_chunks::<WIDTH>().0, last),
        None => row.iter().fold((T::Wide::NEG_INFINITY, T::Wide::ZERO), |(best, total), logit| {
            (larger(logit.widen(), best), total + logit.widen())
        }),
    };
    // A sum of huge finite logits may overflow: then they are looked at one by one.
    let sound = total < T::Wide::INFINITY || row.iter().all(|logit| logit.widen() < T::Wide::INFINITY);
    (sound && best > T::Wide::NEG_INFINITY).then(|| best.to_f64() + 0.0)
}

/// The maximum, and a sum in which every NaN and +∞ has left its trace.
#[inline(always)]
fn fold_chunks<T: Element>(chunks: &[[T; WIDTH]], last: &[T; WIDTH]) -> (T::Wide, T::Wide) {
    let mut max = [T::Wide::NEG_INFINITY; WIDTH];
    let mut sum = [T::Wide::ZERO; WIDTH];
    for chunk in chunks {
        take_chunk(&mut max, &mut sum, chunk);
    }
    take_chunk(&mut max, &mut sum, last);
    let add = |a: T::Wide, b: T::Wide| a + b;
    let (max, sum) = (whole(max), whole(sum));
    (fold_lanes(halve(max, larger), larger), fold_lanes(halve(sum, add), add))
}

#[inline(always)]
fn take_chunk<T: Element>(max: &mut [T::Wide; WIDTH], sum: &mut [T::Wide; WIDTH], chunk: &[T; WIDTH]) {
    // Two loops: in one, the compiler keeps the lanes in memory instead of registers.
    for lane in 0..WIDTH {
        max[lane] = larger(chunk[lane].widen(), max[lane]);
    }
    for lane in 0..WIDTH {
        sum[lane] = sum[lane] + chunk[lane].widen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_fold_on_every_instruction_set() {
        for len in (1..70).chain([999, 1000, 1001]) {
            let row: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect();
            let plain = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for isa in Isa::available() {
                assert_eq!(isa.dispatch(Max(&row)), Some(f64::from(plain)), "{isa:?} {len}");
            }
        }
    }

    #[test]
    fn finds_a_bad_logit_wherever_it_is() {
        for len in [1, 31, 32, 33, 100] {
            for place in 0..len {
                for value in [f64::NAN, f64::INFINITY] {
                    let mut row = vec![1.0; len];
                    row[place] = value;
                    for isa in Isa::available() {
                        assert_eq!(isa.dispatch(Max(&row)), None);
                    }
                    let Err(Fault::NotFinite { class, .. }) = row_max(&row) else { panic!("no fault") };
                    assert_eq!(class, place);
                }
            }
        }
        assert!(matches!(row_max(&[f64::NEG_INFINITY; 40]), Err(Fault::AllMasked)));
    }

    #[test]
    fn finite_rows_pass_even_where_their_sum_does_not() {
        assert_eq!(row_max(&[f32::MAX; 100]).unwrap(), f64::from(f32::MAX));
        let mut masked = [f32::MAX; 100];
        masked[..40].fill(f32::NEG_INFINITY);
        assert_eq!(row_max(&masked).unwrap(), f64::from(f32::MAX));
        masked[70] = f32::INFINITY;
        assert!(matches!(row_max(&masked), Err(Fault::NotFinite { class: 70, .. })));
    }

    #[test]
    fn maximum_of_zeros_has_no_sign() {
        assert_eq!(row_max(&[-0.0_f64]).unwrap().to_bits(), 0);
    }
}
