//! The paper's Table 3: how good the classifiers are on calibration and test rows.

use conformax_study::{BenchmarkSummary, SplitSummary, Spread, paper};

use super::{Cell, Column, Records, Row, Table, exact};
use crate::number;
use crate::view::View;

const NOT_LIKE_FOR_LIKE: &str = "Not like for like: the paper's classifiers are others (a CNN, ViT twice and BERT \
                                 base), and its ImageNet has 50,000 rows where ours has 5,000.";

/// One row per benchmark.
pub(super) fn table(view: &View<'_>) -> Table {
    let header = vec![
        "benchmark",
        "rows",
        "classes",
        "n_test",
        "test_accuracy",
        "test_deviation",
        "n_cal",
        "calibration_accuracy",
        "calibration_deviation",
    ];
    let splits = view.results.provenance.splits;
    Table {
        slug: "table-3-accuracy".to_owned(),
        title: format!(
            "Table 3. Accuracy of the classifiers, mean ± standard deviation over {splits} splits"
        ),
        notes: if view.has_printed_numbers() { vec![NOT_LIKE_FOR_LIKE.to_owned()] } else { Vec::new() },
        columns: vec![
            Column::text("Benchmark"),
            Column::number("Test rows"),
            Column::number("Test accuracy"),
            Column::number("Calibration rows"),
            Column::number("Calibration accuracy"),
        ],
        rows: view.benchmarks().map(|(_, benchmark)| row(benchmark)).collect(),
        records: Records {
            header,
            rows: view.benchmarks().map(|(_, benchmark)| record(benchmark)).collect(),
        },
    }
}

fn row(benchmark: &BenchmarkSummary) -> Row {
    let paper = paper::ACCURACY.iter().find(|row| Some(row.benchmark) == benchmark.name_in_paper());
    let (n_test, n_cal) = rows_of(benchmark);
    let count = |n: u64, paper: Option<u64>| Cell {
        main: number::count(n),
        below: paper.map(|n| format!("paper {}", number::count(n))).into_iter().collect(),
    };
    let accuracy = |read: fn(&SplitSummary) -> f64, paper: Option<(f64, f64)>| Cell {
        main: spread(benchmark, read)
            .map_or_else(|| "–".to_owned(), |ours| number::spread(ours, number::share)),
        below: paper
            .map(|(mean, deviation)| format!("paper {mean:.3} ± {deviation:.3}"))
            .into_iter()
            .collect(),
    };
    let cells = vec![
        Cell {
            main: benchmark.title.clone(),
            below: vec![format!("{} classes", number::count(benchmark.classes))],
        },
        count(n_test, paper.map(|row| row.n_test)),
        accuracy(|split| split.test_accuracy, paper.map(|row| row.test)),
        count(n_cal, paper.map(|row| row.n_cal)),
        accuracy(|split| split.calibration_accuracy, paper.map(|row| row.calibration)),
    ];
    Row { benchmark: Some(benchmark.name.clone()), ..Row::of(cells) }
}

fn spread(benchmark: &BenchmarkSummary, read: fn(&SplitSummary) -> f64) -> Option<Spread> {
    Spread::of(&benchmark.splits.iter().map(read).collect::<Vec<_>>())
}

fn rows_of(benchmark: &BenchmarkSummary) -> (u64, u64) {
    benchmark.splits.first().map_or((0, 0), |split| (split.n_test, split.n_cal))
}

fn record(benchmark: &BenchmarkSummary) -> Vec<String> {
    let (n_test, n_cal) = rows_of(benchmark);
    let test = spread(benchmark, |split| split.test_accuracy).unwrap_or_default();
    let calibration = spread(benchmark, |split| split.calibration_accuracy).unwrap_or_default();
    vec![
        benchmark.name.clone(),
        benchmark.rows.to_string(),
        benchmark.classes.to_string(),
        n_test.to_string(),
        exact(test.mean),
        exact(test.deviation),
        n_cal.to_string(),
        exact(calibration.mean),
        exact(calibration.deviation),
    ]
}
