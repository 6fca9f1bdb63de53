//! Choosing a score's parameters without spending the guarantee.
//!
//! The rows kept for calibration are divided: some choose, the others calibrate the choice. Each candidate's
//! threshold and mean set size come from the tuning rows alone, so the calibrating rows know nothing of the
//! choice and the guarantee holds exactly. The paper takes candidates' thresholds from the rows that later
//! calibrate; the choice then leans on them and coverage falls below the law. [`Tuning::Paper`] does that, for
//! comparison only.
//!
//! It takes two passes: a [`Tuner`] scores the true labels under every candidate, which gives their thresholds, and the
//! [`SizeCounter`] it finishes to counts the labels of their sets.

use crate::contest::Rival;
use crate::fingerprint::{RowSample, RowSet, hash_rows};
use crate::label_scores::expect_numbers;
use crate::predict::drain_sets;
use crate::room::append;
use crate::rows::{first_fault, map_chunks, visit_rows};
use crate::score::ranked::{RankedSoftmax, shared_ranking};
use crate::select::PairCounter;
use crate::{
    Alpha, Calibration, Calibrator, Draw, EntmaxScore, Error, Gamma, Labelled, Lambda, Logit, Logits, Masked,
    Penalty, Predictor, RapsScore, Remember, Result, Row, Score, ScoreSpec, SortedScores, Thresholds,
    conformal_rank,
};

/// How tuning takes the candidates' thresholds.
///
/// ```
/// assert_eq!(conformax::Tuning::default(), conformax::Tuning::Valid); // the paper's has to be asked for
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tuning {
    /// From the tuning rows: the guarantee holds exactly.
    #[default]
    Valid,
    /// From the rows that then calibrate, as the paper does: coverage falls below the law. For comparison only.
    Paper,
}

/// A candidate and how it fared on the tuning rows.
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut sizes = tuner.finish()?;
/// sizes.extend(logits)?;
/// let first = sizes.finish()?.candidates()[0];
/// assert_eq!((first.score.gamma.value(), first.threshold), (1.1, 2.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate<S> {
    /// The candidate.
    pub score: S,
    /// Its threshold.
    pub threshold: f64,
    /// Mean number of labels in its sets at that threshold.
    pub average_size: f64,
}

impl<S> Candidate<S> {
    /// A candidate that was judged before.
    pub fn new(score: S, threshold: f64, average_size: f64) -> Self {
        Self { score, threshold, average_size }
    }
}

/// The candidates and the one with the smallest sets; of equals the first.
///
/// ```
/// use conformax::{Candidate, Choice, EntmaxScore};
/// let candidate = |size| Candidate::new(EntmaxScore::default(), 1.0, size);
/// let choice = Choice::of([3.0, 2.0, 4.0, 2.0].map(candidate).to_vec())?;
/// assert_eq!(choice.chosen(), 1);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<S> {
    candidates: Vec<Candidate<S>>,
    chosen: usize,
}

impl<S> Choice<S> {
    /// Chooses. An error where there is nothing to choose from.
    pub fn of(candidates: Vec<Candidate<S>>) -> Result<Self> {
        let smaller = |best: usize, next: usize| {
            if candidates[next].average_size < candidates[best].average_size { next } else { best }
        };
        let chosen = (0..candidates.len()).reduce(smaller).ok_or(Error::NoCandidates)?;
        Ok(Self { candidates, chosen })
    }

    /// Every candidate, in grid order.
    pub fn candidates(&self) -> &[Candidate<S>] {
        &self.candidates
    }

    /// Index of the one chosen.
    pub fn chosen(&self) -> usize {
        self.chosen
    }

    /// The score chosen.
    pub fn score(&self) -> &S {
        &self.candidates[self.chosen].score
    }
}

/// The paper's values of γ. Public for faces in other languages, as are the other two; Rust has [`entmax_grid`].
pub const GRID_GAMMAS: [f64; 9] = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9];
/// The paper's values of RAPS's λ.
pub const GRID_LAMBDAS: [f64; 4] = [0.001, 0.01, 0.1, 1.0];
/// The paper's values of RAPS's `k_reg`, of which those below the number of classes are tried.
pub const GRID_K_REGS: [u32; 4] = [1, 5, 10, 50];

/// The paper's grid of the family: γ from 1.1 to 1.9.
///
/// ```
/// assert_eq!(conformax::entmax_grid().len(), 9);
/// ```
pub fn entmax_grid() -> Vec<EntmaxScore> {
    GRID_GAMMAS.map(|gamma| EntmaxScore { gamma: Gamma::new(gamma).expect("lies between 1 and 16") }).to_vec()
}

