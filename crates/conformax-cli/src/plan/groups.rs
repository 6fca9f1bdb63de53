//! How many rows data has of each group, and what they are enough for.

use std::path::{Path, PathBuf};

use conformax::Level;
use conformax_io::{Block, Data, LabelUse, Source, SourceOptions, printable, read_per_class};
use serde::Serialize;

use super::{Outlook, outlook};
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
    pub(super) data: &'a [PathBuf],
    pub(super) by: &'a str,
    pub(super) label_column: Option<String>,
    pub(super) drop: Vec<String>,
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
        let clusters = Some(Path::new(self.by)).filter(|path| path.is_file());
        let is_column = self.by != "class" && clusters.is_none();
        let options = SourceOptions {
            labels: if is_column { LabelUse::IfPresent } else { LabelUse::Required },
            label_column: self.label_column.clone(),
            drop: self.drop.clone(),
            group_column: is_column.then(|| self.by.to_owned()),
            ..SourceOptions::default()
        };
        let source = Source::open(&Data::Files(self.data.to_vec()), &options)?;
        let classes = source.classes();
        let class_name = |label: usize| match source.names() {
            Some(names) => names.as_slice()[label].clone(),
            None => label.to_string(),
        };
        let of_class: Option<Vec<String>> = match clusters {
            Some(path) => Some(read_per_class(path, classes, source.names())?),
            None if is_column => None,
            None => Some((0..classes).map(class_name).collect()),
        };
        let mut counts: Vec<u64> = Vec::new();
        let source = for_each_block(source, "counting rows", console, |block: &Block, _| {
            let places = if is_column { block.groups.as_deref() } else { block.labels.as_deref() };
            for place in places.unwrap_or_default() {
                let place = *place as usize;
                counts.resize(counts.len().max(place + 1), 0);
                counts[place] += 1;
            }
            Ok(())
        })?;
        let names = of_class.unwrap_or_else(|| source.groups().to_vec());
        counts.resize(names.len(), 0);
        let mut groups: Vec<(String, u64)> = Vec::new();
        for (name, n) in names.into_iter().zip(counts) {
            // Several classes may be of one cluster.
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += n,
                None => groups.push((name, n)),
            }
        }
        Ok(groups)
    }
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
