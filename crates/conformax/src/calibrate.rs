//! Scores and a level become a threshold: the r-th smallest calibration score, `r = ⌈(n + 1)(1 − α)⌉`.
//!
//! The same sorted scores give p-values: `p(y) = (#{i : s_i ≥ s} + 1)/(n + 1)`, and `y` is in the set at level α
//! exactly when `p(y) > α`, a comparison of integers.

use crate::predict::{Calibrated, Masked};
use crate::rows::{check_labels, map_chunks, visit_rows};
use crate::{Alpha, CoverageLaw, Error, Logit, Logits, Result, Row, Score};

/// `⌈(n + 1)(1 − α)⌉` in exact arithmetic, or `None` where that exceeds `n` and the threshold is infinite.
///
/// ```
/// use conformax::{Alpha, conformal_rank};
/// assert_eq!(conformal_rank(149, Alpha::new(0.18)?), Some(123)); // 150 × 0.82; floating point says 124
/// assert_eq!(conformal_rank(8, Alpha::new(0.1)?), None);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn conformal_rank(n: u64, alpha: Alpha) -> Option<u64> {
    let places = u128::from(n) + 1;
    let rank = places - alpha.floor_of(places);
    u64::try_from(rank).ok().filter(|rank| *rank <= n)
}

/// A level with what calibration made of it.
///
/// ```
/// use conformax::{Alpha, CalibrationScores};
/// let level = CalibrationScores::new(vec![3.0, 1.0, 2.0])?.level(Alpha::new(0.25)?);
/// assert_eq!((level.rank, level.threshold, level.n), (Some(3), 3.0, 3));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Level {
    /// Miscoverage level.
    pub alpha: Alpha,
    /// Calibration rows.
    pub n: u64,
    /// Rank of the threshold among the calibration scores; `None` where there are too few rows for `alpha`.
    pub rank: Option<u64>,
    /// Largest score that is in a set; +∞ where there are too few rows, which makes sets full.
    pub threshold: f64,
}

impl Level {
    /// The rows that would have been enough, where there are too few.
    ///
    /// ```
    /// # use conformax::{Alpha, CalibrationScores};
    /// let scores = CalibrationScores::new(vec![3.0, 1.0, 2.0])?;
    /// assert_eq!(scores.level(Alpha::new(0.1)?).rows_wanted(), Some(9));
    /// assert_eq!(scores.level(Alpha::new(0.25)?).rows_wanted(), None);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn rows_wanted(&self) -> Option<u64> {
        self.rank.is_none().then(|| self.alpha.rows_needed())
    }

    /// The law that realised coverage follows.
    ///
    /// ```
    /// # use conformax::{Alpha, CalibrationScores};
    /// let level = CalibrationScores::new(vec![3.0, 1.0, 2.0])?.level(Alpha::new(0.25)?);
    /// assert_eq!(level.law().mean(), 0.75);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn law(&self) -> CoverageLaw {
        CoverageLaw::new(self.n, self.rank).expect("a level's rank lies within its rows")
    }
}

/// Calibration scores in ascending order; the source of thresholds and p-values.
///
/// ```
/// use conformax::{Alpha, CalibrationScores};
/// let scores = CalibrationScores::new(vec![0.5, 0.1, 0.9, 0.3])?;
/// assert_eq!(scores.as_slice(), [0.1, 0.3, 0.5, 0.9]);
/// assert_eq!(scores.level(Alpha::new(0.4)?).threshold, 0.5);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationScores(Vec<f64>);

impl CalibrationScores {
    /// Sorts the scores of the calibration rows.
    ///
    /// ```
    /// # use conformax::{CalibrationScores, Error};
    /// assert_eq!(CalibrationScores::new(vec![]).unwrap_err(), Error::NoCalibrationRows);
    /// ```
    pub fn new(mut scores: Vec<f64>) -> Result<Self> {
        if scores.is_empty() {
            return Err(Error::NoCalibrationRows);
        }
        if let Some(row) = scores.iter().position(|score| score.is_nan()) {
            return Err(Error::ScoreIsNan { row: row as u64 });
        }
        scores.sort_unstable_by(f64::total_cmp);
        Ok(Self(scores))
    }

