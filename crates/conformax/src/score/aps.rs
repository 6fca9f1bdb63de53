//! The APS score: the probability of all labels at least as likely, less a random part of the label's own.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};

/// Adaptive prediction sets: `s = Σ_{k : z_k ≥ z_y} p_k − U·p_y`.
///
/// ```
/// use conformax::{ApsScore, Draw, Row, Score};
/// let score = ApsScore { draw: Draw::Zero };
/// assert_eq!(score.score(Row::new(&[0.0_f32, 0.0, 0.0, 0.0])?, 2), 1.0); // tied labels go together
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApsScore {
    /// The row's uniform draw.
    pub draw: Draw,
}

impl PlaceScore for ApsScore {
    const READS_SOFTMAX: bool = true;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        place.cumulative - place.u * place.p
    }
}

score_by_place!(ApsScore);
