//! Figure 2: γ-entmax of two labels, `γ-entmax([t, 0])₁` against `t`.

use conformax::{Entmax, Gamma, Row};
use conformax_plot::{Axis, Frame, Plot, Point, Series, Spacing, Style};
use conformax_study::paper::{ENTMAX, LOG_MARGIN, SPARSEMAX};

use super::{Figure, Panel};
use crate::style::known;
use crate::table::{Column, Row as TableRow, Table, exact};

/// γ, the procedure that shares its colour, and what the curve is called.
const CURVES: [(f64, &str, &str); 3] =
    [(1.0, LOG_MARGIN, "γ = 1"), (1.5, ENTMAX, "γ = 1.5"), (2.0, SPARSEMAX, "γ = 2")];

pub(super) fn figure() -> Figure {
    let styles: Vec<_> = CURVES
        .iter()
        .map(|(_, procedure, name)| Style { name: (*name).to_owned(), ..known(procedure) })
        .collect();
    let series: Vec<Series<'_>> = CURVES
        .iter()
        .zip(&styles)
        .map(|((gamma, ..), style)| Series { style, is_procedure: false, points: curve(*gamma) })
        .collect();
    let x = Axis {
        label: "t".to_owned(),
        values: (-3.0, 3.0),
        spacing: Spacing::Even,
        ticks: (-3..=3)
            .map(|t| (f64::from(t), crate::number::signed(f64::from(t), 0).replace('+', "")))
            .collect(),
    };
    let mut plot = Plot::new(Frame::NAMED, &x, &Axis::even("Probability of the first label", 0.0, 1.0));
    for series in &series {
        plot.line(series);
    }
    for series in &series {
        let whole = series.points.iter().filter(|point| point.x.fract() == 0.0).cloned().collect();
        plot.marks(&Series { points: whole, ..series.clone() }, 2.6);
    }
    // At the right end sparsemax and 1.5-entmax have met at 1, so names stand where each curve is last alone.
    plot.name_ends(&series);
    Figure {
        number: 2,
        slug: "entmax-plane",
        title: "γ-entmax with two labels".to_owned(),
        caption: "Probability of the first of two labels with logits t and 0. Softmax (γ = 1) never reaches 0 or 1; \
                  1.5-entmax does at |t| = 2, sparsemax (γ = 2) at |t| = 1."
            .to_owned(),
        data: data(&series),
        panels: vec![Panel { benchmark: None, drawn: conformax_plot::Panel {
            title: "γ-entmax([t, 0])₁".to_owned(),
            alternative: "Three curves rising from 0 to 1 as t goes from −3 to 3. Softmax stays strictly between 0 \
                          and 1; 1.5-entmax is 0 up to t = −2 and 1 from t = 2; sparsemax is a straight line from 0 \
                          at t = −1 to 1 at t = 1."
                .to_owned(),
            size: Frame::NAMED.size(),
            drawing: plot.finish(),
        } }],
        columns: 1,
        key: Vec::new(),
    }
}

/// Probability of the first label, at every twentieth from −3 to 3.
fn curve(gamma: f64) -> Vec<Point> {
    let entmax = Entmax::new(Gamma::new(gamma).expect("a constant of at least 1"));
    (-60..=60)
        .map(|i| {
            let t = f64::from(i) / 20.0;
            let mut p = [0.0; 2];
            entmax.forward(Row::new(&[t, 0.0]).expect("two finite logits"), &mut p);
            let at = format!("t = {t}").replace('-', "−");
            Point { x: t, y: p[0], spread: (p[0], p[0]), at, value: format!("{:.3}", p[0]) }
        })
        .collect()
}

fn data(series: &[Series<'_>]) -> Table {
    let mut columns = vec![Column::text("t")];
    columns.extend(series.iter().map(|series| Column::number(&series.style.name)));
    let mut table = Table { slug: "figure-2-entmax-plane".to_owned(), columns, ..Table::default() };
    table.records.header = vec!["t", "gamma", "probability"];
    for (i, point) in series[0].points.iter().enumerate() {
        if i % 10 == 0 {
            let mut cells = vec![point.at.replace("t = ", "").into()];
            cells.extend(series.iter().map(|series| series.points[i].value.as_str().into()));
            table.rows.push(TableRow::of(cells));
        }
        for (series, (gamma, ..)) in series.iter().zip(CURVES) {
            table.records.rows.push(vec![exact(point.x), exact(gamma), exact(series.points[i].y)]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_where_the_caption_says() {
        let at = |gamma, t: f64| curve(gamma).into_iter().find(|point| point.x == t).unwrap().y;
        assert_eq!([at(1.5, 2.0), at(1.5, -2.0), at(2.0, 1.0), at(2.0, -1.0)], [1.0, 0.0, 1.0, 0.0]);
        assert!(at(1.5, 1.95) < 1.0 && at(2.0, 0.95) < 1.0 && at(1.0, 3.0) < 1.0);
    }
}
