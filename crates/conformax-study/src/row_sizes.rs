//! `RowSizes`: one row's set sizes under one score, at as many thresholds as a study asks for.
//!
//! A study asks for the size of the same row's set at hundreds of thresholds, splits × levels. Where all
//! scores of a row cost little more than one, they are computed and sorted, and a size is found by bisection.
//! For the entmax family each score is a pass over the row, so bisection runs down the ranking instead and
//! scores the labels it meets, each at most once.

use conformax::{Draw, EntmaxScore, Gamma, Logit, RankedSoftmax, Row, Score, ScoreSpec};

/// A row under a score.
pub(crate) struct RowSizes<'a> {
    classes: usize,
    scores: Scores<'a>,
}

enum Scores<'a> {
    /// All that can be asked for, ascending.
    Sorted(&'a [f64]),
    /// Best first as far as known; NaN elsewhere.
    Known { by_place: &'a mut [f64], gaps: &'a [f64], score: &'a dyn Fn(usize) -> f64 },
}

/// Memory that rows use one after another.
#[derive(Default)]
pub(crate) struct Scratch {
    scores: Vec<f64>,
    gaps: Vec<f64>,
}

/// How far from a threshold scores may be out of order: they rise down the ranking but for rounding, which
/// stays far below this.
fn slack(threshold: f64) -> f64 {
    threshold.abs() * 1e-8 + 1e-9
}

/// Calls `ask` with the row's sizes; `ranked` is its ranking, made with a draw. No finite threshold above `cutoff` will be asked for.
pub(crate) fn with_sizes<T: Logit>(
    spec: &ScoreSpec,
    row: Row<'_, T>,
    (ranked, draw): (&RankedSoftmax, Draw),
    cutoff: f64,
    scratch: &mut Scratch,
    ask: impl FnOnce(&mut RowSizes<'_>),
) {
    let classes = row.classes();
    let Scratch { scores, gaps } = scratch;
    scores.clear();
    match spec {
        ScoreSpec::Entmax(EntmaxScore { gamma }) if *gamma != Gamma::SOFTMAX => {
            gaps.clear();
            let to_gap = |label: &u32| row.max() - row.logit(*label);
            gaps.extend(ranked.labels().iter().map(to_gap).take_while(|gap| *gap <= cutoff));
            scores.resize(gaps.len(), f64::NAN);
            let score = |place: usize| spec.score(row, ranked.labels()[place]);
            ask(&mut RowSizes { classes, scores: Scores::Known { by_place: scores, gaps, score: &score } });
            return;
        }
        ScoreSpec::Raps(raps) if raps.draw == draw => {
            let all = (0..ranked.labels().len()).map(|place| ranked.raps(raps, place));
            scores.extend(all.take_while(|score| *score <= cutoff + slack(cutoff)));
        }
        _ => {
            scores.resize(classes, 0.0);
            spec.score_all(row, scores);
        }
    }
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
            Scores::Known { by_place, gaps, score } => {
                // No score is below its label's gap.
                let end = gaps.partition_point(|gap| *gap <= threshold);
                let mut at = |place: usize| {
                    if by_place[place].is_nan() {
                        by_place[place] = score(place);
                    }
                    by_place[place]
                };
                size_by_bisection(end, threshold, &mut at)
            }
        }
    }
}

/// How many of `end` scores are at most `threshold`, where they rise with the place but for rounding.
fn size_by_bisection(end: usize, threshold: f64, at: &mut impl FnMut(usize) -> f64) -> usize {
    let (mut start, mut stop) = (0, end);
    while start < stop {
        let middle = usize::midpoint(start, stop);
        if at(middle) <= threshold { start = middle + 1 } else { stop = middle }
    }
    let slack = slack(threshold);
    let mut size = start;
    for place in (0..start).rev() {
        match at(place) {
            score if score > threshold => size -= 1,
            score if score < threshold - slack => break,
            _ => {}
        }
    }
    for place in start..end {
        match at(place) {
            score if score <= threshold => size += 1,
            score if score > threshold + slack => break,
            _ => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scores_that_rounding_put_out_of_order() {
        let scores = [0.0, 1.0, 2.0 + 1e-12, 2.0, 2.0 + 2e-12, 2.0, 3.0];
        for threshold in [-1.0, 0.0, 1.0, 1.5, 2.0, 2.0 + 1e-12, 2.5, 3.0, 4.0] {
            let plain = scores.iter().filter(|score| **score <= threshold).count();
            let found = size_by_bisection(scores.len(), threshold, &mut |place| scores[place]);
            assert_eq!(found, plain, "{threshold}");
        }
    }
}
