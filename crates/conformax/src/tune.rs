//! Choosing a score's parameters without spending the guarantee.
//!
//! The rows kept for calibration are divided: some choose, the others calibrate the choice. Each candidate's
//! threshold and mean set size come from the tuning rows alone, so the calibrating rows know nothing of the
//! choice and the guarantee holds exactly. The paper takes candidates' thresholds from the rows that later
//! calibrate; the choice then leans on them and coverage falls below the law. [`Tuning::Paper`] does that, for
//! comparison only.

use crate::calibrate::{Calibration, CalibrationScores, conformal_rank};
use crate::predict::Masked;
use crate::rows::{check_labels, map_chunks, visit_rows};
use crate::{Alpha, Draw, EntmaxScore, Error, Gamma, Logit, Logits, Penalty, RapsScore, Result, Score};

/// Rows that choose, and never calibrate.
///
/// ```
/// use conformax::{Logits, TuningRows};
/// let rows = TuningRows::new(Logits::new(&[1.0_f32, 0.0], 2)?, &[0])?;
/// assert_eq!(rows.len(), 1);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TuningRows<'a, T> {
    logits: Logits<'a, T>,
    labels: &'a [u32],
}

/// Rows that calibrate the choice, and never choose.
///
/// ```
/// use conformax::{CalibratingRows, Logits};
/// let rows = CalibratingRows::new(Logits::new(&[1.0_f32, 0.0], 2)?, &[0])?;
/// assert_eq!(rows.len(), 1);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CalibratingRows<'a, T> {
    logits: Logits<'a, T>,
    labels: &'a [u32],
}

impl<'a, T: Logit> TuningRows<'a, T> {
    /// Checks the labels.
    ///
    /// ```
    /// # use conformax::{Error, Logits, TuningRows};
    /// let none = TuningRows::new(Logits::<f32>::new(&[], 2)?, &[]);
    /// assert_eq!(none.unwrap_err(), Error::NoTuningRows);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn new(logits: Logits<'a, T>, labels: &'a [u32]) -> Result<Self> {
        check_labels(logits, labels)?;
        if labels.is_empty() { Err(Error::NoTuningRows) } else { Ok(Self { logits, labels }) }
    }

    /// Number of rows, at least one.
    ///
    /// ```
    /// # use conformax::{Logits, TuningRows};
    /// assert_eq!(TuningRows::new(Logits::new(&[1.0_f32, 0.0], 1)?, &[0, 0])?.len(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }
}

impl<'a, T: Logit> CalibratingRows<'a, T> {
    /// Checks the labels.
    ///
    /// ```
    /// # use conformax::{CalibratingRows, Error, Logits};
    /// let none = CalibratingRows::new(Logits::<f32>::new(&[], 2)?, &[]);
    /// assert_eq!(none.unwrap_err(), Error::NoCalibrationRows);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn new(logits: Logits<'a, T>, labels: &'a [u32]) -> Result<Self> {
        check_labels(logits, labels)?;
        if labels.is_empty() { Err(Error::NoCalibrationRows) } else { Ok(Self { logits, labels }) }
    }

    /// Number of rows, at least one.
    ///
    /// ```
    /// # use conformax::{CalibratingRows, Logits};
    /// assert_eq!(CalibratingRows::new(Logits::new(&[1.0_f32, 0.0], 1)?, &[0, 0])?.len(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    #[expect(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }
}

/// Where candidates' thresholds come from.
///
/// ```
/// use conformax::Tuning;
/// assert_eq!(Tuning::default(), Tuning::Valid);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tuning {
    /// From the tuning rows alone: the guarantee is exact.
    #[default]
    Valid,
    /// From the calibrating rows, as the paper does: for comparison only. Coverage falls below the law (about a
    /// point at 100 rows), so no coverage interval belongs to the result.
    Paper,
}

/// What tuning found of one candidate.
///
/// ```
/// use conformax::{Candidate, TopKScore};
/// let candidate = Candidate { score: TopKScore, threshold: 2.0, average_size: 2.0 };
/// assert_eq!(candidate.average_size, 2.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<S> {
    /// The score with these parameters.
    pub score: S,
    /// The threshold it was judged at; calibration computes another for the winner.
    pub threshold: f64,
    /// Mean set size on the tuning rows at that threshold.
    pub average_size: f64,
}

