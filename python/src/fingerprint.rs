//! Fingerprints of rows, by which a calibration file knows its own rows again.

use conformax_io::{Block, Values};
use half::{bf16, f16};
use numpy::{PyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::work::{Rows, run};

/// A fingerprint for each row.
#[pyfunction]
#[pyo3(signature = (logits, *, n_threads=None))]
pub fn row_fingerprints<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyUntypedArray>,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let found = with_view!(AnyView::of(logits)?, view => run(py, n_threads, |stop| {
        let rows = Rows { view, u: None, first_row: 0 };
        let blocks = rows.map(stop, |_, logits| Ok(fingerprints(logits.as_slice(), logits.classes())))?;
        Ok(blocks.concat())
    }))?;
    Ok(PyArray1::from_vec(py, found))
}

/// A float type in which a file's values may come.
pub trait Stored: Copy {
    fn values(logits: &[Self]) -> Values;
}

macro_rules! stored {
    ($type:ty, $variant:ident) => {
        impl Stored for $type {
            fn values(logits: &[Self]) -> Values {
                Values::$variant(logits.to_vec())
            }
        }
    };
}
stored!(f16, F16);
stored!(bf16, Bf16);
stored!(f32, F32);
stored!(f64, F64);

pub fn fingerprints<T: Stored>(logits: &[T], classes: usize) -> Vec<u64> {
    let block = Block { classes, logits: T::values(logits), ..Block::default() };
    let mut found = Vec::new();
    conformax_io::row_fingerprints(&block, &mut found);
    found
}
