//! The margin score: `s(z, y) = max_{j≠y} p_j − p_y` with `p = softmax(z)`.

use super::paths::{Paths, Seal};
use super::softmax::Softmax;
use super::{Score, sort_best_first};
use crate::kernel::shortlist;
use crate::spec::{Listed, Parameters};
use crate::{Logit, Result, Row, ScoreSpec};

/// How far the best other label's probability is ahead; negative for a label alone on top.
///
/// ```
/// use conformax::{MarginScore, Row, Score};
/// let row = Row::new(&[0.0_f32, 0.0])?;
/// assert_eq!(MarginScore.score(row, 1), 0.0);
/// assert_eq!(MarginScore.score(Row::new(&[5.0_f32])?, 0), -1.0); // nobody else
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarginScore;

/// What a row's margins need beside its softmax: the logit of the best other label, seen from the top.
#[derive(Clone, Copy)]
struct Margins {
    softmax: Softmax,
    second: f64,
}

impl Margins {
    fn of<T: Logit>(row: Row<'_, T>) -> Self {
        let (mut tops, mut second) = (0u32, f64::NEG_INFINITY);
        for logit in row.logits() {
            let logit = logit.to_f64();
            if logit == row.max() {
                tops += 1;
            } else if logit > second {
                second = logit;
            }
        }
        Self { softmax: Softmax::of(row), second: if tops > 1 { row.max() } else { second } }
    }

    #[inline]
    fn at(self, logit: f64) -> f64 {
        if logit == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        let other = if logit == self.softmax.max { self.second } else { self.softmax.max };
        self.softmax.p(other) - self.softmax.p(logit)
    }
}

impl Score for MarginScore {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        Margins::of(row).at(row.logit(label))
    }

    fn known(&self, _: Seal) -> Option<ScoreSpec> {
        Some(ScoreSpec::Margin(*self))
    }
}

impl Listed for MarginScore {
    const NAMES: &'static [&'static str] = &["margin"];
    const RANGE: (f64, f64) = (-1.0, 1.0);

    fn named(_: &str, _: &Parameters) -> Result<Self> {
        Ok(Self)
    }
}

impl Paths for MarginScore {
    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        let margins = Margins::of(row);
        for (out, logit) in out.iter_mut().zip(row.logits()) {
            *out = margins.at(logit.to_f64());
        }
    }

    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        let margins = Margins::of(row);
        let floor = margins.softmax.p(row.max()) - threshold - 4e-16;
        // The top label is measured against the second, so it is looked at whatever the floor.
        let distance = margins.softmax.distance_of(floor).max(0.0);
        shortlist(row.logits(), row.max(), distance, out);
        let mut kept = start;
        for place in start..out.len() {
            if margins.at(row.logit(out[place])) <= threshold {
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
        let margins = Margins::of(row);
        scores.extend(labels[start..].iter().map(|label| margins.at(row.logit(*label))));
    }
}
