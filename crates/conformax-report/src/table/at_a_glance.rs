//! Every metric of every procedure: the table behind the page's first numbers.

use conformax_study::Record;

use super::{Column, Records, Row, Table, exact, optional};
use crate::number;
use crate::view::{Cell, View};

/// A number that each record has, and how it is printed.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    /// Name in files.
    pub(crate) key: &'static str,
    /// Name over a column.
    pub(crate) name: &'static str,
    pub(crate) read: fn(&Record) -> Option<f64>,
    pub(crate) print: fn(f64) -> String,
}

/// All metrics, in the order of the records' fields.
pub(crate) const METRICS: [Metric; 7] = [
    Metric { key: "coverage", name: "Coverage", read: |r| Some(r.coverage), print: number::share },
    Metric { key: "average_size", name: "Average size", read: |r| Some(r.average_size), print: number::size },
    Metric {
        key: "singleton_ratio",
        name: "Singletons",
        read: |r| Some(r.singleton_ratio),
        print: number::share,
    },
    Metric {
        key: "singleton_coverage",
        name: "Their coverage",
        read: |r| r.singleton_coverage,
        print: number::share,
    },
    Metric { key: "empty_ratio", name: "Empty", read: |r| Some(r.empty_ratio), print: number::share },
    Metric { key: "sscv", name: "SSCV", read: |r| Some(r.sscv), print: number::share },
    Metric { key: "covgap", name: "CovGap", read: |r| Some(r.covgap), print: number::share },
];

/// One row per benchmark, level and procedure.
pub(super) fn table(view: &View<'_>) -> Table {
    let mut columns = vec![Column::text("Benchmark"), Column::number("α"), Column::text("Procedure")];
    columns.extend(METRICS.iter().map(|metric| Column::number(metric.name)));
    let mut rows = Vec::new();
    let mut records = Records {
        header: vec!["benchmark", "alpha", "procedure", "metric", "mean", "deviation", "splits"],
        rows: Vec::new(),
    };
    for (benchmark, summary) in view.benchmarks() {
        for (level, alpha) in view.levels() {
            for (procedure, name) in view.tabled() {
                let cell = Cell { benchmark, procedure, level };
                let mut cells = vec![summary.title.as_str().into(), number::level(alpha).into(), name.into()];
                for metric in METRICS {
                    let spread = view.spread_of(cell, metric.read);
                    cells.push(
                        spread
                            .map_or_else(|| "–".into(), |spread| number::spread(spread, metric.print).into()),
                    );
                    records.rows.push(vec![
                        summary.name.clone(),
                        exact(alpha),
                        name.to_owned(),
                        metric.key.to_owned(),
                        optional(spread.map(|spread| spread.mean)),
                        optional(spread.map(|spread| spread.deviation)),
                        spread.map_or(0, |spread| spread.splits).to_string(),
                    ]);
                }
                rows.push(Row { begins_group: procedure == 0, ..Row::of(cells) });
            }
        }
    }
    Table {
        slug: "all-metrics".to_owned(),
        title: "All metrics: mean and standard deviation over the splits".to_owned(),
        notes: view.all_rows_note().into_iter().collect(),
        columns,
        rows,
        records,
    }
}
