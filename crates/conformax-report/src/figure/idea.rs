//! Figure 1: one row of logits, and the two roads that lead from it to the same set.

use conformax::{Entmax, EntmaxScore, Gamma, Row, Score};
use conformax_plot::{Axis, Element, INK, Marker, Scale, Spacing, Style, rule, words};
use conformax_study::paper::ENTMAX;

use super::temperature::LOGITS;
use super::{Figure, Panel};
use crate::number;
use crate::style::known;
use crate::table::{Column, Row as TableRow, Table, exact};

/// The calibrated threshold of the example: between the third and the fourth score.
const THRESHOLD: f64 = 1.5;
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 224.0;
const TOP: f64 = 30.0;
const STEP: f64 = 34.0;
const LEFT: f64 = 54.0;
const FAINT: &str = "#b9c0c8";
const UNDECIDED: &str = "#7b848f";

/// What has become of a label.
#[derive(Clone, Copy)]
enum Look {
    Kept,
    Dropped,
    Undecided,
}

/// What the example comes to, label by label.
struct Example {
    /// Labels from the largest logit to the smallest, counted from 1 as the paper does.
    labels: Vec<u32>,
    scores: Vec<f64>,
    probabilities: Vec<f64>,
    beta: f64,
}

impl Example {
    fn new() -> Self {
        let row = Row::new(&LOGITS).expect("five finite logits");
        let score = EntmaxScore { gamma: Gamma::ENTMAX15 };
        let beta = score.temperature(THRESHOLD).expect("1.5-entmax has a temperature");
        let mut p = [0.0; LOGITS.len()];
        Entmax::new(Gamma::ENTMAX15)
            .with_beta(beta)
            .expect("δ over a threshold is finite")
            .forward(row, &mut p);
        let mut order: Vec<u32> = (0..LOGITS.len() as u32).collect();
        order.sort_by(|&a, &b| row.logit(b).total_cmp(&row.logit(a)));
        Self {
            scores: order.iter().map(|&label| score.score(row, label)).collect(),
            probabilities: order.iter().map(|&label| p[label as usize]).collect(),
            labels: order.iter().map(|label| label + 1).collect(),
            beta,
        }
    }

    fn logit(&self, place: usize) -> f64 {
        LOGITS[self.labels[place] as usize - 1]
    }

    fn is_in(&self, place: usize) -> bool {
        self.scores[place] <= THRESHOLD
    }

    fn set(&self) -> String {
        let inside: Vec<String> =
            (0..self.labels.len()).filter(|&i| self.is_in(i)).map(|i| self.labels[i].to_string()).collect();
        format!("{{{}}}", inside.join(", "))
    }
}

pub(super) fn figure() -> Figure {
    let example = Example::new();
    Figure {
        number: 1,
        slug: "idea",
        title: "The idea: one threshold, one temperature, one set".to_owned(),
        caption: format!(
            "Five labels with logits z. Conformal prediction keeps the labels whose score is at most the calibrated \
             threshold q = {THRESHOLD}; 1.5-entmax at inverse temperature β = δ/q = {:.2} gives exactly those labels a \
             probability. Both keep {}.",
            example.beta,
            example.set()
        ),
        panels: vec![logits(&example), scores(&example), probabilities(&example)],
        columns: 3,
        key: Vec::new(),
        data: data(&example),
    }
}

fn style() -> Style {
    known(ENTMAX)
}

/// Five rows named after their labels.
fn rows(example: &Example, heading: &str) -> Element {
    let mut group = Element::group("plot").with(words(0.0, 13.0, heading, "axis-label"));
    for (place, label) in example.labels.iter().enumerate() {
        let class = if example.is_in(place) { "name" } else { "tick" };
        group.push(words(0.0, middle(place) + 4.0, &format!("label {label}"), class));
    }
    group
}

fn middle(place: usize) -> f64 {
    TOP + STEP * (place as f64 + 0.5)
}

/// A bar from `from` to `to` with its value beside it, coloured where the label is in the set.
fn bar(example: &Example, place: usize, (from, to): (f64, f64), value: String, look: Look) -> Element {
    let style = style();
    let (class, fill) = match look {
        Look::Kept => (format!("series {}", style.class), style.light),
        Look::Dropped => ("faint".to_owned(), FAINT),
        Look::Undecided => ("undecided".to_owned(), UNDECIDED),
    };
    let (left, right) = (from.min(to), from.max(to));
    // A value stands on the side of zero that its bar leaves free of the names.
    let text = words(right + 5.0, middle(place) + 4.0, &value, "value");
    Element::group(class)
        .with(
            Element::new("rect")
                .set("class", "bar")
                .at("x", left)
                .at("y", middle(place) - 9.0)
                .at("width", (right - left).max(0.75))
                .at("height", 18.0)
                .set("fill", fill)
                .at("data-px", right)
                .set("data-at", format!("label {}", example.labels[place]))
                .set("data-value", value),
        )
        .with(text)
}

fn panel(title: &str, alternative: String, drawing: Element) -> Panel {
    Panel {
        benchmark: None,
        drawn: conformax_plot::Panel { title: title.to_owned(), alternative, size: (WIDTH, HEIGHT), drawing },
    }
}