    /// Number of calibration rows.
    ///
    /// ```
    /// # use conformax::CalibrationScores;
    /// assert_eq!(CalibrationScores::new(vec![2.0, 1.0])?.n(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn n(&self) -> u64 {
        self.0.len() as u64
    }

    /// The scores, ascending.
    ///
    /// ```
    /// # use conformax::CalibrationScores;
    /// assert_eq!(CalibrationScores::new(vec![2.0, 1.0])?.as_slice(), [1.0, 2.0]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    /// The threshold at a level. Any number of levels may be asked of the same scores.
    ///
    /// ```
    /// # use conformax::{Alpha, CalibrationScores};
    /// let scores = CalibrationScores::new((1..=99).map(f64::from).collect())?;
    /// assert_eq!(scores.level(Alpha::new(0.1)?).threshold, 90.0);
    /// assert_eq!(scores.level(Alpha::new(0.005)?).threshold, f64::INFINITY);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn level(&self, alpha: Alpha) -> Level {
        let rank = conformal_rank(self.n(), alpha);
        let threshold = rank.map_or(f64::INFINITY, |rank| self.0[rank as usize - 1]);
        Level { alpha, n: self.n(), rank, threshold }
    }

    /// The p-value of a score.
    ///
    /// ```
    /// # use conformax::CalibrationScores;
    /// let scores = CalibrationScores::new(vec![1.0, 2.0, 2.0])?;
    /// assert_eq!(scores.p_value(2.0).value(), 0.75);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn p_value(&self, score: f64) -> PValue {
        let below = self.0.partition_point(|calibration| *calibration < score);
        PValue { at_least: self.n() - below as u64, n: self.n() }
    }

    /// `(#{s_i > s} + v·(#{s_i = s} + 1))/(n + 1)`: exactly uniform for a fresh row if `v` is.
    ///
    /// ```
    /// # use conformax::CalibrationScores;
    /// let scores = CalibrationScores::new(vec![1.0, 2.0, 2.0])?;
    /// assert_eq!(scores.smoothed_p_value(2.0, 0.5), 0.375);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn smoothed_p_value(&self, score: f64, v: f64) -> f64 {
        let below = self.0.partition_point(|calibration| *calibration < score);
        let not_above = self.0.partition_point(|calibration| *calibration <= score);
        let (ties, above) = (not_above - below, self.0.len() - not_above);
        (above as f64 + v * (ties as f64 + 1.0)) / (self.n() as f64 + 1.0)
    }
}

/// `(at_least + 1)/(n + 1)`, kept as integers: the smallest α at which the label leaves the set.
///
/// ```
/// use conformax::{Alpha, PValue};
/// let p = PValue { at_least: 4, n: 49 };
/// assert_eq!(p.value(), 0.1);
/// assert!(!p.in_set(Alpha::new(0.1)?)); // p > α fails at equality
/// assert!(p.in_set(Alpha::new(0.09999)?));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PValue {
    /// Calibration scores at least as large.
    pub at_least: u64,
    /// Calibration rows.
    pub n: u64,
}

impl PValue {
    /// The nearest `f64`.
    ///
    /// ```
    /// # use conformax::PValue;
    /// assert_eq!(PValue { at_least: 0, n: 9 }.value(), 0.1);
    /// ```
    pub fn value(self) -> f64 {
        (self.at_least as f64 + 1.0) / (self.n as f64 + 1.0)
    }

    /// Whether `p > α`, exactly: whether the label is in the set at level α.
    ///
    /// ```
    /// # use conformax::{Alpha, PValue};
    /// assert!(PValue { at_least: 9, n: 9 }.in_set(Alpha::new(0.999)?));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn in_set(self, alpha: Alpha) -> bool {
        // count + 1 > (n + 1)·α for integers count: count ≥ ⌊(n + 1)·α⌋.
        u128::from(self.at_least) >= alpha.floor_of(u128::from(self.n) + 1)
    }
}

