//! `index.html`: one page that carries its style, script, drawings and numbers inside.

use std::collections::BTreeMap;

use conformax_plot::{Element, Style, swatch};
use conformax_study::{BenchmarkSummary, Claim, Provenance, Verdict};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;

use crate::Options;
use crate::figure::Figure;
use crate::number;
use crate::table::{METRICS, Metric, Table, Tables, verdict};
use crate::view::{Cell, View};
use crate::{findings, small_chart, style, try_it};

const TEMPLATE: &str = include_str!("../templates/page.html");
/// How figures and tables are written, in every page.
const MACROS: &str = include_str!("../templates/macros.html");
const STYLE: &str = include_str!("../templates/page.css");
/// Theme, letters and hovering, in every page.
const COMMON_SCRIPT: &str = include_str!("../templates/common.js");
const SCRIPT: &str = include_str!("../templates/page.js");
const TRY_IT: &str = include_str!("../templates/try-it.js");

/// The whole page.
pub(crate) fn html(view: &View<'_>, figures: &[Figure], tables: &Tables, options: &Options) -> String {
    let conditional = context! {
        // The other study is about the paper's benchmarks, and no other page has a word on it.
        is_told => view.results.provenance.claim_splits > 0,
        is_beside => options.conditional_beside,
    };
    render_template(TEMPLATE, context! { conditional, ..content(view, figures, tables) })
}

/// A page of these contents, with the style, the colours and the script of all.
pub(crate) fn render_template(template: &'static str, content: Value) -> String {
    let text = [MACROS, template].concat();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters do not clash"));
    environment.add_template("page", &text).expect("the built-in templates are well-formed");
    let page = environment.get_template("page").expect("it was added above");
    let common = context! {
        css => Value::from_safe_string(STYLE.to_owned()),
        colours => colours(),
        common_js => Value::from_safe_string(COMMON_SCRIPT.to_owned()),
    };
    page.render(context! { ..content, ..common }).expect("the template names only what is given to it")
}

fn content(view: &View<'_>, figures: &[Figure], tables: &Tables) -> Value {
    let results = view.results;
    let printed: Vec<String> =
        view.printed_levels().iter().map(|&level| number::level(results.levels[level])).collect();
    let chosen = view.printed_levels().first().copied().unwrap_or(0);
    context! {
        js => Value::from_safe_string(SCRIPT.to_owned()),
        try_it_js => Value::from_safe_string(TRY_IT.to_owned()),
        examples => try_it::json(view).map(|examples| Value::from_safe_string(inside_script(&examples))),
        ours => small_chart::ours(view).map(|(procedure, name)| context! { name, class => view.styles[procedure].class.as_str() }),
        numbers => Value::from_safe_string(numbers(view)),
        study => results.study.as_str(),
        lede => lede(view),
        hero => hero(view, figures),
        verdicts => verdict_counts(&results.claims),
        has_ticks => view.benchmarks().any(|(b, _)| small_chart::have_ticks(&small_chart::of_benchmark(view, b))),
        has_printed => view.has_printed_numbers(),
        findings_splits => findings::splits(view),
        benchmarks => benchmarks(view, chosen),
        absent => Value::from(Serde(&results.absent)),
        procedures => chips(&view.styles),
        levels => levels(view),
        chosen => results.levels.get(chosen).map(|&alpha| number::level(alpha)),
        glance_notes => [view.all_rows_note(), view.too_wide_note()].into_iter().flatten().collect::<Vec<_>>(),
        metrics => METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>(),
        figures => figures.iter().map(|figure| (figure.number.to_string(), shown_figure(figure))).collect::<BTreeMap<_, _>>(),
        coverage => shown_table(&tables.coverage),
        accuracy => shown_table(&tables.accuracy),
        tuning => shown_table(&only_levels(&tables.tuning, &printed)),
        has_tuning => !results.tuning.is_empty(),
        strata => strata(tables),
        printed_levels => printed,
        claims => results.claims.iter().map(|claim| shown_claim(view, claim)).collect::<Vec<_>>(),
        claim_splits => results.provenance.claim_splits,
        claim_notes => tables.claims.notes.clone(),
        provenance => provenance(&results.provenance, &results.benchmarks),
    }
}

/// What the study is, in a sentence.
fn lede(view: &View<'_>) -> String {
    let results = view.results;
    let few =
        |n: usize, one: &str, more: &str| format!("{} {}", number::word(n), if n == 1 { one } else { more });
    let splits = results.provenance.splits as usize;
    let text = format!(
        "{} on {} at {}, over {}: {} measurements.",
        few(results.procedures.len(), "procedure", "procedures"),
        few(results.benchmarks.len(), "benchmark", "benchmarks"),
        few(results.levels.len(), "level", "levels"),
        few(splits, "random split", "random splits"),
        number::count(results.records.len() as u64)
    );
    sentence(&text)
}

/// With a capital at its start and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let mut out: String =
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    if !out.ends_with('.') {
        out.push('.');
    }
    out
}

