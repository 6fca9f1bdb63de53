//! `Logits` and `Row`: a borrowed matrix of any float width, and one of its rows, checked.
//!
//! Making a [`Row`] reads it once: that pass looks for NaN and +∞ and finds the maximum, which every score
//! needs anyway, so checking costs no pass of its own.

use crate::kernel::{self, Fault};
use crate::weights::check_weights;
use crate::{Error, Result};

/// A float type that logits may have: `f32`, `f64` and, with the feature `half`, `f16` and `bf16`.
///
/// Arithmetic is in `f64` whatever comes in; widening is exact, so a row gives the same result in any type
/// that holds its values.
///
/// ```
/// fn width<T: conformax::Logit>(logits: &[T]) -> usize {
///     std::mem::size_of_val(&logits[0])
/// }
/// assert_eq!(width(&[1.0_f32]), 4);
/// ```
pub trait Logit: kernel::Element {}

impl Logit for f32 {}
impl Logit for f64 {}
#[cfg(feature = "half")]
impl Logit for half::f16 {}
#[cfg(feature = "half")]
impl Logit for half::bf16 {}

/// Rows of logits, borrowed, row after row.
///
/// ```
/// use conformax::Logits;
/// let data = [2.0_f32, 0.0, 1.0, 0.5, 0.25, 4.0];
/// let logits = Logits::new(&data, 3)?;
/// assert_eq!((logits.len(), logits.classes()), (2, 3));
/// assert!(Logits::new(&data, 4).is_err());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Logits<'a, T> {
    data: &'a [T],
    classes: usize,
    u: Option<&'a [f64]>,
    groups: Option<&'a [u32]>,
    weights: Option<&'a [f64]>,
}

impl<'a, T: Logit> Logits<'a, T> {
    /// Checks the shape; the values are checked by the operation that first reads them.
    pub fn new(data: &'a [T], classes: usize) -> Result<Self> {
        if classes == 0 || u32::try_from(classes).is_err() {
            return Err(Error::Classes(classes));
        }
        if !data.len().is_multiple_of(classes) {
            return Err(Error::Shape { len: data.len(), classes });
        }
        Ok(Self { data, classes, u: None, groups: None, weights: None })
    }

    /// The same rows with the caller's own uniform draws, one per row in [0, 1), for randomised scores.
    ///
    /// Without this a randomised score draws from its seed and the row's own logits.
    pub fn with_u(self, u: &'a [f64]) -> Result<Self> {
        if u.len() != self.len() {
            return Err(Error::Rows { what: "uniform draws", wanted: self.len(), got: u.len() });
        }
        if let Some(row) = u.iter().position(|u| !(0.0..1.0).contains(u)) {
            return Err(Error::Draw { row: row as u64, value: u[row] });
        }
        Ok(Self { u: Some(u), ..self })
    }

    /// The rows with the group of each, for thresholds by group: a region, a device, a language, by number.
    pub fn with_groups(self, groups: &'a [u32]) -> Result<Self> {
        if groups.len() != self.len() {
            return Err(Error::Rows { what: "groups", wanted: self.len(), got: groups.len() });
        }
        Ok(Self { groups: Some(groups), ..self })
    }

    /// The rows with the weight of each, where thresholds go by it: how much likelier such a row is among the rows to
    /// come than among those that calibrate, up to a factor.
    pub fn with_weights(self, weights: &'a [f64]) -> Result<Self> {
        if weights.len() != self.len() {
            return Err(Error::Rows { what: "weights", wanted: self.len(), got: weights.len() });
        }
        check_weights(weights)?;
        Ok(Self { weights: Some(weights), ..self })
    }

    /// The rows with their true labels, each a class.
    pub fn labelled(self, labels: &'a [u32]) -> Result<Labelled<'a, T>> {
        Labelled::new(self, labels)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.len() / self.classes
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of classes, the length of a row.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All logits, row after row.
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }

    /// Row `index`, checked. Panics where there is no such row, as a slice does.
    pub fn row(&self, index: usize) -> Result<Row<'a, T>> {
        let logits = &self.data[index * self.classes..][..self.classes];
        let row = Row::new(logits).map_err(|error| error.offset_rows(index as u64))?;
        Ok(self.beside(index, row.logits, row.max))
    }

    /// The rows of `range` as a matrix of their own. Panics where the range is not inside, as a slice does.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Self {
        let data = &self.data[range.start * self.classes..range.end * self.classes];
        Self {
            data,
            classes: self.classes,
            u: self.u.map(|u| &u[range.clone()]),
            groups: self.groups.map(|groups| &groups[range.clone()]),
            weights: self.weights.map(|weights| &weights[range]),
        }
    }

    /// The group of a row, where rows come in groups.
    pub(crate) fn group(&self, index: usize) -> Option<u32> {
        self.groups.map(|groups| groups[index])
    }

    /// A row whose logits have been looked at, with what comes with it.
    #[inline]
    pub(crate) fn beside(&self, index: usize, logits: &'a [T], max: f64) -> Row<'a, T> {
        let (u, group) = (self.u.map(|u| u[index]), self.group(index));
        Row { logits, max, u, group, weight: self.weights.map(|weights| weights[index]) }
    }

    /// The weight of each row.
    pub(crate) fn weights(&self) -> Result<&'a [f64]> {
        self.weights.ok_or(Error::Missing { what: "weights" })
    }

    /// The group of each row, each below `count`.
    pub(crate) fn groups_below(&self, count: usize) -> Result<&'a [u32]> {
        groups_below(self.groups, count)
    }
}

