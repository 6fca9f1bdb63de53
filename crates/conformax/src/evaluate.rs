//! `Evaluator`: labelled rows in any blocks become counts of how sets fared, and of rows that had a part in the model.

use crate::fingerprint::{Overlap, RowSet, SeenRows, row_fingerprints};
use crate::predict::drain_sets;
use crate::{Error, Labelled, Logit, Logits, Predictor, Result, Score, Tally};

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same counts.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Evaluator, Logits, Predictor, Strata, Thresholds};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
/// let mut evaluator = Evaluator::new(vec![model], 3)?;
/// evaluator.extend(Logits::new(&[0.0_f32, 3.0, 2.0, 1.0, 5.0, 0.0], 3)?.labelled(&[2, 0])?)?;
/// let evaluated = evaluator.finish()?;
/// let metrics = evaluated.tallies[0].metrics(Alpha::new(0.1)?, &Strata::default())?;
/// assert_eq!((metrics.coverage, metrics.average_size), (0.5, 1.5));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluator<S> {
    pub(crate) predictors: Vec<Predictor<S>>,
    pub(crate) classes: usize,
    pub(crate) model_rows: Vec<RowSet>,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) overlap: Overlap,
    /// The place of the next row, for messages.
    pub(crate) next_row: u64,
}

/// What an [`Evaluator`] counted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluated {
    /// How the sets of each predictor fared.
    pub tallies: Vec<Tally>,
    /// Rows that had a part in the model.
    pub seen: SeenRows,
}

impl<S: Score> Evaluator<S> {
    /// Evaluates these predictors, one per level say, on rows of so many classes.
    pub fn new(predictors: Vec<Predictor<S>>, classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        let tallies = predictors.iter().map(|_| Tally::new(classes)).collect();
        let (model_rows, overlap) = (Vec::new(), Overlap::default());
        Ok(Self { predictors, classes, model_rows, tallies, overlap, next_row: 0 })
    }

    /// The same, looking out for rows that had a part in the model; before the first row.
    #[must_use]
    pub fn watching_for(self, model_rows: Vec<RowSet>) -> Self {
        Self { model_rows, ..self }
    }

    /// The same with rows counted from here, where they are a part of more; before the first row.
    #[must_use]
    pub fn from_row(self, next_row: u64) -> Self {
        Self { next_row, ..self }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.tallies.first().map_or(0, Tally::n)
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        let mut tallies = self.tallies.clone();
        let mut place = 0;
        drain_sets(&self.predictors, logits, |by_predictor| {
            let count = by_predictor.first().map_or(0, crate::PredictionSets::len);
            let labels = &rows.labels()[place..place + count];
            for (tally, sets) in tallies.iter_mut().zip(&by_predictor) {
                sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
            }
            place += count;
        })
        .map_err(|error| error.offset_rows(self.next_row))?;
        self.tallies = tallies;
        if !self.model_rows.is_empty() {
            self.overlap.extend(self.next_row, &row_fingerprints(logits), &self.model_rows);
        }
        self.next_row += rows.len() as u64;
        Ok(())
    }

    /// Takes in what another took in, with the same predictors. Rows of both count.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.predictors != other.predictors => Some("predictors"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.model_rows != other.model_rows => Some("models' rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        self.tallies.iter_mut().zip(&other.tallies).for_each(|(mine, theirs)| mine.merge(theirs));
        self.overlap.merge(&other.overlap);
        self.next_row = self.next_row.max(other.next_row);
        Ok(())
    }

    /// The counts. An error where there is no row.
    pub fn finish(self) -> Result<Evaluated> {
        if self.n() == 0 {
            return Err(Error::NoTestRows);
        }
        Ok(Evaluated { tallies: self.tallies, seen: self.overlap.finish(&self.model_rows) })
    }
}
