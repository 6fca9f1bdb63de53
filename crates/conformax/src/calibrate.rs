//! `Calibrator`: labelled rows in any blocks become `Calibration`, the evidence; a level makes a `Predictor` of it.
//!
//! The threshold is the r-th smallest calibration score, `r = ⌈(n + 1)(1 − α)⌉`, of all rows or of a group's own.

use crate::fingerprint::{RowSample, RowSet, hash_rows};
use crate::level::{Level, Promise};
use crate::rows::{map_chunks, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::{
    Alpha, Error, Labelled, Logit, Logits, Masked, PValue, Predictor, Result, Row, Score, SortedScores,
    Taxonomy, Thresholds,
};

/// Scores the true label of every row.
///
/// ```
/// use conformax::{EntmaxScore, Logits, score_labels};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?;
/// assert_eq!(score_labels(&EntmaxScore::default(), logits.labelled(&[0, 0])?)?, [2.0, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn score_labels<S: Score, T: Logit>(score: &S, rows: Labelled<'_, T>) -> Result<Vec<f64>> {
    let chunks = map_chunks(rows.logits(), |first, chunk| {
        let labels = &rows.labels()[first..first + chunk.len()];
        ask(score, LabelScores { first, chunk, labels })
    })?;
    Ok(chunks.concat())
}

struct LabelScores<'a, T> {
    first: usize,
    chunk: Logits<'a, T>,
    labels: &'a [u32],
}

impl<T: Logit> Question for LabelScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    #[inline]
    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut scores = Vec::with_capacity(self.chunk.len());
        visit_rows(self.first, self.chunk, |index, row| {
            scores.push(score.score(row, self.labels[index]));
            Ok(())
        })?;
        Ok(scores)
    }
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
    let chunks = map_chunks(logits, |first, chunk| ask(score, AllScores { first, chunk }))?;
    Ok(chunks.concat())
}

struct AllScores<'a, T> {
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> Question for AllScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let classes = self.chunk.classes();
        let mut scores = vec![0.0; self.chunk.as_slice().len()];
        visit_rows(self.first, self.chunk, |index, row| {
            score.score_all(row, &mut scores[index * classes..][..classes]);
            Ok(())
        })?;
        Ok(scores)
    }
}

/// Whether an accumulator keeps the fingerprints of its rows, by which a model knows them again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// Keep scores alone.
    #[default]
    Nothing,
    /// Keep fingerprints too: of up to 262,144 rows, beyond that of a sample.
    Rows,
}

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same bits.
///
/// It holds eight bytes a row, and at most six megabytes of fingerprints where rows are remembered.
///
/// ```
/// use conformax::{Alpha, Calibrator, EntmaxScore, Logits};
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?;
/// let mut elsewhere = calibrator.clone();
/// calibrator.extend(Logits::new(&[1.0_f32, 3.0], 2)?.labelled(&[0])?)?;
/// elsewhere.extend(Logits::new(&[2.0_f32, 0.0, 5.0, 1.0], 2)?.labelled(&[0, 0])?)?;
/// calibrator.merge(elsewhere)?;
/// let (model, _) = calibrator.finish()?.at(Alpha::new(0.25)?);
/// assert_eq!(model.thresholds().as_slice(), [2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calibrator<S> {
    pub(crate) score: S,
    pub(crate) classes: usize,
    pub(crate) masked: Masked,
    pub(crate) taxonomy: Taxonomy,
    pub(crate) remember: Remember,
    /// The scores of each group, in the order they came.
    pub(crate) groups: Vec<Vec<f64>>,
    pub(crate) rows: RowSample,
}

impl<S: Score> Calibrator<S> {
    /// Calibrates this score on rows of so many classes.
    pub fn new(score: S, classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        Ok(Self {
            score,
            classes,
            masked: Masked::default(),
            taxonomy: Taxonomy::All,
            remember: Remember::Nothing,
            groups: vec![Vec::new()],
            rows: RowSample::default(),
        })
    }

    /// The same with this meaning of −∞; before the first row.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same with a threshold for each group of this taxonomy; before the first row.
    pub fn by(self, taxonomy: Taxonomy) -> Result<Self> {
        taxonomy.check(self.classes)?;
        let groups = vec![Vec::new(); taxonomy.groups(self.classes)];
        Ok(Self { taxonomy, groups, ..self })
    }

