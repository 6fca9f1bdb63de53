//! `Calibrator`: labelled rows in any blocks become `Calibration`, the evidence; a level makes a `Predictor` of it.
//!
//! The threshold is the r-th smallest calibration score, `r = ⌈(n + 1)(1 − α)⌉`, of all rows or of a group's own.

use std::sync::Arc;

use crate::fingerprint::{RowSample, RowSet, hash_rows};
use crate::kernel::{PerStep, Steps};
use crate::level::{Level, Promise};
use crate::room::{append, make_room};
use crate::rows::{first_fault, map_chunks, read_rows, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::sorted_scores::Places;
use crate::{
    Alpha, Error, Labelled, Logit, Logits, Loss, LossSteps, Masked, PValue, Predictor, Ranks, Result, Row,
    Score, SortedScores, Taxonomy, Thresholds, WeightRule, WeightedScores,
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

/// The scores of true labels.
pub(crate) struct LabelScores<'a, T> {
    pub(crate) first: usize,
    pub(crate) chunk: Logits<'a, T>,
    pub(crate) labels: &'a [u32],
}

impl<T: Logit> Question for LabelScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    #[inline]
    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut scores = Vec::with_capacity(self.chunk.len());
        let fault = visit_rows(self.first, self.chunk, |index, row| {
            scores.push(score.score(row, self.labels[index]));
            Ok(())
        });
        // Only rows before a fault have scores.
        expect_numbers(self.first, &scores)?;
        fault.map(|()| scores)
    }
}

/// The error of a score that is no number, as one from elsewhere may be; the first has row `first`.
pub(crate) fn expect_numbers(first: usize, scores: &[f64]) -> Result<()> {
    match scores.iter().position(|score| score.is_nan()) {
        Some(row) => Err(Error::ScoreIsNan { row: (first + row) as u64 }),
        None => Ok(()),
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
    Ok(put_together(map_chunks(logits, |first, chunk| ask(score, AllScores { first, chunk }))?))
}

/// The results of chunks as one. Of one chunk nothing has to be put together: a p-value is as large as eight logits.
fn put_together<R: Clone>(mut chunks: Vec<Vec<R>>) -> Vec<R> {
    if chunks.len() == 1 { chunks.remove(0) } else { chunks.concat() }
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
///
/// ```
/// use conformax::{Calibrator, EntmaxScore, Logits, Remember, row_fingerprints};
/// let logits = Logits::new(&[1.0_f32, 3.0], 2)?;
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?.remembering(Remember::Rows);
/// calibrator.extend(logits.labelled(&[0])?)?;
/// assert!(calibrator.finish()?.rows().contains(row_fingerprints(logits)[0]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// Keep scores alone.
    #[default]
    Nothing,
    /// Keep fingerprints too: of up to 262,144 rows, beyond that of a sample.
    Rows,
}

impl Remember {
    /// The fingerprints of rows, where they are kept.
    pub(crate) fn names<T: Logit>(self, rows: Logits<'_, T>) -> Vec<u64> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Rows => hash_rows(rows),
        }
    }
}

/// How thresholds follow from calibration rows.
///
/// ```
/// use conformax::{Calibrator, EntmaxScore, Loss, Scheme};
/// let severity = Scheme::Risk(Loss::severity(vec![1.0, 0.1])?);
/// assert!(Calibrator::new(EntmaxScore::default(), 2)?.under(severity).is_ok());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// A threshold for each group; one for all rows by default.
    Groups(Taxonomy),
    /// By the weights that come with the rows, of those that calibrate and those to come
    /// ([`Logits::with_weights`]).
    RowWeights,
    /// By a weight per label: a threshold for each.
    LabelWeights(Vec<f64>),
    /// One threshold that keeps an expected loss below the level.
    Risk(Loss),
}

impl Default for Scheme {
    fn default() -> Self {
        Self::Groups(Taxonomy::All)
    }
}

