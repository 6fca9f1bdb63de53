//! The InvProb score, also called LAC or THR: `s(z, y) = 1 − softmax(z)_y`.
//!
//! A probability below 2⁻⁵⁴ scores exactly 1; those ties are part of the definition.

use super::paths::{Paths, Seal};
use super::softmax::Softmax;
use super::{Score, sort_best_first};
use crate::kernel::{SINGLE_ERROR, exp_sum_in_single, math, shortlist};
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

/// Probabilities at which the roundings of `1 − p` and of the definition's sum are far below the error of a sum in
/// single precision.
const ESTIMATES_ARE_SAFE: std::ops::Range<f64> = 1e-6..1.0;

/// Leaves those labels from `start` on in `out` whose score says so.
fn keep_by_score<T: Logit>(row: Row<'_, T>, threshold: f64, start: usize, out: &mut Vec<u32>) {
    let softmax = Softmax::of(row);
    let mut kept = start;
    for place in start..out.len() {
        if inv_prob(softmax, row.logit(out[place])) <= threshold {
            out[kept] = out[place];
            kept += 1;
        }
    }
    out.truncate(kept);
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
        let floor = 1.0 - threshold;
        if ESTIMATES_ARE_SAFE.contains(&floor) {
            // p = e^(z − max)/Σ reaches the floor down to this distance from the maximum; a relative error of the sum
            // is an absolute one here.
            let reach = -math::ln(floor * exp_sum_in_single(row.logits(), row.max()));
            shortlist(row.logits(), row.max(), reach + 2.0 * SINGLE_ERROR, out);
            let certain = reach - 2.0 * SINGLE_ERROR;
            if out[start..].iter().any(|label| row.max() - row.logit(*label) > certain) {
                keep_by_score(row, threshold, start, out);
            }
        } else {
            // 1 − p rounds by less than 2e-16, so a label in the set has p of at least this.
            shortlist(row.logits(), row.max(), Softmax::of(row).distance_of(floor - 4e-16), out);
            keep_by_score(row, threshold, start, out);
        }
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
