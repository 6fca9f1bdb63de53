//! A data file as people read it, in one pass.

use conformax::{DataFingerprint, interval_of_share};
use conformax_io::{Block, LabelUse};
use serde::Serialize;

use super::model::classes;
use crate::args::DataArgs;
use crate::blocks::for_each_block;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{CONFIDENCE, count, or_dash, range, share, shown};
use crate::table::pairs;

/// What a pass over the rows finds.
#[derive(Default)]
struct Found {
    rows: u64,
    labelled: u64,
    correct: u64,
    nan: u64,
    plus_infinity: u64,
    minus_infinity: u64,
    least: Option<f64>,
    greatest: Option<f64>,
    first_fault: Option<u64>,
    fingerprint: DataFingerprint,
    classes_seen: Vec<bool>,
}

#[derive(Serialize)]
struct Inspected<'a> {
    rows: u64,
    classes: usize,
    dtype: String,
    class_names: Option<&'a [String]>,
    labels: bool,
    classes_with_rows: Option<usize>,
    accuracy: Option<f64>,
    nan: u64,
    plus_infinity: u64,
    minus_infinity: u64,
    min: Option<f64>,
    max: Option<f64>,
    fingerprint: String,
}

pub(super) fn print(args: &DataArgs, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let source = args.open(LabelUse::IfPresent)?;
    let (number, names) = (source.classes(), source.names().cloned());
    let (dtype, labels) = (source.dtype(), source.has_labels());
    let mut found = Found { classes_seen: vec![false; number], ..Found::default() };
    for_each_block(source, "inspecting", console, |block, _| {
        found.fingerprint.extend(&block.row_fingerprints());
        found.add(block);
        Ok(())
    })?;
    let inspected = Inspected {
        rows: found.rows,
        classes: number,
        dtype: dtype.to_string(),
        class_names: names.as_ref().map(|names| names.as_slice()),
        labels,
        classes_with_rows: labels.then(|| found.classes_seen.iter().filter(|seen| **seen).count()),
        accuracy: (found.labelled > 0).then(|| found.correct as f64 / found.labelled as f64),
        nan: found.nan,
        plus_infinity: found.plus_infinity,
        minus_infinity: found.minus_infinity,
        min: found.least,
        max: found.greatest,
        fingerprint: found.fingerprint.to_string(),
    };
    if as_json {
        return json::print(&inspected, console);
    }
    writeln!(console.out(), "{}", pairs(&facts(args, &inspected, &found)).trim_end())?;
    if let Some(row) = found.first_fault {
        console.warn(format_args!(
            "NaN and +inf cannot be calibrated or predicted with; the first is in row {row}: correct or remove such rows"
        ));
    }
    Ok(())
}

impl Found {
    fn add(&mut self, block: &Block) {
        for row in 0..block.rows() {
            let label = block.labels.as_ref().map(|labels| labels[row]);
            self.add_row(block, row, label);
        }
        self.rows += block.rows() as u64;
    }

    fn add_row(&mut self, block: &Block, row: usize, label: Option<u32>) {
        let values = (row * block.classes..(row + 1) * block.classes)
            .map(|index| block.logits.get(index).expect("a block holds whole rows"));
        let mut top: Option<(usize, f64)> = None;
        let faults = self.nan + self.plus_infinity;
        for (class, value) in values.enumerate() {
            match value {
                _ if value.is_nan() => self.nan += 1,
                f64::INFINITY => self.plus_infinity += 1,
                f64::NEG_INFINITY => self.minus_infinity += 1,
                _ => {
                    self.least = Some(self.least.map_or(value, |least| least.min(value)));
                    self.greatest = Some(self.greatest.map_or(value, |greatest| greatest.max(value)));
                    if top.is_none_or(|(_, best)| value > best) {
                        top = Some((class, value));
                    }
                }
            }
        }
        if self.nan + self.plus_infinity > faults {
            self.first_fault.get_or_insert(block.first_row + row as u64);
        }
        if let Some(label) = label {
            self.labelled += 1;
            self.correct += u64::from(top.is_some_and(|(class, _)| class == label as usize));
            self.classes_seen[label as usize] = true;
        }
    }
}

fn facts(args: &DataArgs, inspected: &Inspected<'_>, found: &Found) -> Vec<(&'static str, String)> {
    let seen = inspected.classes_with_rows.map(|seen| format!("yes, of {} classes", count(seen as u64)));
    let accuracy = inspected.accuracy.map(|accuracy| {
        let trusted = interval_of_share(found.correct, found.labelled, CONFIDENCE).map(range);
        format!("{} ({})", share(accuracy, 4), or_dash(trusted))
    });
    let span = inspected.min.zip(inspected.max).map(|(min, max)| format!("{} to {}", shown(min), shown(max)));
    vec![
        ("data", args.describe()),
        ("rows", count(inspected.rows)),
        ("classes", classes(inspected.classes, inspected.class_names)),
        ("type", inspected.dtype.clone()),
        ("labels", seen.unwrap_or_else(|| "none".to_owned())),
        ("accuracy", or_dash(accuracy)),
        ("finite values", or_dash(span)),
        ("NaN", count(inspected.nan)),
        ("+inf", count(inspected.plus_infinity)),
        ("-inf", count(inspected.minus_infinity)),
        ("fingerprint", inspected.fingerprint.clone()),
    ]
}
