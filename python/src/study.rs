//! Procedures compared over random splits, as JSON that Python turns into records.

use std::path::PathBuf;

use conformax_io::{Block, Values};
use conformax_study::{Benchmark, Progress, RunOptions, Study};
use numpy::{PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::{Fault, value_error};
use crate::law::alpha_of;
use crate::score::one_per_row;
use crate::work::{Stop, run};

/// The procedures side by side on one data set at one level.
#[pyfunction]
#[pyo3(signature = (logits, labels, alpha, *, splits, seed, n_threads=None))]
pub fn compare<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    alpha: &str,
    splits: usize,
    seed: u64,
    n_threads: Option<usize>,
) -> PyResult<String> {
    let study = conformax_study::comparison_study(alpha_of(alpha)?, splits, seed);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let block = with_view!(view, view => {
        let mut scratch = Vec::new();
        let values = Values::from(view.rows_in(0..view.rows(), &mut scratch).to_vec());
        Block { classes: view.classes(), logits: values, ..Block::default() }
    });
    let benchmark = Benchmark::new("data", "data", block, labels).map_err(value_error)?;
    let found = run(py, n_threads, |stop| {
        Ok(conformax_study::compare(&study, benchmark, &Watched(stop)).map(|it| serde_json::to_string(&it)))
    })?;
    text_of(found)
}

/// Every record and summary of a study: the one in a file, or the paper's own.
#[pyfunction]
#[pyo3(signature = (path=None, *, benchmarks=None, splits=None, n_threads=None))]
pub fn run_study(
    py: Python<'_>,
    path: Option<PathBuf>,
    benchmarks: Option<PathBuf>,
    splits: Option<usize>,
    n_threads: Option<usize>,
) -> PyResult<String> {
    let read = path.map_or_else(|| Ok(Study::paper()), |path| Study::read(&path));
    let mut study = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
    if let Some(splits) = splits {
        (study.splits, study.claim_splits) = (splits, study.claim_splits.min(splits));
    }
    let options = RunOptions { benchmarks };
    let found = run(py, n_threads, |stop| {
        Ok::<_, Fault>(study.run(&options, &Watched(stop)).map(|results| serde_json::to_string(&results)))
    })?;
    text_of(found)
}

fn text_of(found: conformax_study::Result<serde_json::Result<String>>) -> PyResult<String> {
    found
        .map_err(|error| PyValueError::new_err(error.to_string()))?
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Leaves a study once nobody wants it.
struct Watched<'a>(&'a Stop);

impl Progress for Watched<'_> {
    fn stop(&self) -> bool {
        self.0.requested()
    }
}
