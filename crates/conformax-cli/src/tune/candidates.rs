//! Many candidates on the same rows. RAPS's share their softmax and its ranking, which cost far more than a score.

use conformax::{
    Calibrated, Error, Level, Logit, Logits, RankedSoftmax, RapsScore, ScoreSpec, predict_each, score_labels,
};
use conformax_io::Block;
use rayon::prelude::*;

use super::labels;
use crate::blocks::with_logits;

/// Appends each candidate's scores of the true labels to its list.
pub(super) fn add_scores(grid: &[ScoreSpec], block: &Block, scores: &mut [Vec<f64>]) -> Result<(), Error> {
    let labels = labels(block);
    match all_raps(grid) {
        Some(grid) => {
            let by_row = with_logits!(block, logits => ranked(&grid, logits, |ranked, row| {
                true_places(&grid, ranked, labels[row])
            }))?;
            for (candidate, scores) in scores.iter_mut().enumerate() {
                scores.extend(by_row.iter().map(|row| row[candidate]));
            }
        }
        None => {
            for (score, scores) in grid.iter().zip(scores) {
                scores.extend(with_logits!(block, logits => score_labels(score, logits, labels))?);
            }
        }
    }
    Ok(())
}

/// Adds the sizes of each candidate's sets at its own threshold.
pub(super) fn add_sizes(
    grid: &[ScoreSpec],
    levels: &[Level],
    block: &Block,
    totals: &mut [u64],
) -> Result<(), Error> {
    match all_raps(grid) {
        Some(grid) => {
            let by_row = with_logits!(block, logits => ranked(&grid, logits, |ranked, _| {
                sizes(&grid, levels, ranked, block.classes)
            }))?;
            for row in by_row {
                totals.iter_mut().zip(row).for_each(|(total, size)| *total += size);
            }
        }
        None => {
            let models: Vec<_> =
                grid.iter().zip(levels).map(|(score, level)| Calibrated::new(*score, *level)).collect();
            let sets = with_logits!(block, logits => predict_each(&models, logits))?;
            totals.iter_mut().zip(sets).for_each(|(total, sets)| *total += sets.labels().len() as u64);
        }
    }
    Ok(())
}

/// The grid as RAPS scores that share their draw.
fn all_raps(grid: &[ScoreSpec]) -> Option<Vec<RapsScore>> {
    let raps = |score: &ScoreSpec| match score {
        ScoreSpec::Raps(raps) => Some(*raps),
        _ => None,
    };
    let grid: Vec<RapsScore> = grid.iter().map(raps).collect::<Option<_>>()?;
    grid.windows(2).all(|pair| pair[0].draw == pair[1].draw).then_some(grid)
}

/// What `work` makes of each row's ranking, in row order.
fn ranked<T: Logit, R: Send>(
    grid: &[RapsScore],
    logits: Logits<'_, T>,
    work: impl Fn(&RankedSoftmax, usize) -> R + Sync,
) -> Result<Vec<R>, Error> {
    let Some(draw) = grid.first().map(|score| score.draw) else { return Err(Error::NoCandidates) };
    let rows = (0..logits.len()).into_par_iter();
    let results: Vec<Result<R, Error>> =
        rows.map(|row| Ok(work(&RankedSoftmax::new(logits.row(row)?, draw), row))).collect();
    results.into_iter().collect()
}

/// Each candidate's score of one label; a label of probability zero is not in the ranking and scores +∞.
fn true_places(grid: &[RapsScore], ranked: &RankedSoftmax, label: u32) -> Vec<f64> {
    let place = ranked.labels().iter().position(|other| *other == label);
    let score = |score: &RapsScore| place.map_or(f64::INFINITY, |place| ranked.raps(score, place));
    grid.iter().map(score).collect()
}

/// Each candidate's set size in one row. An infinite threshold takes in labels of probability zero too, which the
/// ranking leaves out.
fn sizes(grid: &[RapsScore], levels: &[Level], ranked: &RankedSoftmax, classes: usize) -> Vec<u64> {
    let size = |(score, level): (&RapsScore, &Level)| {
        if level.threshold == f64::INFINITY {
            return classes as u64;
        }
        let places = 0..ranked.labels().len();
        places.filter(|place| ranked.raps(score, *place) <= level.threshold).count() as u64
    };
    grid.iter().zip(levels).map(size).collect()
}