impl Scheme {
    /// The error of a scheme for another number of classes, or of weights that are none.
    pub fn check(&self, classes: usize) -> Result<()> {
        let per_label = |what, got| match got == classes {
            true => Ok(()),
            false => Err(Error::PerLabel { what, wanted: classes, got }),
        };
        match self {
            Self::Groups(taxonomy) => taxonomy.check(classes),
            Self::RowWeights => Ok(()),
            Self::LabelWeights(weights) => {
                per_label("weights of labels", weights.len())?;
                if let Some(label) = weights.iter().position(|weight| !(0.0..f64::INFINITY).contains(weight))
                {
                    let (what, wanted) = ("weight", "a finite number of at least 0");
                    let (label, value) = (label as u32, weights[label]);
                    return Err(Error::LabelValue { what, wanted, label, value });
                }
                match weights.iter().any(|weight| *weight > 0.0) {
                    true => Ok(()),
                    false => Err(Error::NoWeight),
                }
            }
            Self::Risk(loss) => per_label("classes of a loss", loss.classes()),
        }
    }

    /// The error of rows that lack what the scheme needs of each.
    fn expect<T: Logit>(&self, logits: Logits<'_, T>) -> Result<()> {
        match self {
            Self::Groups(taxonomy) => taxonomy.expect(logits),
            Self::RowWeights => logits.weights().map(|_| ()),
            Self::LabelWeights(_) | Self::Risk(_) => Ok(()),
        }
    }

    fn nothing_gathered(&self, classes: usize) -> Gathered {
        match self {
            Self::Groups(taxonomy) => Gathered::Groups(vec![Vec::new(); taxonomy.groups(classes)]),
            Self::RowWeights | Self::LabelWeights(_) => Gathered::Weighted(Vec::new()),
            Self::Risk(_) => Gathered::Steps(LossSteps::default()),
        }
    }
}

/// What a calibrator has so far.
#[derive(Clone, Debug)]
pub(crate) enum Gathered {
    /// The scores of each group, in the order they came.
    Groups(Vec<Vec<f64>>),
    /// Scores and the weights of their rows, in the order they came.
    Weighted(Vec<(f64, f64)>),
    /// Where losses fall, in no order.
    Steps(LossSteps),
}

impl Gathered {
    fn n(&self) -> u64 {
        match self {
            Self::Groups(groups) => groups.iter().map(|scores| scores.len() as u64).sum(),
            Self::Weighted(scores) => scores.len() as u64,
            Self::Steps(steps) => steps.n,
        }
    }
}

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same bits.
///
/// It holds eight bytes a row and an eighth of that to grow into, twice as much with weights or a severity (and for
/// every cost that a row can come down to), and at most eleven megabytes of fingerprints where rows are remembered. To
/// finish takes no more, but for weights (34 bytes a row, of which the sums are 16) and clusters that leave out
/// classes, for which the scores are there twice.
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
    pub(crate) scheme: Scheme,
    pub(crate) ranks: Option<Ranks>,
    pub(crate) remember: Remember,
    pub(crate) gathered: Gathered,
    pub(crate) rows: RowSample,
}

