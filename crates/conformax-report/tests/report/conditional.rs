//! The page of a conditional study: what it shows is what the records say, whatever they hold.

use conformax_report::{File, Options, render_conditional};
use conformax_study::{
    BenchmarkSummary, ClassCoverage, ConditionalRecord, ConditionalResults, ShiftRecord, SplitSummary,
};
use scraper::{Html, Selector};

/// Two benchmarks, of which the second could not be weighed.
fn results() -> ConditionalResults {
    let procedures = ["one threshold", "by class"].map(str::to_owned).to_vec();
    let weightings = ["unweighted", "weights by EM"].map(str::to_owned).to_vec();
    let mut results = ConditionalResults {
        study: "conditional".to_owned(),
        levels: vec![0.1, 0.05],
        procedures: procedures.clone(),
        weightings: weightings.clone(),
        ..ConditionalResults::default()
    };
    results.provenance.splits = 2;
    for (place, name) in ["first", "<second>"].into_iter().enumerate() {
        let split = SplitSummary { n_cal: 80, n_test: 120, ..SplitSummary::default() };
        results.benchmarks.push(BenchmarkSummary {
            name: name.to_owned(),
            title: format!("The {name}"),
            rows: 200,
            classes: 4,
            splits: vec![split.clone(), SplitSummary { split: 1, ..split }],
            ..BenchmarkSummary::default()
        });
        for alpha in [0.1, 0.05] {
            for (way, procedure) in procedures.iter().enumerate() {
                for split in 0..2 {
                    results.records.push(ConditionalRecord {
                        benchmark: name.to_owned(),
                        procedure: procedure.clone(),
                        alpha,
                        split,
                        coverage: 0.9,
                        average_size: 1.5 + way as f64 + split as f64,
                        covgap: 0.04,
                        worst_class_coverage: 0.7 + 0.1 * way as f64,
                        ..ConditionalRecord::default()
                    });
                }
                results.classes.extend((0..4).map(|class| ClassCoverage {
                    benchmark: name.to_owned(),
                    procedure: procedure.clone(),
                    alpha,
                    class,
                    n_cal: 20,
                    n_test: 30,
                    coverage: [0.7, 0.9, 0.9, 1.0][class as usize],
                    low: 0.75,
                    high: 1.0,
                }));
            }
            results.shift.extend(weightings.iter().enumerate().map(|(way, weighting)| {
                let found = (place == 0 || way == 0).then_some(0.85);
                ShiftRecord {
                    benchmark: name.to_owned(),
                    weighting: weighting.clone(),
                    alpha,
                    coverage: found,
                    average_size: found.map(|_| 2.0),
                    problem: found.is_none().then(|| "no row of class 3".to_owned()),
                    ..ShiftRecord::default()
                }
            }));
        }
    }
    results
}

fn text<'f>(files: &'f [File], path: &str) -> &'f str {
    let file = files.iter().find(|file| file.path == path).unwrap();
    std::str::from_utf8(&file.bytes).unwrap()
}

fn selected(html: &Html, selector: &str) -> Vec<String> {
    html.select(&Selector::parse(selector).unwrap()).map(|element| element.text().collect()).collect()
}

#[test]
fn shows_every_class_and_what_it_costs() {
    let files = render_conditional(&results(), &Options::default());
    let html = Html::parse_document(text(&files, "report/index.html"));
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    let dots = selected(&html, "#figure-1 .panel[data-benchmark='first'] circle");
    assert_eq!(
        dots.len(),
        2 * 2 * 3,
        "at two levels, by two ways, two of four classes have the same coverage"
    );
    assert_eq!(selected(&html, "#figure-1 .panel[data-benchmark='first'] circle.low").len(), 2 * 2);
    for figure in ["#figure-1", "#figure-3"] {
        let titles = selected(&html, &format!("{figure} .panel h4"));
        let wanted = [
            "The first, α = 0.10",
            "The first, α = 0.05",
            "The <second>, α = 0.10",
            "The <second>, α = 0.05",
        ];
        assert_eq!(titles, wanted, "{figure}");
    }
    assert!(selected(&html, "#found .card p").iter().any(|said| {
        said == "One threshold covers its worst class 0.700 of the time; one for each class 0.800, with 3.000 labels in \
                 a set instead of 2.000."
    }));
    assert_eq!(selected(&html, "#table-1 tbody tr").len(), 2 * 2 * 2);
    assert!(
        selected(&html, "#table-2 .note")[0].contains("The <second>: no weights by EM: no row of class 3.")
    );
    assert_eq!(selected(&html, "#figure-3 .panel[data-benchmark='<second>'] circle").len(), 2);
}

#[test]
fn points_only_at_files_that_are_written() {
    let files = render_conditional(&results(), &Options::default());
    let html = Html::parse_document(text(&files, "report/index.html"));
    for element in html.select(&Selector::parse("a[href^='../']").unwrap()) {
        let path = element.attr("href").unwrap().trim_start_matches("../");
        let is_the_studys = ["results.csv", "results.json"].contains(&path);
        assert!(is_the_studys || files.iter().any(|file| file.path == path), "{path}");
    }
    for file in files.iter().filter(|file| file.path.ends_with(".svg")) {
        roxmltree::Document::parse(text(&files, &file.path)).unwrap();
    }
}

#[test]
fn records_keep_every_number() {
    let files = render_conditional(&results(), &Options::default());
    assert_eq!(text(&files, "figures/figure-1-classes.csv").lines().count(), 1 + 2 * 2 * 2 * 4);
    let table = text(&files, "tables/conditional.csv");
    assert!(table.lines().any(|line| line.starts_with("first,0.1,by class,0.9,3,0.04,")), "{table}");
    let shift = text(&files, "tables/label-shift.csv");
    assert!(shift.lines().any(|line| line == "<second>,0.05,weights by EM,,"), "{shift}");
}

#[test]
fn a_study_of_nothing_is_a_page_too() {
    let files = render_conditional(&ConditionalResults::default(), &Options::default());
    let html = Html::parse_document(text(&files, "report/index.html"));
    assert!(html.errors.is_empty(), "{:?}", html.errors);
}
