//! Figure 10, which the paper has not: what each way to tune gives in size, and what it costs in coverage.

use conformax_plot::{Axis, Element, Frame, Marker, Plot, Point, Series, Style, path};
use conformax_study::{BenchmarkSummary, TuningWay, Way};

use super::{Figure, Panel};
use crate::number;
use crate::table::{Column, Row, Table, exact};
use crate::view::{Cell, View};

/// `None` where the study tunes nothing.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let ways = &view.results.tuning_ways;
    let splits = ways.first()?.coverage.splits;
    let styles = Way::ALL.map(style);
    let panels = view.benchmarks().flat_map(|(benchmark, summary)| {
        let styles = &styles;
        let is_tuned =
            |name: &str| ways.iter().any(|way| way.procedure == name && way.benchmark == summary.name);
        let tuned = view.procedures().filter(move |(_, name)| is_tuned(name));
        tuned.map(move |(procedure, _)| panel(view, (benchmark, summary), procedure, styles))
    });
    Some(Figure {
        number: 10,
        slug: "tuning-ways",
        title: "Size and coverage by which rows choose".to_owned(),
        caption: format!(
            "Marks: means over {splits} splits at every level, from the largest α at the bottom to the smallest at the \
             top. Rows set aside to choose leave fewer to calibrate; with the paper’s tuning the choice leans on the \
             rows that calibrate, and coverage falls to the left; all rows choose and calibrate where the choice is made \
             anew for every label, which keeps 1 − α exactly. Grey: where one split’s coverage lies with probability \
             0.95 by the law, which holds where rows are set aside."
        ),
        panels: panels.collect(),
        columns: 2,
        key: styles.to_vec(),
        data: data(view),
    })
}

fn style(way: Way) -> Style {
    match way {
        Way::Split => Style::plain("rows set aside", "#3f84c6", "", Marker::Circle),
        Way::Paper => Style::plain("the paper’s tuning", "#d1565a", "4 3", Marker::Cross),
        Way::AllRows => Style::plain("all rows", "#4bab83", "9 3 2 3", Marker::Diamond),
    }
}

/// In percentage points above `1 − α`.
fn excess(coverage: f64, alpha: f64) -> f64 {
    100.0 * (coverage - (1.0 - alpha))
}

/// A benchmark's outcomes for a procedure tuned one way, the largest level first.
fn outcomes<'v>(view: &'v View<'_>, benchmark: &str, procedure: &str, way: Way) -> Vec<&'v TuningWay> {
    let of = |it: &&TuningWay| it.benchmark == benchmark && it.procedure == procedure && it.way == way;
    let mut found: Vec<&TuningWay> = view.results.tuning_ways.iter().filter(of).collect();
    found.sort_by(|a, b| b.alpha.total_cmp(&a.alpha));
    found
}

fn panel(
    view: &View<'_>,
    (benchmark, summary): (usize, &BenchmarkSummary),
    procedure: usize,
    styles: &[Style; 3],
) -> Panel {
    let name = &view.results.procedures[procedure];
    let of = |way| outcomes(view, &summary.name, name, way);
    let series: Vec<Series<'_>> =
        Way::ALL.into_iter().zip(styles).map(|(way, style)| one(&of(way), style)).collect();
    let band: Vec<(f64, f64, f64)> = of(Way::Split)
        .into_iter()
        .filter_map(|it| {
            let level = view.results.levels.iter().position(|alpha| *alpha == it.alpha)?;
            let band = view.band(Cell { benchmark, procedure, level })?;
            Some((it.average_size.mean, excess(band.low, it.alpha), excess(band.high, it.alpha)))
        })
        .collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let across = points().map(|point| point.x).chain(band.iter().flat_map(|(_, low, high)| [*low, *high]));
    let reach = across.map(f64::abs).fold(0.1, f64::max);
    let low = points().map(|point| point.y).fold(f64::MAX, f64::min);
    let high = points().map(|point| point.y).fold(f64::MIN, f64::max);
    let mut plot = Plot::new(
        Frame::PLAIN,
        &Axis::even("Percentage points from 1 − α", -reach, reach),
        &Axis::sizes("Labels in a set", low, high),
    );
    let upper = band.iter().map(|(size, _, high)| (plot.x.at(*high), plot.y.at(*size)));
    let lower = band.iter().rev().map(|(size, low, _)| (plot.x.at(*low), plot.y.at(*size)));
    let area = Element::new("path").set("class", "law").set("d", path(upper.chain(lower)) + "Z");
    plot.push(area.set("fill", "#8a929c").set("fill-opacity", "0.17"));
    for series in &series {
        plot.line(series);
    }
    for series in &series {
        plot.marks(series, 2.6);
    }
    Panel {
        benchmark: Some(summary.name.clone()),
        drawn: conformax_plot::Panel {
            title: format!("{}, {name}", summary.title),
            alternative: alternative(&summary.title, name, &series),
            size: Frame::PLAIN.size(),
            drawing: plot.finish(),
        },
    }
}

fn one<'s>(outcomes: &[&TuningWay], style: &'s Style) -> Series<'s> {
    let points = outcomes.iter().map(|it| Point {
        x: excess(it.coverage.mean, it.alpha),
        y: it.average_size.mean,
        spread: (it.average_size.mean, it.average_size.mean),
        at: format!("α = {}", number::level(it.alpha)),
        value: format!(
            "{} labels, coverage {}",
            number::spread(it.average_size, number::size),
            number::share(it.coverage.mean)
        ),
    });
    Series { style, is_procedure: false, points: points.collect() }
}

fn alternative(title: &str, procedure: &str, series: &[Series<'_>]) -> String {
    let last = |series: &Series<'_>| {
        let point = series.points.last()?;
        let (size, excess) = (number::size(point.y), number::signed(point.x, 2));
        Some(format!("{}: {size} labels, {excess} points", series.style.name))
    };
    let at = series.iter().find_map(|series| series.points.last()).map_or("", |point| &point.at);
    let ways: Vec<String> = series.iter().filter_map(last).collect();
    format!("Size of sets against coverage of {procedure} on {title}. At {at}: {}.", ways.join("; "))
}

fn data(view: &View<'_>) -> Table {
    let columns = vec![
        Column::text("Benchmark"),
        Column::text("Procedure"),
        Column::number("α"),
        Column::number("Coverage"),
        Column::number("Size"),
    ];
    let mut table = Table { slug: "figure-10-tuning-ways".to_owned(), columns, ..Table::default() };
    table.records.header = vec![
        "benchmark",
        "procedure",
        "alpha",
        "coverage",
        "coverage_deviation",
        "average_size",
        "average_size_deviation",
        "splits",
    ];
    for it in &view.results.tuning_ways {
        let named = it.way.named(&it.procedure);
        let title = view.results.benchmarks.iter().find(|summary| summary.name == it.benchmark);
        let cells = vec![
            title.map_or(it.benchmark.as_str(), |summary| &summary.title).into(),
            named.as_str().into(),
            number::level(it.alpha).into(),
            number::spread(it.coverage, number::share).into(),
            number::spread(it.average_size, number::size).into(),
        ];
        table.rows.push(Row { begins_group: it.way == Way::Split, ..Row::of(cells) });
        table.records.rows.push(vec![
            it.benchmark.clone(),
            named,
            exact(it.alpha),
            exact(it.coverage.mean),
            exact(it.coverage.deviation),
            exact(it.average_size.mean),
            exact(it.average_size.deviation),
            it.coverage.splits.to_string(),
        ]);
    }
    table
}
