//! Selection that uses every row: the score with the smallest sets, chosen anew for every label of every row, so that
//! the choice treats the row to come as one of the rows that calibrate (Liang, Zhu, Barber 2024).
//!
//! With candidates `m`, `k = ⌈(n + 1)(1 − α)⌉` and a label `y` of a row `x`, `t_m(y)` is `S^m(x, y)` clamped between
//! the `(k − 1)`-th and the `k`-th smallest calibration score, `W_m(y)` the number of (row, label) pairs with
//! `S^m ≤ t_m(y)` over calibration rows and `x`, and `y` is in the set where the candidate with the least `W` (the
//! first of equals) scores it no more than its `k`-th calibration score. Coverage is at least `1 − α`; there is no law
//! of it.
//!
//! It takes two passes over the rows: a [`Tuner`](crate::Tuner) scores their true labels, and the [`PairCounter`] it
//! finishes to counts pairs at the two scores and keeps those between. A candidate whose least `W` exceeds another's
//! largest is out. Where one is left, its sets are those of split conformal prediction; of candidates that are much
//! alike, such as neighbouring `γ`, several or all are left, and the same bound with the row's own labels in place of
//! all classes settles most rows, see [`Rivals`].
//!
//! Who decides the true labels of the calibration rows comes out of the second pass too: their scores are calibration
//! scores, so `t_m` is one of the two, and how many labels of the row score no more is counted there anyway.

use std::sync::Arc;

use crate::contest::{Rival, Rivals};
use crate::fingerprint::RowSet;
use crate::predict::sets_of_chunk;
use crate::room::append;
use crate::rows::{map_chunks, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::score::ranked::{RankedSoftmax, shared_ranking};
use crate::{
    Alpha, Error, Labelled, Level, Logit, Logits, Masked, PredictionSets, Predictor, Promise, RapsScore,
    Result, Row, Score, Thresholds,
};

/// Counts, for every candidate, the pairs of rows and labels around its threshold; it finishes to a [`Selection`], and
/// to how many true labels each candidate decides.
///
/// It keeps four bytes a row and candidate, and eight for every score between the two that calibration gave: those are
/// of neighbouring ranks, so a handful of labels lie between, and at worst every label that ties with the higher.
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut pairs = tuner.finish_selecting()?;
/// pairs.extend(logits.labelled(&[0, 0, 0])?)?; // the same rows once more
/// let (selection, wins) = pairs.finish()?;
/// assert_eq!((selection.leader(), wins.iter().sum::<u64>()), (0, 3));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PairCounter<S> {
    pub(crate) rivals: Vec<Rival<S>>,
    /// The scores between, of every candidate, in the order rows came.
    pub(crate) between: Vec<Vec<f64>>,
    /// What every row counts at its true label, of every candidate, in the order rows came.
    pub(crate) at_truth: Vec<Vec<AtTruth>>,
    pub(crate) classes: usize,
    pub(crate) alpha: Alpha,
    pub(crate) masked: Masked,
    /// Rows that gave the scores, and rows counted so far.
    pub(crate) scored: u64,
    pub(crate) n: u64,
    pub(crate) rows: RowSet,
}

/// How many labels of a row score no more than its true one does, clamped between the candidate's two scores, which is
/// one of them: twice as many, and one more where it is the higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AtTruth(pub(crate) u32);

impl AtTruth {
    /// Half of what the number holds; nothing but who decides a row of two thousand million labels depends on more.
    const MOST: usize = (u32::MAX / 2) as usize;

    fn low(labels: usize) -> Self {
        Self(2 * labels.min(Self::MOST) as u32)
    }

    fn high(labels: usize) -> Self {
        Self(Self::low(labels).0 + 1)
    }

    /// The pairs of calibration rows and of this row.
    fn pairs<S>(self, rival: &Rival<S>) -> u64 {
        let of_rows = if self.0.is_multiple_of(2) { rival.at_low } else { rival.at_high };
        of_rows + u64::from(self.0 / 2)
    }
}

