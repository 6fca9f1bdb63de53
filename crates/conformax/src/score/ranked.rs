//! Scores that read a label's place in the ranking: APS, RAPS, SAPS and top-k.
//!
//! Labels are ranked by logit. Tied labels all take the rank and the cumulative probability of the last of the
//! tie, so equal logits share their fate. The cumulative sum runs down the ranking, one term after another:
//! equal terms are interchangeable, so its bits depend on the row's values and not on the order of its classes.

use super::paths::known;
use super::ranking::Ranking;
use super::softmax::Softmax;
use super::{Draw, RapsScore, Score, sort_best_first};
use crate::kernel::math;
use crate::{Logit, Row, ScoreSpec};

/// Where a label stands in its row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Labels at least as likely, itself included.
    pub rank: f64,
    /// Its softmax probability.
    pub p: f64,
    /// Probability of all labels at least as likely.
    pub cumulative: f64,
    /// Probability of the top label.
    pub top: f64,
    /// The row's uniform draw.
    pub u: f64,
}

/// A score that is a function of the place alone, and does not fall down the ranking.
pub(crate) trait PlaceScore: Sync {
    /// Whether `at` reads anything but the rank.
    const READS_SOFTMAX: bool;
    /// The draw at which the score is largest.
    const LARGEST_AT: f64;
    fn draw(&self) -> Draw;
    fn at(&self, place: Place) -> f64;
}

/// Makes a [`PlaceScore`] a [`Score`](super::Score) with its paths. A blanket impl would claim every type outside the
/// crate.
macro_rules! score_by_place {
    ($score:ty, $variant:ident) => {
        impl $crate::Score for $score {
            fn score<T: $crate::Logit>(&self, row: $crate::Row<'_, T>, label: u32) -> f64 {
                $crate::score::ranked::score(self, row, label)
            }

            fn known(&self, _: $crate::score::paths::Seal) -> Option<$crate::ScoreSpec> {
                Some($crate::ScoreSpec::$variant(*self))
            }
        }

        impl $crate::score::paths::Paths for $score {
            fn score_all<T: $crate::Logit>(&self, row: $crate::Row<'_, T>, out: &mut [f64]) {
                $crate::score::ranked::score_all(self, row, out);
            }

            fn set_into<T: $crate::Logit>(
                &self,
                row: $crate::Row<'_, T>,
                threshold: f64,
                out: &mut Vec<u32>,
            ) {
                $crate::score::ranked::set_into(self, row, threshold, out, None);
            }

            fn scored_set_into<T: $crate::Logit>(
                &self,
                row: $crate::Row<'_, T>,
                threshold: f64,
                labels: &mut Vec<u32>,
                scores: &mut Vec<f64>,
            ) {
                $crate::score::ranked::set_into(self, row, threshold, labels, Some(scores));
            }
        }
    };
}
pub(crate) use score_by_place;

/// Softmax and draw of a row, as far as the score reads them.
#[derive(Clone, Copy)]
struct Context {
    softmax: Softmax,
    u: f64,
    reads_softmax: bool,
}

impl Context {
    fn of<S: PlaceScore, T: Logit>(score: &S, row: Row<'_, T>) -> Self {
        if S::READS_SOFTMAX {
            Self::with_softmax(row, score.draw(), S::LARGEST_AT)
        } else {
            Self { softmax: Softmax { max: row.max(), sum: 1.0 }, u: 0.0, reads_softmax: false }
        }
    }

    fn with_softmax<T: Logit>(row: Row<'_, T>, draw: Draw, largest_at: f64) -> Self {
        let softmax = Softmax::of(row);
        let u = draw.u(row.u(), softmax.max, softmax.sum, row.classes(), largest_at);
        Self { softmax, u, reads_softmax: true }
    }

    #[inline]
    fn term(&self, logit: f64) -> f64 {
        if self.reads_softmax { math::exp_nonpositive(logit - self.softmax.max) } else { 1.0 }
    }

    #[inline]
    fn place(&self, rank: usize, term: f64, terms_above: f64) -> Place {
        let sum = self.softmax.sum;
        Place { rank: rank as f64, p: term / sum, cumulative: terms_above / sum, top: 1.0 / sum, u: self.u }
    }
}

