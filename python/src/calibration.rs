//! `Calibration`: a calibrated score with its levels, as a calibration file keeps it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use conformax::{
    Alpha, Choose, Dealer, Evidence, Level, Loss, Prior, Remember, RowSet, Scheme, SortedScores, Taxonomy,
    Thresholds,
};
use conformax_io::{Beside, Calibrating, ClassNames, Input, KeptLevel, Model, Overwrite};
use numpy::{PyArray1, PyReadonlyArray1, PyUntypedArray};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{AnyView, with_view};
use crate::error::value_error;
use crate::extend::{Given, extend};
use crate::law::{alpha_of, alphas_of};
use crate::predict::{Packed, empty_named, masked_name, masked_named, probabilities_of, sets_of};
use crate::probabilities::{Held, within_sets};
use crate::score::{OwnedBeside, Score};
use crate::work::{Rows, run};

/// A score, the scores it gave the calibration rows, and thresholds at some levels.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Calibration {
    pub model: Model,
}

/// How tuning went: the index of the choice, the tuning rows, and each candidate with its threshold and mean size.
type Record = (usize, u64, Vec<(Score, f64, f64)>);

/// How all rows chose: the index of the leader, and each candidate with its threshold, its mean size on these rows,
/// whether it can win, and how many true labels it decides.
type Contest = (usize, Vec<(Score, f64, f64, bool, Option<u64>)>);

#[pymethods]
impl Calibration {
    /// Of scores that this very score gave elsewhere: on a GPU, say. `rows` are the fingerprints of the calibration
    /// rows.
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

