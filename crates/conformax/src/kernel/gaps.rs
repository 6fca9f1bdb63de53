//! `‖(z − z_y)₊‖_δ`: the norm of the gaps by which other labels are ahead.
//!
//! For δ = 1 and 2 only `+ × √` are needed. Other δ divide the gaps by the largest, `m`, so that nothing
//! overflows: `s = max(m, m·(Σ(d/m)^δ)^{1/δ})`. A gap of zero adds an exact zero in its lane, so leaving
//! out the labels that are not ahead changes no bit.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::{GROUP, LANES, any_reaches, math, sum_lanes, widen};
use crate::Gamma;

/// The order of the norm, with what each kind needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    /// δ = ∞, γ = 1.
    Max,
    /// δ = 1, γ = 2.
    One,
    /// δ = 2, γ = 1.5.
    Two,
    /// Any other.
    Other { delta: f64, inverse: f64 },
}

impl From<Gamma> for Order {
    fn from(gamma: Gamma) -> Self {
        match gamma.delta() {
            f64::INFINITY => Self::Max,
            1.0 => Self::One,
            2.0 => Self::Two,
            delta => Self::Other { delta, inverse: gamma.inverse_delta() },
        }
    }
}

impl Order {
    /// δ and its inverse; `None` where it is ∞.
    pub(super) fn delta(self) -> Option<(f64, f64)> {
        match self {
            Self::Max => None,
            Self::One => Some((1.0, 1.0)),
            Self::Two => Some((2.0, 0.5)),
            Self::Other { delta, inverse } => Some((delta, inverse)),
        }
    }
}

/// The norm of the gaps of `row` over the logit `pivot`, where `max` is the row's maximum and `pivot` finite.
#[inline]
pub(crate) fn gap_norm<T: Element>(row: &[T], max: f64, pivot: f64, order: Order) -> f64 {
    gap_norm_on(Isa::best(), row, max, pivot, order)
}

/// Logits that a sum over gaps can run over.
trait Gaps: Copy {
    /// `Σ term((z_k − pivot)₊)`, where `term(0) = 0`.
    fn sum(self, isa: Isa, pivot: f64, term: impl Fn(f64) -> f64) -> f64;
}

impl<T: Element> Gaps for &[T] {
    #[inline]
    fn sum(self, isa: Isa, pivot: f64, term: impl Fn(f64) -> f64) -> f64 {
        isa.dispatch(Sum { row: self, pivot, term })
    }
}

fn gap_norm_on(isa: Isa, row: impl Gaps, max: f64, pivot: f64, order: Order) -> f64 {
    let largest = max - pivot;
    // The pivot is on top, or the gap itself is beyond f64. At γ = 1 there is nothing to add either, and that is asked
    // first: whether a label is on top is a coin toss, and a mispredicted branch costs more than a short row.
    if order == Order::Max || largest == 0.0 || largest == f64::INFINITY {
        return largest;
    }
    match order {
        Order::Max => largest,
        Order::One => row.sum(isa, pivot, |gap| gap),
        Order::Two => euclidean(isa, row, pivot, largest),
        Order::Other { delta, inverse } => {
            let sum = row.sum(isa, pivot, |gap| math::pow_unit(gap / largest, delta));
            let norm = largest * math::pow(sum, inverse);
            if norm > largest { norm } else { largest }
        }
    }
}

/// The logits of some labels, given in index order, as a shorter row on which [`gap_norm`] has the same bits
/// for pivots that no other label is ahead of: each stays in its lane and in its lane's order.
pub(crate) fn keep_lanes<T: Element>(row: &[T], labels: &[u32]) -> Vec<f64> {
    let mut depths = [0; LANES];
    let mut kept = Vec::with_capacity(labels.len().next_multiple_of(LANES));
    for label in labels {
        let lane = *label as usize % LANES;
        let place = depths[lane] * LANES + lane;
        depths[lane] += 1;
        if place >= kept.len() {
            kept.resize((place + 1).next_multiple_of(LANES), f64::NEG_INFINITY);
        }
        kept[place] = row[*label as usize].to_f64();
    }
    kept
}

