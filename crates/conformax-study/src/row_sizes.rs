//! `RowSizes`: one row's set sizes under one score, at as many thresholds as a study asks for.
//!
//! A study asks for the size of the same row's set at hundreds of thresholds, splits × levels. Where all
//! scores of a row cost little more than one, they are computed in order, and a size is found by bisection.
//! For the entmax family each score is a pass over the row; there, few scores tell the sizes
//! ([`KnownScores`]), except beyond γ = 2, where the score is not convex.

use conformax::{Draw, EntmaxScore, Gamma, Logit, RankedSoftmax, Row, Score, ScoreSpec};

use crate::known_scores::KnownScores;

/// A row under a score.
pub(crate) struct RowSizes<'a> {
    classes: usize,
    scores: Scores<'a>,
}

enum Scores<'a> {
    /// All that can be asked for, ascending.
    Sorted(&'a [f64]),
    /// Some, with how far labels are behind the best and a way to score more of them.
    Known { known: &'a mut KnownScores, gaps: &'a [f64], score: &'a dyn Fn(usize) -> f64 },
}

/// Up to here scoring all labels is cheaper than finding out which to score.
const FEW_CLASSES: usize = 32;

/// Memory that rows use one after another.
#[derive(Default)]
pub(crate) struct Scratch {
    scores: Vec<f64>,
    by_label: Vec<f64>,
}

/// How far from a threshold scores may be out of order: they rise down the ranking but for rounding, which
/// stays far below this.
pub(crate) fn slack(threshold: f64) -> f64 {
    threshold.abs() * 1e-8 + 1e-9
}

/// A row with what is known about it.
pub(crate) struct RankedRow<'a, T> {
    pub(crate) row: Row<'a, T>,
    pub(crate) ranked: &'a RankedSoftmax,
    /// The draw that the ranking was made with.
    pub(crate) draw: Draw,
    /// Scores of earlier visits with the same score.
    pub(crate) known: &'a mut KnownScores,
}

/// Calls `ask` with the row's sizes. No finite threshold above `cutoff` will be asked for.
pub(crate) fn with_sizes<T: Logit>(
    spec: &ScoreSpec,
    ranked_row: RankedRow<'_, T>,
    cutoff: f64,
    scratch: &mut Scratch,
    ask: impl FnOnce(&mut RowSizes<'_>),
) {
    let RankedRow { row, ranked, draw, known } = ranked_row;
    let classes = row.classes();
    let Scratch { scores, by_label } = scratch;
    scores.clear();
    match spec {
        ScoreSpec::Entmax(EntmaxScore { gamma }) => {
            let gaps = ranked.labels().iter().map(|label| row.max() - row.logit(*label));
            // No score is below its label's gap.
            scores.extend(gaps.take_while(|gap| *gap <= cutoff));
            let score = |place: usize| spec.score(row, ranked.labels()[place]);
            if *gamma == Gamma::SOFTMAX {
                // The gaps are the scores.
            } else if classes <= FEW_CLASSES || gamma.delta() < 1.0 {
                let within = scores.len();
                scores.clear();
                scores.extend((0..within).map(score));
            } else {
                let scores = Scores::Known { known, gaps: scores, score: &score };
                return ask(&mut RowSizes { classes, scores });
            }
        }
        ScoreSpec::Raps(raps) if raps.draw == draw => {
            let all = (0..ranked.labels().len()).map(|place| ranked.raps(raps, place));
            scores.extend(all.take_while(|score| *score <= cutoff + slack(cutoff)));
        }
        _ => {
            by_label.resize(classes, 0.0);
            spec.score_all(row, by_label);
            scores.extend(ranked.labels().iter().map(|label| by_label[*label as usize]));
        }
    }
    // In order already but for rounding, which sorting finds out at once.
    scores.sort_unstable_by(f64::total_cmp);
    ask(&mut RowSizes { classes, scores: Scores::Sorted(scores) });
}

impl RowSizes<'_> {
    /// Labels in the row's set: those that score at most `threshold`.
    pub(crate) fn at(&mut self, threshold: f64) -> usize {
        if threshold == f64::INFINITY {
            return self.classes;
        }
        match &mut self.scores {
            Scores::Sorted(scores) => scores.partition_point(|score| *score <= threshold),
            Scores::Known { known, gaps, score } => {
                let within = gaps.partition_point(|gap| *gap <= threshold);
                known.size_at(threshold, &gaps[..within], *score)
            }
        }
    }
}
