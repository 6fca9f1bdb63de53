//! `Plot`: axes with lines, bands, marks and labels drawn between them.
//!
//! Colours are attributes, which the page's style sheet overrides (a rule beats an attribute): the same drawing
//! stands alone in a file and follows the page into the dark.

use crate::axis::{Axis, Scale};
use crate::style::Style;
use crate::svg::{Element, path};

/// Size of a drawing and the room around its axes.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Width of the drawing.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Room to the left of the axes.
    pub left: f64,
    /// To their right.
    pub right: f64,
    /// Above them.
    pub top: f64,
    /// Below them.
    pub bottom: f64,
}

impl Frame {
    /// A panel among others, with room for names at the right.
    pub const NAMED: Self =
        Self { width: 420.0, height: 300.0, left: 44.0, right: 92.0, top: 30.0, bottom: 46.0 };
    /// A panel without names at the right.
    pub const PLAIN: Self = Self { right: 12.0, ..Self::NAMED };

    /// Width and height.
    pub fn size(self) -> (f64, f64) {
        (self.width, self.height)
    }
}

/// One point of a series: where it is, how far it spreads, and what hovering says.
#[derive(Clone, Debug)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// Ends of the spread.
    pub spread: (f64, f64),
    /// Where: `α = 0.05`.
    pub at: String,
    /// What: `1.234 ± 0.010`.
    pub value: String,
}

/// Points of one style; a procedure's series can be hidden in the page.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// How it looks, and its name.
    pub style: &'a Style,
    /// Whether the page's key of procedures hides and shows it.
    pub is_procedure: bool,
    /// From left to right.
    pub points: Vec<Point>,
}

impl Series<'_> {
    /// The group that holds a piece of this series.
    pub fn group(&self, piece: &str) -> Element {
        let group = Element::group(format!("{piece} {}", self.style.class).trim_end())
            .set("data-label", &self.style.name);
        if self.is_procedure { group.set("data-procedure", &self.style.name) } else { group }
    }
}

/// What ink is drawn with where the page says nothing else.
pub const INK: &str = "#22262b";
const MUTED: &str = "#5d6570";
const GRID: &str = "#e4e7eb";
/// Height of letters in a drawing that stands alone.
pub const LETTER: f64 = 11.5;
/// Least distance between two names at the right: letters are larger on a phone.
const NAME_STEP: f64 = 16.0;

/// A drawing under way.
pub struct Plot {
    /// Its size.
    pub frame: Frame,
    /// The horizontal scale.
    pub x: Scale,
    /// The vertical scale.
    pub y: Scale,
    body: Element,
}

impl Plot {
    /// Draws the axes.
    pub fn new(frame: Frame, x: &Axis, y: &Axis) -> Self {
        let (left, right) = (frame.left, frame.width - frame.right);
        let (top, bottom) = (frame.top, frame.height - frame.bottom);
        let mut plot = Self {
            frame,
            x: Scale { values: x.values, place: (left + 8.0, right - 8.0), spacing: x.spacing },
            y: Scale { values: y.values, place: (bottom, top), spacing: y.spacing },
            body: Element::group("plot"),
        };
        plot.draw_y_axis(y);
        plot.draw_x_axis(x);
        plot
    }

    /// Draws anything over what is there.
    pub fn push(&mut self, element: Element) {
        self.body.push(element);
    }

    /// The drawing.
    pub fn finish(self) -> Element {
        self.body
    }

    fn draw_y_axis(&mut self, axis: &Axis) {
        let Frame { width, left, right, .. } = self.frame;
        for (value, text) in &axis.ticks {
            let y = self.y.at(*value);
            self.push(rule((left, y), (width - right, y), "grid", GRID));
            self.push(words(left - 6.0, y + 4.0, text, "tick").set("text-anchor", "end"));
        }
        self.push(words(0.0, 13.0, &axis.label, "axis-label"));
    }

    fn draw_x_axis(&mut self, axis: &Axis) {
        let Frame { width, height, left, right, bottom, .. } = self.frame;
        let base = height - bottom;
        self.push(rule((left, base), (width - right, base), "base", MUTED));
        for (value, text) in &axis.ticks {
            let x = self.x.at(*value);
            self.push(rule((x, base), (x, base + 4.0), "base", MUTED));
            self.push(words(x, base + 18.0, text, "tick").set("text-anchor", "middle"));
        }
        self.push(
            words((left + width - right) / 2.0, height - 5.0, &axis.label, "axis-label")
                .set("text-anchor", "middle"),
        );
    }

    /// A dashed line across at a value that others are held to.
    pub fn target(&mut self, value: f64) {
        let y = self.y.at(value);
        let (left, right) = (self.frame.left, self.frame.width - self.frame.right);
        self.push(rule((left, y), (right, y), "target", INK).set("stroke-dasharray", "3 3"));
    }

    /// The area between the ends of the spread.
    pub fn band(&mut self, series: &Series<'_>) {
        let upper = series.points.iter().map(|p| (self.x.at(p.x), self.y.at(p.spread.1)));
        let lower = series.points.iter().rev().map(|p| (self.x.at(p.x), self.y.at(p.spread.0)));
        let area = Element::new("path")
            .set("class", "band")
            .set("d", path(upper.chain(lower)) + "Z")
            .set("fill", series.style.light)
            .set("fill-opacity", "0.14");
        self.push(series.group("series").with(area));
    }

