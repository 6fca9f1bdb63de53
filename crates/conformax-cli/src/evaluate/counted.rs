//! One pass over the data: how every set fared, and which rows had a part in the model.

use std::collections::HashMap;

use conformax::{Evaluator, ScoreSpec, SeenRows};
use conformax_io::{Block, Source};

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
    let mut doubt = LooksLikeProbabilities::with_model();
    let mut others = OtherGroups::default();
    let source = for_each_block(source, "evaluating", console, |block, console| {
        doubt.look_at(block.doubtful, console);
        let labels = block.labels.as_deref().expect("labels were required of the source");
        if let Apart::AnotherColumn(column) = apart {
            let groups = others.of(block, column)?;
            make_room(&mut evaluator, others.names.len())?;
            with_logits!(block, logits => evaluator.extend_counted_by(logits.labelled(labels)?, &groups))
                .map_err(|error| in_block(error, block.first_row))?;
            return Ok(());
        }
        // Where rows are told apart by their labels, the groups that a block knows are those that the model's
        // thresholds go by.
        if apart.column().is_some() {
            make_room(&mut evaluator, block.known_groups)?;
        }
        with_logits!(block, logits => evaluator.extend(logits.labelled(labels)?))
            .map_err(|error| in_block(error, block.first_row))?;
        Ok(())
    })?;
    let learned = match apart {
        Apart::AnotherColumn(_) => others.names,
        Apart::Nothing | Apart::Labels(..) | Apart::Column(..) => source.groups().to_vec(),
    };
    Ok((evaluator, learned))
}

/// Groups of a column are learned as rows come.
fn make_room(evaluator: &mut Evaluator<ScoreSpec>, groups: usize) -> Result<(), conformax::Error> {
    if evaluator.groups() < groups {
        let same: Vec<usize> = (0..evaluator.groups()).collect();
        *evaluator = evaluator.clone().regrouped(&same, groups)?;
    }
    Ok(())
}

/// The groups of a column that has nothing to do with thresholds, numbered as they are met.
#[derive(Default)]
struct OtherGroups {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl OtherGroups {
    fn of(&mut self, block: &Block, column: &str) -> Result<Vec<u32>, Failure> {
        let kept = block.keep.iter().find(|kept| kept.name == column);
        let names = kept.expect("the column was asked for").cells.names().map_err(|row| {
            let row = block.first_row + row as u64;
            Failure::error(format!("wanted the group of every row, and row {row} has nothing in `{column}`"))
        })?;
        Ok(names.into_iter().map(|name| self.number(name)).collect())
    }

    fn number(&mut self, name: String) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }
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
        console.warn(format_args!("{what}; so few may be chance"));
        return Ok(Honest::Yes);
    }
    if allowed {
        console.warn(format_args!("{what}; the figures flatter the model and no interval holds for them"));
        return Ok(Honest::No);
    }
    Err(Failure::error(format!(
        "{what}; evaluate on other rows, or give --allow-seen if you know what that means"
    )))
}
