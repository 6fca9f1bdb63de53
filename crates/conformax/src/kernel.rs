//! Passes over one row: the arithmetic whose bits belong to the result.
//!
//! Sums run over [`LANES`] lanes in a fixed order and without FMA, so that SSE2, AVX2, AVX-512 and NEON agree
//! to the bit; the number of lanes is part of the arithmetic's version and is never tuned to a CPU. Each pass
//! is a plain loop that the compiler vectorises, compiled once per instruction set by [`isa`].

mod element;
mod exp_sum;
mod gaps;
mod isa;
pub(crate) mod math;
mod row_max;
mod shortlist;

pub use element::Element;
pub(crate) use element::Wide;
pub(crate) use exp_sum::exp_sum;
pub(crate) use gaps::{Order, gap_norm, keep_lanes};
pub(crate) use isa::{Isa, Kernel};
pub(crate) use row_max::{Fault, row_max, row_maxima};
pub(crate) use shortlist::{shortlist, shortlist_band};

/// The natural logarithm with the same bits on every system, for turning probabilities into logits.
///
/// ```
/// assert_eq!(conformax::ln(0.0), f64::NEG_INFINITY);
/// assert_eq!(conformax::ln(1.0), 0.0);
/// ```
pub fn ln(x: f64) -> f64 {
    math::ln(x)
}

/// Lanes of every sum.
pub(crate) const LANES: usize = 16;

/// Adds the lanes in a fixed tree.
#[inline(always)]
fn sum_lanes(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The next chunk of logits in `f64`; a short last chunk is padded with −∞, which adds nothing to any sum here.
#[inline(always)]
fn widen<T: Element>(chunk: &[T]) -> [f64; LANES] {
    let mut wide = [f64::NEG_INFINITY; LANES];
    for (wide, logit) in wide.iter_mut().zip(chunk) {
        *wide = logit.to_f64();
    }
    wide
}
