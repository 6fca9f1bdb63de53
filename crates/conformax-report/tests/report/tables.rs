//! Tables: the same numbers as the records, in three forms, beside the paper's.

use conformax_study::{Results, Way, paper};

use crate::rendered::{Rendered, assert_close, mean, number};

const SLUGS: [&str; 10] = [
    "table-1-coverage",
    "table-2-strata-imagenet5k",
    "table-3-accuracy",
    "table-4-strata-imagenet5k",
    "table-5-strata-cifar100",
    "table-6-strata-newsgroups",
    "strata-cifar10",
    "claims",
    "tuning-cost",
    "all-metrics",
];

#[test]
fn come_in_three_forms_of_as_many_columns_as_the_header() {
    let rendered = Rendered::shared();
    for slug in SLUGS {
        let markdown = rendered.text(&format!("tables/{slug}.md"));
        let pipes = |line: &str| line.replace("\\|", "").matches('|').count();
        let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() > 2 && rows.iter().all(|row| pipes(row) == pipes(rows[0])), "{slug}.md");

        let latex = rendered.text(&format!("tables/{slug}.tex"));
        let body: Vec<&str> = latex.lines().filter(|line| line.ends_with(" \\\\")).collect();
        let columns = |line: &str| line.replace("\\&", "").matches('&').count();
        assert_eq!(body.len(), rows.len() - 1, "{slug}.tex");
        assert!(body.iter().all(|row| columns(row) == columns(body[0])), "{slug}.tex");

        assert!(!rendered.csv(&format!("tables/{slug}.csv")).is_empty(), "{slug}.csv");
    }
}

#[test]
fn coverage_stands_beside_the_printed_one() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/table-1-coverage.csv");
    assert_eq!(rows.len(), 2 * 4 * 6);
    for row in rows {
        let alpha = number(&row, "alpha");
        let records = rendered.records(&row["benchmark"], &row["procedure"], alpha);
        assert_close(number(&row, "coverage"), mean(records.iter().map(|r| r.coverage)));
        let column = paper::PROCEDURES.iter().position(|name| *name == row["procedure"]).unwrap();
        let mut printed = paper::COVERAGE.iter();
        let printed = printed.find(|p| p.alpha == alpha && p.benchmark == row["benchmark"]).unwrap();
        assert_eq!(number(&row, "paper_coverage"), printed.coverage[column]);
    }
    assert!(rendered.text("tables/table-1-coverage.md").contains("paper 0.895"));
}

#[test]
fn strata_pool_counts_and_keep_every_test_row() {
    let rendered = Rendered::shared();
    for slug in SLUGS.iter().filter(|slug| slug.contains("strata")) {
        let rows = rendered.csv(&format!("tables/{slug}.csv"));
        for row in &rows {
            let records = rendered.records(&row["benchmark"], &row["procedure"], number(row, "alpha"));
            let (from, n) = (number(row, "from") as u64, number(row, "n") as u64);
            let strata =
                || records.iter().flat_map(|r| &r.strata).filter(|s| s.from == from && s.from <= s.to);
            assert_eq!(n, strata().map(|s| s.n).sum::<u64>(), "{slug}");
            assert_close(number(row, "n_per_split"), n as f64 / records.len() as f64);
            let covered: f64 = strata().map(|s| (s.coverage.unwrap_or(0.0) * s.n as f64).round()).sum();
            assert_close(number(row, "coverage"), covered / n as f64);
        }
        let first = &rows[0];
        let records = rendered.records(&first["benchmark"], &first["procedure"], number(first, "alpha"));
        let here =
            rows.iter().filter(|r| r["procedure"] == first["procedure"] && r["alpha"] == first["alpha"]);
        let total: f64 = here.map(|row| number(row, "n")).sum();
        let possible =
            records.iter().flat_map(|r| &r.strata).filter(|s| s.from <= s.to).map(|s| s.n).sum::<u64>();
        assert_eq!(total as u64, possible, "{slug}");
    }
}

#[test]
fn strata_show_what_the_paper_prints() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/table-2-strata-imagenet5k.csv");
    let row = rows
        .iter()
        .find(|row| row["procedure"] == "log-margin" && row["alpha"] == "0.1" && row["from"] == "11");
    let row = row.unwrap();
    assert_eq!((row["paper_n"].as_str(), row["paper_coverage"].as_str()), ("213", "0.653"));
    let markdown = rendered.text("tables/table-2-strata-imagenet5k.md");
    assert!(markdown.contains("InvProb 29,852 at α = 0.10"), "{markdown}");
    assert!(rendered.text("tables/strata-cifar10.md").contains("The paper prints no such table"));
}

#[test]
fn accuracy_is_the_mean_over_splits() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/table-3-accuracy.csv");
    assert_eq!(rows.len(), rendered.results.benchmarks.len());
    for (row, benchmark) in rows.iter().zip(&rendered.results.benchmarks) {
        assert_close(number(row, "test_accuracy"), mean(benchmark.splits.iter().map(|s| s.test_accuracy)));
        let calibration = mean(benchmark.splits.iter().map(|s| s.calibration_accuracy));
        assert_close(number(row, "calibration_accuracy"), calibration);
    }
    assert!(rendered.text("tables/table-3-accuracy.md").contains("paper 0.838 ± 0.005"));
}

#[test]
fn tuning_cost_is_the_studys_comparison() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/tuning-cost.csv");
    assert_eq!(rows.len(), rendered.results.tuning.len());
    for (row, tuning) in rows.iter().zip(&rendered.results.tuning) {
        assert_eq!((&row["benchmark"], &row["procedure"]), (&tuning.benchmark, &tuning.procedure));
        assert_eq!(number(row, "coverage_difference"), tuning.coverage_difference.mean);
        assert_eq!(number(row, "valid_size"), tuning.valid_size.mean);
        let is_its = |it: &&conformax_study::TuningWay| {
            it.way == Way::AllRows
                && (&it.benchmark, &it.procedure, it.alpha)
                    == (&tuning.benchmark, &tuning.procedure, tuning.alpha)
        };
        let all_rows = rendered.results.tuning_ways.iter().find(is_its).unwrap();
        assert_eq!(number(row, "all_rows_coverage"), all_rows.coverage.mean);
        assert_eq!(number(row, "all_rows_size"), all_rows.average_size.mean);
        assert_eq!(number(row, "all_rows_splits"), 2.0);
    }
    let none = Results { tuning_ways: vec![], ..crate::synthetic::results() };
    let none = Rendered::of(none);
    assert!(none.csv("tables/tuning-cost.csv").iter().all(|row| row["all_rows_size"].is_empty()));
}

#[test]
fn claims_carry_their_evidence() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/claims.csv");
    let evidence: Vec<_> = rendered.results.claims.iter().flat_map(|c| &c.evidence).collect();
    assert_eq!(rows.len(), evidence.len());
    for (row, evidence) in rows.iter().zip(evidence) {
        assert_eq!(number(row, "difference"), evidence.difference.mean);
        assert_eq!(row["quantity"], evidence.quantity);
    }
}

#[test]
fn all_metrics_are_the_records_means() {
    let rendered = Rendered::shared();
    let rows = rendered.csv("tables/all-metrics.csv");
    assert_eq!(rows.len(), 4 * 10 * (6 + 2) * 7);
    for row in rows.iter().filter(|row| row["metric"] == "covgap") {
        let records = rendered.records(&row["benchmark"], &row["procedure"], number(row, "alpha"));
        assert_close(number(row, "mean"), mean(records.iter().map(|r| r.covgap)));
    }
}