/// What the rows of a chunk say of a candidate.
#[derive(Clone, Default)]
struct Counted {
    /// Pairs up to the lower score.
    at_low: u64,
    /// The scores of those up to the higher.
    between: Vec<f64>,
    /// By row.
    at_truth: Vec<AtTruth>,
}

impl<S: Score + Clone> PairCounter<S> {
    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in the same rows again, with their labels. An error names the row in the whole.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        let scores: Vec<&S> = self.rivals.iter().map(|rival| &rival.score).collect();
        let shared = shared_ranking(&scores);
        let at_high = self
            .rivals
            .iter()
            .map(|rival| Predictor::new(&rival.score, Thresholds::One(rival.high)).with_masked(self.masked));
        let at_high: Vec<Predictor<&S>> = at_high.collect();
        let chunks = map_chunks(logits, |first, chunk| match &shared {
            Some((draw, raps)) => {
                let mut counted = vec![Counted::default(); raps.len()];
                visit_rows(first, chunk, |index, row| {
                    let (ranked, truth) = (RankedSoftmax::new(row, *draw), rows.labels()[first + index]);
                    for ((rival, score), counted) in self.rivals.iter().zip(raps).zip(&mut counted) {
                        self.count_ranked(rival, score, &ranked, (row, truth), counted);
                    }
                    Ok(())
                })?;
                Ok(counted)
            }
            None => {
                let sets = sets_of_chunk(&at_high, first, chunk)?;
                let truths = &rows.labels()[first..first + chunk.len()];
                let each = self.rivals.iter().zip(&sets).map(|(rival, sets)| {
                    let (low, high) = (rival.low, rival.high);
                    ask(&rival.score, Around { low, high, chunk, sets, truths })
                });
                Ok(each.collect())
            }
        });
        for chunk in chunks.map_err(|error| error.offset_rows(self.n))? {
            let kept = self.between.iter_mut().zip(&mut self.at_truth);
            for ((rival, (between, at_truth)), counted) in self.rivals.iter_mut().zip(kept).zip(chunk) {
                rival.at_low += counted.at_low;
                rival.at_high += counted.at_low + counted.between.len() as u64;
                append(between, &counted.between);
                append(at_truth, &counted.at_truth);
            }
        }
        self.n += logits.len() as u64;
        Ok(())
    }

    /// Reads a candidate's scores off the row's ranking. Labels of probability zero are not in it and score +∞.
    fn count_ranked<T: Logit>(
        &self,
        rival: &Rival<S>,
        score: &RapsScore,
        ranked: &RankedSoftmax,
        (row, truth): (Row<'_, T>, u32),
        counted: &mut Counted,
    ) {
        let impossible = match self.masked {
            Masked::Allowed if rival.high == f64::INFINITY => row.classes() - ranked.labels().len(),
            Masked::Allowed | Masked::Never => 0,
        };
        let impossible = (0..impossible).map(|_| f64::INFINITY);
        let (mut at_low, before) = (0, counted.between.len());
        for score in ranked.raps_within(score, rival.high).chain(impossible) {
            match score <= rival.low {
                true => at_low += 1,
                false => counted.between.push(score),
            }
        }
        counted.at_low += at_low as u64;
        counted.at_truth.push(match ranked.raps_of(score, truth) <= rival.low {
            true => AtTruth::low(at_low),
            false => AtTruth::high(at_low + counted.between.len() - before),
        });
    }

    /// Takes in what another counted for the same candidates.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let alike = |(mine, theirs): (&Rival<S>, &Rival<S>)| {
            mine.score == theirs.score && mine.low == theirs.low && mine.high == theirs.high
        };
        let same =
            self.rivals.len() == other.rivals.len() && self.rivals.iter().zip(&other.rivals).all(alike);
        if !same || self.alpha != other.alpha || self.scored != other.scored {
            return Err(Error::Unlike { what: "candidates or their scores" });
        }
        if self.classes != other.classes || self.masked != other.masked {
            return Err(Error::Unlike { what: "numbers of classes or policies" });
        }
        for (mine, theirs) in self.rivals.iter_mut().zip(other.rivals) {
            mine.at_low += theirs.at_low;
            mine.at_high += theirs.at_high;
        }
        self.between.iter_mut().zip(other.between).for_each(|(mine, theirs)| append(mine, &theirs));
        self.at_truth.iter_mut().zip(other.at_truth).for_each(|(mine, theirs)| append(mine, &theirs));
        self.n += other.n;
        Ok(())
    }

    /// Leaves out who cannot win, and counts how many true labels each candidate decides; where one is left, it decides
    /// them all. An error where the rows counted are not those scored.
    pub fn finish(self) -> Result<(Selection<S>, Vec<u64>)> {
        if self.n != self.scored {
            let (wanted, got) = (self.scored as usize, self.n as usize);
            return Err(Error::Rows { what: "rows counted", wanted, got });
        }
        let Self { rivals, between, at_truth, classes, alpha, masked, n, rows, .. } = self;
        let mut rivals = Rivals::new(rivals)?;
        let alive = rivals.alive(classes);
        let left: Vec<usize> = (0..alive.len()).filter(|place| alive[*place]).collect();
        let mut wins = vec![0; alive.len()];
        for row in 0..n as usize {
            let pairs = |place: &&usize| at_truth[**place][row].pairs(&rivals.all[**place]);
            wins[*left.iter().min_by_key(pairs).expect("the leader is alive")] += 1;
        }
        let left = rivals.all.iter_mut().zip(between).zip(&alive).filter(|(_, alive)| **alive);
        for ((rival, mut between), _) in left {
            between.sort_unstable_by(f64::total_cmp);
            rival.between = Arc::from(between);
        }
        Ok((Selection { rivals, alive, classes, alpha, masked, n, rows }, wins))
    }
}

