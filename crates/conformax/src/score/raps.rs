//! The RAPS score: APS with a penalty `λ` for every rank beyond `k_reg`, which keeps sets small.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use crate::{Error, Result};

/// Regularised adaptive prediction sets: `s = Σ_{k : z_k ≥ z_y} p_k + λ·(rank − k_reg)₊ − U·own`.
///
/// ```
/// use conformax::{Draw, RapsScore, Row, Score};
/// let score = RapsScore { lambda: 0.5, k_reg: 1, draw: Draw::Zero, ..RapsScore::default() };
/// let row = Row::new(&[0.0_f32, 0.0])?;
/// assert_eq!(score.score(row, 0), 1.5); // rank 2, one beyond k_reg
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RapsScore {
    /// Penalty for each rank beyond `k_reg`; finite and not negative ([`RapsScore::checked`]).
    pub lambda: f64,
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
/// use conformax::{Draw, Penalty, RapsScore, Row, Score};
/// let row = Row::new(&[0.0_f32, 0.0])?.with_u(0.5)?;
/// let inside = RapsScore { lambda: 0.5, k_reg: 1, penalty: Penalty::Randomized, draw: Draw::default() };
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
        Self { lambda: 0.01, k_reg: 5, penalty: Penalty::default(), draw: Draw::default() }
    }
}

impl RapsScore {
    /// The same score, if its `λ` is finite and not negative.
    ///
    /// ```
    /// # use conformax::RapsScore;
    /// assert!(RapsScore { lambda: -1.0, ..RapsScore::default() }.checked().is_err());
    /// assert!(RapsScore::default().checked().is_ok());
    /// ```
    pub fn checked(self) -> Result<Self> {
        check_lambda(self.lambda).map(|()| self)
    }
}

pub(crate) fn check_lambda(lambda: f64) -> Result<()> {
    if (0.0..f64::INFINITY).contains(&lambda) {
        Ok(())
    } else {
        Err(Error::Parameter { name: "lambda", wanted: "finite and not negative", got: lambda })
    }
}

impl PlaceScore for RapsScore {
    const READS_SOFTMAX: bool = true;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        let beyond = (place.rank - f64::from(self.k_reg)).max(0.0);
        let own = match self.penalty {
            Penalty::Randomized if beyond > 0.0 => place.p + self.lambda,
            _ => place.p,
        };
        place.cumulative + self.lambda * beyond - place.u * own
    }
}

score_by_place!(RapsScore);
