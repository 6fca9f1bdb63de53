//! How many rows data has of each group, and what they are enough for.

use conformax::Level;
use conformax_io::{Block, LabelUse, Source, printable, read_clusters};
use serde::Serialize;

use super::{Outlook, outlook};
use crate::args::{By, DataArgs};
use crate::blocks::for_each_block;
use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::{count, or_dash, range, share};
use crate::table::{Align, table, text};

/// What the rows of a group give.
#[derive(Serialize)]
pub(super) struct Group {
    group: String,
    rows_needed: u64,
    #[serde(flatten)]
    outlook: Outlook,
}

/// Where rows come from, and what they are told apart by: classes, a column, or clusters of classes in a file.
pub(super) struct Counted<'a> {
    pub(super) data: &'a DataArgs,
    pub(super) by: &'a By,
}

impl Counted<'_> {
    /// Fewest rows first.
    pub(super) fn groups(
        &self,
        level: impl Fn(u64) -> Level,
        probability: f64,
        console: &mut Console<'_>,
    ) -> Result<Vec<Group>, Failure> {
        let mut counts = self.counts(console)?;
        counts.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
        let group = |(group, n): (String, u64)| {
            let level = level(n);
            Ok(Group { group, rows_needed: level.rows_needed(), outlook: outlook(level, probability)? })
        };
        counts.into_iter().map(group).collect()
    }

    fn counts(&self, console: &mut Console<'_>) -> Result<Vec<(String, u64)>, Failure> {
        let column = self.by.column();
        let labels = if column.is_some() { LabelUse::IfPresent } else { LabelUse::Required };
        let source =
            self.data.open_with(labels, |options| options.group_column = column.map(str::to_owned))?;
        let clusters = match self.by {
            By::Clusters(path) => Some(read_clusters(path, source.classes(), source.names())?),
            By::Class | By::Column(_) => None,
        };
        let mut counts: Vec<u64> = Vec::new();
        let source = for_each_block(source, "counting rows", console, |block: &Block, _| {
            let places = if column.is_some() { block.groups.as_deref() } else { block.labels.as_deref() };
            for place in places.unwrap_or_default() {
                let place = match &clusters {
                    Some(clusters) => clusters.of_class[*place as usize] as usize,
                    None => *place as usize,
                };
                counts.resize(counts.len().max(place + 1), 0);
                counts[place] += 1;
            }
            Ok(())
        })?;
        let names = match (self.by, clusters) {
            (_, Some(clusters)) => clusters.names,
            (By::Column(_), None) => source.groups().to_vec(),
            (_, None) => class_names(&source),
        };
        counts.resize(names.len(), 0);
        Ok(names.into_iter().zip(counts).collect())
    }
}

fn class_names(source: &Source) -> Vec<String> {
    let numbers = || (0..source.classes()).map(|class| class.to_string()).collect();
    source.names().map_or_else(numbers, |names| names.as_slice().to_vec())
}

pub(super) fn group_table(groups: &[Group], percent: f64, below: f64) -> String {
    let interval = format!("coverage will lie in ({percent} %)");
    let below = format!("chance below {below}");
    let mut table = table(&[
        ("group", Align::Left),
        ("rows", Align::Right),
        ("rank", Align::Right),
        (interval.as_str(), Align::Right),
        (below.as_str(), Align::Right),
        ("still needed", Align::Right),
    ]);
    for group in groups {
        let Outlook { n, rank, coverage_interval, probability_below, .. } = group.outlook;
        let missing = group.rows_needed.saturating_sub(n);
        table.add_row([
            printable(&group.group).to_string(),
            count(n),
            or_dash(rank.map(count)),
            range(coverage_interval),
            share(probability_below, 3),
            or_dash((missing > 0).then(|| count(missing))),
        ]);
    }
    text(&table)
}

/// A sentence about the groups that are too small.
pub(super) fn verdict(groups: &[Group]) -> String {
    let few = groups.iter().filter(|group| group.outlook.rank.is_none()).count();
    match few {
        0 => format!("Each of the {} groups has rows enough.", count(groups.len() as u64)),
        _ => format!(
            "{} of {} groups have too few rows: theirs would be an infinite threshold.",
            count(few as u64),
            count(groups.len() as u64)
        ),
    }
}
