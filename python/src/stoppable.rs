//! A score that stops thinking once nobody wants the answer.
//!
//! A row of many classes can take a second to score by the definition, and a grid has many rows; asking before every
//! row costs nothing and lets Ctrl-C through.

use conformax::{Logit, Row, Score, ScoreSpec};

use crate::work::Stop;

/// The score, or once stopped NaN and nothing: whatever is made of that is thrown away.
#[derive(Clone, Copy)]
pub struct Stoppable<'a> {
    pub spec: ScoreSpec,
    pub stop: &'a Stop,
}

impl Score for Stoppable<'_> {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        if self.stop.requested() { f64::NAN } else { self.spec.score(row, label) }
    }

    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        if !self.stop.requested() {
            self.spec.score_all(row, out);
        }
    }

    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        if !self.stop.requested() {
            self.spec.set_into(row, threshold, out);
        }
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        if !self.stop.requested() {
            self.spec.scored_set_into(row, threshold, labels, scores);
        }
    }

    fn temperature(&self, threshold: f64) -> Option<f64> {
        self.spec.temperature(threshold)
    }

    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        self.spec.probabilities_into(row, set, threshold, out);
    }
}