/// Scores the true label of every row.
///
/// ```
/// use conformax::{EntmaxScore, Logits, score_labels};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?;
/// assert_eq!(score_labels(&EntmaxScore::default(), logits, &[0, 0])?, [2.0, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn score_labels<S: Score, T: Logit>(
    score: &S,
    logits: Logits<'_, T>,
    labels: &[u32],
) -> Result<Vec<f64>> {
    check_labels(logits, labels)?;
    let chunks = map_chunks(logits, |first, chunk| {
        let mut scores = Vec::with_capacity(chunk.len());
        visit_rows(first, chunk, |index, row| {
            scores.push(score.score(row, labels[first + index]));
            Ok(())
        })?;
        Ok(scores)
    })?;
    Ok(chunks.concat())
}

/// Scores every label of every row, row after row: `len × classes` numbers.
///
/// ```
/// use conformax::{EntmaxScore, Logits, score_all_labels};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?;
/// assert_eq!(score_all_labels(&EntmaxScore::default(), logits)?, [2.0, 0.0, 0.0, 2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn score_all_labels<S: Score, T: Logit>(score: &S, logits: Logits<'_, T>) -> Result<Vec<f64>> {
    let chunks = map_chunks(logits, |first, chunk| {
        let classes = chunk.classes();
        let mut scores = vec![0.0; chunk.as_slice().len()];
        visit_rows(first, chunk, |index, row| {
            score.score_all(row, &mut scores[index * classes..][..classes]);
            Ok(())
        })?;
        Ok(scores)
    })?;
    Ok(chunks.concat())
}

/// A score with the calibration scores it gave: any level, any p-value.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, Logits, Masked};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let calibration = Calibration::new(EntmaxScore::default(), logits, &[0, 0, 0], Masked::Allowed)?;
/// let model = calibration.at(Alpha::new(0.25)?);
/// assert_eq!(model.level().threshold, 2.0);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calibration<S> {
    score: S,
    scores: CalibrationScores,
    masked: Masked,
}

impl<S: Score> Calibration<S> {
    /// Scores the calibration rows.
    ///
    /// ```
    /// # use conformax::{Calibration, EntmaxScore, Error, Logits, Masked};
    /// let masked = Logits::new(&[f32::NEG_INFINITY, 3.0], 2)?;
    /// let result = Calibration::new(EntmaxScore::default(), masked, &[0], Masked::Never);
    /// assert_eq!(result.unwrap_err(), Error::MaskedLabel { row: 0, label: 0 });
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn new<T: Logit>(score: S, logits: Logits<'_, T>, labels: &[u32], masked: Masked) -> Result<Self> {
        check_labels(logits, labels)?;
        masked.check_labels(logits, labels)?;
        let scores = CalibrationScores::new(score_labels(&score, logits, labels)?)?;
        Ok(Self { score, scores, masked })
    }

