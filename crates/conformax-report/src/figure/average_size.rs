//! Figure 4: average size of the sets against the level, per benchmark.

use conformax_plot::{Axis, Frame, Plot, Point, Series};
use conformax_study::{BenchmarkSummary, Spread};

use super::{Figure, Panel, by_level, level_axis};
use crate::number;
use crate::view::{Cell, View};

pub(super) fn figure(view: &View<'_>) -> Figure {
    let splits = view.results.provenance.splits;
    Figure {
        number: 4,
        slug: "average-size",
        title: "Average size of prediction sets as more confidence is asked for".to_owned(),
        caption: format!(
            "Lines are means over {splits} splits, shaded areas one standard deviation to each side. The level α \
             falls from left to right, so the confidence asked for grows."
        ),
        panels: view.benchmarks().map(|(benchmark, summary)| panel(view, benchmark, summary)).collect(),
        columns: 2,
        key: view.styles.clone(),
        data: by_level(view, "figure-4-average-size", size, number::size),
    }
}

fn size(view: &View<'_>, cell: Cell) -> Option<Spread> {
    view.spread_of(cell, |record| Some(record.average_size))
}

fn panel(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> Panel {
    let series: Vec<Series<'_>> =
        view.procedures().map(|(procedure, _)| one(view, benchmark, procedure)).collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let low = points().map(|point| point.spread.0).fold(f64::MAX, f64::min);
    let high = points().map(|point| point.spread.1).fold(f64::MIN, f64::max);
    let mut plot = Plot::new(
        Frame::NAMED,
        &level_axis(&view.results.levels),
        &Axis::sizes("Labels in a set", low.max(0.0), high),
    );
    for series in &series {
        plot.band(series);
    }
    for series in &series {
        plot.line(series);
    }
    for series in &series {
        plot.marks(series, 2.6);
    }
    plot.name_ends(&series);
    Panel {
        benchmark: Some(summary.name.clone()),
        drawn: conformax_plot::Panel {
            title: summary.title.clone(),
            alternative: alternative(view, summary, &series),
            size: Frame::NAMED.size(),
            drawing: plot.finish(),
        },
    }
}

fn one<'v>(view: &'v View<'_>, benchmark: usize, procedure: usize) -> Series<'v> {
    let mut points: Vec<Point> = view
        .levels()
        .filter_map(|(level, alpha)| {
            let spread = size(view, Cell { benchmark, procedure, level })?;
            Some(Point {
                x: alpha,
                y: spread.mean,
                // A ratio axis has no zero to fall to.
                spread: (
                    (spread.mean - spread.deviation).max(spread.mean / 2.0),
                    spread.mean + spread.deviation,
                ),
                at: format!("α = {}", number::level(alpha)),
                value: number::spread(spread, number::size),
            })
        })
        .collect();
    points.sort_by(|a, b| b.x.total_cmp(&a.x));
    Series { style: &view.styles[procedure], is_procedure: true, points }
}

fn alternative(view: &View<'_>, summary: &BenchmarkSummary, series: &[Series<'_>]) -> String {
    let mut text =
        format!("Average size of sets against α on {}, {} procedures.", summary.title, series.len());
    for (_, alpha) in view.levels().filter(|(level, _)| view.printed_levels().contains(level)) {
        let mut at: Vec<(&str, f64)> = series
            .iter()
            .filter_map(|s| s.points.iter().find(|p| p.x == alpha).map(|p| (s.style.name.as_str(), p.y)))
            .collect();
        at.sort_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(small), Some(large)) = (at.first(), at.last()) {
            text.push_str(&format!(
                " At α = {}: from {} labels ({}) to {} ({}).",
                number::level(alpha),
                number::size(small.1),
                small.0,
                number::size(large.1),
                large.0
            ));
        }
    }
    text
}
