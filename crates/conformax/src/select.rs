//! Selection that uses every row: the score with the smallest sets, chosen anew for every label of every row, so that
//! the choice treats the row to come as one of the rows that calibrate (Liang, Zhu, Barber 2024).
//!
//! With candidates `m`, `k = ⌈(n + 1)(1 − α)⌉` and a label `y` of a row `x`, `t_m(y)` is `S^m(x, y)` clamped between the
//! `(k − 1)`-th and the `k`-th smallest calibration score, `W_m(y)` the number of (row, label) pairs with `S^m ≤ t_m(y)`
//! over calibration rows and `x`, and `y` is in the set where the candidate with the least `W` (the first of equals) scores
//! it no more than its `k`-th calibration score. Coverage is at least `1 − α`; there is no law of it.
//!
//! It takes two passes over the rows: a [`Tuner`](crate::Tuner) scores their true labels, and the [`PairCounter`] it
//! finishes to counts pairs at the two scores and keeps those between. A candidate whose least `W` exceeds another's
//! largest is out, so as a rule one is left and its sets are those of split conformal prediction.

use crate::fingerprint::RowSet;
use crate::rows::{map_chunks, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::{Alpha, Error, Logit, Logits, Masked, Predictor, Result, Row, Score, Thresholds};

/// A candidate and what the calibration rows say of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rival<S> {
    pub(crate) score: S,
    /// The scores of ranks `k − 1` and `k`: −∞ and +∞ where there are none.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Pairs that score no more than the lower.
    pub(crate) at_low: u64,
    /// The scores of those beyond it, up to the higher.
    pub(crate) between: Vec<f64>,
}

impl<S> Rival<S> {
    fn least(&self) -> u64 {
        self.at_low
    }

    /// With every label of one row more.
    fn most(&self, classes: usize) -> u64 {
        self.at_low + self.between.len() as u64 + classes as u64
    }

    /// Pairs of calibration rows that score no more than `t`, which lies between the two.
    fn pairs(&self, t: f64) -> u64 {
        self.at_low + self.between.partition_point(|score| *score <= t) as u64
    }
}

/// Counts, for every candidate, the pairs of rows and labels around its threshold; it finishes to a [`Selection`].
#[derive(Clone, Debug, PartialEq)]
pub struct PairCounter<S> {
    pub(crate) rivals: Vec<Rival<S>>,
    pub(crate) classes: usize,
    pub(crate) alpha: Alpha,
    pub(crate) masked: Masked,
    /// Rows that gave the scores, and rows counted so far.
    pub(crate) scored: u64,
    pub(crate) n: u64,
    pub(crate) rows: RowSet,
}

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
        let chunks = map_chunks(logits, |first, chunk| {
            let each = self.rivals.iter().map(|rival| {
                let (low, high, masked) = (rival.low, rival.high, self.masked);
                ask(&rival.score, Pairs { low, high, masked, first, chunk })
            });
            each.collect::<Result<Vec<_>>>()
        });
        for chunk in chunks.map_err(|error| error.offset_rows(self.n))? {
            for (rival, (at_low, between)) in self.rivals.iter_mut().zip(chunk) {
                rival.at_low += at_low;
                rival.between.extend(between);
            }
        }
        self.n += logits.len() as u64;
        Ok(())
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
            mine.between.extend(theirs.between);
        }
        self.n += other.n;
        Ok(())
    }

    /// Leaves out who cannot win. An error where the rows counted are not those scored.
    pub fn finish(mut self) -> Result<Selection<S>> {
        if self.n != self.scored {
            let (wanted, got) = (self.scored as usize, self.n as usize);
            return Err(Error::Rows { what: "rows counted", wanted, got });
        }
        self.rivals.iter_mut().for_each(|rival| rival.between.sort_unstable_by(f64::total_cmp));
        let Self { rivals, classes, alpha, masked, n, rows, .. } = self;
        Ok(Selection { rivals, classes, alpha, masked, n, rows })
    }
}

