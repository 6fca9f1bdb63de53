//! The core's errors as Python's: one message, one exception.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

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

/// `ValueError` with the library's message.
pub fn value_error(error: conformax::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