    /// The calibration scores, ascending, of all groups together; None where the file left them out.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let mut scores: Vec<f64> = match self.model.evidence.as_ref()? {
            Evidence::Groups(groups) => {
                let rest = self.model.n == groups.last().map_or(0, SortedScores::n) && groups.len() > 1;
                // The rows of all stand last where some classes are in no cluster.
                let groups = if rest { &groups[groups.len() - 1..] } else { &groups[..] };
                groups.iter().flat_map(|scores| scores.as_slice()).copied().collect()
            }
            Evidence::Weighted(scores) => scores.scores().to_vec(),
            Evidence::Losses(steps) => steps.steps().iter().map(|(score, _)| *score).collect(),
            _ => return None,
        };
        scores.sort_unstable_by(f64::total_cmp);
        Some(PyArray1::from_vec(py, scores))
    }

    /// What is promised, in a sentence.
    #[getter]
    fn promise(&self) -> String {
        self.model.promise()
    }

    /// The same with what it says nothing about.
    #[getter]
    fn promise_and_limits(&self) -> String {
        self.model.promise_and_limits()
    }

    /// What thresholds go by: "all", "class", "cluster", "group", "row_weight", "label_weight", "severity" or "cost".
    #[getter]
    fn by(&self) -> &'static str {
        match &self.model.scheme {
            Scheme::Groups(Taxonomy::All) => "all",
            Scheme::Groups(Taxonomy::Label) => "class",
            Scheme::Groups(Taxonomy::Cluster(_)) => "cluster",
            Scheme::Groups(Taxonomy::Group(_)) => "group",
            Scheme::RowWeights => "row_weight",
            Scheme::LabelWeights(_) => "label_weight",
            Scheme::Risk(loss) if loss.is_cost() => "cost",
            Scheme::Risk(_) => "severity",
        }
    }

    /// The cluster of each class, None for those of none; None where thresholds do not go by clusters.
    #[getter]
    fn clusters(&self) -> Option<Vec<Option<u32>>> {
        match &self.model.scheme {
            Scheme::Groups(Taxonomy::Cluster(clusters)) => Some(clusters.clone()),
            _ => None,
        }
    }

    /// What a miss or a set costs, or how labels weigh, by the name of the parameter.
    #[getter]
    fn losses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        match &self.model.scheme {
            Scheme::LabelWeights(weights) => found.set_item("label_weights", weights)?,
            Scheme::Risk(loss) if loss.is_cost() => {
                let rows: Vec<Vec<f64>> = loss.values().chunks(loss.classes()).map(<[f64]>::to_vec).collect();
                found.set_item("cost", rows)?;
            }
            Scheme::Risk(loss) => found.set_item("severity", loss.values())?,
            Scheme::Groups(_) | Scheme::RowWeights => {}
        }
        Ok(found)
    }

    /// Names of the groups of rows, in the order of their numbers.
    #[getter]
    fn group_names(&self) -> Vec<String> {
        self.model.beside.groups.clone()
    }

    /// The column that groups or weights come from, where it is known.
    #[getter]
    fn column(&self) -> Option<String> {
        self.model.beside.column.clone()
    }

    /// Names of what thresholds differ by: classes, clusters or groups.
    #[getter]
    fn threshold_names(&self) -> Vec<String> {
        self.model.group_names()
    }

    /// The largest ranks of the labels, where they are limited.
    #[getter]
    fn ranks(&self) -> Option<Vec<u32>> {
        self.model.ranks.as_ref().map(|ranks| ranks.as_slice().to_vec())
    }

    /// The shares of the classes that are taken out of the logits, where they are.
    #[getter]
    fn prior(&self) -> Option<Vec<f64>> {
        self.model.prior.as_ref().map(|prior| prior.as_slice().to_vec())
    }

    /// The probability over calibration rows that coverage may fall short, where it is promised with one.
    #[getter]
    fn delta(&self) -> Option<f64> {
        self.model.delta.map(Alpha::value)
    }

    /// For each group that too few rows cannot bring to a level: its name, its rows, and how many it needs.
    fn too_few(&self, alpha: &str) -> PyResult<Vec<(String, u64, u64)>> {
        let kept = self.kept(alpha)?;
        let names = match kept.ranked_level() {
            Some(_) => vec![String::new()],
            None => self.model.group_names(),
        };
        let levels = kept.ranked_level().into_iter().chain(kept.group_levels().iter().copied());
        let few = names.into_iter().zip(levels).filter(|(_, level)| level.rank().is_none());
        Ok(few.map(|(name, level): (String, Level)| (name, level.n(), level.rows_needed())).collect())
    }

    /// For each group whose threshold impossible true labels make infinite: its name, how many there are, and its rows.
    fn impossible(&self, alpha: &str) -> PyResult<Vec<(String, u64, u64)>> {
        let found = self.model.impossible(&self.kept(alpha)?);
        Ok(found.into_iter().map(|it| (it.group.unwrap_or_default(), it.labels, it.rows)).collect())
    }

    /// The sets at each level: a list of (offsets, labels, the logits of these labels).
    #[pyo3(signature = (
        alphas, logits, u=None, *, groups=None, weights=None, masked="allowed", empty="allowed", n_threads=None, first_row=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        alphas: Vec<String>,
        logits: &Bound<'py, PyUntypedArray>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        masked: &str,
        empty: &str,
        n_threads: Option<usize>,
        first_row: usize,
    ) -> PyResult<Vec<Packed<'py>>> {
        let (masked, empty) = (masked_named(masked)?, empty_named(empty)?);
        let model = |alpha: &String| {
            Ok(self.model.predictor(&self.kept(alpha)?).with_masked(masked).with_empty(empty))
        };
        let models = alphas.iter().map(model).collect::<PyResult<Vec<_>>>()?;
        let view = AnyView::of(logits)?;
        let beside = OwnedBeside::of(&view, u, groups, weights)?;
        sets_of(py, &models, view, &beside, n_threads, first_row)
    }

    /// The sets at a level with the probabilities of their labels: offsets, labels, probabilities.
    #[pyo3(signature = (
        alpha, logits, u=None, *, groups=None, weights=None, masked="allowed", empty="allowed", n_threads=None, first_row=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn predict_probabilities<'py>(
        &self,
        py: Python<'py>,
        alpha: &str,
        logits: &Bound<'py, PyUntypedArray>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        masked: &str,
        empty: &str,
        n_threads: Option<usize>,
        first_row: usize,
    ) -> PyResult<Packed<'py>> {
        let (masked, empty) = (masked_named(masked)?, empty_named(empty)?);
        let model = self.model.predictor(&self.kept(alpha)?).with_masked(masked).with_empty(empty);
        let view = AnyView::of(logits)?;
        let beside = OwnedBeside::of(&view, u, groups, weights)?;
        probabilities_of(py, &model, view, &beside, n_threads, first_row)
    }

    /// The probabilities of the labels of packed sets at a level, from the logits of these labels.
    #[pyo3(signature = (alpha, offsets, logits, *, groups=None, weights=None))]
    fn set_probabilities<'py>(
        &self,
        py: Python<'py>,
        alpha: &str,
        offsets: PyReadonlyArray1<'py, i64>,
        logits: Held<'py>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let model = self.model.predictor(&self.kept(alpha)?);
        let (groups, weights) =
            (groups.map(|it| it.as_array().to_vec()), weights.map(|it| it.as_array().to_vec()));
        within_sets(py, &model, offsets, logits, groups, weights)
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
        self.model.levels.iter().map(|kept| kept.alpha().value()).collect()
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

    /// How all rows chose, where they did: the index of the leader, and each candidate's score, threshold, mean size,
    /// whether it can win and how many true labels it decides.
    #[getter]
    fn selection(&self) -> Option<Contest> {
        self.model.selection.as_ref().map(|record| {
            let selection = &record.selection;
            let rivals = selection.rivals().iter().zip(selection.alive()).enumerate();
            let rivals = rivals.map(|(place, (rival, alive))| {
                let size = rival.at_high as f64 / selection.n() as f64;
                let wins = record.wins.as_ref().map(|wins| wins[place]);
                (Score { spec: rival.score }, rival.high, size, *alive, wins)
            });
            (selection.leader(), rivals.collect())
        })
    }

    /// Whether several candidates choose among themselves, so that no one threshold gives the sets.
    #[getter]
    fn is_a_choice(&self) -> bool {
        self.model.levels.iter().any(|kept| self.model.predictor(kept).is_a_choice())
    }

    /// Why there can be no p-values, where what is promised has none.
    #[getter]
    fn no_p_values(&self) -> Option<&'static str> {
        self.model.no_p_values()
    }

    /// What the numbers were that calibrated: "logits", "probabilities" or "log_probabilities".
    #[getter]
    fn input(&self) -> &'static str {
        self.model.input.name()
    }

    /// Where coverage on so many rows lies at a level with this probability, by the exact law; None where there is
    /// none.
    fn coverage_interval(&self, alpha: &str, rows: u64, probability: f64) -> PyResult<Option<(f64, f64)>> {
        let law = self.kept(alpha)?.law().filter(|_| self.model.law_holds() && rows > 0);
        law.map(|law| law.interval_of_rows(probability, rows)).transpose().map_err(value_error)
    }

    /// Whether the rows that calibrated had no part in tuning, so that coverage follows its law.
    #[getter]
    fn valid(&self) -> bool {
        self.model.law_holds()
    }

    /// Threshold and rank at a level, where all rows share one; the rank is None where there are too few rows.
    fn level(&self, alpha: &str) -> PyResult<(Option<f64>, Option<u64>)> {
        let kept = self.kept(alpha)?;
        Ok((kept.threshold(), kept.ranked_level().and_then(Level::rank)))
    }

    /// The thresholds at a level: one for all rows, or one per label or group; none where they go by weight.
    fn thresholds(&self, alpha: &str) -> PyResult<(Option<f64>, Vec<f64>)> {
        Ok(match self.kept(alpha)?.thresholds {
            Thresholds::One(threshold) => (Some(threshold), Vec::new()),
            Thresholds::PerLabel(thresholds) | Thresholds::PerGroup(thresholds) => (None, thresholds),
            Thresholds::ByWeight(_) => (None, Vec::new()),
        })
    }

    /// The same with other levels to keep.
    fn with_levels(&self, alphas: Vec<String>) -> PyResult<Self> {
        let level = |alpha: Alpha| self.model.level(alpha);
        let levels: Result<Vec<_>, _> = alphas_of(&alphas)?.into_iter().map(level).collect();
        let mut model = self.model.clone();
        model.levels = levels.map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        Ok(Self { model })
    }

    /// What predicting at these levels takes and no more: without scores, rows and the record of tuning.
    fn for_prediction(&self, alphas: Vec<String>) -> PyResult<Self> {
        let mut model = self.with_levels(alphas)?.model;
        // Thresholds by weight are looked up among the scores.
        if model.scheme != Scheme::RowWeights {
            model.evidence = None;
        }
        (model.calibrating_rows, model.choosing_rows, model.tuning) = (RowSet::default(), None, None);
        Ok(Self { model })
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

    /// Reads the bytes of a calibration file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let model = Model::from_bytes(bytes).map_err(|problem| PyValueError::new_err(problem.to_string()))?;
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
    #[pyo3(signature = (logits, u=None, *, groups=None, weights=None, n_threads=None, first_row=0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn p_values<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyUntypedArray>,
        u: Option<PyReadonlyArray1<'py, f64>>,
        groups: Option<PyReadonlyArray1<'py, u32>>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        n_threads: Option<usize>,
        first_row: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let view = AnyView::of(logits)?;
        let beside = OwnedBeside::of(&view, u, groups, weights)?;
        if let Some(why) = self.model.no_p_values() {
            return Err(PyValueError::new_err(format!("this classifier {why}")));
        }
        let calibration = self.model.calibration().ok_or_else(|| {
            PyValueError::new_err("p-values need the calibration scores, which were left out of the file")
        })?;
        let p = with_view!(view, view => run(py, n_threads, |stop| {
            let rows = Rows { view, beside: beside.borrow(), first_row };
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

impl Calibration {
    fn kept(&self, alpha: &str) -> PyResult<KeptLevel> {
        self.model.level(alpha_of(alpha)?).map_err(|problem| PyValueError::new_err(problem.to_string()))
    }
}

/// How thresholds follow from calibration rows.
#[pyclass(frozen, from_py_object, module = "conformax._conformax")]
#[derive(Clone, Default)]
pub struct Rule {
    scheme: Scheme,
    /// What some of the rows choose that then do not calibrate.
    choose: Option<Choose>,
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(signature = (
        by="all", *, clusters=None, groups=0, label_weights=None, severity=None, cost=None, count=None
    ))]
    fn new(
        by: &str,
        clusters: Option<Vec<Option<u32>>>,
        groups: usize,
        label_weights: Option<Vec<f64>>,
        severity: Option<Vec<f64>>,
        cost: Option<Vec<Vec<f64>>>,
        count: Option<usize>,
    ) -> PyResult<Self> {
        let missing = |what: &str| PyValueError::new_err(format!("thresholds by {by} need {what}"));
        let choose = match by {
            "found_cluster" => Some(Choose::Clusters(count)),
            "ranked_class" => Some(Choose::Ranks),
            _ => None,
        };
        let scheme = match by {
            "all" | "found_cluster" | "ranked_class" => Scheme::default(),
            "class" => Scheme::Groups(Taxonomy::Label),
            "cluster" => Scheme::Groups(Taxonomy::Cluster(clusters.ok_or_else(|| missing("clusters"))?)),
            "group" => Scheme::Groups(Taxonomy::Group(groups)),
            "row_weight" => Scheme::RowWeights,
            "label_weight" => Scheme::LabelWeights(label_weights.ok_or_else(|| missing("weights"))?),
            "severity" => {
                let severity = severity.ok_or_else(|| missing("a severity"))?;
                Scheme::Risk(Loss::severity(severity).map_err(value_error)?)
            }
            "cost" => {
                let cost = cost.ok_or_else(|| missing("costs"))?;
                let classes = cost.len();
                Scheme::Risk(Loss::cost(cost.concat(), classes).map_err(value_error)?)
            }
            _ => return Err(PyValueError::new_err(format!("thresholds cannot go by {by:?}"))),
        };
        Ok(Self { scheme, choose })
    }
}

/// The fingerprint of each row.
#[pyfunction]
pub fn row_fingerprints<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyUntypedArray>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let view = AnyView::of(logits)?;
    let found = with_view!(view, view => run(py, None, |stop| {
        let mut all = Vec::with_capacity(view.rows());
        let rows = Rows { view, beside: crate::work::Beside::default(), first_row: 0 };
        rows.each(stop, |_, logits| {
            all.extend(conformax::row_fingerprints(logits));
            Ok(())
        })?;
        Ok(all)
    }))?;
    Ok(PyArray1::from_vec(py, found))
}

/// Labelled rows in, a calibration out.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct Calibrator {
    /// Frozen like every object here; a call takes it for as long as it adds rows.
    inner: Mutex<Calibrating>,
}

#[pymethods]
impl Calibrator {
    #[new]
    #[pyo3(signature = (score, classes, *, masked="allowed", rule=None))]
    fn new(score: &Score, classes: usize, masked: &str, rule: Option<Rule>) -> PyResult<Self> {
        let masked = masked_named(masked)?;
        let none = match rule.unwrap_or_default() {
            Rule { choose: Some(choose), .. } => Dealer::new(score.spec, classes, choose)
                .map(|dealer| Calibrating::Dealt(dealer.with_masked(masked))),
            Rule { scheme, choose: None } => conformax::Calibrator::new(score.spec, classes)
                .and_then(|none| none.with_masked(masked).remembering(Remember::Rows).under(scheme))
                .map(Calibrating::All),
        };
        Ok(Self { inner: Mutex::new(none.map_err(value_error)?) })
    }

    /// Takes in rows with their labels. An error names the row in the whole and leaves everything as it was.
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
        let read = Calibrating::from_bytes(bytes).map_err(value_error)?;
        Ok(Self { inner: Mutex::new(read) })
    }

    /// The calibration of all rows taken in, with thresholds at these levels.
    #[pyo3(signature = (
        alphas, *, names=None, input="logits", delta=None, column=None, groups=None, estimated=false, prior=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn finish(
        &self,
        alphas: Vec<String>,
        names: Option<Vec<String>>,
        input: &str,
        delta: Option<String>,
        column: Option<String>,
        groups: Option<Vec<String>>,
        estimated: bool,
        prior: Option<Vec<f64>>,
    ) -> PyResult<Calibration> {
        let calibrating = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut model = model_of(calibrating, &alphas_of(&alphas)?, names_of(names)?)?;
        model.input = input_named(input)?;
        model.beside = Beside { column, groups: groups.unwrap_or_default(), estimated, ..Beside::default() };
        model.prior = prior.map(Prior::new).transpose().map_err(value_error)?;
        if let Some(delta) = delta {
            model = model
                .with_delta(alpha_of(&delta)?)
                .map_err(|problem| PyValueError::new_err(problem.to_string()))?;
        }
        Ok(Calibration { model })
    }
}

/// What the file says, and how to do without clusters that are to be found.
fn model_of(calibrating: Calibrating, alphas: &[Alpha], names: Option<ClassNames>) -> PyResult<Model> {
    calibrating.model(alphas, names).map_err(|error| match error {
        conformax::Error::FewForClusters { .. } => PyValueError::new_err(format!("{error} with by")),
        _ => value_error(error),
    })
}

pub fn input_named(name: &str) -> PyResult<Input> {
    Input::named(name).ok_or_else(|| PyValueError::new_err(format!("there is no input {name:?}")))
}

pub fn names_of(names: Option<Vec<String>>) -> PyResult<Option<ClassNames>> {
    names.map(ClassNames::new).transpose().map_err(|problem| PyValueError::new_err(problem.to_string()))
}