/// The paper's grid of RAPS: λ from 0.001 to 1 with every `k_reg` of 1, 5, 10 and 50 below the number of classes.
///
/// ```
/// use conformax::{Draw, raps_grid};
/// assert_eq!(raps_grid(10, Draw::default()).len(), 8);
/// ```
pub fn raps_grid(classes: usize, draw: Draw) -> Vec<RapsScore> {
    let all = GRID_LAMBDAS.into_iter().flat_map(|lambda| {
        GRID_K_REGS.map(|k_reg| RapsScore {
            lambda: Lambda::known(lambda),
            k_reg,
            penalty: Penalty::default(),
            draw,
        })
    });
    all.filter(|score| ScoreSpec::Raps(*score).fits(classes)).collect()
}

impl ScoreSpec {
    /// Whether the score says something among so many classes: RAPS with `k_reg` at or beyond them is APS.
    pub fn fits(self, classes: usize) -> bool {
        self.parameters().k_reg.is_none_or(|k_reg| (k_reg as usize) < classes)
    }
}

/// Scores the true labels of tuning rows under every candidate; it finishes to the [`SizeCounter`] that measures their
/// sets.
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut sizes = tuner.finish()?;
/// sizes.extend(logits)?;
/// assert_eq!(sizes.finish()?.chosen(), 0); // two classes: every candidate gives the same sets
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tuner<S> {
    pub(crate) grid: Vec<S>,
    pub(crate) classes: usize,
    pub(crate) alpha: Alpha,
    pub(crate) masked: Masked,
    pub(crate) remember: Remember,
    /// The scores of each candidate, in the order rows came.
    pub(crate) scores: Vec<Vec<f64>>,
    pub(crate) rows: RowSample,
}

impl<S: Score + Clone> Tuner<S> {
    /// Judges these candidates at a level, on rows of so many classes.
    pub fn new(grid: Vec<S>, classes: usize, alpha: Alpha) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        if grid.is_empty() {
            return Err(Error::NoCandidates);
        }
        let scores = vec![Vec::new(); grid.len()];
        let (masked, remember) = (Masked::default(), Remember::default());
        Ok(Self { grid, classes, alpha, masked, remember, scores, rows: RowSample::default() })
    }

    /// The same with this meaning of −∞; before the first row.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same, remembering its rows or not; before the first row.
    #[must_use]
    pub fn remembering(self, remember: Remember) -> Self {
        Self { remember, ..self }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.scores[0].len() as u64
    }

    /// Rows so far whose score is infinite under each candidate: their true label was impossible.
    pub fn infinite(&self) -> Vec<u64> {
        let of = |scores: &Vec<f64>| scores.iter().filter(|score| **score == f64::INFINITY).count() as u64;
        self.scores.iter().map(of).collect()
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let before = self.n();
        let chunks = self.scored(rows).map_err(|error| error.offset_rows(before))?;
        for (scores, names) in chunks {
            self.scores.iter_mut().zip(scores).for_each(|(all, scores)| append(all, &scores));
            self.rows.extend(&names);
        }
        Ok(())
    }

    #[expect(clippy::type_complexity, reason = "scores by candidate, and fingerprints")]
    fn scored<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<(Vec<Vec<f64>>, Vec<u64>)>> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        first_fault([self.masked.check(rows)], |row| self.scores_of(rows.before(row)).map(|_| ()))?;
        self.scores_of(rows)
    }

    /// By chunk of rows: the scores of each candidate, and fingerprints.
    #[expect(clippy::type_complexity, reason = "scores by candidate, and fingerprints")]
    fn scores_of<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<(Vec<Vec<f64>>, Vec<u64>)>> {
        let shared = shared_ranking(&self.grid);
        map_chunks(rows.logits(), |first, chunk| {
            let mut scores = vec![Vec::with_capacity(chunk.len()); self.grid.len()];
            visit_rows(first, chunk, |index, row| {
                let label = rows.labels()[first + index];
                match &shared {
                    Some((draw, raps)) => {
                        let ranked = RankedSoftmax::new(row, *draw);
                        let of_label = raps.iter().map(|score| ranked.raps_of(score, label));
                        scores.iter_mut().zip(of_label).for_each(|(scores, score)| scores.push(score));
                    }
                    None => {
                        for (score, scores) in self.grid.iter().zip(&mut scores) {
                            scores.push(score.score(row, label));
                            expect_numbers(first + index, &scores[index..])?;
                        }
                    }
                }
                Ok(())
            })?;
            let names = if self.remember == Remember::Rows { hash_rows(chunk) } else { Vec::new() };
            Ok((scores, names))
        })
    }

    /// Takes in what another took in. It must have the same candidates, classes, level and policies.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.grid != other.grid => Some("candidates"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.alpha != other.alpha => Some("levels"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.remember != other.remember => Some("remembered rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        self.scores.iter_mut().zip(other.scores).for_each(|(mine, theirs)| append(mine, &theirs));
        self.rows.merge(other.rows);
        Ok(())
    }

    /// Takes the candidates' thresholds. An error where there is no row.
    pub fn finish(self) -> Result<SizeCounter<S>> {
        if self.n() == 0 {
            return Err(Error::NoTuningRows);
        }
        let (alpha, masked) = (self.alpha, self.masked);
        let judged =
            self.scores.into_iter().map(|scores| Ok(SortedScores::new(scores)?.judging_threshold(alpha)));
        let thresholds: Vec<f64> = judged.collect::<Result<_>>()?;
        let predictors = self.grid.into_iter().zip(thresholds);
        let predictors: Vec<Predictor<S>> = predictors
            .map(|(score, threshold)| Predictor::new(score, Thresholds::One(threshold)).with_masked(masked))
            .collect();
        let (totals, rows) = (vec![0; predictors.len()], self.rows.finish());
        Ok(SizeCounter { predictors, classes: self.classes, totals, n: 0, rows })
    }
}