    /// From scores that were computed before, by this very score: block by block, or read from a file.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, InvProbScore, Masked};
    /// let scores = CalibrationScores::new(vec![0.1, 0.7])?;
    /// let calibration = Calibration::from_scores(InvProbScore, scores, Masked::Allowed);
    /// assert_eq!(calibration.scores().n(), 2);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn from_scores(score: S, scores: CalibrationScores, masked: Masked) -> Self {
        Self { score, scores, masked }
    }

    /// The score.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, InvProbScore, Masked};
    /// let scores = CalibrationScores::new(vec![0.1, 0.7])?;
    /// assert_eq!(Calibration::from_scores(InvProbScore, scores, Masked::Allowed).score(), &InvProbScore);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn score(&self) -> &S {
        &self.score
    }

    /// The calibration scores.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, InvProbScore, Masked};
    /// let scores = CalibrationScores::new(vec![0.1, 0.7])?;
    /// assert_eq!(Calibration::from_scores(InvProbScore, scores.clone(), Masked::Allowed).scores(), &scores);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn scores(&self) -> &CalibrationScores {
        &self.scores
    }

    /// What −∞ logits mean.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, InvProbScore, Masked};
    /// let scores = CalibrationScores::new(vec![0.1, 0.7])?;
    /// assert_eq!(Calibration::from_scores(InvProbScore, scores, Masked::Never).masked(), Masked::Never);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// The predictor at a level.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibration, CalibrationScores, InvProbScore, Masked};
    /// let scores = CalibrationScores::new(vec![0.1, 0.7])?;
    /// let model = Calibration::from_scores(InvProbScore, scores, Masked::Allowed).at(Alpha::new(0.5)?);
    /// assert_eq!(model.level().threshold, 0.7);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn at(&self, alpha: Alpha) -> Calibrated<S>
    where
        S: Clone,
    {
        Calibrated::new(self.score.clone(), self.scores.level(alpha)).with_masked(self.masked)
    }

    /// The p-value of every label of a row, into `out`.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, EntmaxScore, Masked, PValue, Row};
    /// let scores = CalibrationScores::new(vec![0.0, 0.0, 1.5])?;
    /// let calibration = Calibration::from_scores(EntmaxScore::default(), scores, Masked::Allowed);
    /// let mut p = Vec::new();
    /// calibration.p_values_into(Row::new(&[2.0_f32, 0.0])?, &mut p);
    /// assert_eq!(p, [PValue { at_least: 3, n: 3 }, PValue { at_least: 0, n: 3 }]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn p_values_into<T: Logit>(&self, row: Row<'_, T>, out: &mut Vec<PValue>) {
        // Labels beyond the largest calibration score all have the same, smallest p-value; only the others
        // need their scores.
        let sorted = self.scores.as_slice();
        let largest = sorted[sorted.len() - 1];
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        self.score.scored_set_into(row, largest, &mut labels, &mut scores);
        let start = out.len();
        out.resize(start + row.classes(), PValue { at_least: 0, n: self.scores.n() });
        for (label, score) in labels.into_iter().zip(scores) {
            out[start + label as usize] = self.scores.p_value(score);
        }
    }

    /// The p-values of every label of every row, row after row.
    ///
    /// ```
    /// # use conformax::{Calibration, CalibrationScores, EntmaxScore, Logits, Masked};
    /// let scores = CalibrationScores::new(vec![0.0, 0.0, 1.5])?;
    /// let calibration = Calibration::from_scores(EntmaxScore::default(), scores, Masked::Allowed);
    /// let p = calibration.p_values(Logits::new(&[2.0_f32, 0.0], 2)?)?;
    /// assert_eq!((p[0].value(), p[1].value()), (1.0, 0.25));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn p_values<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<PValue>> {
        let chunks = map_chunks(logits, |first, chunk| {
            let mut p = Vec::with_capacity(chunk.as_slice().len());
            visit_rows(first, chunk, |_, row| {
                self.p_values_into(row, &mut p);
                Ok(())
            })?;
            Ok(p)
        })?;
        Ok(chunks.concat())
    }
}

/// Scores the calibration rows and takes the threshold at a level: logits in, predictor out.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Gamma, Logits, calibrate};
/// let (cal, labels) = ([2.0_f32, 0.0, 0.5, 1.0, 3.0, 0.0, 0.0, 4.0], [0, 0, 0, 1]);
/// let score = EntmaxScore { gamma: Gamma::new(1.5)? };
/// let model = calibrate(score, Logits::new(&cal, 2)?, &labels, Alpha::new(0.2)?)?;
/// let sets = model.predict(Logits::new(&[1.0_f32, 0.75, 1.0, 0.25], 2)?)?;
/// assert_eq!(sets.get(0), [0, 1]);
/// assert_eq!(sets.get(1), [0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn calibrate<S: Score + Clone, T: Logit>(
    score: S,
    logits: Logits<'_, T>,
    labels: &[u32],
    alpha: Alpha,
) -> Result<Calibrated<S>> {
    Ok(Calibration::new(score, logits, labels, Masked::Allowed)?.at(alpha))
}
