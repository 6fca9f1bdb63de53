//! `Predictor`: a score and thresholds, which turn rows into sets and probabilities.
//!
//! [`set_of_row`] is the one place where a score, thresholds and policies meet; every call here goes through it, or
//! through the bounds that decide narrow rows many at a time and leave to it whatever is near a threshold.

use crate::contest::{Rivals, contested_set};
use crate::kernel::{Bounds, NARROW};
use crate::rows::{Narrow, drain_chunks, first_fault, read_rows, visit_narrow_rows, visit_rows};
use crate::score::paths::{LabelScratch, Paths, Question, ask, known};
use crate::score::{softmax_over, sort_best_first};
use crate::thresholds::{ByLabel, LabelBounds, RowThresholds, Thresholds};
use crate::{Empty, Logit, Logits, Masked, PredictionSets, Ranks, Result, Row, Score};

/// A score with thresholds and policies: all that prediction needs.
///
/// ```
/// use conformax::{Error, EntmaxScore, Logits, Predictor, Thresholds};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
/// let sets = model.predict(Logits::new(&[0.0_f32, 3.0, 2.0], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[1, 2][..]));
/// let bad = model.predict(Logits::new(&[0.0_f32, 3.0, f32::NAN], 3)?).unwrap_err();
/// assert!(matches!(bad, Error::Logit { row: 0, class: 2, .. }));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Predictor<S> {
    score: S,
    thresholds: Thresholds,
    label_bounds: LabelBounds,
    masked: Masked,
    empty: Empty,
    ranks: Option<Ranks>,
    /// Where several candidates are left, which choose among themselves label by label.
    rivals: Option<Rivals<S>>,
}

impl<S: Score> Predictor<S> {
    /// A predictor from thresholds that were calibrated with this very score.
    pub fn new(score: S, thresholds: Thresholds) -> Self {
        Self {
            score,
            label_bounds: LabelBounds::of(&thresholds),
            thresholds,
            masked: Masked::default(),
            empty: Empty::default(),
            ranks: None,
            rivals: None,
        }
    }

    /// The same predictor with this meaning of −∞.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same predictor with this rule for empty sets.
    #[must_use]
    pub fn with_empty(self, empty: Empty) -> Self {
        Self { empty, ..self }
    }

    /// The same predictor with labels that stand further down the ranking than they may taken for infinitely strange.
    #[must_use]
    pub fn with_ranks(self, ranks: Ranks) -> Self {
        Self { ranks: Some(ranks), ..self }
    }

    /// The same predictor with a choice between candidates for every label.
    pub(crate) fn with_rivals(self, rivals: Rivals<S>) -> Self {
        Self { rivals: Some(rivals), ..self }
    }

    /// Whether several candidates choose among themselves, so that the score and threshold are those of the first.
    pub fn is_a_choice(&self) -> bool {
        self.rivals.is_some()
    }

    pub(crate) fn rivals(&self) -> Option<&Rivals<S>> {
        self.rivals.as_ref()
    }

    /// The sets of the leader alone.
    pub(crate) fn of_leader(&self) -> Predictor<&S> {
        Predictor::new(&self.score, self.thresholds.clone()).with_masked(self.masked)
    }

    /// The score.
    pub fn score(&self) -> &S {
        &self.score
    }

    /// The thresholds.
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// What −∞ logits mean.
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// The rule for empty sets.
    pub fn empty(&self) -> Empty {
        self.empty
    }

    /// How far down the ranking a label may stand, where that is limited.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// The inverse temperature `β = δ/q` at which the activation's support is the set: 0 for full sets, ∞ for a
    /// threshold of 0. `None` for scores outside the entmax family, for γ = 1, and where thresholds differ by label,
    /// group or weight.
    pub fn temperature(&self) -> Option<f64> {
        match self.thresholds {
            _ if self.is_a_choice() => None,
            Thresholds::One(threshold) => known(&self.score)?.temperature(threshold),
            Thresholds::PerLabel(_) | Thresholds::PerGroup(_) | Thresholds::ByWeight(_) => None,
        }
    }

    /// The prediction set of every row: `{y : score(row, y) ≤ threshold}`, best first.
    pub fn predict<T: Logit>(&self, logits: Logits<'_, T>) -> Result<PredictionSets> {
        let mut whole = PredictionSets::with_capacity(logits.classes(), logits.len());
        drain_sets(std::slice::from_ref(self), logits, |sets| whole.append(&sets[0]))?;
        Ok(whole)
    }

