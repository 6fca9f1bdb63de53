//! The SAPS score: of the probabilities only the largest is read, and ranks count the rest.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use crate::spec::{Listed, Parameters};
use crate::{Lambda, Result};

/// Sorted adaptive prediction sets: `U·p₁` at rank 1, else `p₁ + λ·(rank − 2 + U)`.
///
/// ```
/// use conformax::{Draw, Lambda, Row, SapsScore, Score};
/// let score = SapsScore { lambda: Lambda::new(0.25)?, draw: Draw::Conservative };
/// assert_eq!(score.score(Row::new(&[0.0_f32, 0.0])?, 0), 0.75); // tied on top: rank 2
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SapsScore {
    /// What each rank adds.
    pub lambda: Lambda,
    /// The row's uniform draw.
    pub draw: Draw,
}

impl Default for SapsScore {
    /// `λ = 0.1`.
    fn default() -> Self {
        Self { lambda: Lambda::known(0.1), draw: Draw::default() }
    }
}

impl PlaceScore for SapsScore {
    const READS_SOFTMAX: bool = true;
    const LARGEST_AT: f64 = 1.0;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        if place.rank == 1.0 {
            place.u * place.top
        } else {
            place.top + self.lambda.value() * (place.rank - 2.0 + place.u)
        }
    }
}

score_by_place!(SapsScore, Saps);

impl Listed for SapsScore {
    const NAMES: &'static [&'static str] = &["saps"];

    fn named(_: &str, parameters: &Parameters) -> Result<Self> {
        let default = Self::default();
        let lambda = parameters.lambda.unwrap_or(default.lambda);
        Ok(Self { lambda, draw: parameters.draw.unwrap_or(default.draw) })
    }

    fn parameters(&self) -> Parameters {
        Parameters { lambda: Some(self.lambda), draw: Some(self.draw), ..Parameters::default() }
    }

    fn with_draw(self, draw: Draw) -> Self {
        Self { draw, ..self }
    }

    fn shown(&self) -> String {
        format!("lambda={}", self.lambda)
    }
}
