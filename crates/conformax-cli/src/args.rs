//! What can be typed: the subcommands, and the flags they share.

mod by;
mod data;
mod files;
mod level;
mod output;
mod scheme;
mod score;
mod stream;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, Args, CommandFactory, Parser, Subcommand};

pub(crate) use by::By;
pub(crate) use data::{DataArgs, quoted};
pub(crate) use files::Files;
pub(crate) use level::{LevelArgs, OptionalLevelArgs, confidence, delta, distinct, level};
pub(crate) use output::{OutputArgs, folder, overwrite};
pub(crate) use scheme::{Asked, SchemeArgs};
pub(crate) use score::{MaskedChoice, ScoreArgs};
pub(crate) use stream::StreamArgs;

#[cfg(feature = "serve")]
use crate::serve;
use crate::{
    calibrate, compare, completions, evaluate, inspect, man, merge, plan, predict, report, split, study,
    tune, watch, weigh,
};
#[cfg(feature = "train")]
use crate::{logits, train};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Prediction sets with a coverage guarantee, from the logits of any classifier.
///
/// Held-out logits and labels calibrate one number; from then on every row of logits gets a set of labels that
/// holds the true one with the probability you asked for, whatever the classifier.
#[derive(Debug, Parser)]
#[command(name = "conformax", version, styles = STYLES, after_help = EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What can be typed. A number below zero is a value that may not fit, and no option: the message should say the
    /// former.
    pub(crate) fn parser() -> clap::Command {
        let numbers = |arg: Arg| match arg.get_long().is_some() && arg.get_action().takes_values() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        };
        Self::command().mut_args(numbers).mut_subcommands(|command| command.mut_args(numbers))
    }
}

const EXAMPLES: &str = "\
Examples:
  conformax split data.npz --fractions 0.4,0.6 -o cal.npz test.npz
  conformax calibrate cal.npz --alpha 0.1 -o model.json
  conformax evaluate model.json test.npz
  conformax predict model.json new.npy -o sets.parquet
  conformax watch model.json - < rows.jsonl
  conformax compare data.npz --alpha 0.1
  conformax report data.npz -o mine
  conformax study

Exit codes: 0 done, 1 the answer is no (evaluate --expect-coverage, watch --stop-on-alarm), 2 could not run.";

/// More threads than any machine has processors; starting a hundred thousand takes the machine down.
const MOST_THREADS: i64 = 1024;

/// Flags of every subcommand.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CommonArgs {
    /// Threads to work on, up to 1,024; 0 for one per processor. Results do not depend on it.
    #[arg(long, global = true, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(..=MOST_THREADS), help_heading = "Common options")]
    pub(crate) threads: u16,
    /// No progress bar and no notes on standard error; warnings and errors stay.
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
}

/// One variant, and one file, per subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Split(split::SplitArgs),
    Calibrate(Box<calibrate::CalibrateArgs>),
    Tune(tune::TuneArgs),
    Predict(predict::PredictArgs),
    Evaluate(evaluate::EvaluateArgs),
    Watch(watch::WatchArgs),
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    Merge(merge::MergeArgs),
    Weigh(weigh::WeighArgs),
    Plan(plan::PlanArgs),
    Inspect(inspect::InspectArgs),
    Compare(compare::CompareArgs),
    Report(report::ReportArgs),
    Study(study::StudyArgs),
    #[cfg(feature = "train")]
    Train(train::TrainArgs),
    #[cfg(feature = "train")]
    Logits(logits::LogitsArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_hold_together() {
        super::Cli::parser().debug_assert();
    }
}
