//! Findings: plain sentences about a benchmark, each made of its numbers.

use conformax_study::{BenchmarkSummary, Means, Spread};
use serde::Serialize;

use crate::number;
use crate::view::{Cell, View};

/// One thing found, under a word that says what it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) about: &'static str,
    pub(crate) sentence: String,
}

/// What was found on one benchmark.
pub(crate) fn of_benchmark(view: &View<'_>, benchmark: usize, summary: &BenchmarkSummary) -> Vec<Finding> {
    let found = [
        ("Size", sizes(view, benchmark)),
        ("Coverage", coverage(view, benchmark)),
        ("Singletons", singletons(view, benchmark)),
        ("Evenness", evenness(view, benchmark)),
        ("Choice of γ", choice_of_gamma(view, benchmark)),
        ("Tuning", tuning(view, summary)),
    ];
    found
        .into_iter()
        .filter_map(|(about, sentence)| Some(Finding { about, sentence: bound(&sentence?) }))
        .collect()
}

/// Keeps an equation or a spread on one line, by spaces that do not break.
pub(crate) fn bound(sentence: &str) -> String {
    sentence.replace(" = ", "\u{a0}=\u{a0}").replace(" − ", "\u{a0}−\u{a0}").replace(" ± ", "\u{a0}±\u{a0}")
}

/// How many splits the sentences' means are over.
pub(crate) fn splits(view: &View<'_>) -> u64 {
    view.results.means.first().map_or(view.results.provenance.splits, |means| means.coverage.splits)
}

/// Which mean a sentence speaks of.
#[derive(Clone, Copy)]
pub(crate) struct Quantity {
    of_many: fn(&Means) -> Option<Spread>,
    of_record: fn(&conformax_study::Record) -> Option<f64>,
}

pub(crate) const SIZE: Quantity =
    Quantity { of_many: |m| Some(m.average_size), of_record: |r| Some(r.average_size) };
pub(crate) const COVERAGE: Quantity =
    Quantity { of_many: |m| Some(m.coverage), of_record: |r| Some(r.coverage) };
pub(crate) const SINGLETONS: Quantity =
    Quantity { of_many: |m| Some(m.singleton_ratio), of_record: |r| Some(r.singleton_ratio) };
const THEIR_COVERAGE: Quantity =
    Quantity { of_many: |m| m.singleton_coverage, of_record: |r| r.singleton_coverage };
pub(crate) const SSCV: Quantity = Quantity { of_many: |m| Some(m.sscv), of_record: |r| Some(r.sscv) };

/// The mean over the claims' many splits, or over the study's where it has no more.
pub(crate) fn mean(view: &View<'_>, cell: Cell, quantity: Quantity) -> Option<f64> {
    let results = view.results;
    let many = results.means.iter().find(|means| {
        means.benchmark == results.benchmarks[cell.benchmark].name
            && means.procedure == results.procedures[cell.procedure]
            && means.alpha == results.levels[cell.level]
    });
    let spread = match many {
        Some(means) => (quantity.of_many)(means),
        None => view.spread_of(cell, quantity.of_record),
    };
    spread.map(|spread| spread.mean)
}

/// The procedures that have the quantity at this level, from the smallest to the largest.
pub(crate) fn ranked<'a>(
    view: &View<'a>,
    benchmark: usize,
    level: usize,
    quantity: Quantity,
) -> Vec<(&'a str, f64)> {
    let mut values: Vec<_> = view
        .procedures()
        .filter_map(|(procedure, name)| {
            Some((name, mean(view, Cell { benchmark, procedure, level }, quantity)?))
        })
        .collect();
    values.sort_by(|a, b| a.1.total_cmp(&b.1));
    values
}

/// Names whose value prints as the first one's does: a difference that cannot be seen is not told.
fn leaders(values: &[(&str, f64)], print: fn(f64) -> String) -> Option<(String, String)> {
    let first = print(values.first()?.1);
    let names: Vec<String> = values
        .iter()
        .take_while(|(_, value)| print(*value) == first)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    Some((number::listed(&names), first))
}

/// The names and printed value at each end, or `None` where all print alike.
fn ends(values: &[(&str, f64)], print: fn(f64) -> String) -> Option<[(String, String); 2]> {
    let backwards: Vec<_> = values.iter().rev().copied().collect();
    let (low, high) = (leaders(values, print)?, leaders(&backwards, print)?);
    (low.1 != high.1).then_some([low, high])
}

/// The outer two of the printed levels, the loosest first.
pub(crate) fn outer_levels(view: &View<'_>) -> Vec<usize> {
    match view.printed_levels().as_slice() {
        [] => Vec::new(),
        [one] => vec![*one],
        [first, .., last] => vec![*first, *last],
    }
}

fn sentence_per_level(view: &View<'_>, clause: impl Fn(usize, &str) -> Option<String>) -> Option<String> {
    let clauses: Vec<String> = outer_levels(view)
        .into_iter()
        .filter_map(|level| clause(level, &format!("α = {}", number::level(view.results.levels[level]))))
        .collect();
    let text = clauses.join("; ");
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).chain(['.']).collect())
}

