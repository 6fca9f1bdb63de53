//! The page: valid HTML that needs nothing from outside, whatever a study contains.

use conformax_report::{Options, render};
use conformax_study::{AbsentBenchmark, Results, SELECTION_CLASSES, Verdict};
use scraper::{Html, Selector};

use crate::rendered::Rendered;
use crate::synthetic;

fn page(results: Results) -> Html {
    let html = Html::parse_document(Rendered::of(results).text("report/index.html"));
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    html
}

fn texts(html: &Html, selector: &str) -> Vec<String> {
    html.select(&Selector::parse(selector).unwrap()).map(|element| element.text().collect()).collect()
}

#[test]
fn parses_and_has_every_figure_table_and_control() {
    let html = page(synthetic::results());
    for number in 1..=9 {
        assert_eq!(texts(&html, &format!("#figure-{number} details table")).len(), 1, "figure {number}");
    }
    for id in ["table-1", "table-3", "tuning", "strata", "claims", "provenance"] {
        assert_eq!(texts(&html, &format!("#{id}")).len(), 1, "{id}");
    }
    assert_eq!(texts(&html, "[data-toggle]").len(), 6);
    assert_eq!(texts(&html, "#benchmark option").len(), 5);
    assert_eq!(texts(&html, "#alpha[max='9']").len(), 1);
    assert_eq!(texts(&html, "[data-strata-level]").len(), 4 * 3);
    assert_eq!(texts(&html, "li.claim").len(), 12);
}

#[test]
fn needs_nothing_from_outside() {
    let html = page(synthetic::results());
    let links = Selector::parse("[href], [src]").unwrap();
    for element in html.select(&links) {
        let value = element.attr("href").or(element.attr("src")).unwrap();
        assert!(["#", "../", "data:,"].iter().any(|start| value.starts_with(start)), "{value}");
    }
    let text = Rendered::shared().text("report/index.html").to_owned();
    assert!(!text.contains("@import") && !text.contains("url("));
}

#[test]
fn points_only_at_files_that_are_written() {
    let rendered = Rendered::shared();
    let html = Html::parse_document(rendered.text("report/index.html"));
    let written: Vec<&str> = rendered.paths().collect();
    for element in html.select(&Selector::parse("a[href^='../']").unwrap()) {
        let path = element.attr("href").unwrap().trim_start_matches("../");
        let is_the_studys = ["results.csv", "results.json", "tables/"].contains(&path);
        assert!(is_the_studys || written.contains(&path), "{path}");
    }
}

#[test]
fn links_the_conditional_page_where_it_is_and_says_how_it_is_made_elsewhere() {
    let link = "a[href='../../conditional/report/index.html']";
    let beside = Options { conditional_beside: true, ..Options::default() };
    for (results, options, links, told) in [
        (synthetic::results(), Options::default(), 0, true),
        (synthetic::results(), beside, 1, false),
        (own(), beside, 0, false),
    ] {
        let files = render(&results, &options);
        let page = files.iter().find(|file| file.path == "report/index.html").unwrap();
        let html = Html::parse_document(std::str::from_utf8(&page.bytes).unwrap());
        let said = texts(&html, "#coverage .intro")[0].contains("conformax study conditional");
        assert_eq!((texts(&html, link).len(), said), (links, told));
    }
}

#[test]
fn shows_the_records_means_at_the_first_level() {
    let rendered = Rendered::shared();
    let html = Html::parse_document(rendered.text("report/index.html"));
    let shown = texts(&html, ".glance[data-benchmark='cifar100'] tr[data-procedure='sparsemax'] td span");
    let records = rendered.records("cifar100", "sparsemax", 0.1);
    let size = crate::rendered::mean(records.iter().map(|r| r.average_size));
    assert_eq!(shown[1], format!("{size:.3}"));
}

#[test]
fn series_that_are_no_procedures_are_named_beside_their_figure() {
    let html = page(synthetic::results());
    let names = ["rows set aside", "the paper’s tuning", "all rows"];
    assert_eq!(texts(&html, "#figure-10 .legend span"), names);
    assert_eq!(texts(&html, "#figure-4 .legend").len(), 0, "the chips name procedures");
}

