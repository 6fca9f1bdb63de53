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
            #[cfg(fuzzing)]
            if let Some(isa) = Self::asked_for() {
                return isa;
            }
            if has_avx512() {
                return Self(Set::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Self(Set::Avx2);
            }
        }
        Self(Set::Baseline)
    }

    /// The set that a fuzzing run names, where this CPU has it, so that each is held to the reference.
    #[cfg(all(fuzzing, target_arch = "x86_64"))]
    fn asked_for() -> Option<Self> {
        match std::env::var("CONFORMAX_INSTRUCTIONS").ok()?.as_str() {
            "baseline" => Some(Self(Set::Baseline)),
            "avx2" => is_x86_feature_detected!("avx2").then_some(Self(Set::Avx2)),
            _ => None,
        }
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
    use super::super::LANES;
    use super::super::math::{exp, exp_m1, exp_near, exp_nonpositive, ln, ln_1p, pow, pow_unit};
    use super::*;

    /// A kernel that tells whether it was run, and how often.
    struct Once<'a>(&'a std::cell::Cell<u32>);

    impl Kernel for Once<'_> {
        type Output = u32;

        #[inline(always)]
        fn run(self) -> u32 {
            self.0.set(self.0.get() + 1);
            self.0.get()
        }
    }

    /// Says which those are past the harness, so that a log of the tests tells what this CPU could show.
    #[test]
    fn compares_every_set_from_the_baseline_to_the_best() {
        use std::io::Write as _;
        let sets = Isa::available();
        let line = format!("instruction sets compared on this CPU: {sets:?}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        assert_eq!((sets.first(), sets.last()), (Some(&Isa(Set::Baseline)), Some(&Isa::best())));
        let runs = std::cell::Cell::new(0);
        let counted: Vec<u32> = sets.iter().map(|set| set.dispatch(Once(&runs))).collect();
        assert_eq!(counted, (1..=sets.len() as u32).collect::<Vec<_>>());
        #[cfg(target_arch = "x86_64")]
        for (set, detected) in [(Set::Avx2, is_x86_feature_detected!("avx2")), (Set::Avx512, has_avx512())] {
            assert_eq!(sets.iter().filter(|isa| isa.0 == set).count(), usize::from(detected), "{set:?}");
        }
    }

    /// Every function over one chunk of lanes.
    struct Lanes([f64; LANES], f64);

    impl Kernel for Lanes {
        type Output = [[f64; LANES]; 8];

        #[inline(always)]
        fn run(self) -> Self::Output {
            let Self(x, y) = self;
            [
                x.map(|x| exp(x * 750.0)),
                x.map(|x| exp_nonpositive(-x.abs() * 750.0)),
                x.map(|x| exp_near(-x.abs() * 700.0)),
                x.map(|x| exp_m1(x * 4.0)),
                x.map(ln),
                x.map(ln_1p),
                x.map(|x| pow(x, y)),
                x.map(|x| pow_unit(x.abs(), y)),
            ]
        }
    }

    #[test]
    fn lanes_and_shortcuts_give_the_bits_of_one_call() {
        let bits = |x: f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
        for round in 1..=500_u32 {
            // Steps of the golden ratio never repeat and leave no stretch of the interval out.
            let draw = |at: u32| (f64::from(round * LANES as u32 + at) * 0.618_033_988_749_894_9).fract();
            let mut x: [f64; LANES] = std::array::from_fn(|lane| draw(lane as u32) * 1.2 - 0.2);
            (x[3], x[5], x[6]) = (0.0, 1.0, f64::from_bits((draw(99) * 1.0_f64.to_bits() as f64) as u64));
            let y = 1.0 / (1e-3 + 15.0 * draw(77));
            for isa in Isa::available() {
                let lanes = isa.dispatch(Lanes(x, y));
                for (lane, &x) in x.iter().enumerate() {
                    let nonpositive = -x.abs() * 750.0;
                    let alone = [
                        exp(x * 750.0),
                        exp(nonpositive),
                        exp(-x.abs() * 700.0),
                        exp_m1(x * 4.0),
                        ln(x),
                        ln_1p(x),
                        pow(x, y),
                        pow(x.abs(), y),
                    ];
                    assert_eq!(lanes.map(|lanes| bits(lanes[lane])), alone.map(bits), "{isa:?} {x:e} {y}");
                }
            }
        }
    }
}
