//! The curve as SVG: two panels, two lines each, readable on light and dark paper.

use std::fmt::Write;

use super::EpochRecord;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;
/// Colours that people with any colour vision tell apart; the validation line is dashed as well.
const TRAIN: &str = "#3b6fb6";
const VALIDATION: &str = "#d1651f";
const MUTED: &str = "#777777";

type Points = Vec<(f64, f64)>;

pub(super) fn draw(epochs: &[EpochRecord]) -> String {
    let points = |value: fn(&EpochRecord) -> Option<f64>| -> Points {
        epochs.iter().filter_map(|e| value(e).map(|y| (e.epoch as f64, y))).collect()
    };
    let loss = [points(|e| Some(e.train_loss)), points(|e| e.validation_loss)];
    let accuracy = [points(|e| Some(e.train_accuracy)), points(|e| e.validation_accuracy)];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" width=\"{0}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>Loss and accuracy by epoch</title>\n",
        2.0 * WIDTH
    );
    panel(&mut svg, 0.0, "Loss", &loss);
    panel(&mut svg, WIDTH, "Accuracy", &accuracy);
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, shift: f64, title: &str, lines: &[Points; 2]) {
    let all = || lines.iter().flatten();
    let last = all().map(|p| p.0).fold(1.0, f64::max);
    let (low, high) = all().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.1), high.max(p.1)));
    let ticks = ticks(low, high);
    let (floor, ceiling) = (ticks[0], ticks[ticks.len() - 1]);
    // A single epoch lies on the left edge instead of nowhere.
    let x = |epoch: f64| LEFT + (epoch - 1.0) / (last - 1.0).max(1.0) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value - floor) / (ceiling - floor) * (HEIGHT - TOP - BOTTOM);
    let mut add = |element: String| {
        writeln!(svg, "{element}").expect("a string takes all that is written");
    };
    add(format!("<g transform=\"translate({shift} 0)\">"));
    add(text(LEFT, 16.0, "start", "currentColor", title));
    for tick in &ticks {
        let (at, end) = (y(*tick), WIDTH - RIGHT);
        add(format!("<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"{MUTED}\" stroke-opacity=\"0.25\"/>"));
        add(text(LEFT - 6.0, at + 4.0, "end", MUTED, &shown(*tick)));
    }
    for epoch in [1.0, last] {
        add(text(x(epoch), HEIGHT - BOTTOM + 16.0, "middle", MUTED, &epoch.to_string()));
    }
    add(text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0, "middle", MUTED, "epoch"));
    let styles = [(TRAIN, "", "training"), (VALIDATION, " stroke-dasharray=\"5 3\"", "validation")];
    for (i, (points, (colour, dash, name))) in lines.iter().zip(styles).enumerate() {
        if points.is_empty() {
            continue;
        }
        let path: Vec<String> = points.iter().map(|p| format!("{:.1} {:.1}", x(p.0), y(p.1))).collect();
        let path = path.join("L");
        add(format!("<path d=\"M{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>"));
        add(text(WIDTH - RIGHT - 62.0 * (1 - i) as f64, 16.0, "end", colour, name));
    }
    add("</g>".to_owned());
}

fn text(x: f64, y: f64, anchor: &str, colour: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>")
}

/// Round values from below `low` to above `high`, at most seven of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
    let power = 10f64.powf(((high - low) / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter();
    let step = step.clone().find(|step| (high - low) / step <= 5.0).unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

fn shown(tick: f64) -> String {
    let text = format!("{tick:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_the_values() {
        assert_eq!(ticks(0.11, 0.93).len(), 6);
        for (low, high) in [(0.11, 0.93), (2.3, 2.3), (-1.0, 400.0), (0.5, 0.50001)] {
            let ticks = ticks(low, high);
            assert!(ticks[0] <= low && ticks[ticks.len() - 1] >= high && ticks.len() <= 7, "{ticks:?}");
        }
    }

    #[test]
    fn draws_a_line_per_kind_of_row() {
        let record = |epoch, loss: f64, validation: Option<f64>| EpochRecord {
            epoch,
            step: epoch * 10,
            learning_rate: 0.1,
            train_loss: loss,
            train_accuracy: 1.0 - loss / 4.0,
            validation_loss: validation,
            validation_accuracy: validation.map(|loss| 1.0 - loss / 4.0),
        };
        let both = draw(&[record(1, 2.0, Some(2.1)), record(2, 1.0, Some(1.4))]);
        assert_eq!((both.matches("stroke-width").count(), both.matches("validation").count()), (4, 2));
        let one = draw(&[record(1, 2.0, None)]);
        assert_eq!((one.matches("stroke-width").count(), one.contains("validation")), (2, false));
        assert!(!both.contains("NaN") && !one.contains("NaN") && !one.contains("inf"), "{one}");
    }
}
