//! `conformax plan`: how far coverage can stray with so many calibration rows, and how many are enough.

mod groups;

use clap::builder::Resettable;
use clap::{Args, Id};
use conformax::{Alpha, Level, rows_for_precision};
use serde::Serialize;

use crate::args::{By, DataArgs, confidence, delta, level};
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::numbers::{count, or_dash, range, share};
use crate::plan::groups::{Counted, Group, group_table, verdict};
use crate::table::{Align, table, text};

/// Say how far coverage can stray, and how many calibration rows are enough.
///
/// The law is exact and the same for every classifier and score without ties: coverage given the calibration rows
/// follows a Beta distribution.
#[derive(Args, Debug)]
// Without --by there are no rows to read, and what is said of them would go unheard.
#[command(mut_group("DataArgs", |group| group.requires("by")))]
#[command(mut_arg("data", |data| data.required_unless_present(Resettable::<Id>::Reset).help(ROWS)))]
#[command(after_help = "\
Examples:
  conformax plan --alpha 0.1
  conformax plan --alpha 0.1 --n 1000
  conformax plan --alpha 0.05 --precision 0.01
  conformax plan --alpha 0.1 --pac 0.05
  conformax plan cal.npz --by class")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Say what the rows of each group of DATA are enough for: by `class`, the name of a COLUMN, or a FILE with the
    /// cluster of each class.
    #[arg(long, value_name = "WHAT", value_parser = By::named, conflicts_with_all = ["n", "precision"])]
    by: Option<By>,
    /// How often a set may miss the true label [default: 0.1].
    #[arg(long, value_name = "A", conflicts_with = "confidence", value_parser = level)]
    alpha: Option<Alpha>,
    /// How often a set must hold the true label; another way to write --alpha.
    #[arg(long, value_name = "C", value_parser = confidence)]
    confidence: Option<Alpha>,
    /// Calibration rows; repeat it to compare several.
    #[arg(long, alias = "rows", value_name = "N", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    n: Vec<u64>,
    /// How near to 1 - alpha coverage should be; repeat it to compare several.
    #[arg(long, value_name = "P", value_delimiter = ',')]
    precision: Vec<f64>,
    /// Coverage is to hold with probability 1 - DELTA over the calibration rows, rather than on average.
    #[arg(long, value_name = "DELTA", conflicts_with = "precision", value_parser = delta)]
    pac: Option<Alpha>,
    /// Probability with which the statements hold.
    #[arg(long, value_name = "Q", default_value_t = 0.95)]
    probability: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const ROWS: &str = "Calibration rows to be counted by group, with --by";

/// What so many rows give.
#[derive(Serialize)]
struct Outlook {
    n: u64,
    rank: Option<u64>,
    mean: f64,
    standard_deviation: f64,
    coverage_interval: (f64, f64),
    /// Chance of a calibration that covers less than was asked for.
    probability_below: f64,
}

/// How many rows a precision takes.
#[derive(Serialize)]
struct Need {
    precision: f64,
    n: u64,
}

#[derive(Serialize)]
struct Plan {
    alpha: Alpha,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Alpha>,
    probability: f64,
    rows_needed: u64,
    outlooks: Vec<Outlook>,
    needs: Vec<Need>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group>,
}

const USUAL_ROWS: [u64; 7] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000];
const USUAL_PRECISIONS: [f64; 4] = [0.05, 0.02, 0.01, 0.005];

