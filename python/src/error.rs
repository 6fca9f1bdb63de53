//! The core's errors as Python's: one message, one exception.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Why a piece of work has no result.
pub enum Fault {
    /// The core refused; the message says what and where.
    Core(conformax::Error),
    /// A signal arrived and the rest was skipped. Whoever saw the signal has its exception.
    Stopped,
}

impl From<conformax::Error> for Fault {
    fn from(error: conformax::Error) -> Self {
        Self::Core(error)
    }
}

/// `ValueError` with the library's message, and the row at fault in its attribute `row` where there is one.
pub fn value_error(error: conformax::Error) -> PyErr {
    let raised = PyValueError::new_err(error.to_string());
    if let Some(row) = error.row() {
        // Whoever wants the number has it in the message as well.
        let _ = Python::attach(|py| raised.value(py).setattr("row", row));
    }
    raised
}
