//! A score as a calibration file spells it: `{"name": "raps", "lambda": 0.01, "k_reg": 5, …}`.

use conformax::{DRAW_SCHEME, Draw, Gamma, Lambda, Parameters, Penalty, ScoreSpec};
use serde::{Deserialize, Serialize};

use crate::Problem;

/// Name and parameters.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Score {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    k_reg: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    penalty: Option<PenaltyName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draw: Option<DrawEntry>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum PenaltyName {
    Randomized,
    Fixed,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum DrawEntry {
    /// The draw at which the score is largest. The first version of the file called it `zero`, which it is for APS and
    /// RAPS.
    #[serde(alias = "zero")]
    Conservative,
    Seeded {
        scheme: String,
        seed: u64,
    },
}

impl Score {
    /// Everything the score takes, so that nothing is left to defaults that may change.
    pub(super) fn of(spec: ScoreSpec) -> Self {
        let Parameters { gamma, lambda, k_reg, penalty, draw } = spec.parameters();
        Self {
            name: spec.name().to_owned(),
            gamma: gamma.map(Gamma::value),
            lambda: lambda.map(Lambda::value),
            k_reg,
            penalty: penalty.map(|penalty| match penalty {
                Penalty::Randomized => PenaltyName::Randomized,
                Penalty::Fixed => PenaltyName::Fixed,
            }),
            draw: draw.map(DrawEntry::of),
        }
    }

    /// The score; every parameter must be there that it takes.
    pub(super) fn into_spec(self) -> Result<ScoreSpec, Problem> {
        let core = |error: conformax::Error| Problem::Model(error.to_string());
        let parameters = Parameters {
            gamma: self.gamma.map(Gamma::new).transpose().map_err(core)?,
            lambda: self.lambda.map(Lambda::new).transpose().map_err(core)?,
            k_reg: self.k_reg,
            penalty: self.penalty.map(|penalty| match penalty {
                PenaltyName::Randomized => Penalty::Randomized,
                PenaltyName::Fixed => Penalty::Fixed,
            }),
            draw: self.draw.map(DrawEntry::into_draw).transpose()?,
        };
        let spec = ScoreSpec::named(&self.name, parameters).map_err(core)?;
        match spec.name() == self.name && spec.parameters() == parameters {
            true => Ok(spec),
            false => Err(Problem::Model(format!("the score `{}` lacks a parameter", self.name))),
        }
    }

    /// Whether it is SAPS without a draw, which the first version of the file took at U = 0.
    pub(super) fn is_saps_without_draw(&self) -> bool {
        self.name == "saps" && matches!(self.draw, Some(DrawEntry::Conservative))
    }
}

impl DrawEntry {
    fn of(draw: Draw) -> Self {
        match draw {
            Draw::Conservative => Self::Conservative,
            Draw::Seeded(seed) => Self::Seeded { scheme: DRAW_SCHEME.to_owned(), seed },
        }
    }

    fn into_draw(self) -> Result<Draw, Problem> {
        match self {
            Self::Conservative => Ok(Draw::Conservative),
            Self::Seeded { scheme, seed } if scheme == DRAW_SCHEME => Ok(Draw::Seeded(seed)),
            Self::Seeded { scheme, .. } => Err(Problem::Model(format!(
                "its draws follow `{scheme}`, this program knows `{DRAW_SCHEME}`"
            ))),
        }
    }
}
