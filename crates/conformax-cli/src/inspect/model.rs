//! A calibration file as people read it.

use conformax::{ARITHMETIC_VERSION, DRAW_SCHEME, Draw, Masked};
use conformax_io::Model;
use serde::Serialize;

use crate::calibrate::{ShownLevel, group_tables, level_table};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model::Loaded;
use crate::numbers::{count, rows, shown};
use crate::selection::{ShownRival, rival_table};
use crate::table::pairs;

#[derive(Serialize)]
struct Inspected<'a> {
    score: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    n: u64,
    classes: usize,
    class_names: Option<&'a [String]>,
    masked: &'static str,
    input: &'static str,
    has_scores: bool,
    promise: String,
    /// Shares of the classes that are taken out of the logits.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior: Option<&'a [f64]>,
    /// How far down the ranking a label of each class may stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<&'a [u32]>,
    arithmetic: u32,
    levels: Vec<ShownLevel>,
    tuning: Option<InspectedTuning>,
    /// Where all rows chose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<ShownRival>,
}

#[derive(Serialize)]
struct InspectedTuning {
    alpha: f64,
    n: u64,
    candidates: usize,
    average_size: f64,
}

impl<'a> Inspected<'a> {
    fn new(model: &'a Model) -> Self {
        let seed = match model.score.draw() {
            Some(Draw::Seeded(seed)) => Some(seed),
            Some(Draw::Conservative) | None => None,
        };
        let tuning = model.tuning.as_ref().map(|record| InspectedTuning {
            alpha: record.alpha.value(),
            n: record.n,
            candidates: record.choice.candidates().len(),
            average_size: record.choice.candidates()[record.choice.chosen()].average_size,
        });
        Self {
            score: model.score.to_string(),
            seed,
            n: model.n,
            classes: model.classes,
            class_names: model.names.as_ref().map(|names| names.as_slice()),
            masked: match model.masked {
                Masked::Allowed => "allowed",
                Masked::Never => "never",
            },
            input: model.input.name(),
            has_scores: model.evidence.is_some(),
            promise: model.promise_and_limits(),
            prior: model.prior.as_ref().map(|prior| prior.as_slice()),
            ranks: model.ranks.as_ref().map(|ranks| ranks.as_slice()),
            arithmetic: ARITHMETIC_VERSION,
            levels: ShownLevel::all(model),
            tuning,
            candidates: ShownRival::all(model),
        }
    }
}

pub(super) fn print(loaded: &Loaded, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let inspected = Inspected::new(&loaded.model);
    if as_json {
        return json::print(&inspected, console);
    }
    let mut facts =
        vec![("calibration file", loaded.path.display().to_string()), ("score", inspected.score.clone())];
    facts.extend(inspected.seed.map(|seed| ("random draws", format!("{DRAW_SCHEME}, seed {seed}"))));
    if loaded.model.score.draw() == Some(Draw::Conservative) {
        facts.push(("random draws", "none: the largest value that a draw can give".to_owned()));
    }
    facts.push(("calibrated on", rows(inspected.n)));
    facts.push(("classes", classes(inspected.classes, inspected.class_names)));
    facts.push(("masked classes", inspected.masked.to_owned()));
    facts.push(("input", inspected.input.replace('_', " ")));
    let scores = match (inspected.has_scores, inspected.candidates.is_empty()) {
        (true, _) => "kept: any level, p-values",
        (false, true) => "left out: these levels only",
        (false, false) => "none: all rows chose for this level",
    };
    facts.push(("calibration scores", scores.to_owned()));
    facts.push(("promise", inspected.promise.clone()));
    facts.extend(inspected.prior.map(|shares| {
        let (low, high) = ends(shares.iter().copied());
        ("prior", format!("shares from {} to {}, taken out of the logits", shown(low), shown(high)))
    }));
    facts.extend(inspected.ranks.map(|ranks| {
        let (low, high) = ends(ranks.iter().map(|rank| f64::from(*rank)));
        ("ranks", format!("a label is left out beyond rank {low} to {high}, by its class"))
    }));
    facts.extend(inspected.tuning.as_ref().map(|tuning| {
        let InspectedTuning { alpha, n, candidates, average_size } = tuning;
        let size = shown(*average_size);
        ("tuned", format!("on {}, {candidates} candidates, alpha = {alpha}, average size {size}", rows(*n)))
    }));
    writeln!(console.out(), "{}\n{}", pairs(&facts), level_table(&inspected.levels).trim_end())?;
    write!(console.out(), "{}", group_tables(&inspected.levels))?;
    if !inspected.candidates.is_empty() {
        writeln!(console.out(), "\n{}", rival_table(&inspected.candidates).trim_end())?;
    }
    Ok(())
}

/// The smallest and the largest.
fn ends(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
}

/// The number of classes and the first few names.
pub(super) fn classes(number: usize, names: Option<&[String]>) -> String {
    const SHOWN: usize = 5;
    let number = count(number as u64);
    match names {
        None => number,
        Some(names) if names.len() <= SHOWN => format!("{number}: {}", names.join(", ")),
        Some(names) => format!("{number}: {}, …", names[..SHOWN].join(", ")),
    }
}
