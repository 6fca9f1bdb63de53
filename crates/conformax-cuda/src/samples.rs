//! `compile_all`: whether the compiler takes the kernels, for which no GPU is needed.

use std::collections::HashSet;

use conformax::Gamma;

use crate::activation::{Backward, Forward, GammaOf, Loss, LossBackward};
use crate::gpu::compile;
use crate::layout::Dtype;
use crate::program::{Job, Program};
use crate::sets::Family;
use crate::{Error, Result};

/// One γ of every formula.
const GAMMAS: [f64; 6] = [1.0, 1.001, 1.3, 1.5, 2.0, 3.0];
/// Rows that a thread, part of a warp, a warp and a block take.
const CLASSES: [u64; 4] = [10, 100, 1000, 5000];
const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::F16, Dtype::Bf16];

/// Compiles programs of every job under every formula for an architecture (`sm_90` and the like) and throws them away;
/// lengths of rows, types and alignments take turns. Says how many there were. Needs NVRTC and no GPU.
pub fn compile_all(architecture: &str) -> Result<usize> {
    if !crate::gpu::has_compiler() {
        return Err(Error::NoCompiler);
    }
    let programs = samples()?;
    for program in &programs {
        let mut options = program.options();
        options.push(format!("--gpu-architecture={architecture}"));
        compile(program.kernel(), &program.source(), &options)?;
    }
    Ok(programs.len())
}

/// The programs, each once.
fn samples() -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (turn, gamma) in GAMMAS.into_iter().enumerate() {
        let gamma = Gamma::new(gamma)?;
        programs.extend(activations(GammaOf::All(gamma), turn)?);
        programs.extend(families(gamma, turn)?);
    }
    programs.extend(activations(GammaOf::Each { first: 0, stride: 1 }, GAMMAS.len())?);
    let mut known = HashSet::new();
    programs.retain(|program| known.insert(*program));
    Ok(programs)
}

/// Every launch of `activation.rs`.
fn activations(gamma: GammaOf, turn: usize) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for (place, classes) in CLASSES.into_iter().enumerate().skip(turn % 2).step_by(2) {
        // Rows begin on a boundary and beside one in turns.
        let (dtype, at, rows) = (DTYPES[(turn + place) % 4], 8 * (turn / 2 % 2) as u64, 1);
        let forward = Forward { dtype, logits: at, out: 0, rows, classes, gamma };
        let loss = Loss { dtype, logits: at, labels: 0, losses: 0, kept: 0, rows, classes, gamma };
        programs.extend([forward.program()?, loss.program()?]);
        for in_gamma in [0, 1] {
            let backward = Backward { dtype, p: 0, upstream: at, out: 0, in_gamma, rows, classes, gamma };
            programs.push(backward.program()?);
        }
        let (labels, kept, upstream, spread) = (0, 0, 0, 0);
        let of_loss =
            LossBackward { dtype, logits: at, labels, kept, upstream, spread, out: 0, rows, classes, gamma };
        programs.push(of_loss.program()?);
    }
    Ok(programs)
}

/// Every launch of `sets.rs`.
fn families(gamma: Gamma, turn: usize) -> Result<Vec<Program>> {
    let jobs =
        [Job::Scores, Job::ScoresOfAll, Job::Sets, Job::PackSets, Job::Probabilities, Job::Fingerprints];
    let mut programs = Vec::new();
    for (place, classes) in [100, 5000].into_iter().enumerate() {
        let dtype = DTYPES[(turn + place) % 4];
        let family = Family { dtype, logits: 0, rows: 1, classes, gamma, fault: 0 };
        programs.extend(jobs.map(|job| family.program(job)).into_iter().collect::<Result<Vec<_>>>()?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_among_them() {
        let programs = samples().unwrap();
        let kernels: HashSet<&str> = programs.iter().map(Program::kernel).collect();
        assert_eq!(kernels.len(), 13, "{kernels:?}");
        let sources: HashSet<String> =
            programs.iter().map(|program| program.source() + &program.options().join(" ")).collect();
        assert_eq!(sources.len(), programs.len());
    }
}
