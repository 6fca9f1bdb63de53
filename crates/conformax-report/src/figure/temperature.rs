//! Figure 3: the probabilities of five labels against the temperature, for softmax, 1.5-entmax and sparsemax.

use conformax::{Entmax, Gamma, Row};
use conformax_plot::{Axis, Frame, Plot, Point, Series, Spacing, Style};
use conformax_study::paper::ENTMAX;

use super::{Figure, Panel};
use crate::style;
use crate::table::{Column, Row as TableRow, Table, exact};

/// The paper's example row.
pub(super) const LOGITS: [f64; 5] = [1.0, -1.0, -0.2, 0.4, -0.5];

const CURVES: [(f64, &str); 3] = [(1.0, "Softmax (γ = 1)"), (1.5, ENTMAX), (2.0, "Sparsemax (γ = 2)")];
const FRAME: Frame = Frame { width: 320.0, height: 260.0, left: 36.0, right: 32.0, top: 30.0, bottom: 46.0 };
/// Temperatures β⁻¹ drawn: every twentieth up to 3.
const STEPS: u32 = 60;

pub(super) fn figure() -> Figure {
    let order = by_logit();
    let names: Vec<String> = order.iter().map(|label| format!("p{}", subscript(label + 1))).collect();
    let styles = style::ramp(&names);
    let panels = CURVES.map(|(gamma, title)| panel(gamma, title, &order, &styles));
    Figure {
        number: 3,
        slug: "temperature",
        title: "Temperature decides how many labels are left".to_owned(),
        caption: "Probabilities of five labels with logits z = [1, −1, −0.2, 0.4, −0.5] as the temperature β⁻¹ grows. \
                  Softmax gives every label a share at any temperature. The sparse ones start from a single label and \
                  let the others in one at a time, so a temperature is a choice of a set."
            .to_owned(),
        panels: panels.into(),
        columns: 3,
        key: Vec::new(),
        data: data(&order),
    }
}

/// Labels from the largest logit to the smallest.
fn by_logit() -> Vec<usize> {
    let mut order: Vec<usize> = (0..LOGITS.len()).collect();
    order.sort_by(|&a, &b| LOGITS[b].total_cmp(&LOGITS[a]));
    order
}

fn subscript(label: usize) -> char {
    ['₀', '₁', '₂', '₃', '₄', '₅'].get(label).copied().unwrap_or('?')
}

fn temperatures() -> impl Iterator<Item = f64> {
    (1..=STEPS).map(|i| f64::from(i) / 20.0)
}

fn probabilities(gamma: f64, temperature: f64) -> [f64; LOGITS.len()] {
    let entmax = Entmax::new(Gamma::new(gamma).expect("a constant of at least 1"));
    let scaled = entmax.with_beta(1.0 / temperature).expect("a positive temperature");
    let mut p = [0.0; LOGITS.len()];
    scaled.forward(Row::new(&LOGITS).expect("five finite logits"), &mut p);
    p
}

fn panel(gamma: f64, title: &str, order: &[usize], styles: &[Style]) -> Panel {
    let series: Vec<Series<'_>> = order
        .iter()
        .zip(styles)
        .map(|(&label, style)| {
            let point = |temperature: f64| {
                let p = probabilities(gamma, temperature)[label];
                let at = format!("β⁻¹ = {temperature}");
                Point { x: temperature, y: p, spread: (p, p), at, value: format!("{p:.3}") }
            };
            Series { style, is_procedure: false, points: temperatures().map(point).collect() }
        })
        .collect();
    let x = Axis {
        label: "temperature β⁻¹".to_owned(),
        values: (0.0, 3.0),
        spacing: Spacing::Even,
        ticks: (0..=3).map(|t| (f64::from(t), t.to_string())).collect(),
    };
    let mut plot = Plot::new(FRAME, &x, &Axis::even("Probability", 0.0, 1.0));
    for series in &series {
        plot.line(series);
        let some = series.points.iter().skip(9).step_by(10).cloned().collect();
        plot.marks(&Series { points: some, ..series.clone() }, 2.4);
    }
    plot.name_ends(&series);
    Panel {
        benchmark: None,
        drawn: conformax_plot::Panel {
            title: title.to_owned(),
            alternative: alternative(gamma, title),
            size: FRAME.size(),
            drawing: plot.finish(),
        },
    }
}

fn alternative(gamma: f64, title: &str) -> String {
    let alive = |temperature| probabilities(gamma, temperature).iter().filter(|p| **p > 0.0).count();
    format!(
        "{title}: labels with a probability above 0 at temperature 0.25, 1 and 3: {}, {} and {} of 5.",
        alive(0.25),
        alive(1.0),
        alive(3.0)
    )
}

fn data(order: &[usize]) -> Table {
    let mut columns = vec![Column::text("Activation"), Column::number("β⁻¹")];
    columns.extend(order.iter().map(|label| Column::number(&format!("p{}", subscript(label + 1)))));
    let mut table = Table { slug: "figure-3-temperature".to_owned(), columns, ..Table::default() };
    table.records.header = vec!["gamma", "temperature", "label", "probability"];
    for (gamma, title) in CURVES {
        for (i, temperature) in temperatures().enumerate() {
            let p = probabilities(gamma, temperature);
            if i % 10 == 9 {
                let mut cells = vec![title.into(), temperature.to_string().into()];
                cells.extend(order.iter().map(|&label| format!("{:.3}", p[label]).into()));
                table.rows.push(TableRow { begins_group: i == 9, ..TableRow::of(cells) });
            }
            for &label in order {
                table.records.rows.push(vec![
                    exact(gamma),
                    exact(temperature),
                    (label + 1).to_string(),
                    exact(p[label]),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_activations_start_from_one_label() {
        let alive =
            |gamma, temperature| probabilities(gamma, temperature).iter().filter(|p| **p > 0.0).count();
        assert_eq!([alive(1.0, 0.25), alive(1.5, 0.25), alive(2.0, 0.25)], [5, 1, 1]);
        assert!(alive(2.0, 1.0) < alive(1.5, 1.0));
    }
}
