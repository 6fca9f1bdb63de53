//! The one entry to what a score does: by its definition, or faster for the scores of this crate.
//!
//! Whoever needs scores or sets writes a [`Question`] and puts it by [`ask`]. A score of this crate answers by its own
//! [`Paths`], any other by its definition; so a faster path reaches every caller, and none can be missed by one.

use super::softmax::softmax_over;
use super::sort_best_first;
use crate::kernel::{Bounds, LimitsByLabel, Near, Steps};
use crate::thresholds::ByLabel;
use crate::{Logit, Row, Score, ScoreSpec};

/// An argument that only this crate can make.
#[derive(Clone, Copy, Debug)]
pub struct Seal(());

/// What is asked of a score. The defaults are the definition; others must agree with it to the bit.
pub(crate) trait Paths: Score {
    /// Scores every label into `out`, which has one place per class.
    #[inline]
    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        for (label, out) in (0..).zip(out) {
            *out = self.score(row, label);
        }
    }

    /// Appends the labels with `score ≤ threshold`, best first: by falling logit, equal logits by index.
    #[inline]
    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        out.extend((0..row.classes() as u32).filter(|label| self.score(row, *label) <= threshold));
        sort_best_first(row, &mut out[start..]);
    }

    /// The same with their scores. One call answers every lower threshold.
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

    /// Whether the labels of `set`, which `set_into` gave at a higher threshold, all score at most this one; false
    /// where only their scores can tell.
    #[inline]
    fn surely_within<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64) -> bool {
        let _ = (row, set, threshold);
        false
    }

    /// As `scored_set_into`, with estimates of the scores; returns how far, relatively, each may be off. 0 says that
    /// they are the scores. Labels beyond the threshold may be among them, but none of infinite score.
    fn estimated_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        estimates: &mut Vec<f64>,
    ) -> f64 {
        self.scored_set_into(row, threshold, labels, estimates);
        0.0
    }

    /// Bounds the scores of all labels by steps; `false` where estimates cost less, or nothing else is known.
    #[inline]
    fn look_by_steps<T: Logit>(&self, row: Row<'_, T>, steps: &mut Steps) -> bool {
        let _ = (row, steps);
        false
    }

    /// Appends the labels that score at most their own finite threshold, best first.
    fn set_by_label_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        by_label: ByLabel<'_>,
        out: &mut Vec<u32>,
        scratch: &mut LabelScratch<T>,
    ) {
        estimated_set_by_label(self, row, by_label, out, &mut scratch.scores);
    }

    /// What decides the sets of many narrow rows at once; `None` where each row must be looked at by itself.
    #[inline]
    fn bounds(&self, threshold: f64) -> Option<Bounds> {
        let _ = threshold;
        None
    }

    /// The same where every label has its own threshold, none of them infinite.
    fn bounds_by_label(&self, thresholds: &[f64]) -> Option<Bounds<LimitsByLabel>> {
        let _ = thresholds;
        None
    }

    /// Appends the probabilities of the labels of `set`, which `set_into` gave at `threshold`: the activation at the
    /// calibrated temperature for the entmax family, else softmax renormalised over the set.
    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        let _ = threshold;
        softmax_over(row, set, out);
    }
}

/// Memory for sets by label, which one row leaves to the next.
pub(crate) struct LabelScratch<T: Logit> {
    pub scores: Vec<f64>,
    pub near: Near<T>,
}

impl<T: Logit> Default for LabelScratch<T> {
    fn default() -> Self {
        Self { scores: Vec::new(), near: Near::default() }
    }
}

/// Finds the labels up to the largest finite threshold and leaves out those beyond their own.
pub(super) fn estimated_set_by_label<P: Paths + ?Sized, T: Logit>(
    score: &P,
    row: Row<'_, T>,
    by_label: ByLabel<'_>,
    out: &mut Vec<u32>,
    estimates: &mut Vec<f64>,
) {
    let start = out.len();
    estimates.clear();
    let off = score.estimated_set_into(row, by_label.largest, out, estimates);
    let mut kept = start;
    for (place, estimate) in (start..).zip(&*estimates) {
        let label = out[place];
        let threshold = by_label.thresholds[label as usize];
        let inside = match estimate * (1.0 + off) <= threshold {
            true => true,
            false if estimate * (1.0 - off) > threshold => false,
            false => off > 0.0 && score.score(row, label) <= threshold,
        };
        out[kept] = label;
        kept += usize::from(inside && threshold < f64::INFINITY);
    }
    out.truncate(kept);
}

/// A score that has its definition and nothing else.
pub(crate) struct ByDefinition<'a, S>(&'a S);

impl<S: Score> Score for ByDefinition<'_, S> {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        self.0.score(row, label)
    }
}

impl<S: Score> Paths for ByDefinition<'_, S> {}

/// Something to be asked of a score, whichever it is.
pub(crate) trait Question {
    type Answer;
    fn put<P: Paths>(self, score: &P) -> Self::Answer;
}

/// Puts the question to the score by its fastest paths.
#[inline]
pub(crate) fn ask<S: Score, Q: Question>(score: &S, question: Q) -> Q::Answer {
    match score.known(Seal(())) {
        Some(spec) => spec.ask(question),
        None => question.put(&ByDefinition(score)),
    }
}

/// Which of this crate's scores it is.
pub(crate) fn known<S: Score>(score: &S) -> Option<ScoreSpec> {
    score.known(Seal(()))
}

/// The one answer of a score and of references to it, if it is one.
#[cfg(test)]
pub(crate) fn known_however_held<S: Score>(score: &S) -> Option<ScoreSpec> {
    fn held<S: Score>(score: S) -> Option<ScoreSpec> {
        known(&score)
    }
    let (twice, thrice) = (&score, &&score);
    let answer = known(score);
    (held(score) == answer && held(twice) == answer && held(thrice) == answer).then_some(answer)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;

    /// Equal sets would be found by the slow path too; that a score is known says which one is taken.
    #[test]
    fn a_score_takes_its_own_paths_however_it_is_held() {
        for name in ScoreSpec::names() {
            let spec = ScoreSpec::named(name, Parameters::default()).unwrap();
            assert_eq!(known_however_held(&spec), Some(spec), "{name}");
        }
        for (spec, is_known) in ScoreSpec::types_are_known() {
            assert!(is_known, "{spec}");
        }
    }

    /// A score of somebody else's claims nothing, and what wraps a score may have changed it.
    #[test]
    fn a_score_from_elsewhere_is_asked_its_definition() {
        assert_eq!(known_however_held(&ByDefinition(&ScoreSpec::default())), None);
    }
}
