//! Logits and thresholds become sets, packed as offsets and labels.

use conformax::{
    Empty, Logits, Masked, Mass, PredictionSets, Predictor, ScoreSpec, Thresholds, predict_chunks,
};
use numpy::{Element, PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::{AnyView, View, Width, with_view};
use crate::memory::in_large_pages;
use crate::score::{OwnedBeside, Score};
use crate::work::{Rows, run};

/// Offsets, labels, and a number for each label: its logit, as wide as the logits are and at least `float32`, or its
/// probability.
pub type Packed<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>);

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
    with_view!(view, view => sets_of_view(py, models, view, beside, n_threads, first_row))
}

fn sets_of_view<'py, T: Width>(
    py: Python<'py>,
    models: &[Predictor<ScoreSpec>],
    view: View<'_, T>,
    beside: &OwnedBeside,
    n_threads: Option<usize>,
    first_row: usize,
) -> PyResult<Vec<Packed<'py>>> {
    let sets = run(py, n_threads, |stop| {
        let rows = Rows { view, beside: beside.borrow(), first_row };
        let mut whole: Vec<Joined<T::Out>> =
            models.iter().map(|_| Joined::with_capacity(view.rows())).collect();
        rows.each(stop, |first, logits| {
            let with_logits = |chunk: Logits<'_, T>, sets: Vec<PredictionSets>| -> Vec<_> {
                sets.into_iter().map(|sets| (logits_of(&sets, chunk), sets)).collect()
            };
            let found = predict_chunks(models, logits, with_logits, |sets| {
                whole.iter_mut().zip(&sets).for_each(|(whole, (numbers, sets))| whole.append(sets, numbers));
            });
            found.map_err(|error| error.offset_rows((first_row + first) as u64))
        })?;
        Ok(whole)
    })?;
    Ok(sets.into_iter().map(|sets| packed(py, sets)).collect())
}

/// Labels of a set that are copied whether it has them or not: the size of a set is hard to guess for the processor.
const COPIED: usize = 4;

/// The logits of the labels, so that probabilities can be had after the rows have gone.
fn logits_of<T: Width>(sets: &PredictionSets, logits: Logits<'_, T>) -> Vec<T::Out> {
    let (offsets, labels) = (sets.offsets(), sets.labels());
    let mut numbers = vec![T::Out::default(); labels.len()];
    for (row, ends) in logits.as_slice().chunks_exact(logits.classes()).zip(offsets.windows(2)) {
        let of = |label: u32| T::Out::from_f64(row[label as usize].to_f64());
        let (few, end) = (ends[0]..ends[0] + COPIED, ends[1]);
        match (labels.get(few.clone()), numbers.get_mut(few.clone())) {
            // Labels of the sets that follow are labels too, and what is copied of them is written over.
            (Some(labels), Some(numbers)) if end <= few.end => {
                numbers.iter_mut().zip(labels).for_each(|(number, label)| *number = of(*label));
            }
            _ => {
                let set = ends[0]..end;
                numbers[set.clone()]
                    .iter_mut()
                    .zip(&labels[set])
                    .for_each(|(number, label)| *number = of(*label));
            }
        }
    }
    numbers
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
        let mut whole = Joined::with_capacity(view.rows());
        rows.each(stop, |first, logits| {
            let found = model.predict_probabilities(logits);
            let (sets, p) = found.map_err(|error| error.offset_rows((first_row + first) as u64))?;
            whole.append(&sets, &p);
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
struct Joined<N> {
    offsets: Vec<i64>,
    labels: Vec<u32>,
    /// One for each label.
    numbers: Vec<N>,
}

impl<N: Copy> Joined<N> {
    fn with_capacity(rows: usize) -> Self {
        let mut offsets = in_large_pages(rows + 1);
        offsets.push(0);
        Self { offsets, labels: in_large_pages(rows), numbers: in_large_pages(rows) }
    }

    fn append(&mut self, sets: &PredictionSets, numbers: &[N]) {
        let start = self.labels.len() as i64;
        self.offsets.extend(sets.offsets()[1..].iter().map(|offset| start + *offset as i64));
        self.labels.extend_from_slice(sets.labels());
        self.numbers.extend_from_slice(numbers);
    }
}

fn packed<N: Element>(py: Python<'_>, Joined { offsets, labels, numbers }: Joined<N>) -> Packed<'_> {
    let numbers = PyArray1::from_vec(py, numbers).into_any();
    (PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, labels), numbers)
}