/// The panel of Figure 4 that a reader sees first: of the benchmark with the most classes, where sets differ most.
fn hero(view: &View<'_>, figures: &[Figure]) -> Option<Value> {
    let figure = figures.iter().find(|figure| figure.number == 4)?;
    let (benchmark, summary) = view.benchmarks().max_by_key(|(_, summary)| summary.classes)?;
    let panel = figure.panels.get(benchmark)?;
    Some(context! {
        title => format!("Labels in a set on {}, as more confidence is asked for", summary.title),
        svg => Value::from_safe_string(panel.drawn.inline()),
    })
}

fn verdict_counts(claims: &[Claim]) -> Value {
    let count = |wanted| claims.iter().filter(|claim| claim.verdict == wanted).count();
    context! {
        all => claims.len(),
        reproduced => count(Verdict::Reproduced),
        not_reproduced => count(Verdict::NotReproduced),
        undecided => count(Verdict::Undecided),
        irrefutable => count(Verdict::Irrefutable),
    }
}

/// A rule per series that gives it its colour by day and by night.
fn colours() -> Value {
    let rule = |(class, light, dark)| format!(".{class}{{--c:light-dark({light},{dark})}}");
    Value::from_safe_string(style::palette().map(rule).collect())
}

#[derive(Serialize)]
struct Number {
    text: String,
    spread: String,
}

fn shown_number(view: &View<'_>, cell: Cell, metric: Metric) -> Number {
    match view.spread_of(cell, metric.read) {
        None => Number { text: "–".to_owned(), spread: String::new() },
        Some(spread) => Number {
            text: (metric.print)(spread.mean),
            spread: if spread.splits > 1 {
                format!("± {}", (metric.print)(spread.deviation))
            } else {
                String::new()
            },
        },
    }
}

/// The numbers of the table that follows the chosen level, as JSON: `[benchmark][level][procedure][metric]`.
fn numbers(view: &View<'_>) -> String {
    let of_cell = |benchmark, level, procedure| -> Vec<[String; 2]> {
        let shown = METRICS.iter().map(|metric| {
            let Number { text, spread } = shown_number(view, Cell { benchmark, procedure, level }, *metric);
            [text, spread]
        });
        shown.collect()
    };
    let numbers: Vec<Vec<Vec<Vec<[String; 2]>>>> = view
        .benchmarks()
        .map(|(benchmark, _)| {
            let of_level = |(level, _)| view.tabled().map(|(p, _)| of_cell(benchmark, level, p)).collect();
            view.levels().map(of_level).collect()
        })
        .collect();
    let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
    let all = serde_json::json!({
        "benchmarks": view.benchmarks().map(|(_, summary)| &summary.name).collect::<Vec<_>>(),
        "levels": view.levels().map(|(_, alpha)| number::level(alpha)).collect::<Vec<_>>(),
        "procedures": view.tabled().map(|(_, name)| name).collect::<Vec<_>>(),
        "metrics": keys,
        "numbers": numbers,
    });
    inside_script(&all)
}

/// Inside a script element `</script` would end it early, and `<!--<script` would hide its true end. A JSON text has
/// `<` in strings alone, where it may be written so that neither can occur.
fn inside_script(json: &serde_json::Value) -> String {
    json.to_string().replace('<', "\\u003c")
}

/// The names of procedures with how they are drawn, to press.
pub(crate) fn chips(styles: &[Style]) -> Vec<Value> {
    let shown = |style: &Style| {
        let mut svg = String::new();
        Element::new("svg")
            .set("viewBox", "0 0 26 10")
            .set("class", "swatch")
            .set("aria-hidden", "true")
            .with(swatch(style, 0.0, 5.0))
            .write(&mut svg);
        context! { name => style.name.as_str(), swatch => Value::from_safe_string(svg) }
    };
    styles.iter().map(shown).collect()
}

/// Levels from the loosest, as the slider runs.
fn levels(view: &View<'_>) -> Vec<String> {
    let mut levels = view.results.levels.clone();
    levels.sort_by(|a, b| b.total_cmp(a));
    levels.into_iter().map(number::level).collect()
}

fn benchmarks(view: &View<'_>, chosen: usize) -> Vec<Value> {
    view.benchmarks()
        .map(|(benchmark, summary)| {
            let glance: Vec<Value> = view
                .tabled()
                .map(|(procedure, name)| {
                    let cell = Cell { benchmark, procedure, level: chosen };
                    let numbers: Vec<Number> =
                        METRICS.iter().map(|metric| shown_number(view, cell, *metric)).collect();
                    context! { name, numbers => Value::from(Serde(numbers)) }
                })
                .collect();
            context! {
                name => summary.name.as_str(),
                title => summary.title.as_str(),
                about => format!(
                    "{} rows, {} classes, accuracy {}",
                    number::count(summary.rows),
                    number::count(summary.classes),
                    number::share(summary.accuracy)
                ),
                findings => Value::from(Serde(findings::of_benchmark(view, benchmark, summary))),
                charts => Value::from(Serde(small_chart::of_benchmark(view, benchmark))),
                glance,
            }
        })
        .collect()
}

