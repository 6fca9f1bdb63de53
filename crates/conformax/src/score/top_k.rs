//! The top-k score: the rank.

use super::Draw;
use super::ranked::{Place, PlaceScore, score_by_place};
use crate::Result;
use crate::spec::{Listed, Parameters};

/// How many labels are at least as likely, itself included; a tie takes the rank of its last member.
///
/// ```
/// use conformax::{Row, Score, TopKScore};
/// assert_eq!(TopKScore.score(Row::new(&[0.5_f32, 2.0, 1.0])?, 2), 2.0);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopKScore;

impl PlaceScore for TopKScore {
    const READS_SOFTMAX: bool = false;
    const LARGEST_AT: f64 = 0.0;

    fn draw(&self) -> Draw {
        Draw::Conservative
    }

    #[inline]
    fn at(&self, place: Place) -> f64 {
        place.rank
    }
}

score_by_place!(TopKScore, TopK);

impl Listed for TopKScore {
    const NAMES: &'static [&'static str] = &["top_k"];
    const ALIASES: &'static [&'static str] = &["topk"];
    const RANGE: (f64, f64) = (1.0, f64::MAX);

    fn named(_: &str, _: &Parameters) -> Result<Self> {
        Ok(Self)
    }
}