    /// The same, remembering its rows or not; before the first row.
    #[must_use]
    pub fn remembering(self, remember: Remember) -> Self {
        Self { remember, ..self }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.groups.iter().map(|scores| scores.len() as u64).sum()
    }

    /// Takes in rows. An error names the row in the whole, counted from the first that this accumulator took in, and
    /// leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let before = self.n();
        self.scored(rows).map_err(|error| error.offset_rows(before)).map(|scored| {
            let logits = rows.logits();
            if let (Taxonomy::All, [group]) = (&self.taxonomy, &mut self.groups[..]) {
                scored.into_iter().for_each(|(scores, names)| {
                    group.extend_from_slice(&scores);
                    self.rows.extend(&names);
                });
                return;
            }
            let mut place = 0;
            for (scores, names) in scored {
                for score in scores {
                    let group = self.taxonomy.group(rows.labels()[place], logits.group(place));
                    self.groups[group].push(score);
                    place += 1;
                }
                self.rows.extend(&names);
            }
        })
    }

    /// Scores and fingerprints, chunk after chunk.
    fn scored<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<(Vec<f64>, Vec<u64>)>> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        self.taxonomy.expect(logits)?;
        self.masked.check(rows)?;
        map_chunks(logits, |first, chunk| {
            let labels = &rows.labels()[first..first + chunk.len()];
            let scores = ask(&self.score, LabelScores { first, chunk, labels })?;
            let names = if self.remember == Remember::Rows { hash_rows(chunk) } else { Vec::new() };
            Ok((scores, names))
        })
    }

    /// Takes in what another took in. It must be of the same score, classes, policies and taxonomy.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != other.score => Some("scores"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.taxonomy != other.taxonomy => Some("taxonomies"),
            () if self.remember != other.remember => Some("remembered rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        for (mine, theirs) in self.groups.iter_mut().zip(other.groups) {
            mine.extend(theirs);
        }
        self.rows.merge(other.rows);
        Ok(())
    }

    /// Sorts the scores. An error where there is no row.
    pub fn finish(self) -> Result<Calibration<S>> {
        if self.n() == 0 {
            return Err(Error::NoCalibrationRows);
        }
        let Self { score, classes, masked, taxonomy, groups, rows, .. } = self;
        let groups = groups.into_iter().map(SortedScores::of_any).collect::<Result<_>>()?;
        Ok(Calibration { score, classes, masked, taxonomy, groups, rows: rows.finish() })
    }
}

/// The evidence: a score and the scores it gave the calibration rows. Any level, any p-value.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, SortedScores};
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, SortedScores::new(vec![0.5, 2.0, 1.0])?)?;
/// let (model, promise) = calibration.at(Alpha::new(0.5)?);
/// assert_eq!((model.thresholds().as_slice(), promise.alpha().value()), (&[1.0][..], 0.5));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration<S> {
    score: S,
    classes: usize,
    masked: Masked,
    taxonomy: Taxonomy,
    groups: Vec<SortedScores>,
    rows: RowSet,
}

impl<S: Score> Calibration<S> {
    /// Of these rows, all together: the short form of [`Calibrator`].
    pub fn of<T: Logit>(score: S, rows: Labelled<'_, T>) -> Result<Self> {
        let mut calibrator = Calibrator::new(score, rows.logits().classes())?;
        calibrator.extend(rows)?;
        calibrator.finish()
    }

    /// Of scores that this very score gave before: read from a file, say.
    pub fn from_scores(score: S, classes: usize, scores: SortedScores) -> Result<Self> {
        Self::from_groups(score, classes, Taxonomy::All, vec![scores])
    }

    /// The same by group.
    pub fn from_groups(
        score: S,
        classes: usize,
        taxonomy: Taxonomy,
        groups: Vec<SortedScores>,
    ) -> Result<Self> {
        taxonomy.check(classes)?;
        let (wanted, got) = (taxonomy.groups(classes), groups.len());
        if wanted != got {
            return Err(Error::Clusters { wanted, got });
        }
        if groups.iter().all(|scores| scores.n() == 0) {
            return Err(Error::NoCalibrationRows);
        }
        Ok(Self { score, classes, masked: Masked::default(), taxonomy, groups, rows: RowSet::default() })
    }

