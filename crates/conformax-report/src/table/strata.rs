//! The paper's Tables 2 and 4 to 6: coverage by size of set, pooled over splits, beside the printed counts.

use conformax_study::{BenchmarkSummary, PooledStratum, paper, pooled_strata};

use super::{Cell, Column, Records, Row, Table, exact, optional};
use crate::number;
use crate::view::{self, View};

/// The strata of one benchmark, a table per level.
pub(crate) struct OfBenchmark {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Numbers of the tables in the paper that these stand beside.
    pub(crate) numbers: Vec<u32>,
    /// Level as printed, and its table.
    pub(crate) levels: Vec<(String, Table)>,
}

/// One group of tables per benchmark, for the page.
pub(super) fn by_benchmark(view: &View<'_>) -> Vec<OfBenchmark> {
    let of_benchmark = |(benchmark, summary): (usize, &BenchmarkSummary)| {
        let levels = view.printed_levels();
        let mut numbers: Vec<u32> = printed(summary).map(|table| table.table).collect();
        numbers.sort_unstable();
        numbers.dedup();
        OfBenchmark {
            name: summary.name.clone(),
            title: summary.title.clone(),
            numbers,
            levels: levels
                .into_iter()
                .map(|level| (number::level(view.results.levels[level]), one(view, benchmark, &[level])))
                .collect(),
        }
    };
    view.benchmarks().map(of_benchmark).collect()
}

/// The tables as the paper numbers them, then one for each benchmark it prints none of.
pub(super) fn as_printed(view: &View<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    for (benchmark, summary) in view.benchmarks() {
        let levels = view.printed_levels();
        let number_of = |level: usize| {
            printed(summary).find(|table| table.alpha == view.results.levels[level]).map(|table| table.table)
        };
        let mut numbers: Vec<Option<u32>> = levels.iter().map(|&level| number_of(level)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let chosen: Vec<usize> =
                levels.iter().copied().filter(|&level| number_of(level) == number).collect();
            let mut table = one(view, benchmark, &chosen);
            let prefix = number.map_or_else(String::new, |number| format!("table-{number}-"));
            table.slug = format!("{prefix}strata-{}", summary.name);
            if let Some(number) = number {
                table.title = format!("Table {number}. {}", table.title);
            }
            tables.push(table);
        }
    }
    tables.sort_by(|a, b| a.slug.cmp(&b.slug));
    tables
}

fn printed(summary: &BenchmarkSummary) -> impl Iterator<Item = &'static paper::PrintedTable> {
    paper::STRATA.iter().filter(|table| Some(table.benchmark) == summary.name_in_paper())
}

fn one(view: &View<'_>, benchmark: usize, levels: &[usize]) -> Table {
    let summary = &view.results.benchmarks[benchmark];
    let mut columns = vec![Column::text("Size")];
    if levels.len() > 1 {
        columns.insert(0, Column::text("α"));
    }
    columns.extend(view.results.procedures.iter().map(|name| Column::procedure(name)));
    let mut rows = Vec::new();
    let mut records = Records {
        header: vec![
            "benchmark",
            "alpha",
            "procedure",
            "from",
            "to",
            "n",
            "n_per_split",
            "coverage",
            "empty",
            "paper_n",
            "paper_coverage",
        ],
        rows: Vec::new(),
    };
    for &level in levels {
        let alpha = view.results.levels[level];
        let pooled: Vec<Vec<PooledStratum>> = view
            .procedures()
            .map(|(procedure, _)| pooled_strata(view.records(view::Cell { benchmark, procedure, level })))
            .collect();
        for stratum in 0..pooled.iter().map(Vec::len).max().unwrap_or(0) {
            let mut cells: Vec<Cell> = Vec::new();
            if levels.len() > 1 {
                cells.push(number::level(alpha).into());
            }
            cells.push(pooled.iter().find_map(|strata| strata.get(stratum)).map_or_else(|| "".into(), sizes));
            for ((_, name), strata) in view.procedures().zip(&pooled) {
                let Some(ours) = strata.get(stratum) else {
                    cells.push("–".into());
                    continue;
                };
                let paper = printed_cell(summary, alpha, name, ours);
                cells.push(shown(ours, paper));
                records.rows.push(vec![
                    summary.name.clone(),
                    exact(alpha),
                    name.to_owned(),
                    ours.from.to_string(),
                    ours.to.to_string(),
                    ours.n.to_string(),
                    exact(ours.per_split()),
                    optional(ours.coverage()),
                    ours.empty.to_string(),
                    paper.map(|(n, _)| n.to_string()).unwrap_or_default(),
                    optional(paper.and_then(|(_, coverage)| coverage)),
                ]);
            }
            rows.push(Row { begins_group: stratum == 0, ..Row::of(cells) });
        }
    }
    let at: Vec<String> = levels.iter().map(|&level| number::level(view.results.levels[level])).collect();
    let splits = view.results.provenance.splits;
    Table {
        slug: format!("strata-{}", summary.name),
        title: format!(
            "Coverage by size of set on {} at α = {}, pooled over {splits} splits",
            summary.title,
            number::listed(&at)
        ),
        notes: notes(summary, levels.iter().map(|&level| view.results.levels[level])),
        columns,
        rows,
        records,
    }
}

