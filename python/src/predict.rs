//! Logits and thresholds become sets, packed as offsets and labels.

use conformax::{Alpha, Calibrated, Empty, Level, Masked, PredictionSets, predict_each};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::score::{Score, one_per_row};
use crate::stoppable::Stoppable;
use crate::work::{Rows, run};

type Packed<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);

/// The sets at each threshold: a list of (offsets, labels).
#[pyfunction]
#[pyo3(signature = (
    score, thresholds, logits, u=None, *, masked="allowed", empty="allowed", n_threads=None, first_row=0
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn predict<'py>(
    py: Python<'py>,
    score: &Score,
    thresholds: Vec<f64>,
    logits: &Bound<'py, PyUntypedArray>,
    u: Option<PyReadonlyArray1<'py, f64>>,
    masked: &str,
    empty: &str,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Vec<Packed<'py>>> {
    let policies = (masked_named(masked)?, empty_named(empty)?);
    let spec = score.spec;
    let view = AnyView::of(logits)?;
    let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
    let sets = with_view!(view, view => run(py, n_threads, |stop| {
        let score = Stoppable { spec, stop };
        let models: Vec<_> = thresholds.iter().map(|threshold| model(score, *threshold, policies)).collect();
        let rows = Rows { view, u: u.as_deref(), first_row };
        let blocks = rows.map(stop, |_, logits| match models.as_slice() {
            [model] => Ok(vec![model.predict(logits)?]),
            models => predict_each(models, logits),
        })?;
        Ok((0..models.len()).map(|level| join(blocks.iter().map(|sets| &sets[level]))).collect::<Vec<_>>())
    }))?;
    Ok(sets.into_iter().map(|sets| packed(py, sets)).collect())
}

/// The sets at a threshold with the probabilities of their labels: offsets, labels, probabilities.
#[pyfunction]
#[pyo3(signature = (
    score, threshold, logits, u=None, *, masked="allowed", empty="allowed", n_threads=None, first_row=0
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[expect(clippy::type_complexity, reason = "three arrays")]
pub fn predict_probabilities<'py>(
    py: Python<'py>,
    score: &Score,
    threshold: f64,
    logits: &Bound<'py, PyUntypedArray>,
    u: Option<PyReadonlyArray1<'py, f64>>,
    masked: &str,
    empty: &str,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>)> {
    let (spec, policies) = (score.spec, (masked_named(masked)?, empty_named(empty)?));
    let view = AnyView::of(logits)?;
    let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
    let (sets, probabilities) = with_view!(view, view => run(py, n_threads, |stop| {
        let model = model(Stoppable { spec, stop }, threshold, policies);
        let rows = Rows { view, u: u.as_deref(), first_row };
        let blocks = rows.map(stop, |_, logits| model.predict_probabilities(logits))?;
        let probabilities: Vec<&[f64]> = blocks.iter().map(|(_, p)| p.as_slice()).collect();
        Ok((join(blocks.iter().map(|(sets, _)| sets)), probabilities.concat()))
    }))?;
    let (offsets, labels) = packed(py, sets);
    Ok((offsets, labels, PyArray1::from_vec(py, probabilities)))
}

fn model<S: conformax::Score>(score: S, threshold: f64, (masked, empty): (Masked, Empty)) -> Calibrated<S> {
    // Sets depend on the threshold alone; which level gave it is the caller's to know.
    let alpha = Alpha::new(0.5).expect("lies between 0 and 1");
    let level = Level { alpha, n: 0, rank: None, threshold };
    Calibrated::new(score, level).with_masked(masked).with_empty(empty)
}

pub fn masked_named(name: &str) -> PyResult<Masked> {
    match name {
        "allowed" => Ok(Masked::Allowed),
        "never" => Ok(Masked::Never),
        _ => Err(PyValueError::new_err(format!("masked must be \"allowed\" or \"never\", got {name:?}"))),
    }
}

pub fn masked_name(masked: Masked) -> &'static str {
    match masked {
        Masked::Allowed => "allowed",
        Masked::Never => "never",
    }
}

fn empty_named(name: &str) -> PyResult<Empty> {
    match name {
        "allowed" => Ok(Empty::Allowed),
        "top_label" => Ok(Empty::TopLabel),
        _ => Err(PyValueError::new_err(format!("empty must be \"allowed\" or \"top_label\", got {name:?}"))),
    }
}

/// The sets of all blocks, end to end; offsets are signed, as SciPy and Arrow want them.
fn join<'a>(blocks: impl Iterator<Item = &'a PredictionSets> + Clone) -> (Vec<i64>, Vec<u32>) {
    let mut offsets = Vec::with_capacity(1 + blocks.clone().map(PredictionSets::len).sum::<usize>());
    let mut labels = Vec::with_capacity(blocks.clone().map(|sets| sets.labels().len()).sum());
    offsets.push(0);
    for sets in blocks {
        let start = labels.len();
        offsets.extend(sets.offsets()[1..].iter().map(|offset| (start + offset) as i64));
        labels.extend_from_slice(sets.labels());
    }
    (offsets, labels)
}

fn packed<'py>(py: Python<'py>, (offsets, labels): (Vec<i64>, Vec<u32>)) -> Packed<'py> {
    (PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, labels))
}
