//! `Score`: the core's `ScoreSpec` by name, and the scores it gives.

use conformax::{Draw, Logit, Logits, Masked, Parameters, Penalty, ScoreSpec};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::predict::masked_named;
use crate::stoppable::Stoppable;
use crate::work::{Rows, run};

/// A non-conformity score with its parameters; larger is stranger.
#[pyclass(frozen, eq, from_py_object, module = "conformax._conformax")]
#[derive(Clone, PartialEq)]
pub struct Score {
    pub spec: ScoreSpec,
}

#[pymethods]
impl Score {
    #[new]
    #[pyo3(signature = (name, *, gamma=None, lambda_=None, k_reg=None, penalty=None, randomized=true, seed=0))]
    fn new(
        name: &str,
        gamma: Option<f64>,
        lambda_: Option<f64>,
        k_reg: Option<u32>,
        penalty: Option<&str>,
        randomized: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let draw = if randomized { Draw::Seeded(seed) } else { Draw::Zero };
        let penalty = penalty.map(penalty_named).transpose()?;
        let parameters = Parameters { gamma, lambda: lambda_, k_reg, penalty, draw: Some(draw) };
        ScoreSpec::named(name, parameters).map(|spec| Self { spec }).map_err(value_error)
    }

    /// The name as it is printed everywhere.
    #[getter]
    fn name(&self) -> &'static str {
        self.spec.name()
    }

    /// Index of the entmax family, for its members.
    #[getter]
    fn gamma(&self) -> Option<f64> {
        self.spec.gamma().map(conformax::Gamma::value)
    }

    /// Penalty of RAPS or weight of SAPS.
    #[getter]
    fn lambda_(&self) -> Option<f64> {
        match self.spec {
            ScoreSpec::Raps(score) => Some(score.lambda),
            ScoreSpec::Saps(score) => Some(score.lambda),
            _ => None,
        }
    }

    /// Ranks that RAPS leaves unpunished.
    #[getter]
    fn k_reg(&self) -> Option<u32> {
        match self.spec {
            ScoreSpec::Raps(score) => Some(score.k_reg),
            _ => None,
        }
    }

    /// Whether RAPS's own penalty is part of its random term: "randomized" or "fixed".
    #[getter]
    fn penalty(&self) -> Option<&'static str> {
        match self.spec {
            ScoreSpec::Raps(score) => Some(penalty_name(score.penalty)),
            _ => None,
        }
    }

    /// Whether a uniform draw is part of the score; None where the score has none.
    #[getter]
    fn randomized(&self) -> Option<bool> {
        self.spec.draw().map(|draw| draw != Draw::Zero)
    }

    /// Seed of the draw; None where nothing is drawn.
    #[getter]
    fn seed(&self) -> Option<u64> {
        match self.spec.draw() {
            Some(Draw::Seeded(seed)) => Some(seed),
            Some(Draw::Zero) | None => None,
        }
    }

    /// The inverse temperature at which the activation's support is the set; None where there is none.
    fn temperature(&self, threshold: f64) -> Option<f64> {
        conformax::Score::temperature(&self.spec, threshold)
    }

    fn __repr__(&self) -> String {
        self.spec.to_string()
    }
}

fn penalty_named(name: &str) -> PyResult<Penalty> {
    match name {
        "randomized" => Ok(Penalty::Randomized),
        "fixed" => Ok(Penalty::Fixed),
        _ => {
            let message = format!("penalty must be \"randomized\" or \"fixed\", got {name:?}");
            Err(PyValueError::new_err(message))
        }
    }
}

fn penalty_name(penalty: Penalty) -> &'static str {
    match penalty {
        Penalty::Randomized => "randomized",
        Penalty::Fixed => "fixed",
    }
}

/// The score of one label per row.
#[pyfunction]
#[pyo3(signature = (score, logits, labels, u=None, *, masked="allowed", n_threads=None, first_row=0))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn score_labels<'py>(
    py: Python<'py>,
    score: &Score,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    u: Option<PyReadonlyArray1<'py, f64>>,
    masked: &str,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (spec, view, masked) = (score.spec, AnyView::of(logits)?, masked_named(masked)?);
    let labels = one_per_row(&view, labels, "labels")?;
    let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
    let scores = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, u: u.as_deref(), first_row };
        let (score, mut out) = (Stoppable { spec, stop }, vec![0.0; rows.view.rows()]);
        rows.fill(stop, 1, &mut out, |first, logits, out| {
            let labels = &labels[first..first + logits.len()];
            check_possible(masked, logits, labels)?;
            out.copy_from_slice(&conformax::score_labels(&score, logits, labels)?);
            Ok(())
        })?;
        Ok(out)
    }))?;
    Ok(PyArray1::from_vec(py, scores))
}

/// Under `Masked::Never`, no true label may have logit −∞.
fn check_possible<T: Logit>(masked: Masked, logits: Logits<'_, T>, labels: &[u32]) -> conformax::Result<()> {
    if masked == Masked::Never {
        for (row, label) in labels.iter().enumerate() {
            if logits.row(row)?.logit(*label) == f64::NEG_INFINITY {
                return Err(conformax::Error::MaskedLabel { row: row as u64, label: *label });
            }
        }
    }
    Ok(())
}

/// The score of every label of every row, row after row.
#[pyfunction]
#[pyo3(signature = (score, logits, u=None, *, n_threads=None, first_row=0))]
pub fn score_all<'py>(
    py: Python<'py>,
    score: &Score,
    logits: &Bound<'py, PyUntypedArray>,
    u: Option<PyReadonlyArray1<'py, f64>>,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (spec, view) = (score.spec, AnyView::of(logits)?);
    let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
    let scores = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, u: u.as_deref(), first_row };
        let (score, classes) = (Stoppable { spec, stop }, rows.view.classes());
        let mut out = vec![0.0; rows.view.rows() * classes];
        rows.fill(stop, classes, &mut out, |_, logits, out| {
            out.copy_from_slice(&conformax::score_all_labels(&score, logits)?);
            Ok(())
        })?;
        Ok(out)
    }))?;
    Ok(PyArray1::from_vec(py, scores))
}

/// A copy of an array that has an entry for each row.
pub fn one_per_row<T: numpy::Element + Copy>(
    view: &AnyView<'_>,
    array: PyReadonlyArray1<'_, T>,
    what: &'static str,
) -> PyResult<Vec<T>> {
    let values = array.as_array().to_vec();
    if values.len() == view.rows() {
        Ok(values)
    } else {
        Err(value_error(conformax::Error::Rows { what, wanted: view.rows(), got: values.len() }))
    }
}
