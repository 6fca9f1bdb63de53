//! The SAPS score: of the probabilities only the largest is read, and ranks count the rest.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use super::raps::check_lambda;
use crate::Result;

/// Sorted adaptive prediction sets: `U·p₁` at rank 1, else `p₁ + λ·(rank − 2 + U)`.
///
/// ```
/// use conformax::{Draw, Row, SapsScore, Score};
/// let score = SapsScore { lambda: 0.25, draw: Draw::Zero };
/// assert_eq!(score.score(Row::new(&[0.0_f32, 0.0])?, 0), 0.5); // tied on top: rank 2
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SapsScore {
    /// What each rank adds; finite and not negative ([`SapsScore::checked`]).
    pub lambda: f64,
    /// The row's uniform draw.
    pub draw: Draw,
}

impl Default for SapsScore {
    /// `λ = 0.1`.
    fn default() -> Self {
        Self { lambda: 0.1, draw: Draw::default() }
    }
}

impl SapsScore {
    /// The same score, if its `λ` is finite and not negative.
    ///
    /// ```
    /// # use conformax::SapsScore;
    /// assert!(SapsScore { lambda: f64::NAN, ..SapsScore::default() }.checked().is_err());
    /// ```
    pub fn checked(self) -> Result<Self> {
        check_lambda(self.lambda).map(|()| self)
    }
}

impl PlaceScore for SapsScore {
    const READS_SOFTMAX: bool = true;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        if place.rank == 1.0 {
            place.u * place.top
        } else {
            place.top + self.lambda * (place.rank - 2.0 + place.u)
        }
    }
}

score_by_place!(SapsScore);
