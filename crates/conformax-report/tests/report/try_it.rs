//! *Try it*: what the page carries decides as the library does.

use conformax_study::Results;
use scraper::{Html, Selector};
use serde_json::Value;

use crate::rendered::Rendered;
use crate::synthetic;

fn carried(rendered: &Rendered) -> Value {
    let html = Html::parse_document(rendered.text("report/index.html"));
    let script = html.select(&Selector::parse("script#examples").unwrap()).next().unwrap();
    serde_json::from_str(&script.text().collect::<String>()).unwrap()
}

/// A number, or +∞ where there is none.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::INFINITY)
}

#[test]
fn one_comparison_decides_as_the_library_does() {
    let rendered = Rendered::shared();
    let carried = carried(rendered);
    let (mut sets, mut members) = (0, 0);
    for (b, examples) in rendered.results.examples.iter().enumerate() {
        let benchmark = &carried["benchmarks"][b];
        for (r, row) in examples.rows.iter().enumerate() {
            for (p, levels) in row.answers.iter().enumerate() {
                for (l, answer) in levels.iter().enumerate() {
                    let rule = &benchmark["rules"][p][l];
                    let scores = &benchmark["rows"][r]["scores"][rule[0].as_u64().unwrap() as usize];
                    let inside: Vec<u32> = (0..row.labels.len())
                        .filter(|label| number(&scores[label]) <= number(&rule[1]))
                        .map(|label| row.labels[label])
                        .collect();
                    assert_eq!(
                        inside, answer.labels,
                        "{} row {r}, procedure {p}, level {l}",
                        examples.benchmark
                    );
                    assert_eq!(benchmark["rows"][r]["sizes"][p][l], answer.size);
                    (sets, members) = (sets + 1, members + inside.len());
                }
            }
        }
    }
    assert!(sets >= 2_000 && members > 2 * sets, "{sets} sets with {members} labels");
}

#[test]
fn sets_travel_themselves_where_scores_choose_among_themselves() {
    let mut results = synthetic::results();
    for rule in &mut results.examples[0].rules[6] {
        rule.is_a_choice = true;
    }
    let carried = carried(&Rendered::of(results.clone()));
    let row = &results.examples[0].rows[4];
    for (level, answer) in row.answers[6].iter().enumerate() {
        let places = carried["benchmarks"][0]["rows"][4]["chosen"][format!("6,{level}")].as_array().unwrap();
        let labels: Vec<u32> =
            places.iter().map(|place| row.labels[place.as_u64().unwrap() as usize]).collect();
        assert_eq!(labels, answer.labels);
    }
    assert!(carried["benchmarks"][1]["rows"][4]["chosen"].as_object().unwrap().is_empty());
}

#[test]
fn what_one_benchmark_lacks_is_offered_with_the_others() {
    let mut results = synthetic::results();
    let names = |carried: &Value| -> Vec<String> {
        let all = carried["procedures"].as_array().unwrap().iter();
        all.map(|procedure| procedure["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&carried(Rendered::shared())), results.examples[0].procedures);
    // With many classes all rows do not choose; and procedures go by name, wherever they stand.
    let examples = &mut results.examples[2];
    examples.procedures.pop();
    examples.procedures.swap(0, 3);
    let carried = carried(&Rendered::of(results.clone()));
    assert_eq!(names(&carried), results.examples[0].procedures);
    for (place, benchmark) in carried["benchmarks"].as_array().unwrap().iter().enumerate() {
        let is_there = |key: &str| !benchmark["rows"][1][key][6].is_null();
        assert_eq!((!benchmark["rules"][6].is_null(), is_there("sizes")), (place != 2, place != 2));
        assert_eq!(is_there("masses"), place != 2);
    }
    let sizes =
        |procedure: usize| carried["benchmarks"][2]["rows"][1]["sizes"][procedure][2].as_u64().unwrap();
    let row = &results.examples[2].rows[1];
    assert_eq!((sizes(0), sizes(3)), (row.answers[3][2].size, row.answers[0][2].size));
}

#[test]
fn the_page_stays_small() {
    let bytes = Rendered::shared().text("report/index.html").len();
    assert!(bytes < 1_500_000, "{bytes} bytes");
}

#[test]
fn there_is_no_strip_without_rows() {
    let results = Results { examples: Vec::new(), ..synthetic::results() };
    let html = Html::parse_document(Rendered::of(results).text("report/index.html"));
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    assert_eq!(html.select(&Selector::parse("#try, #examples, a[href='#try']").unwrap()).count(), 0);
}
