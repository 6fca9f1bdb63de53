//! Figure 8: average size on the tuning rows against γ, at several levels: what opt-entmax chooses from.

use conformax_plot::{Axis, Element, Frame, INK, Marker, Plot, Point, Series, Spacing};
use conformax_study::{BenchmarkSummary, GammaSize, Spread};

use super::{Figure, Panel};
use crate::number;
use crate::style;
use crate::table::{Column, Records, Row, Table, exact};
use crate::view::View;

/// `None` where the study measured no γ on its tuning rows.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let sizes = &view.results.gamma_on_tuning;
    let names = benchmarks_of(view, sizes);
    if names.is_empty() {
        return None;
    }
    let splits = sizes.iter().map(|size| size.split).max().map_or(0, |last| last + 1);
    let gammas: Vec<String> =
        distinct(sizes.iter().map(|size| size.gamma)).iter().map(f64::to_string).collect();
    Some(Figure {
        number: 8,
        slug: "gamma-size",
        title: "Which γ gives the smallest sets on the tuning rows".to_owned(),
        caption: format!(
            "Means over {splits} splits; shaded areas are one standard deviation to each side, and a ring marks the \
             smallest mean of each level. The grid here is γ = {}; the paper’s text names nine values, 1.1 to 1.9.",
            number::listed(&gammas)
        ),
        panels: names.into_iter().map(|name| panel(view, name)).collect(),
        columns: 2,
        key: Vec::new(),
        data: sizes_table(view, "figure-8-gamma-size", sizes),
    })
}

fn panel(view: &View<'_>, benchmark: &str) -> Panel {
    let sizes: Vec<&GammaSize> =
        view.results.gamma_on_tuning.iter().filter(|size| size.benchmark == benchmark).collect();
    let (gammas, levels) =
        (distinct(sizes.iter().map(|size| size.gamma)), distinct(sizes.iter().map(|size| size.alpha)));
    let names: Vec<String> = levels.iter().map(|&alpha| format!("α = {}", number::level(alpha))).collect();
    let styles = style::ramp(&names);
    let series: Vec<Series<'_>> = levels
        .iter()
        .zip(&styles)
        .map(|(&alpha, style)| {
            let point = |&gamma: &f64| {
                let spread = spread_where(&sizes, |size| size.gamma == gamma && size.alpha == alpha)?;
                Some(Point {
                    x: gamma,
                    y: spread.mean,
                    spread: (
                        (spread.mean - spread.deviation).max(spread.mean / 2.0),
                        spread.mean + spread.deviation,
                    ),
                    at: format!("γ = {gamma}"),
                    value: number::spread(spread, number::size),
                })
            };
            Series { style, is_procedure: false, points: gammas.iter().filter_map(point).collect() }
        })
        .collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let low = points().map(|point| point.spread.0).fold(f64::MAX, f64::min);
    let high = points().map(|point| point.spread.1).fold(f64::MIN, f64::max);
    let mut plot = Plot::new(Frame::NAMED, &gamma_axis(&gammas), &Axis::sizes("Labels in a set", low, high));
    for series in &series {
        plot.band(series);
        plot.line(series);
    }
    for series in &series {
        plot.marks(series, 2.2);
        ring_smallest(&mut plot, series);
    }
    plot.name_ends(&series);
    let title = title_of(view, benchmark);
    Panel {
        benchmark: Some(benchmark.to_owned()),
        drawn: conformax_plot::Panel {
            alternative: alternative(&title, &series),
            title,
            size: Frame::NAMED.size(),
            drawing: plot.finish(),
        },
    }
}

fn gamma_axis(gammas: &[f64]) -> Axis {
    let (low, high) = (gammas.first().copied().unwrap_or(1.0), gammas.last().copied().unwrap_or(2.0));
    let every = gammas.len().div_ceil(6).max(1);
    let ticks = gammas.iter().step_by(every).map(|gamma| (*gamma, gamma.to_string())).collect();
    let high = if high > low { high } else { low + 1.0 };
    Axis { label: "γ".to_owned(), values: (low, high), spacing: Spacing::Even, ticks }
}