/// Some of a row's labels, with the same norm to the bit for pivots that no other label is ahead of. [`keep_lanes`]
/// leaves holes where lanes fill unevenly; here terms are computed side by side and then added to their lanes, in the
/// order of the row. That pays where a term costs much more than an addition.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    /// In index order, padded with −∞ to a multiple of [`SIDE_BY_SIDE`].
    logits: Vec<f64>,
    lanes: Vec<u8>,
}

/// Terms that are computed before any is added.
const SIDE_BY_SIDE: usize = 8;

impl Picked {
    /// Picks labels, given in index order.
    pub(crate) fn new<T: Element>(row: &[T], labels: &[u32]) -> Self {
        let mut logits: Vec<f64> = labels.iter().map(|label| row[*label as usize].to_f64()).collect();
        let mut lanes: Vec<u8> = labels.iter().map(|label| (*label as usize % LANES) as u8).collect();
        logits.resize(labels.len().next_multiple_of(SIDE_BY_SIDE), f64::NEG_INFINITY);
        lanes.resize(logits.len(), 0);
        Self { logits, lanes }
    }

    /// The norm of the gaps over the logit `pivot`, as [`gap_norm`] has it.
    #[inline]
    pub(crate) fn gap_norm(&self, max: f64, pivot: f64, order: Order) -> f64 {
        gap_norm_on(Isa::best(), self, max, pivot, order)
    }
}

impl Gaps for &Picked {
    #[inline]
    fn sum(self, isa: Isa, pivot: f64, term: impl Fn(f64) -> f64) -> f64 {
        isa.dispatch(SumOfPicked { picked: self, pivot, term })
    }
}

struct SumOfPicked<'a, F> {
    picked: &'a Picked,
    pivot: f64,
    term: F,
}

impl<F: Fn(f64) -> f64> Kernel for SumOfPicked<'_, F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; LANES];
        let (logits, lanes) = (self.picked.logits.as_chunks().0, self.picked.lanes.as_chunks().0);
        for (logits, lanes) in logits.iter().zip(lanes) {
            let (logits, lanes): (&[f64; SIDE_BY_SIDE], &[u8; SIDE_BY_SIDE]) = (logits, lanes);
            let mut terms = [0.0; SIDE_BY_SIDE];
            for i in 0..SIDE_BY_SIDE {
                let gap = logits[i] - self.pivot;
                terms[i] = if gap > 0.0 { gap } else { 0.0 };
            }
            for term in &mut terms {
                *term = (self.term)(*term);
            }
            for i in 0..SIDE_BY_SIDE {
                sums[lanes[i] as usize % LANES] += terms[i];
            }
        }
        sum_lanes(sums)
    }
}

/// Squares of gaps beyond these would overflow, or lose digits as subnormals.
pub(super) const SQUARES_ARE_SAFE: std::ops::Range<f64> = 1e-140..1e145;

fn euclidean(isa: Isa, row: impl Gaps, pivot: f64, largest: f64) -> f64 {
    if SQUARES_ARE_SAFE.contains(&largest) {
        return row.sum(isa, pivot, |gap| gap * gap).sqrt();
    }
    // A power of two changes no digit; 2^±700 brings either end of the exponents back to the middle.
    let up = f64::from_bits((1023 + 700) << 52);
    let down = f64::from_bits((1023 - 700) << 52);
    let (scale, back) = if largest < 1.0 { (up, down) } else { (down, up) };
    let square = move |gap: f64| (gap * scale) * (gap * scale);
    row.sum(isa, pivot, square).sqrt() * back
}

/// `Σ term((z_k − pivot)₊)`, where `term(0) = 0`.
struct Sum<'a, T, F> {
    row: &'a [T],
    pivot: f64,
    term: F,
}