/// The group of each row, each below `count`.
pub(crate) fn groups_below(groups: Option<&[u32]>, count: usize) -> Result<&[u32]> {
    let groups = groups.ok_or(Error::Missing { what: "groups" })?;
    match groups.iter().position(|group| *group as usize >= count) {
        Some(row) => Err(Error::Group { row: row as u64, group: groups[row], groups: count }),
        None => Ok(groups),
    }
}

/// Rows with their true labels: what calibration, tuning and evaluation take.
///
/// ```
/// use conformax::{Error, Logits};
/// let logits = Logits::new(&[1.0_f32, 2.0, 3.0, 4.0], 2)?;
/// assert_eq!(logits.labelled(&[0, 1])?.labels(), [0, 1]);
/// assert_eq!(logits.labelled(&[0, 2]).unwrap_err(), Error::Label { row: 1, label: 2, classes: 2 });
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a, T> {
    logits: Logits<'a, T>,
    labels: &'a [u32],
}

impl<'a, T: Logit> Labelled<'a, T> {
    fn new(logits: Logits<'a, T>, labels: &'a [u32]) -> Result<Self> {
        if labels.len() != logits.len() {
            return Err(Error::Rows { what: "labels", wanted: logits.len(), got: labels.len() });
        }
        let classes = logits.classes();
        match labels.iter().position(|label| *label as usize >= classes) {
            Some(row) => Err(Error::Label { row: row as u64, label: labels[row], classes }),
            None => Ok(Self { logits, labels }),
        }
    }

    /// The rows.
    pub fn logits(&self) -> Logits<'a, T> {
        self.logits
    }

    /// The true label of each.
    pub fn labels(&self) -> &'a [u32] {
        self.labels
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The rows before this one.
    pub(crate) fn before(&self, row: usize) -> Self {
        Self { logits: self.logits.rows(0..row), labels: &self.labels[..row] }
    }
}

#[cfg(feature = "ndarray")]
impl<'a, T: Logit> TryFrom<ndarray::ArrayView2<'a, T>> for Logits<'a, T> {
    type Error = Error;

    /// Only a view whose rows lie one after another in memory can be borrowed; `as_standard_layout` copies any other.
    fn try_from(view: ndarray::ArrayView2<'a, T>) -> Result<Self> {
        let classes = view.ncols();
        Self::new(view.to_slice().ok_or(Error::Layout)?, classes)
    }
}

/// One row of logits without NaN or +∞ and with at least one finite entry.
///
/// ```
/// use conformax::Row;
/// let row = Row::new(&[1.0_f32, 3.0, f32::NEG_INFINITY])?;
/// assert_eq!(row.max(), 3.0);
/// assert!(Row::new(&[f32::INFINITY]).is_err());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Row<'a, T> {
    logits: &'a [T],
    max: f64,
    u: Option<f64>,
    group: Option<u32>,
    weight: Option<f64>,
}

impl<'a, T: Logit> Row<'a, T> {
    /// Checks every logit and finds the largest, in one pass.
    pub fn new(logits: &'a [T]) -> Result<Self> {
        if logits.is_empty() || u32::try_from(logits.len()).is_err() {
            return Err(Error::Classes(logits.len()));
        }
        let max = kernel::row_max(logits).map_err(|fault| fault_in_row(fault, 0))?;
        Ok(Self { logits, max, u: None, group: None, weight: None })
    }

    /// The same row with the caller's own uniform draw in [0, 1).
    pub fn with_u(self, u: f64) -> Result<Self> {
        if (0.0..1.0).contains(&u) {
            Ok(Self { u: Some(u), ..self })
        } else {
            Err(Error::Draw { row: 0, value: u })
        }
    }

    /// The logits as they came.
    pub fn logits(&self) -> &'a [T] {
        self.logits
    }

    /// The largest logit, always finite.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.logits.len()
    }

    /// The row's group, where rows come in groups.
    pub fn group(&self) -> Option<u32> {
        self.group
    }

    /// The row's weight, where rows have one.
    pub fn weight(&self) -> Option<f64> {
        self.weight
    }

    /// The caller's uniform draw, where one was given.
    pub fn u(&self) -> Option<f64> {
        self.u
    }

    /// The logit of `label` in `f64`; −∞ for a label that is not a class.
    #[inline]
    pub fn logit(&self, label: u32) -> f64 {
        self.logits.get(label as usize).map_or(f64::NEG_INFINITY, |logit| logit.to_f64())
    }
}

/// Says of a kernel's fault which row it is in.
pub(crate) fn fault_in_row(fault: Fault, row: u64) -> Error {
    match fault {
        Fault::NotFinite { class, value } => Error::Logit { row, class, value },
        Fault::AllMasked => Error::AllMasked { row },
    }
}