impl<S: Score> Calibrator<S> {
    /// Calibrates this score on rows of so many classes.
    pub fn new(score: S, classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        let scheme = Scheme::default();
        Ok(Self {
            score,
            classes,
            masked: Masked::default(),
            gathered: scheme.nothing_gathered(classes),
            scheme,
            ranks: None,
            remember: Remember::Nothing,
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
        self.under(Scheme::Groups(taxonomy))
    }

    /// The same with thresholds that follow by this scheme; before the first row.
    pub fn under(self, scheme: Scheme) -> Result<Self> {
        scheme.check(self.classes)?;
        if self.ranks.is_some() && matches!(scheme, Scheme::Risk(_)) {
            return Err(Error::NotWith { what: "largest ranks of labels", with: "risk control" });
        }
        Ok(Self { gathered: scheme.nothing_gathered(self.classes), scheme, ..self })
    }

    /// The same with labels that stand further down the ranking than they may taken for infinitely strange; before the
    /// first row. The ranks must come from other rows.
    pub fn with_ranks(self, ranks: Ranks) -> Result<Self> {
        ranks.check(self.classes)?;
        if matches!(self.scheme, Scheme::Risk(_)) {
            return Err(Error::NotWith { what: "largest ranks of labels", with: "risk control" });
        }
        Ok(Self { ranks: Some(ranks), ..self })
    }

    /// The same, remembering its rows or not; before the first row.
    #[must_use]
    pub fn remembering(self, remember: Remember) -> Self {
        Self { remember, ..self }
    }

    /// The same without its rows: what is taken in by it can be merged into this one.
    #[must_use]
    pub fn emptied(&self) -> Self
    where
        S: Clone,
    {
        Self {
            score: self.score.clone(),
            classes: self.classes,
            masked: self.masked,
            scheme: self.scheme.clone(),
            ranks: self.ranks.clone(),
            remember: self.remember,
            gathered: self.scheme.nothing_gathered(self.classes),
            rows: RowSample::default(),
        }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.gathered.n()
    }

    /// How thresholds will follow.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Takes in rows. An error names the row in the whole, counted from the first that this accumulator took in, and
    /// leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let before = self.n();
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        self.gather(rows).map_err(|error| error.offset_rows(before))
    }

    fn gather<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let logits = rows.logits();
        first_fault([self.scheme.expect(logits), self.masked.check(rows)], |row| {
            score_labels(&self.score, rows.before(row)).map(|_| ())
        })?;
        let remember = self.remember;
        if let (Scheme::Risk(loss), Gathered::Steps(steps)) = (&self.scheme, &mut self.gathered) {
            let chunks = map_chunks(logits, |first, chunk| {
                let labels = &rows.labels()[first..first + chunk.len()];
                Ok((ask(&self.score, RowLosses { loss, first, chunk, labels })?, remember.names(chunk)))
            })?;
            for (more, names) in chunks {
                steps.merge(more);
                self.rows.extend(&names);
            }
            return Ok(());
        }
        let ranks = self.ranks.as_ref();
        let chunks = map_chunks(logits, |first, chunk| {
            let labels = &rows.labels()[first..first + chunk.len()];
            let scores = match ranks {
                None => ask(&self.score, LabelScores { first, chunk, labels })?,
                Some(ranks) => ask(&self.score, RankedLabelScores { ranks, first, chunk, labels })?,
            };
            Ok((scores, remember.names(chunk)))
        })?;
        let mut place = 0;
        for (scores, names) in chunks {
            let labels = &rows.labels()[place..place + scores.len()];
            match (&mut self.gathered, &self.scheme) {
                (Gathered::Groups(groups), Scheme::Groups(Taxonomy::All)) => {
                    append(&mut groups[0], &scores);
                }
                (Gathered::Groups(groups), Scheme::Groups(taxonomy)) => {
                    for ((index, label), score) in (place..).zip(labels).zip(&scores) {
                        append(&mut groups[taxonomy.group(*label, logits.group(index))], &[*score]);
                    }
                }
                (Gathered::Weighted(pairs), Scheme::LabelWeights(weights)) => {
                    make_room(pairs, scores.len());
                    let of_label = |(label, score): (&u32, &f64)| (*score, weights[*label as usize]);
                    pairs.extend(labels.iter().zip(&scores).map(of_label));
                }
                (Gathered::Weighted(pairs), _) => {
                    let weights = &logits.weights()?[place..place + scores.len()];
                    make_room(pairs, scores.len());
                    pairs.extend(scores.iter().copied().zip(weights.iter().copied()));
                }
                (Gathered::Groups(_) | Gathered::Steps(_), _) => unreachable!("a scheme gathers its own"),
            }
            place += scores.len();
            self.rows.extend(&names);
        }
        Ok(())
    }

    /// Takes in rows of a label whose fingerprints and scores are known, where groups are of labels.
    pub(crate) fn add(&mut self, label: u32, rows: impl Iterator<Item = (u64, f64)>) {
        let (Gathered::Groups(groups), Scheme::Groups(taxonomy)) = (&mut self.gathered, &self.scheme) else {
            unreachable!("thresholds go by groups of labels")
        };
        let group = &mut groups[taxonomy.group(label, None)];
        for (fingerprint, score) in rows {
            append(group, &[score]);
            self.rows.extend(&[fingerprint]);
        }
    }

    /// The same with its groups of rows moved: group `i` becomes `places[i]` of `count`. Other groups are empty. For
    /// whoever learns of groups as rows come.
    pub fn regrouped(self, places: &[usize], count: usize) -> Result<Self> {
        let (Scheme::Groups(Taxonomy::Group(_)), Gathered::Groups(old)) = (&self.scheme, self.gathered)
        else {
            return Err(Error::NotWith { what: "groups of rows", with: "this way to thresholds" });
        };
        let mut groups = vec![Vec::new(); count];
        for (scores, place) in old.into_iter().zip(places) {
            *groups.get_mut(*place).ok_or(Error::EmptyCluster(*place as u32))? = scores;
        }
        let scheme = Scheme::Groups(Taxonomy::Group(count));
        Ok(Self { scheme, gathered: Gathered::Groups(groups), ..self })
    }

