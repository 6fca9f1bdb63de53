//! Figures: valid SVG with a text alternative, drawn from the records.

use conformax::{Entmax, EntmaxScore, Gamma, Row, Score};
use conformax_study::{GammaSize, Record, Results};
use roxmltree::Document;

use crate::rendered::{Rendered, assert_close, deviation, mean, number};

const NAMES: [&str; 10] = [
    "figure-1-idea",
    "figure-2-entmax-plane",
    "figure-3-temperature",
    "figure-4-average-size",
    "figure-5-gamma-family",
    "figure-6-singletons",
    "figure-7-coverage",
    "figure-8-gamma-size",
    "figure-9-sscv",
    "figure-10-tuning-ways",
];

#[test]
fn are_valid_xml_with_a_text_alternative() {
    let rendered = Rendered::shared();
    for name in NAMES {
        let text = rendered.text(&format!("figures/{name}.svg"));
        let document = Document::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let root = document.root_element();
        assert_eq!((root.tag_name().name(), root.attribute("role")), ("svg", Some("img")), "{name}");
        for part in ["title", "desc"] {
            let found = root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", part)));
            assert!(
                found.and_then(|node| node.text()).is_some_and(|text| text.len() > 10),
                "{name} has no {part}"
            );
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{name} has a coordinate that is no number");
    }
}

/// Every value of a figure's CSV is the mean or spread of `read` over the records it names.
fn check_cells(
    name: &str,
    (mean_field, deviation_field): (&str, &str),
    read: fn(&Record) -> f64,
    cells: usize,
) {
    let rendered = Rendered::shared();
    let rows = rendered.csv(&format!("figures/{name}.csv"));
    assert_eq!(rows.len(), cells, "{name}");
    for row in rows {
        let records = rendered.records(&row["benchmark"], &row["procedure"], number(&row, "alpha"));
        assert_close(number(&row, mean_field), mean(records.iter().map(|r| read(r))));
        assert_close(number(&row, deviation_field), deviation(records.iter().map(|r| read(r))));
    }
}

#[test]
fn average_size_is_the_records_mean() {
    check_cells("figure-4-average-size", ("mean", "deviation"), |r| r.average_size, 4 * 6 * 10);
}

#[test]
fn coverage_is_the_records_mean() {
    check_cells("figure-7-coverage", ("mean", "deviation"), |r| r.coverage, 4 * 6 * 10);
}

#[test]
fn singleton_ratio_is_the_records_mean() {
    let fields = ("singleton_ratio", "singleton_ratio_deviation");
    check_cells("figure-6-singletons", fields, |r| r.singleton_ratio, 4 * 6 * 3);
}

#[test]
fn singleton_coverage_is_empty_where_no_split_has_a_singleton() {
    let rendered = Rendered::shared();
    let mut empty = 0;
    for row in rendered.csv("figures/figure-6-singletons.csv") {
        let records = rendered.records(&row["benchmark"], &row["procedure"], number(&row, "alpha"));
        let right: Vec<f64> = records.iter().filter_map(|r| r.singleton_coverage).collect();
        if right.is_empty() {
            assert_eq!(row["singleton_coverage"], "");
            empty += 1;
        } else {
            assert_close(number(&row, "singleton_coverage"), mean(right.into_iter()));
        }
    }
    assert!(empty > 0, "the made-up results have cells without singletons");
}

#[test]
fn sscv_is_the_mean_of_each_splits() {
    check_cells("figure-9-sscv", ("sscv", "deviation"), |r| r.sscv, 4 * 6 * 3);
}

fn check_gammas(name: &str, sizes: fn(&Results) -> &[GammaSize], cells: usize) {
    let rendered = Rendered::shared();
    let rows = rendered.csv(&format!("figures/{name}.csv"));
    assert_eq!(rows.len(), cells, "{name}");
    for row in rows {
        let (gamma, alpha) = (number(&row, "gamma"), number(&row, "alpha"));
        let here = sizes(&rendered.results)
            .iter()
            .filter(|size| size.benchmark == row["benchmark"] && size.gamma == gamma && size.alpha == alpha);
        assert_close(number(&row, "average_size"), mean(here.map(|size| size.average_size)));
    }
}

#[test]
fn sizes_at_each_gamma_are_the_studys() {
    check_gammas("figure-5-gamma-family", |results| &results.gamma_on_test, 11 * 10);
    check_gammas("figure-8-gamma-size", |results| &results.gamma_on_tuning, 4 * 9 * 4);
}

#[test]
fn a_study_without_gammas_has_neither_of_their_figures() {
    let results = Results { gamma_on_test: vec![], gamma_on_tuning: vec![], ..crate::synthetic::results() };
    let rendered = Rendered::of(results);
    assert!(!rendered.paths().any(|path| path.contains("figure-5") || path.contains("figure-8")));
}

#[test]
fn every_cell_of_average_size_has_its_mark() {
    let rendered = Rendered::shared();
    let document = Document::parse(rendered.text("figures/figure-4-average-size.svg")).unwrap();
    for procedure in &rendered.results.procedures {
        let marks = document.descendants().filter(|node| {
            let is_its =
                node.parent().and_then(|g| g.attribute("data-procedure")) == Some(procedure.as_str());
            is_its && node.attribute("class") == Some("mark")
        });
        assert_eq!(marks.count(), 4 * 10, "{procedure}");
    }
}

#[test]
fn every_way_to_tune_has_its_marks_and_the_laws_band() {
    let rendered = Rendered::shared();
    let document = Document::parse(rendered.text("figures/figure-10-tuning-ways.svg")).unwrap();
    let of_class =
        |class| document.descendants().filter(|node| node.attribute("class") == Some(class)).count();
    // Four benchmarks, two tuned procedures; three ways at ten levels, and in the key.
    assert_eq!((of_class("law"), of_class("mark")), (8, 8 * 3 * 10 + 3));
    let rows = rendered.csv("figures/figure-10-tuning-ways.csv");
    assert_eq!(rows.len(), rendered.results.tuning_ways.len());
    for (row, way) in rows.iter().zip(&rendered.results.tuning_ways) {
        assert_eq!(row["procedure"], way.way.named(&way.procedure));
        assert_eq!(number(row, "average_size"), way.average_size.mean);
        assert_eq!(number(row, "coverage"), way.coverage.mean);
    }
    let none = Results { tuning_ways: vec![], ..crate::synthetic::results() };
    assert!(!Rendered::of(none).paths().any(|path| path.contains("figure-10")));
}

#[test]
fn coverage_draws_one_band_per_number_of_calibrating_rows() {
    let rendered = Rendered::shared();
    let document = Document::parse(rendered.text("figures/figure-7-coverage.svg")).unwrap();
    assert_eq!(document.descendants().filter(|node| node.attribute("class") == Some("law")).count(), 4 * 2);
}

#[test]
fn the_plane_is_the_cores_entmax() {
    let rows = Rendered::shared().csv("figures/figure-2-entmax-plane.csv");
    assert_eq!(rows.len(), 121 * 3);
    for row in rows {
        let mut p = [0.0; 2];
        let entmax = Entmax::new(Gamma::new(number(&row, "gamma")).unwrap());
        entmax.forward(Row::new(&[number(&row, "t"), 0.0]).unwrap(), &mut p);
        assert_eq!(number(&row, "probability"), p[0]);
    }
}

#[test]
fn temperature_is_the_cores_entmax() {
    let z = [1.0, -1.0, -0.2, 0.4, -0.5];
    let rows = Rendered::shared().csv("figures/figure-3-temperature.csv");
    assert_eq!(rows.len(), 3 * 60 * 5);
    for row in rows {
        let mut p = [0.0; 5];
        let entmax = Entmax::new(Gamma::new(number(&row, "gamma")).unwrap());
        let scaled = entmax.with_beta(1.0 / number(&row, "temperature")).unwrap();
        scaled.forward(Row::new(&z).unwrap(), &mut p);
        assert_eq!(number(&row, "probability"), p[number(&row, "label") as usize - 1]);
    }
}

#[test]
fn the_idea_shows_the_cores_scores() {
    let z = [1.0, -1.0, -0.2, 0.4, -0.5];
    for row in Rendered::shared().csv("figures/figure-1-idea.csv") {
        let label = number(&row, "label") as u32 - 1;
        let score = EntmaxScore { gamma: Gamma::ENTMAX15 }.score(Row::new(&z).unwrap(), label);
        assert_eq!(number(&row, "score"), score);
        assert_eq!(row["in_set"] == "yes", number(&row, "probability") > 0.0);
    }
}

#[cfg(feature = "png")]
#[test]
fn come_as_png_on_request() {
    let options = conformax_report::Options { png: true, ..Default::default() };
    let files = conformax_report::render(&crate::synthetic::results(), &options);
    let pngs: Vec<_> = files.iter().filter(|file| file.path.ends_with(".png")).collect();
    assert_eq!(pngs.len(), 10);
    assert!(pngs.iter().all(|file| file.bytes.starts_with(b"\x89PNG")));
}
