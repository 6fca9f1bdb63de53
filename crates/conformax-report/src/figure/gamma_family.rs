//! Figure 5: average size against the level for many γ, where the study measured it.

use conformax_plot::{Axis, Frame, Plot, Point, Series};
use conformax_study::GammaSize;

use super::gamma_size::{benchmarks_of, distinct, sizes_table, spread_where, title_of};
use super::{Figure, Panel, level_axis};
use crate::number;
use crate::style;
use crate::view::View;

/// `None` where the study measured no γ on its test rows.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let sizes = &view.results.gamma_on_test;
    let names = benchmarks_of(view, sizes);
    if names.is_empty() {
        return None;
    }
    let splits = sizes.iter().map(|size| size.split).max().map_or(0, |last| last + 1);
    Some(Figure {
        number: 5,
        slug: "gamma-family",
        title: "The whole family: average size for many γ".to_owned(),
        caption: format!(
            "Means over {splits} splits, on test rows. γ = 1 is the log-margin, 1.5 is 1.5-entmax and 2 is sparsemax."
        ),
        columns: names.len().min(2),
        panels: names.into_iter().map(|name| panel(view, name)).collect(),
        key: Vec::new(),
        data: sizes_table(view, "figure-5-gamma-family", sizes),
    })
}

fn panel(view: &View<'_>, benchmark: &str) -> Panel {
    let sizes: Vec<&GammaSize> =
        view.results.gamma_on_test.iter().filter(|size| size.benchmark == benchmark).collect();
    let gammas = distinct(sizes.iter().map(|size| size.gamma));
    let mut levels = distinct(sizes.iter().map(|size| size.alpha));
    levels.reverse();
    let names: Vec<String> = gammas.iter().map(|gamma| format!("γ = {gamma}")).collect();
    let styles = style::ramp(&names);
    let series: Vec<Series<'_>> = gammas
        .iter()
        .zip(&styles)
        .map(|(&gamma, style)| {
            let point = |&alpha: &f64| {
                let spread = spread_where(&sizes, |size| size.gamma == gamma && size.alpha == alpha)?;
                Some(Point {
                    x: alpha,
                    y: spread.mean,
                    spread: (spread.mean, spread.mean),
                    at: format!("α = {}", number::level(alpha)),
                    value: number::spread(spread, number::size),
                })
            };
            Series { style, is_procedure: false, points: levels.iter().filter_map(point).collect() }
        })
        .collect();
    let ys = || series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let (low, high) = (ys().fold(f64::MAX, f64::min), ys().fold(f64::MIN, f64::max));
    let frame = Frame { height: 340.0, ..Frame::NAMED };
    let mut plot = Plot::new(frame, &level_axis(&levels), &Axis::sizes("Labels in a set", low, high));
    for series in &series {
        plot.line(series);
    }
    for series in &series {
        plot.marks(series, 2.4);
    }
    plot.name_ends(&series);
    let title = title_of(view, benchmark);
    Panel {
        benchmark: Some(benchmark.to_owned()),
        drawn: conformax_plot::Panel {
            alternative: format!(
                "Average size of sets against α on {title} for {} values of γ from {} to {}. {}",
                gammas.len(),
                gammas.first().copied().unwrap_or_default(),
                gammas.last().copied().unwrap_or_default(),
                smallest(&series)
            ),
            title,
            size: frame.size(),
            drawing: plot.finish(),
        },
    }
}

/// Which γ has the smallest sets at the first and last level drawn.
fn smallest(series: &[Series<'_>]) -> String {
    let at = |place: fn(&[Point]) -> Option<&Point>| {
        let ends = series.iter().filter_map(|series| place(&series.points).map(|point| (series, point)));
        ends.min_by(|a, b| a.1.y.total_cmp(&b.1.y)).map(|(series, point)| {
            format!(
                "At {} the smallest sets have {} ({}).",
                point.at,
                series.style.name,
                number::size(point.y)
            )
        })
    };
    [at(|points| points.first()), at(|points| points.last())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}
