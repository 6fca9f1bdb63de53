//! Sets and true labels become the core's metrics.

use std::sync::{Mutex, PoisonError};

use conformax::{Alpha, Metrics, PredictionSets, Scheme, ScoreSpec, Strata, Taxonomy, Verdict};
use conformax_io::{KeptLevel, Model};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calibration::Calibration;
use crate::error::value_error;
use crate::extend::{Given, extend};
use crate::law::{alpha_of, alphas_of};
use crate::predict::{empty_named, masked_named};

/// Of intervals, as the command prints them.
const CONFIDENCE: f64 = 0.95;

/// Every metric of packed sets against the true labels. Undefined ones are None, or NaN inside arrays.
#[pyfunction]
#[pyo3(signature = (classes, offsets, labels, truth, alpha, strata=None))]
pub fn evaluate<'py>(
    py: Python<'py>,
    classes: usize,
    offsets: PyReadonlyArray1<'py, i64>,
    labels: PyReadonlyArray1<'py, u32>,
    truth: PyReadonlyArray1<'py, u32>,
    alpha: &str,
    strata: Option<Vec<u64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (alpha, strata) = (alpha_of(alpha)?, strata_of(strata)?);
    let (sets, truth) = (sets_of(classes, &offsets, &labels)?, truth.as_array().to_vec());
    let metrics = py.detach(|| conformax::evaluate(&sets, &truth, alpha, &strata)).map_err(value_error)?;
    as_dict(py, &metrics)
}

fn sets_of(
    classes: usize,
    offsets: &PyReadonlyArray1<'_, i64>,
    labels: &PyReadonlyArray1<'_, u32>,
) -> PyResult<PredictionSets> {
    let offsets: Option<Vec<usize>> =
        offsets.as_array().iter().map(|place| (*place).try_into().ok()).collect();
    let offsets = offsets.ok_or_else(|| PyValueError::new_err("offsets must not be negative"))?;
    PredictionSets::from_parts(classes, offsets, labels.as_array().to_vec()).map_err(value_error)
}

fn as_dict<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyDict>> {
    let strata = PyList::empty(py);
    for stratum in &metrics.strata {
        let entry = PyDict::new(py);
        entry.set_item("from", stratum.from)?;
        entry.set_item("to", stratum.to)?;
        entry.set_item("n", stratum.n)?;
        entry.set_item("coverage", stratum.coverage)?;
        strata.append(entry)?;
    }
    let class_coverage = metrics.class_coverage.iter().map(|coverage| coverage.unwrap_or(f64::NAN)).collect();
    let out = PyDict::new(py);
    out.set_item("n", metrics.n)?;
    out.set_item("alpha", metrics.alpha.value())?;
    out.set_item("coverage", metrics.coverage)?;
    out.set_item("average_size", metrics.average_size)?;
    out.set_item("singleton_ratio", metrics.singleton_ratio)?;
    out.set_item("singleton_coverage", metrics.singleton_coverage)?;
    out.set_item("empty_ratio", metrics.empty_ratio)?;
    out.set_item("sscv", metrics.sscv)?;
    out.set_item("covgap", metrics.covgap)?;
    out.set_item("strata", strata)?;
    out.set_item("class_coverage", PyArray1::from_vec(py, class_coverage))?;
    Ok(out)
}

/// Labelled rows in, counts of how sets fared out: the core's accumulator, for the levels of a calibration.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Evaluator {
    inner: Mutex<conformax::Evaluator<ScoreSpec>>,
    model: Model,
    levels: Vec<KeptLevel>,
    /// Of the groups that rows are counted by.
    names: Vec<String>,
}

#[pymethods]
impl Evaluator {
    #[new]
    #[pyo3(signature = (calibration, alphas, *, masked="allowed", empty="allowed", by=None, groups=None))]
    fn new(
        calibration: &Calibration,
        alphas: Vec<String>,
        masked: &str,
        empty: &str,
        by: Option<&str>,
        groups: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let (masked, empty) = (masked_named(masked)?, empty_named(empty)?);
        let model = calibration.model.clone();
        let level =
            |alpha: Alpha| model.level(alpha).map_err(|problem| PyValueError::new_err(problem.to_string()));
        let levels = alphas_of(&alphas)?.into_iter().map(level).collect::<PyResult<Vec<_>>>()?;
        let predictors =
            levels.iter().map(|kept| model.predictor(kept).with_masked(masked).with_empty(empty));
        let mut evaluator =
            conformax::Evaluator::new(predictors.collect(), model.classes).map_err(value_error)?;
        let mut names = Vec::new();
        if let Some(by) = by {
            let taxonomy = match (by, &model.scheme) {
                ("class", _) => {
                    let name = |label: usize| match &model.names {
                        Some(names) => names.as_slice()[label].clone(),
                        None => label.to_string(),
                    };
                    names = (0..model.classes).map(name).collect();
                    Taxonomy::Label
                }
                ("cluster", Scheme::Groups(taxonomy @ Taxonomy::Cluster(_))) => {
                    names = model.group_names();
                    taxonomy.clone()
                }
                ("group", _) => {
                    names = groups.unwrap_or_else(|| model.beside.groups.clone());
                    Taxonomy::Group(names.len())
                }
                _ => return Err(PyValueError::new_err(format!("rows cannot be counted by {by:?}"))),
            };
            evaluator = evaluator.by(taxonomy).map_err(value_error)?;
        }
        if let Scheme::Risk(loss) = &model.scheme {
            evaluator = evaluator.losing(loss.clone()).map_err(value_error)?;
        }
        Ok(Self { names, inner: Mutex::new(evaluator.watching_for(model.rows())), model, levels })
    }

