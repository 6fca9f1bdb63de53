//! The candidates that all rows chose among, as they are shown.

use conformax_io::Model;
use serde::Serialize;

use crate::json;
use crate::numbers::{count, or_dash, share, shown};
use crate::table::{Align, table, text};

/// A candidate and how it fares.
#[derive(Serialize)]
pub(crate) struct ShownRival {
    score: String,
    #[serde(serialize_with = "json::number")]
    threshold: f64,
    /// Mean number of labels in its sets over the calibration rows.
    average_size: f64,
    alive: bool,
    leads: bool,
    /// Calibration rows whose true label it decides, and their share.
    wins: Option<u64>,
    #[serde(skip)]
    share: Option<f64>,
}

impl ShownRival {
    /// The candidates of a model; none where no selection was made.
    pub(crate) fn all(model: &Model) -> Vec<Self> {
        let Some(record) = &model.selection else { return Vec::new() };
        let (selection, n) = (&record.selection, model.n as f64);
        let rivals = selection.rivals().iter().zip(selection.alive()).enumerate();
        let shown = rivals.map(|(place, (rival, alive))| {
            let wins = record.wins.as_ref().map(|wins| wins[place]);
            Self {
                score: rival.score.to_string(),
                threshold: rival.high,
                average_size: rival.at_high as f64 / n,
                alive: *alive,
                leads: place == selection.leader(),
                wins,
                share: wins.map(|wins| wins as f64 / n),
            }
        });
        shown.collect()
    }
}

pub(crate) fn rival_table(rivals: &[ShownRival]) -> String {
    let headings = [
        ("candidate", Align::Left),
        ("threshold", Align::Right),
        ("average size", Align::Right),
        ("decides", Align::Right),
        ("of the rows", Align::Right),
        ("", Align::Left),
    ];
    let mut table = table(&headings);
    for rival in rivals {
        let mark = match (rival.leads, rival.alive) {
            (true, _) => "leads",
            (false, true) => "alive",
            (false, false) => "",
        };
        let wins = rival.wins.filter(|_| rival.alive);
        table.add_row([
            rival.score.clone(),
            shown(rival.threshold),
            shown(rival.average_size),
            or_dash(wins.map(count)),
            or_dash(rival.share.filter(|_| rival.alive).map(|wins| share(wins, 4))),
            mark.to_owned(),
        ]);
    }
    text(&table)
}