impl<T: Element, F: Fn(f64) -> f64> Kernel for Sum<'_, T, F> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut lanes = [0.0; LANES];
        let bound = T::Wide::at_most(self.pivot);
        // Few labels are ahead as a rule, so most groups end at this test.
        let (groups, rest) = self.row.as_chunks::<GROUP>();
        for group in groups.iter().filter(|group| any_reaches(group, bound)) {
            for chunk in group.as_chunks::<LANES>().0 {
                self.add(&mut lanes, widen(chunk));
            }
        }
        for chunk in rest.chunks(LANES) {
            self.add(&mut lanes, widen(chunk));
        }
        sum_lanes(lanes)
    }
}

impl<T: Element, F: Fn(f64) -> f64> Sum<'_, T, F> {
    #[inline(always)]
    fn add(&self, lanes: &mut [f64; LANES], logits: [f64; LANES]) {
        let mut ahead = false;
        for logit in logits {
            ahead |= logit > self.pivot;
        }
        if !ahead {
            return;
        }
        // Two loops: in one, the compiler takes two lanes at a time.
        let mut gaps = [0.0; LANES];
        for lane in 0..LANES {
            let gap = logits[lane] - self.pivot;
            gaps[lane] = if gap > 0.0 { gap } else { 0.0 };
        }
        for lane in 0..LANES {
            lanes[lane] += (self.term)(gaps[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Order; 5] = [
        Order::Max,
        Order::One,
        Order::Two,
        Order::Other { delta: 10.0, inverse: 0.1 },
        Order::Other { delta: 0.5, inverse: 2.0 },
    ];

    fn max(row: &[f64]) -> f64 {
        row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn instruction_sets_agree_to_the_bit() {
        for len in [1, 2, 15, 16, 17, 33, 1000] {
            let row: Vec<f64> = (0..len).map(|i| f64::from((i * 7919) % 1013) / 97.0).collect();
            for order in ORDERS {
                for pivot in [row[0], row[len as usize / 2], row[len as usize - 1]] {
                    let norms = Isa::available()
                        .into_iter()
                        .map(|isa| gap_norm_on(isa, &row[..], max(&row), pivot, order));
                    let bits: Vec<u64> = norms.map(f64::to_bits).collect();
                    assert!(bits.iter().all(|b| *b == bits[0]), "{order:?} {len} {bits:?}");
                }
            }
        }
    }

    #[test]
    fn labels_that_are_ahead_give_the_bits_of_the_row() {
        for len in [1, 7, 8, 9, 33, 300] {
            let row: Vec<f64> = (0..len).map(|i| f64::from((i * 7919) % 1013) / 97.0).collect();
            for pivot in [row[0], row[len as usize / 2], row[len as usize - 1]] {
                let ahead: Vec<u32> = (0..len as u32).filter(|label| row[*label as usize] > pivot).collect();
                let picked = Picked::new(&row, &ahead);
                for (order, isa) in
                    ORDERS.into_iter().flat_map(|o| Isa::available().into_iter().map(move |i| (o, i)))
                {
                    let whole = gap_norm(&row, max(&row), pivot, order);
                    let found = gap_norm_on(isa, &picked, max(&row), pivot, order);
                    assert_eq!(found.to_bits(), whole.to_bits(), "{order:?} {len} {pivot}");
                }
            }
        }
    }

    #[test]
    fn with_one_label_ahead_the_norm_is_the_gap() {
        for gap in [5e-324, 1e-200, 1e-140, 0.1, 1.0 / 3.0, 7.0, 1e145, 1e200, 1.7e308] {
            for order in ORDERS {
                assert_eq!(gap_norm(&[gap, 0.0], gap, 0.0, order), gap, "{order:?}");
            }
        }
    }

    #[test]
    fn squares_neither_overflow_nor_vanish() {
        for scale in [1e-300, 1e-170, 1e160, 1e300] {
            let norm = gap_norm(&[3.0 * scale, 4.0 * scale, 0.0], 4.0 * scale, 0.0, Order::Two);
            assert!((norm / scale - 5.0).abs() < 1e-14, "{scale} {norm}");
        }
    }
}
