//! The RAPS score: APS with a penalty `λ` for every rank beyond `k_reg`, which keeps sets small.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use crate::spec::{Listed, Parameters};
use crate::{Lambda, Result};

/// Regularised adaptive prediction sets: `s = Σ_{k : z_k ≥ z_y} p_k + λ·(rank − k_reg)₊ − U·own`.
///
/// ```
/// use conformax::{Draw, Lambda, RapsScore, Row, Score};
/// let score = RapsScore { lambda: Lambda::new(0.5)?, k_reg: 1, draw: Draw::Conservative, ..RapsScore::default() };
/// let row = Row::new(&[0.0_f32, 0.0])?;
/// assert_eq!(score.score(row, 0), 1.5); // rank 2, one beyond k_reg
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RapsScore {
    /// Penalty for each rank beyond `k_reg`.
    pub lambda: Lambda,
    /// Ranks that go unpunished.
    pub k_reg: u32,
    /// Whether the label's own penalty is part of the random term.
    pub penalty: Penalty,
    /// The row's uniform draw.
    pub draw: Draw,
}

/// What `U` multiplies.
///
/// ```
/// use conformax::{Draw, Lambda, Penalty, RapsScore, Row, Score};
/// let row = Row::new(&[0.0_f32, 0.0])?.with_u(0.5)?;
/// let lambda = Lambda::new(0.5)?;
/// let inside = RapsScore { lambda, k_reg: 1, penalty: Penalty::Randomized, draw: Draw::default() };
/// let outside = RapsScore { penalty: Penalty::Fixed, ..inside };
/// assert_eq!(outside.score(row, 0) - inside.score(row, 0), 0.25);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Penalty {
    /// The label's probability and its own `λ`, as in the method's paper.
    #[default]
    Randomized,
    /// The label's probability alone, as in TorchCP.
    Fixed,
}

impl Default for RapsScore {
    /// `λ = 0.01`, `k_reg = 5`.
    fn default() -> Self {
        Self { lambda: Lambda::known(0.01), k_reg: 5, penalty: Penalty::default(), draw: Draw::default() }
    }
}

impl PlaceScore for RapsScore {
    const READS_SOFTMAX: bool = true;
    const LARGEST_AT: f64 = 0.0;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        let lambda = self.lambda.value();
        let beyond = (place.rank - f64::from(self.k_reg)).max(0.0);
        let own = match self.penalty {
            Penalty::Randomized if beyond > 0.0 => place.p + lambda,
            _ => place.p,
        };
        place.cumulative + lambda * beyond - place.u * own
    }
}

score_by_place!(RapsScore, Raps);

impl Listed for RapsScore {
    const NAMES: &'static [&'static str] = &["raps"];

    fn named(_: &str, parameters: &Parameters) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            lambda: parameters.lambda.unwrap_or(default.lambda),
            k_reg: parameters.k_reg.unwrap_or(default.k_reg),
            penalty: parameters.penalty.unwrap_or(default.penalty),
            draw: parameters.draw.unwrap_or(default.draw),
        })
    }

    fn parameters(&self) -> Parameters {
        let Self { lambda, k_reg, penalty, draw } = *self;
        Parameters {
            gamma: None,
            lambda: Some(lambda),
            k_reg: Some(k_reg),
            penalty: Some(penalty),
            draw: Some(draw),
        }
    }

    fn with_draw(self, draw: Draw) -> Self {
        Self { draw, ..self }
    }

    fn shown(&self) -> String {
        format!("lambda={}, k_reg={}", self.lambda, self.k_reg)
    }
}
