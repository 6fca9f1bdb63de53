//! What *Try it* carries: rows with their scores, and the thresholds of every procedure and level, as JSON.
//!
//! The page decides with one comparison whether a label is in a set, so scores are written with as few digits as keep
//! them on their side of every threshold they are compared with, and thresholds with all.

use std::collections::BTreeMap;

use conformax_study::{ExampleRow, Examples, RowKind, Way};
use serde_json::{Value, json};

use crate::number;
use crate::view::View;

/// Fewest digits of a score: those that a bar can show.
const DIGITS: usize = 4;
/// Digits of the largest probability of a set, from which the page computes the others.
const MASS_DIGITS: usize = 7;

/// The benchmarks that have rows to try, for the page's script; `None` where none has.
pub(crate) fn json(view: &View<'_>) -> Option<Value> {
    let examples = || view.results.examples.iter().filter(|of| !of.rows.is_empty());
    let names = offered(examples());
    let benchmarks: Vec<Value> = examples().map(|of| benchmark(view, of, &names)).collect();
    let procedures = names.iter().map(|name| json!({ "name": name, "class": class(view, name) }));
    (!benchmarks.is_empty() && !view.results.levels.is_empty()).then(|| {
        json!({
            "levels": view.levels().map(|(_, alpha)| number::level(alpha)).collect::<Vec<_>>(),
            "procedures": procedures.collect::<Vec<_>>(),
            "benchmarks": benchmarks,
        })
    })
}

/// The procedures that some benchmark has answers of: where classes are many, all rows do not choose.
fn offered<'a>(examples: impl Iterator<Item = &'a Examples>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for name in examples.flat_map(|of| &of.procedures) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// How a procedure is drawn; all ways to tune it alike.
fn class<'v>(view: &'v View<'_>, name: &str) -> &'v str {
    let is_its =
        |style: &&conformax_plot::Style| style.name == name || Way::AllRows.named(&style.name) == name;
    view.styles.iter().find(is_its).map_or("", |style| &style.class)
}

fn benchmark(view: &View<'_>, of: &Examples, names: &[&str]) -> Value {
    let summary = view.results.benchmarks.iter().find(|summary| summary.name == of.benchmark);
    // γ = 1 has no temperature: its probabilities are those of softmax over the set, as outside the family.
    let scores = of.scores.iter().map(|score| json!({ "name": score.name, "gamma": score.gamma }));
    let place = |name: &&str| of.procedures.iter().position(|own| own == name);
    let places: Vec<Option<usize>> = names.iter().map(place).collect();
    let rules = places.iter().map(|procedure| {
        let rules = of.rules[(*procedure)?].iter().map(|rule| json!([rule.score, rule.threshold]));
        Some(rules.collect::<Vec<_>>())
    });
    let mut classes: BTreeMap<u32, &str> = BTreeMap::new();
    for row in &of.rows {
        classes.extend(row.labels.iter().copied().zip(row.names.iter().map(String::as_str)));
    }
    json!({
        "name": of.benchmark,
        "title": summary.map_or(&of.benchmark, |summary| &summary.title),
        "scores": scores.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "names": classes,
        "rows": of.rows.iter().map(|row| shown_row(of, row, &places)).collect::<Vec<_>>(),
    })
}

/// A row, with the answers of the procedures at these places; of a procedure without one there are none.
fn shown_row(of: &Examples, row: &ExampleRow, places: &[Option<usize>]) -> Value {
    let thresholds = |place: usize| -> Vec<f64> {
        let rules = of.rules.iter().flatten().filter(|rule| rule.score == place);
        rules.filter_map(|rule| rule.threshold).collect()
    };
    let scores = row.scores.iter().enumerate().map(|(place, scores)| {
        let thresholds = thresholds(place);
        let short = |score: &Option<f64>| score.map(|score| shortened(score, &thresholds));
        scores.iter().map(short).collect::<Vec<_>>()
    });
    let answers = || places.iter().map(|procedure| Some(&row.answers[(*procedure)?]));
    let sizes = answers().map(|levels| Some(levels?.iter().map(|answer| answer.size).collect()));
    let masses = answers().map(|levels| {
        let largest = |answer: &conformax_study::Answer| answer.probabilities.first().copied().unwrap_or(0.0);
        Some(levels?.iter().map(|answer| rounded(largest(answer), MASS_DIGITS)).collect())
    });
    // Where scores choose among themselves there is no one number to compare, and the sets travel themselves.
    let mut chosen: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let there = places.iter().enumerate().filter_map(|(shown, place)| Some((shown, (*place)?)));
    for (shown, procedure) in there {
        let rules = of.rules[procedure].iter().zip(&row.answers[procedure]).enumerate();
        for (level, (_, answer)) in rules.filter(|(_, (rule, _))| rule.is_a_choice) {
            let listed = row.labels.iter().enumerate().filter(|(_, label)| answer.labels.contains(label));
            chosen.insert(format!("{shown},{level}"), listed.map(|(place, _)| place).collect());
        }
    }
    json!({
        "row": number::count(row.row),
        "kind": match row.kind {
            RowKind::Easy => "easy",
            RowKind::Ambiguous => "ambiguous",
            RowKind::Wrong => "wrong",
        },
        "truth": row.labels.iter().position(|label| *label == row.truth),
        "labels": row.labels,
        "logits": row.logits,
        "scores": scores.collect::<Vec<_>>(),
        "sizes": sizes.collect::<Vec<Option<Vec<u64>>>>(),
        "masses": masses.collect::<Vec<Option<Vec<f64>>>>(),
        "chosen": chosen,
    })
}

/// The shortest decimal that every threshold is on the same side of.
fn shortened(score: f64, thresholds: &[f64]) -> f64 {
    let agrees =
        |short: &f64| thresholds.iter().all(|threshold| (score <= *threshold) == (*short <= *threshold));
    (DIGITS..17).map(|digits| rounded(score, digits)).find(agrees).unwrap_or(score)
}

fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_score_on_its_side_of_every_threshold() {
        let score = 1.234_567_890_123_456_7;
        assert_eq!(shortened(score, &[]), 1.235);
        assert_eq!(shortened(score, &[1.2346]), 1.2346);
        assert_eq!(shortened(score, &[1.3, score]), 1.234_567_89);
        let above = f64::from_bits(score.to_bits() + 1);
        assert!(shortened(above, &[score]) > score && shortened(score, &[score]) <= score);
    }
}
