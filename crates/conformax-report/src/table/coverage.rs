//! The paper's Table 1: coverage at 0.01 and 0.10, ours and the printed one.

use conformax_study::paper;

use super::{Cell, Column, Records, Row, Table, exact, optional};
use crate::number;
use crate::view::{self, View};

const NOT_LIKE_FOR_LIKE: &str = "Not like for like: the paper's classifiers are others, its ImageNet has 50,000 rows \
                                 where ours has 5,000, and it tunes RAPS and opt-entmax against the rows that later \
                                 calibrate. It prints means alone.";

/// Rows by level and benchmark, a column per procedure.
pub(super) fn table(view: &View<'_>) -> Table {
    let mut columns = vec![Column::text("α"), Column::text("Benchmark")];
    columns.extend(view.results.procedures.iter().map(|name| Column::procedure(name)));
    let mut rows = Vec::new();
    let mut records = Records {
        header: vec!["alpha", "benchmark", "procedure", "coverage", "deviation", "splits", "paper_coverage"],
        rows: Vec::new(),
    };
    for (level, alpha) in levels(view) {
        for (benchmark, summary) in view.benchmarks() {
            let mut cells = vec![number::level(alpha).into(), summary.title.as_str().into()];
            for (procedure, name) in view.procedures() {
                let cell = view::Cell { benchmark, procedure, level };
                let ours = view.spread_of(cell, |record| Some(record.coverage));
                let paper =
                    summary.name_in_paper().and_then(|benchmark| paper::coverage_of(benchmark, name, alpha));
                cells.push(Cell {
                    main: ours.map_or_else(|| "–".to_owned(), |ours| number::spread(ours, number::share)),
                    below: paper.map(|paper| format!("paper {paper:.3}")).into_iter().collect(),
                });
                records.rows.push(vec![
                    exact(alpha),
                    summary.name.clone(),
                    name.to_owned(),
                    optional(ours.map(|ours| ours.mean)),
                    optional(ours.map(|ours| ours.deviation)),
                    ours.map_or(0, |ours| ours.splits).to_string(),
                    optional(paper),
                ]);
            }
            rows.push(Row {
                benchmark: Some(summary.name.clone()),
                begins_group: benchmark == 0,
                ..Row::of(cells)
            });
        }
    }
    let splits = view.results.provenance.splits;
    Table {
        slug: "table-1-coverage".to_owned(),
        title: format!("Table 1. Coverage of the test rows, mean ± standard deviation over {splits} splits"),
        notes: if view.has_printed_numbers() { vec![NOT_LIKE_FOR_LIKE.to_owned()] } else { Vec::new() },
        columns,
        rows,
        records,
    }
}

/// The levels the paper prints; all where a study has neither.
fn levels(view: &View<'_>) -> Vec<(usize, f64)> {
    let printed: Vec<_> = view.levels().filter(|(_, alpha)| [0.01, 0.1].contains(alpha)).collect();
    if printed.is_empty() { view.levels().collect() } else { printed }
}
