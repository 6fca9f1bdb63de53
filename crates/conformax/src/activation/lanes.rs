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

    /// Adds one value to each lane.
    #[inline(always)]
    pub(super) fn add_all(&mut self, values: &[f64; LANES]) {
        for (lane, value) in self.0.iter_mut().zip(values) {
            *lane += value;
        }
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

    /// The sum of `values`, dealt out to the lanes in turn.
    pub(super) fn sum(values: impl Iterator<Item = f64>) -> f64 {
        let mut lanes = Self::ZERO;
        for (index, value) in values.enumerate() {
            lanes.add(index % LANES, value);
        }
        lanes.total()
    }
}
