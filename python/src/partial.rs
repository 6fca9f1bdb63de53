//! `Partial`: what some of the rows came to, of any of the core's accumulators, to be merged with that of the others.
//!
//! Whoever holds rows needs to know nothing of what is done with them: it is given the bytes of an empty accumulator,
//! extends it, and sends its bytes back.

use std::sync::{Mutex, PoisonError};

use conformax::{
    Alpha, Evaluator, Labelled, Logit, PairCounter, Remember, ScoreSpec, SearchStep, SizeCounter,
    ThresholdSearch, Tuner, Tuning,
};
use conformax_io::{Calibrating, Model, SelectionRecord, TuningRecord};
use numpy::{PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::calibration::{Calibration, names_of};
use crate::error::value_error;
use crate::law::{alpha_of, alphas_of};
use crate::predict::masked_named;
use crate::score::{OwnedBeside, Score, one_per_row};
use crate::work::{Rows, run};

/// One of the core's accumulators.
#[derive(Clone)]
enum Accumulator {
    Calibrating(Calibrating),
    Tuner(Tuner<ScoreSpec>),
    Sizes(SizeCounter<ScoreSpec>),
    Pairs(PairCounter<ScoreSpec>),
    Evaluator(Evaluator<ScoreSpec>),
    Search(ThresholdSearch<ScoreSpec>),
}

/// Does the same with whichever accumulator it is.
macro_rules! each {
    ($accumulator:expr, $it:ident => $body:expr) => {
        match $accumulator {
            Accumulator::Calibrating($it) => $body,
            Accumulator::Tuner($it) => $body,
            Accumulator::Sizes($it) => $body,
            Accumulator::Pairs($it) => $body,
            Accumulator::Evaluator($it) => $body,
            Accumulator::Search($it) => $body,
        }
    };
}

impl Accumulator {
    fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> conformax::Result<()> {
        match self {
            Self::Calibrating(it) => it.extend(rows),
            Self::Tuner(it) => it.extend(rows),
            Self::Sizes(it) => it.extend(rows.logits()),
            Self::Pairs(it) => it.extend(rows),
            Self::Evaluator(it) => it.extend(rows),
            Self::Search(it) => it.extend(rows),
        }
    }

    fn merge(&mut self, other: Self) -> conformax::Result<()> {
        match (self, other) {
            (Self::Calibrating(mine), Self::Calibrating(theirs)) => mine.merge(theirs),
            (Self::Tuner(mine), Self::Tuner(theirs)) => mine.merge(theirs),
            (Self::Sizes(mine), Self::Sizes(theirs)) => mine.merge(theirs),
            (Self::Pairs(mine), Self::Pairs(theirs)) => mine.merge(theirs),
            (Self::Evaluator(mine), Self::Evaluator(theirs)) => mine.merge(theirs),
            (Self::Search(mine), Self::Search(theirs)) => mine.merge(theirs),
            _ => Err(conformax::Error::Unlike { what: "kinds of accumulator" }),
        }
    }

    /// Reads whichever it is: bytes of another kind are refused by their head.
    fn from_bytes(bytes: &[u8]) -> conformax::Result<Self> {
        type Read = fn(&[u8]) -> conformax::Result<Accumulator>;
        let readers: [Read; 6] = [
            |bytes| Calibrating::from_bytes(bytes).map(Self::Calibrating),
            |bytes| Tuner::from_bytes(bytes).map(Self::Tuner),
            |bytes| SizeCounter::from_bytes(bytes).map(Self::Sizes),
            |bytes| PairCounter::from_bytes(bytes).map(Self::Pairs),
            |bytes| Evaluator::from_bytes(bytes).map(Self::Evaluator),
            |bytes| ThresholdSearch::from_bytes(bytes).map(Self::Search),
        ];
        let of_another_kind = |read: &conformax::Result<Self>| {
            matches!(read, Err(conformax::Error::Bytes { what: "they hold something else", .. }))
        };
        let mut tried = readers.iter().map(|read| read(bytes));
        tried
            .find(|read| !of_another_kind(read))
            .unwrap_or_else(|| Calibrating::from_bytes(bytes).map(Self::Calibrating))
    }
}

/// Rows in, bytes out: merged with others in any order it finishes to the bits of one that saw all rows.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Partial {
    /// Taken out for as long as rows are added, so that nobody waits for it with the interpreter held.
    inner: Mutex<Option<Accumulator>>,
}

