//! Which candidate decides the labels of a row, and what it decides.

use super::{Rival, leader};
use crate::score::paths::{Paths, Question, ask};
use crate::{Logit, Masked, Row, Score};

/// Candidates that choose among themselves label by label.
///
/// The leader needs the fewest pairs of calibration rows at its threshold. In a row where its set has `c` labels it needs
/// `c` more at most, so whoever needs more than that by the calibration rows alone is out. For most rows that leaves the
/// leader alone, and only the size of its set is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rivals<S> {
    all: Vec<Rival<S>>,
    leader: usize,
    /// Sets of the leader with fewer labels are the sets.
    contested_from: u64,
}

impl<S> Rivals<S> {
    pub(crate) fn new(all: Vec<Rival<S>>) -> Self {
        let leader = leader(&all);
        let others = all.iter().enumerate().filter(|(place, _)| *place != leader);
        let least = others.map(|(_, rival)| rival.at_low).min().unwrap_or(u64::MAX);
        let contested_from = least.saturating_sub(all[leader].at_high);
        Self { all, leader, contested_from }
    }

    pub(crate) fn as_slice(&self) -> &[Rival<S>] {
        &self.all
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
        let most = self.all[self.leader].at_high.saturating_add(size as u64);
        let contends = |place: usize, rival: &Rival<S>| place == self.leader || rival.at_low <= most;
        let all = self.all.iter().enumerate().filter(|(place, rival)| contends(*place, rival));
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