/// Which labels of a chunk's sets at the higher score are within the lower too, and the scores of the others.
struct Around<'a, 'b, T> {
    low: f64,
    high: f64,
    chunk: Logits<'a, T>,
    sets: &'b PredictionSets,
    /// The true labels.
    truths: &'b [u32],
}

impl<T: Logit> Question for Around<'_, '_, T> {
    type Answer = Counted;

    fn put<P: Paths>(self, score: &P) -> Counted {
        let Self { low, high, chunk, sets, truths } = self;
        let mut counted = Counted::default();
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        for (index, (logits, set)) in chunk.as_slice().chunks_exact(chunk.classes()).zip(sets).enumerate() {
            let Some(best) = set.first() else {
                counted.at_truth.push(AtTruth::high(0));
                continue;
            };
            let (row, truth) = (chunk.beside(index, logits, logits[*best as usize].to_f64()), truths[index]);
            // The two are scores of neighbouring ranks, so few rows have a label between.
            if score.surely_within(row, set, low) {
                counted.at_low += set.len() as u64;
                counted.at_truth.push(match set.contains(&truth) {
                    true => AtTruth::low(set.len()),
                    false => AtTruth::high(set.len()),
                });
                continue;
            }
            labels.clear();
            scores.clear();
            score.scored_set_into(row, high, &mut labels, &mut scores);
            let (mut at_low, mut truth_is_low) = (0, false);
            // Best first puts labels that may be in no set last.
            for (label, score) in labels.iter().zip(&scores).take(set.len()) {
                match *score <= low {
                    true => {
                        at_low += 1;
                        truth_is_low |= *label == truth;
                    }
                    false => counted.between.push(*score),
                }
            }
            counted.at_low += at_low as u64;
            let at_truth = if truth_is_low { AtTruth::low(at_low) } else { AtTruth::high(set.len()) };
            counted.at_truth.push(at_truth);
        }
        counted
    }
}