    /// Takes in what another took in. It must be of the same score, classes, policies and scheme.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != other.score => Some("scores"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.scheme != other.scheme => Some("ways to thresholds"),
            () if self.ranks != other.ranks => Some("largest ranks"),
            () if self.remember != other.remember => Some("remembered rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        match (&mut self.gathered, other.gathered) {
            (Gathered::Groups(mine), Gathered::Groups(theirs)) => {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| append(mine, &theirs));
            }
            (Gathered::Weighted(mine), Gathered::Weighted(theirs)) => append(mine, &theirs),
            (Gathered::Steps(mine), Gathered::Steps(theirs)) => mine.merge(theirs),
            _ => unreachable!("the same scheme gathers the same"),
        }
        self.rows.merge(other.rows);
        Ok(())
    }

    /// Sorts the scores. An error where there is no row.
    pub fn finish(self) -> Result<Calibration<S>> {
        if self.n() == 0 {
            return Err(Error::NoCalibrationRows);
        }
        let Self { score, classes, masked, scheme, ranks, gathered, rows, .. } = self;
        let evidence = match gathered {
            Gathered::Groups(mut groups) => {
                if let Scheme::Groups(Taxonomy::Cluster(clusters)) = &scheme
                    && clusters.contains(&None)
                {
                    // Labels of no cluster go by the rows of all.
                    let all = groups.concat();
                    *groups.last_mut().expect("there is a group for them") = all;
                }
                Evidence::Groups(groups.into_iter().map(SortedScores::of_any).collect::<Result<_>>()?)
            }
            Gathered::Weighted(pairs) => Evidence::Weighted(Arc::new(WeightedScores::new(pairs)?)),
            Gathered::Steps(mut steps) => {
                steps.sort();
                Evidence::Losses(steps)
            }
        };
        Ok(Calibration { score, classes, masked, scheme, ranks, evidence, n: 0, rows: rows.finish() }
            .counted())
    }
}

/// What calibration rows say, in order.
///
/// ```
/// use conformax::{Calibration, EntmaxScore, Evidence, SortedScores};
/// let scores = SortedScores::new(vec![0.5, 2.0])?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores.clone())?;
/// assert_eq!(*calibration.evidence(), Evidence::Groups(vec![scores]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// The scores of each group.
    Groups(Vec<SortedScores>),
    /// Scores with the weights of their rows.
    Weighted(Arc<WeightedScores>),
    /// Where losses fall as the threshold grows.
    Losses(LossSteps),
}

/// The evidence: a score and what it gave the calibration rows. Any level, and p-values where there are scores.
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
    scheme: Scheme,
    ranks: Option<Ranks>,
    evidence: Evidence,
    n: u64,
    rows: RowSet,
}

impl<S: Score> Calibration<S> {
    /// Of these rows, all together: the short form of [`Calibrator`].
    pub fn of<T: Logit>(score: S, rows: Labelled<'_, T>) -> Result<Self> {
        let mut calibrator = Calibrator::new(score, rows.logits().classes())?;
        calibrator.extend(rows)?;
        calibrator.finish()
    }

    /// Of scores that this very score gave before, to rows that share a threshold.
    pub fn from_scores(score: S, classes: usize, scores: SortedScores) -> Result<Self> {
        Self::from_evidence(score, classes, Scheme::default(), Evidence::Groups(vec![scores]))
    }

