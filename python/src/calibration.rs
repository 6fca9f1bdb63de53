//! `Calibration`: a score with its calibration scores; thresholds and p-values come from it.

use conformax::{CalibrationScores, Masked, ScoreSpec};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::law::alpha_of;
use crate::score::{Score, one_per_row};
use crate::stoppable::Stoppable;
use crate::work::{Rows, run};

/// A score with the sorted scores of the calibration rows.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Calibration {
    spec: ScoreSpec,
    scores: CalibrationScores,
}

#[pymethods]
impl Calibration {
    #[new]
    fn new(score: &Score, scores: PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        let scores = CalibrationScores::new(scores.as_array().to_vec()).map_err(value_error)?;
        Ok(Self { spec: score.spec, scores })
    }

    /// The score.
    #[getter]
    fn score(&self) -> Score {
        Score { spec: self.spec }
    }

    /// The calibration scores, ascending.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.scores.as_slice())
    }

    /// Number of calibration rows.
    #[getter]
    fn n(&self) -> u64 {
        self.scores.n()
    }

    /// Threshold and rank at a level; the rank is None where there are too few rows.
    fn level(&self, alpha: &str) -> PyResult<(f64, Option<u64>)> {
        let level = self.scores.level(alpha_of(alpha)?);
        Ok((level.threshold, level.rank))
    }

    /// The p-value of every label of every row, row after row.
    #[pyo3(signature = (logits, u=None, *, n_threads=None, first_row=0))]
    fn p_values<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyUntypedArray>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: Option<usize>,
        first_row: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let view = AnyView::of(logits)?;
        let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
        let p = with_view!(view, view => run(py, n_threads, |stop| {
            let rows = Rows { view, u: u.as_deref(), first_row };
            let score = Stoppable { spec: self.spec, stop };
            let calibration = conformax::Calibration::from_scores(score, self.scores.clone(), Masked::Allowed);
            let classes = rows.view.classes();
            let mut out = vec![0.0; rows.view.rows() * classes];
            rows.fill(stop, classes, &mut out, |_, logits, out| {
                let p_values = calibration.p_values(logits)?;
                out.iter_mut().zip(p_values).for_each(|(out, p)| *out = p.value());
                Ok(())
            })?;
            Ok(out)
        }))?;
        Ok(PyArray1::from_vec(py, p))
    }
}
