//! Levels that adapt and the alarm, for labelled rows that come one by one.

use std::sync::{Mutex, PoisonError};

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::value_error;
use crate::law::alpha_of;

/// A level that adapts.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct AdaptiveLevel(Mutex<conformax::AdaptiveLevel>);

impl AdaptiveLevel {
    fn with<R>(&self, work: impl FnOnce(&mut conformax::AdaptiveLevel) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl AdaptiveLevel {
    #[new]
    #[pyo3(signature = (alpha, step, decay=None))]
    fn new(alpha: &str, step: f64, decay: Option<f64>) -> PyResult<Self> {
        let level = conformax::AdaptiveLevel::new(alpha_of(alpha)?, step, decay).map_err(value_error)?;
        Ok(Self(Mutex::new(level)))
    }

    /// The level of the next row.
    #[getter]
    fn level(&self) -> f64 {
        self.with(|level| level.level())
    }

    /// Labelled rows so far.
    #[getter]
    fn rows(&self) -> u64 {
        self.with(|level| level.rows())
    }

    /// How many of them were missed.
    #[getter]
    fn misses(&self) -> u64 {
        self.with(|level| level.misses())
    }

    /// How far the share of misses may be from alpha, whatever came.
    #[getter]
    fn bound(&self) -> f64 {
        self.with(|level| level.bound())
    }

    /// Takes in the p-value of a true label; whether its set missed it.
    fn update(&self, p_value: f64) -> bool {
        self.with(|level| level.update(p_value))
    }
}

/// Capital that grows when scores stop being exchangeable.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Alarm(Mutex<conformax::Alarm>);

impl Alarm {
    fn with<R>(&self, work: impl FnOnce(&mut conformax::Alarm) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Alarm {
    #[new]
    fn new(scores: PyReadonlyArray1<'_, f64>, jump: f64, seed: u64) -> PyResult<Self> {
        let scores = scores.as_array().to_vec();
        conformax::Alarm::new(&scores, jump, seed).map(|alarm| Self(Mutex::new(alarm))).map_err(value_error)
    }

    /// Takes in the score of a true label; the capital.
    #[pyo3(signature = (score, u=None))]
    fn update(&self, score: f64, u: Option<f64>) -> PyResult<f64> {
        self.with(|alarm| alarm.update(score, u).map(|_| alarm.capital())).map_err(value_error)
    }

    /// The capital, which began at 1.
    #[getter]
    fn capital(&self) -> f64 {
        self.with(|alarm| alarm.capital())
    }

    /// The logarithm of the capital.
    #[getter]
    fn log_capital(&self) -> f64 {
        self.with(|alarm| alarm.log_capital())
    }

    /// The largest logarithm so far.
    #[getter]
    fn highest(&self) -> f64 {
        self.with(|alarm| alarm.highest())
    }

    /// Scores seen, those of calibration included.
    #[getter]
    fn rows(&self) -> u64 {
        self.with(|alarm| alarm.rows())
    }
}