/// The winner, calibrated, and how every candidate fared.
///
/// ```
/// use conformax::{CalibratingRows, Alpha, Logits, Masked, Tuning, TuningRows, entmax_grid, tune};
/// let (rows, labels) = ([2.0_f32, 0.0, 0.5, 1.0], [0, 0]);
/// let (tuning, calibrating) = (Logits::new(&rows, 2)?, Logits::new(&rows, 2)?);
/// let tuned = tune(
///     &entmax_grid(),
///     TuningRows::new(tuning, &labels)?,
///     CalibratingRows::new(calibrating, &labels)?,
///     Alpha::new(0.4)?,
///     Tuning::Valid,
///     Masked::Allowed,
/// )?;
/// assert_eq!(tuned.calibration.score(), &tuned.candidates[tuned.chosen].score);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tuned<S> {
    /// The chosen score on the calibrating rows.
    pub calibration: Calibration<S>,
    /// Every candidate in grid order.
    pub candidates: Vec<Candidate<S>>,
    /// Index of the chosen one.
    pub chosen: usize,
}

/// The paper's grid for opt-entmax: γ = 1.1, 1.2, …, 1.9.
///
/// ```
/// let grid = conformax::entmax_grid();
/// assert_eq!((grid.len(), grid[4].gamma.value()), (9, 1.5));
/// ```
pub fn entmax_grid() -> Vec<EntmaxScore> {
    [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]
        .map(|gamma| EntmaxScore { gamma: Gamma::new(gamma).expect("lies between 1 and 16") })
        .to_vec()
}

/// The paper's grid for RAPS: λ ∈ {0.001, 0.01, 0.1, 1}, k_reg ∈ {1, 5, 10, 50} below the number of classes.
///
/// ```
/// use conformax::Draw;
/// assert_eq!(conformax::raps_grid(1000, Draw::default()).len(), 16);
/// assert_eq!(conformax::raps_grid(10, Draw::default()).len(), 8);
/// ```
pub fn raps_grid(classes: usize, draw: Draw) -> Vec<RapsScore> {
    let orders: Vec<u32> = [1, 5, 10, 50].into_iter().filter(|k_reg| (*k_reg as usize) < classes).collect();
    let scores = [0.001, 0.01, 0.1, 1.0].into_iter().flat_map(|lambda| {
        orders.iter().map(move |k_reg| RapsScore {
            lambda,
            k_reg: *k_reg,
            penalty: Penalty::Randomized,
            draw,
        })
    });
    scores.collect()
}

/// The threshold a candidate is judged at: rank `⌈(m + 1)(1 − α)⌉` of its own `m` scores, capped at `m`.
///
/// ```
/// use conformax::{Alpha, CalibrationScores, judging_threshold};
/// let scores = CalibrationScores::new(vec![1.0, 3.0, 2.0])?;
/// assert_eq!(judging_threshold(&scores, Alpha::new(0.01)?), 3.0); // rank 4 capped at 3
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn judging_threshold(scores: &CalibrationScores, alpha: Alpha) -> f64 {
    let rank = conformal_rank(scores.n(), alpha).unwrap_or(scores.n());
    scores.as_slice()[rank as usize - 1]
}

/// The candidate with the smallest mean size; of equals the first in grid order.
///
/// ```
/// assert_eq!(conformax::smallest(&[2.5, 1.5, 1.5]), Some(1));
/// assert_eq!(conformax::smallest(&[]), None);
/// ```
pub fn smallest(average_sizes: &[f64]) -> Option<usize> {
    (0..average_sizes.len())
        .reduce(|best, next| if average_sizes[next] < average_sizes[best] { next } else { best })
}

