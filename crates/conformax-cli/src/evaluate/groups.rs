//! How the sets of each group fared.

use conformax::{Evaluated, GroupTally, Scheme, Taxonomy, Verdict};
use conformax_io::{KeptLevel, Model, Source, SourceOptions, printable, read_clusters};
use serde::Serialize;

use crate::args::By;
use crate::chart::bar;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::numbers::{CONFIDENCE, count, or_dash, range, share, shown};
use crate::table::{Align, table, text};

/// What rows are told apart by.
pub(super) enum Apart {
    Nothing,
    /// By their true labels, or clusters of them, with the names of those.
    Labels(Taxonomy, Vec<String>),
    /// By a column, with the groups of the model where it has some.
    Column(String, Option<Vec<String>>),
    /// By another column than the one that the model's thresholds go by.
    AnotherColumn(String),
}

impl Apart {
    /// As asked, or as the model's thresholds differ.
    pub(super) fn new(by: Option<&By>, model: &Loaded) -> Result<Self, Failure> {
        let Model { scheme, beside, classes, names, .. } = &model.model;
        let own = match (scheme, &beside.column) {
            (Scheme::Groups(Taxonomy::Group(_)), Some(column)) => {
                Some(Self::Column(column.clone(), Some(beside.groups.clone())))
            }
            (Scheme::Groups(taxonomy @ (Taxonomy::Label | Taxonomy::Cluster(_))), _) => {
                Some(Self::Labels(taxonomy.clone(), model.model.group_names()))
            }
            _ => None,
        };
        Ok(match (by, own) {
            (None, None) => Self::Nothing,
            (None, Some(own)) => own,
            (Some(By::Class), _) => {
                let name = |label: usize| match names {
                    Some(names) => names.as_slice()[label].clone(),
                    None => label.to_string(),
                };
                Self::Labels(Taxonomy::Label, (0..*classes).map(name).collect())
            }
            (Some(By::Clusters(path)), _) => {
                let clusters = read_clusters(path, *classes, names.as_ref())?;
                let of_class = clusters.of_class.into_iter().map(Some).collect();
                Self::Labels(Taxonomy::Cluster(of_class), clusters.names)
            }
            (Some(By::Column(column)), Some(Self::Column(own, groups))) if own == *column => {
                Self::Column(own, groups)
            }
            (Some(By::Column(column)), Some(Self::Column(..))) => Self::AnotherColumn(column.clone()),
            (Some(By::Column(column)), _) => Self::Column(column.clone(), None),
        })
    }

    pub(super) fn adjust(&self, options: &mut SourceOptions) {
        match self {
            Self::Column(column, groups) => {
                options.group_column = Some(column.clone());
                options.group_names.clone_from(groups);
            }
            Self::AnotherColumn(column) => options.keep.push(column.clone()),
            Self::Nothing | Self::Labels(..) => {}
        }
    }

    pub(super) fn taxonomy(&self, source: &Source) -> Result<Option<Taxonomy>, Failure> {
        Ok(match self {
            Self::Nothing => None,
            Self::Labels(taxonomy, _) => Some(taxonomy.clone()),
            Self::Column(..) => Some(Taxonomy::Group(source.groups().len().max(1))),
            Self::AnotherColumn(_) => Some(Taxonomy::Group(1)),
        })
    }

    pub(super) fn column(&self) -> Option<String> {
        match self {
            Self::Column(column, _) | Self::AnotherColumn(column) => Some(column.clone()),
            Self::Nothing | Self::Labels(..) => None,
        }
    }

    /// The names of the groups, of which those of a column may have been learned.
    pub(super) fn names(self, learned: Vec<String>) -> Vec<String> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Labels(_, names) => names,
            Self::Column(..) | Self::AnotherColumn(_) => learned,
        }
    }
}

/// How the sets of a group fared.
#[derive(Serialize)]
pub(super) struct GroupEvaluation {
    pub(super) group: String,
    pub(super) n: u64,
    pub(super) coverage: Option<f64>,
    average_size: Option<f64>,
    /// Holds for all groups at once.
    interval: Option<(f64, f64)>,
    #[serde(skip)]
    pub(super) tally: GroupTally,
    /// Where there is something that its coverage is held to.
    #[serde(skip)]
    pub(super) verdict: Option<Verdict>,
}

impl GroupEvaluation {
    /// Every group with rows, worst coverage first, where rows were told apart.
    pub(super) fn all(
        model: &Model,
        (place, kept): (usize, &KeptLevel),
        (column, names): (Option<&str>, &[String]),
        evaluated: &Evaluated,
    ) -> Vec<Self> {
        let Some((taxonomy, tallies)) = evaluated.taxonomy.as_ref().zip(evaluated.groups.get(place)) else {
            return Vec::new();
        };
        let present = tallies.iter().filter(|tally| tally.n > 0).count().max(1);
        let verdicts = model.group_verdicts(kept, (taxonomy, column), tallies);
        let mut all: Vec<Self> = (0..tallies.len())
            .filter(|group| tallies[*group].n > 0)
            .map(|group| {
                let tally = tallies[group];
                Self {
                    group: names.get(group).cloned().unwrap_or_else(|| group.to_string()),
                    n: tally.n,
                    coverage: tally.coverage(),
                    average_size: tally.average_size(),
                    interval: tally.interval(CONFIDENCE, present),
                    tally,
                    verdict: verdicts[group],
                }
            })
            .collect();
        all.sort_by(|a, b| a.coverage.partial_cmp(&b.coverage).expect("shares of rows").then(b.n.cmp(&a.n)));
        all
    }
}

/// `wanted` is the coverage that is asked for, where some is.
pub(super) fn group_table(groups: &[GroupEvaluation], wanted: Option<f64>) -> String {
    const SHOWN: usize = 20;
    let percent = CONFIDENCE * 100.0;
    let interval = format!("{percent} % interval, all at once");
    let headings = [
        ("group", Align::Left),
        ("rows", Align::Right),
        ("coverage", Align::Right),
        ("", Align::Left),
        (interval.as_str(), Align::Left),
        ("average size", Align::Right),
    ];
    let mut table = table(&headings);
    for group in groups.iter().take(SHOWN) {
        table.add_row([
            printable(&group.group).to_string(),
            count(group.n),
            or_dash(group.coverage.map(|coverage| share(coverage, 4))),
            group.coverage.map_or(String::new(), bar),
            or_dash(group.interval.map(range)),
            or_dash(group.average_size.map(shown)),
        ]);
    }
    let mut out = text(&table);
    if groups.len() > SHOWN {
        out += &format!("… and {} more; --json has them all\n", groups.len() - SHOWN);
    }
    let worst = groups.first().and_then(|group| group.coverage);
    if let Some((worst, wanted)) = worst.zip(wanted).filter(|(worst, wanted)| worst < wanted) {
        out += &format!(
            "\nThe worst of {} groups is {} short of {wanted}. The worst of many always looks bad, and thresholds from \
             few rows add chance of their own, which these intervals leave out; --expect-coverage counts both.\n",
            groups.len(),
            share(wanted - worst, 4)
        );
    }
    out
}