    /// The sets and, packed the same way, the probabilities of their labels.
    ///
    /// For the entmax family above γ = 1 these are the activation itself at the calibrated temperature; for other
    /// scores, and where thresholds differ by label or ranks are limited, so that no one temperature has the set as its
    /// support, softmax renormalised over the set. They sum to one, except over an empty set.
    pub fn predict_probabilities<T: Logit>(
        &self,
        logits: Logits<'_, T>,
    ) -> Result<(PredictionSets, Vec<f64>)> {
        first_fault([self.expect(logits)], |row| read_rows(logits.rows(0..row)))?;
        if self.is_a_choice() {
            return self.predict_softmax(logits);
        }
        let mut whole = (PredictionSets::with_capacity(logits.classes(), logits.len()), Vec::new());
        let chunk = |first, chunk: Logits<'_, T>| {
            ask(&self.score, ProbabilitiesOfChunk { rule: self.rule(), first, chunk })
        };
        drain_chunks(logits, chunk, |(sets, mut probabilities)| {
            whole.0.append(&sets);
            whole.1.append(&mut probabilities);
        })?;
        Ok(whole)
    }

    /// The probabilities over the set of one row from the logits of its labels alone, best first: what lies outside a
    /// set has no part in them. The group or weight of the row comes with these, where thresholds go by it.
    pub fn probabilities_within<T: Logit>(&self, set: Logits<'_, T>) -> Result<Vec<f64>> {
        match &self.thresholds {
            Thresholds::One(_) | Thresholds::PerLabel(_) => {}
            other => other.expect(set)?,
        }
        match set.is_empty() {
            true => Ok(Vec::new()),
            false => {
                let (row, ranked) = (set.row(0)?, self.ranks.is_some() || self.is_a_choice());
                let thresholds = self.thresholds.of_row(row);
                Ok(ask(&self.score, ProbabilitiesWithin { row, thresholds, ranked }))
            }
        }
    }

    /// Sets with softmax over each, where no one temperature stands behind a set.
    fn predict_softmax<T: Logit>(&self, logits: Logits<'_, T>) -> Result<(PredictionSets, Vec<f64>)> {
        let (sets, mut probabilities) = (self.predict(logits)?, Vec::new());
        for (index, set) in sets.iter().enumerate() {
            softmax_over(logits.row(index)?, set, &mut probabilities);
        }
        Ok((sets, probabilities))
    }

    /// The error of rows that this predictor does not fit.
    pub(crate) fn expect<T: Logit>(&self, logits: Logits<'_, T>) -> Result<()> {
        self.ranks.as_ref().map_or(Ok(()), |ranks| ranks.check(logits.classes()))?;
        self.thresholds.expect(logits)
    }

    fn rule(&self) -> Rule<'_> {
        let (thresholds, label_bounds) = (&self.thresholds, &self.label_bounds);
        let ranks = self.ranks.as_ref();
        Rule { thresholds, label_bounds, masked: self.masked, empty: self.empty, ranks }
    }
}

/// The sets of several predictors, for instance one per level, in one pass over the logits.
///
/// ```
/// use conformax::{EntmaxScore, Logits, Predictor, Thresholds, predict_each};
/// let models = [2.0, 1.0].map(|q| Predictor::new(EntmaxScore::default(), Thresholds::One(q)));
/// let sets = predict_each(&models, Logits::new(&[3.0_f32, 1.5, 0.0], 3)?)?;
/// assert_eq!((sets[0].get(0), sets[1].get(0)), (Some(&[0, 1][..]), Some(&[0][..])));
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn predict_each<S: Score, T: Logit>(
    predictors: &[Predictor<S>],
    logits: Logits<'_, T>,
) -> Result<Vec<PredictionSets>> {
    let mut whole = empty_sets(predictors, logits.classes(), logits.len());
    drain_sets(predictors, logits, |sets| {
        whole.iter_mut().zip(&sets).for_each(|(whole, sets)| whole.append(sets));
    })?;
    Ok(whole)
}

/// The same chunk by chunk: `work` gets some consecutive rows with the sets of every predictor, on the thread that made
/// them and while both are in its cache; `take` gets what came of it, in row order.
///
/// ```
/// use conformax::{EntmaxScore, Logits, Predictor, Thresholds, predict_chunks};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(2.0));
/// let (logits, mut found) = (Logits::new(&[3.0_f32, 1.5, 0.0, 5.0], 2)?, Vec::new());
/// predict_chunks(&[model], logits, |_, sets| sets[0].sizes().collect::<Vec<_>>(), |sizes| found.extend(sizes))?;
/// assert_eq!(found, [2, 1]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn predict_chunks<S: Score, T: Logit, R: Send>(
    predictors: &[Predictor<S>],
    logits: Logits<'_, T>,
    work: impl Fn(Logits<'_, T>, Vec<PredictionSets>) -> R + Sync + Send,
    take: impl FnMut(R),
) -> Result<()> {
    let fits = predictors.iter().map(|predictor| predictor.expect(logits));
    first_fault(fits, |row| read_rows(logits.rows(0..row)))?;
    drain_chunks(logits, |first, chunk| Ok(work(chunk, sets_of_chunk(predictors, first, chunk)?)), take)
}

