//! Tuning that sets no rows aside, on many splits: the sizes and outcomes of `conformax::Selection`, from each row's
//! set sizes alone.
//!
//! A label's score follows from its place in the ranking, which all candidates of a grid share: a candidate with `b`
//! labels of a row at its lower score and `c` at its higher takes the first `c` of them, and needs `b`, `c` or, for the
//! few places between, a count of its own. So no set is made, and a row costs two sizes for every candidate that can
//! win.

use conformax::{Alpha, Masked, Predictor, Rival, Rivals, RowSet, ScoreSpec, Selection};

use crate::error::Result;

/// What the calibration rows of a split say of the candidates, at one level: in the order of the grid, with a place
/// among the scores computed in place of each score.
pub(crate) struct Contest(Rivals<usize>);

/// Pairs of calibration rows and labels, gathered for one candidate at one level of one split.
#[derive(Clone, Default)]
pub(crate) struct Pairs {
    pub(crate) at_low: u64,
    pub(crate) at_high: u64,
    pub(crate) between: Vec<f64>,
}

impl Pairs {
    pub(crate) fn join(&mut self, mut other: Self) {
        self.at_low += other.at_low;
        self.at_high += other.at_high;
        self.between.append(&mut other.between);
    }
}

/// What a row says of a candidate: labels at its two scores, and the scores of those between.
#[derive(Clone, Default)]
pub(crate) struct OwnSizes {
    pub(crate) at_low: usize,
    pub(crate) at_high: usize,
    pub(crate) between: Vec<f64>,
}

impl Contest {
    /// The candidates, each with its scores of rank `k − 1` and `k`. An error where there is none.
    pub(crate) fn new(candidates: impl Iterator<Item = (usize, (f64, f64), Pairs)>) -> Result<Self> {
        let rivals = candidates.map(|(score, around, mut pairs)| {
            pairs.between.sort_unstable_by(f64::total_cmp);
            Rival::new(score, around, (pairs.at_low, pairs.at_high), pairs.between)
        });
        Ok(Self(Rivals::new(rivals.collect())?))
    }

    fn rivals(&self) -> &[Rival<usize>] {
        self.0.as_slice()
    }

    /// The candidate that wins where the row itself does not tip the balance.
    pub(crate) fn leader(&self) -> &Rival<usize> {
        &self.rivals()[self.0.leader()]
    }

    /// Whether the sets hold every label, whoever wins: there are too few rows, or too many impossible labels.
    pub(crate) fn is_full(&self) -> bool {
        self.rivals().iter().any(|rival| rival.high == f64::INFINITY)
    }

    /// The places of candidates that can win a label of a row with so many classes, in grid order.
    pub(crate) fn alive(&self, classes: usize) -> Vec<usize> {
        let alive = self.0.alive(classes);
        (0..alive.len()).filter(|place| alive[*place]).collect()
    }

    /// What predicts as this choice on `n` calibration rows does. `None` where rounding has put a score in another
    /// order than its row's ranking, which sizes take no notice of and a selection refuses.
    pub(crate) fn predictor(
        &self,
        (n, classes): (usize, usize),
        alpha: Alpha,
        spec: impl Fn(usize) -> ScoreSpec,
    ) -> Option<Predictor<ScoreSpec>> {
        let rivals = self.rivals().iter().zip(self.0.alive(classes)).map(|(rival, alive)| {
            let between = if alive { rival.between.clone() } else { Vec::new().into() };
            let (around, pairs) = ((rival.low, rival.high), (rival.at_low, rival.at_high));
            Rival::new(spec(rival.score), around, pairs, between)
        });
        let rows = (n as u64, RowSet::default());
        let made = Selection::from_parts(rivals.collect(), classes, alpha, rows, Masked::Allowed);
        made.map(|selection| selection.predictor())
    }

    /// The size of a row's set and whether it holds the true label. `own` and `truth` are by candidate: those alive are
    /// read.
    pub(crate) fn decide(
        &self,
        alive: &[usize],
        own: &[OwnSizes],
        truth: impl Fn(usize) -> f64,
    ) -> (usize, bool) {
        let size = own[self.0.leader()].at_high;
        let contenders = alive.iter().filter(|place| self.0.contends(**place, size));
        let contenders: Vec<(&Rival<usize>, &OwnSizes)> =
            contenders.map(|place| (&self.rivals()[*place], &own[*place])).collect();
        if let [(rival, own)] = contenders[..] {
            return (own.at_high, truth(rival.score) <= rival.high);
        }
        let largest = contenders.iter().map(|(_, own)| own.at_high).max().unwrap_or_default();
        let takes = |label: usize| {
            let winner = contenders.iter().min_by_key(|(rival, own)| own.pairs_at(rival, label));
            winner.is_some_and(|(_, own)| label < own.at_high)
        };
        let size = (0..largest).filter(|label| takes(*label)).count();
        let winner = contenders.iter().min_by_key(|(rival, own)| own.pairs_of(rival, truth(rival.score)));
        (size, winner.is_some_and(|(rival, _)| truth(rival.score) <= rival.high))
    }
}

impl OwnSizes {
    /// Pairs that score no more than the label at a place of the ranking, within the two scores.
    fn pairs_at(&self, rival: &Rival<usize>, place: usize) -> u64 {
        match place {
            _ if place < self.at_low => rival.at_low + self.at_low as u64,
            _ if place < self.at_high => self.pairs_between(rival, self.between[place - self.at_low]),
            _ => rival.at_high + self.at_high as u64,
        }
    }

    /// The same for a label of this score.
    fn pairs_of(&self, rival: &Rival<usize>, score: f64) -> u64 {
        match score {
            _ if score <= rival.low => rival.at_low + self.at_low as u64,
            _ if score <= rival.high => self.pairs_between(rival, score),
            _ => rival.at_high + self.at_high as u64,
        }
    }

    fn pairs_between(&self, rival: &Rival<usize>, score: f64) -> u64 {
        let own = self.at_low + self.between.iter().filter(|other| **other <= score).count();
        rival.pairs(score) + own as u64
    }
}
