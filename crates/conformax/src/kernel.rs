//! Passes over one row: the arithmetic whose bits belong to the result.
//!
//! Sums run over [`LANES`] lanes in a fixed order and without FMA, so that SSE2, AVX2, AVX-512 and NEON agree
//! to the bit; the number of lanes is part of the arithmetic's version and is never tuned to a CPU. Each pass
//! is a plain loop that the compiler vectorises, compiled once per instruction set by [`isa`].

mod all_norms;
mod boundary;
mod by_label;
mod element;
mod exp_sum;
mod gaps;
mod isa;
pub(crate) mod math;
mod narrow;
mod norm_in_single;
mod prefetch;
mod row_max;
mod shortlist;
mod single;
mod sort;
mod steps;

pub(crate) use all_norms::all_norms;
pub(crate) use boundary::{boundary, clearly_within};
pub(crate) use by_label::{Near, Scores, limit_of};
pub use element::Element;
pub(crate) use element::Wide;
pub(crate) use exp_sum::{SINGLE_ERROR, exp_sum, exp_sum_in_single};
pub(crate) use gaps::{Order, Picked, gap_norm, keep_lanes};
pub(crate) use isa::{Isa, Kernel};
pub(crate) use narrow::{
    Bounds, Growth, Leaders, Limit, Limits, LimitsByLabel, NARROW, ROWS as TOGETHER, leaders,
};
pub(crate) use norm_in_single::norm_in_single;
pub(crate) use prefetch::prefetch;
pub(crate) use row_max::{Fault, row_max, row_maxima};
pub(crate) use shortlist::{labels_above, near_bits, shortlist, shortlist_at_most, shortlist_band};
pub(crate) use single::{DELTAS_IN_SINGLE, THRESHOLDS_IN_SINGLE, error_in_single};
pub(crate) use sort::sort_best_first;
pub(crate) use steps::{PerStep, Steps};

/// Lanes of every sum.
pub(crate) const LANES: usize = 16;

/// Adds the lanes in a fixed tree: upper half to lower half, until one is left.
#[inline(always)]
fn sum_lanes(lanes: [f64; LANES]) -> f64 {
    fold_lanes(whole(lanes), |a, b| a + b)
}

/// The lanes as they are. Seeing how they are folded after a loop, the compiler would split the loop itself into
/// pairs of lanes; this keeps it from looking ahead, and lanes stay in whole registers.
#[inline(always)]
fn whole<W, const N: usize>(lanes: [W; N]) -> [W; N] {
    std::hint::black_box(lanes)
}

/// Folds the lanes in a fixed tree; each level is a loop of known length.
#[inline(always)]
fn fold_lanes<W: Copy>(lanes: [W; LANES], both: impl Fn(W, W) -> W + Copy) -> W {
    halve::<W, 2, 1>(halve::<W, 4, 2>(halve::<W, 8, 4>(halve::<W, 16, 8>(lanes, both), both), both), both)[0]
}

#[inline(always)]
fn halve<W: Copy, const N: usize, const HALF: usize>(lanes: [W; N], both: impl Fn(W, W) -> W) -> [W; HALF] {
    let mut half = [lanes[0]; HALF];
    for lane in 0..HALF {
        half[lane] = both(lanes[lane], lanes[lane + HALF]);
    }
    half
}

/// Logits that are passed over or looked at together; a multiple of [`LANES`].
const GROUP: usize = 64;

/// Whether a logit of the group reaches `bound`. Maxima first: they are one instruction a register, where collecting
/// the outcomes of comparisons takes several.
#[inline(always)]
fn any_reaches<T: Element, const N: usize>(group: &[T; N], bound: T::Wide) -> bool {
    let mut max = [T::Wide::NEG_INFINITY; 8];
    for chunk in group.as_chunks::<8>().0 {
        for lane in 0..8 {
            max[lane] = larger(chunk[lane].widen(), max[lane]);
        }
    }
    let mut any = false;
    for max in max {
        any |= max >= bound;
    }
    any
}

/// As one instruction, which `b` survives where `a` is NaN.
#[inline(always)]
fn larger<W: Wide>(a: W, b: W) -> W {
    if a > b { a } else { b }
}

/// The same for the smaller.
#[inline(always)]
fn smaller<W: Wide>(a: W, b: W) -> W {
    if a < b { a } else { b }
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
