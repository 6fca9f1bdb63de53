//! `ScoredRows`: every row's label scores in ascending order, from which any threshold's set size is read off.
//!
//! A study asks for the size of the same row's set at thousands of thresholds: splits × levels. The scores
//! depend on neither, so they are computed once, as far down the ranking as the largest threshold reaches;
//! a set's size is then the number of scores up to the threshold, found by bisection.

use conformax::{Logit, Logits, RankedSoftmax, RapsScore, Result, Score};
use rayon::prelude::*;

/// Rows that one task scores.
const CHUNK: usize = 256;

/// The scores of each row's labels up to a cutoff.
pub(crate) struct ScoredRows {
    /// Where each row's scores start, and one more.
    offsets: Vec<usize>,
    scores: Vec<f64>,
    classes: usize,
}

impl ScoredRows {
    /// Scores of `score` up to `cutoff`, the largest threshold that will be asked for.
    pub(crate) fn new<S: Score, T: Logit>(score: &S, logits: Logits<'_, T>, cutoff: f64) -> Result<Self> {
        let chunks: Vec<Result<Chunk>> = starts(logits.len())
            .map(|first| {
                let (mut chunk, mut labels) = (Chunk::default(), Vec::new());
                for index in first..(first + CHUNK).min(logits.len()) {
                    let row = logits.row(index)?;
                    labels.clear();
                    chunk.push_row(|scores| score.scored_set_into(row, cutoff, &mut labels, scores));
                }
                Ok(chunk)
            })
            .collect();
        Ok(Self::concat(chunks.into_iter().collect::<Result<_>>()?, logits.classes()))
    }

    /// The same for RAPS, from rows whose softmax is sorted already.
    pub(crate) fn raps(score: &RapsScore, ranked: &[RankedSoftmax], classes: usize, cutoff: f64) -> Self {
        let chunks: Vec<Chunk> = starts(ranked.len())
            .map(|first| {
                let mut chunk = Chunk::default();
                for row in &ranked[first..(first + CHUNK).min(ranked.len())] {
                    chunk.push_row(|scores| raps_up_to(score, row, cutoff, scores));
                }
                chunk
            })
            .collect();
        Self::concat(chunks, classes)
    }

    fn concat(chunks: Vec<Chunk>, classes: usize) -> Self {
        let mut offsets = vec![0];
        let mut scores = Vec::with_capacity(chunks.iter().map(|chunk| chunk.scores.len()).sum());
        for chunk in chunks {
            let start = scores.len();
            offsets.extend(chunk.ends.iter().map(|end| start + end));
            scores.extend_from_slice(&chunk.scores);
        }
        Self { offsets, scores, classes }
    }

    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// Tells `visit` the labels in the row's set at each threshold, which is at most the cutoff or +∞.
    #[inline]
    pub(crate) fn sizes(&self, row: usize, thresholds: &[f64], mut visit: impl FnMut(usize, usize)) {
        let scores = &self.scores[self.offsets[row]..self.offsets[row + 1]];
        let (mut size, mut last) = (0, f64::NEG_INFINITY);
        // Levels mostly rise, so thresholds mostly fall: from the last to the first, each search starts where
        // the one before ended.
        for (place, &threshold) in thresholds.iter().enumerate().rev() {
            if threshold == f64::INFINITY {
                visit(place, self.classes);
                continue;
            }
            size = if threshold >= last { size } else { 0 };
            size += gallop(&scores[size..], threshold);
            last = threshold;
            visit(place, size);
        }
    }
}

/// How many of the ascending `scores` are at most `threshold`, in time that grows with the logarithm of the
/// answer: most sets grow by nothing from one level to the next.
#[inline]
fn gallop(scores: &[f64], threshold: f64) -> usize {
    let mut end = 1;
    while end <= scores.len() && scores[end - 1] <= threshold {
        end *= 2;
    }
    let start = end / 2;
    start + scores[start..(end - 1).clamp(start, scores.len())].partition_point(|score| *score <= threshold)
}

fn starts(rows: usize) -> impl IndexedParallelIterator<Item = usize> {
    (0..rows.div_ceil(CHUNK)).into_par_iter().map(|chunk| chunk * CHUNK)
}

#[derive(Default)]
struct Chunk {
    ends: Vec<usize>,
    scores: Vec<f64>,
}

impl Chunk {
    fn push_row(&mut self, fill: impl FnOnce(&mut Vec<f64>)) {
        let start = self.scores.len();
        fill(&mut self.scores);
        // Best first is ascending already but for rounding, which the definition of a set keeps.
        self.scores[start..].sort_unstable_by(f64::total_cmp);
        self.ends.push(self.scores.len());
    }
}

/// How far above the cutoff a score ends the search: RAPS does not fall down the ranking but for rounding,
/// which stays far below this.
const SLACK: f64 = 1e-9;

fn raps_up_to(score: &RapsScore, row: &RankedSoftmax, cutoff: f64, scores: &mut Vec<f64>) {
    for place in 0..row.labels().len() {
        let value = row.raps(score, place);
        if value > cutoff + SLACK {
            break;
        }
        if value <= cutoff {
            scores.push(value);
        }
    }
}
