//! `Logits` and `Row`: a borrowed matrix of any float width, and one of its rows, checked.
//!
//! Making a [`Row`] reads it once: that pass looks for NaN and +∞ and finds the maximum, which every score
//! needs anyway, so checking costs no pass of its own.

use crate::kernel::{self, Fault};
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
}

impl<'a, T: Logit> Logits<'a, T> {
    /// Checks the shape; the values are checked by the operation that first reads them.
    ///
    /// ```
    /// # use conformax::{Error, Logits};
    /// assert_eq!(Logits::<f32>::new(&[], 0).unwrap_err(), Error::Classes(0));
    /// ```
    pub fn new(data: &'a [T], classes: usize) -> Result<Self> {
        if classes == 0 || u32::try_from(classes).is_err() {
            return Err(Error::Classes(classes));
        }
        if !data.len().is_multiple_of(classes) {
            return Err(Error::Shape { len: data.len(), classes });
        }
        Ok(Self { data, classes, u: None })
    }

    /// The same rows with the caller's own uniform draws, one per row in [0, 1), for randomised scores.
    ///
    /// Without this a randomised score draws from its seed and the row's own logits.
    ///
    /// ```
    /// # use conformax::Logits;
    /// let logits = Logits::new(&[1.0_f32, 2.0, 3.0, 4.0], 2)?.with_u(&[0.25, 0.75])?;
    /// assert_eq!(logits.row(1)?.u(), Some(0.75));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn with_u(self, u: &'a [f64]) -> Result<Self> {
        if u.len() != self.len() {
            return Err(Error::Rows { what: "uniform draws", wanted: self.len(), got: u.len() });
        }
        if let Some(row) = u.iter().position(|u| !(0.0..1.0).contains(u)) {
            return Err(Error::Draw { row: row as u64, value: u[row] });
        }
        Ok(Self { u: Some(u), ..self })
    }

    /// Number of rows.
    ///
    /// ```
    /// # use conformax::Logits;
    /// assert_eq!(Logits::new(&[0.0_f64; 6], 2)?.len(), 3);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.data.len() / self.classes
    }

    /// Whether there is no row.
    ///
    /// ```
    /// # use conformax::Logits;
    /// assert!(Logits::<f32>::new(&[], 2)?.is_empty());
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of classes, the length of a row.
    ///
    /// ```
    /// # use conformax::Logits;
    /// assert_eq!(Logits::new(&[0.0_f64; 6], 2)?.classes(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All logits, row after row.
    ///
    /// ```
    /// # use conformax::Logits;
    /// assert_eq!(Logits::new(&[1.0_f64, 2.0], 2)?.as_slice(), [1.0, 2.0]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }

    /// Row `index`, checked. Panics where there is no such row, as a slice does.
    ///
    /// ```
    /// # use conformax::{Error, Logits};
    /// let logits = Logits::new(&[1.0_f32, f32::NAN], 2)?;
    /// assert!(matches!(logits.row(0), Err(Error::Logit { row: 0, class: 1, .. })));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn row(&self, index: usize) -> Result<Row<'a, T>> {
        let logits = &self.data[index * self.classes..][..self.classes];
        let row = Row::new(logits).map_err(|error| error.offset_rows(index as u64))?;
        Ok(Row { u: self.u.map(|u| u[index]), ..row })
    }

    /// The rows of `range` as a matrix of their own. Panics where the range is not inside, as a slice does.
    ///
    /// ```
    /// # use conformax::Logits;
    /// let logits = Logits::new(&[1.0_f64, 2.0, 3.0], 1)?;
    /// assert_eq!(logits.rows(1..3).as_slice(), [2.0, 3.0]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn rows(&self, range: std::ops::Range<usize>) -> Self {
        let data = &self.data[range.start * self.classes..range.end * self.classes];
        Self { data, classes: self.classes, u: self.u.map(|u| &u[range]) }
    }

    pub(crate) fn u(&self) -> Option<&'a [f64]> {
        self.u
    }
}

#[cfg(feature = "ndarray")]
impl<'a, T: Logit> TryFrom<ndarray::ArrayView2<'a, T>> for Logits<'a, T> {
    type Error = Error;

    /// Borrows a view in standard layout; another layout is a [`Error::Shape`]: copy it with `as_standard_layout`.
    fn try_from(view: ndarray::ArrayView2<'a, T>) -> Result<Self> {
        let (rows, classes) = view.dim();
        let data = view.to_slice().ok_or(Error::Shape { len: rows * classes, classes })?;
        Self::new(data, classes)
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
}

impl<'a, T: Logit> Row<'a, T> {
    /// Checks every logit and finds the largest, in one pass.
    ///
    /// ```
    /// # use conformax::{Error, Row};
    /// assert_eq!(Row::new(&[f64::NEG_INFINITY]).unwrap_err(), Error::AllMasked { row: 0 });
    /// assert_eq!(Row::<f64>::new(&[]).unwrap_err(), Error::Classes(0));
    /// ```
    pub fn new(logits: &'a [T]) -> Result<Self> {
        if logits.is_empty() || u32::try_from(logits.len()).is_err() {
            return Err(Error::Classes(logits.len()));
        }
        let max = kernel::row_max(logits).map_err(|fault| fault_in_row(fault, 0))?;
        Ok(Self::trusted(logits, max, None))
    }

    /// A row that a kernel has checked already.
    pub(crate) fn trusted(logits: &'a [T], max: f64, u: Option<f64>) -> Self {
        Self { logits, max, u }
    }

    /// The same row with the caller's own uniform draw in [0, 1).
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32])?.with_u(0.5)?.u(), Some(0.5));
    /// assert!(Row::new(&[1.0_f32])?.with_u(1.0).is_err());
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn with_u(self, u: f64) -> Result<Self> {
        if (0.0..1.0).contains(&u) {
            Ok(Self { u: Some(u), ..self })
        } else {
            Err(Error::Draw { row: 0, value: u })
        }
    }

    /// The logits as they came.
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32, 2.0])?.logits(), [1.0, 2.0]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn logits(&self) -> &'a [T] {
        self.logits
    }

    /// The largest logit, always finite.
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32, 2.0])?.max(), 2.0);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Number of classes.
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32, 2.0])?.classes(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.logits.len()
    }

    /// The caller's uniform draw, where one was given.
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32, 2.0])?.u(), None);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn u(&self) -> Option<f64> {
        self.u
    }

    /// The logit of `label` in `f64`; −∞ for a label that is not a class.
    ///
    /// ```
    /// # use conformax::Row;
    /// assert_eq!(Row::new(&[1.0_f32, 2.0])?.logit(1), 2.0);
    /// # Ok::<(), conformax::Error>(())
    /// ```
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
