//! Figure 7: how far coverage lies from what was asked for, and how far the coverage law lets it stray.
//!
//! Coverage against α is a diagonal on which a difference of half a point cannot be seen, so `1 − α` is subtracted.

use conformax_plot::{Axis, Element, Frame, Plot, Point, Series, path, rule};
use conformax_study::{BenchmarkSummary, Spread};

use super::{Figure, Panel, by_level, level_axis};
use crate::number;
use crate::view::{Cell, View};

pub(super) fn figure(view: &View<'_>) -> Figure {
    let results = view.results;
    let probability = results.bands.first().map_or(0.95, |band| band.probability);
    Figure {
        number: 7,
        slug: "coverage",
        title: "Coverage minus what was asked for".to_owned(),
        caption: format!(
            "Marks: mean over {} splits; lines: from the lowest split to the highest. Grey: where one split’s \
             coverage lies with probability {} by the exact law, whatever the model and the data as long as no two \
             scores tie; where they do (an accurate model, whose best labels all score 0) coverage can only be higher. \
             The lighter, wider band is for the tuned procedures, which calibrate on fewer rows. {}",
            results.provenance.splits,
            probability,
            inside(view)
        ),
        panels: view.benchmarks().map(|(benchmark, summary)| panel(view, benchmark, summary)).collect(),
        columns: 2,
        key: view.styles.clone(),
        data: by_level(view, "figure-7-coverage", coverage, number::share),
    }
}

fn coverage(view: &View<'_>, cell: Cell) -> Option<Spread> {
    view.spread_of(cell, |record| Some(record.coverage))
}

/// How many records lie inside their band.
fn inside(view: &View<'_>) -> String {
    let (mut inside, mut all) = (0_u64, 0_u64);
    for (benchmark, _) in view.benchmarks() {
        for (procedure, _) in view.procedures() {
            for (level, _) in view.levels() {
                let cell = Cell { benchmark, procedure, level };
                let Some(band) = view.band(cell) else { continue };
                for record in view.records(cell) {
                    all += 1;
                    inside += u64::from(band.low <= record.coverage && record.coverage <= band.high);
                }
            }
        }
    }
    format!("{} of {} measured coverages lie inside their band.", number::count(inside), number::count(all))
}

/// In percentage points above `1 − α`.
fn excess(coverage: f64, alpha: f64) -> f64 {
    100.0 * (coverage - (1.0 - alpha))
}

/// Ends of a split's coverage per level, widest band first.
fn bands(view: &View<'_>, benchmark: &str) -> Vec<Vec<(f64, f64, f64)>> {
    let mut rows: Vec<u64> =
        view.results.bands.iter().filter(|band| band.benchmark == benchmark).map(|band| band.n_cal).collect();
    rows.sort_unstable();
    rows.dedup();
    let of_rows = |n_cal: &u64| {
        let mut ends: Vec<_> = view
            .results
            .bands
            .iter()
            .filter(|band| band.benchmark == benchmark && band.n_cal == *n_cal)
            .map(|band| (band.alpha, excess(band.low, band.alpha), excess(band.high, band.alpha)))
            .collect();
        ends.sort_by(|a, b| b.0.total_cmp(&a.0));
        ends
    };
    rows.iter().map(of_rows).collect()
}

