//! `Score`: how strange a label looks in a row, and what follows from that alone.
//!
//! `score` is the definition. Everything else derives from it, and a faster version must agree with it to the
//! bit: membership is `score(row, label) ≤ threshold` with the very function that calibration used.

mod aps;
mod draw;
mod entmax;
mod inv_prob;
mod margin;
mod ranked;
mod ranking;
mod raps;
mod saps;
mod top_k;

pub use aps::ApsScore;
pub use draw::Draw;
pub(crate) use draw::mix;
pub use entmax::EntmaxScore;
pub(crate) use entmax::bounds;
pub use inv_prob::InvProbScore;
pub use margin::MarginScore;
pub use ranked::RankedSoftmax;
pub use raps::{Penalty, RapsScore};
pub use saps::SapsScore;
pub use top_k::TopKScore;

use crate::kernel::{Wide, exp_sum, math};
use crate::{Gamma, Logit, Row};

/// A non-conformity score; larger is stranger.
///
/// Scores are never NaN or −0; equal logits have equal scores; a −∞ logit, and a label that is not a class,
/// scores +∞. Implement `score` alone, and override the rest only to be faster.
///
/// ```
/// use conformax::{Logit, Row, Score};
/// /// Strange is whatever lies far below the top.
/// struct Gap;
/// impl Score for Gap {
///     fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
///         row.max() - row.logit(label)
///     }
/// }
/// let mut set = Vec::new();
/// Gap.set_into(Row::new(&[1.0_f32, 4.0, 3.0])?, 1.5, &mut set);
/// assert_eq!(set, [1, 2]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub trait Score: Sync {
    /// How strange `label` looks in `row`. This is the definition.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Gamma, Row, Score};
    /// let sparsemax = EntmaxScore { gamma: Gamma::SPARSEMAX };
    /// assert_eq!(sparsemax.score(Row::new(&[3.0_f32, 2.0, 1.0])?, 2), 3.0); // (3 − 1) + (2 − 1)
    /// # Ok::<(), conformax::Error>(())
    /// ```
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64;

    /// Scores every label into `out`, which has one place per class.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Gamma, Row, Score};
    /// let mut scores = [0.0; 3];
    /// EntmaxScore { gamma: Gamma::SPARSEMAX }.score_all(Row::new(&[3.0_f32, 2.0, 1.0])?, &mut scores);
    /// assert_eq!(scores, [0.0, 1.0, 3.0]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        for (label, out) in (0..).zip(out) {
            *out = self.score(row, label);
        }
    }

    /// Appends the labels with `score ≤ threshold`, best first: by falling logit, equal logits by index.
    ///
    /// ```
    /// use conformax::{InvProbScore, Row, Score};
    /// let mut set = Vec::new();
    /// InvProbScore.set_into(Row::new(&[0.0_f32, 2.0, 1.9])?, 0.6, &mut set);
    /// assert_eq!(set, [1, 2]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        out.extend((0..row.classes() as u32).filter(|label| self.score(row, *label) <= threshold));
        sort_best_first(row, &mut out[start..]);
    }

    /// The index of the entmax family, where the score is of it: its sets are then found for many narrow rows at once.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Gamma, InvProbScore, Score};
    /// assert_eq!(EntmaxScore::default().gamma(), Some(Gamma::ENTMAX15));
    /// assert_eq!(InvProbScore.gamma(), None);
    /// ```
    fn gamma(&self) -> Option<Gamma> {
        None
    }

    /// Appends the labels with `score ≤ threshold` and their scores, best first.
    ///
    /// One call answers every lower threshold: filter by `score ≤ lower`.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Gamma, Row, Score};
    /// let (mut labels, mut scores) = (Vec::new(), Vec::new());
    /// let score = EntmaxScore { gamma: Gamma::SOFTMAX };
    /// score.scored_set_into(Row::new(&[1.0_f32, 4.0, 3.0])?, 1.5, &mut labels, &mut scores);
    /// assert_eq!((labels, scores), (vec![1, 2], vec![0.0, 1.0]));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        let start = labels.len();
        self.set_into(row, threshold, labels);
        scores.extend(labels[start..].iter().map(|label| self.score(row, *label)));
    }

    /// The inverse temperature at which the activation's support is the set; `None` where the score has none.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Gamma, InvProbScore, Score};
    /// assert_eq!(EntmaxScore { gamma: Gamma::ENTMAX15 }.temperature(4.0), Some(0.5));
    /// assert_eq!(InvProbScore.temperature(0.9), None);
    /// ```
    fn temperature(&self, threshold: f64) -> Option<f64> {
        let _ = threshold;
        None
    }

    /// Appends the probabilities of the labels of `set`, which `set_into` gave at `threshold`.
    ///
    /// By default softmax renormalised over the set.
    ///
    /// ```
    /// use conformax::{InvProbScore, Row, Score};
    /// let mut p = Vec::new();
    /// InvProbScore.probabilities_into(Row::new(&[0.0_f32, 2.0, 2.0])?, &[1, 2], 0.6, &mut p);
    /// assert_eq!(p, [0.5, 0.5]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        let _ = threshold;
        softmax_over(row, set, out);
    }
}

