//! Sets and true labels become the core's metrics.

use conformax::{PredictionSets, Strata};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::value_error;
use crate::law::alpha_of;

/// Every metric of packed sets against the true labels. Undefined ones are None, or NaN inside arrays.
#[pyfunction]
#[pyo3(signature = (classes, offsets, labels, truth, alpha, strata=None))]
pub fn evaluate<'py>(
    py: Python<'py>,
    classes: usize,
    offsets: PyReadonlyArray1<'py, i64>,
    labels: PyReadonlyArray1<'py, u32>,
    truth: PyReadonlyArray1<'py, u32>,
    alpha: &str,
    strata: Option<Vec<u64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (alpha, strata) = (alpha_of(alpha)?, strata_of(strata)?);
    let (labels, truth) = (labels.as_array().to_vec(), truth.as_array().to_vec());
    let offsets: Option<Vec<usize>> =
        offsets.as_array().iter().map(|place| (*place).try_into().ok()).collect();
    let sets = offsets.and_then(|offsets| PredictionSets::from_parts(classes, offsets, labels)).ok_or_else(
        || PyValueError::new_err("offsets must rise from 0 to the number of labels, and labels be classes"),
    )?;
    let metrics = py.detach(|| conformax::evaluate(&sets, &truth, alpha, &strata)).map_err(value_error)?;
    let strata = PyList::empty(py);
    for stratum in &metrics.strata {
        let entry = PyDict::new(py);
        entry.set_item("from", stratum.from)?;
        entry.set_item("to", stratum.to)?;
        entry.set_item("n", stratum.n)?;
        entry.set_item("coverage", stratum.coverage)?;
        strata.append(entry)?;
    }
    let class_coverage = metrics.class_coverage.iter().map(|coverage| coverage.unwrap_or(f64::NAN)).collect();
    let out = PyDict::new(py);
    out.set_item("n", metrics.n)?;
    out.set_item("alpha", metrics.alpha.value())?;
    out.set_item("coverage", metrics.coverage)?;
    out.set_item("average_size", metrics.average_size)?;
    out.set_item("singleton_ratio", metrics.singleton_ratio)?;
    out.set_item("singleton_coverage", metrics.singleton_coverage)?;
    out.set_item("empty_ratio", metrics.empty_ratio)?;
    out.set_item("sscv", metrics.sscv)?;
    out.set_item("covgap", metrics.covgap)?;
    out.set_item("strata", strata)?;
    out.set_item("class_coverage", PyArray1::from_vec(py, class_coverage))?;
    Ok(out)
}

fn strata_of(starts: Option<Vec<u64>>) -> PyResult<Strata> {
    starts.map_or_else(|| Ok(Strata::default()), |starts| Strata::new(&starts).map_err(value_error))
}
