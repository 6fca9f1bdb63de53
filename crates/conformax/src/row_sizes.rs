//! `RowSizes`: one row's set sizes under one score, at as many thresholds as a study asks for.
//!
//! A study asks for the size of the same row's set at hundreds of thresholds, splits × levels. Where all
//! scores of a row cost little more than one, they are computed in order, and a size is found by bisection.
//! For the entmax family each score is a pass over the labels ahead; there, few scores tell the sizes
//! ([`KnownScores`]), except beyond γ = 2, where the score is not convex. Thresholds are asked for together,
//! ascending ([`RowSizes::at_each`]): sizes grow with them, so what is found is where they do.

mod known_scores;

pub use self::known_scores::KnownScores;
use self::known_scores::ScoresDown;

use crate::kernel::{Order, Picked, gap_norm, norm_in_single};
use crate::score::paths::{Paths, Question};
use crate::score::ranked::RankedSoftmax;
use crate::{Draw, EntmaxScore, Gamma, Logit, RapsScore, Row, Score, ScoreSpec};

/// A row's set sizes under a score; see [`RankedRow`].
pub struct RowSizes<'a> {
    classes: usize,
    scores: Scores<'a>,
}

enum Scores<'a> {
    /// All that can be asked for, ascending.
    Sorted(&'a [f64]),
    /// Some, with how far labels are behind the best and a way to score more of them.
    Known { known: &'a mut KnownScores, gaps: &'a [f64], down: &'a dyn ScoresDown },
}

/// Up to here scoring all labels is cheaper than finding out which to score, and all scores are kept.
const FEW_CLASSES: usize = 32;

/// Best labels that are picked out of the row: who is scored adds up those ahead, and few others.
const HEADS: [usize; 10] = [8, 16, 24, 32, 48, 64, 96, 128, 192, 256];

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
/// gets the same sizes. Calls must come with the row that was ranked: to look whether it is would cost as much as what
/// is saved.
///
/// ```
/// use conformax::{KnownScores, RankedRow, Row, ScoreSpec, SizeScratch};
/// let row = Row::new(&[4.0_f32, 3.0, 0.0])?;
/// let score = ScoreSpec::default();
/// let ranked = RankedRow::new(row, RankedRow::draw_for(&[score]));
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
    /// How far labels are behind the best, down the ranking.
    gaps: Vec<f64>,
    /// The best labels, for as many of [`HEADS`] as there are.
    heads: Vec<Picked>,
}

impl RankedRow {
    /// Ranks the row; `draw` is the one of the randomised scores that will be asked about.
    pub fn new<T: Logit>(row: Row<'_, T>, draw: Draw) -> Self {
        let ranked = RankedSoftmax::new(row, draw);
        let heads = HEADS.iter().map_while(|best| {
            let mut labels = ranked.labels().get(..*best)?.to_vec();
            labels.sort_unstable();
            Some(Picked::new(row.logits(), &labels))
        });
        let gaps = ranked.labels().iter().map(|label| row.max() - row.logit(*label));
        Self { gaps: gaps.collect(), heads: heads.collect(), ranked, draw }
    }

    /// The draw to rank rows with that will be asked about these scores: of the first that is read off a ranking.
    pub fn draw_for(specs: &[ScoreSpec]) -> Draw {
        specs.iter().find_map(read_off).map(|raps| raps.draw).unwrap_or_default()
    }

    /// Whether the score is read off the ranking, without another look at the row.
    pub fn holds(&self, spec: &ScoreSpec) -> bool {
        self.held(spec).is_some()
    }

