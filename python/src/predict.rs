//! Logits and thresholds become sets, packed as offsets and labels.

use conformax::{
    Empty, Logit, Logits, Masked, PredictionSets, Predictor, ScoreSpec, Thresholds, predict_each,
};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::score::{OwnedBeside, Score};
use crate::work::{Rows, run};

/// Offsets, labels, and the logits of these labels: what probabilities of the sets need.
pub type Packed<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// The sets at each threshold: a list of (offsets, labels, the logits of these labels).
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
    let models: Vec<_> = thresholds.iter().map(|threshold| model(score.spec, *threshold, policies)).collect();
    let view = AnyView::of(logits)?;
    let beside = OwnedBeside::of(&view, u, None, None)?;
    sets_of(py, &models, view, &beside, n_threads, first_row)
}

/// The sets of each predictor over all rows.
pub fn sets_of<'py>(
    py: Python<'py>,
    models: &[Predictor<ScoreSpec>],
    view: AnyView<'_>,
    beside: &OwnedBeside,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Vec<Packed<'py>>> {
    let sets = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, beside: beside.borrow(), first_row };
        let mut whole: Vec<Joined> = models.iter().map(|_| Joined::default()).collect();
        rows.each(stop, |first, logits| {
            let sets = predict_each(models, logits).map_err(|error| error.offset_rows((first_row + first) as u64))?;
            whole.iter_mut().zip(sets).for_each(|(whole, sets)| whole.append(sets, logits));
            Ok(())
        })?;
        Ok(whole)
    }))?;
    Ok(sets.into_iter().map(|sets| packed(py, sets)).collect())
}

/// The sets at a threshold with the probabilities of their labels: offsets, labels, probabilities.
#[pyfunction]
#[pyo3(signature = (
    score, threshold, logits, u=None, *, masked="allowed", empty="allowed", n_threads=None, first_row=0
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
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
) -> PyResult<Packed<'py>> {
    let model = model(score.spec, threshold, (masked_named(masked)?, empty_named(empty)?));
    let view = AnyView::of(logits)?;
    let beside = OwnedBeside::of(&view, u, None, None)?;
    probabilities_of(py, &model, view, &beside, n_threads, first_row)
}

/// The sets of a predictor over all rows, with the probabilities of their labels.
pub fn probabilities_of<'py>(
    py: Python<'py>,
    model: &Predictor<ScoreSpec>,
    view: AnyView<'_>,
    beside: &OwnedBeside,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Packed<'py>> {
    let whole = with_view!(view, view => run(py, n_threads, |stop| {
        let rows = Rows { view, beside: beside.borrow(), first_row };
        let mut whole = Joined::default();
        rows.each(stop, |first, logits| {
            let found = model.predict_probabilities(logits);
            let (sets, p) = found.map_err(|error| error.offset_rows((first_row + first) as u64))?;
            whole.append_with(sets, |numbers, _, _| numbers.extend(p));
            Ok(())
        })?;
        Ok(whole)
    }))?;
    Ok(packed(py, whole))
}

fn model(score: ScoreSpec, threshold: f64, (masked, empty): (Masked, Empty)) -> Predictor<ScoreSpec> {
    Predictor::new(score, Thresholds::One(threshold)).with_masked(masked).with_empty(empty)
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

pub fn empty_named(name: &str) -> PyResult<Empty> {
    match name {
        "allowed" => Ok(Empty::Allowed),
        "top_label" => Ok(Empty::TopLabel),
        _ => Err(PyValueError::new_err(format!("empty must be \"allowed\" or \"top_label\", got {name:?}"))),
    }
}

/// The sets of all blocks, end to end; offsets are signed, as SciPy and Arrow want them.
#[derive(Default)]
struct Joined {
    offsets: Vec<i64>,
    labels: Vec<u32>,
    /// One for each label.
    numbers: Vec<f64>,
}

impl Joined {
    /// With the logits of the labels, so that probabilities can be had after the rows have gone.
    fn append<T: Logit>(&mut self, sets: PredictionSets, logits: Logits<'_, T>) {
        let (all, classes) = (logits.as_slice(), logits.classes());
        self.append_with(sets, |numbers, offsets, labels| {
            numbers.reserve(labels.len());
            for (row, ends) in all.chunks_exact(classes).zip(offsets.windows(2)) {
                numbers.extend(labels[ends[0]..ends[1]].iter().map(|label| row[*label as usize].to_f64()));
            }
        });
    }

    fn append_with(&mut self, sets: PredictionSets, more: impl FnOnce(&mut Vec<f64>, &[usize], &[u32])) {
        let (_, offsets, mut labels) = sets.into_parts();
        more(&mut self.numbers, &offsets, &labels);
        if self.offsets.is_empty() {
            // On 64-bit systems the memory serves as it is.
            self.offsets = bytemuck::allocation::try_cast_vec(offsets)
                .unwrap_or_else(|(_, offsets)| offsets.into_iter().map(|offset| offset as i64).collect());
            self.labels = labels;
        } else {
            let start = self.labels.len() as i64;
            self.offsets.extend(offsets[1..].iter().map(|offset| start + *offset as i64));
            self.labels.append(&mut labels);
        }
    }
}

fn packed<'py>(py: Python<'py>, Joined { mut offsets, labels, numbers }: Joined) -> Packed<'py> {
    if offsets.is_empty() {
        offsets.push(0);
    }
    (PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, labels), PyArray1::from_vec(py, numbers))
}
