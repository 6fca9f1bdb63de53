//! Figure 9: SSCV, the largest distance of a size stratum's coverage from 1 − α.

use conformax_plot::Axis;
use conformax_study::{BenchmarkSummary, Spread};

use super::bars::{Bar, drawing};
use super::{Figure, Panel, by_printed_level};
use crate::number;
use crate::table::{Table, optional};
use crate::view::{Cell, View};

pub(super) fn figure(view: &View<'_>) -> Figure {
    let splits = view.results.provenance.splits;
    Figure {
        number: 9,
        slug: "sscv",
        title: "Size-stratified coverage violation: smaller is more even".to_owned(),
        caption: format!(
            "SSCV of each of {splits} splits (marks), their mean (bars) and one standard deviation to each side \
             (lines). A stratum with a handful of sets can carry the maximum."
        ),
        panels: view.benchmarks().map(|(benchmark, summary)| panel(view, benchmark, summary)).collect(),
        columns: 2,
        key: view.styles.clone(),
        data: data(view),
    }
}

fn sscv(view: &View<'_>, cell: Cell) -> Option<Spread> {
    view.spread_of(cell, |record| Some(record.sscv))
}

fn panel(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> Panel {
    let bar = |cell| {
        let spread = sscv(view, cell)?;
        Some(Bar {
            height: spread.mean,
            whisker: Some(((spread.mean - spread.deviation).max(0.0), spread.mean + spread.deviation)),
            marks: view.records(cell).iter().map(|record| record.sscv).collect(),
            value: number::spread(spread, number::share),
        })
    };
    let cells = || {
        let levels = view.printed_levels();
        view.procedures().flat_map(move |(procedure, _)| {
            levels.clone().into_iter().map(move |level| Cell { benchmark, procedure, level })
        })
    };
    let highest = cells().flat_map(|cell| view.records(cell)).map(|record| record.sscv).fold(0.0, f64::max);
    let reach =
        cells().filter_map(bar).filter_map(|bar| bar.whisker).map(|(_, high)| high).fold(highest, f64::max);
    Panel {
        benchmark: Some(summary.name.clone()),
        drawn: conformax_plot::Panel {
            title: summary.title.clone(),
            alternative: alternative(view, benchmark, summary),
            size: (420.0, 270.0),
            drawing: drawing(view, benchmark, &Axis::even("SSCV", 0.0, reach.max(0.01)), bar, |_| None),
        },
    }
}

fn alternative(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> String {
    let mut text = format!("Size-stratified coverage violation on {}, a bar per procedure.", summary.title);
    for level in view.printed_levels() {
        let values: Vec<String> = view
            .procedures()
            .filter_map(|(procedure, name)| {
                let spread = sscv(view, Cell { benchmark, procedure, level })?;
                Some(format!("{name} {}", number::share(spread.mean)))
            })
            .collect();
        text.push_str(&format!(
            " At α = {}: {}.",
            number::level(view.results.levels[level]),
            number::listed(&values)
        ));
    }
    text
}

fn data(view: &View<'_>) -> Table {
    let header = vec!["benchmark", "procedure", "alpha", "sscv", "deviation"];
    by_printed_level(view, "figure-9-sscv", header, |cell| {
        let spread = sscv(view, cell);
        let fields = vec![optional(spread.map(|s| s.mean)), optional(spread.map(|s| s.deviation))];
        (spread.map_or_else(|| "–".into(), |spread| number::spread(spread, number::share).into()), fields)
    })
}
