//! The APS score: the probability of all labels at least as likely, less a random part of the label's own.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use crate::Result;
use crate::spec::{Listed, Parameters};

/// Adaptive prediction sets: `s = Σ_{k : z_k ≥ z_y} p_k − U·p_y`.
///
/// ```
/// use conformax::{ApsScore, Draw, Row, Score};
/// let score = ApsScore { draw: Draw::Conservative };
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
    const LARGEST_AT: f64 = 0.0;

    fn draw(&self) -> Draw {
        self.draw
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        place.cumulative - place.u * place.p
    }
}

score_by_place!(ApsScore, Aps);

impl Listed for ApsScore {
    const NAMES: &'static [&'static str] = &["aps"];
    const RANGE: (f64, f64) = (0.0, 1.0 + 1e-9);

    fn named(_: &str, parameters: &Parameters) -> Result<Self> {
        Ok(Self { draw: parameters.draw.unwrap_or_default() })
    }

    fn parameters(&self) -> Parameters {
        Parameters { draw: Some(self.draw), ..Parameters::default() }
    }

    fn with_draw(self, draw: Draw) -> Self {
        Self { draw }
    }
}
