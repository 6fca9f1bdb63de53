//! The InvProb score, also called LAC or THR: `s(z, y) = 1 − softmax(z)_y`.
//!
//! A probability below 2⁻⁵⁴ scores exactly 1; those ties are part of the definition.

use super::paths::{Paths, Seal};
use super::softmax::Softmax;
use super::{Score, sort_best_first};
use crate::kernel::shortlist;
use crate::spec::{Listed, Parameters};
use crate::{Logit, Result, Row, ScoreSpec};

/// One minus the softmax probability.
///
/// ```
/// use conformax::{InvProbScore, Row, Score};
/// assert_eq!(InvProbScore.score(Row::new(&[0.0_f32, 0.0])?, 1), 0.5);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InvProbScore;

#[inline]
fn inv_prob(softmax: Softmax, logit: f64) -> f64 {
    if logit == f64::NEG_INFINITY { f64::INFINITY } else { 1.0 - softmax.p(logit) }
}

impl Score for InvProbScore {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        inv_prob(Softmax::of(row), row.logit(label))
    }

    fn known(&self, _: Seal) -> Option<ScoreSpec> {
        Some(ScoreSpec::InvProb(*self))
    }
}

impl Listed for InvProbScore {
    const NAMES: &'static [&'static str] = &["inv_prob"];
    const ALIASES: &'static [&'static str] = &["invprob", "lac", "thr"];
    const RANGE: (f64, f64) = (0.0, 1.0);

    fn named(_: &str, _: &Parameters) -> Result<Self> {
        Ok(Self)
    }
}

impl Paths for InvProbScore {
    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        let softmax = Softmax::of(row);
        for (out, logit) in out.iter_mut().zip(row.logits()) {
            *out = inv_prob(softmax, logit.to_f64());
        }
    }

    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        let softmax = Softmax::of(row);
        // 1 − p rounds by less than 2e-16, so a label in the set has p of at least this.
        let floor = 1.0 - threshold - 4e-16;
        shortlist(row.logits(), row.max(), softmax.distance_of(floor), out);
        let mut kept = start;
        for place in start..out.len() {
            if inv_prob(softmax, row.logit(out[place])) <= threshold {
                out[kept] = out[place];
                kept += 1;
            }
        }
        out.truncate(kept);
        sort_best_first(row, &mut out[start..]);
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        let start = labels.len();
        self.set_into(row, threshold, labels);
        let softmax = Softmax::of(row);
        scores.extend(labels[start..].iter().map(|label| inv_prob(softmax, row.logit(*label))));
    }
}
