//! Grouped bars: one group per level, one bar per procedure, as Figures 6 and 9 have them.

use conformax_plot::{Axis, Element, Frame, INK, Plot, Point, Series, Spacing, mark, rule};

use crate::number;
use crate::view::{Cell, View};

/// One bar and what stands on it.
pub(super) struct Bar {
    pub(super) height: f64,
    /// Ends of a whisker.
    pub(super) whisker: Option<(f64, f64)>,
    /// Marks over the bar.
    pub(super) marks: Vec<f64>,
    /// What hovering says.
    pub(super) value: String,
}

/// Share of a group's width that its bars take.
const FILLED: f64 = 0.84;

/// A panel of bars over the printed levels; `target` draws a dashed line over a level's group.
pub(super) fn drawing(
    view: &View<'_>,
    benchmark: usize,
    y: &Axis,
    bar: impl Fn(Cell) -> Option<Bar>,
    target: impl Fn(f64) -> Option<f64>,
) -> Element {
    let levels = view.printed_levels();
    let name = |level: usize| format!("α = {}", number::level(view.results.levels[level]));
    let x = Axis {
        label: String::new(),
        values: (-0.5, levels.len() as f64 - 0.5),
        spacing: Spacing::Even,
        ticks: levels.iter().enumerate().map(|(group, &level)| (group as f64, name(level))).collect(),
    };
    let frame = Frame { bottom: 26.0, height: 270.0, ..Frame::PLAIN };
    let mut plot = Plot::new(frame, &x, y);
    let width = FILLED / view.styles.len().max(1) as f64;
    for (group, &level) in levels.iter().enumerate() {
        if let Some(value) = target(view.results.levels[level]) {
            let ends = [-0.5, 0.5].map(|side| (plot.x.at(group as f64 + side * 0.94), plot.y.at(value)));
            plot.push(rule(ends[0], ends[1], "target", INK).set("stroke-dasharray", "3 3"));
        }
        for (procedure, style) in view.styles.iter().enumerate() {
            let Some(bar) = bar(Cell { benchmark, procedure, level }) else { continue };
            let centre = group as f64 - FILLED / 2.0 + (procedure as f64 + 0.5) * width;
            let series = Series { style, is_procedure: true, points: Vec::new() };
            let grouped = series.group("series").set("data-alpha", number::level(view.results.levels[level]));
            let drawn = draw(&plot, &series, centre, width, &bar, name(level));
            plot.push(drawn.into_iter().fold(grouped, Element::with));
        }
    }
    plot.finish()
}

fn draw(plot: &Plot, series: &Series<'_>, centre: f64, width: f64, bar: &Bar, at: String) -> Vec<Element> {
    let (left, right) = (plot.x.at(centre - width * 0.44), plot.x.at(centre + width * 0.44));
    let (top, base) = (plot.y.at(bar.height), plot.y.place.0);
    let middle = (left + right) / 2.0;
    let mut drawn = vec![
        Element::new("rect")
            .set("class", "bar")
            .at("x", left)
            .at("y", top.min(base))
            .at("width", right - left)
            .at("height", (base - top).max(0.0))
            .set("fill", series.style.light)
            .set("fill-opacity", "0.78")
            .at("data-px", middle)
            .set("data-at", &at)
            .set("data-value", &bar.value),
    ];
    if let Some((low, high)) = bar.whisker {
        let ends = ((middle, plot.y.at(low)), (middle, plot.y.at(high)));
        drawn.push(rule(ends.0, ends.1, "whisker", INK).set("stroke-width", "1.4"));
    }
    for &value in &bar.marks {
        let point =
            Point { x: centre, y: value, spread: (value, value), at: String::new(), value: String::new() };
        // The paper-coloured edge keeps a mark apart from the bar it lies on.
        drawn.push(
            mark(series.style, (middle, plot.y.at(value)), 2.4, &point)
                .set("stroke", "#ffffff")
                .set("stroke-width", "0.9"),
        );
    }
    drawn
}