/// Pairs up to the lower score, and the scores of those up to the higher.
struct Pairs<'a, T> {
    low: f64,
    high: f64,
    masked: Masked,
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> Question for Pairs<'_, T> {
    type Answer = Result<(u64, Vec<f64>)>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let (mut at_low, mut between) = (0, Vec::new());
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        visit_rows(self.first, self.chunk, |_, row| {
            outer.clear();
            inner.clear();
            score.set_into(row, self.high, &mut outer);
            score.set_into(row, self.low, &mut inner);
            let possible =
                |label: &u32| self.masked == Masked::Allowed || row.logit(*label) > f64::NEG_INFINITY;
            if self.masked == Masked::Never {
                outer.retain(possible);
                inner.retain(possible);
            }
            at_low += inner.len() as u64;
            // The inner is a part of the outer, so as many are the same.
            if outer.len() > inner.len() {
                let scores = outer.iter().map(|label| score.score(row, *label));
                between.extend(scores.filter(|score| *score > self.low));
            }
            Ok(())
        })?;
        Ok((at_low, between))
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
    rivals: Vec<Rival<S>>,
    classes: usize,
    alpha: Alpha,
    masked: Masked,
    n: u64,
    rows: RowSet,
}

impl<S: Score + Clone> Selection<S> {
    /// Miscoverage level.
    pub fn alpha(&self) -> Alpha {
        self.alpha
    }

    /// Number of calibration rows, all of which chose and calibrate.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The rows, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Every candidate, in grid order, and whether it can still win.
    pub fn candidates(&self) -> Vec<(&S, bool)> {
        let alive = alive(&self.rivals, self.classes);
        self.rivals.iter().map(|rival| &rival.score).zip(alive).collect()
    }

    /// What predicts: one candidate with its threshold where one is left, else all that are.
    pub fn predictor(&self) -> Predictor<S> {
        let alive = alive(&self.rivals, self.classes);
        let left: Vec<Rival<S>> = self
            .rivals
            .iter()
            .zip(alive)
            .filter(|(_, alive)| *alive)
            .map(|(rival, _)| rival.clone())
            .collect();
        let leader = &left[0];
        let predictor =
            Predictor::new(leader.score.clone(), Thresholds::One(leader.high)).with_masked(self.masked);
        if left.len() == 1 { predictor } else { predictor.with_rivals(left) }
    }
}

/// Who can win for some label of some row: not who needs more pairs at best than another at worst.
fn alive<S>(rivals: &[Rival<S>], classes: usize) -> Vec<bool> {
    let beaten = |place: usize| {
        let least = rivals[place].least();
        rivals.iter().enumerate().any(|(other, rival)| {
            let most = rival.most(classes);
            other != place && (most < least || (most == least && other < place))
        })
    };
    (0..rivals.len()).map(|place| !beaten(place)).collect()
}

/// Appends the labels of a row that are in the set, in the order of the classes.
pub(crate) fn selected_set<S: Score, T: Logit>(rivals: &[Rival<S>], row: Row<'_, T>, out: &mut Vec<u32>) {
    let sets: Vec<(Vec<u32>, Vec<f64>)> =
        rivals.iter().map(|rival| ask(&rival.score, ScoredSet { row, threshold: rival.high })).collect();
    // Each set's own scores in order, to count the row's labels up to one of them.
    let sorted: Vec<Vec<f64>> = sets
        .iter()
        .map(|(_, scores)| {
            let mut sorted = scores.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        })
        .collect();
    let mut candidates: Vec<u32> = sets.iter().flat_map(|(labels, _)| labels).copied().collect();
    candidates.sort_unstable();
    candidates.dedup();
    // A label that no candidate's set holds is in none.
    for label in candidates {
        let mut best: Option<(u64, bool)> = None;
        for ((rival, (labels, scores)), sorted) in rivals.iter().zip(&sets).zip(&sorted) {
            let own = labels.iter().position(|other| *other == label).map(|place| scores[place]);
            let t = own.unwrap_or(f64::INFINITY).clamp(rival.low, rival.high);
            let pairs = rival.pairs(t) + sorted.partition_point(|score| *score <= t) as u64;
            if best.is_none_or(|(least, _)| pairs < least) {
                best = Some((pairs, own.is_some()));
            }
        }
        if best.is_some_and(|(_, inside)| inside) {
            out.push(label);
        }
    }
}

struct ScoredSet<'a, T> {
    row: Row<'a, T>,
    threshold: f64,
}

impl<T: Logit> Question for ScoredSet<'_, T> {
    type Answer = (Vec<u32>, Vec<f64>);

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        score.scored_set_into(self.row, self.threshold, &mut labels, &mut scores);
        (labels, scores)
    }
}
