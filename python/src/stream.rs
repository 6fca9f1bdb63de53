//! Levels that adapt and the alarm, for labelled rows that come one by one.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use conformax::{Feedback, Logits, ScoreSpec, StreamOptions};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calibration::Calibration;

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

    /// As bytes.
    fn to_bytes(&self) -> Cow<'static, [u8]> {
        self.with(|level| level.to_bytes()).into()
    }

    /// From the bytes that `to_bytes` made.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        conformax::AdaptiveLevel::from_bytes(bytes).map(|level| Self(Mutex::new(level))).map_err(value_error)
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

    /// As bytes.
    fn to_bytes(&self) -> Cow<'static, [u8]> {
        self.with(|alarm| alarm.to_bytes()).into()
    }

    /// From the bytes that `to_bytes` made.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        conformax::Alarm::from_bytes(bytes).map(|alarm| Self(Mutex::new(alarm))).map_err(value_error)
    }
}

/// Sets now, labels later or never.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Stream(Mutex<conformax::Stream<ScoreSpec>>);

impl Stream {
    fn with<R>(&self, work: impl FnOnce(&mut conformax::Stream<ScoreSpec>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Offsets and labels, and the level they were made at.
type Sets<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, f64);

/// What became of a label: "counted", "repeated" or "unknown"; whether it was in its set, its p-value, and whether the
/// alarm rose with it.
type Told = (&'static str, Option<bool>, Option<f64>, bool);

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (calibration, alpha, step, decay, window, delta, seed))]
    fn new(
        calibration: &Calibration,
        alpha: Option<&str>,
        step: f64,
        decay: Option<f64>,
        window: Option<u64>,
        delta: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let alpha = alpha.map(alpha_of).transpose()?;
        let options = StreamOptions { step, decay, window, delta: alpha_of(delta)?, seed };
        let stream = calibration.model.stream(alpha, options);
        let stream = stream.map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok(Self(Mutex::new(stream)))
    }

    /// The sets of rows, which then wait for their labels under these names or under their numbers.
    #[pyo3(signature = (logits, names=None, groups=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f64>,
        names: Option<Vec<String>>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
    ) -> PyResult<Sets<'py>> {
        let array = logits.as_array();
        let (classes, flat) = (array.ncols(), array.iter().copied().collect::<Vec<f64>>());
        let groups = groups.map(|groups| groups.as_array().to_vec());
        let predicted = py.detach(|| {
            let rows = Logits::new(&flat, classes)?;
            let rows = match &groups {
                Some(groups) => rows.with_groups(groups)?,
                None => rows,
            };
            self.with(|stream| {
                // Numbered in the same breath as they are taken in: others may predict at the same time.
                let numbers = stream.status().predicted..;
                let names = names
                    .unwrap_or_else(|| numbers.take(rows.len()).map(|number| number.to_string()).collect());
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Ok((stream.level(), stream.predict(rows, &names)?))
            })
        });
        let (level, sets) = predicted.map_err(value_error)?;
        let (_, offsets, labels) = sets.into_parts();
        let offsets = offsets.into_iter().map(|offset| offset as i64).collect();
        Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, labels), level))
    }

    /// Takes in the label of a row.
    fn update(&self, name: &str, label: u32) -> PyResult<Told> {
        let told = self.with(|stream| stream.update(name, label)).map_err(value_error)?;
        Ok(match told {
            Feedback::Counted { covered, p_value, rose } => ("counted", Some(covered), Some(p_value), rose),
            Feedback::Repeated => ("repeated", None, None, false),
            Feedback::Unknown => ("unknown", None, None, false),
        })
    }

    /// Where it stands, by the names that the service uses.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (status, bound) = self.with(|stream| (stream.status(), stream.bound()));
        let found = PyDict::new(py);
        found.set_item("alpha", status.alpha)?;
        found.set_item("level", status.level)?;
        found.set_item("bound", bound)?;
        found.set_item("predicted", status.predicted)?;
        found.set_item("labelled", status.labelled)?;
        found.set_item("covered", status.covered)?;
        found.set_item("waiting", status.waiting)?;
        found.set_item("forgotten", status.forgotten)?;
        found.set_item("recent_labelled", status.recent_labelled)?;
        found.set_item("recent_coverage", status.recent_coverage)?;
        found.set_item("recent_predicted", status.recent_predicted)?;
        found.set_item("recent_size", status.recent_size)?;
        found.set_item("log_capital", status.log_capital)?;
        found.set_item("highest_log_capital", status.highest_log_capital)?;
        found.set_item("alarm", status.alarm)?;
        found.set_item("raised_at", status.raised_at)?;
        Ok(found)
    }

    /// How it went: labels, coverage, size, level and the logarithm of the capital at each point.
    fn trace(&self) -> Vec<(u64, f64, f64, f64, f64)> {
        self.with(|stream| {
            let point =
                |at: &conformax::TracePoint| (at.labelled, at.coverage, at.size, at.level, at.log_capital);
            stream.trace().iter().map(point).collect()
        })
    }

    /// As bytes.
    fn to_bytes(&self) -> Cow<'static, [u8]> {
        self.with(|stream| stream.to_bytes()).into()
    }

    /// From the bytes that `to_bytes` made.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        conformax::Stream::from_bytes(bytes).map(|stream| Self(Mutex::new(stream))).map_err(value_error)
    }
}