impl Partial {
    fn of(accumulator: Accumulator) -> Self {
        Self { inner: Mutex::new(Some(accumulator)) }
    }

    fn get(&self) -> PyResult<Accumulator> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(busy)
    }

    fn take(&self) -> PyResult<Accumulator> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(busy)
    }

    fn put(&self, accumulator: Accumulator) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(accumulator);
    }
}

fn busy() -> PyErr {
    PyRuntimeError::new_err("this accumulator is being extended, or a row failed in it")
}

#[pymethods]
impl Partial {
    /// Of a calibration in constant memory, whose passes see the same rows.
    #[staticmethod]
    #[pyo3(signature = (score, classes, alphas, *, masked="allowed"))]
    fn search(score: &Score, classes: usize, alphas: Vec<String>, masked: &str) -> PyResult<Self> {
        let search = ThresholdSearch::new(score.spec, classes, &alphas_of(&alphas)?).map_err(value_error)?;
        let search = search.with_masked(masked_named(masked)?).remembering(Remember::Rows);
        Ok(Self::of(Accumulator::Search(search)))
    }

    /// Of a choice between scores.
    #[staticmethod]
    #[pyo3(signature = (grid, classes, alpha, *, masked="allowed"))]
    fn tuner(grid: Vec<Score>, classes: usize, alpha: &str, masked: &str) -> PyResult<Self> {
        let grid = grid.iter().map(|score| score.spec).collect();
        let tuner = Tuner::new(grid, classes, alpha_of(alpha)?).map_err(value_error)?;
        let tuner = tuner.with_masked(masked_named(masked)?).remembering(Remember::Rows);
        Ok(Self::of(Accumulator::Tuner(tuner)))
    }