fn empty_sets<S>(predictors: &[Predictor<S>], classes: usize, rows: usize) -> Vec<PredictionSets> {
    predictors.iter().map(|_| PredictionSets::with_capacity(classes, rows)).collect()
}

/// Gives the sets of consecutive rows to `take`, in row order: those of every predictor.
pub(crate) fn drain_sets<S: Score, T: Logit>(
    predictors: &[Predictor<S>],
    logits: Logits<'_, T>,
    take: impl FnMut(Vec<PredictionSets>),
) -> Result<()> {
    predict_chunks(predictors, logits, |_, sets| sets, take)
}

/// The sets of every predictor for the rows of a chunk.
pub(crate) fn sets_of_chunk<S: Score, T: Logit>(
    predictors: &[Predictor<S>],
    first: usize,
    chunk: Logits<'_, T>,
) -> Result<Vec<PredictionSets>> {
    let mut all = empty_sets(predictors, chunk.classes(), chunk.len());
    // A chunk of narrow rows stays in the cache from one predictor to the next, and its rows are faster together. Of a
    // wide row the pass that checks it is worth sharing.
    if predictors.len() == 1 || chunk.classes() <= NARROW {
        for (predictor, sets) in predictors.iter().zip(&mut all) {
            ask(&predictor.score, SetsOfChunk { rule: predictor.rule(), first, chunk, sets })?;
        }
    } else {
        let mut scratch = LabelScratch::default();
        visit_rows(first, chunk, |_, row| {
            for (predictor, sets) in predictors.iter().zip(&mut all) {
                let (rule, scratch) = (predictor.rule(), &mut scratch);
                ask(&predictor.score, SetOfRow { rule, row, sets, scratch });
            }
            Ok(())
        })?;
    }
    for (predictor, sets) in predictors.iter().zip(&mut all) {
        if let Some(rivals) = predictor.rivals() {
            *sets = contested_sets(rivals, predictor.rule(), chunk, sets)?;
        }
    }
    Ok(all)
}

/// The sets of the leader with those replaced on which others have a say.
fn contested_sets<S: Score, T: Logit>(
    rivals: &Rivals<S>,
    rule: Rule<'_>,
    chunk: Logits<'_, T>,
    leading: &PredictionSets,
) -> Result<PredictionSets> {
    let mut sets = PredictionSets::with_capacity(chunk.classes(), chunk.len());
    for (index, leading) in leading.iter().enumerate() {
        if rivals.leader_decides(leading.len()) {
            sets.push_with(|labels| labels.extend_from_slice(leading));
            continue;
        }
        let row = chunk.row(index)?;
        sets.push_with(|labels| {
            let start = labels.len();
            contested_set(rivals, rule.masked, row, leading.len(), labels);
            if rule.empty == Empty::TopLabel && labels.len() == start {
                labels.extend(top_labels(row));
            }
            sort_best_first(row, &mut labels[start..]);
        });
    }
    Ok(sets)
}

/// The best label and its ties.
fn top_labels<T: Logit>(row: Row<'_, T>) -> impl Iterator<Item = u32> {
    (0..row.classes() as u32).filter(move |label| row.logit(*label) == row.max())
}

/// What decides a row beside its score.
#[derive(Clone, Copy)]
struct Rule<'a> {
    thresholds: &'a Thresholds,
    label_bounds: &'a LabelBounds,
    masked: Masked,
    empty: Empty,
    ranks: Option<&'a Ranks>,
}

struct SetsOfChunk<'a, 'b, T> {
    rule: Rule<'b>,
    first: usize,
    chunk: Logits<'a, T>,
    sets: &'b mut PredictionSets,
}

impl<'a, T: Logit> Question for SetsOfChunk<'a, '_, T> {
    type Answer = Result<()>;

    #[inline]
    fn put<P: Paths>(self, score: &P) -> Result<()> {
        let Self { rule, first, chunk, sets } = self;
        let mut scratch = LabelScratch::default();
        let mut push = |row: Row<'_, T>, sets: &mut PredictionSets| {
            sets.push_with(|labels| set_of_row(score, rule, row, labels, &mut scratch));
        };
        let push_narrow = |row: Narrow<'_, 'a, T>| match row {
            Narrow::Set(len, leaders) => sets.push_leaders(len, leaders),
            Narrow::Open(row) => push(row, sets),
        };
        let is_narrow = chunk.classes() <= NARROW && rule.ranks.is_none();
        match rule.thresholds {
            Thresholds::One(threshold) if is_narrow => {
                if let Some(bounds) = score.bounds(*threshold) {
                    return visit_narrow_rows(first, chunk, bounds, push_narrow);
                }
            }
            Thresholds::PerLabel(thresholds) if is_narrow && rule.label_bounds.are_finite() => {
                if let Some(Bounds { growth, limits }) = score.bounds_by_label(thresholds) {
                    let bounds = Bounds { growth, limits: &limits };
                    return visit_narrow_rows(first, chunk, bounds, push_narrow);
                }
            }
            _ => {}
        }
        visit_rows(first, chunk, |_, row| {
            push(row, sets);
            Ok(())
        })
    }
}

