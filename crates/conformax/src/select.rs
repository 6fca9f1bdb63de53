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
//! alike, such as neighbouring `γ`, several or all are left, and the same bound with the row's own labels in place of all
//! classes settles most rows, see [`Rivals`].

mod winners;

pub use self::winners::WinnerCounter;

use std::sync::Arc;

use crate::contest::{Rival, Rivals};
use crate::fingerprint::RowSet;
use crate::predict::sets_of_chunk;
use crate::rows::{map_chunks, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::score::ranked::{RankedSoftmax, shared_ranking};
use crate::{
    Alpha, Error, Labelled, Level, Logit, Logits, Masked, PredictionSets, Predictor, Promise, RapsScore,
    Result, Row, Score, Thresholds,
};

/// Counts, for every candidate, the pairs of rows and labels around its threshold; it finishes to a [`Selection`].
///
/// ```
/// use conformax::{Alpha, Logits, Tuner, entmax_grid};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut tuner = Tuner::new(entmax_grid(), 2, Alpha::new(0.4)?)?;
/// tuner.extend(logits.labelled(&[0, 0, 0])?)?;
/// let mut pairs = tuner.finish_selecting()?;
/// pairs.extend(logits)?; // the same rows once more
/// assert_eq!(pairs.n(), 3);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PairCounter<S> {
    pub(crate) rivals: Vec<Rival<S>>,
    /// The scores between, of every candidate, in the order rows came.
    pub(crate) between: Vec<Vec<f64>>,
    pub(crate) classes: usize,
    pub(crate) alpha: Alpha,
    pub(crate) masked: Masked,
    /// Rows that gave the scores, and rows counted so far.
    pub(crate) scored: u64,
    pub(crate) n: u64,
    pub(crate) rows: RowSet,
}

/// Pairs up to the lower score, and the scores of those up to the higher.
type Counted = (u64, Vec<f64>);

impl<S: Score + Clone> PairCounter<S> {
    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in the same rows again; labels are not needed. An error names the row in the whole.
    pub fn extend<T: Logit>(&mut self, logits: Logits<'_, T>) -> Result<()> {
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
                let mut counted = vec![(0, Vec::new()); raps.len()];
                visit_rows(first, chunk, |_, row| {
                    let ranked = RankedSoftmax::new(row, *draw);
                    for ((rival, score), counted) in self.rivals.iter().zip(raps).zip(&mut counted) {
                        self.count_ranked(rival, score, &ranked, row, counted);
                    }
                    Ok(())
                })?;
                Ok(counted)
            }
            None => {
                let sets = sets_of_chunk(&at_high, first, chunk)?;
                let each = self.rivals.iter().zip(&sets).map(|(rival, sets)| {
                    let (low, high) = (rival.low, rival.high);
                    ask(&rival.score, Around { low, high, chunk, sets })
                });
                Ok(each.collect())
            }
        });
        for chunk in chunks.map_err(|error| error.offset_rows(self.n))? {
            for ((rival, all), (at_low, between)) in self.rivals.iter_mut().zip(&mut self.between).zip(chunk)
            {
                rival.at_low += at_low;
                rival.at_high += at_low + between.len() as u64;
                all.extend(between);
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
        row: Row<'_, T>,
        (at_low, between): &mut Counted,
    ) {
        let impossible = match self.masked {
            Masked::Allowed if rival.high == f64::INFINITY => row.classes() - ranked.labels().len(),
            Masked::Allowed | Masked::Never => 0,
        };
        for score in ranked.raps_within(score, rival.high).chain((0..impossible).map(|_| f64::INFINITY)) {
            match score <= rival.low {
                true => *at_low += 1,
                false => between.push(score),
            }
        }
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
        self.between.iter_mut().zip(other.between).for_each(|(mine, theirs)| mine.extend(theirs));
        self.n += other.n;
        Ok(())
    }

    /// Leaves out who cannot win. An error where the rows counted are not those scored.
    pub fn finish(self) -> Result<Selection<S>> {
        if self.n != self.scored {
            let (wanted, got) = (self.scored as usize, self.n as usize);
            return Err(Error::Rows { what: "rows counted", wanted, got });
        }
        let Self { rivals, between, classes, alpha, masked, n, rows, .. } = self;
        let mut rivals = Rivals::new(rivals);
        let alive = rivals.alive(classes);
        let left = rivals.all.iter_mut().zip(between).zip(&alive).filter(|(_, alive)| **alive);
        for ((rival, mut between), _) in left {
            between.sort_unstable_by(f64::total_cmp);
            rival.between = Arc::from(between);
        }
        Ok(Selection { rivals, alive, classes, alpha, masked, n, rows })
    }
}

/// Which labels of a chunk's sets at the higher score are within the lower too, and the scores of the others.
struct Around<'a, 'b, T> {
    low: f64,
    high: f64,
    chunk: Logits<'a, T>,
    sets: &'b PredictionSets,
}

impl<T: Logit> Question for Around<'_, '_, T> {
    type Answer = Counted;

    fn put<P: Paths>(self, score: &P) -> Counted {
        let Self { low, high, chunk, sets } = self;
        let (mut at_low, mut between) = (0, Vec::new());
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        for (index, (logits, set)) in chunk.as_slice().chunks_exact(chunk.classes()).zip(sets).enumerate() {
            let Some(best) = set.first() else { continue };
            let row = chunk.beside(index, logits, logits[*best as usize].to_f64());
            // The two are scores of neighbouring ranks, so few rows have a label between.
            if score.surely_within(row, set, low) {
                at_low += set.len() as u64;
                continue;
            }
            labels.clear();
            scores.clear();
            score.scored_set_into(row, high, &mut labels, &mut scores);
            // Best first puts labels that may be in no set last.
            for score in &scores[..set.len()] {
                match *score <= low {
                    true => at_low += 1,
                    false => between.push(*score),
                }
            }
        }
        (at_low, between)
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
/// pairs.extend(logits)?;
/// let selection = pairs.finish()?;
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
        if n == 0 || rivals.is_empty() {
            return None;
        }
        let rivals = Rivals::new(rivals);
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
