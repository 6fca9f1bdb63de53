//! Rows into an accumulator that Python holds: all of a call's rows, or none where one is at fault.

use std::sync::{Mutex, PoisonError};

use conformax::{Labelled, Logit, ScoreSpec};
use conformax_io::Calibrating;
use numpy::{PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::score::{OwnedBeside, one_per_row};
use crate::work::{Rows, run};

/// What an accumulator of the core can do.
pub trait Accumulates: Send + Sized {
    fn emptied(&self) -> conformax::Result<Self>;
    fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> conformax::Result<()>;
    fn merge(&mut self, other: Self) -> conformax::Result<()>;
    fn n(&self) -> u64;
    /// The row that an error of an emptied one counts from.
    fn first_row(&self) -> u64;
}

impl Accumulates for Calibrating {
    fn emptied(&self) -> conformax::Result<Self> {
        Ok(self.emptied())
    }

    fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> conformax::Result<()> {
        self.extend(rows)
    }

    fn merge(&mut self, other: Self) -> conformax::Result<()> {
        self.merge(other)
    }

    fn n(&self) -> u64 {
        self.n()
    }

    fn first_row(&self) -> u64 {
        0
    }
}

impl Accumulates for conformax::Evaluator<ScoreSpec> {
    fn emptied(&self) -> conformax::Result<Self> {
        self.emptied()
    }

    fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> conformax::Result<()> {
        self.extend(rows)
    }

    fn merge(&mut self, other: Self) -> conformax::Result<()> {
        self.merge(other)
    }

    fn n(&self) -> u64 {
        self.n()
    }

    fn first_row(&self) -> u64 {
        self.n()
    }
}

/// Labelled rows with what comes beside them.
pub struct Given<'a, 'py> {
    pub logits: &'a Bound<'py, PyUntypedArray>,
    pub labels: PyReadonlyArray1<'py, u32>,
    pub u: Option<PyReadonlyArray1<'py, f64>>,
    pub groups: Option<PyReadonlyArray1<'py, u32>>,
    pub weights: Option<PyReadonlyArray1<'py, f64>>,
}

/// Takes in rows; an error names the row in the whole and leaves everything as it was.
pub fn extend<A: Accumulates>(
    py: Python<'_>,
    inner: &Mutex<A>,
    given: Given<'_, '_>,
    n_threads: Option<usize>,
) -> PyResult<()> {
    let Given { logits, labels, u, groups, weights } = given;
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let beside = OwnedBeside::of(&view, u, groups, weights)?;
    let (mut more, before, counted_from) = {
        let whole = inner.lock().unwrap_or_else(PoisonError::into_inner);
        (whole.emptied().map_err(value_error)?, whole.n(), whole.first_row())
    };
    let more = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, beside: beside.borrow(), first_row: before as usize };
        rows.each(stop, |first, logits| {
            let labelled = logits.labelled(&labels[first..first + logits.len()]);
            let labelled = labelled.map_err(|error| error.offset_rows(before + first as u64))?;
            more.extend(labelled).map_err(|error| error.offset_rows(before - counted_from))
        })?;
        Ok(more)
    }))?;
    inner.lock().unwrap_or_else(PoisonError::into_inner).merge(more).map_err(value_error)
}
