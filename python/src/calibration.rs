//! `Calibration`: a calibrated score with its levels, as a calibration file keeps it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use conformax::{Alpha, Remember, RowSet, ScoreSpec, SortedScores};
use conformax_io::{ClassNames, Input, Model, Overwrite};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::law::{alpha_of, alphas_of};
use crate::predict::{masked_name, masked_named};
use crate::score::{Score, one_per_row};
use crate::work::{Rows, run};

/// A score, the scores it gave the calibration rows, and thresholds at some levels.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Calibration {
    pub model: Model,
}

/// How tuning went: the index of the choice, the tuning rows, and each candidate with its threshold and mean size.
type Record = (usize, u64, Vec<(Score, f64, f64)>);

#[pymethods]
impl Calibration {
    /// Of scores that this very score gave elsewhere: on a GPU, say. `rows` are the fingerprints of the calibration rows.
    #[staticmethod]
    #[pyo3(signature = (score, scores, *, classes, alphas, names=None, masked="allowed", rows=None))]
    fn from_scores(
        score: &Score,
        scores: PyReadonlyArray1<'_, f64>,
        classes: usize,
        alphas: Vec<String>,
        names: Option<Vec<String>>,
        masked: &str,
        rows: Option<PyReadonlyArray1<'_, u64>>,
    ) -> PyResult<Self> {
        let scores = SortedScores::new(scores.as_array().to_vec()).map_err(value_error)?;
        let calibration =
            conformax::Calibration::from_scores(score.spec, classes, scores).map_err(value_error)?;
        let calibration = calibration.with_masked(masked_named(masked)?);
        let mut model = Model::new(&calibration, &alphas_of(&alphas)?, names_of(names)?);
        model.calibrating_rows =
            rows.map_or_else(RowSet::default, |rows| RowSet::new(rows.as_array().to_vec()));
        Ok(Self { model })
    }

    /// The score.
    #[getter]
    fn score(&self) -> Score {
        Score { spec: self.model.score }
    }

    /// The calibration scores, ascending; None where the file left them out.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.scores.as_ref().map(|scores| PyArray1::from_slice(py, scores.as_slice()))
    }

    /// Number of calibration rows.
    #[getter]
    fn n(&self) -> u64 {
        self.model.n
    }

    /// Number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.model.classes
    }

    /// Names of the classes, where known.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.model.names.as_ref().map(|names| names.as_slice().to_vec())
    }

    /// The levels that are kept in the file.
    #[getter]
    fn alphas(&self) -> Vec<f64> {
        self.model.levels.iter().map(|kept| kept.level.alpha().value()).collect()
    }

    /// "allowed" or "never": whether a label of logit −∞ may be in a set.
    #[getter]
    fn masked(&self) -> &'static str {
        masked_name(self.model.masked)
    }

    /// How tuning went: the index of the choice, the tuning rows, and each candidate's score, threshold and mean size.
    #[getter]
    fn tuning(&self) -> Option<Record> {
        self.model.tuning.as_ref().map(|record| {
            let candidates = record.choice.candidates().iter();
            let candidates = candidates.map(|it| (Score { spec: it.score }, it.threshold, it.average_size));
            (record.choice.chosen(), record.n, candidates.collect())
        })
    }

    /// What the numbers were that calibrated: "logits", "probabilities" or "log_probabilities".
    #[getter]
    fn input(&self) -> &'static str {
        self.model.input.name()
    }

    /// Where coverage on so many rows lies at a level with this probability, by the exact law; None where there is none.
    fn coverage_interval(&self, alpha: &str, rows: u64, probability: f64) -> PyResult<Option<(f64, f64)>> {
        let kept = self
            .model
            .level(alpha_of(alpha)?)
            .map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        let law = kept.thresholds().law(kept.level);
        Ok((self.model.law_holds() && rows > 0).then(|| law.interval_of_rows(probability, rows)))
    }

    /// Whether the rows that calibrated had no part in tuning, so that coverage follows its law.
    #[getter]
    fn valid(&self) -> bool {
        self.model.law_holds()
    }

    /// Threshold and rank at a level; the rank is None where there are too few rows.
    fn level(&self, alpha: &str) -> PyResult<(f64, Option<u64>)> {
        let level = self
            .model
            .level(alpha_of(alpha)?)
            .map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok((level.threshold, level.level.rank()))
    }

    /// The same with other levels to keep.
    fn with_levels(&self, alphas: Vec<String>) -> PyResult<Self> {
        let level = |alpha: Alpha| self.model.level(alpha);
        let levels: Result<Vec<_>, _> = alphas_of(&alphas)?.into_iter().map(level).collect();
        let levels = levels.map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok(Self { model: Model { levels, ..self.model.clone() } })
    }

    /// What predicting at these levels takes and no more: without scores, rows and the record of tuning.
    fn for_prediction(&self, alphas: Vec<String>) -> PyResult<Self> {
        let model = self.with_levels(alphas)?.model;
        Ok(Self { model: Model { scores: None, calibrating_rows: RowSet::default(), tuning: None, ..model } })
    }

    /// The calibration file as text.
    fn to_json(&self) -> PyResult<String> {
        self.model.to_json().map_err(|problem| PyValueError::new_err(problem.to_string()))
    }

    /// Reads a calibration file from text.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let model = Model::from_json(text).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok(Self { model })
    }

    /// Writes a calibration file, whole or not at all.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        // What is wrong with the model is a `ValueError`; what is left is the disk's.
        self.to_json()?;
        py.detach(|| self.model.write(&path, Overwrite::Replace))
            .map_err(|error| PyOSError::new_err(error.to_string()))
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
        let calibration = self.model.calibration().ok_or_else(|| {
            PyValueError::new_err("p-values need the calibration scores, which were left out of the file")
        })?;
        let p = with_view!(view, view => run(py, n_threads, |stop| {
            let rows = Rows { view, u: u.as_deref(), first_row };
            let classes = rows.view.classes();
            let mut out = vec![0.0; rows.view.rows() * classes];
            rows.fill(stop, (classes, classes.div_ceil(64)), &mut out, |_, logits, out| {
                let p_values = calibration.p_values(logits)?;
                out.iter_mut().zip(p_values).for_each(|(out, p)| *out = p.value());
                Ok(())
            })?;
            Ok(out)
        }))?;
        Ok(PyArray1::from_vec(py, p))
    }
}

