//! `conformax evaluate`: sets against true labels, and a gate for deployments.

mod counted;
mod gate;
mod shown;

use std::path::PathBuf;

use clap::Args;
use conformax::Empty;
use conformax_io::LabelUse;

use self::counted::Counted;
use self::shown::Evaluation;
use crate::args::{DataArgs, OptionalLevelArgs};
use crate::calibrate::warn_of_few_rows;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model::{Loaded, law_holds};

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
        (false, several) => shown::print(&model, several, &args.data.describe(), console)?,
    }
    if args.expect_coverage {
        gate::expect_coverage(&model, &levels, &counted.tallies, console)?;
    }
    Ok(())
}