/// Goes down a ranking, one group of tied labels after another.
struct Descent {
    context: Context,
    terms_above: f64,
    rank: usize,
}

impl Descent {
    fn new(context: Context) -> Self {
        Self { context, terms_above: 0.0, rank: 0 }
    }

    /// Takes in the next `tie` labels, which share a finite logit, and says where they stand.
    #[inline]
    fn step(&mut self, logit: f64, tie: usize) -> Place {
        let term = self.context.term(logit);
        (0..tie).for_each(|_| self.terms_above += term);
        self.rank += tie;
        self.context.place(self.rank, term, self.terms_above)
    }
}

/// The tie at the head of sorted labels: its logit and how many share it.
#[inline]
fn tie_at_head<T: Logit>(row: Row<'_, T>, sorted: &[u32]) -> Option<(f64, usize)> {
    let logit = row.logit(*sorted.first()?);
    Some((logit, sorted.iter().take_while(|label| row.logit(**label) == logit).count()))
}

pub(crate) fn score<S: PlaceScore, T: Logit>(score: &S, row: Row<'_, T>, label: u32) -> f64 {
    let logit = row.logit(label);
    if logit == f64::NEG_INFINITY {
        return f64::INFINITY;
    }
    let context = Context::of(score, row);
    if !S::READS_SOFTMAX || logit == row.max() {
        let rank = row.logits().iter().filter(|other| other.to_f64() >= logit).count();
        return score.at(context.place(rank, 1.0, rank as f64));
    }
    let mut ahead: Vec<f64> =
        row.logits().iter().map(|other| other.to_f64()).filter(|z| *z >= logit).collect();
    ahead.sort_unstable_by(|a, b| b.partial_cmp(a).expect("rows hold no NaN"));
    let terms_above = ahead.iter().map(|z| context.term(*z)).sum();
    score.at(context.place(ahead.len(), context.term(logit), terms_above))
}

pub(crate) fn score_all<S: PlaceScore, T: Logit>(score: &S, row: Row<'_, T>, out: &mut [f64]) {
    let mut labels: Vec<u32> = (0..row.classes() as u32).collect();
    sort_best_first(row, &mut labels);
    out.fill(f64::INFINITY);
    let mut descent = Descent::new(Context::of(score, row));
    let mut rest = &labels[..];
    while let Some((logit, tie)) = tie_at_head(row, rest).filter(|(logit, _)| *logit > f64::NEG_INFINITY) {
        let value = score.at(descent.step(logit, tie));
        rest[..tie].iter().for_each(|label| out[*label as usize] = value);
        rest = &rest[tie..];
    }
}

/// How far above the threshold a score must be for the rest of the ranking to be out: scores do not fall down
/// the ranking but for rounding, which stays far below this.
const SLACK: f64 = 1e-9;

/// The probability down to which the ranking is taken up first: four in five sets of RAPS on ImageNet end above it,
/// whether a row is sure of its label or not.
const FIRST_LOOK: f64 = 0.0025;

/// Distances below the maximum at which the ranking is taken up again.
fn bands(softmax: Softmax) -> [f64; 6] {
    let first = softmax.distance_of(FIRST_LOOK).max(0.0);
    [first, first + 0.5, first + 1.0, first + 2.0, first + 8.0, f64::INFINITY]
}

/// Walks down the ranking until the threshold is passed. `scores` is told the score of each label kept.
pub(crate) fn set_into<S: PlaceScore, T: Logit>(
    score: &S,
    row: Row<'_, T>,
    threshold: f64,
    labels: &mut Vec<u32>,
    mut scores: Option<&mut Vec<f64>>,
) {
    let context = Context::of(score, row);
    let bands = bands(context.softmax);
    let mut descent = Descent::new(context);
    let mut ranking = Ranking::new(row, labels, &bands);
    let (mut kept, mut next) = (0, 0);
    while let Some(label) = ranking.get(next) {
        let logit = row.logit(label);
        let first = next;
        while ranking.get(next).is_some_and(|label| row.logit(label) == logit) {
            next += 1;
        }
        let value = match logit {
            f64::NEG_INFINITY => f64::INFINITY,
            _ => score.at(descent.step(logit, next - first)),
        };
        if value > threshold + SLACK {
            break;
        }
        if value <= threshold {
            for place in first..next {
                let label = ranking.first(next)[place];
                ranking.keep(&mut kept, label);
            }
            if let Some(scores) = scores.as_mut() {
                scores.extend((first..next).map(|_| value));
            }
        }
    }
    ranking.finish(kept);
}