    /// Of evidence that this very score gave before: read from a file, say.
    pub fn from_evidence(score: S, classes: usize, scheme: Scheme, evidence: Evidence) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        scheme.check(classes)?;
        match (&scheme, &evidence) {
            (Scheme::Groups(taxonomy), Evidence::Groups(groups)) => {
                let (wanted, got) = (taxonomy.groups(classes), groups.len());
                if wanted != got {
                    return Err(Error::PerLabel { what: "groups of scores", wanted, got });
                }
            }
            (Scheme::RowWeights | Scheme::LabelWeights(_), Evidence::Weighted(_))
            | (Scheme::Risk(_), Evidence::Losses(_)) => {}
            _ => return Err(Error::NotWith { what: "this evidence", with: "this way to thresholds" }),
        }
        let (masked, rows) = (Masked::default(), RowSet::default());
        let calibration =
            Self { score, classes, masked, scheme, ranks: None, evidence, n: 0, rows }.counted();
        if calibration.n == 0 { Err(Error::NoCalibrationRows) } else { Ok(calibration) }
    }

    fn counted(self) -> Self {
        let n = match (&self.evidence, &self.scheme) {
            // The rows of all stand beside those of the clusters.
            (Evidence::Groups(groups), Scheme::Groups(Taxonomy::Cluster(clusters)))
                if clusters.contains(&None) =>
            {
                groups.last().map_or(0, SortedScores::n)
            }
            (Evidence::Groups(groups), _) => groups.iter().map(SortedScores::n).sum(),
            (Evidence::Weighted(scores), _) => scores.n(),
            (Evidence::Losses(steps), _) => steps.n(),
        };
        Self { n, ..self }
    }

    /// The same with this meaning of −∞.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same with the largest ranks that went into the scores.
    pub fn with_ranks(self, ranks: Ranks) -> Result<Self> {
        ranks.check(self.classes)?;
        Ok(Self { ranks: Some(ranks), ..self })
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

    /// How thresholds follow.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// How far down the ranking a label may stand, where that is limited.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// What the calibration rows say.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The scores of each group; of one group where all rows share a threshold, of none where thresholds go by weights
    /// or a loss.
    pub fn groups(&self) -> &[SortedScores] {
        match &self.evidence {
            Evidence::Groups(groups) => groups,
            Evidence::Weighted(_) | Evidence::Losses(_) => &[],
        }
    }

    /// The calibration rows that can be known again, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// What predicts at a level, and what is promised.
    pub fn at(&self, alpha: Alpha) -> (Predictor<S>, Promise)
    where
        S: Clone,
    {
        let (thresholds, promise) = self.thresholds_at(alpha);
        (self.predictor(thresholds), promise)
    }

    fn thresholds_at(&self, alpha: Alpha) -> (Thresholds, Promise) {
        match (&self.scheme, &self.evidence) {
            (Scheme::Groups(taxonomy), Evidence::Groups(groups)) => {
                by_group(taxonomy, groups, alpha, |scores| scores.level(alpha))
            }
            (Scheme::Risk(loss), Evidence::Losses(steps)) => {
                (Thresholds::One(steps.threshold(loss, alpha)), Promise::Risk { alpha, n: self.n })
            }
            (Scheme::LabelWeights(weights), Evidence::Weighted(scores)) => {
                let of_label = weights.iter().map(|weight| scores.threshold(alpha, *weight)).collect();
                (Thresholds::PerLabel(of_label), Promise::Weighted { alpha, n: self.n })
            }
            (_, Evidence::Weighted(scores)) => {
                let rule = WeightRule::new(alpha, Arc::clone(scores));
                (Thresholds::ByWeight(rule), Promise::Weighted { alpha, n: self.n })
            }
            (_, Evidence::Groups(_) | Evidence::Losses(_)) => unreachable!("a scheme has its own evidence"),
        }
    }

    /// The same with coverage of at least `1 − α` with probability `1 − δ` over the calibration rows, in every group.
    /// An error where thresholds go by weights or a loss.
    pub fn at_with_delta(&self, alpha: Alpha, delta: Alpha) -> Result<(Predictor<S>, Promise)>
    where
        S: Clone,
    {
        let (Scheme::Groups(taxonomy), Evidence::Groups(groups)) = (&self.scheme, &self.evidence) else {
            let (what, with) = ("a probability over calibration rows", "weights or risk control");
            return Err(Error::NotWith { what, with });
        };
        let (thresholds, promise) =
            by_group(taxonomy, groups, alpha, |scores| scores.level(alpha).with_delta(delta));
        Ok((self.predictor(thresholds), promise))
    }

    /// What predicts with these thresholds of the groups.
    pub(crate) fn with_group_thresholds(&self, each: Vec<f64>) -> Predictor<S>
    where
        S: Clone,
    {
        let Scheme::Groups(taxonomy) = &self.scheme else { unreachable!("there are groups") };
        self.predictor(thresholds_of(taxonomy, each))
    }

    /// The scores of true labels as calibration takes them: infinite where they stand too far down.
    pub(crate) fn label_scores<T: Logit>(&self, logits: Logits<'_, T>, labels: &[u32]) -> Result<Vec<f64>> {
        match &self.ranks {
            None => score_labels(&self.score, logits.labelled(labels)?),
            Some(ranks) => ask(&self.score, RankedLabelScores { ranks, first: 0, chunk: logits, labels }),
        }
    }

    fn predictor(&self, thresholds: Thresholds) -> Predictor<S>
    where
        S: Clone,
    {
        let predictor = Predictor::new(self.score.clone(), thresholds).with_masked(self.masked);
        match &self.ranks {
            Some(ranks) => predictor.with_ranks(ranks.clone()),
            None => predictor,
        }
    }

    /// The p-value of every label of every row, row after row: a label is in the set at α exactly when its p-value
    /// exceeds α. An error under risk control, where a level bounds a loss.
    pub fn p_values<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<PValue>> {
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        first_fault([self.scheme.expect(logits)], |row| read_rows(logits.rows(0..row)))?;
        let (largest, places) = match &self.evidence {
            Evidence::Groups(groups) => (
                groups.iter().filter_map(SortedScores::largest_finite).fold(f64::NEG_INFINITY, f64::max),
                groups.iter().map(|scores| Places::new(scores.as_slice())).collect(),
            ),
            Evidence::Weighted(scores) => {
                (scores.largest_finite().unwrap_or(f64::NEG_INFINITY), vec![Places::new(scores.scores())])
            }
            Evidence::Losses(_) => return Err(Error::NotWith { what: "p-values", with: "risk control" }),
        };
        let chunks = map_chunks(logits, |first, chunk| {
            let (scheme, evidence, masked) = (&self.scheme, &self.evidence, self.masked);
            let (ranks, places) = (self.ranks.as_ref(), &places[..]);
            ask(&self.score, PValues { scheme, evidence, places, masked, ranks, largest, first, chunk })
        })?;
        Ok(put_together(chunks))
    }
}