/// What calibration on all rows left of the candidates: it makes a predictor.
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut pairs = tuner.finish_selecting()?;
/// pairs.extend(logits.labelled(&[0, 0, 0])?)?;
/// let (selection, _) = pairs.finish()?;
/// assert_eq!(selection.predictor().predict(logits)?.sizes().sum::<usize>(), 5);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Selection<S> {
    rivals: Rivals<S>,
    alive: Vec<bool>,
    classes: usize,
    alpha: Alpha,
    masked: Masked,
    n: u64,
    rows: RowSet,
}

impl<S: Score + Clone> Selection<S> {
    /// A selection that was made before, from candidates in grid order, the level, the calibration rows and what −∞
    /// means; `None` where no calibration can have given these.
    pub fn from_parts(
        rivals: Vec<Rival<S>>,
        classes: usize,
        alpha: Alpha,
        (n, rows): (u64, RowSet),
        masked: Masked,
    ) -> Option<Self> {
        let pairs = n.checked_mul(classes as u64)?;
        if n == 0 {
            return None;
        }
        let rivals = Rivals::new(rivals).ok()?;
        let alive = rivals.alive(classes);
        let sound = |(rival, alive): (&Rival<S>, &bool)| {
            let Rival { low, high, at_low, at_high, between, .. } = rival;
            let inside = |score: &f64| *low < *score && score <= high;
            let counted = match alive {
                true => between.len() as u64 == at_high - at_low,
                false => between.is_empty(),
            };
            low <= high && *at_high <= pairs && counted && between.is_sorted() && between.iter().all(inside)
        };
        let all = rivals.as_slice();
        let ordered = all.iter().all(|rival| rival.at_low <= rival.at_high);
        let sound = ordered && all.iter().zip(&alive).all(sound);
        sound.then(|| Self { rivals, alive, classes, alpha, masked, n, rows })
    }

    /// Miscoverage level.
    pub fn alpha(&self) -> Alpha {
        self.alpha
    }

    /// What is promised: coverage, and no law of it.
    pub fn promise(&self) -> Promise {
        Promise::Selected(Level::new(self.n, self.alpha))
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What −∞ logits mean.
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// Number of calibration rows, all of which chose and calibrate.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The rows, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Every candidate, in grid order.
    pub fn rivals(&self) -> &[Rival<S>] {
        self.rivals.as_slice()
    }

    /// Whether each of them can still win some label of some row.
    pub fn alive(&self) -> &[bool] {
        &self.alive
    }

    /// Index of the one that needs the fewest pairs: it wins wherever the row itself does not tip the balance.
    pub fn leader(&self) -> usize {
        self.rivals.leader()
    }

    /// What predicts: one candidate with its threshold where one is left, else all that are.
    pub fn predictor(&self) -> Predictor<S> {
        let leader = &self.rivals()[self.leader()];
        let predictor =
            Predictor::new(leader.score.clone(), Thresholds::One(leader.high)).with_masked(self.masked);
        match self.alive.iter().filter(|alive| **alive).count() {
            1 => predictor,
            _ => predictor.with_rivals(self.rivals.clone()),
        }
    }

    /// For each candidate, how many of these rows' true labels it decides.
    pub fn winners<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<u64>> {
        let predictor = self.predictor();
        let (leader, mut wins) = (self.leader(), vec![0; self.rivals().len()]);
        let Some(rivals) = predictor.rivals() else {
            wins[leader] = rows.len() as u64;
            return Ok(wins);
        };
        let leading = predictor.of_leader();
        let chunks = map_chunks(rows.logits(), |first, chunk| {
            let leading = sets_of_chunk(std::slice::from_ref(&leading), first, chunk)?;
            let mut wins = vec![0_u64; self.rivals().len()];
            for (index, size) in leading[0].sizes().enumerate() {
                let winner = match rivals.leader_decides(size) {
                    true => leader,
                    false => {
                        rivals.winner(self.masked, chunk.row(index)?, size, rows.labels()[first + index])
                    }
                };
                wins[winner] += 1;
            }
            Ok(wins)
        })?;
        for chunk in chunks {
            wins.iter_mut().zip(chunk).for_each(|(wins, more)| *wins += more);
        }
        Ok(wins)
    }
}
