//! Figure 2: how uneven coverage is against how large sets are.

use conformax_plot::{Axis, Frame, Plot, Point, Series, Style};
use conformax_study::{BenchmarkSummary, ConditionalRecord, ConditionalResults};

use super::spread;
use crate::figure::{Figure, Panel};
use crate::table::{Column, Records, Row, Table, exact};
use crate::{number, style};

pub(super) fn figure(results: &ConditionalResults) -> Figure {
    let styles = style::of_procedures(&results.procedures);
    Figure {
        number: 2,
        slug: "cost",
        title: "What evenness costs".to_owned(),
        caption: format!(
            "Mean distance of a class’s coverage from 1 − α against labels in a set, means over {} splits. Each line \
             joins one way at {}; lower and further left is better. With few test rows of a class part of the \
             distance is chance, and no way comes below it.",
            results.provenance.splits,
            super::levels_in_words(results)
        ),
        panels: results.benchmarks.iter().map(|benchmark| panel(results, benchmark, &styles)).collect(),
        columns: 2,
        key: styles.clone(),
        data: data(results),
    }
}

fn series<'s>(results: &ConditionalResults, benchmark: &str, style: &'s Style) -> Series<'s> {
    let mut points: Vec<Point> = results
        .levels
        .iter()
        .filter_map(|alpha| {
            let size = spread(results, benchmark, &style.name, *alpha, |record| record.average_size)?.mean;
            let gap = spread(results, benchmark, &style.name, *alpha, |record| record.covgap)?.mean;
            Some(Point {
                x: size,
                y: 100.0 * gap,
                spread: (100.0 * gap, 100.0 * gap),
                at: format!("{}, α = {}", style.name, number::level(*alpha)),
                value: format!("{} labels, CovGap {}", number::size(size), number::share(gap)),
            })
        })
        .collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series { style, is_procedure: true, points }
}

fn panel(results: &ConditionalResults, benchmark: &BenchmarkSummary, styles: &[Style]) -> Panel {
    let all: Vec<Series<'_>> = styles.iter().map(|style| series(results, &benchmark.name, style)).collect();
    let points = || all.iter().flat_map(|series| &series.points);
    let (low, high) = points().fold((f64::MAX, 0.0_f64), |(low, high), p| (low.min(p.x), high.max(p.x)));
    let tallest = points().map(|point| point.y).fold(0.1, f64::max);
    let x = Axis::sizes("Labels in a set", low.min(high), high);
    let mut plot = Plot::new(Frame::PLAIN, &x, &Axis::even("CovGap, percentage points", 0.0, tallest));
    for series in &all {
        plot.line(series);
        plot.marks(series, 3.4);
    }
    let said: Vec<String> = points().map(|point| format!("{}: {}", point.at, point.value)).collect();
    Panel {
        benchmark: Some(benchmark.name.clone()),
        drawn: conformax_plot::Panel {
            title: benchmark.title.clone(),
            alternative: format!("Evenness and size on {}. {}.", benchmark.title, said.join("; ")),
            size: Frame::PLAIN.size(),
            drawing: plot.finish(),
        },
    }
}

fn data(results: &ConditionalResults) -> Table {
    let columns = vec![
        Column::text("Benchmark"),
        Column::text("Procedure"),
        Column::text("α"),
        Column::number("Average size"),
        Column::number("CovGap"),
    ];
    let mut table = Table { slug: "figure-2-cost".to_owned(), columns, ..Table::default() };
    table.records = Records {
        header: vec!["benchmark", "procedure", "alpha", "average_size", "covgap"],
        rows: Vec::new(),
    };
    for benchmark in &results.benchmarks {
        for (place, procedure) in results.procedures.iter().enumerate() {
            for alpha in &results.levels {
                let of = |metric: fn(&ConditionalRecord) -> f64| {
                    spread(results, &benchmark.name, procedure, *alpha, metric).unwrap_or_default().mean
                };
                let (size, gap) = (of(|record| record.average_size), of(|record| record.covgap));
                table.rows.push(Row {
                    begins_group: place == 0 && results.levels.first() == Some(alpha),
                    ..Row::of(vec![
                        benchmark.title.as_str().into(),
                        procedure.as_str().into(),
                        number::level(*alpha).into(),
                        number::size(size).into(),
                        number::share(gap).into(),
                    ])
                });
                let key = [benchmark.name.clone(), procedure.clone(), exact(*alpha)];
                table.records.rows.push(key.into_iter().chain([exact(size), exact(gap)]).collect());
            }
        }
    }
    table
}
