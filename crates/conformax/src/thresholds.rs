//! `Thresholds`: which threshold applies to a label in a row.
//!
//! A rule answers two questions: the threshold of a label in a row, and the largest of the row. What can answer those
//! gets every path and every output: labels are found up to the largest, and those beyond their own are left out.

use crate::kernel::limit_of;
use crate::{CoverageLaw, Level, Logit, Logits, Result, Row, WeightRule};

/// Largest scores that are in a set: one for all, or by label, by group or by weight. +∞ takes every label.
///
/// ```
/// use conformax::{EntmaxScore, Logits, Predictor, Thresholds};
/// let by_label = Predictor::new(EntmaxScore::default(), Thresholds::PerLabel(vec![0.0, 2.0, 1.0]));
/// let sets = by_label.predict(Logits::new(&[3.0_f32, 2.0, 1.5], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[0, 1][..])); // label 2 is 1.5 behind, within the threshold of 1 alone
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Thresholds {
    /// One number.
    One(f64),
    /// One per label.
    PerLabel(Vec<f64>),
    /// One per group of rows.
    PerGroup(Vec<f64>),
    /// By the weight of the row.
    ByWeight(WeightRule),
}

impl Thresholds {
    /// Whether every set is full, whatever the row.
    pub fn are_infinite(&self) -> bool {
        match self {
            // The lightest row has the lowest.
            Self::ByWeight(rule) => rule.threshold(0.0) == f64::INFINITY,
            _ => self.as_slice().iter().all(|threshold| *threshold == f64::INFINITY),
        }
    }

    /// The numbers: one, or one per label or group. By weight there are as many as weights, and none here.
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::One(threshold) => std::slice::from_ref(threshold),
            Self::PerLabel(thresholds) | Self::PerGroup(thresholds) => thresholds,
            Self::ByWeight(_) => &[],
        }
    }

    /// The law of coverage at a level with these thresholds: sets that are full cover every row, whether they are so
    /// for want of rows or because true labels were impossible.
    pub fn law(&self, level: Level) -> CoverageLaw {
        if self.are_infinite() { CoverageLaw::certain(level.n()) } else { level.law() }
    }

    /// The error of rows that these thresholds do not fit.
    pub(crate) fn expect<T: Logit>(&self, logits: Logits<'_, T>) -> Result<()> {
        match self {
            Self::One(_) => Ok(()),
            Self::PerLabel(thresholds) if thresholds.len() != logits.classes() => {
                Err(crate::Error::ClassCount { wanted: thresholds.len(), got: logits.classes() })
            }
            Self::PerLabel(_) => Ok(()),
            Self::PerGroup(thresholds) => logits.groups_below(thresholds.len()).map(|_| ()),
            Self::ByWeight(_) => logits.weights().map(|_| ()),
        }
    }

    /// What applies in a row, which [`expect`](Self::expect) has seen.
    #[inline]
    pub(crate) fn of_row<T: Logit>(&self, row: Row<'_, T>) -> RowThresholds<'_> {
        match self {
            Self::One(threshold) => RowThresholds::One(*threshold),
            Self::PerLabel(thresholds) => RowThresholds::PerLabel(thresholds),
            Self::PerGroup(thresholds) => {
                RowThresholds::One(thresholds[row.group().unwrap_or_default() as usize])
            }
            Self::ByWeight(rule) => RowThresholds::One(rule.threshold(row.weight().unwrap_or_default())),
        }
    }
}

/// What the thresholds of labels say before any row is seen: read by every row, and worked out once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelBounds {
    /// Finite thresholds in single precision, rounded up; below 0 where no score is within, or every one.
    limits: Vec<f32>,
    /// The largest finite one.
    largest: f64,
    /// Labels that are in every set.
    infinite: Vec<u32>,
}

impl LabelBounds {
    pub(crate) fn of(thresholds: &Thresholds) -> Self {
        let Thresholds::PerLabel(thresholds) = thresholds else { return Self::default() };
        let is_infinite = |threshold: &f64| *threshold == f64::INFINITY;
        let limit = |threshold: &f64| if is_infinite(threshold) { -1.0 } else { limit_of(*threshold) };
        let finite = thresholds.iter().copied().filter(|threshold| !is_infinite(threshold));
        Self {
            limits: thresholds.iter().map(limit).collect(),
            largest: finite.fold(f64::NEG_INFINITY, f64::max),
            infinite: (0..).zip(thresholds).filter(|(_, q)| is_infinite(q)).map(|(label, _)| label).collect(),
        }
    }

    /// Whether no label is in every set.
    pub(crate) fn are_finite(&self) -> bool {
        self.infinite.is_empty()
    }
}

/// The thresholds of labels, with what is known of them.
#[derive(Clone, Copy)]
pub(crate) struct ByLabel<'a> {
    pub thresholds: &'a [f64],
    /// As of [`LabelBounds`].
    pub limits: &'a [f32],
    pub largest: f64,
    pub infinite: &'a [u32],
}

impl<'a> ByLabel<'a> {
    pub(crate) fn new(thresholds: &'a [f64], bounds: &'a LabelBounds) -> Self {
        Self { thresholds, limits: &bounds.limits, largest: bounds.largest, infinite: &bounds.infinite }
    }
}

/// The thresholds of one row.
#[derive(Clone, Copy)]
pub(crate) enum RowThresholds<'a> {
    One(f64),
    PerLabel(&'a [f64]),
}

impl RowThresholds<'_> {
    /// That of a label.
    #[inline]
    pub(crate) fn of(self, label: u32) -> f64 {
        match self {
            Self::One(threshold) => threshold,
            Self::PerLabel(thresholds) => thresholds[label as usize],
        }
    }
}
