//! `Spans`: between which thresholds those of all splits lie, at each level.
//!
//! Splits differ little in their thresholds, so as a rule a row's sets have one size at the least and the largest of a
//! level: two questions then answer for all splits.

use std::borrow::Borrow;

use conformax::{RowSizes, SizeSpan};

use crate::splits::Thresholds;

/// The least and the largest threshold of each level.
pub(super) struct Spans(Vec<(f64, f64)>);

impl Spans {
    /// Over splits, each with a threshold per level; NaN is passed over.
    pub(super) fn of<S>(levels: usize, splits: impl Iterator<Item = S>) -> Self
    where
        S: IntoIterator<Item: Borrow<f64>>,
    {
        let mut spans = vec![(f64::INFINITY, f64::NEG_INFINITY); levels];
        for thresholds in splits {
            for (span, threshold) in spans.iter_mut().zip(thresholds) {
                *span = (span.0.min(*threshold.borrow()), span.1.max(*threshold.borrow()));
            }
        }
        Self(spans)
    }

    /// Of the thresholds and the scores of the ranks before them, from all rows for calibration.
    pub(super) fn around(levels: usize, splits: &[Thresholds]) -> Self {
        Self::of(levels, splits.iter().flat_map(|split| [&split.before, &split.calibration]))
    }

    /// By level, the sizes that a row's sets can have.
    pub(super) fn of_row(&self, sizes: &mut RowSizes<'_>) -> Vec<SizeSpan> {
        self.0.iter().map(|(low, high)| sizes.between(*low, *high)).collect()
    }
}