/// RAPS's candidates share their softmax and its ranking, which cost far more than a score: the draw and the grid where
/// all are RAPS of one draw.
pub(crate) fn shared_ranking<S: Score>(grid: &[S]) -> Option<(Draw, Vec<RapsScore>)> {
    let raps = |score: &S| match known(score)? {
        ScoreSpec::Raps(raps) => Some(raps),
        _ => None,
    };
    let grid: Vec<RapsScore> = grid.iter().map(raps).collect::<Option<_>>()?;
    let draw = grid.first()?.draw;
    (grid.len() > 1 && grid.iter().all(|score| score.draw == draw)).then_some((draw, grid))
}

/// A row's softmax sorted once, from which RAPS scores of any parameters are read off.
///
/// Tuning compares many (λ, k_reg) on the same rows; only the sort is expensive, and it depends on neither.
#[derive(Clone, Debug)]
pub(crate) struct RankedSoftmax {
    labels: Vec<u32>,
    /// Per label, best first: rank, probability and cumulative probability.
    places: Vec<(u32, f64, f64)>,
    top: f64,
    u: f64,
}

impl RankedSoftmax {
    /// Sorts the row; `draw` is the one of the scores to be read off.
    pub(crate) fn new<T: Logit>(row: Row<'_, T>, draw: Draw) -> Self {
        let mut labels: Vec<u32> = (0..row.classes() as u32).collect();
        sort_best_first(row, &mut labels);
        let context = Context::with_softmax(row, draw, RapsScore::LARGEST_AT);
        let mut descent = Descent::new(context);
        let mut places = Vec::with_capacity(labels.len());
        while let Some((logit, tie)) =
            tie_at_head(row, &labels[places.len()..]).filter(|(logit, _)| *logit > f64::NEG_INFINITY)
        {
            let place = descent.step(logit, tie);
            places.extend((0..tie).map(|_| (place.rank as u32, place.p, place.cumulative)));
        }
        labels.truncate(places.len());
        Self { labels, places, top: 1.0 / context.softmax.sum, u: context.u }
    }

    /// The labels of finite logits, best first.
    pub(crate) fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// The RAPS score of the label at `place`, counted from 0 down the ranking.
    #[inline]
    pub(crate) fn raps(&self, score: &RapsScore, place: usize) -> f64 {
        let (rank, p, cumulative) = self.places[place];
        score.at(Place { rank: f64::from(rank), p, cumulative, top: self.top, u: self.u })
    }

    /// Scores down the ranking, up to a limit at least.
    pub(crate) fn raps_into(&self, score: &RapsScore, limit: f64, out: &mut Vec<f64>) {
        // In blocks, within which there is no branch.
        const BLOCK: usize = 32;
        for start in (0..self.places.len()).step_by(BLOCK) {
            let end = (start + BLOCK).min(self.places.len());
            out.extend((start..end).map(|place| self.raps(score, place)));
            if out.last().is_some_and(|score| *score > limit) {
                break;
            }
        }
    }

    /// The scores up to a threshold, down the ranking. Labels of probability zero are not in it.
    pub(crate) fn raps_within(&self, score: &RapsScore, threshold: f64) -> impl Iterator<Item = f64> {
        let scores = (0..self.places.len()).map(|place| self.raps(score, place));
        scores.take_while(move |score| *score <= threshold + SLACK).filter(move |score| *score <= threshold)
    }

    /// The RAPS score of a label; one of probability zero is not in the ranking and scores +∞.
    pub(crate) fn raps_of(&self, score: &RapsScore, label: u32) -> f64 {
        let place = self.labels.iter().position(|other| *other == label);
        place.map_or(f64::INFINITY, |place| self.raps(score, place))
    }
}