impl<S: Score> Score for &S {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        (**self).score(row, label)
    }

    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        (**self).score_all(row, out);
    }

    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        (**self).set_into(row, threshold, out);
    }

    fn gamma(&self) -> Option<Gamma> {
        (**self).gamma()
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        (**self).scored_set_into(row, threshold, labels, scores);
    }

    fn temperature(&self, threshold: f64) -> Option<f64> {
        (**self).temperature(threshold)
    }

    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        (**self).probabilities_into(row, set, threshold, out);
    }
}

/// Sorts labels by falling logit; equal logits by index.
#[inline]
pub(crate) fn sort_best_first<T: Logit>(row: Row<'_, T>, labels: &mut [u32]) {
    const FEW: usize = 64;
    let key = |label: u32| row.logits()[label as usize].widen().key(label);
    match labels.len() {
        0 | 1 => {}
        2 => {
            let [first, second] = [labels[0], labels[1]];
            let swap = key(second) < key(first);
            (labels[0], labels[1]) = if swap { (second, first) } else { (first, second) };
        }
        // Each label's place is the number of smaller keys: more comparisons than a sort makes, but none to guess.
        len @ 3..=8 => {
            let mut keys = [Default::default(); 8];
            for (key_of, label) in keys.iter_mut().zip(&*labels) {
                *key_of = key(*label);
            }
            for key in &keys[..len] {
                let place = keys[..len].iter().map(|other| usize::from(other < key)).sum::<usize>();
                labels[place] = T::Wide::label(*key);
            }
        }
        len @ 9..=FEW => {
            let mut keys = [Default::default(); FEW];
            for (key_of, label) in keys.iter_mut().zip(&*labels) {
                *key_of = key(*label);
            }
            keys[..len].sort_unstable();
            for (label, key) in labels.iter_mut().zip(keys) {
                *label = T::Wide::label(key);
            }
        }
        _ => labels.sort_unstable_by_key(|label| key(*label)),
    }
}

/// Softmax of a row, term by term.
#[derive(Clone, Copy)]
struct Softmax {
    max: f64,
    sum: f64,
}

impl Softmax {
    #[inline]
    fn of<T: Logit>(row: Row<'_, T>) -> Self {
        Self { max: row.max(), sum: exp_sum(row.logits(), row.max()) }
    }

    /// The probability of a label with this logit.
    #[inline]
    fn p(self, logit: f64) -> f64 {
        math::exp_nonpositive(logit - self.max) / self.sum
    }

    /// How far below the maximum a label's logit may lie for its probability to reach `floor`, with slack on
    /// the safe side: whoever asks checks each label by the score's definition.
    #[inline]
    fn distance_of(self, floor: f64) -> f64 {
        if floor > 0.0 { 1e-9 - math::ln(floor * self.sum) } else { f64::INFINITY }
    }
}

/// Softmax renormalised over `set`; an empty set appends nothing.
fn softmax_over<T: Logit>(row: Row<'_, T>, set: &[u32], out: &mut Vec<f64>) {
    let Some(&top) = set.first() else { return };
    let start = out.len();
    // The first of a set is its best, so no exponent is positive. A set of −∞ alone cannot be: the top label
    // of a row is finite and precedes them.
    let top = row.logit(top);
    out.extend(set.iter().map(|label| math::exp_nonpositive(row.logit(*label) - top)));
    let sum: f64 = out[start..].iter().sum();
    for p in &mut out[start..] {
        *p /= sum;
    }
}
