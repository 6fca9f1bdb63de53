//! `conformax evaluate`: sets against true labels, and a gate for deployments.

mod counted;
mod gate;
mod groups;
mod shown;

use std::path::{Path, PathBuf};

use clap::Args;
use conformax::{Empty, Evaluator, Scheme, ScoreSpec};
use conformax_io::{Beside, KeptLevel, LabelUse, Model, Output, Part, PartOf, Settings};

use self::counted::{Honest, judge_seen};
use self::groups::{Apart, GroupEvaluation};
use self::shown::Evaluation;
use crate::args::{By, DataArgs, Files, OptionalLevelArgs, overwrite};
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
  conformax evaluate model.json test.parquet --by region
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
    /// Count rows apart: by `class`, by the groups of a COLUMN, or by a FILE with the cluster of each class [default:
    /// as the model's thresholds differ].
    #[arg(long, value_name = "WHAT", value_parser = By::named)]
    by: Option<By>,
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

impl EvaluateArgs {
    pub(crate) fn files(&self) -> Files {
        let by = self.by.as_ref().and_then(By::file);
        let read = self.data.files().into_iter().chain([self.model.clone()]).chain(by).collect();
        Files { read, written: self.output.iter().cloned().collect() }
    }
}

pub(crate) fn run(args: &EvaluateArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let model = Loaded::read(&args.model)?;
    let levels = model.levels(&args.levels.alphas())?;
    let output =
        args.output.as_deref().map(|path| Output::create(path, overwrite(args.force))).transpose()?;
    let apart = Apart::new(args.by.as_ref(), &model)?;
    let source = model.open(&args.data, LabelUse::Required, |options| apart.adjust(options))?;
    let empty = if args.non_empty { Empty::TopLabel } else { Empty::Allowed };
    let mut evaluator = Evaluator::new(model.predictors(&levels, empty), source.classes())?;
    if let Some(taxonomy) = apart.taxonomy(&source)? {
        evaluator = evaluator.by(taxonomy)?;
    }
    if let Scheme::Risk(loss) = &model.model.scheme {
        evaluator = evaluator.losing(loss.clone())?;
    }
    let (evaluator, learned) =
        counted::read(source, evaluator.watching_for(model.model.rows()), &apart, console)?;
    let groups = (apart.column(), apart.names(learned));
    if let Some(output) = output {
        let (path, alphas) = (output.path().to_owned(), levels.iter().map(KeptLevel::alpha).collect());
        let text = model.model.to_json().map_err(|problem| conformax_io::Error::new(&model.path, problem))?;
        let of = PartOf::Evaluation { evaluator, model: text };
        let (names, input) = (model.model.names.clone(), model.model.input);
        let beside = Beside { column: groups.0, groups: groups.1, ..Beside::default() };
        let settings = Settings { beside, ..Settings::default() };
        Part::new(of, names, input, alphas, settings).write(output)?;
        console.note(format_args!("wrote {}", path.display()));
        return Ok(());
    }
    let (model, data) = ((model.path.as_path(), &model.model), args.data.describe());
    judge(model, &levels, (evaluator, groups), &data, &args.judging, console)
}

/// Decides first and prints then, so that whoever closes the pipe early still gets the exit code.
pub(crate) fn judge(
    (path, model): (&Path, &Model),
    levels: &[KeptLevel],
    (evaluator, (column, groups)): (Evaluator<ScoreSpec>, (Option<String>, Vec<String>)),
    data: &str,
    args: &JudgingArgs,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let evaluated = evaluator.finish()?;
    let honest = judge_seen(&evaluated.seen, data, args.allow_seen, console)?;
    warn_of_few_rows(model, levels, console);
    let law_holds = model.law_holds() && honest == Honest::Yes;
    let results = levels.iter().zip(&evaluated.tallies).enumerate().map(|(place, (kept, tally))| {
        let by_group = GroupEvaluation::all(model, (place, kept), (column.as_deref(), &groups), &evaluated);
        let loss = evaluated.losses.get(place).copied();
        Evaluation::new(model, kept, tally, law_holds, (by_group, loss))
    });
    let results = results.collect::<Result<Vec<_>, _>>()?;
    let verdict = match args.expect_coverage {
        true => {
            let by_group = results.iter().map(|result| &result.groups[..]).collect::<Vec<_>>();
            gate::expect_coverage((path, model), levels, (&evaluated.tallies, &by_group), honest, console)
        }
        false => Ok(()),
    };
    let printed = match args.json {
        true => {
            let (seen_rows, promise) = (evaluated.seen.seen, model.promise_and_limits());
            json::print(&shown::Printed { data, seen_rows, promise, levels: &results }, console)
        }
        false => shown::print((path, model), &results, data, console),
    };
    match (verdict, printed) {
        (Err(verdict), Ok(()) | Err(Failure::OutputClosed)) => Err(verdict),
        (_, printed) => printed,
    }
}
