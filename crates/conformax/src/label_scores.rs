//! The scores of true labels, and those of every label, of many rows.

use crate::rows::{map_chunks, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::{Error, Labelled, Logit, Logits, Ranks, Result, Score};

/// Scores the true label of every row.
///
/// ```
/// use conformax::{EntmaxScore, Logits, score_labels};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?;
/// assert_eq!(score_labels(&EntmaxScore::default(), logits.labelled(&[0, 0])?)?, [2.0, 0.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn score_labels<S: Score, T: Logit>(score: &S, rows: Labelled<'_, T>) -> Result<Vec<f64>> {
    let chunks = map_chunks(rows.logits(), |first, chunk| {
        let labels = &rows.labels()[first..first + chunk.len()];
        ask(score, LabelScores { first, chunk, labels })
    })?;
    Ok(chunks.concat())
}

/// The scores of true labels.
pub(crate) struct LabelScores<'a, T> {
    pub(crate) first: usize,
    pub(crate) chunk: Logits<'a, T>,
    pub(crate) labels: &'a [u32],
}

impl<T: Logit> Question for LabelScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    #[inline]
    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut scores = Vec::with_capacity(self.chunk.len());
        let fault = visit_rows(self.first, self.chunk, |index, row| {
            scores.push(score.score(row, self.labels[index]));
            Ok(())
        });
        // Only rows before a fault have scores.
        expect_numbers(self.first, &scores)?;
        fault.map(|()| scores)
    }
}

/// The scores of true labels, infinite where they stand too far down.
pub(crate) struct RankedLabelScores<'a, T> {
    pub(crate) ranks: &'a Ranks,
    pub(crate) first: usize,
    pub(crate) chunk: Logits<'a, T>,
    pub(crate) labels: &'a [u32],
}

impl<T: Logit> Question for RankedLabelScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut scores = Vec::with_capacity(self.chunk.len());
        let fault = visit_rows(self.first, self.chunk, |index, row| {
            let label = self.labels[index];
            scores.push(if self.ranks.hold(row, label) { score.score(row, label) } else { f64::INFINITY });
            Ok(())
        });
        expect_numbers(self.first, &scores)?;
        fault.map(|()| scores)
    }
}

/// The error of a score that is no number, as one from elsewhere may be; the first has row `first`.
pub(crate) fn expect_numbers(first: usize, scores: &[f64]) -> Result<()> {
    match scores.iter().position(|score| score.is_nan()) {
        Some(row) => Err(Error::ScoreIsNan { row: (first + row) as u64 }),
        None => Ok(()),
    }
}

/// Scores every label of every row, row after row: `len × classes` numbers.
///
/// ```
/// use conformax::{EntmaxScore, Logits, score_all_labels};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?;
/// assert_eq!(score_all_labels(&EntmaxScore::default(), logits)?, [2.0, 0.0, 0.0, 2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn score_all_labels<S: Score, T: Logit>(score: &S, logits: Logits<'_, T>) -> Result<Vec<f64>> {
    Ok(put_together(map_chunks(logits, |first, chunk| ask(score, AllScores { first, chunk }))?))
}

/// The results of chunks as one. Of one chunk nothing has to be put together: a p-value is as large as eight logits.
pub(crate) fn put_together<R: Clone>(mut chunks: Vec<Vec<R>>) -> Vec<R> {
    if chunks.len() == 1 { chunks.remove(0) } else { chunks.concat() }
}

struct AllScores<'a, T> {
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> Question for AllScores<'_, T> {
    type Answer = Result<Vec<f64>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let classes = self.chunk.classes();
        let mut scores = vec![0.0; self.chunk.as_slice().len()];
        visit_rows(self.first, self.chunk, |index, row| {
            score.score_all(row, &mut scores[index * classes..][..classes]);
            Ok(())
        })?;
        Ok(scores)
    }
}