fn panel(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> Panel {
    let bands = bands(view, &summary.name);
    let step = level_step(&view.results.levels);
    let series: Vec<Series<'_>> =
        view.procedures().map(|(procedure, _)| one(view, benchmark, procedure, step)).collect();
    let ends = || {
        let measured =
            series.iter().flat_map(|s| &s.points).flat_map(|point| [point.spread.0, point.spread.1]);
        measured.chain(bands.iter().flatten().flat_map(|(_, low, high)| [*low, *high]))
    };
    let reach = ends().map(f64::abs).fold(0.1, f64::max);
    let mut x = level_axis(&view.results.levels);
    x.values = (x.values.0 + step * 0.5, x.values.1 - step * 0.5);
    let mut plot = Plot::new(Frame::PLAIN, &x, &Axis::even("Percentage points from 1 − α", -reach, reach));
    for band in &bands {
        draw_band(&mut plot, band, step);
    }
    plot.target(0.0);
    for series in &series {
        draw_ranges(&mut plot, series);
        plot.marks(series, 2.5);
    }
    Panel {
        benchmark: Some(summary.name.clone()),
        drawn: conformax_plot::Panel {
            title: summary.title.clone(),
            alternative: alternative(summary, &series),
            size: Frame::PLAIN.size(),
            drawing: plot.finish(),
        },
    }
}

fn level_step(levels: &[f64]) -> f64 {
    let mut sorted = levels.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::MAX, f64::min).min(0.05)
}

/// Marks of one level stand side by side, so that none hides another.
fn one<'v>(view: &'v View<'_>, benchmark: usize, procedure: usize, step: f64) -> Series<'v> {
    let count = view.styles.len() as f64;
    let aside = step * 0.7 * ((procedure as f64 + 0.5) / count - 0.5);
    let mut points: Vec<Point> = view
        .levels()
        .filter_map(|(level, alpha)| {
            let cell = Cell { benchmark, procedure, level };
            let mean = coverage(view, cell)?.mean;
            let each = || view.records(cell).iter().map(|record| record.coverage);
            let (low, high) = (each().fold(f64::MAX, f64::min), each().fold(f64::MIN, f64::max));
            Some(Point {
                x: alpha - aside,
                y: excess(mean, alpha),
                spread: (excess(low, alpha), excess(high, alpha)),
                at: format!("α = {}", number::level(alpha)),
                value: format!("{} ({} to {})", number::share(mean), number::share(low), number::share(high)),
            })
        })
        .collect();
    points.sort_by(|a, b| b.x.total_cmp(&a.x));
    Series { style: &view.styles[procedure], is_procedure: true, points }
}

/// The outermost levels' ends reach as far as their marks do.
fn draw_band(plot: &mut Plot, ends: &[(f64, f64, f64)], step: f64) {
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return };
    let before = (first.0 + step / 2.0, first.1, first.2);
    let after = (last.0 - step / 2.0, last.1, last.2);
    let ends: Vec<_> = [before].into_iter().chain(ends.iter().copied()).chain([after]).collect();
    let upper = ends.iter().map(|(alpha, _, high)| (plot.x.at(*alpha), plot.y.at(*high)));
    let lower = ends.iter().rev().map(|(alpha, low, _)| (plot.x.at(*alpha), plot.y.at(*low)));
    let area = Element::new("path").set("class", "law").set("d", path(upper.chain(lower)) + "Z");
    plot.push(area.set("fill", "#8a929c").set("fill-opacity", "0.17"));
}

fn draw_ranges(plot: &mut Plot, series: &Series<'_>) {
    let mut group = series.group("series");
    for point in &series.points {
        let x = plot.x.at(point.x);
        let ends = ((x, plot.y.at(point.spread.0)), (x, plot.y.at(point.spread.1)));
        group.push(rule(ends.0, ends.1, "range", series.style.light).set("stroke-width", "1.2"));
    }
    plot.push(group);
}

fn alternative(summary: &BenchmarkSummary, series: &[Series<'_>]) -> String {
    let points = || series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let lowest = points().min_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let highest = points().max_by(|a, b| a.1.y.total_cmp(&b.1.y));
    let mut text = format!("Mean coverage minus 1 − α on {}, in percentage points.", summary.title);
    if let (Some(low), Some(high)) = (lowest, highest) {
        text.push_str(&format!(
            " Lowest {} ({} at {}), highest {} ({} at {}).",
            number::signed(low.1.y, 2),
            low.0.style.name,
            low.1.at,
            number::signed(high.1.y, 2),
            high.0.style.name,
            high.1.at
        ));
    }
    text
}
