//! `Score`: the core's `ScoreSpec` by name, and the scores it gives.

use conformax::{Draw, Gamma, Lambda, Parameters, Penalty, ScoreSpec};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::work::{Beside, Rows, run};

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
        let parameters = Parameters {
            gamma: gamma.map(Gamma::new).transpose().map_err(value_error)?,
            lambda: lambda_.map(Lambda::new).transpose().map_err(value_error)?,
            k_reg,
            penalty: penalty.map(penalty_named).transpose()?,
            draw: None,
        };
        let spec = ScoreSpec::named(name, parameters).map_err(value_error)?;
        if !randomized && spec.draw().is_none() {
            let message = format!("randomized is of scores that draw: aps, raps and saps; {spec} does not");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self { spec: spec.with_draw(if randomized { Draw::Seeded(seed) } else { Draw::Conservative }) })
    }

    /// The name as it is printed everywhere.
    #[getter]
    fn name(&self) -> &'static str {
        self.spec.name()
    }

    /// Index of the entmax family, for its members.
    #[getter]
    fn gamma(&self) -> Option<f64> {
        self.spec.gamma().map(Gamma::value)
    }

    /// Penalty of RAPS or weight of SAPS.
    #[getter]
    fn lambda_(&self) -> Option<f64> {
        self.spec.parameters().lambda.map(Lambda::value)
    }

    /// Ranks that RAPS leaves unpunished.
    #[getter]
    fn k_reg(&self) -> Option<u32> {
        self.spec.parameters().k_reg
    }

    /// Whether RAPS's own penalty is part of its random term: "randomized" or "fixed".
    #[getter]
    fn penalty(&self) -> Option<&'static str> {
        self.spec.parameters().penalty.map(penalty_name)
    }

    /// Whether the score is of use among so many classes; RAPS with `k_reg` at or beyond them is APS.
    fn fits(&self, classes: usize) -> bool {
        self.spec.fits(classes)
    }

    /// Whether a uniform draw is part of the score; None where the score has none.
    #[getter]
    fn randomized(&self) -> Option<bool> {
        self.spec.draw().map(|draw| draw != Draw::Conservative)
    }

    /// Seed of the draw; None where nothing is drawn.
    #[getter]
    fn seed(&self) -> Option<u64> {
        match self.spec.draw() {
            Some(Draw::Seeded(seed)) => Some(seed),
            Some(Draw::Conservative) | None => None,
        }
    }

    /// The inverse temperature at which the activation's support is the set; None where there is none.
    fn temperature(&self, threshold: f64) -> Option<f64> {
        self.spec.temperature(threshold)
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
#[pyo3(signature = (score, logits, labels, u=None, *, n_threads=None, first_row=0))]
pub fn score_labels<'py>(
    py: Python<'py>,
    score: &Score,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    u: Option<PyReadonlyArray1<'py, f64>>,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (spec, view) = (score.spec, AnyView::of(logits)?);
    let labels = one_per_row(&view, labels, "labels")?;
    let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
    let scores = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, beside: Beside { u: u.as_deref(), ..Beside::default() }, first_row };
        let mut out = vec![0.0; rows.view.rows()];
        rows.fill(stop, (1, 1), &mut out, |first, logits, out| {
            let labelled = logits.labelled(&labels[first..first + logits.len()])?;
            out.copy_from_slice(&conformax::score_labels(&spec, labelled)?);
            Ok(())
        })?;
        Ok(out)
    }))?;
    Ok(PyArray1::from_vec(py, scores))
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
        let rows = Rows { view, beside: Beside { u: u.as_deref(), ..Beside::default() }, first_row };
        let classes = rows.view.classes();
        let mut out = vec![0.0; rows.view.rows() * classes];
        rows.fill(stop, (classes, classes.div_ceil(64)), &mut out, |_, logits, out| {
            out.copy_from_slice(&conformax::score_all_labels(&spec, logits)?);
            Ok(())
        })?;
        Ok(out)
    }))?;
    Ok(PyArray1::from_vec(py, scores))
}

/// What comes with the rows of a view, copied.
pub struct OwnedBeside {
    u: Option<Vec<f64>>,
    groups: Option<Vec<u32>>,
    weights: Option<Vec<f64>>,
}

impl OwnedBeside {
    pub fn of(
        view: &AnyView<'_>,
        u: Option<PyReadonlyArray1<'_, f64>>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        Ok(Self {
            u: u.map(|u| one_per_row(view, u, "uniform draws")).transpose()?,
            groups: groups.map(|groups| one_per_row(view, groups, "groups")).transpose()?,
            weights: weights.map(|weights| one_per_row(view, weights, "weights")).transpose()?,
        })
    }

    pub fn borrow(&self) -> Beside<'_> {
        Beside { u: self.u.as_deref(), groups: self.groups.as_deref(), weights: self.weights.as_deref() }
    }
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