/// The thresholds of each group's level, and the promise.
fn by_group(
    taxonomy: &Taxonomy,
    groups: &[SortedScores],
    alpha: Alpha,
    level: impl Fn(&SortedScores) -> Level,
) -> (Thresholds, Promise) {
    let levels: Vec<Level> = groups.iter().map(level).collect();
    let each: Vec<f64> = groups.iter().zip(&levels).map(|(scores, level)| scores.at(*level)).collect();
    let thresholds = thresholds_of(taxonomy, each);
    let promise = match (taxonomy, &levels[..]) {
        (Taxonomy::All, [level]) => Promise::Marginal(*level),
        _ => Promise::Groups { alpha, levels },
    };
    (thresholds, promise)
}

/// The thresholds of each group as they apply to rows.
fn thresholds_of(taxonomy: &Taxonomy, each: Vec<f64>) -> Thresholds {
    match taxonomy {
        Taxonomy::All => Thresholds::One(each[0]),
        Taxonomy::Label => Thresholds::PerLabel(each),
        Taxonomy::Cluster(clusters) => {
            let of_label = (0..clusters.len() as u32).map(|label| each[taxonomy.group(label, None)]);
            Thresholds::PerLabel(of_label.collect())
        }
        Taxonomy::Group(_) => Thresholds::PerGroup(each),
    }
}

/// The scores of true labels, infinite where they stand too far down.
struct RankedLabelScores<'a, T> {
    ranks: &'a Ranks,
    first: usize,
    chunk: Logits<'a, T>,
    labels: &'a [u32],
}

impl<T: Logit> Question for RankedLabelScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut scores = Vec::with_capacity(self.chunk.len());
        let fault = visit_rows(self.first, self.chunk, |index, row| {
            let label = self.labels[index];
            scores.push(if self.ranks.hold(row, label) { score.score(row, label) } else { f64::INFINITY });
            Ok(())
        });
        expect_numbers(self.first, &scores)?;
        fault.map(|()| scores)
    }
}

/// Where the losses of rows fall.
struct RowLosses<'a, T> {
    loss: &'a Loss,
    first: usize,
    chunk: Logits<'a, T>,
    labels: &'a [u32],
}

impl<T: Logit> Question for RowLosses<'_, T> {
    type Answer = Result<LossSteps>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut steps = LossSteps { n: self.chunk.len() as u64, ..LossSteps::default() };
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        visit_rows(self.first, self.chunk, |index, row| {
            let label = self.labels[index];
            let own = score.score(row, label);
            expect_numbers(self.first + index, &[own])?;
            // A severity falls with the true label alone; a cost may fall with any label before it.
            let scored = if self.loss.is_cost() {
                labels.clear();
                scores.clear();
                score.scored_set_into(row, own, &mut labels, &mut scores);
                scores.iter().copied().zip(labels.iter().copied()).collect()
            } else {
                vec![(own, label)]
            };
            steps.start += u128::from(self.loss.of_empty(label));
            self.loss.steps_into(label, scored, &mut steps.steps);
            Ok(())
        })?;
        Ok(steps)
    }
}

