//! Figure 1: the coverage of every class, by where its threshold comes from.

use conformax_plot::Style;
use conformax_study::{BenchmarkSummary, ClassCoverage, ConditionalResults};

use super::lanes::{self, Band, Dot};
use super::most_telling;
use crate::figure::{Figure, Panel};
use crate::table::{Column, Records, Row, Table, exact};
use crate::{number, style};

pub(super) fn figure(results: &ConditionalResults) -> Figure {
    let styles = style::of_procedures(&results.procedures);
    Figure {
        number: 1,
        slug: "classes",
        title: "The coverage of every class".to_owned(),
        caption: format!(
            "A dot is a class (or several of the same coverage, by area), on the test rows of the first split, at {}. \
             Hollow: below the interval that the exact law gives a class calibrated by itself 95 times of 100, by \
             its own numbers of rows that calibrate and test, so one class in forty would be hollow by chance. Grey: \
             that interval for the class of middling size where no row is set aside.",
            super::levels_in_words(results)
        ),
        panels: super::of_each_level(results, |benchmark, alpha| panel(results, benchmark, alpha, &styles)),
        columns: 2,
        key: Vec::new(),
        data: data(results),
    }
}

/// The panel that a reader sees first.
pub(super) fn hero(results: &ConditionalResults) -> Option<String> {
    let alpha = results.levels.first().copied()?;
    let styles = style::of_procedures(&results.procedures);
    Some(panel(results, most_telling(results)?, alpha, &styles).drawn.inline())
}

pub(super) fn hero_title(results: &ConditionalResults) -> Option<String> {
    let alpha = results.levels.first().copied()?;
    let benchmark = most_telling(results)?;
    Some(format!(
        "The {} classes of {}, asked for {}",
        number::count(benchmark.classes),
        benchmark.title,
        number::share(1.0 - alpha).trim_end_matches('0')
    ))
}

fn panel(results: &ConditionalResults, benchmark: &BenchmarkSummary, alpha: f64, styles: &[Style]) -> Panel {
    let of = |procedure: &str| -> Vec<&ClassCoverage> {
        let wanted = |class: &&ClassCoverage| {
            class.benchmark == benchmark.name && class.alpha == alpha && class.procedure == procedure
        };
        results.classes.iter().filter(wanted).collect()
    };
    let by_procedure: Vec<(&Style, Vec<&ClassCoverage>)> =
        styles.iter().map(|style| (style, of(&style.name))).collect();
    let lanes: Vec<(&Style, Vec<Dot>)> =
        by_procedure.iter().map(|(style, classes)| (*style, dots(classes))).collect();
    let band = by_procedure.first().and_then(|(_, classes)| middling(classes));
    let (drawing, size) = lanes::drawing(&lanes, 1.0 - alpha, band);
    let low = |classes: &[&ClassCoverage]| classes.iter().filter(|class| class.coverage < class.low).count();
    let counted: Vec<String> = by_procedure
        .iter()
        .map(|(style, classes)| format!("{} of {} for {}", low(classes), classes.len(), style.name))
        .collect();
    Panel {
        benchmark: Some(benchmark.name.clone()),
        drawn: conformax_plot::Panel {
            title: super::titled(results, benchmark, alpha),
            alternative: format!(
                "Coverage of each class of {} at α = {}. Classes below their interval: {}.",
                benchmark.title,
                number::level(alpha),
                number::listed(&counted)
            ),
            size,
            drawing,
        },
    }
}

/// Classes of the same coverage and verdict lie together.
fn dots(classes: &[&ClassCoverage]) -> Vec<Dot> {
    let mut sorted: Vec<&ClassCoverage> = classes.to_vec();
    let is_low = |class: &ClassCoverage| class.coverage < class.low;
    sorted.sort_by(|a, b| a.coverage.total_cmp(&b.coverage).then(is_low(a).cmp(&is_low(b))));
    let same = |a: &&ClassCoverage, b: &&ClassCoverage| a.coverage == b.coverage && is_low(a) == is_low(b);
    sorted
        .chunk_by(same)
        .map(|alike| Dot {
            share: alike[0].coverage,
            together: alike.len() as u64,
            is_low: is_low(alike[0]),
            value: match alike {
                [one] => format!("class {} ({} rows)", one.class, one.n_test),
                more => format!("{} classes", number::count(more.len() as u64)),
            },
        })
        .collect()
}

fn middling(classes: &[&ClassCoverage]) -> Option<Band> {
    let mut sorted: Vec<&&ClassCoverage> = classes.iter().collect();
    sorted.sort_by_key(|class| (class.n_cal, class.n_test));
    sorted.get(sorted.len() / 2).map(|class| Band { low: class.low, high: class.high })
}

/// For people a row per benchmark and procedure; for programs one per class.
fn data(results: &ConditionalResults) -> Table {
    let mut columns = vec![Column::text("Benchmark"), Column::text("Procedure")];
    let levels = results.levels.iter().map(|alpha| format!("Classes below, α = {}", number::level(*alpha)));
    columns.extend(levels.map(|name| Column::number(&name)));
    let mut table = Table { slug: "figure-1-classes".to_owned(), columns, ..Table::default() };
    table.records = Records {
        header: vec![
            "benchmark",
            "procedure",
            "alpha",
            "class",
            "n_cal",
            "n_test",
            "coverage",
            "low",
            "high",
        ],
        rows: Vec::new(),
    };
    for benchmark in &results.benchmarks {
        for (place, procedure) in results.procedures.iter().enumerate() {
            let mut cells = vec![benchmark.title.as_str().into(), procedure.as_str().into()];
            for alpha in &results.levels {
                let of = |class: &&ClassCoverage| {
                    class.benchmark == benchmark.name
                        && class.procedure == *procedure
                        && class.alpha == *alpha
                };
                let classes: Vec<&ClassCoverage> = results.classes.iter().filter(of).collect();
                let low = classes.iter().filter(|class| class.coverage < class.low).count();
                cells.push(format!("{low} of {}", classes.len()).into());
                table.records.rows.extend(classes.iter().map(|class| {
                    vec![
                        benchmark.name.clone(),
                        procedure.clone(),
                        exact(*alpha),
                        class.class.to_string(),
                        class.n_cal.to_string(),
                        class.n_test.to_string(),
                        exact(class.coverage),
                        exact(class.low),
                        exact(class.high),
                    ]
                }));
            }
            table.rows.push(Row { begins_group: place == 0, ..Row::of(cells) });
        }
    }
    table
}