fn sizes(view: &View<'_>, benchmark: usize) -> Option<String> {
    sentence_per_level(view, |level, at| {
        let values = ranked(view, benchmark, level, SIZE);
        match ends(&values, number::size) {
            Some([low, high]) => Some(format!(
                "at {at} sets hold {} labels on average with {} and {} with {}",
                low.1, low.0, high.1, high.0
            )),
            None => values.first().map(|(_, size)| {
                format!("at {at} sets hold {} labels on average with every procedure", number::size(*size))
            }),
        }
    })
}

/// The mean coverage furthest from 1 − α: how many percentage points away, rounded up, whose, at which level, and
/// itself.
pub(crate) fn furthest<'a>(view: &View<'a>, benchmark: usize) -> Option<(f64, &'a str, f64, f64)> {
    let mut furthest: Option<(f64, &'a str, f64, f64)> = None;
    for (level, alpha) in view.levels() {
        for (procedure, name) in view.procedures() {
            let Some(value) = mean(view, Cell { benchmark, procedure, level }, COVERAGE) else { continue };
            let distance = (value - (1.0 - alpha)).abs();
            if furthest.is_none_or(|(so_far, ..)| distance > so_far) {
                furthest = Some((distance, name, alpha, value));
            }
        }
    }
    furthest.map(|(distance, name, alpha, value)| (100.0 * distance + 0.005, name, alpha, value))
}

fn coverage(view: &View<'_>, benchmark: usize) -> Option<String> {
    let (distance, name, alpha, value) = furthest(view, benchmark)?;
    Some(format!(
        "Mean coverage is within {distance:.2} percentage points of 1 − α for every procedure and level; furthest away is \
         {name} at α = {}, with {value:.4}.",
        number::level(alpha)
    ))
}

fn singletons(view: &View<'_>, benchmark: usize) -> Option<String> {
    sentence_per_level(view, |level, at| {
        let values = ranked(view, benchmark, level, SINGLETONS);
        let Some([low, high]) = ends(&values, number::share) else {
            return values.first().map(|(_, share)| {
                format!(
                    "at {at} the share of one-label sets is {} with every procedure",
                    number::share(*share)
                )
            });
        };
        let right = ranked(view, benchmark, level, THEIR_COVERAGE);
        let right = match (right.first(), right.last()) {
            (Some(least), Some(most)) if number::share(least.1) == number::share(most.1) => {
                format!(", {} of them right", number::share(least.1))
            }
            (Some(least), Some(most)) => {
                format!(", {} to {} of them right", number::share(least.1), number::share(most.1))
            }
            _ => String::new(),
        };
        Some(format!(
            "at {at} the share of one-label sets runs from {} ({}) to {} ({}){right}",
            low.1, low.0, high.1, high.0
        ))
    })
}

fn evenness(view: &View<'_>, benchmark: usize) -> Option<String> {
    sentence_per_level(view, |level, at| {
        let [low, high] = ends(&ranked(view, benchmark, level, SSCV), number::share)?;
        Some(format!("at {at} SSCV is {} with {} and {} with {}", low.1, low.0, high.1, high.0))
    })
}

fn choice_of_gamma(view: &View<'_>, benchmark: usize) -> Option<String> {
    let (procedure, name) = view.procedures().find(|(procedure, _)| {
        let of = |level| view.records(Cell { benchmark, procedure: *procedure, level });
        view.levels()
            .any(|(level, _)| of(level).iter().any(|record| record.n_tune > 0 && record.gamma.is_some()))
    })?;
    let text = sentence_per_level(view, |level, at| {
        let mut chosen: Vec<f64> = view
            .records(Cell { benchmark, procedure, level })
            .iter()
            .filter_map(|record| record.gamma)
            .collect();
        chosen.sort_by(f64::total_cmp);
        let (low, high) = (*chosen.first()?, *chosen.last()?);
        let range = if low == high { format!("{low}") } else { format!("between {low} and {high}") };
        Some(format!("at {at} the γ that {name} chose is {range}"))
    })?;
    Some(format!(
        "{} over the study’s {} splits.",
        text.trim_end_matches('.'),
        view.results.provenance.splits
    ))
}

fn tuning(view: &View<'_>, summary: &BenchmarkSummary) -> Option<String> {
    let level = *view.printed_levels().first()?;
    let alpha = view.results.levels[level];
    let clauses: Vec<String> = view
        .results
        .tuning
        .iter()
        .filter(|comparison| comparison.benchmark == summary.name && comparison.alpha == alpha)
        .map(|comparison| {
            let difference = comparison.coverage_difference;
            format!(
                "{} ± {:.4} for {}",
                number::signed(difference.mean, 4),
                difference.standard_error,
                comparison.procedure
            )
        })
        .collect();
    (!clauses.is_empty()).then(|| {
        format!(
            "The paper’s way of tuning changes coverage at α = {} by {}.",
            number::level(alpha),
            number::listed(&clauses)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_no_difference_that_cannot_be_seen() {
        let values = [("a", 1.0001), ("b", 1.0002), ("c", 2.0)];
        let [low, high] = ends(&values, number::size).unwrap();
        assert_eq!((low.0.as_str(), low.1.as_str()), ("a and b", "1.000"));
        assert_eq!((high.0.as_str(), high.1.as_str()), ("c", "2.000"));
        assert_eq!(ends(&values[..2], number::size), None);
    }
}
