//! `Program`: which source, compiled with which definitions.

use conformax::Gamma;

use crate::layout::{Dtype, Layout};

/// The formula of a launch, `KIND` in the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Soft,
    Linear,
    Square,
    Power,
    /// A power whose δ is beyond what short powers take.
    Steep,
    Anchored,
    /// A γ for each row.
    Each,
}

impl Kind {
    pub(crate) fn of(gamma: Gamma) -> Self {
        match gamma.delta() {
            f64::INFINITY => Self::Soft,
            2.0 => Self::Square,
            1.0 => Self::Linear,
            1.0..=256.0 => Self::Power,
            256.0.. => Self::Steep,
            _ => Self::Anchored,
        }
    }
}

/// The kernels, by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    Forward,
    Loss,
    Backward { in_gamma: bool },
    LossBackward,
    Scores,
    ScoresOfAll,
    Sets,
    PackSets,
    Probabilities,
    Fingerprints,
}

/// One compiled program: everything its text and options depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) job: Job,
    pub(crate) kind: Kind,
    pub(crate) dtype: Dtype,
    /// Neighbours that a thread takes together.
    pub(crate) vec: u32,
    /// Whether rows may begin elsewhere than on a boundary of so many.
    pub(crate) unaligned: bool,
    pub(crate) layout: Layout,
}

const BOTH: &str = include_str!("kernels/both.h");
const ELEMENT: &str = include_str!("kernels/element.cuh");
const TEAM: &str = include_str!("kernels/team.cuh");
const ROOT: &str = include_str!("kernels/root.h");
const BYTES: &str = include_str!("kernels/bytes.h");
const SPAN: &str = include_str!("kernels/span.cuh");
const FORWARD: &str = include_str!("kernels/forward.cu");
const BACKWARD: &str = include_str!("kernels/backward.cu");
const LOSS_BACKWARD: &str = include_str!("kernels/loss_backward.cu");
const ARITHMETIC: &str = include_str!("kernels/arithmetic.h");
const NORM: &str = include_str!("kernels/norm.h");
const NORMALIZE: &str = include_str!("kernels/normalize.h");
const REACH: &str = include_str!("kernels/reach.h");
const FINGERPRINT: &str = include_str!("kernels/fingerprint.h");
const SCORES: &str = include_str!("kernels/scores.cu");
const PROBABILITIES: &str = include_str!("kernels/probabilities.cu");
const FINGERPRINTS: &str = include_str!("kernels/fingerprints.cu");

impl Program {
    /// The text, headers first.
    pub(crate) fn source(&self) -> String {
        match self.job {
            Job::Forward | Job::Loss => [BOTH, ELEMENT, BYTES, SPAN, TEAM, ROOT, FORWARD].join("\n"),
            Job::Backward { .. } => [BOTH, ELEMENT, BYTES, SPAN, TEAM, ROOT, BACKWARD].join("\n"),
            Job::LossBackward => [BOTH, ELEMENT, TEAM, ROOT, LOSS_BACKWARD].join("\n"),
            Job::Scores | Job::ScoresOfAll | Job::Sets | Job::PackSets => {
                [BOTH, ELEMENT, ARITHMETIC, NORM, REACH, SCORES].join("\n")
            }
            Job::Probabilities => [BOTH, ELEMENT, ARITHMETIC, NORM, NORMALIZE, PROBABILITIES].join("\n"),
            Job::Fingerprints => [BOTH, ELEMENT, FINGERPRINT, FINGERPRINTS].join("\n"),
        }
    }

    /// What the compiler is told, but for the architecture.
    pub(crate) fn options(&self) -> Vec<String> {
        let kind: u32 = match self.kind {
            Kind::Soft => 0,
            Kind::Linear => 1,
            Kind::Square => 2,
            Kind::Power | Kind::Steep => 3,
            Kind::Anchored => 4,
            Kind::Each => 5,
        };
        let mut options = vec![
            "--std=c++17".to_owned(),
            // Lambdas too run on the device; NVRTC before 13.4 wants to be told.
            "--device-as-default-execution-space".to_owned(),
            format!("-DDTYPE={}", self.dtype.code()),
            format!("-DVEC={}", self.vec),
            format!("-DKIND={kind}"),
            format!("-DJOB={}", u32::from(self.job == Job::Loss)),
        ];
        if self.kind == Kind::Steep {
            options.push("-DSTEEP".to_owned());
        }
        if self.unaligned {
            options.push("-DUNALIGNED".to_owned());
        }
        self.layout.defines(&mut options);
        options.extend(self.entry().map(str::to_owned));
        if self.has_bits_of_the_cpu() {
            // No product is added unrounded.
            options.extend(["--fmad=false".to_owned(), format!("-DORDER={}", kind.min(3))]);
        }
        options
    }

    /// The part of the source that is wanted.
    fn entry(&self) -> Option<&'static str> {
        match self.job {
            Job::Backward { in_gamma: true } => Some("-DIN_GAMMA"),
            Job::Scores => Some("-DSCORE_LABELS"),
            Job::ScoresOfAll => Some("-DSCORE_ALL"),
            Job::Sets => Some("-DFIND_SETS"),
            Job::PackSets => Some("-DPACK_SETS"),
            Job::Forward | Job::Loss | Job::Backward { in_gamma: false } | Job::LossBackward => None,
            Job::Probabilities | Job::Fingerprints => None,
        }
    }

    fn has_bits_of_the_cpu(&self) -> bool {
        !matches!(self.job, Job::Forward | Job::Loss | Job::Backward { .. } | Job::LossBackward)
    }

    /// The kernel's name in the source.
    pub(crate) fn kernel(&self) -> &'static str {
        match (self.job, self.layout.name()) {
            (Job::Forward | Job::Loss, "narrow") => "forward_narrow",
            (Job::Forward | Job::Loss, "held") => "forward_held",
            (Job::Forward | Job::Loss, _) => "forward_wide",
            (Job::Backward { .. }, "narrow") => "backward_narrow",
            (Job::Backward { .. }, "held") => "backward_held",
            (Job::Backward { .. }, _) => "backward_wide",
            (Job::LossBackward, _) => "loss_backward",
            (Job::Scores, _) => "score_labels",
            (Job::ScoresOfAll, _) => "score_all",
            (Job::Sets, _) => "find_sets",
            (Job::PackSets, _) => "pack_sets",
            (Job::Probabilities, _) => "probabilities",
            (Job::Fingerprints, _) => "fingerprints",
        }
    }
}