pub(crate) fn shown_figure(figure: &Figure) -> Value {
    // The page's own key of procedures has the others.
    let unnamed: Vec<Style> = figure.key.iter().filter(|style| style.class.is_empty()).cloned().collect();
    let panels: Vec<Value> = figure
        .panels
        .iter()
        .map(|panel| {
            context! {
                title => panel.drawn.title.as_str(),
                benchmark => panel.benchmark.as_deref(),
                svg => Value::from_safe_string(panel.drawn.inline()),
            }
        })
        .collect();
    context! {
        number => figure.number,
        slug => figure.slug,
        title => figure.title.as_str(),
        caption => figure.caption.as_str(),
        key => chips(&unnamed),
        columns => figure.columns.min(figure.panels.len()),
        panels,
        data => shown_table(&figure.data),
        file => format!("../figures/{}", figure.file_name()),
    }
}

pub(crate) fn shown_table(table: &Table) -> Value {
    context! {
        title => table.title.as_str(),
        notes => table.notes.clone(),
        columns => Value::from(Serde(&table.columns)),
        rows => Value::from(Serde(&table.rows)),
        file => format!("../tables/{}", table.slug),
    }
}

/// The rows of the printed levels; the files have all.
fn only_levels(table: &Table, levels: &[String]) -> Table {
    let mut kept = table.clone();
    kept.rows.retain(|row| row.alpha.as_ref().is_none_or(|alpha| levels.contains(alpha)));
    kept
}

fn strata(tables: &Tables) -> Vec<Value> {
    tables
        .strata
        .iter()
        .map(|of| {
            let numbers: Vec<String> = of.numbers.iter().map(u32::to_string).collect();
            let label = match numbers.as_slice() {
                [] => "Not in the paper".to_owned(),
                [one] => format!("Table {one}"),
                more => format!("Tables {}", number::listed(more)),
            };
            let levels: Vec<Value> = of
                .levels
                .iter()
                .map(|(alpha, table)| context! { alpha => alpha.as_str(), table => shown_table(table) })
                .collect();
            context! { name => of.name.as_str(), title => of.title.as_str(), label, levels }
        })
        .collect()
}

fn shown_claim(view: &View<'_>, claim: &Claim) -> Value {
    let evidence: Vec<Value> = claim
        .evidence
        .iter()
        .map(|evidence| {
            let found = view.results.benchmarks.iter().find(|summary| summary.name == evidence.benchmark);
            context! {
                benchmark => found.map_or(evidence.benchmark.as_str(), |summary| summary.title.as_str()),
                alpha => number::level(evidence.alpha),
                quantity => evidence.quantity.as_str(),
                first => format!("{:.4}", evidence.first),
                second => format!("{:.4}", evidence.second),
                difference => format!(
                    "{} ± {:.4}",
                    number::signed(evidence.difference.mean, 4),
                    evidence.difference.standard_error
                ),
                verdict => verdict(evidence.verdict),
            }
        })
        .collect();
    context! {
        id => claim.id.as_str(),
        sentence => claim.sentence.as_str(),
        place => claim.place.as_str(),
        rule => claim.rule.as_str(),
        found => sentence(&claim.found),
        verdict => verdict(claim.verdict),
        class => verdict(claim.verdict).replace(' ', "-"),
        evidence,
    }
}

fn splits(provenance: &Provenance) -> String {
    match (provenance.splits, provenance.claim_splits) {
        (splits, 0) => splits.to_string(),
        (splits, claims) => {
            format!("{splits} in tables and figures, {} behind claims and findings", number::count(claims))
        }
    }
}

pub(crate) fn provenance(p: &Provenance, benchmarks: &[BenchmarkSummary]) -> Value {
    let facts = [
        ("Software", format!("conformax {}", p.version)),
        ("Arithmetic", format!("version {}", p.arithmetic_version)),
        ("Randomised scores", p.draw_scheme.clone()),
        ("Seed", format!("{} (split i uses seed + i)", p.seed)),
        ("Splits", splits(p)),
        ("Machine", format!("{}, {} threads", p.machine, p.threads)),
        ("Duration", format!("{:.1} s", p.duration_seconds)),
    ];
    let benchmarks: Vec<Value> = benchmarks
        .iter()
        .map(|summary| {
            context! {
                title => summary.title.as_str(),
                rows => number::count(summary.rows),
                classes => number::count(summary.classes),
                dtype => summary.dtype.as_str(),
                accuracy => number::share(summary.accuracy),
                fingerprint => summary.fingerprint.as_str(),
            }
        })
        .collect();
    context! {
        facts => facts.iter().map(|(name, value)| context! { name => *name, value => value.as_str() }).collect::<Vec<_>>(),
        benchmarks,
    }
}
