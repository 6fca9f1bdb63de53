//! One loop, compiled for each instruction set; the best that the CPU has is chosen at run time.
//!
//! The loops use only operations that IEEE 754 defines to the bit and rustc never contracts `a * b + c`, so the
//! choice changes speed and nothing else.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// A pass to run under some instruction set. `run` and all it calls are `#[inline(always)]`, so that they are
/// compiled with the features of the function they end up in.
pub(crate) trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// An instruction set this CPU has: only [`Isa::best`] and [`Isa::available`] make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// What the target guarantees: SSE2 on x86-64, NEON on aarch64.
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The fastest set of this CPU, looked up once: after that a load.
    #[inline]
    pub(crate) fn best() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(Self::detect)
    }

    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Set::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Set::Avx2);
            }
        }
        Self(Set::Baseline)
    }

    /// Every set of this CPU, for tests that compare them.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut sets = vec![Self(Set::Baseline)];
        #[cfg(target_arch = "x86_64")]
        {
            sets.extend(is_x86_feature_detected!("avx2").then_some(Self(Set::Avx2)));
            sets.extend(has_avx512().then_some(Self(Set::Avx512)));
        }
        sets
    }

    #[inline]
    pub(crate) fn dispatch<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            Set::Baseline => kernel.run(),
            // SAFETY: an `Isa` of this set exists only where the CPU was seen to have its features. It buys
            // 2 to 4 times on the passes over 1,000 classes; see benches/.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a log of the tests says which paths this CPU could show.
    #[test]
    #[expect(clippy::print_stdout, reason = "the message is what this test is for")]
    fn names_the_instruction_sets() {
        let sets = Isa::available();
        println!("instruction sets compared on this CPU: {sets:?}");
        assert!(sets.contains(&Isa::best()) && sets[0] == Isa(Set::Baseline));
    }
}
