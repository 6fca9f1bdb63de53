//! `Σ exp(z_k − max z)`: softmax's denominator.

use super::element::Element;
use super::isa::{Isa, Kernel};
use super::{LANES, math, sum_lanes, widen};

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
        for chunk in chunks {
            add(&mut lanes, widen(chunk), self.max);
        }
        if !rest.is_empty() {
            add(&mut lanes, widen(rest), self.max);
        }
        sum_lanes(lanes)
    }
}

#[inline(always)]
fn add(lanes: &mut [f64; LANES], logits: [f64; LANES], max: f64) {
    for lane in 0..LANES {
        lanes[lane] += math::exp_nonpositive(logits[lane] - max);
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

    #[test]
    fn masked_classes_add_nothing() {
        assert_eq!(exp_sum(&[f64::NEG_INFINITY, 0.0, 0.0], 0.0), 2.0);
    }
}