impl<S: Score + Clone> Tuner<S> {
    /// For a selection that uses every row: the same rows then count pairs. An error where there is no row.
    pub fn finish_selecting(self) -> Result<PairCounter<S>> {
        let scored = self.n();
        if scored == 0 {
            return Err(Error::NoTuningRows);
        }
        let rank = conformal_rank(scored, self.alpha).unwrap_or(scored + 1);
        let rivals = self.grid.into_iter().zip(self.scores).map(|(score, scores)| {
            let scores = SortedScores::new(scores)?;
            // Below the first score lies nothing, and too few rows make sets full.
            let at = |rank: u64| match rank {
                0 => f64::NEG_INFINITY,
                _ => scores.as_slice().get(rank as usize - 1).copied().unwrap_or(f64::INFINITY),
            };
            let (low, high) = (at(rank - 1), at(rank));
            Ok(Rival::new(score, (low, high), (0, 0), Vec::new()))
        });
        let mut rivals = rivals.collect::<Result<Vec<_>>>()?;
        if rivals.iter().all(|rival| rival.high == f64::INFINITY) {
            // Every set is full, so no score between is needed, and there would be one for every label of every row.
            rivals.iter_mut().for_each(|rival| rival.low = f64::INFINITY);
        }
        let (classes, alpha, masked, rows) = (self.classes, self.alpha, self.masked, self.rows.finish());
        let (between, at_truth) = (vec![Vec::new(); rivals.len()], vec![Vec::new(); rivals.len()]);
        Ok(PairCounter { rivals, between, at_truth, classes, alpha, masked, scored, n: 0, rows })
    }
}

/// Counts the labels of every candidate's sets on the tuning rows, and finishes to the choice.
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut sizes = tuner.finish()?;
/// sizes.extend(logits)?; // any tuning rows; labels are not needed
/// assert_eq!(sizes.n(), 3);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCounter<S> {
    pub(crate) predictors: Vec<Predictor<S>>,
    pub(crate) classes: usize,
    pub(crate) totals: Vec<u64>,
    pub(crate) n: u64,
    pub(crate) rows: RowSet,
}

impl<S: Score + Clone> SizeCounter<S> {
    /// The rows that gave the thresholds, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in tuning rows; labels are not needed. An error names the row in the whole.
    pub fn extend<T: Logit>(&mut self, logits: Logits<'_, T>) -> Result<()> {
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        let totals = self.counted(logits).map_err(|error| error.offset_rows(self.n))?;
        self.totals.iter_mut().zip(totals).for_each(|(total, more)| *total += more);
        self.n += logits.len() as u64;
        Ok(())
    }

    fn counted<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<u64>> {
        let mut totals = vec![0; self.predictors.len()];
        let scores: Vec<&S> = self.predictors.iter().map(Predictor::score).collect();
        match shared_ranking(&scores) {
            Some((draw, raps)) => {
                let chunks = map_chunks(logits, |first, chunk| {
                    let mut totals = vec![0; raps.len()];
                    visit_rows(first, chunk, |_, row| {
                        let ranked = RankedSoftmax::new(row, draw);
                        for ((score, predictor), total) in raps.iter().zip(&self.predictors).zip(&mut totals)
                        {
                            *total += size_of_ranked(score, predictor, &ranked, row);
                        }
                        Ok(())
                    })?;
                    Ok(totals)
                })?;
                for chunk in chunks {
                    totals.iter_mut().zip(chunk).for_each(|(total, more): (&mut u64, u64)| *total += more);
                }
            }
            None => drain_sets(&self.predictors, logits, |sets| {
                for (total, sets) in totals.iter_mut().zip(&sets) {
                    *total += sets.labels().len() as u64;
                }
            })?,
        }
        Ok(totals)
    }

