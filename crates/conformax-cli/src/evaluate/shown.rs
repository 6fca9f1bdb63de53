//! Metrics with their intervals, for people and for machines.

use std::path::Path;

use conformax::{Intervals, Metrics, Strata, Stratum, Tally};
use conformax_io::{KeptLevel, Model, printable};
use serde::Serialize;

use super::groups::{GroupEvaluation, group_table};
use crate::calibrate::{promise_line, top_label_is_enough};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{CONFIDENCE, count, or_dash, range, rows, share, shown};
use crate::table::{Align, table, text};

/// Everything, as a machine reads it.
#[derive(Serialize)]
pub(super) struct Printed<'a> {
    pub(super) data: &'a str,
    pub(super) seen_rows: u64,
    pub(super) promise: String,
    pub(super) levels: &'a [Evaluation],
}

/// What is reported of one level.
#[derive(Serialize)]
pub(super) struct Evaluation {
    n: u64,
    alpha: f64,
    #[serde(serialize_with = "json::optional_number")]
    threshold: Option<f64>,
    coverage: f64,
    average_size: f64,
    singleton_ratio: f64,
    singleton_coverage: Option<f64>,
    empty_ratio: f64,
    sscv: f64,
    strata: Vec<Stratum>,
    covgap: f64,
    coverage_interval: Option<(f64, f64)>,
    intervals: Intervals,
    /// What the sets lost on average, under risk control.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_loss: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<GroupEvaluation>,
    /// What is asked of coverage, unless alpha bounds a loss.
    #[serde(skip)]
    wanted: Option<f64>,
    /// Whether the threshold is 0, so that coverage is the accuracy.
    #[serde(skip)]
    top_label_is_enough: bool,
}

impl Evaluation {
    pub(super) fn new(
        model: &Model,
        kept: &KeptLevel,
        tally: &Tally,
        law_holds: bool,
        (groups, mean_loss): (Vec<GroupEvaluation>, Option<f64>),
    ) -> Result<Self, Failure> {
        let Metrics {
            n,
            alpha,
            coverage,
            average_size,
            singleton_ratio,
            singleton_coverage,
            empty_ratio,
            strata,
            sscv,
            covgap,
            ..
        } = tally.metrics(kept.alpha(), &Strata::default())?;
        Ok(Self {
            n,
            alpha: alpha.value(),
            threshold: kept.threshold(),
            coverage,
            average_size,
            singleton_ratio,
            singleton_coverage,
            empty_ratio,
            sscv,
            strata,
            covgap,
            coverage_interval: kept
                .law()
                .filter(|_| law_holds)
                .map(|law| law.interval_of_rows(CONFIDENCE, n))
                .transpose()?,
            intervals: tally.intervals(CONFIDENCE)?,
            mean_loss,
            groups,
            wanted: mean_loss.is_none().then(|| alpha.confidence()),
            top_label_is_enough: top_label_is_enough(model, kept),
        })
    }
}

pub(super) fn print(
    (path, model): (&Path, &Model),
    results: &[Evaluation],
    data: &str,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let path = printable(&path.to_string_lossy()).to_string();
    writeln!(console.out(), "{path}: {}, calibrated on {}", model.score, rows(model.n))?;
    writeln!(console.out(), "{}", promise_line(model))?;
    for result in results {
        writeln!(
            console.out(),
            "\nalpha = {} on {} of {data}\n\n{}\n{}",
            result.alpha,
            rows(result.n),
            metric_table(result),
            strata_table(&result.strata).trim_end()
        )?;
        if !result.groups.is_empty() {
            writeln!(console.out(), "\n{}", group_table(&result.groups, result.wanted).trim_end())?;
        }
        if result.top_label_is_enough && result.coverage_interval.is_some() {
            console.note(format_args!(
                "alpha = {}: the top label alone is right often enough; sets hold it and its ties, and coverage is \
                 the accuracy, which may lie above what the law says",
                result.alpha
            ));
        }
    }
    Ok(())
}

fn metric_table(result: &Evaluation) -> String {
    let percent = CONFIDENCE * 100.0;
    let interval = format!("{percent} % interval");
    let mut table = table(&[("metric", Align::Left), ("value", Align::Right), (&interval, Align::Left)]);
    let trusted = |interval: Option<(f64, f64)>| or_dash(interval.map(range));
    let Intervals { coverage, average_size, singleton_ratio, singleton_coverage, empty_ratio, .. } =
        &result.intervals;
    let promised = match result.coverage_interval {
        Some(law) => format!("{}; the law says {}", trusted(*coverage), range(law)),
        None => trusted(*coverage),
    };
    if let Some(threshold) = result.threshold {
        table.add_row(["threshold".to_owned(), shown(threshold), or_dash(None)]);
    }
    if let Some(loss) = result.mean_loss {
        let promised = format!("at most {} is promised", result.alpha);
        table.add_row(["mean loss".to_owned(), shown(loss), promised]);
    }
    table.add_row(["coverage".to_owned(), share(result.coverage, 4), promised]);
    table.add_row(["average size".to_owned(), shown(result.average_size), trusted(*average_size)]);
    table.add_row([
        "singleton ratio".to_owned(),
        share(result.singleton_ratio, 4),
        trusted(*singleton_ratio),
    ]);
    let of_singletons = or_dash(result.singleton_coverage.map(|coverage| share(coverage, 4)));
    table.add_row(["singleton coverage".to_owned(), of_singletons, trusted(*singleton_coverage)]);
    table.add_row(["empty ratio".to_owned(), share(result.empty_ratio, 4), trusted(*empty_ratio)]);
    table.add_row(["worst size gap (sscv)".to_owned(), share(result.sscv, 4), or_dash(None)]);
    table.add_row(["mean class gap (covgap)".to_owned(), share(result.covgap, 4), or_dash(None)]);
    text(&table)
}

fn strata_table(strata: &[Stratum]) -> String {
    let mut table = table(&[("set size", Align::Left), ("rows", Align::Right), ("coverage", Align::Right)]);
    for stratum in strata {
        let sizes = match stratum.to {
            Some(to) if to == stratum.from => to.to_string(),
            Some(to) => format!("{} to {to}", stratum.from),
            None => format!("{} and more", stratum.from),
        };
        let coverage = or_dash(stratum.coverage.map(|coverage| share(coverage, 4)));
        table.add_row([sizes, count(stratum.n), coverage]);
    }
    text(&table)
}
