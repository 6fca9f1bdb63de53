//! `conformax evaluate`: sets against true labels, and a gate for deployments.

use std::path::PathBuf;

use clap::Args;
use conformax::{Empty, Level, Metrics, Strata, Stratum, Tally, predict_each};
use conformax_io::{LabelUse, Source, row_fingerprints};
use serde::Serialize;

use crate::args::{DataArgs, OptionalLevelArgs};
use crate::blocks::{for_each_block, with_logits};
use crate::calibrate::warn_of_few_rows;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model::{Loaded, law_holds};
use crate::numbers::{count, or_dash, range, rows, share, shown};
use crate::proportion::{self, CONFIDENCE};
use crate::table::{Align, table, text};

/// Measure coverage and size of the sets on labelled rows the model has not seen.
///
/// With --expect-coverage the exit code is 1 where coverage is below what chance explains: below the 0.1 % quantile
/// of its exact law.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax evaluate model.json test.npz
  conformax evaluate model.json test.parquet --alpha 0.1,0.05 --json
  conformax evaluate model.json latest.npz --expect-coverage && deploy model.json")]
pub(crate) struct EvaluateArgs {
    /// Calibration file that `calibrate` or `tune` wrote.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    levels: OptionalLevelArgs,
    /// Put the top label into a set that would be empty, as `predict --non-empty` does.
    #[arg(long)]
    non_empty: bool,
    /// Exit with 1 where coverage is too low to be chance.
    #[arg(long)]
    expect_coverage: bool,
    /// Evaluate even on rows that calibrated or tuned the model.
    #[arg(long)]
    allow_seen: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &EvaluateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let model = Loaded::read(&args.model)?;
    let levels = model.levels(&args.levels.alphas())?;
    let source = model.open(&args.data, LabelUse::Required, |_| {})?;
    let empty = if args.non_empty { Empty::TopLabel } else { Empty::Allowed };
    let counted = Counted::read(source, &model, &levels, empty, console)?;
    counted.seen.judge(&args.data.describe(), args.allow_seen, console)?;
    warn_of_few_rows(&levels, console)?;
    let law_holds = law_holds(&model.model);
    let results =
        levels.iter().zip(&counted.tallies).map(|(level, tally)| Evaluation::new(*level, tally, law_holds));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    match (args.json, &results[..]) {
        (true, [only]) => json::print(only, console)?,
        (true, several) => json::print(&several, console)?,
        (false, several) => print(&model, several, &args.data.describe(), console)?,
    }
    if args.expect_coverage {
        expect_coverage(&model, &levels, &counted.tallies, console)?;
    }
    Ok(())
}

/// Outcomes of one level.
struct LevelTally {
    tally: Tally,
    /// Sum and sum of squares of the set sizes, for the interval of their mean.
    sizes: u64,
    squares: u128,
    singletons: u64,
    covered_singletons: u64,
    empty: u64,
}

impl LevelTally {
    fn new(classes: usize) -> Self {
        let tally = Tally::new(classes);
        Self { tally, sizes: 0, squares: 0, singletons: 0, covered_singletons: 0, empty: 0 }
    }

    fn add(&mut self, set: &[u32], label: u32) {
        let (size, covered) = (set.len(), set.contains(&label));
        self.tally.add_outcome(size, covered, label);
        self.sizes += size as u64;
        self.squares += (size as u128) * (size as u128);
        self.singletons += u64::from(size == 1);
        self.covered_singletons += u64::from(size == 1 && covered);
        self.empty += u64::from(size == 0);
    }
}

/// What a pass over the data counted.
struct Counted {
    tallies: Vec<LevelTally>,
    seen: Seen,
}

impl Counted {
    fn read(
        source: Source,
        model: &Loaded,
        levels: &[Level],
        empty: Empty,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let predictors = model.predictors(levels, empty);
        let mut tallies: Vec<_> = levels.iter().map(|_| LevelTally::new(source.classes())).collect();
        let (mut seen, mut names) = (Seen::default(), Vec::new());
        for_each_block(source, "evaluating", console, |block, _| {
            let labels = block.labels.as_deref().expect("labels were required of the source");
            let ((), sets) = rayon::join(
                || row_fingerprints(block, &mut names),
                || with_logits!(block, logits => predict_each(&predictors, logits)),
            );
            for (tally, sets) in tallies.iter_mut().zip(&sets?) {
                sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
            }
            seen.add(block.first_row, &names, |row| model.model.has_seen(row));
            Ok(())
        })?;
        Ok(Self { tallies, seen })
    }
}

/// Rows that had a part in the model.
#[derive(Default)]
struct Seen {
    rows: u64,
    seen: u64,
    first: Option<u64>,
}

impl Seen {
    fn add(&mut self, first_row: u64, names: &[u64], has_seen: impl Fn(u64) -> bool) {
        self.rows += names.len() as u64;
        for (row, _) in (first_row..).zip(names).filter(|(_, name)| has_seen(**name)) {
            self.first.get_or_insert(row);
            self.seen += 1;
        }
    }

