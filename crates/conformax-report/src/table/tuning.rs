//! What it costs in coverage to tune against the rows that later calibrate, as the paper does.

use conformax_study::{Paired, TuningComparison, TuningWay, Way};

use super::claims::ERRORS;
use super::{Column, Records, Row, Table, exact, optional};
use crate::number;
use crate::view::View;

/// One row per benchmark, tuned procedure and level.
pub(super) fn table(view: &View<'_>) -> Table {
    let comparisons = &view.results.tuning;
    let splits = comparisons.first().map_or(0, |comparison| comparison.coverage_difference.splits);
    let header = vec![
        "benchmark",
        "procedure",
        "alpha",
        "promised",
        "valid_coverage",
        "valid_coverage_deviation",
        "paper_coverage",
        "paper_coverage_deviation",
        "coverage_difference",
        "coverage_difference_error",
        "valid_size",
        "valid_size_deviation",
        "paper_size",
        "paper_size_deviation",
        "size_difference",
        "size_difference_error",
        "splits",
        "all_rows_coverage",
        "all_rows_coverage_deviation",
        "all_rows_size",
        "all_rows_size_deviation",
        "all_rows_splits",
    ];
    Table {
        slug: "tuning-cost".to_owned(),
        title: format!(
            "What the paper's way of tuning costs, over {splits} splits (differences ± standard error)"
        ),
        notes: [
            "Valid: the tuning rows alone choose the parameter, and rows that no choice has seen calibrate it. \
             The paper's: candidates take their thresholds from the rows that later calibrate, so the choice leans \
             towards those that came out small there."
                .to_owned(),
            ERRORS.to_owned(),
        ]
        .into_iter()
        .chain(all_rows(view))
        .chain(view.too_wide_note())
        .collect(),
        columns: vec![
            Column::text("Benchmark"),
            Column::text("Procedure"),
            Column::number("α"),
            Column::number("Promised"),
            Column::number("Coverage, valid"),
            Column::number("Coverage, paper’s"),
            Column::number("Difference"),
            Column::number("Size, valid"),
            Column::number("Size, paper’s"),
            Column::number("Difference"),
            Column::number("Coverage, all rows"),
            Column::number("Size, all rows"),
        ],
        rows: comparisons.iter().enumerate().map(|(i, _)| row(view, i)).collect(),
        records: Records { header, rows: comparisons.iter().map(|c| record(view, c)).collect() },
    }
}

/// What the columns of procedures that all rows tune are means of: fewer splits.
fn all_rows(view: &View<'_>) -> Option<String> {
    let way = view.results.tuning_ways.iter().find(|it| it.way == Way::AllRows)?;
    Some(format!(
        "All rows: every row chooses and calibrates, over the first {} splits; Figure 10 has all ways on those.",
        way.coverage.splits
    ))
}

/// The same procedure at the same level where all rows tune it.
fn by_all_rows<'v>(view: &'v View<'_>, c: &TuningComparison) -> Option<&'v TuningWay> {
    let is_its = |it: &&TuningWay| {
        it.way == Way::AllRows
            && (&it.benchmark, &it.procedure, it.alpha) == (&c.benchmark, &c.procedure, c.alpha)
    };
    view.results.tuning_ways.iter().find(is_its)
}

fn row(view: &View<'_>, i: usize) -> Row {
    let comparisons = &view.results.tuning;
    let c = &comparisons[i];
    let title =
        view.results.benchmarks.iter().find(|b| b.name == c.benchmark).map_or(&c.benchmark, |b| &b.title);
    let by_all = by_all_rows(view, c);
    let cells = vec![
        title.as_str().into(),
        c.procedure.as_str().into(),
        number::level(c.alpha).into(),
        format!("{:.4}", c.promised).into(),
        format!("{:.4}", c.valid_coverage.mean).into(),
        format!("{:.4}", c.paper_coverage.mean).into(),
        paired(c.coverage_difference, 4).into(),
        number::size(c.valid_size.mean).into(),
        number::size(c.paper_size.mean).into(),
        paired(c.size_difference, 3).into(),
        by_all.map_or("–".to_owned(), |it| format!("{:.4}", it.coverage.mean)).into(),
        by_all.map_or("–".to_owned(), |it| number::size(it.average_size.mean)).into(),
    ];
    let begins_group =
        i == 0 || comparisons[i - 1].procedure != c.procedure || comparisons[i - 1].benchmark != c.benchmark;
    Row { benchmark: Some(c.benchmark.clone()), alpha: Some(number::level(c.alpha)), begins_group, cells }
}

fn paired(difference: Paired, digits: usize) -> String {
    format!("{} ± {:.digits$}", number::signed(difference.mean, digits), difference.standard_error)
}

fn record(view: &View<'_>, c: &TuningComparison) -> Vec<String> {
    let by_all = by_all_rows(view, c);
    let coverage = by_all.map(|it| it.coverage);
    let size = by_all.map(|it| it.average_size);
    vec![
        c.benchmark.clone(),
        c.procedure.clone(),
        exact(c.alpha),
        exact(c.promised),
        exact(c.valid_coverage.mean),
        exact(c.valid_coverage.deviation),
        exact(c.paper_coverage.mean),
        exact(c.paper_coverage.deviation),
        exact(c.coverage_difference.mean),
        exact(c.coverage_difference.standard_error),
        exact(c.valid_size.mean),
        exact(c.valid_size.deviation),
        exact(c.paper_size.mean),
        exact(c.paper_size.deviation),
        exact(c.size_difference.mean),
        exact(c.size_difference.standard_error),
        c.coverage_difference.splits.to_string(),
        optional(coverage.map(|spread| spread.mean)),
        optional(coverage.map(|spread| spread.deviation)),
        optional(size.map(|spread| spread.mean)),
        optional(size.map(|spread| spread.deviation)),
        optional(coverage.map(|spread| spread.splits as f64)),
    ]
}