fn sizes(stratum: &PooledStratum) -> Cell {
    let PooledStratum { from, to, .. } = stratum;
    if from == to { from.to_string().into() } else { format!("{from}–{to}").into() }
}

fn printed_cell(
    summary: &BenchmarkSummary,
    alpha: f64,
    procedure: &str,
    ours: &PooledStratum,
) -> Option<(u64, Option<f64>)> {
    let column = paper::PROCEDURES.iter().position(|name| *name == procedure)?;
    let table = printed(summary).find(|table| table.alpha == alpha)?;
    let row = table.rows.iter().find(|row| (row.from, row.to) == (ours.from, ours.to))?;
    Some(row.cells[column])
}

fn shown(ours: &PooledStratum, paper: Option<(u64, Option<f64>)>) -> Cell {
    let mut below = vec![if ours.n == 0 {
        "no such set".to_owned()
    } else {
        format!("n {} · {} a split", number::count(ours.n), per_split(ours.per_split()))
    }];
    if ours.empty > 0 {
        below.push(format!("{} of them empty", number::count(ours.empty)));
    }
    if let Some((n, coverage)) = paper {
        let coverage = coverage.map_or_else(|| "–".to_owned(), number::share);
        below.push(format!("paper {coverage} · n {}", number::count(n)));
    }
    Cell { main: ours.coverage().map_or_else(|| "–".to_owned(), number::share), below }
}

fn per_split(n: f64) -> String {
    if n < 10.0 && n.fract() != 0.0 { format!("{n:.1}") } else { number::count(n.round() as u64) }
}

/// Where the printed counts fall short of the paper's test rows, and why ours do not.
fn notes(summary: &BenchmarkSummary, levels: impl Iterator<Item = f64>) -> Vec<String> {
    let row = paper::ACCURACY.iter().find(|row| Some(row.benchmark) == summary.name_in_paper());
    let Some(rows) = row.map(|row| row.n_test) else { return Vec::new() };
    let mut short = Vec::new();
    for alpha in levels {
        let Some(table) = printed(summary).find(|table| table.alpha == alpha) else { continue };
        for (column, name) in paper::PROCEDURES.iter().enumerate() {
            let total: u64 = table.rows.iter().map(|row| row.cells[column].0).sum();
            if total < rows {
                short.push(format!("{name} {} at α = {}", number::count(total), number::level(alpha)));
            }
        }
    }
    if printed(summary).next().is_none() {
        return vec!["The paper prints no such table for this benchmark.".to_owned()];
    }
    let mut notes = vec![
        "Not like for like: the printed counts are of one split of the paper's own classifier; ours are pooled over \
         all splits."
            .to_owned(),
    ];
    if !short.is_empty() {
        notes.push(format!(
            "The printed counts fall short of the paper's {} test rows: {}. They leave out empty sets, which InvProb \
             and RAPS can give; ours count those in the first stratum.",
            number::count(rows),
            number::listed(&short)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_printed_counts_fall_short() {
        let mut summary =
            BenchmarkSummary { name: "imagenet5k".to_owned(), ships: true, ..BenchmarkSummary::default() };
        let told = notes(&summary, [0.1].into_iter());
        assert!(told[1].contains("InvProb 29,852 at α = 0.10"), "{told:?}");
        summary.ships = false;
        assert!(
            notes(&summary, [0.1].into_iter()).is_empty(),
            "it is the rows that the paper has numbers of"
        );
    }
}
