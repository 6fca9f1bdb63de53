//! `Calibrated`: a score and a threshold, which turn rows into sets and probabilities.

use crate::kernel::NARROW;
use crate::rows::{Narrow, drain_chunks, visit_narrow_rows, visit_rows};
use crate::score::{bounds, sort_best_first};
use crate::{Error, Level, Logit, Logits, PredictionSets, Result, Row, Score};

/// What a −∞ logit means.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, Masked, calibrate};
/// let one_row = Logits::new(&[1.0_f32, f32::NEG_INFINITY], 2)?;
/// let model = calibrate(EntmaxScore::default(), one_row, &[0], Alpha::new(0.1)?)?; // too few rows: full sets
/// assert_eq!(model.predict(one_row)?.get(0), [0, 1]);
/// assert_eq!(model.with_masked(Masked::Never).predict(one_row)?.get(0), [0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Masked {
    /// A class of probability zero: its score is +∞ and it is in a set only where the threshold is.
    #[default]
    Allowed,
    /// An impossible class: in no set. A calibration row whose true label it is contradicts that, and is an
    /// error.
    Never,
}

impl Masked {
    /// The error of a masked true label, under [`Masked::Never`].
    pub(crate) fn check_labels<T: Logit>(self, logits: Logits<'_, T>, labels: &[u32]) -> Result<()> {
        if self == Self::Allowed {
            return Ok(());
        }
        let rows = logits.as_slice().chunks_exact(logits.classes()).zip(labels);
        for (row, (logits, label)) in rows.enumerate() {
            if logits[*label as usize].to_f64() == f64::NEG_INFINITY {
                return Err(Error::MaskedLabel { row: row as u64, label: *label });
            }
        }
        Ok(())
    }
}

/// What to do where no label is within the threshold, as happens to randomised scores.
///
/// ```
/// use conformax::{Alpha, Calibrated, CalibrationScores, Empty, InvProbScore, Logits};
/// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
/// let model = Calibrated::new(InvProbScore, level);
/// let unsure = Logits::new(&[0.0_f32, 0.5], 2)?;
/// assert!(model.predict(unsure)?.get(0).is_empty());
/// assert_eq!(model.with_empty(Empty::TopLabel).predict(unsure)?.get(0), [1]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Empty {
    /// Leave the set empty.
    #[default]
    Allowed,
    /// Put in the top label and its ties, as equal logits share their fate. Coverage can only grow.
    TopLabel,
}

/// A score with its threshold at one level.
///
/// ```
/// use conformax::{Alpha, Calibrated, CalibrationScores, EntmaxScore, Logits};
/// let level = CalibrationScores::new(vec![0.0, 1.0, 2.0])?.level(Alpha::new(0.25)?);
/// let model = Calibrated::new(EntmaxScore::default(), level);
/// assert_eq!(model.temperature(), Some(1.0)); // β = δ/q = 2/2
/// assert_eq!(model.predict(Logits::new(&[3.0_f32, 1.5, 0.0], 3)?)?.get(0), [0, 1]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibrated<S> {
    score: S,
    level: Level,
    masked: Masked,
    empty: Empty,
}