    /// Takes in what another counted for the same candidates at the same thresholds.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        if self.predictors != other.predictors {
            return Err(Error::Unlike { what: "candidates or their thresholds" });
        }
        if self.classes != other.classes {
            return Err(Error::Unlike { what: "numbers of classes" });
        }
        self.totals.iter_mut().zip(&other.totals).for_each(|(total, more)| *total += more);
        self.n += other.n;
        Ok(())
    }

    /// Chooses. An error where there is no row.
    pub fn finish(self) -> Result<Choice<S>> {
        if self.n == 0 {
            return Err(Error::NoTuningRows);
        }
        let candidates = self.predictors.into_iter().zip(&self.totals).map(|(predictor, total)| {
            let threshold = predictor.thresholds().as_slice()[0];
            Candidate::new(predictor.score().clone(), threshold, *total as f64 / self.n as f64)
        });
        Choice::of(candidates.collect())
    }
}

/// The size of a row's set. An infinite threshold takes in labels of probability zero too, which the ranking leaves
/// out.
fn size_of_ranked<S: Score, T: Logit>(
    score: &RapsScore,
    predictor: &Predictor<S>,
    ranked: &RankedSoftmax,
    row: Row<'_, T>,
) -> u64 {
    let threshold = predictor.thresholds().as_slice()[0];
    if threshold == f64::INFINITY && predictor.masked() == Masked::Allowed {
        return row.classes() as u64;
    }
    ranked.raps_within(score, threshold).count() as u64
}

/// What [`tune`] chooses from and on.
#[derive(Clone, Copy, Debug)]
pub struct TuneOn<'a, S, T> {
    /// Candidates; of equals the first wins.
    pub grid: &'a [S],
    /// Rows that choose and never calibrate.
    pub tuning: Labelled<'a, T>,
    /// Rows that calibrate the choice, which knows nothing of them.
    pub calibrating: Labelled<'a, T>,
    /// The level at which candidates are judged.
    pub alpha: Alpha,
    /// Where candidates' thresholds come from.
    pub method: Tuning,
    /// What −∞ logits mean.
    pub masked: Masked,
}

/// The choice, and its calibration on rows that it has not seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuned<S> {
    /// The calibrated choice.
    pub calibration: Calibration<S>,
    /// How every candidate fared.
    pub choice: Choice<S>,
}

/// Chooses the candidate with the smallest sets and calibrates it: the short form of [`Tuner`] and `Calibrator`.
///
/// ```
/// use conformax::{Alpha, Logits, Masked, TuneOn, Tuning, entmax_grid, tune};
/// let (chooses, calibrates) = ([1.0_f32, 3.0, 2.0, 0.0], [4.0_f32, 1.0, 0.5, 2.0]);
/// let tuned = tune(TuneOn {
///     grid: &entmax_grid(),
///     tuning: Logits::new(&chooses, 2)?.labelled(&[0, 0])?,
///     calibrating: Logits::new(&calibrates, 2)?.labelled(&[0, 1])?,
///     alpha: Alpha::new(0.4)?,
///     method: Tuning::Valid,
///     masked: Masked::Allowed,
/// })?;
/// assert_eq!(tuned.choice.candidates().len(), 9);
/// assert_eq!(tuned.calibration.n(), 2);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn tune<S: Score + Clone, T: Logit>(on: TuneOn<'_, S, T>) -> Result<Tuned<S>> {
    let TuneOn { grid, tuning, calibrating, alpha, method, masked } = on;
    let classes = tuning.logits().classes();
    if tuning.is_empty() {
        return Err(Error::NoTuningRows);
    }
    if calibrating.is_empty() {
        return Err(Error::NoCalibrationRows);
    }
    let calibrated = |score: S| {
        let mut calibrator = Calibrator::new(score, classes)?.with_masked(masked);
        calibrator.extend(calibrating)?;
        calibrator.finish()
    };
    let mut tuner = Tuner::new(grid.to_vec(), classes, alpha)?.with_masked(masked);
    tuner.extend(match method {
        Tuning::Valid => tuning,
        Tuning::Paper => calibrating,
    })?;
    let mut sizes = tuner.finish()?;
    sizes.extend(tuning.logits())?;
    let choice = sizes.finish()?;
    Ok(Tuned { calibration: calibrated(choice.score().clone())?, choice })
}
