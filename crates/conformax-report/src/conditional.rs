//! The page of a conditional study: every class at a glance, what its coverage costs, and what label shift does.

mod classes;
mod cost;
mod lanes;
mod shift;

use conformax_study::{BenchmarkSummary, ConditionalRecord, ConditionalResults, Spread};
use minijinja::value::Serde;
use minijinja::{Value, context};

use crate::figure::{Figure, Panel};
use crate::page::{self, shown_figure, shown_table};
use crate::table::{Column, Records, Row, Table, exact};
use crate::{File, Options, figure_files, number, style, table_files, text};

const TEMPLATE: &str = include_str!("../templates/conditional.html");

/// The page, its figures and its tables, as [`render`](crate::render) gives those of other studies.
pub fn render_conditional(results: &ConditionalResults, options: &Options) -> Vec<File> {
    let figures = [classes::figure(results), cost::figure(results), shift::figure(results)];
    let (table, shifted) = (cost_table(results), shift::table(results));
    let mut files = vec![text("report/index.html".to_owned(), html(results, &figures, &table, &shifted))];
    files.extend(figure_files(&figures, options));
    files.extend([&table, &shifted].into_iter().flat_map(table_files));
    files
}

fn html(results: &ConditionalResults, figures: &[Figure; 3], table: &Table, shifted: &Table) -> String {
    let [classes, cost, shift] = figures;
    let level = results.levels.first().copied().unwrap_or_default();
    page::render_template(
        TEMPLATE,
        context! {
            study => results.study.as_str(),
            lede => lede(results),
            level => number::level(level),
            hero => classes::hero(results).map(Value::from_safe_string),
            hero_title => classes::hero_title(results),
            found => found(results),
            procedures => page::chips(&style::of_procedures(&results.procedures)),
            absent => Value::from(Serde(&results.absent)),
            classes => shown_figure(classes),
            cost => shown_figure(cost),
            shift => shown_figure(shift),
            costs => shown_table(table),
            shifted => shown_table(shifted),
            provenance => page::provenance(&results.provenance, &results.benchmarks),
        },
    )
}

fn lede(results: &ConditionalResults) -> String {
    let ways = format!(
        "{} ways to promise it for each class, and {} where the shares of the classes change, on {} benchmarks.",
        capital(&number::word(results.procedures.len())),
        number::word(results.weightings.len()),
        number::word(results.benchmarks.len()),
    );
    match uneven(results) {
        Some(sentence) => format!("{sentence} {ways}"),
        None => ways,
    }
}