    /// The line through the points.
    pub fn line(&mut self, series: &Series<'_>) {
        let d = path(series.points.iter().map(|p| (self.x.at(p.x), self.y.at(p.y))));
        let line = stroked(d, series.style).set("class", "line");
        self.push(series.group("series").with(line));
    }

    /// The points themselves, each saying its value when hovered.
    pub fn marks(&mut self, series: &Series<'_>, radius: f64) {
        let mut group = series.group("series");
        for point in &series.points {
            let (x, y) = (self.x.at(point.x), self.y.at(point.y));
            group.push(mark(series.style, (x, y), radius, point));
        }
        self.push(group);
    }

    /// Names of the series beside their last points, moved apart where they would touch.
    pub fn name_ends(&mut self, series: &[Series<'_>]) {
        let right = self.frame.width - self.frame.right;
        let mut ends: Vec<(f64, &Series<'_>)> = series
            .iter()
            .filter_map(|series| series.points.last().map(|point| (self.y.at(point.y), series)))
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
        let places = apart(&wanted, NAME_STEP, (8.0, self.frame.height - self.frame.bottom));
        for ((from, series), to) in ends.into_iter().zip(places) {
            let d = path([(right - 6.0, from), (right + 4.0, to)]);
            let name =
                words(right + 8.0, to + 4.0, &series.style.name, "name").set("fill", series.style.light);
            self.push(series.group("series end").with(lead(d, series.style)).with(name));
        }
    }
}

/// A mark with its value for whoever hovers.
pub fn mark(style: &Style, (x, y): (f64, f64), radius: f64, point: &Point) -> Element {
    Element::new("path")
        .set("class", "mark")
        .set("d", style.marker.outline(x, y, radius))
        .set("fill", style.light)
        .at("data-px", x)
        .set("data-at", &point.at)
        .set("data-value", &point.value)
}

/// A path in a series' colour and dash.
fn stroked(d: String, style: &Style) -> Element {
    let line = Element::new("path")
        .set("d", d)
        .set("fill", "none")
        .set("stroke", style.light)
        .set("stroke-width", "1.8")
        .set("stroke-linejoin", "round");
    if style.dash.is_empty() { line } else { line.set("stroke-dasharray", style.dash) }
}

/// The thin line from a point to its name: never dashed, or it would look like a piece of the curve.
fn lead(d: String, style: &Style) -> Element {
    let line = Element::new("path").set("class", "lead").set("d", d).set("fill", "none");
    line.set("stroke", style.light).set("stroke-opacity", "0.5")
}

/// A straight line.
pub fn rule(from: (f64, f64), to: (f64, f64), class: &str, colour: &str) -> Element {
    Element::new("path")
        .set("class", class)
        .set("d", path([from, to]))
        .set("fill", "none")
        .set("stroke", colour)
}

/// Text; its class says whether it is ink or muted.
pub fn words(x: f64, y: f64, text: &str, class: &str) -> Element {
    let colour = if matches!(class, "tick" | "axis-label") { MUTED } else { INK };
    Element::new("text")
        .set("class", class)
        .at("x", x)
        .at("y", y)
        .at("font-size", LETTER)
        .set("fill", colour)
        .text(text)
}

/// Moves rising places apart until neighbours are a step away, inside `(low, high)`, each as little as that allows.
fn apart(wanted: &[f64], step: f64, (low, high): (f64, f64)) -> Vec<f64> {
    // Blocks of names that touch, each centred on the mean of what its members want.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &y in wanted {
        let mut block = (y, 1);
        while let Some(&(before, n)) = blocks.last() {
            let reach = step * (n + block.1) as f64 / 2.0;
            if block.0 - before >= reach {
                break;
            }
            blocks.pop();
            block = ((before * n as f64 + block.0 * block.1 as f64) / (n + block.1) as f64, n + block.1);
        }
        blocks.push(block);
    }
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for (centre, n) in blocks {
        let first = centre - step * (n - 1) as f64 / 2.0;
        places.extend((0..n).map(|i| first + step * i as f64));
    }
    // The frame's ends win over what was wanted.
    let mut floor = low;
    for place in &mut places {
        *place = place.max(floor);
        floor = *place + step;
    }
    let mut ceiling = high;
    for place in places.iter_mut().rev() {
        *place = place.min(ceiling);
        ceiling = *place - step;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_names_apart_and_keeps_them_inside() {
        let places = apart(&[50.0, 52.0, 100.0], 10.0, (0.0, 105.0));
        assert_eq!(places, [46.0, 56.0, 100.0]);
        let crowded = apart(&[99.0, 100.0, 101.0], 10.0, (0.0, 105.0));
        assert_eq!(crowded, [85.0, 95.0, 105.0]);
    }

    #[test]
    fn leaves_names_with_room_where_they_are() {
        assert_eq!(apart(&[10.0, 30.0], 10.0, (0.0, 100.0)), [10.0, 30.0]);
    }
}
