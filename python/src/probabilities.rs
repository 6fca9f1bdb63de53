//! Probabilities of the labels of a set, and logits from the probabilities of others.

use conformax::{Logits, Predictor, ScoreSpec, Thresholds, log_probability};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::value_error;
use crate::floats::by_default;
use crate::score::Score;

/// The logits of the labels of sets, as `predict` gives them.
#[derive(FromPyObject)]
pub enum Held<'py> {
    Single(PyReadonlyArray1<'py, f32>),
    Double(PyReadonlyArray1<'py, f64>),
}

impl Held<'_> {
    fn to_vec(&self) -> Vec<f64> {
        match self {
            Self::Single(logits) => logits.as_array().iter().copied().map(f64::from).collect(),
            Self::Double(logits) => logits.as_array().to_vec(),
        }
    }
}

/// The probabilities of the labels of packed sets, from the logits of these labels alone: they are best first, so that
/// the top of the row is among them, and what lies outside a set has no part in its probabilities.
#[pyfunction]
pub fn set_probabilities<'py>(
    py: Python<'py>,
    score: &Score,
    threshold: f64,
    offsets: PyReadonlyArray1<'py, i64>,
    logits: Held<'py>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let predictor = Predictor::new(score.spec, Thresholds::One(threshold));
    within_sets(py, &predictor, offsets, logits, None, None)
}

/// The same of any predictor; the group or weight of each row comes along where thresholds go by it.
pub fn within_sets<'py>(
    py: Python<'py>,
    predictor: &Predictor<ScoreSpec>,
    offsets: PyReadonlyArray1<'py, i64>,
    logits: Held<'py>,
    groups: Option<Vec<u32>>,
    weights: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let logits = logits.to_vec();
    let offsets: Vec<usize> = offsets.as_array().iter().map(|place| *place as usize).collect();
    let found = py.detach(|| {
        by_default(|| {
            let mut out = Vec::with_capacity(logits.len());
            for (row, ends) in offsets.windows(2).enumerate() {
                let Some(set) = logits.get(ends[0]..ends[1]) else {
                    return Err(PyValueError::new_err("offsets must rise from 0 to the number of labels"));
                };
                if set.is_empty() {
                    continue;
                }
                let p = Logits::new(set, set.len()).and_then(|logits| {
                    let logits = match groups.as_ref().and_then(|groups| groups.get(row..=row)) {
                        Some(group) => logits.with_groups(group)?,
                        None => logits,
                    };
                    let logits = match weights.as_ref().and_then(|weights| weights.get(row..=row)) {
                        Some(weight) => logits.with_weights(weight)?,
                        None => logits,
                    };
                    predictor.probabilities_within(logits)
                });
                out.extend(p.map_err(|error| value_error(error.offset_rows(row as u64)))?);
            }
            Ok(out)
        })
    })?;
    Ok(PyArray1::from_vec(py, found))
}

/// Natural logarithms with the same bits on every system.
#[pyfunction]
pub fn logarithms<'py>(py: Python<'py>, numbers: PyReadonlyArray1<'py, f64>) -> Bound<'py, PyArray1<f64>> {
    let logarithms = || numbers.as_array().iter().map(|number| log_probability(*number)).collect();
    PyArray1::from_vec(py, by_default(logarithms))
}
