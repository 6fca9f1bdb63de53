//! Which candidate decides the labels of a row, and what it decides; `select.rs` says how candidates come about.

use std::sync::Arc;

use crate::score::paths::{Paths, Question, ask};
use crate::{Error, Logit, Masked, Result, Row, Score};

/// A candidate of a selection, and what the calibration rows say of it.
///
/// ```
/// use conformax::{EntmaxScore, Rival};
/// let rival = Rival::new(EntmaxScore::default(), (1.0, 2.0), (4, 6), vec![1.25, 1.5]);
/// assert_eq!(rival.pairs(1.25), 5);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rival<S> {
    /// The candidate.
    pub score: S,
    /// The calibration score of rank `k − 1`; −∞ where there is none.
    pub low: f64,
    /// That of rank `k`; +∞ where there is none.
    pub high: f64,
    /// Pairs of rows and labels that score at most the lower.
    pub at_low: u64,
    /// Those that score at most the higher.
    pub at_high: u64,
    /// The scores of those that lie between, ascending; a candidate that cannot win needs none.
    pub between: Arc<[f64]>,
}

impl<S> Rival<S> {
    /// A candidate with its scores of rank `k − 1` and `k`, the pairs up to each, and the scores between.
    pub fn new(
        score: S,
        (low, high): (f64, f64),
        (at_low, at_high): (u64, u64),
        between: impl Into<Arc<[f64]>>,
    ) -> Self {
        Self { score, low, high, at_low, at_high, between: between.into() }
    }

    /// Pairs of calibration rows that score no more than `t`, which lies between the two.
    pub fn pairs(&self, t: f64) -> u64 {
        self.at_low + self.between.partition_point(|score| *score <= t) as u64
    }
}

/// Candidates that choose among themselves label by label.
///
/// The leader needs the fewest pairs of calibration rows at its threshold. In a row where its set has `c` labels it
/// needs `c` more at most, so whoever needs more than that by the calibration rows alone is out. For most rows that
/// leaves the leader alone, and only the size of its set is looked at.
///
/// Public for studies, which know the sizes of rows' sets without making sets; everybody else has a `Selection`.
///
/// ```
/// use conformax::{EntmaxScore, Rival, Rivals};
/// let rival = |pairs| Rival::new(EntmaxScore::default(), (1.0, 2.0), pairs, Vec::new());
/// let rivals = Rivals::new(vec![rival((30, 40)), rival((19, 20)), rival((24, 60))])?;
/// assert_eq!((rivals.leader(), rivals.alive(5)), (1, vec![false, true, true]));
/// assert!(!rivals.contends(2, 3) && rivals.contends(2, 4)); // by how many labels the leader's set of a row has
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rivals<S> {
    pub(crate) all: Vec<Rival<S>>,
    leader: usize,
    /// Sets of the leader with fewer labels are the sets.
    contested_from: u64,
}

impl<S> Rivals<S> {
    /// Candidates in grid order, of which equals are ranked by it. An error where there is none.
    pub fn new(all: Vec<Rival<S>>) -> Result<Self> {
        let fewer =
            |best: usize, next: usize| if all[next].at_high < all[best].at_high { next } else { best };
        let leader = (0..all.len()).reduce(fewer).ok_or(Error::NoCandidates)?;
        let others = all.iter().enumerate().filter(|(place, _)| *place != leader);
        let least = others.map(|(_, rival)| rival.at_low).min().unwrap_or(u64::MAX);
        let contested_from = least.saturating_sub(all[leader].at_high);
        Ok(Self { all, leader, contested_from })
    }

    /// Every candidate, in grid order.
    pub fn as_slice(&self) -> &[Rival<S>] {
        &self.all
    }

    /// Index of the one that needs the fewest pairs at its higher score; of equals the first.
    pub fn leader(&self) -> usize {
        self.leader
    }

