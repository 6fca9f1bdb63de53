//! Lanes: a share along the horizontal axis, a name on each line, dots on it.

use conformax_plot::{Axis, Element, Frame, INK, Plot, Spacing, Style, rule};

const LANE: f64 = 34.0;

/// A dot on a lane.
pub(super) struct Dot {
    pub(super) share: f64,
    /// Dots that lie there together, drawn as one of that area.
    pub(super) together: u64,
    /// Whether it lies below what chance explains.
    pub(super) is_low: bool,
    /// What hovering says.
    pub(super) value: String,
}

/// A band behind all lanes.
pub(super) struct Band {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Lanes from top to bottom, with a dashed line at what was asked for.
pub(super) fn drawing(
    lanes: &[(&Style, Vec<Dot>)],
    target: f64,
    band: Option<Band>,
) -> (Element, (f64, f64)) {
    let frame =
        Frame { height: 46.0 + 18.0 + LANE * lanes.len() as f64, left: 118.0, top: 18.0, ..Frame::PLAIN };
    let shares = || lanes.iter().flat_map(|(_, dots)| dots.iter().map(|dot| dot.share));
    let low = shares().chain(band.iter().map(|band| band.low)).fold(target, f64::min);
    let x = Axis::even("Coverage", low.max(0.0), 1.0);
    let y = Axis {
        label: String::new(),
        values: (lanes.len() as f64 - 0.5, -0.5),
        spacing: Spacing::Even,
        ticks: (0..).zip(lanes).map(|(lane, (style, _))| (f64::from(lane), style.name.clone())).collect(),
    };
    let mut plot = Plot::new(frame, &x, &y);
    let (top, bottom) = (frame.top - 4.0, frame.height - frame.bottom);
    if let Some(Band { low, high }) = band {
        let (left, right) = (plot.x.at(low), plot.x.at(high));
        let area = Element::new("rect").set("class", "law").at("x", left).at("y", top);
        let area = area.at("width", right - left).at("height", bottom - top);
        plot.push(area.set("fill", "#8a929c").set("fill-opacity", "0.17"));
    }
    let at = plot.x.at(target);
    plot.push(rule((at, top), (at, bottom), "target", INK).set("stroke-dasharray", "3 3"));
    let most = lanes.iter().flat_map(|(_, dots)| dots.iter().map(|dot| dot.together)).max().unwrap_or(1);
    for ((style, dots), lane) in lanes.iter().zip(0_u32..) {
        let series = Element::group(format!("series {}", style.class)).set("data-label", &style.name);
        let drawn = dots.iter().fold(series, |series, dot| {
            let (x, y) = (plot.x.at(dot.share), plot.y.at(f64::from(lane)));
            series.with(mark(style, (x, y), radius(dot.together, most), dot))
        });
        plot.push(drawn);
    }
    (plot.finish(), frame.size())
}

/// By area, so that the largest fits its lane.
fn radius(together: u64, most: u64) -> f64 {
    let largest = if most <= 1 { 3.4 } else { LANE / 2.0 - 3.0 };
    (largest * (together as f64 / most as f64).sqrt()).clamp(2.2, largest)
}

fn mark(style: &Style, (x, y): (f64, f64), radius: f64, dot: &Dot) -> Element {
    let mark = Element::new("circle").at("cx", x).at("cy", y).at("r", radius);
    let mark = mark.at("data-px", x).set("data-at", format!("coverage {:.3}", dot.share));
    let mark = mark.set("data-value", &dot.value);
    match dot.is_low {
        // Hollow: told apart without colour.
        true => mark.set("class", "mark low").set("fill", "none").set("stroke", style.light),
        false => mark.set("class", "mark").set("fill", style.light).set("fill-opacity", "0.55"),
    }
}