    /// From the bytes of any accumulator.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Accumulator::from_bytes(bytes).map(Self::of).map_err(value_error)
    }

    /// As bytes that `from_bytes` reads, here or elsewhere.
    fn to_bytes(&self, py: Python<'_>) -> PyResult<std::borrow::Cow<'static, [u8]>> {
        let accumulator = self.get()?;
        Ok(py.detach(|| each!(&accumulator, it => it.to_bytes())).into())
    }

    /// For pickle.
    #[expect(clippy::type_complexity, reason = "what pickle wants: a function and its arguments")]
    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (std::borrow::Cow<'static, [u8]>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?.unbind(), (self.to_bytes(py)?,)))
    }

    /// Rows taken in so far.
    #[getter]
    fn n(&self) -> PyResult<u64> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(each!(inner.as_ref().ok_or_else(busy)?, it => it.n()))
    }

    /// Takes in rows with their labels; messages count them from `first_row`. After an error it is of no more use.
    #[pyo3(signature = (logits, labels, u=None, *, groups=None, weights=None, n_threads=None, first_row=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn extend<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyUntypedArray>,
        labels: PyReadonlyArray1<'py, u32>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: Option<usize>,
        first_row: usize,
    ) -> PyResult<()> {
        let view = AnyView::of(logits)?;
        let labels = one_per_row(&view, labels, "labels")?;
        let beside = OwnedBeside::of(&view, u, groups, weights)?;
        let mut whole = self.take()?;
        let before = each!(&whole, it => it.n());
        let extended = with_view!(view, view => run(py, n_threads, |stop| {
            let rows = Rows { view, beside: beside.borrow(), first_row };
            rows.each(stop, |first, logits| {
                let labelled = logits.labelled(&labels[first..first + logits.len()]);
                let labelled = labelled.map_err(|error| error.offset_rows((first_row + first) as u64))?;
                whole.extend(labelled).map_err(|error| match error.row() {
                    Some(row) => error.at_row(first_row as u64 + row.saturating_sub(before)),
                    None => error,
                })
            })?;
            Ok(whole)
        }))?;
        self.put(extended);
        Ok(())
    }

    /// Takes in what another of its kind took in.
    fn merge(&self, other: &Self) -> PyResult<()> {
        let theirs = other.get()?;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.as_mut().ok_or_else(busy)?.merge(theirs).map_err(value_error)
    }

    /// Takes the rows that a calibrator took in into a search, by the scores that it keeps.
    fn extend_scored(&self, py: Python<'_>, rows: &Self) -> PyResult<()> {
        let (Accumulator::Search(mut search), Accumulator::Calibrating(Calibrating::All(calibrator))) =
            (self.take()?, rows.take()?)
        else {
            return Err(wrong("search, or no calibrator's scores"));
        };
        let extended = py.detach(|| search.extend_scored(&calibrator).map(|()| search));
        rows.put(Accumulator::Calibrating(Calibrating::All(calibrator)));
        self.put(Accumulator::Search(extended.map_err(value_error)?));
        Ok(())
    }

    /// What the next pass over the same rows begins with: after scores of tuning rows the sizes of their sets, and in a
    /// search the next part to look into, or None where the thresholds are found.
    fn next_pass(&self) -> PyResult<Option<Self>> {
        let next = match self.get()? {
            Accumulator::Tuner(tuner) => Accumulator::Sizes(tuner.finish().map_err(value_error)?),
            Accumulator::Search(search) => match search.finish_pass().map_err(value_error)? {
                SearchStep::Again(next) => Accumulator::Search(next),
                SearchStep::Done(_) => return Ok(None),
            },
            _ => return Err(wrong("passes")),
        };
        Ok(Some(Self::of(next)))
    }

    /// What the next pass begins with where all rows choose: after their scores the pairs around each threshold.
    fn pairs_pass(&self) -> PyResult<Self> {
        let Accumulator::Tuner(tuner) = self.get()? else { return Err(wrong("candidates")) };
        Ok(Self::of(Accumulator::Pairs(tuner.finish_selecting().map_err(value_error)?)))
    }

    /// The calibration by all rows, whose pairs were counted.
    #[pyo3(signature = (*, names=None))]
    fn selected(&self, names: Option<Vec<String>>) -> PyResult<Calibration> {
        let Accumulator::Pairs(pairs) = self.get()? else { return Err(wrong("pairs")) };
        let (selection, wins) = pairs.finish().map_err(value_error)?;
        let record = SelectionRecord { selection, wins: Some(wins) };
        Ok(Calibration { model: Model::of_selection(record, names_of(names)?) })
    }

    /// The score with the smallest sets.
    fn chosen(&self) -> PyResult<Score> {
        let Accumulator::Sizes(sizes) = self.get()? else { return Err(wrong("a choice")) };
        Ok(Score { spec: *sizes.finish().map_err(value_error)?.score() })
    }

    /// The calibration of a search that has found its thresholds.
    #[pyo3(signature = (classes, *, names=None, masked="allowed"))]
    fn thresholds(&self, classes: usize, names: Option<Vec<String>>, masked: &str) -> PyResult<Calibration> {
        let Accumulator::Search(search) = self.get()? else { return Err(wrong("thresholds")) };
        let SearchStep::Done(found) = search.finish_pass().map_err(value_error)? else {
            return Err(PyValueError::new_err("the rows are wanted once more"));
        };
        let model = Model::of_thresholds(found, classes, masked_named(masked)?, names_of(names)?);
        Ok(Calibration { model })
    }

    /// The calibration of the chosen score by other rows than those that chose it.
    #[pyo3(signature = (calibrating, alpha, *, names=None))]
    fn tuned(&self, calibrating: &Self, alpha: &str, names: Option<Vec<String>>) -> PyResult<Calibration> {
        let (Accumulator::Sizes(sizes), Accumulator::Calibrating(calibrating)) =
            (self.get()?, calibrating.get()?)
        else {
            return Err(wrong("a choice and its calibration"));
        };
        let (alpha, n, rows): (Alpha, _, _) = (alpha_of(alpha)?, sizes.n(), sizes.rows().clone());
        let choice = sizes.finish().map_err(value_error)?;
        let record = TuningRecord { tuning: Tuning::Valid, alpha, choice, n, rows };
        let mut model = calibrating.model(&[alpha], names_of(names)?).map_err(value_error)?;
        model.tuning = Some(record);
        Ok(Calibration { model })
    }
}

fn wrong(wanted: &str) -> PyErr {
    PyValueError::new_err(format!("this accumulator has no {wanted}"))
}