impl<S: Score> Calibrated<S> {
    /// A predictor from a level that was calibrated before with this very score.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, InvProbScore};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).level(), level);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn new(score: S, level: Level) -> Self {
        Self { score, level, masked: Masked::Allowed, empty: Empty::Allowed }
    }

    /// The same predictor with this meaning of −∞.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, InvProbScore, Masked};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).with_masked(Masked::Never).masked(), Masked::Never);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same predictor with this rule for empty sets.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, Empty, InvProbScore};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).with_empty(Empty::TopLabel).empty(), Empty::TopLabel);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    #[must_use]
    pub fn with_empty(self, empty: Empty) -> Self {
        Self { empty, ..self }
    }

    /// The score.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, InvProbScore};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).score(), &InvProbScore);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn score(&self) -> &S {
        &self.score
    }

    /// Level, rank and threshold.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, InvProbScore};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).level().threshold, 0.1);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn level(&self) -> Level {
        self.level
    }

    /// What −∞ logits mean.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, InvProbScore, Masked};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).masked(), Masked::Allowed);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// The rule for empty sets.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, Empty, InvProbScore};
    /// let level = CalibrationScores::new(vec![0.1])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(InvProbScore, level).empty(), Empty::Allowed);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn empty(&self) -> Empty {
        self.empty
    }

    /// The inverse temperature `β = δ/q` at which the activation's support is the set: 0 for full sets, ∞ for
    /// a threshold of 0, `None` for scores that have none.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, EntmaxScore};
    /// let level = CalibrationScores::new(vec![4.0])?.level(Alpha::new(0.5)?);
    /// assert_eq!(Calibrated::new(EntmaxScore::default(), level).temperature(), Some(0.5));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn temperature(&self) -> Option<f64> {
        self.score.temperature(self.level.threshold)
    }

    /// Appends the set of one row, best first.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, EntmaxScore, Row};
    /// let level = CalibrationScores::new(vec![1.0])?.level(Alpha::new(0.5)?);
    /// let mut set = Vec::new();
    /// Calibrated::new(EntmaxScore::default(), level).set_into(Row::new(&[0.0_f32, 3.0, 2.0])?, &mut set);
    /// assert_eq!(set, [1, 2]);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    #[inline]
    pub fn set_into<T: Logit>(&self, row: Row<'_, T>, out: &mut Vec<u32>) {
        let start = out.len();
        self.score.set_into(row, self.level.threshold, out);
        if self.masked == Masked::Never && self.level.threshold == f64::INFINITY {
            // Best first puts −∞ last.
            let possible = out[start..].partition_point(|label| row.logit(*label) > f64::NEG_INFINITY);
            out.truncate(start + possible);
        }
        if self.empty == Empty::TopLabel && out.len() == start {
            out.extend((0..row.classes() as u32).filter(|label| row.logit(*label) == row.max()));
            sort_best_first(row, &mut out[start..]);
        }
    }

    /// The prediction set of every row: `{y : score(row, y) ≤ threshold}`.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, EntmaxScore, Error, Logits};
    /// let level = CalibrationScores::new(vec![1.0])?.level(Alpha::new(0.5)?);
    /// let model = Calibrated::new(EntmaxScore::default(), level);
    /// assert_eq!(model.predict(Logits::new(&[0.0_f32, 3.0, 2.0], 3)?)?.get(0), [1, 2]);
    /// let bad = model.predict(Logits::new(&[0.0_f32, 3.0, f32::NAN], 3)?).unwrap_err();
    /// assert!(matches!(bad, Error::Logit { row: 0, class: 2, .. }));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn predict<T: Logit>(&self, logits: Logits<'_, T>) -> Result<PredictionSets> {
        let few = logits.classes() <= NARROW;
        let bounds = self.score.gamma().filter(|_| few).and_then(|gamma| bounds(gamma, self.level.threshold));
        let mut whole = PredictionSets::with_capacity(logits.classes(), logits.len());
        let sets_of = |first, chunk: Logits<'_, T>| {
            let mut sets = PredictionSets::with_capacity(chunk.classes(), chunk.len());
            match bounds {
                Some(bounds) => visit_narrow_rows(first, chunk, bounds, |row| match row {
                    Narrow::Set((len, labels)) => sets.push_first(len, labels),
                    Narrow::Open(row) => sets.push_with(|labels| self.set_into(row, labels)),
                })?,
                None => visit_rows(first, chunk, |_, row| {
                    sets.push_with(|labels| self.set_into(row, labels));
                    Ok(())
                })?,
            }
            Ok(sets)
        };
        drain_chunks(logits, sets_of, |sets| whole.append(&sets))?;
        Ok(whole)
    }

    /// The sets and, packed the same way, the probabilities of their labels.
    ///
    /// For the entmax family above γ = 1 these are the activation itself at the calibrated temperature; for
    /// other scores softmax renormalised over the set. They sum to one, except over an empty set.
    ///
    /// ```
    /// # use conformax::{Alpha, Calibrated, CalibrationScores, EntmaxScore, Gamma, Logits};
    /// let level = CalibrationScores::new(vec![1.0])?.level(Alpha::new(0.5)?);
    /// let model = Calibrated::new(EntmaxScore { gamma: Gamma::SPARSEMAX }, level);
    /// let (sets, p) = model.predict_probabilities(Logits::new(&[0.0_f32, 3.0, 2.5], 3)?)?;
    /// assert_eq!((sets.get(0), &p[..]), (&[1, 2][..], &[0.75, 0.25][..]));
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn predict_probabilities<T: Logit>(
        &self,
        logits: Logits<'_, T>,
    ) -> Result<(PredictionSets, Vec<f64>)> {
        let mut whole = (PredictionSets::with_capacity(logits.classes(), logits.len()), Vec::new());
        let sets_of = |first, chunk: Logits<'_, T>| {
            let mut sets = PredictionSets::with_capacity(chunk.classes(), chunk.len());
            let mut probabilities = Vec::new();
            visit_rows(first, chunk, |index, row| {
                sets.push_with(|labels| self.set_into(row, labels));
                self.score.probabilities_into(row, sets.get(index), self.level.threshold, &mut probabilities);
                Ok(())
            })?;
            Ok((sets, probabilities))
        };
        drain_chunks(logits, sets_of, |(sets, mut probabilities)| {
            whole.0.append(&sets);
            whole.1.append(&mut probabilities);
        })?;
        Ok(whole)
    }
}

/// The sets of several predictors, for instance one per level, in one pass over the logits.
///
/// ```
/// use conformax::{Alpha, Calibration, CalibrationScores, EntmaxScore, Logits, Masked, predict_each};
/// let scores = CalibrationScores::new(vec![0.0, 1.0, 2.0])?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), scores, Masked::Allowed);
/// let models = [0.25, 0.5].map(|alpha| calibration.at(Alpha::new(alpha).unwrap()));
/// let sets = predict_each(&models, Logits::new(&[3.0_f32, 1.5, 0.0], 3)?)?;
/// assert_eq!((sets[0].get(0), sets[1].get(0)), (&[0, 1][..], &[0][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn predict_each<S: Score, T: Logit>(
    models: &[Calibrated<S>],
    logits: Logits<'_, T>,
) -> Result<Vec<PredictionSets>> {
    let empty = |rows| {
        models.iter().map(|_| PredictionSets::with_capacity(logits.classes(), rows)).collect::<Vec<_>>()
    };
    let mut whole = empty(logits.len());
    let sets_of = |first, chunk: Logits<'_, T>| {
        let mut sets = empty(chunk.len());
        visit_rows(first, chunk, |_, row| {
            for (model, sets) in models.iter().zip(&mut sets) {
                sets.push_with(|labels| model.set_into(row, labels));
            }
            Ok(())
        })?;
        Ok(sets)
    };
    drain_chunks(logits, sets_of, |sets| {
        whole.iter_mut().zip(&sets).for_each(|(whole, sets)| whole.append(sets));
    })?;
    Ok(whole)
}