pub(crate) fn run(args: &PlanArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let plan = plan(args, console)?;
    if args.json {
        return json::print(&plan, console);
    }
    let percent = args.probability * 100.0;
    let over = plan
        .delta
        .map_or(String::new(), |delta| format!(" for {} of all calibrations", share(delta.confidence(), 4)));
    writeln!(
        console.out(),
        "alpha = {}: sets hold the true label with probability {} or more{over}.\n\
         At least {} calibration rows {}are needed; with fewer, sets hold every label.",
        plan.alpha,
        plan.alpha.confidence(),
        count(plan.rows_needed),
        if plan.groups.is_empty() { "" } else { "of each group " }
    )?;
    if !plan.outlooks.is_empty() {
        writeln!(console.out(), "\n{}", outlook_table(&plan, percent).trim_end())?;
    }
    if !plan.needs.is_empty() {
        writeln!(console.out(), "\n{}", need_table(&plan, percent).trim_end())?;
    }
    if !plan.groups.is_empty() {
        let table = group_table(&plan.groups, percent, plan.alpha.confidence());
        writeln!(console.out(), "\n{}\n\n{}", table.trim_end(), verdict(&plan.groups))?;
    }
    Ok(())
}

fn plan(args: &PlanArgs, console: &mut Console<'_>) -> Result<Plan, Failure> {
    let alpha = match args.alpha.or(args.confidence) {
        Some(alpha) => alpha,
        None => Alpha::new(0.1)?,
    };
    let unasked = args.n.is_empty() && args.precision.is_empty() && args.by.is_none();
    let rows: &[u64] = if unasked { &USUAL_ROWS } else { &args.n };
    let usual: Vec<f64> = USUAL_PRECISIONS.into_iter().filter(|p| *p < alpha.value()).collect();
    let precisions: &[f64] = if unasked && args.pac.is_none() { &usual } else { &args.precision };
    let level = |n: u64| match args.pac {
        Some(delta) => Level::new(n, alpha).with_delta(delta),
        None => Level::new(n, alpha),
    };
    let needs = precisions.iter().map(|precision| {
        Ok(Need { precision: *precision, n: rows_for_precision(alpha, *precision, args.probability)? })
    });
    let groups = match &args.by {
        Some(_) if args.data.is_nothing() => {
            return Err(Failure::error("--by counts rows, and none are named: give DATA, or --logits FILE"));
        }
        Some(by) => Counted { data: &args.data, by }.groups(level, args.probability, console)?,
        None => Vec::new(),
    };
    Ok(Plan {
        groups,
        alpha,
        delta: args.pac,
        probability: args.probability,
        rows_needed: level(1).rows_needed(),
        outlooks: rows
            .iter()
            .map(|n| outlook(level(*n), args.probability))
            .collect::<Result<_, Failure>>()?,
        needs: needs.collect::<Result<_, Failure>>()?,
    })
}

fn outlook(level: Level, probability: f64) -> Result<Outlook, Failure> {
    let law = level.law();
    Ok(Outlook {
        n: level.n(),
        rank: level.rank(),
        mean: law.mean(),
        standard_deviation: law.standard_deviation(),
        coverage_interval: law.interval(probability)?,
        probability_below: law.cdf(level.alpha().confidence()),
    })
}

fn outlook_table(plan: &Plan, percent: f64) -> String {
    let interval = format!("coverage will lie in ({percent} %)");
    let below = format!("chance below {}", plan.alpha.confidence());
    let headings = [
        ("rows", Align::Right),
        ("rank", Align::Right),
        ("mean coverage", Align::Right),
        (interval.as_str(), Align::Right),
        (below.as_str(), Align::Right),
    ];
    let mut table = table(&headings);
    for outlook in &plan.outlooks {
        table.add_row([
            count(outlook.n),
            or_dash(outlook.rank.map(count)),
            share(outlook.mean, 4),
            range(outlook.coverage_interval),
            share(outlook.probability_below, 3),
        ]);
    }
    text(&table)
}

fn need_table(plan: &Plan, percent: f64) -> String {
    let rows = format!("rows needed ({percent} %)");
    let mut table = table(&[("coverage within", Align::Left), (&rows, Align::Right)]);
    for need in &plan.needs {
        table.add_row([format!("{} ± {}", plan.alpha.confidence(), need.precision), count(need.n)]);
    }
    text(&table)
}