    /// The same with this meaning of −∞.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The score.
    pub fn score(&self) -> &S {
        &self.score
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What −∞ logits mean.
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// Who shares a threshold with whom.
    pub fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    /// The scores of each group; of one group where all rows share a threshold.
    pub fn groups(&self) -> &[SortedScores] {
        &self.groups
    }

    /// The calibration rows that can be known again, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.groups.iter().map(SortedScores::n).sum()
    }

    /// What predicts at a level, and what is promised.
    pub fn at(&self, alpha: Alpha) -> (Predictor<S>, Promise)
    where
        S: Clone,
    {
        let each = || self.groups.iter().map(|scores| scores.threshold(alpha)).collect::<Vec<f64>>();
        let thresholds = match &self.taxonomy {
            Taxonomy::All => Thresholds::One(self.groups[0].threshold(alpha)),
            Taxonomy::Label => Thresholds::PerLabel(each()),
            Taxonomy::Cluster(clusters) => {
                let of_cluster = each();
                Thresholds::PerLabel(clusters.iter().map(|cluster| of_cluster[*cluster as usize]).collect())
            }
            Taxonomy::Group(_) => Thresholds::PerGroup(each()),
        };
        let levels: Vec<Level> = self.groups.iter().map(|scores| scores.level(alpha)).collect();
        let promise = match (&self.taxonomy, &levels[..]) {
            (Taxonomy::All, [level]) => Promise::Marginal(*level),
            _ => Promise::Groups { alpha, levels },
        };
        (Predictor::new(self.score.clone(), thresholds).with_masked(self.masked), promise)
    }

    /// The p-value of every label of every row, row after row: a label is in the set at α exactly when its p-value
    /// exceeds α.
    pub fn p_values<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<PValue>> {
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        self.taxonomy.expect(logits)?;
        let largest =
            self.groups.iter().filter_map(SortedScores::largest_finite).fold(f64::NEG_INFINITY, f64::max);
        let chunks = map_chunks(logits, |first, chunk| {
            let (taxonomy, groups, masked) = (&self.taxonomy, &self.groups[..], self.masked);
            ask(&self.score, PValues { taxonomy, groups, masked, largest, first, chunk })
        })?;
        Ok(chunks.concat())
    }
}

struct PValues<'a, T> {
    taxonomy: &'a Taxonomy,
    groups: &'a [SortedScores],
    masked: Masked,
    largest: f64,
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> PValues<'_, T> {
    fn at(&self, row: Row<'_, T>, label: u32, score: f64) -> PValue {
        let scores = &self.groups[self.taxonomy.group(label, row.group())];
        match self.masked {
            Masked::Never if row.logit(label) == f64::NEG_INFINITY => PValue::impossible(scores.n()),
            _ => scores.p_value(score),
        }
    }
}

impl<T: Logit> Question for PValues<'_, T> {
    type Answer = Result<Vec<PValue>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut all = Vec::with_capacity(self.chunk.as_slice().len());
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        visit_rows(self.first, self.chunk, |_, row| {
            // A label beyond the largest finite calibration score is behind none but infinite ones, whatever its own
            // score; only the others need theirs.
            let start = all.len();
            all.extend((0..row.classes() as u32).map(|label| self.at(row, label, f64::INFINITY)));
            labels.clear();
            scores.clear();
            score.scored_set_into(row, self.largest, &mut labels, &mut scores);
            for (label, score) in labels.iter().zip(&scores) {
                all[start + *label as usize] = self.at(row, *label, *score);
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// From rows to a predictor at one level, in one call.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, calibrate};
/// let cal = [3.0_f32, 1.0, 0.0, 0.5, 2.0, 1.5, 1.0, 0.0, 4.0, 2.0, 2.5, 0.0];
/// let logits = Logits::new(&cal, 3)?;
/// let model = calibrate(EntmaxScore::default(), logits, &[0, 2, 2, 0], Alpha::new(0.2)?)?;
/// let sets = model.predict(Logits::new(&[2.0_f32, 1.75, -1.0], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[0, 1][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn calibrate<S: Score + Clone, T: Logit>(
    score: S,
    logits: Logits<'_, T>,
    labels: &[u32],
    alpha: Alpha,
) -> Result<Predictor<S>> {
    Ok(Calibration::of(score, logits.labelled(labels)?)?.at(alpha).0)
}