    /// Rows that calibrated would make coverage look better than it is on new ones.
    fn judge(&self, data: &str, allowed: bool, console: &mut Console<'_>) -> Result<(), Failure> {
        let Some(first) = self.first else { return Ok(()) };
        let what = format!(
            "{data}: {} of {} calibrated or tuned this model, row {first} first",
            count(self.seen),
            rows(self.rows)
        );
        if allowed {
            return console
                .warn(format_args!("{what}; the figures flatter the model and no interval holds for them"));
        }
        Err(Failure::error(format!(
            "{what}; evaluate on other rows, or give --allow-seen if you know what that means"
        )))
    }
}

/// Exit 1 below the law's 0.1 % quantile, a warning above its 99.9 %.
fn expect_coverage(
    model: &Loaded,
    levels: &[Level],
    tallies: &[LevelTally],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if !law_holds(&model.model) {
        return Err(Failure::of_file(
            &model.path,
            "was tuned on the rows that calibrated it, so its coverage has no law to be held to; tune again with \
             `conformax tune`",
        ));
    }
    let mut low = Vec::new();
    for (level, tally) in levels.iter().zip(tallies) {
        let (covered, n) = (tally.tally.covered(), tally.tally.n());
        let measured = covered as f64 / n as f64;
        let least = level.law().quantile_of_count(0.001, n);
        let most = level.law().quantile_of_count(0.999, n);
        if covered < least {
            low.push(format!(
                "coverage {} at alpha = {} is below {}, which chance alone undercuts once in a thousand",
                share(measured, 4),
                level.alpha,
                share(least as f64 / n as f64, 4)
            ));
        } else if covered > most && !law_is_a_bound(model, level) {
            console.warn(format_args!(
                "coverage {} at alpha = {} is above {}, which chance alone exceeds once in a thousand: these rows \
                 are easier than those that calibrated; calibrate again on rows like these for smaller sets",
                share(measured, 4),
                level.alpha,
                share(most as f64 / n as f64, 4)
            ))?;
        }
    }
    if low.is_empty() {
        return Ok(());
    }
    let why = low.join("; ");
    Err(Failure::No(format!(
        "{why}. These rows are not like those that calibrated: calibrate again on recent, labelled rows"
    )))
}

/// Where the threshold is 0, infinite or shared by several calibration rows, coverage may exceed its law.
fn law_is_a_bound(model: &Loaded, level: &Level) -> bool {
    let tied = model.model.scores.as_ref().is_some_and(|scores| {
        scores.as_slice().iter().filter(|score| **score == level.threshold).count() > 1
    });
    tied || level.threshold == 0.0 || level.threshold == f64::INFINITY
}

/// What is reported of one level.
#[derive(Serialize)]
struct Evaluation {
    n: u64,
    alpha: f64,
    #[serde(serialize_with = "json::number")]
    threshold: f64,
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
}

/// How far the measured figures can be trusted, rows being what they are.
#[derive(Serialize)]
struct Intervals {
    coverage: Option<(f64, f64)>,
    average_size: Option<(f64, f64)>,
    singleton_ratio: Option<(f64, f64)>,
    singleton_coverage: Option<(f64, f64)>,
    empty_ratio: Option<(f64, f64)>,
}

impl Evaluation {
    fn new(level: Level, counted: &LevelTally, law_holds: bool) -> Result<Self, Failure> {
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
        } = counted.tally.metrics(level.alpha, &Strata::default())?;
        Ok(Self {
            n,
            alpha: alpha.value(),
            threshold: level.threshold,
            coverage,
            average_size,
            singleton_ratio,
            singleton_coverage,
            empty_ratio,
            sscv,
            strata,
            covgap,
            coverage_interval: law_holds.then(|| level.law().interval_of_rows(CONFIDENCE, n)),
            intervals: Intervals {
                coverage: proportion::interval(counted.tally.covered(), n),
                average_size: proportion::interval_of_mean(counted.sizes, counted.squares, n),
                singleton_ratio: proportion::interval(counted.singletons, n),
                singleton_coverage: proportion::interval(counted.covered_singletons, counted.singletons),
                empty_ratio: proportion::interval(counted.empty, n),
            },
        })
    }
}

fn print(
    model: &Loaded,
    results: &[Evaluation],
    data: &str,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    writeln!(
        console.out(),
        "{}: {}, calibrated on {}",
        model.path.display(),
        model.model.score,
        rows(model.model.n)
    )?;
    for result in results {
        writeln!(
            console.out(),
            "\nalpha = {} on {} of {data}\n\n{}\n{}",
            result.alpha,
            rows(result.n),
            metric_table(result),
            strata_table(&result.strata).trim_end()
        )?;
    }
    Ok(())
}

fn metric_table(result: &Evaluation) -> String {
    let percent = CONFIDENCE * 100.0;
    let interval = format!("{percent} % interval");
    let mut table = table(&[("metric", Align::Left), ("value", Align::Right), (&interval, Align::Left)]);
    let trusted = |interval: Option<(f64, f64)>| or_dash(interval.map(range));
    let Intervals { coverage, average_size, singleton_ratio, singleton_coverage, empty_ratio } =
        &result.intervals;
    let promised = match result.coverage_interval {
        Some(law) => format!("{}; the law says {}", trusted(*coverage), range(law)),
        None => trusted(*coverage),
    };
    table.add_row(["threshold".to_owned(), shown(result.threshold), or_dash(None)]);
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
