//! `RowSizes`: one row's set sizes under one score, at as many thresholds as a study asks for.
//!
//! A study asks for the size of the same row's set at hundreds of thresholds, splits × levels. Where all
//! scores of a row cost little more than one, they are computed in order, and a size is found by bisection.
//! For the entmax family each score is a pass over the row; there, few scores tell the sizes
//! ([`KnownScores`]), except beyond γ = 2, where the score is not convex.

mod known_scores;

pub use self::known_scores::KnownScores;

use crate::score::paths::{Paths, Question};
use crate::score::ranked::RankedSoftmax;
use crate::{Draw, EntmaxScore, Gamma, Logit, Row, Score, ScoreSpec};

/// A row's set sizes under a score; see [`RankedRow`].
pub struct RowSizes<'a> {
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
#[derive(Debug, Default)]
pub struct SizeScratch {
    scores: Vec<f64>,
    by_label: Vec<f64>,
}

/// How far from a threshold scores may be out of order: they rise down the ranking but for rounding, which
/// stays far below this.
fn slack(threshold: f64) -> f64 {
    threshold.abs() * 1e-8 + 1e-9
}

/// A row ranked once, to be asked for the sizes of its sets under many scores and at many thresholds.
///
/// Public for studies, which judge the same rows in hundreds of splits; everybody else asks a `Predictor` for sets, and
/// gets the same sizes.
///
/// ```
/// use conformax::{Draw, KnownScores, RankedRow, Row, ScoreSpec, SizeScratch};
/// let row = Row::new(&[4.0_f32, 3.0, 0.0])?;
/// let (ranked, score) = (RankedRow::new(row, Draw::default()), ScoreSpec::default());
/// let (mut known, mut scratch, mut sizes) = (KnownScores::default(), SizeScratch::default(), Vec::new());
/// ranked.with_sizes(&score, row, &mut known, 5.0, &mut scratch, |of| {
///     sizes.extend([0.5, 1.0, 5.0].map(|threshold| of.at(threshold)));
/// });
/// assert_eq!(sizes, [1, 2, 3]); // the scores are 0, 1 and 5
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RankedRow {
    ranked: RankedSoftmax,
    draw: Draw,
}

impl RankedRow {
    /// Ranks the row; `draw` is the one of the randomised scores that will be asked about.
    pub fn new<T: Logit>(row: Row<'_, T>, draw: Draw) -> Self {
        Self { ranked: RankedSoftmax::new(row, draw), draw }
    }

    /// The score of a label in the row that was ranked.
    pub fn score<T: Logit>(&self, spec: &ScoreSpec, row: Row<'_, T>, label: u32) -> f64 {
        match spec {
            ScoreSpec::Raps(raps) if raps.draw == self.draw => self.ranked.raps_of(raps, label),
            _ => spec.score(row, label),
        }
    }

    /// Calls `ask` with the sizes of the row that was ranked. No finite threshold above `cutoff` will be asked for;
    /// `known` holds what earlier calls with the same row and score found out.
    pub fn with_sizes<T: Logit>(
        &self,
        spec: &ScoreSpec,
        row: Row<'_, T>,
        known: &mut KnownScores,
        cutoff: f64,
        scratch: &mut SizeScratch,
        ask: impl FnOnce(&mut RowSizes<'_>),
    ) {
        let classes = row.classes();
        let (ranked, SizeScratch { scores, by_label }) = (&self.ranked, scratch);
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
            ScoreSpec::Raps(raps) if raps.draw == self.draw => {
                let all = (0..ranked.labels().len()).map(|place| ranked.raps(raps, place));
                scores.extend(all.take_while(|score| *score <= cutoff + slack(cutoff)));
            }
            _ => {
                by_label.resize(classes, 0.0);
                spec.ask(AllOfRow { row, out: by_label });
                scores.extend(ranked.labels().iter().map(|label| by_label[*label as usize]));
            }
        }
        // In order already but for rounding, which sorting finds out at once.
        scores.sort_unstable_by(f64::total_cmp);
        ask(&mut RowSizes { classes, scores: Scores::Sorted(scores) });
    }
}

struct AllOfRow<'a, 'b, T> {
    row: Row<'a, T>,
    out: &'b mut [f64],
}

impl<T: Logit> Question for AllOfRow<'_, '_, T> {
    type Answer = ();

    fn put<P: Paths>(self, score: &P) {
        score.score_all(self.row, self.out);
    }
}

impl RowSizes<'_> {
    /// The score of the label that `place` others precede, which is in the set of some finite threshold asked for.
    pub fn score_at(&self, place: usize) -> f64 {
        match &self.scores {
            Scores::Sorted(scores) => scores[place],
            Scores::Known { score, .. } => score(place),
        }
    }

    /// Labels in the row's set: those that score at most `threshold`.
    pub fn at(&mut self, threshold: f64) -> usize {
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