#[test]
fn what_all_rows_tune_stands_in_the_table_with_its_splits() {
    let rendered = Rendered::shared();
    let html = Html::parse_document(rendered.text("report/index.html"));
    for name in ["RAPS (all rows)", "opt-entmax (all rows)"] {
        let row = format!(".glance[data-benchmark='cifar100'] tr[data-procedure='{name}'] td span");
        let here = rendered.results.tuned.iter().filter(|record| {
            (record.benchmark.as_str(), record.procedure.as_str(), record.alpha) == ("cifar100", name, 0.1)
        });
        let size = crate::rendered::mean(here.map(|record| record.average_size));
        assert_eq!(texts(&html, &row)[1], format!("{size:.3}"), "{name}");
    }
    let note = &texts(&html, "#level .note")[0];
    assert_eq!(note, "RAPS (all rows) and opt-entmax (all rows): over the first 2 splits.");
    let results = Results { tuned: vec![], ..synthetic::results() };
    assert!(texts(&page(results), "#level .note").is_empty());
}

#[test]
fn sentences_name_the_smallest_and_the_largest() {
    let rendered = Rendered::shared();
    let html = Html::parse_document(rendered.text("report/index.html"));
    let said = texts(&html, "[data-found='imagenet5k'] dd").join(" ").replace('\u{a0}', " ");
    let at = |procedure: &str| {
        let means = rendered.results.means.iter();
        let mut here = means.filter(|m| m.benchmark == "imagenet5k" && m.alpha == 0.01);
        here.find(|m| m.procedure == procedure).unwrap().average_size.mean
    };
    let wanted = format!(
        "at α = 0.01 sets hold {:.2} labels on average with InvProb and {:.2} with sparsemax",
        at("InvProb"),
        at("sparsemax")
    );
    assert!(said.contains(&wanted), "{said}\nwanted: {wanted}");
}

#[test]
fn every_benchmark_has_four_small_charts_with_a_sentence_each() {
    let html = page(synthetic::results());
    for benchmark in ["cifar10", "cifar100", "imagenet5k", "newsgroups"] {
        let found = format!("[data-found='{benchmark}']");
        let about = texts(&html, &format!("{found} .chart h4"));
        assert_eq!(about, ["Size", "Coverage", "Singletons", "Evenness"]);
        let sentences = texts(&html, &format!("{found} .chart .sentence"));
        assert_eq!(sentences.len(), 4);
        assert!(sentences.iter().all(|said| said.ends_with('.') && said.len() < 160), "{sentences:?}");
        // Two levels each, and a dot for every procedure.
        assert_eq!(texts(&html, &format!("{found} .line .dot")).len(), 4 * 2 * 6);
        assert_eq!(texts(&html, &format!("{found} .line .dot.ours")).len(), 4 * 2);
        assert_eq!(texts(&html, &format!("{found} details.in-words dl")).len(), 1);
    }
    // Printed: coverage at both levels everywhere, strata of three benchmarks at both.
    assert_eq!(texts(&html, "#found .line .paper").len(), 4 * 2 + 3 * 2 * 2);
}

#[test]
fn a_small_chart_says_what_the_means_are() {
    let rendered = Rendered::shared();
    let html = Html::parse_document(rendered.text("report/index.html"));
    let mean = |procedure: &str| {
        let is_here = |m: &&conformax_study::Means| {
            m.benchmark == "cifar100" && m.procedure == procedure && m.alpha == 0.01
        };
        rendered.results.means.iter().find(is_here).unwrap().average_size.mean
    };
    let said = texts(&html, "[data-found='cifar100'] .chart .sentence")[0].replace('\u{a0}', " ");
    let wanted = format!(
        "At α = 0.01 opt-entmax takes {:.3} labels, the others {:.3} (InvProb) to {:.2} (sparsemax).",
        mean("opt-entmax"),
        mean("InvProb"),
        mean("sparsemax")
    );
    assert_eq!(said, wanted);
}

#[test]
fn says_which_benchmark_is_absent_and_what_to_do() {
    let absent = AbsentBenchmark {
        name: "imagenet5k".to_owned(),
        title: "ImageNet-5k".to_owned(),
        advice: "Point at it with --benchmarks.".to_owned(),
    };
    let html = page(Results { absent: vec![absent], ..synthetic::results() });
    let said = texts(&html, ".absent");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("ImageNet-5k is not in this report.") && said[0].contains("--benchmarks"));
}

#[test]
fn holds_for_a_study_that_found_nothing() {
    let html = page(Results::default());
    assert!(texts(&html, "h1")[0].contains("sparse activations"));
}

#[test]
fn holds_for_one_benchmark_one_procedure_one_level_one_split() {
    let mut results = synthetic::results();
    results.benchmarks.truncate(1);
    results.procedures.truncate(1);
    results.levels = vec![0.2];
    results.records.truncate(1);
    results.records[0].alpha = 0.2;
    results.records[0].threshold = f64::INFINITY;
    results.provenance.splits = 1;
    let results = Results {
        means: vec![],
        bands: vec![],
        tuning: vec![],
        gamma_on_test: vec![],
        gamma_on_tuning: vec![],
        claims: vec![],
        ..results
    };
    let html = page(results);
    assert_eq!(texts(&html, ".glance tbody tr").len(), 1);
    assert!(texts(&html, "li.claim").is_empty());
}