/// What one threshold gives the worst and the best class of the benchmark that a reader sees first.
fn uneven(results: &ConditionalResults) -> Option<String> {
    let (alpha, benchmark) = (*results.levels.first()?, most_telling(results)?);
    let classes = results.classes.iter().filter(|class| {
        class.benchmark == benchmark.name
            && class.alpha == alpha
            && results.procedures.first() == Some(&class.procedure)
    });
    let shares: Vec<f64> = classes.map(|class| class.coverage).collect();
    let (low, high) = (shares.iter().copied().reduce(f64::min)?, shares.iter().copied().reduce(f64::max)?);
    Some(format!(
        "On {} sets that should hold the true label {} of the time do so {low:.2} of the time for one class and \
         {high:.2} for another.",
        benchmark.title,
        number::share(1.0 - alpha).trim_end_matches('0'),
    ))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A sentence per benchmark: what one threshold hides, and what showing it costs.
fn found(results: &ConditionalResults) -> Vec<Value> {
    let alpha = results.levels.first().copied().unwrap_or_default();
    results
        .benchmarks
        .iter()
        .map(|benchmark| {
            let mean = |procedure: &str, metric: fn(&ConditionalRecord) -> f64| {
                spread(results, &benchmark.name, procedure, alpha, metric).map_or(0.0, |spread| spread.mean)
            };
            let (one, by) = ("one threshold", "by class");
            let rows = benchmark.splits.first().map_or(0, |split| split.n_cal) as f64 / benchmark.classes as f64;
            context! {
                title => benchmark.title.as_str(),
                about => format!(
                    "{} classes, {rows:.0} calibrating rows each on average",
                    number::count(benchmark.classes)
                ),
                sentence => format!(
                    "One threshold covers its worst class {} of the time; one for each class {}, with {} labels in \
                     a set instead of {}.",
                    number::share(mean(one, |record| record.worst_class_coverage)),
                    number::share(mean(by, |record| record.worst_class_coverage)),
                    number::size(mean(by, |record| record.average_size)),
                    number::size(mean(one, |record| record.average_size)),
                ),
            }
        })
        .collect()
}

/// A panel for every benchmark and level, those of a benchmark side by side.
fn of_each_level(
    results: &ConditionalResults,
    panel: impl Fn(&BenchmarkSummary, f64) -> Panel,
) -> Vec<Panel> {
    let benchmarks = results.benchmarks.iter();
    benchmarks.flat_map(|benchmark| results.levels.iter().map(|alpha| panel(benchmark, *alpha))).collect()
}

/// What a panel is headed: its benchmark, and its level where there are several.
fn titled(results: &ConditionalResults, benchmark: &BenchmarkSummary, alpha: f64) -> String {
    match results.levels.len() {
        1 => benchmark.title.clone(),
        _ => format!("{}, α = {}", benchmark.title, number::level(alpha)),
    }
}

fn levels_in_words(results: &ConditionalResults) -> String {
    let levels: Vec<String> = results.levels.iter().map(|alpha| number::level(*alpha)).collect();
    format!("α = {}", number::listed(&levels))
}

/// Mean and spread over splits.
fn spread(
    results: &ConditionalResults,
    benchmark: &str,
    procedure: &str,
    alpha: f64,
    metric: impl Fn(&ConditionalRecord) -> f64,
) -> Option<Spread> {
    let of = |record: &&ConditionalRecord| {
        record.benchmark == benchmark && record.procedure == procedure && record.alpha == alpha
    };
    Spread::of(&results.records.iter().filter(of).map(metric).collect::<Vec<_>>())
}

/// A row per benchmark, level and procedure.
fn cost_table(results: &ConditionalResults) -> Table {
    let columns = vec![
        Column::text("Benchmark"),
        Column::text("α"),
        Column::text("Procedure"),
        Column::number("Coverage"),
        Column::number("Average size"),
        Column::number("CovGap"),
        Column::number("Worst class"),
        Column::number("In every set"),
    ];
    let mut rows = Vec::new();
    let mut records = Records {
        header: vec![
            "benchmark",
            "alpha",
            "procedure",
            "coverage",
            "average_size",
            "covgap",
            "worst_class_coverage",
            "classes_in_every_set",
        ],
        rows: Vec::new(),
    };
    for benchmark in &results.benchmarks {
        for alpha in &results.levels {
            for (place, procedure) in results.procedures.iter().enumerate() {
                let of = |metric: fn(&ConditionalRecord) -> f64| {
                    spread(results, &benchmark.name, procedure, *alpha, metric).unwrap_or_default()
                };
                let shown = |spread, print: fn(f64) -> String| number::spread(spread, print).into();
                let numbers = [
                    of(|record| record.coverage),
                    of(|record| record.average_size),
                    of(|record| record.covgap),
                    of(|record| record.worst_class_coverage),
                    of(|record| record.classes_in_every_set as f64),
                ];
                let [coverage, size, covgap, worst, always] = numbers;
                rows.push(Row {
                    begins_group: place == 0,
                    benchmark: Some(benchmark.name.clone()),
                    ..Row::of(vec![
                        benchmark.title.as_str().into(),
                        number::level(*alpha).into(),
                        procedure.as_str().into(),
                        shown(coverage, number::share),
                        shown(size, number::size),
                        shown(covgap, number::share),
                        shown(worst, number::share),
                        format!("{:.0}", always.mean).into(),
                    ])
                });
                let means = numbers.iter().map(|spread| exact(spread.mean));
                let key = [benchmark.name.clone(), exact(*alpha), procedure.clone()];
                records.rows.push(key.into_iter().chain(means).collect());
            }
        }
    }
    Table {
        slug: "conditional".to_owned(),
        title: format!(
            "Five ways to thresholds, mean ± standard deviation over {} splits",
            results.provenance.splits
        ),
        notes: vec![
            "CovGap: mean distance between a class’s coverage and 1 − α. Worst class: the lowest coverage of any class, \
             on few test rows of each where classes are many. In every set: classes with too few calibrating rows for \
             a finite threshold of their own."
                .to_owned(),
            "Rank-truncated and prior-adjusted keep 40 % of the calibration rows for choosing ranks or counting \
             classes; clustered classes take what the authors’ rule asks for, and are one threshold where no class has \
             rows enough."
                .to_owned(),
        ],
        columns,
        rows,
        records,
    }
}

/// The benchmark whose classes a first look tells most of: the most classes among those with twenty test rows each.
fn most_telling(results: &ConditionalResults) -> Option<&BenchmarkSummary> {
    let tested = |benchmark: &&BenchmarkSummary| {
        benchmark.splits.first().is_some_and(|split| split.n_test >= 20 * benchmark.classes)
    };
    let of = |all: Vec<_>| all.into_iter().max_by_key(|benchmark: &&BenchmarkSummary| benchmark.classes);
    of(results.benchmarks.iter().filter(tested).collect()).or(of(results.benchmarks.iter().collect()))
}
