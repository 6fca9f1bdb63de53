//! Exact levels: ranks, the law of realised coverage, and seeded splits.

use conformax::{Alpha, CoverageLaw, LabelShift, Level, Logits, TuningSplit};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::value_error;

/// Indices of rows.
type Indices<'py> = Bound<'py, PyArray1<i64>>;

/// A level from its decimal text.
pub fn alpha_of(text: &str) -> PyResult<Alpha> {
    text.parse().map_err(value_error)
}

/// Levels from their decimal texts.
pub fn alphas_of(texts: &[String]) -> PyResult<Vec<Alpha>> {
    texts.iter().map(|text| alpha_of(text)).collect()
}

/// `⌈(n + 1)(1 − alpha)⌉`, or None where that exceeds n.
#[pyfunction]
pub fn conformal_rank(n: u64, alpha: &str) -> PyResult<Option<u64>> {
    Ok(conformax::conformal_rank(n, alpha_of(alpha)?))
}

/// The smallest rank at which coverage is at least 1 − alpha with probability 1 − delta over calibration rows.
#[pyfunction]
pub fn pac_rank(n: u64, alpha: &str, delta: f64) -> PyResult<Option<u64>> {
    conformax::pac_rank(n, alpha_of(alpha)?, delta).map_err(value_error)
}

/// How much likelier each label is among the target rows than among the labelled ones.
#[pyfunction]
pub fn label_weights<'py>(
    py: Python<'py>,
    logits: PyReadonlyArray2<'py, f64>,
    labels: PyReadonlyArray1<'py, u32>,
    target: PyReadonlyArray2<'py, f64>,
    method: &str,
) -> PyResult<Vec<f64>> {
    let method = match method {
        "em" => LabelShift::Em,
        "bbse" => LabelShift::Bbse,
        _ => return Err(PyValueError::new_err(format!("method must be \"em\" or \"bbse\", got {method:?}"))),
    };
    let rows = |array: &PyReadonlyArray2<'py, f64>| array.as_array().iter().copied().collect::<Vec<f64>>();
    let (source, goal, labels) = (rows(&logits), rows(&target), labels.as_array().to_vec());
    let (classes, of_target) = (logits.as_array().ncols(), target.as_array().ncols());
    py.detach(|| {
        let source = Logits::new(&source, classes)?.labelled(&labels)?;
        conformax::label_weights(source, Logits::new(&goal, of_target)?, method)
    })
    .map_err(value_error)
}

/// What so many rows promise at a level: on average over calibration rows, or with probability 1 − delta over them.
fn level_of(n: u64, alpha: &str, delta: Option<&str>) -> PyResult<Level> {
    let level = Level::new(n, alpha_of(alpha)?);
    Ok(match delta {
        Some(delta) => level.with_delta(alpha_of(delta)?),
        None => level,
    })
}

/// Calibration rows that give a finite threshold.
#[pyfunction]
#[pyo3(signature = (alpha, delta=None))]
pub fn rows_needed(alpha: &str, delta: Option<&str>) -> PyResult<u64> {
    Ok(level_of(1, alpha, delta)?.rows_needed())
}

/// The central interval of realised coverage; of that on `rows` fresh rows, where given.
#[pyfunction]
#[pyo3(signature = (n, alpha, probability, rows=None))]
pub fn coverage_interval(n: u64, alpha: &str, probability: f64, rows: Option<u64>) -> PyResult<(f64, f64)> {
    let law = CoverageLaw::at_level(n, alpha_of(alpha)?);
    let interval =
        rows.map_or_else(|| law.interval(probability), |rows| law.interval_of_rows(probability, rows));
    interval.map_err(value_error)
}

/// What so many calibration rows give: rank, mean and standard deviation of coverage, its central interval, and the
/// chance of less than was asked for.
#[pyfunction]
#[pyo3(signature = (n, alpha, probability, delta=None))]
#[expect(clippy::type_complexity, reason = "five facts")]
pub fn outlook(
    n: u64,
    alpha: &str,
    probability: f64,
    delta: Option<&str>,
) -> PyResult<(Option<u64>, f64, f64, (f64, f64), f64)> {
    let level = level_of(n, alpha, delta)?;
    let law = level.law();
    let interval = law.interval(probability).map_err(value_error)?;
    let below = law.cdf(level.alpha().confidence());
    Ok((level.rank(), law.mean(), law.standard_deviation(), interval, below))
}

/// Calibration rows with which coverage lies within a precision of what was asked for.
#[pyfunction]
pub fn rows_for_precision(alpha: &str, precision: f64, probability: f64) -> PyResult<u64> {
    conformax::rows_for_precision(alpha_of(alpha)?, precision, probability).map_err(value_error)
}

/// The rows of each part of a random split, ascending.
#[pyfunction]
pub fn split<'py>(py: Python<'py>, n: usize, fractions: Vec<f64>, seed: u64) -> PyResult<Vec<Indices<'py>>> {
    let parts = conformax::split(n, &fractions, seed).map_err(value_error)?;
    Ok(parts.into_iter().map(|part| indices(py, part)).collect())
}

/// The rows that calibrate and those that tune, both ascending.
#[pyfunction]
pub fn tuning_split<'py>(
    py: Python<'py>,
    n: usize,
    tuning_fraction: f64,
    seed: u64,
) -> PyResult<(Indices<'py>, Indices<'py>)> {
    let TuningSplit { calibrating, tuning, .. } =
        TuningSplit::new(n, tuning_fraction, seed).map_err(value_error)?;
    Ok((indices(py, calibrating), indices(py, tuning)))
}

fn indices(py: Python<'_>, rows: Vec<usize>) -> Indices<'_> {
    PyArray1::from_vec(py, rows.into_iter().map(|row| row as i64).collect())
}