struct SetOfRow<'a, 'b, T: Logit> {
    rule: Rule<'b>,
    row: Row<'a, T>,
    sets: &'b mut PredictionSets,
    scratch: &'b mut LabelScratch<T>,
}

impl<T: Logit> Question for SetOfRow<'_, '_, T> {
    type Answer = ();

    #[inline]
    fn put<P: Paths>(self, score: &P) {
        let Self { rule, row, sets, scratch } = self;
        sets.push_with(|labels| set_of_row(score, rule, row, labels, scratch));
    }
}

struct ProbabilitiesOfChunk<'a, 'b, T> {
    rule: Rule<'b>,
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> Question for ProbabilitiesOfChunk<'_, '_, T> {
    type Answer = Result<(PredictionSets, Vec<f64>)>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let Self { rule, first, chunk } = self;
        let mut sets = PredictionSets::with_capacity(chunk.classes(), chunk.len());
        let (mut probabilities, mut scratch) = (Vec::new(), LabelScratch::default());
        visit_rows(first, chunk, |_, row| {
            sets.push_with(|labels| {
                let start = labels.len();
                set_of_row(score, rule, row, labels, &mut scratch);
                let set = &labels[start..];
                match rule.thresholds.of_row(row) {
                    RowThresholds::One(threshold) if rule.ranks.is_none() => {
                        score.probabilities_into(row, set, threshold, &mut probabilities);
                    }
                    _ => softmax_over(row, set, &mut probabilities),
                }
            });
            Ok(())
        })?;
        Ok((sets, probabilities))
    }
}

struct ProbabilitiesWithin<'a, 'b, T> {
    row: Row<'a, T>,
    thresholds: RowThresholds<'b>,
    ranked: bool,
}

impl<T: Logit> Question for ProbabilitiesWithin<'_, '_, T> {
    type Answer = Vec<f64>;

    fn put<P: Paths>(self, score: &P) -> Vec<f64> {
        let (set, mut out) = ((0..self.row.classes() as u32).collect::<Vec<_>>(), Vec::new());
        match self.thresholds {
            RowThresholds::One(threshold) if !self.ranked => {
                score.probabilities_into(self.row, &set, threshold, &mut out);
            }
            _ => softmax_over(self.row, &set, &mut out),
        }
        out
    }
}

/// Appends the set of one row, best first.
#[inline]
fn set_of_row<P: Paths, T: Logit>(
    score: &P,
    rule: Rule<'_>,
    row: Row<'_, T>,
    out: &mut Vec<u32>,
    scratch: &mut LabelScratch<T>,
) {
    let start = out.len();
    let thresholds = rule.thresholds.of_row(row);
    match thresholds {
        RowThresholds::One(threshold) => {
            score.set_into(row, threshold, out);
            if rule.masked == Masked::Never && threshold == f64::INFINITY {
                // Best first puts −∞ last.
                let possible = out[start..].partition_point(|label| row.logit(*label) > f64::NEG_INFINITY);
                out.truncate(start + possible);
            }
        }
        RowThresholds::PerLabel(thresholds) => {
            let by_label = ByLabel::new(thresholds, rule.label_bounds);
            if by_label.largest > f64::NEG_INFINITY {
                score.set_by_label_into(row, by_label, out, scratch);
            }
            if !by_label.infinite.is_empty() {
                // In whatever their scores, which are not computed.
                out.extend_from_slice(by_label.infinite);
                sort_best_first(row, &mut out[start..]);
            }
            if rule.masked == Masked::Never {
                retain(out, start, |label| row.logit(label) > f64::NEG_INFINITY);
            }
        }
    }
    if let Some(ranks) = rule.ranks {
        // What stands too far down scores +∞, which an infinite threshold takes.
        retain(out, start, |label| thresholds.of(label) == f64::INFINITY || ranks.hold(row, label));
    }
    if rule.empty == Empty::TopLabel && out.len() == start {
        out.extend(top_labels(row));
        sort_best_first(row, &mut out[start..]);
    }
}

/// Keeps the labels from `start` on that `keep` says yes to.
fn retain(labels: &mut Vec<u32>, start: usize, keep: impl Fn(u32) -> bool) {
    let mut kept = start;
    for place in start..labels.len() {
        let label = labels[place];
        labels[kept] = label;
        kept += usize::from(keep(label));
    }
    labels.truncate(kept);
}