fn smallest<'a>(series: &'a Series<'_>) -> Option<&'a Point> {
    series.points.iter().min_by(|a, b| a.y.total_cmp(&b.y))
}

fn ring_smallest(plot: &mut Plot, series: &Series<'_>) {
    if let Some(point) = smallest(series) {
        let (x, y) = (plot.x.at(point.x), plot.y.at(point.y));
        let ring = Element::new("path").set("class", "ring").set("d", Marker::Circle.outline(x, y, 5.5));
        plot.push(ring.set("fill", "none").set("stroke", INK).set("stroke-width", "1.4"));
    }
}

fn alternative(title: &str, series: &[Series<'_>]) -> String {
    let best: Vec<String> = series
        .iter()
        .filter_map(|series| smallest(series).map(|point| format!("{} at {}", point.at, series.style.name)))
        .collect();
    format!(
        "Average size of sets on the tuning rows of {title} against γ. Smallest: {}.",
        number::listed(&best)
    )
}

/// The benchmarks that have sizes, in the study's order.
pub(super) fn benchmarks_of<'a>(view: &View<'a>, sizes: &[GammaSize]) -> Vec<&'a str> {
    let has = |summary: &&BenchmarkSummary| sizes.iter().any(|size| size.benchmark == summary.name);
    view.results.benchmarks.iter().filter(has).map(|summary| summary.name.as_str()).collect()
}

/// The name for people.
pub(super) fn title_of(view: &View<'_>, benchmark: &str) -> String {
    let found = view.results.benchmarks.iter().find(|summary| summary.name == benchmark);
    found.map_or_else(|| benchmark.to_owned(), |summary| summary.title.clone())
}

/// Rising, without repetition.
pub(super) fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Mean and spread over the splits of those that `keep` keeps.
pub(super) fn spread_where(sizes: &[&GammaSize], keep: impl Fn(&GammaSize) -> bool) -> Option<Spread> {
    let kept = sizes.iter().filter(|size| keep(size)).map(|size| size.average_size);
    Spread::of(&kept.collect::<Vec<_>>())
}

/// A row per benchmark and level, a column per γ.
pub(super) fn sizes_table(view: &View<'_>, slug: &str, sizes: &[GammaSize]) -> Table {
    let gammas = distinct(sizes.iter().map(|size| size.gamma));
    let mut columns = vec![Column::text("Benchmark"), Column::text("α")];
    columns.extend(gammas.iter().map(|gamma| Column::number(&format!("γ = {gamma}"))));
    let mut table = Table {
        slug: slug.to_owned(),
        title: "Average size of sets".to_owned(),
        columns,
        records: Records {
            header: vec!["benchmark", "alpha", "gamma", "average_size", "deviation", "splits"],
            rows: Vec::new(),
        },
        ..Table::default()
    };
    for benchmark in benchmarks_of(view, sizes) {
        let of: Vec<&GammaSize> = sizes.iter().filter(|size| size.benchmark == benchmark).collect();
        for (i, alpha) in distinct(of.iter().map(|size| size.alpha)).into_iter().enumerate() {
            let mut cells = vec![title_of(view, benchmark).into(), number::level(alpha).into()];
            for &gamma in &gammas {
                let spread = spread_where(&of, |size| size.gamma == gamma && size.alpha == alpha);
                cells.push(spread.map_or_else(|| "–".into(), |s| number::spread(s, number::size).into()));
                if let Some(spread) = spread {
                    table.records.rows.push(vec![
                        benchmark.to_owned(),
                        exact(alpha),
                        exact(gamma),
                        exact(spread.mean),
                        exact(spread.deviation),
                        spread.splits.to_string(),
                    ]);
                }
            }
            table.rows.push(Row { begins_group: i == 0, ..Row::of(cells) });
        }
    }
    table
}