    fn held<'s>(&self, spec: &'s ScoreSpec) -> Option<&'s RapsScore> {
        read_off(spec).filter(|raps| raps.draw == self.draw)
    }

    /// The score of a label in the row that was ranked.
    pub fn score<T: Logit>(&self, spec: &ScoreSpec, row: Row<'_, T>, label: u32) -> f64 {
        match self.held(spec) {
            Some(raps) => self.ranked.raps_of(raps, label),
            None => spec.score(row, label),
        }
    }

    /// Calls `ask` with the sizes of the row that was ranked. No finite threshold above `cutoff` will be asked for;
    /// `known` holds what earlier calls with the same row, score and cutoff found out.
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
        let SizeScratch { scores, by_label } = scratch;
        if classes <= FEW_CLASSES {
            if known.all.is_empty() {
                self.scores_into(spec, row, cutoff, by_label, &mut known.all);
            }
            return ask(&mut RowSizes { classes, scores: Scores::Sorted(&known.all) });
        }
        scores.clear();
        match spec {
            ScoreSpec::Entmax(EntmaxScore { gamma }) if *gamma != Gamma::SOFTMAX && gamma.delta() >= 1.0 => {
                let down = EntmaxDown { ranked: self, gamma: *gamma, row };
                let scores = Scores::Known { known, gaps: self.gaps_to(cutoff), down: &down };
                ask(&mut RowSizes { classes, scores });
            }
            _ => {
                self.scores_into(spec, row, cutoff, by_label, scores);
                ask(&mut RowSizes { classes, scores: Scores::Sorted(scores) });
            }
        }
    }

    /// How far labels are behind the best, up to `cutoff`: no entmax score is below its gap.
    fn gaps_to(&self, cutoff: f64) -> &[f64] {
        &self.gaps[..self.gaps.partition_point(|gap| *gap <= cutoff)]
    }

    /// The entmax score of the label at `place`, counted from 0 down the ranking.
    fn entmax<T: Logit>(&self, gamma: Gamma, row: Row<'_, T>, place: usize) -> f64 {
        let (logit, order) = (row.logit(self.ranked.labels()[place]), Order::from(gamma));
        match HEADS.iter().zip(&self.heads).find(|(best, _)| place < **best) {
            Some((_, head)) => head.gap_norm(row.max(), logit, order),
            None => gap_norm(row.logits(), row.max(), logit, order),
        }
    }

    /// All scores up to `cutoff`, ascending, and perhaps some beyond.
    fn scores_into<T: Logit>(
        &self,
        spec: &ScoreSpec,
        row: Row<'_, T>,
        cutoff: f64,
        by_label: &mut Vec<f64>,
        out: &mut Vec<f64>,
    ) {
        let ranked = &self.ranked;
        match spec {
            ScoreSpec::Entmax(EntmaxScore { gamma }) => {
                out.extend_from_slice(self.gaps_to(cutoff));
                // At γ = 1 the gaps are the scores.
                if *gamma != Gamma::SOFTMAX {
                    out.iter_mut()
                        .enumerate()
                        .for_each(|(place, out)| *out = self.entmax(*gamma, row, place));
                }
            }
            _ => match self.held(spec) {
                Some(raps) => ranked.raps_into(raps, cutoff + slack(cutoff), out),
                None => {
                    by_label.resize(row.classes(), 0.0);
                    spec.ask(AllOfRow { row, out: by_label });
                    out.extend(ranked.labels().iter().map(|label| by_label[*label as usize]));
                }
            },
        }
        // In order already but for rounding, which sorting finds out at once.
        out.sort_unstable_by(f64::total_cmp);
    }
}

/// RAPS, whose scores follow from a row's ranking and draw.
fn read_off(spec: &ScoreSpec) -> Option<&RapsScore> {
    match spec {
        ScoreSpec::Raps(raps) => Some(raps),
        _ => None,
    }
}

/// The entmax scores of a row.
struct EntmaxDown<'a, T> {
    ranked: &'a RankedRow,
    gamma: Gamma,
    row: Row<'a, T>,
}

impl<T: Logit> ScoresDown for EntmaxDown<'_, T> {
    fn score(&self, place: usize) -> f64 {
        self.ranked.entmax(self.gamma, self.row, place)
    }

    fn estimate(&self, place: usize) -> Option<(f64, f64)> {
        let gaps = &self.ranked.gaps;
        norm_in_single(&gaps[..place], gaps[place], Order::from(self.gamma))
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
            Scores::Known { down, .. } => down.score(place),
        }
    }

    /// The sizes at ascending thresholds, one by one in `out`.
    pub fn at_each(&mut self, thresholds: &[f64], out: &mut [u32]) {
        let finite = thresholds.partition_point(|threshold| *threshold < f64::INFINITY);
        let (thresholds, (out, full)) = (&thresholds[..finite], out.split_at_mut(finite));
        full.fill(self.classes as u32);
        match &mut self.scores {
            Scores::Sorted(scores) => {
                let least =
                    thresholds.first().map_or(0, |least| scores.partition_point(|score| score <= least));
                sizes_between(least, &scores[least..], thresholds, out);
            }
            Scores::Known { known, gaps, down } => known.sizes_at(thresholds, gaps, *down, out),
        }
    }

    /// Labels in the row's set: those that score at most `threshold`.
    pub fn at(&mut self, threshold: f64) -> usize {
        if threshold == f64::INFINITY {
            return self.classes;
        }
        match &mut self.scores {
            Scores::Sorted(scores) => scores.partition_point(|score| *score <= threshold),
            Scores::Known { known, gaps, down } => {
                let within = gaps.partition_point(|gap| *gap <= threshold);
                known.size_at(threshold, &gaps[..within], *down)
            }
        }
    }
}

/// Sizes at ascending thresholds: `least` at the first, and one more from each of the ascending scores on.
fn sizes_between(least: usize, scores: &[f64], thresholds: &[f64], out: &mut [u32]) {
    let (mut size, mut start) = (least as u32, 0);
    for score in scores {
        let end = start + thresholds[start..].partition_point(|threshold| threshold < score);
        out[start..end].fill(size);
        if end == thresholds.len() {
            return;
        }
        (size, start) = (size + 1, end);
    }
    out[start..].fill(size);
}
