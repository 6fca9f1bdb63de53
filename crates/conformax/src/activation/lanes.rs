//! Sums over a fixed number of lanes, so that their bits depend on neither the compiler nor the CPU.

use crate::kernel::LANES;

/// Partial sums, one per lane.
#[derive(Clone, Copy)]
pub(super) struct Lanes([f64; LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    pub(super) fn add(&mut self, lane: usize, value: f64) {
        self.0[lane] += value;
    }

    /// Adds the lanes in a fixed tree.
    #[inline(always)]
    pub(super) fn total(mut self) -> f64 {
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                self.0[lane] += self.0[lane + width];
            }
            width /= 2;
        }
        self.0[0]
    }

    /// Hands every value to `visit` with its lane; a short last group is padded with the gap of a masked class,
    /// +∞, which has no mass.
    #[inline(always)]
    pub(super) fn each(gaps: &[f64], mut visit: impl FnMut(usize, f64)) {
        let (groups, rest) = gaps.as_chunks::<LANES>();
        for group in groups {
            for lane in 0..LANES {
                visit(lane, group[lane]);
            }
        }
        if !rest.is_empty() {
            let mut last = [f64::INFINITY; LANES];
            last[..rest.len()].copy_from_slice(rest);
            for lane in 0..LANES {
                visit(lane, last[lane]);
            }
        }
    }
}

/// `Σ term(g)`, where the term of a gap of +∞ is zero.
#[inline(always)]
pub(super) fn sum(gaps: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = Lanes::ZERO;
    Lanes::each(gaps, |lane, gap| lanes.add(lane, term(gap)));
    lanes.total()
}
