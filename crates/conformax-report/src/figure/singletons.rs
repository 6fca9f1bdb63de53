//! Figure 6: how often sets hold one label, and how often that label is right.

use conformax_plot::Axis;
use conformax_study::{BenchmarkSummary, Spread};

use super::bars::{Bar, drawing};
use super::{Figure, Panel, by_printed_level};
use crate::number;
use crate::table::{Cell as TableCell, Table, optional};
use crate::view::{Cell, View};

pub(super) fn figure(view: &View<'_>) -> Figure {
    let splits = view.results.provenance.splits;
    Figure {
        number: 6,
        slug: "singletons",
        title: "Sets of one label, and how often they are right".to_owned(),
        caption: format!(
            "Bars: share of sets with one label. Marks: share of those that hold the true label; no mark where there \
             is no such set. Dashed: 1 − α. Means over {splits} splits."
        ),
        panels: view.benchmarks().map(|(benchmark, summary)| panel(view, benchmark, summary)).collect(),
        columns: 2,
        key: view.styles.clone(),
        data: data(view),
    }
}

fn ratio(view: &View<'_>, cell: Cell) -> Option<Spread> {
    view.spread_of(cell, |record| Some(record.singleton_ratio))
}

fn coverage(view: &View<'_>, cell: Cell) -> Option<Spread> {
    view.spread_of(cell, |record| record.singleton_coverage)
}

fn panel(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> Panel {
    let bar = |cell| {
        let (ratio, coverage) = (ratio(view, cell)?, coverage(view, cell));
        let right = coverage
            .map_or_else(|| "no singleton".to_owned(), |c| format!("{} right", number::share(c.mean)));
        Some(Bar {
            height: ratio.mean,
            whisker: None,
            marks: coverage.iter().map(|coverage| coverage.mean).collect(),
            value: format!("{} ({right})", number::share(ratio.mean)),
        })
    };
    let y = Axis::even("Share of sets", 0.0, 1.0);
    Panel {
        benchmark: Some(summary.name.clone()),
        drawn: conformax_plot::Panel {
            title: summary.title.clone(),
            alternative: alternative(view, benchmark, summary),
            size: (420.0, 270.0),
            drawing: drawing(view, benchmark, &y, bar, |alpha| Some(1.0 - alpha)),
        },
    }
}

fn alternative(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> String {
    let mut text = format!("Share of sets with one label on {}, a bar per procedure.", summary.title);
    for level in view.printed_levels() {
        let ratios: Vec<String> = view
            .procedures()
            .filter_map(|(procedure, name)| {
                let ratio = ratio(view, Cell { benchmark, procedure, level })?;
                Some(format!("{name} {}", number::share(ratio.mean)))
            })
            .collect();
        text.push_str(&format!(
            " At α = {}: {}.",
            number::level(view.results.levels[level]),
            number::listed(&ratios)
        ));
    }
    text
}

fn data(view: &View<'_>) -> Table {
    let header = vec![
        "benchmark",
        "procedure",
        "alpha",
        "singleton_ratio",
        "singleton_ratio_deviation",
        "singleton_coverage",
        "singleton_coverage_deviation",
    ];
    by_printed_level(view, "figure-6-singletons", header, |cell| {
        let (ratio, coverage) = (ratio(view, cell), coverage(view, cell));
        let shown = |spread: Option<Spread>| {
            spread.map_or_else(|| "–".to_owned(), |spread| number::spread(spread, number::share))
        };
        let fields = vec![
            optional(ratio.map(|s| s.mean)),
            optional(ratio.map(|s| s.deviation)),
            optional(coverage.map(|s| s.mean)),
            optional(coverage.map(|s| s.deviation)),
        ];
        (TableCell { main: shown(ratio), below: vec![format!("right {}", shown(coverage))] }, fields)
    })
}
