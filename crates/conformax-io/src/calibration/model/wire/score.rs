//! A score as a calibration file spells it: `{"name": "raps", "lambda": 0.01, "k_reg": 5, …}`.

use conformax::{
    ApsScore, DRAW_SCHEME, Draw, EntmaxScore, InvProbScore, MarginScore, Parameters, Penalty, RapsScore,
    SapsScore, ScoreSpec, TopKScore,
};
use serde::{Deserialize, Serialize};

use crate::Problem;

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
    Zero,
    Seeded { scheme: String, seed: u64 },
}

impl Score {
    pub(super) fn of(spec: ScoreSpec) -> Result<Self, Problem> {
        let named =
            Self { name: spec.name().to_owned(), draw: spec.draw().map(DrawEntry::of), ..Self::default() };
        Ok(match spec {
            ScoreSpec::Entmax(EntmaxScore { gamma }) => Self { gamma: Some(gamma.value()), ..named },
            ScoreSpec::Raps(RapsScore { lambda, k_reg, penalty, .. }) => Self {
                lambda: Some(lambda),
                k_reg: Some(k_reg),
                penalty: Some(match penalty {
                    Penalty::Randomized => PenaltyName::Randomized,
                    Penalty::Fixed => PenaltyName::Fixed,
                }),
                ..named
            },
            ScoreSpec::Saps(SapsScore { lambda, .. }) => Self { lambda: Some(lambda), ..named },
            ScoreSpec::InvProb(InvProbScore)
            | ScoreSpec::Aps(ApsScore { .. })
            | ScoreSpec::TopK(TopKScore)
            | ScoreSpec::Margin(MarginScore) => named,
            // The list is open to other crates; a score this file has no words for must not lose its parameters.
            other => {
                return Err(Problem::Model(format!("the file has no form for the score `{}`", other.name())));
            }
        })
    }

    /// The score, which must be spelled as it is printed and with all its parameters.
    pub(super) fn into_spec(self) -> Result<ScoreSpec, Problem> {
        let name = self.name.clone();
        let parameters = Parameters {
            gamma: self.gamma,
            lambda: self.lambda,
            k_reg: self.k_reg,
            penalty: self.penalty.map(|penalty| match penalty {
                PenaltyName::Randomized => Penalty::Randomized,
                PenaltyName::Fixed => Penalty::Fixed,
            }),
            draw: self.draw.map(DrawEntry::into_draw).transpose()?,
        };
        let spec = ScoreSpec::named(&name, parameters).map_err(|error| Problem::Model(error.to_string()))?;
        let written = Self::of(spec)?;
        let complete = written.name == name
            && written.gamma == parameters.gamma
            && written.lambda == parameters.lambda
            && written.k_reg == parameters.k_reg
            && written.penalty.is_some() == parameters.penalty.is_some()
            && written.draw.is_some() == parameters.draw.is_some();
        match complete {
            true => Ok(spec),
            false => Err(Problem::Model(format!(
                "the score `{name}` lacks a parameter or has one it does not take"
            ))),
        }
    }
}

impl DrawEntry {
    fn of(draw: Draw) -> Self {
        match draw {
            Draw::Zero => Self::Zero,
            Draw::Seeded(seed) => Self::Seeded { scheme: DRAW_SCHEME.to_owned(), seed },
        }
    }

    fn into_draw(self) -> Result<Draw, Problem> {
        match self {
            Self::Zero => Ok(Draw::Zero),
            Self::Seeded { scheme, seed } if scheme == DRAW_SCHEME => Ok(Draw::Seeded(seed)),
            Self::Seeded { scheme, .. } => Err(Problem::Model(format!(
                "its draws follow `{scheme}`, this program knows `{DRAW_SCHEME}`"
            ))),
        }
    }
}
