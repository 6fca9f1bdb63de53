//! One pass over the data: how every set fared, and which rows had a part in the model.

use conformax::{Evaluator, ScoreSpec, SeenRows};
use conformax_io::Source;

use super::groups::Apart;
use crate::blocks::{for_each_block, in_block, with_logits};
use crate::calibrate::LooksLikeProbabilities;
use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::{count, rows};

pub(super) fn read(
    source: Source,
    mut evaluator: Evaluator<ScoreSpec>,
    apart: &Apart,
    console: &mut Console<'_>,
) -> Result<(Evaluator<ScoreSpec>, Vec<String>), Failure> {
    let mut doubt = LooksLikeProbabilities::with_model(&source);
    let source = for_each_block(source, "evaluating", console, |block, console| {
        doubt.look_at(block, console)?;
        // Groups of a column are learned as rows come. Where rows are told apart by their labels, the groups that a
        // block knows are those that the model's thresholds go by.
        if apart.column().is_some() && evaluator.groups() < block.known_groups {
            let same: Vec<usize> = (0..evaluator.groups()).collect();
            evaluator = evaluator.clone().regrouped(&same, block.known_groups)?;
        }
        let labels = block.labels.as_deref().expect("labels were required of the source");
        with_logits!(block, logits => evaluator.extend(logits.labelled(labels)?))
            .map_err(|error| in_block(error, block.first_row))?;
        Ok(())
    })?;
    Ok((evaluator, source.groups().to_vec()))
}

/// What rows that had a part in the model mean for an evaluation.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Honest {
    Yes,
    /// They were let in on request: no law holds for the figures.
    No,
}

/// Rows that calibrated would make coverage look better than it is on new ones.
pub(super) fn judge_seen(
    seen: &SeenRows,
    data: &str,
    allowed: bool,
    console: &mut Console<'_>,
) -> Result<Honest, Failure> {
    let Some(first) = seen.first.filter(|_| seen.are_no_chance()) else { return Ok(Honest::Yes) };
    let what = format!(
        "{data}: {} of {} also calibrated or tuned this model, row {first} first",
        count(seen.seen),
        rows(seen.rows)
    );
    if !seen.are_the_same_data() {
        console.warn(format_args!("{what}; so few may be chance"))?;
        return Ok(Honest::Yes);
    }
    if allowed {
        console.warn(format_args!("{what}; the figures flatter the model and no interval holds for them"))?;
        return Ok(Honest::No);
    }
    Err(Failure::error(format!(
        "{what}; evaluate on other rows, or give --allow-seen if you know what that means"
    )))
}
