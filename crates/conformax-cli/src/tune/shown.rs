//! Every candidate and how it fared.

use conformax_io::Model;
use serde::Serialize;

use crate::calibrate::{ShownLevel, level_table, promise_line};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{rows, shown};
use crate::selection::{ShownRival, rival_table};
use crate::table::{Align, table, text};

#[derive(Serialize)]
struct ShownCandidate {
    score: String,
    #[serde(serialize_with = "json::number")]
    threshold: f64,
    average_size: f64,
    chosen: bool,
}

#[derive(Serialize)]
struct Printed {
    score: String,
    tuning_rows: u64,
    calibrating_rows: u64,
    promise: String,
    candidates: Vec<ShownCandidate>,
    levels: Vec<ShownLevel>,
}

/// The same where all rows chose.
#[derive(Serialize)]
struct PrintedSelection {
    score: String,
    rows: u64,
    promise: String,
    candidates: Vec<ShownRival>,
    levels: Vec<ShownLevel>,
}

pub(super) fn print(model: &Model, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let Some(record) = &model.tuning else { return print_selection(model, as_json, console) };
    let candidates: Vec<ShownCandidate> = (0..)
        .zip(record.choice.candidates())
        .map(|(index, candidate)| ShownCandidate {
            score: candidate.score.to_string(),
            threshold: candidate.threshold,
            average_size: candidate.average_size,
            chosen: index == record.choice.chosen(),
        })
        .collect();
    let printed = Printed {
        score: model.score.to_string(),
        tuning_rows: record.n,
        calibrating_rows: model.n,
        promise: model.promise_and_limits(),
        candidates,
        levels: ShownLevel::all(model),
    };
    if as_json {
        return json::print(&printed, console);
    }
    let title = format!(
        "{} candidates judged at alpha = {} on {}",
        record.choice.candidates().len(),
        record.alpha,
        rows(record.n)
    );
    writeln!(
        console.out(),
        "{title}\n\n{}\n{}, calibrated on {}\n\n{}\n\n{}",
        candidate_table(&printed.candidates),
        printed.score,
        rows(model.n),
        level_table(&printed.levels).trim_end(),
        promise_line(model)
    )?;
    Ok(())
}

fn print_selection(model: &Model, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let printed = PrintedSelection {
        score: model.score.to_string(),
        rows: model.n,
        promise: model.promise_and_limits(),
        candidates: ShownRival::all(model),
        levels: ShownLevel::all(model),
    };
    if as_json {
        return json::print(&printed, console);
    }
    writeln!(
        console.out(),
        "{} candidates on {}, all of which choose and calibrate\n\n{}\n{} leads\n\n{}\n\n{}",
        printed.candidates.len(),
        rows(model.n),
        rival_table(&printed.candidates),
        printed.score,
        level_table(&printed.levels).trim_end(),
        promise_line(model)
    )?;
    Ok(())
}

fn candidate_table(candidates: &[ShownCandidate]) -> String {
    let headings = [
        ("candidate", Align::Left),
        ("threshold", Align::Right),
        ("average size", Align::Right),
        ("", Align::Left),
    ];
    let mut table = table(&headings);
    for candidate in candidates {
        let mark = if candidate.chosen { "chosen" } else { "" };
        table.add_row([
            candidate.score.clone(),
            shown(candidate.threshold),
            shown(candidate.average_size),
            mark.to_owned(),
        ]);
    }
    text(&table)
}
