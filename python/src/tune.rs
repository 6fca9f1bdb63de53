//! Tuning: the core's `tune` on two gathers of the rows.

use conformax::{CalibratingRows, Logits, Tuning, TuningRows};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, Number, View, with_view};
use crate::law::alpha_of;
use crate::predict::masked_named;
use crate::score::{Score, one_per_row};
use crate::stoppable::Stoppable;
use crate::work::run;

/// Chooses the score with the smallest sets on the tuning rows and scores the calibrating rows with it: the index of
/// the choice, each candidate's (threshold, average size), and the calibration scores, ascending.
#[pyfunction]
#[pyo3(signature = (grid, logits, labels, calibrating, tuning, alpha, *, masked="allowed", n_threads=None))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[expect(clippy::type_complexity, reason = "an index, a table and an array")]
pub fn tune<'py>(
    py: Python<'py>,
    grid: Vec<Score>,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    calibrating: PyReadonlyArray1<'py, i64>,
    tuning: PyReadonlyArray1<'py, i64>,
    alpha: &str,
    masked: &str,
    n_threads: Option<usize>,
) -> PyResult<(usize, Vec<(f64, f64)>, Bound<'py, PyArray1<f64>>)> {
    let (alpha, masked) = (alpha_of(alpha)?, masked_named(masked)?);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let (calibrating, tuning) = (calibrating.as_array().to_vec(), tuning.as_array().to_vec());
    let tuned = with_view!(view, view => run(py, n_threads, |stop| {
        let grid: Vec<_> = grid.iter().map(|score| Stoppable { spec: score.spec, stop }).collect();
        let (tuning, calibrating) = (gather(&view, &labels, &tuning), gather(&view, &labels, &calibrating));
        let tuned = conformax::tune(
            &grid,
            TuningRows::new(Logits::new(&tuning.0, view.classes())?, &tuning.1)?,
            CalibratingRows::new(Logits::new(&calibrating.0, view.classes())?, &calibrating.1)?,
            alpha,
            Tuning::Valid,
            masked,
        )?;
        let candidates = tuned.candidates.iter().map(|it| (it.threshold, it.average_size)).collect();
        Ok((tuned.chosen, candidates, tuned.calibration.scores().as_slice().to_vec()))
    }))?;
    let (chosen, candidates, scores) = tuned;
    Ok((chosen, candidates, PyArray1::from_vec(py, scores)))
}

fn gather<T: Number>(view: &View<'_, T>, labels: &[u32], rows: &[i64]) -> (Vec<T>, Vec<u32>) {
    let mut logits = Vec::with_capacity(rows.len() * view.classes());
    let mut scratch = Vec::new();
    for row in rows.iter().map(|row| *row as usize) {
        logits.extend_from_slice(view.rows_in(row..row + 1, &mut scratch));
    }
    (logits, rows.iter().map(|row| labels[*row as usize]).collect())
}
