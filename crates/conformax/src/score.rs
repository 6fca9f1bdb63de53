//! `Score`: how strange a label looks in a row.
//!
//! `score` is the definition, and the only method there is to write. Everything else (sets, p-values, calibration)
//! derives from it: membership is `score(row, label) ≤ threshold` with the very function that calibration used. What
//! this crate's own scores do faster goes through [`paths`], one entry for every caller, and agrees to the bit.

mod aps;
mod draw;
mod entmax;
mod inv_prob;
mod margin;
pub(crate) mod paths;
pub(crate) mod ranked;
mod ranking;
mod raps;
mod saps;
mod softmax;
mod top_k;

pub use aps::ApsScore;
pub use draw::Draw;
pub use entmax::EntmaxScore;
pub use inv_prob::InvProbScore;
pub use margin::MarginScore;
pub use raps::{Penalty, RapsScore};
pub use saps::SapsScore;
pub(crate) use softmax::softmax_over;
pub use top_k::TopKScore;

use self::paths::Seal;
use crate::{Logit, Row, ScoreSpec, kernel};

/// A non-conformity score; larger is stranger.
///
/// Scores are never NaN or −0; equal logits have equal scores; a −∞ logit, and a label that is not a class,
/// scores +∞. `score` is all there is to implement.
///
/// ```
/// use conformax::{Logit, Logits, Predictor, Row, Score, Thresholds};
/// /// Strange is whatever lies far below the top.
/// struct Gap;
/// impl Score for Gap {
///     fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
///         row.max() - row.logit(label)
///     }
/// }
/// let sets = Predictor::new(Gap, Thresholds::One(1.5)).predict(Logits::new(&[1.0_f32, 4.0, 3.0], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[1, 2][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
pub trait Score: Sync {
    /// How strange `label` looks in `row`. This is the definition.
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64;

    /// Which of this crate's scores it is, so that its faster paths are taken. Nobody else can name the argument, so
    /// no other score can claim them, and a wrapper has nothing to forget.
    #[doc(hidden)]
    fn known(&self, _: Seal) -> Option<ScoreSpec> {
        None
    }
}

impl<S: Score> Score for &S {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        (**self).score(row, label)
    }

    fn known(&self, seal: Seal) -> Option<ScoreSpec> {
        (**self).known(seal)
    }
}

/// Sorts labels by falling logit; equal logits by index.
#[inline]
pub(crate) fn sort_best_first<T: Logit>(row: Row<'_, T>, labels: &mut [u32]) {
    kernel::sort_best_first(row.logits(), labels);
}