/// Labelled rows in, a calibration out: the core's accumulator.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Calibrator {
    /// Frozen like every object here; a call takes it for as long as it adds rows.
    inner: Mutex<conformax::Calibrator<ScoreSpec>>,
}

#[pymethods]
impl Calibrator {
    #[new]
    #[pyo3(signature = (score, classes, *, masked="allowed"))]
    fn new(score: &Score, classes: usize, masked: &str) -> PyResult<Self> {
        let calibrator = conformax::Calibrator::new(score.spec, classes).map_err(value_error)?;
        let calibrator = calibrator.with_masked(masked_named(masked)?).remembering(Remember::Rows);
        Ok(Self { inner: Mutex::new(calibrator) })
    }

    /// Takes in rows with their labels. An error names the row in the whole and leaves everything as it was.
    #[pyo3(signature = (logits, labels, u=None, *, n_threads=None))]
    fn extend<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyUntypedArray>,
        labels: PyReadonlyArray1<'py, u32>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: Option<usize>,
    ) -> PyResult<()> {
        let view = AnyView::of(logits)?;
        let labels = one_per_row(&view, labels, "labels")?;
        let u = u.map(|u| one_per_row(&view, u, "uniform draws")).transpose()?;
        let mut whole = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let extended = with_view!(view, view => run(py, n_threads, |stop| {
            let rows = Rows { view, u: u.as_deref(), first_row: whole.n() as usize };
            rows.each(stop, |first, logits| {
                whole.extend(logits.labelled(&labels[first..first + logits.len()])?)
            })?;
            Ok(whole)
        }))?;
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = extended;
        Ok(())
    }

    /// Takes in what another took in.
    fn merge(&self, other: &Self) -> PyResult<()> {
        let other = other.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).merge(other).map_err(value_error)
    }

    /// Rows taken in so far.
    #[getter]
    fn n(&self) -> u64 {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).n()
    }

    /// As bytes that `from_bytes` reads, here or elsewhere.
    fn to_bytes(&self) -> std::borrow::Cow<'static, [u8]> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).to_bytes().into()
    }

    /// From the bytes that `to_bytes` made.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let calibrator = conformax::Calibrator::from_bytes(bytes).map_err(value_error)?;
        Ok(Self { inner: Mutex::new(calibrator) })
    }

    /// The calibration of all rows taken in, with thresholds at these levels.
    #[pyo3(signature = (alphas, *, names=None, input="logits"))]
    fn finish(&self, alphas: Vec<String>, names: Option<Vec<String>>, input: &str) -> PyResult<Calibration> {
        let calibrator = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let calibration = calibrator.finish().map_err(value_error)?;
        let mut model = Model::new(&calibration, &alphas_of(&alphas)?, names_of(names)?);
        model.input = Input::named(input)
            .ok_or_else(|| PyValueError::new_err(format!("there is no input {input:?}")))?;
        Ok(Calibration { model })
    }
}

pub fn names_of(names: Option<Vec<String>>) -> PyResult<Option<ClassNames>> {
    names.map(ClassNames::new).transpose().map_err(|problem| PyValueError::new_err(problem.to_string()))
}