#[test]
fn a_name_cannot_break_out_of_the_page() {
    for name in ["</script><b>\"&'", "<!--<script>", "<!-- --><script>x</script>"] {
        let mut results = synthetic::results();
        results.procedures[0] = name.to_owned();
        for record in results.records.iter_mut().filter(|record| record.procedure == "InvProb") {
            record.procedure = name.to_owned();
        }
        for examples in &mut results.examples {
            examples.procedures[0] = name.to_owned();
        }
        let html = page(results);
        assert!(texts(&html, "[data-toggle]").iter().any(|text| text.trim() == name), "{name}");
        assert_eq!(html.select(&Selector::parse("script").unwrap()).count(), 3, "{name}");
        let examples: serde_json::Value = serde_json::from_str(&texts(&html, "#examples")[0]).unwrap();
        assert_eq!(examples["procedures"][0]["name"], name);
        let numbers: serde_json::Value = serde_json::from_str(&texts(&html, "#numbers")[0]).unwrap();
        assert_eq!(numbers["procedures"][0], name);
    }
}

#[test]
fn says_where_classes_are_too_many_for_all_rows_to_choose() {
    let mut results = synthetic::results();
    results.benchmarks[0].classes = SELECTION_CLASSES as u64 + 1;
    results.tuned.retain(|record| record.benchmark != "cifar10");
    results.tuning_ways.retain(|way| way.benchmark != "cifar10");
    let html = page(results);
    let note = "All rows do not choose on CIFAR-10: with more than 2,000 classes";
    for section in ["#level .note", "#tuning .note"] {
        assert!(texts(&html, section).iter().any(|text| text.contains(note)), "{section}");
    }
}

#[test]
fn marks_a_procedures_cells_for_hiding() {
    let html = page(synthetic::results());
    assert_eq!(texts(&html, "#table-1 thead th[data-procedure='RAPS']"), ["RAPS"]);
    let cells = texts(&html, "#table-1 tbody td[data-procedure='RAPS']");
    assert_eq!(cells.len(), 2 * 4);
    assert!(cells.iter().all(|cell| cell.contains("paper 0.")), "{cells:?}");
}

#[test]
fn says_whose_rows_and_classifiers_the_verdicts_are_about() {
    let mut results = synthetic::results();
    results.claims[0].verdict = Verdict::Irrefutable;
    let html = page(results);
    let said = texts(&html, ".tally")[0].split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["on these rows", "classifiers that are not the paper’s", "3 reproduced", "1 irrefutable"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    let caption = &texts(&html, "#figure-7 .caption")[0];
    assert!(caption.contains("as long as no two scores tie"), "{caption}");
}

/// What a study of one's own leaves: no claims, no splits for them, nothing that the paper prints.
fn own() -> Results {
    let mut results = Results { claims: Vec::new(), ..synthetic::results() };
    results.provenance.claim_splits = 0;
    for benchmark in &mut results.benchmarks {
        benchmark.name = format!("my {}", benchmark.name);
    }
    for record in &mut results.records {
        record.benchmark = format!("my {}", record.benchmark);
    }
    for means in &mut results.means {
        means.benchmark = format!("my {}", means.benchmark);
    }
    for record in &mut results.tuned {
        record.benchmark = format!("my {}", record.benchmark);
    }
    for way in &mut results.tuning_ways {
        way.benchmark = format!("my {}", way.benchmark);
    }
    for examples in &mut results.examples {
        examples.benchmark = format!("my {}", examples.benchmark);
    }
    results
}

#[test]
fn a_study_of_ones_own_is_not_held_against_the_paper() {
    let rendered = Rendered::of(own());
    let html = Html::parse_document(rendered.text("report/index.html"));
    assert!(texts(&html, "#found .intro")[0].starts_with("On these rows; means over 5 splits of them."));
    assert!(texts(&html, ".tally").is_empty() && texts(&html, "#claims").is_empty());
    assert!(texts(&html, "#found .paper").is_empty());
    assert!(!texts(&html, "#provenance .facts")[0].contains("claims"));
    assert!(!rendered.paths().any(|path| path.contains("claims")));
    for table in ["table-1-coverage", "table-3-accuracy"] {
        assert!(!rendered.text(&format!("tables/{table}.md")).contains("Not like for like"), "{table}");
    }
}
