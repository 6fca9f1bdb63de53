//! Figure 3 and its table: coverage where hard classes have become common, by how labels are weighed.

use conformax_plot::Style;
use conformax_study::{BenchmarkSummary, ConditionalResults, ShiftRecord, Spread};

use super::lanes::{self, Dot};
use crate::figure::{Figure, Panel};
use crate::table::{Column, Records, Row, Table, exact, optional};
use crate::{number, style};

pub(super) fn figure(results: &ConditionalResults) -> Figure {
    let styles = style::of_procedures(&results.weightings);
    Figure {
        number: 3,
        slug: "label-shift",
        title: "When the shares of the classes change".to_owned(),
        caption: format!(
            "Test rows drawn anew: the class that one threshold covers least is ten times as common as the one it \
             covers best, in even steps between. A dot is one of {} splits at {}. Known weights are the true \
             ratios of shares; EM and BBSE estimate them from as many rows without labels, which makes the promise \
             approximate.",
            results.provenance.splits,
            super::levels_in_words(results)
        ),
        panels: super::of_each_level(results, |benchmark, alpha| panel(results, benchmark, alpha, &styles)),
        columns: 2,
        key: Vec::new(),
        data: Table { slug: "figure-3-label-shift".to_owned(), ..table(results) },
    }
}

fn of<'r>(
    results: &'r ConditionalResults,
    benchmark: &str,
    weighting: &str,
    alpha: f64,
) -> impl Iterator<Item = &'r ShiftRecord> {
    results.shift.iter().filter(move |record| {
        record.benchmark == benchmark && record.weighting == weighting && record.alpha == alpha
    })
}

fn panel(results: &ConditionalResults, benchmark: &BenchmarkSummary, alpha: f64, styles: &[Style]) -> Panel {
    let dots = |weighting: &str| -> Vec<Dot> {
        of(results, &benchmark.name, weighting, alpha)
            .filter_map(|record| {
                Some(Dot {
                    share: record.coverage?,
                    together: 1,
                    is_low: false,
                    value: format!(
                        "split {}: {} labels",
                        record.split + 1,
                        number::size(record.average_size?)
                    ),
                })
            })
            .collect()
    };
    let lanes: Vec<(&Style, Vec<Dot>)> = styles.iter().map(|style| (style, dots(&style.name))).collect();
    let (drawing, size) = lanes::drawing(&lanes, 1.0 - alpha, None);
    let said: Vec<String> = lanes
        .iter()
        .filter_map(|(style, dots)| {
            let mean = Spread::of(&dots.iter().map(|dot| dot.share).collect::<Vec<_>>())?.mean;
            Some(format!("{} {}", style.name, number::share(mean)))
        })
        .collect();
    Panel {
        benchmark: Some(benchmark.name.clone()),
        drawn: conformax_plot::Panel {
            title: super::titled(results, benchmark, alpha),
            alternative: format!(
                "Coverage under label shift on {} at α = {}: {}.",
                benchmark.title,
                number::level(alpha),
                number::listed(&said)
            ),
            size,
            drawing,
        },
    }
}

pub(super) fn table(results: &ConditionalResults) -> Table {
    let columns = vec![
        Column::text("Benchmark"),
        Column::text("α"),
        Column::text("Weights"),
        Column::number("Coverage"),
        Column::number("Average size"),
    ];
    let mut table = Table {
        slug: "label-shift".to_owned(),
        title: format!(
            "Coverage and size under label shift, mean ± standard deviation over {} splits",
            results.provenance.splits
        ),
        columns,
        ..Table::default()
    };
    table.records = Records {
        header: vec!["benchmark", "alpha", "weights", "coverage", "average_size"],
        rows: Vec::new(),
    };
    for benchmark in &results.benchmarks {
        for alpha in &results.levels {
            for (place, weighting) in results.weightings.iter().enumerate() {
                let records: Vec<&ShiftRecord> = of(results, &benchmark.name, weighting, *alpha).collect();
                let spread = |metric: fn(&ShiftRecord) -> Option<f64>| {
                    Spread::of(&records.iter().filter_map(|record| metric(record)).collect::<Vec<_>>())
                };
                let (coverage, size) =
                    (spread(|record| record.coverage), spread(|record| record.average_size));
                let shown = |found: Option<Spread>, print: fn(f64) -> String| {
                    found.map_or_else(|| "–".to_owned(), |found| number::spread(found, print)).into()
                };
                table.rows.push(Row {
                    begins_group: place == 0,
                    ..Row::of(vec![
                        benchmark.title.as_str().into(),
                        number::level(*alpha).into(),
                        weighting.as_str().into(),
                        shown(coverage, number::share),
                        shown(size, number::size),
                    ])
                });
                let mean = |found: Option<Spread>| optional(found.map(|found| found.mean));
                let key = [benchmark.name.clone(), exact(*alpha), weighting.clone()];
                table.records.rows.push(key.into_iter().chain([mean(coverage), mean(size)]).collect());
            }
        }
    }
    for record in &results.shift {
        let Some(problem) = &record.problem else { continue };
        let title = results.benchmarks.iter().find(|summary| summary.name == record.benchmark);
        let title = title.map_or(record.benchmark.as_str(), |summary| summary.title.as_str());
        let note = format!("{title}: no {}: {problem}.", record.weighting);
        if !table.notes.contains(&note) {
            table.notes.push(note);
        }
    }
    table
}
