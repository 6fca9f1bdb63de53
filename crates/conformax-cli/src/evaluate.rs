//! `conformax evaluate`: sets against true labels, and a gate for deployments.

mod counted;
mod gate;
mod shown;

use std::path::{Path, PathBuf};

use clap::Args;
use conformax::{Empty, Evaluator, ScoreSpec};
use conformax_io::{KeptLevel, LabelUse, Model, Output, Part, PartOf};

use self::counted::{Honest, judge_seen};
use self::shown::Evaluation;
use crate::args::{DataArgs, OptionalLevelArgs, overwrite};
use crate::calibrate::warn_of_few_rows;
use crate::console::Console;
use crate::failure::Failure;
use crate::json;
use crate::model::Loaded;

/// Measure coverage and size of the sets on labelled rows the model has not seen.
///
/// With --expect-coverage the exit code is 1 where coverage is below what chance explains: below the 0.1 % quantile
/// of its exact law.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax evaluate model.json test.npz
  conformax evaluate model.json test.parquet --alpha 0.1,0.05 --json
  conformax evaluate model.json latest.npz --expect-coverage && deploy model.json
  conformax evaluate model.json shard7.parquet --partial -o part7   # then: conformax merge part*")]
pub(crate) struct EvaluateArgs {
    /// Calibration file that `calibrate` or `tune` wrote; `-` is standard input.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    levels: OptionalLevelArgs,
    /// Put the top label into a set that would be empty, as `predict --non-empty` does.
    #[arg(long)]
    non_empty: bool,
    /// Write what these rows gave, to be put together with others by `merge`.
    #[arg(long, requires = "output", conflicts_with_all = ["expect_coverage", "allow_seen", "json"])]
    partial: bool,
    /// File to write with --partial.
    #[arg(long, short, value_name = "FILE", requires = "partial")]
    output: Option<PathBuf>,
    /// Replace the output where it exists.
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    judging: JudgingArgs,
}

/// How an evaluation is judged and shown.
#[derive(Args, Debug)]
pub(crate) struct JudgingArgs {
    /// Exit with 1 where coverage is too low to be chance.
    #[arg(long)]
    pub(crate) expect_coverage: bool,
    /// Evaluate even on rows that calibrated or tuned the model.
    #[arg(long)]
    pub(crate) allow_seen: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &EvaluateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let model = Loaded::read(&args.model)?;
    let levels = model.levels(&args.levels.alphas())?;
    let output =
        args.output.as_deref().map(|path| Output::create(path, overwrite(args.force))).transpose()?;
    let source = model.open(&args.data, LabelUse::Required, |_| {})?;
    let empty = if args.non_empty { Empty::TopLabel } else { Empty::Allowed };
    let evaluator = Evaluator::new(model.predictors(&levels, empty), source.classes())?;
    let evaluator = counted::read(source, evaluator.watching_for(model.model.rows()), console)?;
    if let Some(output) = output {
        let (path, alphas) =
            (output.path().to_owned(), levels.iter().map(|kept| kept.level.alpha()).collect());
        let text = model.model.to_json().map_err(|problem| conformax_io::Error::new(&model.path, problem))?;
        let of = PartOf::Evaluation { evaluator, model: text };
        let (names, input) = (model.model.names.clone(), model.model.input);
        Part { of, names, input, alphas }.write(output)?;
        return console.note(format_args!("wrote {}", path.display()));
    }
    judge((&model.path, &model.model), &levels, evaluator, &args.data.describe(), &args.judging, console)
}

/// Decides first and prints then, so that whoever closes the pipe early still gets the exit code.
pub(crate) fn judge(
    (path, model): (&Path, &Model),
    levels: &[KeptLevel],
    evaluator: Evaluator<ScoreSpec>,
    data: &str,
    args: &JudgingArgs,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let evaluated = evaluator.finish()?;
    let honest = judge_seen(&evaluated.seen, data, args.allow_seen, console)?;
    warn_of_few_rows(levels, console)?;
    let law_holds = model.law_holds() && honest == Honest::Yes;
    let results = levels
        .iter()
        .zip(&evaluated.tallies)
        .map(|(kept, tally)| Evaluation::new(model, kept, tally, law_holds));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    let verdict = match args.expect_coverage {
        true => gate::expect_coverage((path, model), levels, &evaluated.tallies, honest, console),
        false => Ok(()),
    };
    let printed = match args.json {
        true => {
            json::print(&shown::Printed { data, seen_rows: evaluated.seen.seen, levels: &results }, console)
        }
        false => shown::print((path, model), &results, data, console),
    };
    match (verdict, printed) {
        (Err(verdict), Ok(()) | Err(Failure::OutputClosed)) => Err(verdict),
        (_, printed) => printed,
    }
}