fn logits(example: &Example) -> Panel {
    let scale = Scale { values: (-1.0, 1.0), place: (LEFT + 4.0, WIDTH - 52.0), spacing: Spacing::Even };
    let mut group = rows(example, "z, what the classifier says");
    let zero = scale.at(0.0);
    group.push(rule((zero, TOP), (zero, TOP + 5.0 * STEP), "grid", FAINT));
    for place in 0..example.labels.len() {
        let z = example.logit(place);
        group.push(bar(example, place, (zero, scale.at(z)), number::signed(z, 1), Look::Undecided));
    }
    let alternative = "Five labels with logits 1, 0.4, −0.2, −0.5 and −1, from the top.".to_owned();
    panel("A row of logits", alternative, group)
}

fn scores(example: &Example) -> Panel {
    let axis = Axis::even("", 0.0, 3.0);
    let scale = Scale { values: axis.values, place: (LEFT + 10.0, WIDTH - 52.0), spacing: axis.spacing };
    let mut group = rows(example, "score s, how strange each label is");
    let style = style();
    let cut = scale.at(THRESHOLD);
    let zone = Element::new("rect")
        .set("class", "law")
        .at("x", scale.at(0.0) - 8.0)
        .at("y", TOP)
        .at("width", cut - scale.at(0.0) + 8.0)
        .at("height", 5.0 * STEP)
        .set("fill", "#8a929c")
        .set("fill-opacity", "0.15");
    group.push(zone);
    group.push(rule((cut, TOP), (cut, TOP + 5.0 * STEP), "target", INK).set("stroke-dasharray", "3 3"));
    group.push(
        words(cut, HEIGHT - 8.0, &format!("threshold q = {THRESHOLD}"), "value").set("text-anchor", "middle"),
    );
    for (place, &score) in example.scores.iter().enumerate() {
        let is_in = example.is_in(place);
        let class = if is_in { format!("series {}", style.class) } else { "faint".to_owned() };
        let x = scale.at(score);
        let dot = Element::new("path")
            .set("class", "mark")
            .set("d", Marker::Circle.outline(x, middle(place), 5.0))
            .set("fill", if is_in { style.light } else { FAINT })
            .at("data-px", x)
            .set("data-at", format!("label {}", example.labels[place]))
            .set("data-value", format!("{score:.2}"));
        let value = words(WIDTH - 4.0, middle(place) + 4.0, &format!("{score:.2}"), "value")
            .set("text-anchor", "end");
        group.push(Element::group(class).with(dot).with(value));
    }
    let alternative = format!(
        "The labels' scores against a threshold of {THRESHOLD}: labels {} lie at or below it.",
        example.set()
    );
    panel("Conformal: keep s ≤ q", alternative, group)
}

fn probabilities(example: &Example) -> Panel {
    let scale = Scale { values: (0.0, 1.0), place: (LEFT + 4.0, WIDTH - 46.0), spacing: Spacing::Even };
    let mut group = rows(example, &format!("p = 1.5-entmax(βz) at β = δ/q = {:.2}", example.beta));
    let zero = scale.at(0.0);
    group.push(rule((zero, TOP), (zero, TOP + 5.0 * STEP), "grid", FAINT));
    for (place, &p) in example.probabilities.iter().enumerate() {
        let (value, look) =
            if p > 0.0 { (format!("{p:.2}"), Look::Kept) } else { ("0".to_owned(), Look::Dropped) };
        group.push(bar(example, place, (zero, scale.at(p)), value, look));
    }
    group.push(
        words(WIDTH / 2.0, HEIGHT - 8.0, &format!("the same set, {}", example.set()), "value")
            .set("text-anchor", "middle"),
    );
    let alternative = format!(
        "1.5-entmax at that temperature gives a probability to {} and exactly 0 to the others.",
        example.set()
    );
    panel("Temperature: keep p > 0", alternative, group)
}

fn data(example: &Example) -> Table {
    let columns = ["Label", "Logit", "Score", "Probability", "In the set"];
    let mut table = Table {
        slug: "figure-1-idea".to_owned(),
        columns: columns
            .iter()
            .enumerate()
            .map(|(i, name)| if i == 0 { Column::text(name) } else { Column::number(name) })
            .collect(),
        ..Table::default()
    };
    table.records.header = vec!["label", "logit", "score", "probability", "in_set"];
    for place in 0..example.labels.len() {
        let (z, s, p) = (example.logit(place), example.scores[place], example.probabilities[place]);
        let is_in = if example.is_in(place) { "yes" } else { "no" };
        table.rows.push(TableRow::of(vec![
            example.labels[place].to_string().into(),
            number::signed(z, 1).into(),
            format!("{s:.3}").into(),
            format!("{p:.3}").into(),
            is_in.into(),
        ]));
        table.records.rows.push(vec![
            example.labels[place].to_string(),
            exact(z),
            exact(s),
            exact(p),
            is_in.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_roads_lead_to_the_same_set() {
        let example = Example::new();
        assert_eq!(example.labels, [1, 4, 3, 5, 2]);
        assert_eq!(example.set(), "{1, 4, 3}");
        for place in 0..example.labels.len() {
            assert_eq!(example.is_in(place), example.probabilities[place] > 0.0);
        }
    }
}
