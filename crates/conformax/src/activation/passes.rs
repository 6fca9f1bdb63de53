//! Passes over gaps: sums of several terms at once, and masses in place.

use super::lanes::Lanes;
use crate::kernel::{Isa, Kernel, LANES};

/// What a pass computes from one gap. Every term of a gap of +∞ is zero, and `at` is `#[inline(always)]`, so that
/// it is compiled for the instruction set of the pass.
pub(super) trait Terms<const N: usize>: Copy {
    fn at(self, gap: f64) -> [f64; N];
}

/// `Σ terms(g)`, in lanes.
#[inline]
pub(super) fn sums<const N: usize>(gaps: &[f64], terms: impl Terms<N>) -> [f64; N] {
    Isa::best().dispatch(Sums::<_, N> { gaps, terms })
}

struct Sums<'a, S, const N: usize> {
    gaps: &'a [f64],
    terms: S,
}

impl<S: Terms<N>, const N: usize> Kernel for Sums<'_, S, N> {
    type Output = [f64; N];

    #[inline(always)]
    fn run(self) -> [f64; N] {
        let mut sums = [Lanes::ZERO; N];
        let (groups, rest) = self.gaps.as_chunks::<LANES>();
        for group in groups {
            add_group(&mut sums, group, self.terms);
        }
        if !rest.is_empty() {
            let mut last = [f64::INFINITY; LANES];
            last[..rest.len()].copy_from_slice(rest);
            add_group(&mut sums, &last, self.terms);
        }
        sums.map(Lanes::total)
    }
}

#[inline(always)]
fn add_group<const N: usize>(sums: &mut [Lanes; N], group: &[f64; LANES], terms: impl Terms<N>) {
    let mut values = [[0.0; LANES]; N];
    for lane in 0..LANES {
        let at = terms.at(group[lane]);
        for term in 0..N {
            values[term][lane] = at[term];
        }
    }
    for term in 0..N {
        sums[term].add_all(&values[term]);
    }
}

/// Replaces each gap below `end` by `mass(g) / total` and the others by 0; groups that are all zeros end at one
/// test.
#[inline]
pub(super) fn fill(gaps: &mut [f64], end: f64, mass: impl Terms<1>, total: f64) {
    Isa::best().dispatch(Fill { gaps, end, mass, total });
}

struct Fill<'a, S> {
    gaps: &'a mut [f64],
    end: f64,
    mass: S,
    total: f64,
}

impl<S: Terms<1>> Kernel for Fill<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for group in self.gaps.chunks_mut(LANES) {
            if !any_below(group, self.end) {
                group.fill(0.0);
                continue;
            }
            for gap in group {
                let [mass] = self.mass.at(*gap);
                *gap = if *gap < self.end { mass / self.total } else { 0.0 };
            }
        }
    }
}

#[inline(always)]
pub(super) fn any_below(group: &[f64], end: f64) -> bool {
    let mut any = false;
    for gap in group {
        any |= *gap < end;
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::math;

    #[derive(Clone, Copy)]
    struct Decay;

    impl Terms<1> for Decay {
        #[inline(always)]
        fn at(self, gap: f64) -> [f64; 1] {
            [math::pow(1.0 + gap, -3.7)]
        }
    }

    #[test]
    fn instruction_sets_agree_to_the_bit() {
        for len in [1, 2, 15, 16, 17, 33, 1000] {
            let gaps: Vec<f64> = (0..len).map(|i| f64::from((i * 7919) % 1013) / 97.0).collect();
            let results = Isa::available().into_iter().map(|isa| {
                let [sum] = isa.dispatch(Sums::<_, 1> { gaps: &gaps, terms: Decay });
                let mut masses = gaps.clone();
                isa.dispatch(Fill { gaps: &mut masses, end: 5.0, mass: Decay, total: sum });
                masses.into_iter().chain([sum]).map(f64::to_bits).collect()
            });
            let bits: Vec<Vec<u64>> = results.collect();
            assert!(bits.iter().all(|b| *b == bits[0]), "{len}");
        }
    }
}