struct PValues<'a, T> {
    scheme: &'a Scheme,
    evidence: &'a Evidence,
    /// Of the scores of each group, or of all.
    places: &'a [Places<'a>],
    masked: Masked,
    ranks: Option<&'a Ranks>,
    largest: f64,
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> PValues<'_, T> {
    fn at(&self, row: Row<'_, T>, label: u32, score: f64) -> PValue {
        let score = match self.masked {
            Masked::Never if row.logit(label) == f64::NEG_INFINITY => f64::NAN,
            _ if self.ranks.is_some_and(|ranks| !ranks.hold(row, label)) => f64::INFINITY,
            _ => score,
        };
        match (self.evidence, self.scheme) {
            (Evidence::Groups(groups), Scheme::Groups(taxonomy)) => {
                groups[taxonomy.group(label, row.group())].p_value(score)
            }
            (Evidence::Weighted(scores), Scheme::LabelWeights(weights)) => {
                scores.p_value(score, weights[label as usize])
            }
            (Evidence::Weighted(scores), _) => scores.p_value(score, row.weight().unwrap_or_default()),
            (Evidence::Groups(_) | Evidence::Losses(_), _) => unreachable!("a scheme has its own evidence"),
        }
    }
}

impl<T: Logit> PValues<'_, T> {
    /// The p-value of a label whose score is finite and between these two, unless it depends on which.
    fn between(&self, row: Row<'_, T>, label: u32, least: f64, most: f64) -> Option<PValue> {
        if self.ranks.is_some() {
            let [least, most] = [least, most].map(|score| self.at(row, label, score));
            return (least == most).then_some(least);
        }
        match (self.evidence, self.scheme) {
            (Evidence::Groups(groups), Scheme::Groups(taxonomy)) => {
                let group = taxonomy.group(label, row.group());
                Some(groups[group].p_value_at(self.places[group].below_all(least, most)?))
            }
            (Evidence::Weighted(scores), scheme) => {
                let weight = match scheme {
                    Scheme::LabelWeights(weights) => weights[label as usize],
                    _ => row.weight().unwrap_or_default(),
                };
                Some(scores.p_value_at(self.places[0].below_all(least, most)?, weight))
            }
            (Evidence::Groups(_) | Evidence::Losses(_), _) => unreachable!("a scheme has its own evidence"),
        }
    }
}