    /// Takes in rows with their true labels.
    #[pyo3(signature = (logits, labels, u=None, *, groups=None, weights=None, n_threads=None))]
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
    ) -> PyResult<()> {
        extend(py, &self.inner, Given { logits, labels, u, groups, weights }, n_threads)
    }

    /// Takes in rows whose sets were found elsewhere: offsets and labels of each level, true labels and fingerprints.
    #[pyo3(signature = (sets, labels, fingerprints, *, groups=None))]
    fn extend_with_sets<'py>(
        &self,
        py: Python<'py>,
        sets: Vec<(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>)>,
        labels: PyReadonlyArray1<'py, u32>,
        fingerprints: PyReadonlyArray1<'py, u64>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
    ) -> PyResult<()> {
        let of_level = |(offsets, labels): &(_, _)| sets_of(self.model.classes, offsets, labels);
        let sets = sets.iter().map(of_level).collect::<PyResult<Vec<_>>>()?;
        let (labels, fingerprints) = (labels.as_array().to_vec(), fingerprints.as_array().to_vec());
        let groups = groups.map(|groups| groups.as_array().to_vec());
        py.detach(|| {
            let mut whole = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            whole.extend_with_sets(&sets, &labels, groups.as_deref(), &fingerprints)
        })
        .map_err(value_error)
    }

    /// As bytes that `Partial` reads, to take in rows elsewhere.
    fn to_bytes(&self) -> std::borrow::Cow<'static, [u8]> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).to_bytes().into()
    }

    /// Takes in what was taken in elsewhere, from its bytes.
    fn merge_bytes(&self, bytes: &[u8]) -> PyResult<()> {
        let other = conformax::Evaluator::from_bytes(bytes).map_err(value_error)?;
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).merge(other).map_err(value_error)
    }

    /// The metrics of each level, and of the rows that had a part in the model: how many could be looked up, how many
    /// had, the first of them, and whether they are so many that it is the same data.
    #[pyo3(signature = (strata=None))]
    #[expect(clippy::type_complexity, reason = "metrics, and four facts")]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        strata: Option<Vec<u64>>,
    ) -> PyResult<(Vec<Bound<'py, PyDict>>, (u64, u64, Option<u64>, bool))> {
        let strata = strata_of(strata)?;
        let evaluator = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let evaluated = evaluator.finish().map_err(value_error)?;
        let found = self.levels.iter().zip(&evaluated.tallies).enumerate().map(|(place, (kept, tally))| {
            let metrics = tally.metrics(kept.alpha(), &strata).map_err(value_error)?;
            let out = as_dict(py, &metrics)?;
            out.set_item("threshold", kept.threshold())?;
            let law = kept.law().filter(|_| self.model.law_holds());
            let interval = law.map(|law| law.interval_of_rows(CONFIDENCE, metrics.n)).transpose();
            out.set_item("coverage_interval", interval.map_err(value_error)?)?;
            let verdict = kept
                .level()
                .map(|level| verdict_name(tally.verdict(level, &kept.thresholds, self.model.law_is(kept))));
            out.set_item("verdict", verdict)?;
            out.set_item("mean_loss", evaluated.losses.get(place))?;
            if let Some((taxonomy, groups)) = evaluated.taxonomy.as_ref().zip(evaluated.groups.get(place)) {
                let by_group = PyDict::new(py);
                // Rows of a model by group are counted by its own groups alone.
                let column = self.model.beside.column.as_deref();
                let verdicts = self.model.group_verdicts(kept, (taxonomy, column), groups);
                let counted = self.names.iter().zip(groups).zip(verdicts);
                let present = groups.iter().filter(|tally| tally.n > 0).count();
                for ((name, tally), verdict) in counted.filter(|((_, tally), _)| tally.n > 0) {
                    let entry = PyDict::new(py);
                    entry.set_item("n", tally.n)?;
                    entry.set_item("coverage", tally.coverage())?;
                    entry.set_item("average_size", tally.average_size())?;
                    entry.set_item("interval", tally.interval(CONFIDENCE, present))?;
                    let verdict = verdict.filter(|_| self.model.law_holds()).map(verdict_name);
                    entry.set_item("verdict", verdict)?;
                    by_group.set_item(name, entry)?;
                }
                out.set_item("groups", by_group)?;
            }
            Ok(out)
        });
        let seen = evaluated.seen;
        let first = seen.first.filter(|_| seen.are_no_chance());
        let facts = (seen.rows, seen.seen, first, seen.are_the_same_data());
        Ok((found.collect::<PyResult<_>>()?, facts))
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TooLow(_) => "too low",
        Verdict::AsPromised => "as promised",
        Verdict::TooHigh(_) => "too high",
    }
}

fn strata_of(starts: Option<Vec<u64>>) -> PyResult<Strata> {
    starts.map_or_else(|| Ok(Strata::default()), |starts| Strata::new(&starts).map_err(value_error))
}