/// Chooses the candidate with the smallest sets on the tuning rows and calibrates it on the others.
///
/// ```
/// use conformax::{
///     Alpha, CalibratingRows, Logits, Masked, Tuning, TuningRows, entmax_grid, tune,
/// };
/// let (tuning, calibrating) = ([2.0_f32, 0.0, 0.5, 1.0], [3.0_f32, 0.0, 0.0, 4.0]);
/// let tuned = tune(
///     &entmax_grid(),
///     TuningRows::new(Logits::new(&tuning, 2)?, &[0, 0])?,
///     CalibratingRows::new(Logits::new(&calibrating, 2)?, &[0, 1])?,
///     Alpha::new(0.4)?,
///     Tuning::Valid,
///     Masked::Allowed,
/// )?;
/// assert_eq!(tuned.candidates.len(), 9);
/// assert_eq!(tuned.calibration.scores().n(), 2);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn tune<S: Score + Clone + Send, T: Logit>(
    grid: &[S],
    tuning_rows: TuningRows<'_, T>,
    calibrating_rows: CalibratingRows<'_, T>,
    alpha: Alpha,
    tuning: Tuning,
    masked: Masked,
) -> Result<Tuned<S>> {
    let (wanted, got) = (tuning_rows.logits.classes(), calibrating_rows.logits.classes());
    if wanted != got {
        return Err(Error::ClassCount { wanted, got });
    }
    let (logits, labels) = match tuning {
        Tuning::Valid => (tuning_rows.logits, tuning_rows.labels),
        Tuning::Paper => (calibrating_rows.logits, calibrating_rows.labels),
    };
    let thresholds = judging_thresholds(grid, logits, labels, alpha)?;
    let sizes = average_sizes(grid, &thresholds, tuning_rows.logits)?;
    let candidates: Vec<Candidate<S>> = (grid.iter().cloned().zip(thresholds).zip(&sizes))
        .map(|((score, threshold), average_size)| Candidate { score, threshold, average_size: *average_size })
        .collect();
    let chosen = smallest(&sizes).ok_or(Error::NoCandidates)?;
    let CalibratingRows { logits, labels } = calibrating_rows;
    let calibration = Calibration::new(candidates[chosen].score.clone(), logits, labels, masked)?;
    Ok(Tuned { calibration, candidates, chosen })
}

/// Mean set size over the rows at a threshold.
///
/// ```
/// use conformax::{EntmaxScore, Logits, average_size};
/// let logits = Logits::new(&[2.0_f32, 0.0, 2.0, 1.5], 2)?;
/// assert_eq!(average_size(&EntmaxScore::default(), logits, 1.0)?, 1.5);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn average_size<S: Score, T: Logit>(score: &S, logits: Logits<'_, T>, threshold: f64) -> Result<f64> {
    average_sizes(std::slice::from_ref(score), &[threshold], logits).map(|sizes| sizes[0])
}

/// The threshold of each candidate by its own scores: every candidate looks at a row while it is in the cache and its
/// maximum is known, so the rows are read once for the whole grid.
fn judging_thresholds<S: Score, T: Logit>(
    grid: &[S],
    logits: Logits<'_, T>,
    labels: &[u32],
    alpha: Alpha,
) -> Result<Vec<f64>> {
    let chunks = map_chunks(logits, |first, chunk| {
        let mut scores = vec![Vec::with_capacity(chunk.len()); grid.len()];
        visit_rows(first, chunk, |index, row| {
            for (score, scores) in grid.iter().zip(&mut scores) {
                scores.push(score.score(row, labels[first + index]));
            }
            Ok(())
        })?;
        Ok(scores)
    })?;
    let of_candidate = |candidate: usize| chunks.iter().flat_map(move |scores| &scores[candidate]).copied();
    (0..grid.len())
        .map(|candidate| CalibrationScores::new(of_candidate(candidate).collect()))
        .map(|scores| Ok(judging_threshold(&scores?, alpha)))
        .collect()
}

/// Mean set size of each candidate at its threshold, in one pass over the rows.
fn average_sizes<S: Score, T: Logit>(
    grid: &[S],
    thresholds: &[f64],
    logits: Logits<'_, T>,
) -> Result<Vec<f64>> {
    let chunks = map_chunks(logits, |first, chunk| {
        let (mut totals, mut set) = (vec![0_u64; grid.len()], Vec::new());
        visit_rows(first, chunk, |_, row| {
            for ((score, threshold), total) in grid.iter().zip(thresholds).zip(&mut totals) {
                set.clear();
                score.set_into(row, *threshold, &mut set);
                *total += set.len() as u64;
            }
            Ok(())
        })?;
        Ok(totals)
    })?;
    let total = |candidate: usize| chunks.iter().map(|totals| totals[candidate]).sum::<u64>();
    Ok((0..grid.len()).map(|candidate| total(candidate) as f64 / logits.len() as f64).collect())
}
