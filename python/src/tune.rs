//! Tuning: the core's `tune` on two gathers of the rows.

use conformax::{CalibratingRows, Candidate, Logits, Tuning, TuningRows};
use conformax_io::{Model, RowSet, TuningRecord};
use numpy::{PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, Number, View, with_view};
use crate::calibration::{Calibration, names_of};
use crate::fingerprint::fingerprints;
use crate::law::alpha_of;
use crate::predict::masked_named;
use crate::score::{Score, one_per_row};
use crate::stoppable::Stoppable;
use crate::work::run;

/// Chooses the score with the smallest sets on the tuning rows and calibrates it on the others.
#[pyfunction]
#[pyo3(signature = (
    grid, logits, labels, calibrating, tuning, alpha, *, names=None, masked="allowed", n_threads=None
))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn tune<'py>(
    py: Python<'py>,
    grid: Vec<Score>,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    calibrating: PyReadonlyArray1<'py, i64>,
    tuning: PyReadonlyArray1<'py, i64>,
    alpha: &str,
    names: Option<Vec<String>>,
    masked: &str,
    n_threads: Option<usize>,
) -> PyResult<Calibration> {
    let (alpha, masked, names) = (alpha_of(alpha)?, masked_named(masked)?, names_of(names)?);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let (calibrating, tuning) = (calibrating.as_array().to_vec(), tuning.as_array().to_vec());
    let model = with_view!(view, view => run(py, n_threads, |stop| {
        let classes = view.classes();
        let scores: Vec<_> = grid.iter().map(|score| Stoppable { spec: score.spec, stop }).collect();
        let (tuning, calibrating) = (gather(&view, &labels, &tuning), gather(&view, &labels, &calibrating));
        let tuned = conformax::tune(
            &scores,
            TuningRows::new(Logits::new(&tuning.0, classes)?, &tuning.1)?,
            CalibratingRows::new(Logits::new(&calibrating.0, classes)?, &calibrating.1)?,
            alpha,
            Tuning::Valid,
            masked,
        )?;
        let candidates = tuned.candidates.iter().map(|it| Candidate {
            score: it.score.spec,
            threshold: it.threshold,
            average_size: it.average_size,
        });
        let record = TuningRecord {
            tuning: Tuning::Valid,
            alpha,
            candidates: candidates.collect(),
            chosen: tuned.chosen,
            n: tuning.1.len() as u64,
            rows: RowSet::new(fingerprints(&tuning.0, classes)),
        };
        let chosen = conformax::Calibration::from_scores(
            grid[tuned.chosen].spec,
            tuned.calibration.scores().clone(),
            masked,
        );
        let rows = RowSet::new(fingerprints(&calibrating.0, classes));
        Ok(Model { tuning: Some(record), ..Model::new(&chosen, &[alpha], classes, names, rows) })
    }))?;
    Ok(Calibration { model })
}

fn gather<T: Number>(view: &View<'_, T>, labels: &[u32], rows: &[i64]) -> (Vec<T>, Vec<u32>) {
    let mut logits = Vec::with_capacity(rows.len() * view.classes());
    let mut scratch = Vec::new();
    for row in rows.iter().map(|row| *row as usize) {
        logits.extend_from_slice(view.rows_in(row..row + 1, &mut scratch));
    }
    (logits, rows.iter().map(|row| labels[*row as usize]).collect())
}
