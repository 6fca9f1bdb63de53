//! Tuning: the core's accumulators over some of the rows and then over the others, or over all of them.

use conformax::{Calibrator, Logit, Logits, Remember, ScoreSpec, Tuner, Tuning};
use conformax_io::{Model, SelectionRecord, TuningRecord};
use numpy::{PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;

use crate::array::{AnyView, Number, View, with_view};
use crate::calibration::{Calibration, input_named, names_of};
use crate::error::Fault;
use crate::law::alpha_of;
use crate::predict::masked_named;
use crate::score::{Score, one_per_row};
use crate::work::{BLOCK, Beside, Rows, Stop, run};

/// Chooses the score with the smallest sets on the tuning rows and calibrates it on the others.
#[pyfunction]
#[pyo3(signature = (
    grid, logits, labels, calibrating, tuning, alpha, *, names=None, masked="allowed", n_threads=None,
    input="logits"
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
    input: &str,
) -> PyResult<Calibration> {
    let input = input_named(input)?;
    let (alpha, masked, names) = (alpha_of(alpha)?, masked_named(masked)?, names_of(names)?);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let (calibrating, tuning) = (calibrating.as_array().to_vec(), tuning.as_array().to_vec());
    let model = with_view!(view, view => run(py, n_threads, |stop| {
        let classes = view.classes();
        let (grid, candidates): (Vec<ScoreSpec>, usize) = (grid.iter().map(|score| score.spec).collect(), grid.len());
        let tuner = Tuner::new(grid, classes, alpha)?.with_masked(masked);
        let mut tuner = tuner.remembering(Remember::Rows);
        // A row is scored by every candidate, so blocks are as much shorter.
        let per_block = (BLOCK / classes.max(1) / candidates.div_ceil(16)).max(8);
        let picked = Picked { view, labels: &labels, per_block, stop };
        picked.each(&tuning, |logits, labels| tuner.extend(logits.labelled(labels)?))?;
        let mut sizes = tuner.finish()?;
        picked.each(&tuning, |logits, _| sizes.extend(logits))?;
        let (n, rows) = (sizes.n(), sizes.rows().clone());
        let record = TuningRecord { tuning: Tuning::Valid, alpha, choice: sizes.finish()?, n, rows };
        let calibrator = Calibrator::new(*record.choice.score(), classes)?.with_masked(masked);
        let mut calibrator = calibrator.remembering(Remember::Rows);
        picked.each(&calibrating, |logits, labels| calibrator.extend(logits.labelled(labels)?))?;
        let mut model = Model::new(&calibrator.finish()?, &[alpha], names);
        (model.tuning, model.input) = (Some(record), input);
        Ok(model)
    }))?;
    Ok(Calibration { model })
}

/// Chooses among scores anew for every label, by all rows, which calibrate too.
#[pyfunction]
#[pyo3(signature = (grid, logits, labels, alpha, *, names=None, masked="allowed", n_threads=None, input="logits"))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn select<'py>(
    py: Python<'py>,
    grid: Vec<Score>,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    alpha: &str,
    names: Option<Vec<String>>,
    masked: &str,
    n_threads: Option<usize>,
    input: &str,
) -> PyResult<Calibration> {
    let input = input_named(input)?;
    let (alpha, masked, names) = (alpha_of(alpha)?, masked_named(masked)?, names_of(names)?);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    let model = with_view!(view, view => run(py, n_threads, |stop| {
        let grid: Vec<ScoreSpec> = grid.iter().map(|score| score.spec).collect();
        let tuner = Tuner::new(grid, view.classes(), alpha)?.with_masked(masked);
        let mut tuner = tuner.remembering(Remember::Rows);
        let rows = Rows { view, beside: Beside::default(), first_row: 0 };
        let labelled = |first: usize, rows: usize| &labels[first..first + rows];
        rows.each(stop, |first, logits| tuner.extend(logits.labelled(labelled(first, logits.len()))?))?;
        let mut pairs = tuner.finish_selecting()?;
        rows.each(stop, |first, logits| pairs.extend(logits.labelled(labelled(first, logits.len()))?))?;
        let (selection, wins) = pairs.finish()?;
        let record = SelectionRecord { selection, wins: Some(wins) };
        let mut model = Model::of_selection(record, names);
        model.input = input;
        Ok(model)
    }))?;
    Ok(Calibration { model })
}

/// Rows by their numbers, copied together a block at a time.
struct Picked<'a, T> {
    view: View<'a, T>,
    labels: &'a [u32],
    per_block: usize,
    stop: &'a Stop,
}

impl<T: Number + Logit> Picked<'_, T> {
    /// Calls `work` with the rows of these numbers; an error names the row as the caller knows it.
    fn each(
        &self,
        rows: &[i64],
        mut work: impl FnMut(Logits<'_, T>, &[u32]) -> conformax::Result<()>,
    ) -> Result<(), Fault> {
        let (classes, mut scratch) = (self.view.classes(), Vec::new());
        for (block, rows) in rows.chunks(self.per_block).enumerate() {
            if self.stop.requested() {
                return Err(Fault::Stopped);
            }
            let mut values = Vec::with_capacity(rows.len() * classes);
            for row in rows.iter().map(|row| *row as usize) {
                values.extend_from_slice(self.view.rows_in(row..row + 1, &mut scratch));
            }
            let labels: Vec<u32> = rows.iter().map(|row| self.labels[*row as usize]).collect();
            let before = (block * self.per_block) as u64;
            Logits::new(&values, classes).and_then(|logits| work(logits, &labels)).map_err(|error| {
                match error.row().and_then(|row| rows.get(row.saturating_sub(before) as usize)) {
                    Some(row) => error.at_row(*row as u64),
                    None => error,
                }
            })?;
        }
        Ok(())
    }
}