impl<T: Logit> Question for PValues<'_, T> {
    type Answer = Result<Vec<PValue>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut all = Vec::with_capacity(self.chunk.as_slice().len());
        let mut scratch = Scratch::default();
        visit_rows(self.first, self.chunk, |_, row| {
            match score.look_by_steps(row, &mut scratch.steps) {
                true => self.append_by_steps(score, row, &mut scratch, &mut all),
                false => self.append_by_estimates(score, row, &mut scratch, &mut all),
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// Memory that one row leaves to the next.
struct Scratch {
    labels: Vec<u32>,
    scores: Vec<f64>,
    steps: Steps,
    of_steps: PerStep<PValue>,
    open: Vec<usize>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            scores: Vec::new(),
            steps: Steps::default(),
            of_steps: PerStep::new(NOTHING),
            open: Vec::new(),
        }
    }
}

/// No p-value is a share of nothing.
const NOTHING: PValue = PValue { count: 0, of: 0 };

impl<T: Logit> PValues<'_, T> {
    /// The scores and their places, where all labels of all rows share them.
    fn shared(&self) -> Option<(&SortedScores, &Places<'_>)> {
        match (self.evidence, self.scheme, self.places) {
            (Evidence::Groups(groups), Scheme::Groups(Taxonomy::All), [places]) if self.ranks.is_none() => {
                Some((&groups[0], places))
            }
            _ => None,
        }
    }

    /// Appends the p-values of a row from bounds on the scores of its labels. Between most bounds there is no
    /// calibration score; where there is one, which side of it a label is on takes closer bounds or the definition.
    fn append_by_steps<P: Paths>(
        &self,
        score: &P,
        row: Row<'_, T>,
        scratch: &mut Scratch,
        all: &mut Vec<PValue>,
    ) {
        let Scratch { open, steps, of_steps, .. } = scratch;
        let exact = |label: u32| self.at(row, label, score.score(row, label));
        let Some((scores, places)) = self.shared() else {
            all.extend((0..row.classes() as u32).map(|label| {
                let between = |(least, most)| self.between(row, label, least, most);
                let p = steps.bounds_by_step(label).and_then(between);
                p.or_else(|| between(steps.bounds_of(label)?)).unwrap_or_else(|| exact(label))
            }));
            return;
        };
        let mut between = Between::new(scores, places);
        open.clear();
        for (step, least, most) in steps.bounds() {
            match between.p_value(least, most) {
                Some(p) => of_steps.say(step, p),
                None => open.push(step),
            }
        }
        let start = all.len();
        steps.spread(of_steps, all);
        let out = &mut all[start..];
        for step in open.iter().map(|step| steps.step(*step)) {
            for label in step.labels() {
                let (least, most) = step.bounds_of(label);
                out[label as usize] = between.p_value(least, most).unwrap_or_else(|| exact(label));
            }
        }
        for label in steps.masked() {
            out[label as usize] = exact(label);
        }
    }

    /// The same from estimates of the scores up to the largest finite calibration score: beyond that a label is behind
    /// none but infinite ones, whatever its own.
    fn append_by_estimates<P: Paths>(
        &self,
        score: &P,
        row: Row<'_, T>,
        scratch: &mut Scratch,
        all: &mut Vec<PValue>,
    ) {
        let Scratch { labels, scores, .. } = scratch;
        let start = all.len();
        labels.clear();
        scores.clear();
        let off = score.estimated_set_into(row, self.largest, labels, scores);
        all.resize(start + row.classes(), NOTHING);
        let out = &mut all[start..];
        let estimates = labels.iter().copied().zip(scores.iter().copied());
        let exact = |label: u32| self.at(row, label, score.score(row, label));
        match self.shared() {
            // What is the same for every label is looked up once.
            Some((scores, places)) => {
                let mut between = Between::new(scores, places);
                fill(estimates, off, |_, least, most| between.p_value(least, most), exact, out);
            }
            None => fill(estimates, off, |y, least, most| self.between(row, y, least, most), exact, out),
        }
        if labels.len() < row.classes() {
            for (label, p) in (0..).zip(out).filter(|(_, p)| p.of == 0) {
                *p = self.at(row, label, f64::INFINITY);
            }
        }
    }
}

/// P-values of labels one after another: far down a ranking many fall between the same two scores.
struct Between<'a> {
    scores: &'a SortedScores,
    places: &'a Places<'a>,
    /// Neighbours among the calibration scores, and the p-value of what is above the first and not above the second.
    around: (f64, f64),
    p: PValue,
}

impl<'a> Between<'a> {
    fn new(scores: &'a SortedScores, places: &'a Places<'a>) -> Self {
        Self { scores, places, around: (f64::INFINITY, f64::NEG_INFINITY), p: NOTHING }
    }

    /// The p-value of a finite score between these two, unless it depends on which.
    #[inline(always)]
    fn p_value(&mut self, least: f64, most: f64) -> Option<PValue> {
        if !(self.around.0 < least && least <= self.around.1) {
            let below = self.places.below(least);
            (self.around, self.p) = (self.places.around(below), self.scores.p_value_at(below));
        }
        (most <= self.around.1).then_some(self.p)
    }
}

/// Writes the p-values of labels whose scores are known but for a relative error, each to its place.
#[inline(always)]
fn fill(
    estimates: impl Iterator<Item = (u32, f64)>,
    off: f64,
    mut between: impl FnMut(u32, f64, f64) -> Option<PValue>,
    exact: impl Fn(u32) -> PValue,
    out: &mut [PValue],
) {
    for (label, estimate) in estimates {
        let p = between(label, estimate * (1.0 - off), estimate * (1.0 + off));
        // A calibration score lies between: which side of it this one is on takes the definition.
        out[label as usize] = p.unwrap_or_else(|| exact(label));
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
pub fn calibrate<S: Score, T: Logit>(
    score: S,
    logits: Logits<'_, T>,
    labels: &[u32],
    alpha: Alpha,
) -> Result<Predictor<S>> {
    let calibration = Calibration::of(score, logits.labelled(labels)?)?;
    let (thresholds, _) = calibration.thresholds_at(alpha);
    Ok(Predictor::new(calibration.score, thresholds))
}