    /// Whether each can win for some label of some row of so many classes: not who needs more pairs at best than
    /// another at worst, with every label of one row more. Where all thresholds are infinite every set is full, whoever
    /// wins.
    pub fn alive(&self, classes: usize) -> Vec<bool> {
        let places = 0..self.all.len();
        if self.all.iter().all(|rival| rival.high == f64::INFINITY) {
            return places.map(|place| place == self.leader).collect();
        }
        let beaten = |place: usize| {
            let least = self.all[place].at_low;
            self.all.iter().enumerate().any(|(other, rival)| {
                let most = rival.at_high.saturating_add(classes as u64);
                other != place && (most < least || (most == least && other < place))
            })
        };
        places.map(|place| !beaten(place)).collect()
    }

    /// Whether a candidate can win some label of a row in which the leader's set has `size` labels.
    pub fn contends(&self, place: usize, size: usize) -> bool {
        let most = self.all[self.leader].at_high.saturating_add(size as u64);
        place == self.leader || self.all[place].at_low <= most
    }

    /// Whether the leader's set of so many labels is the set, whatever the others say.
    pub(crate) fn leader_decides(&self, size: usize) -> bool {
        (size as u64) < self.contested_from
    }
}

impl<S: Score> Rivals<S> {
    /// The candidate that decides a label of a row in which the leader's set has `size` labels.
    pub(crate) fn winner<T: Logit>(&self, masked: Masked, row: Row<'_, T>, size: usize, label: u32) -> usize {
        winner(&self.contenders(masked, row, size), label).place
    }

    /// Those who can win some label of the row, in grid order.
    fn contenders<T: Logit>(&self, masked: Masked, row: Row<'_, T>, size: usize) -> Vec<Contender<'_, S>> {
        let all = self.all.iter().enumerate().filter(|(place, _)| self.contends(*place, size));
        all.map(|(place, rival)| Contender::new(place, rival, masked, row)).collect()
    }
}

/// A candidate in a row, with the row's own scores up to its threshold.
struct Contender<'a, S> {
    place: usize,
    rival: &'a Rival<S>,
    labels: Vec<u32>,
    /// By label; +∞ beyond the threshold.
    scores: Vec<f64>,
    ascending: Vec<f64>,
}

impl<'a, S: Score> Contender<'a, S> {
    fn new<T: Logit>(place: usize, rival: &'a Rival<S>, masked: Masked, row: Row<'_, T>) -> Self {
        let (mut labels, mut ascending) = ask(&rival.score, ScoredSet { row, threshold: rival.high });
        if masked == Masked::Never {
            // Best first puts −∞ last.
            let possible = labels.partition_point(|label| row.logit(*label) > f64::NEG_INFINITY);
            labels.truncate(possible);
            ascending.truncate(possible);
        }
        let mut scores = vec![f64::INFINITY; row.classes()];
        labels.iter().zip(&ascending).for_each(|(label, score)| scores[*label as usize] = *score);
        ascending.sort_unstable_by(f64::total_cmp);
        Self { place, rival, labels, scores, ascending }
    }

    /// Pairs of calibration rows and of this row that score no more than the label, within the two thresholds.
    fn pairs(&self, label: u32) -> u64 {
        let t = self.scores[label as usize].clamp(self.rival.low, self.rival.high);
        self.rival.pairs(t) + self.ascending.partition_point(|score| *score <= t) as u64
    }

    fn takes(&self, label: u32) -> bool {
        self.scores[label as usize] <= self.rival.high
    }
}

/// Who decides a label: the one with the fewest pairs, the first of equals.
fn winner<'a, 'b, S: Score>(contenders: &'b [Contender<'a, S>], label: u32) -> &'b Contender<'a, S> {
    let fewest = contenders.iter().min_by_key(|contender| contender.pairs(label));
    fewest.expect("the leader contends")
}

/// Appends the labels of a row that are in the set, in the order of the classes; the leader's set has `size` labels.
pub(crate) fn contested_set<S: Score, T: Logit>(
    rivals: &Rivals<S>,
    masked: Masked,
    row: Row<'_, T>,
    size: usize,
    out: &mut Vec<u32>,
) {
    let contenders = rivals.contenders(masked, row, size);
    // A label that nobody's set holds is in none.
    let mut held: Vec<u32> = contenders.iter().flat_map(|contender| &contender.labels).copied().collect();
    held.sort_unstable();
    held.dedup();
    out.extend(held.into_iter().filter(|label| winner(&contenders, *label).takes(*label)));
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
