//! Which score, by name, and its parameters.

use clap::{Args, ValueEnum};
use conformax::{Draw, Gamma, Lambda, Masked, Parameters, Penalty, ScoreSpec};

use crate::failure::Failure;

/// A score by name.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScoreArgs {
    /// entmax, sparsemax, log_margin, inv_prob, aps, raps, saps, top_k or margin.
    #[arg(long, value_name = "NAME", default_value = "entmax")]
    score: String,
    /// Index of the entmax family, 1 to 16: 1.5 is entmax15, 2 sparsemax, 1 log-margin [default: 1.5].
    #[arg(long, value_name = "G")]
    gamma: Option<Gamma>,
    /// Penalty of raps [default: 0.01] or weight of saps [default: 0.1].
    #[arg(long, value_name = "L", aliases = ["lam-reg", "lam_reg"])]
    lambda: Option<f64>,
    /// Ranks that raps leaves without penalty [default: 5].
    #[arg(long, value_name = "K", aliases = ["kreg", "k_reg"])]
    k_reg: Option<u32>,
    /// Whether the label's own penalty is part of the random term of raps: randomized or fixed [default: randomized].
    #[arg(long, value_name = "KIND", value_parser = penalty)]
    penalty: Option<Penalty>,
    /// No random draw in aps, raps and saps: the largest value that the draw can give.
    #[arg(long, conflicts_with = "seed")]
    not_randomized: bool,
    /// Seed of the random draws of aps, raps and saps [default: 0].
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

impl ScoreArgs {
    pub(crate) fn spec(&self) -> Result<ScoreSpec, Failure> {
        let parameters = Parameters {
            gamma: self.gamma,
            lambda: self.lambda.map(Lambda::new).transpose()?,
            k_reg: self.k_reg,
            penalty: self.penalty,
            draw: if self.not_randomized { Some(Draw::Conservative) } else { self.seed.map(Draw::Seeded) },
        };
        Ok(ScoreSpec::named(&self.score, parameters)?)
    }
}

/// The word that Python and studies have too; other libraries call a number so.
fn penalty(text: &str) -> Result<Penalty, String> {
    match text {
        "randomized" => Ok(Penalty::Randomized),
        "fixed" => Ok(Penalty::Fixed),
        _ => Err("wanted randomized or fixed; what TorchCP calls penalty is --lambda".to_owned()),
    }
}

/// What a logit of minus infinity means.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MaskedChoice {
    /// A class of probability zero: in a set only where sets are full.
    Allowed,
    /// An impossible class: in no set, and an error as the true label of a calibration row.
    Never,
}

impl From<MaskedChoice> for Masked {
    fn from(choice: MaskedChoice) -> Self {
        match choice {
            MaskedChoice::Allowed => Self::Allowed,
            MaskedChoice::Never => Self::Never,
        }
    }
}
