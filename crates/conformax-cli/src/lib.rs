//! The `conformax` command as a function: arguments and two streams in, an exit code out.
//!
//! ```
//! use conformax_cli::{ExitCode, run};
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let code = run(["conformax", "plan", "--alpha", "0.1", "--n", "1000"], &mut out, &mut err);
//! assert_eq!(code, ExitCode::Done);
//! assert!(String::from_utf8_lossy(&out).contains("0.881 to 0.918"));
//! ```
//!
//! Data and tables go to `out`; progress, notes, warnings and errors to `err`. Every subcommand is a file of its
//! own, with its flags and what it does; `args` lists them and holds the flags they share.

mod args;
mod benchmark;
mod blocks;
mod calibrate;
mod chart;
mod compare;
mod completions;
mod console;
mod evaluate;
mod exit_code;
mod failure;
mod inspect;
mod interrupt;
mod json;
#[cfg(feature = "train")]
mod logits;
mod man;
mod merge;
mod model;
mod numbers;
mod plan;
mod predict;
mod process;
mod report;
mod selection;
#[cfg(feature = "serve")]
mod serve;
mod split;
mod study;
mod table;
#[cfg(feature = "train")]
mod train;
mod tune;
mod watch;
mod weigh;

use std::ffi::OsString;
use std::io::Write;
use std::num::NonZero;

use clap::FromArgMatches;

use crate::args::{Cli, Command};
use crate::console::Console;
use crate::failure::Failure;

pub use crate::exit_code::ExitCode;
pub use crate::interrupt::{interrupt, stop_on_interrupt};
pub use crate::process::prepare_process;

/// Runs the command: the first of `args` is the program's name, as `std::env::args_os` has it.
///
/// ```
/// use conformax_cli::{ExitCode, run};
/// let (mut out, mut err) = (Vec::new(), Vec::new());
/// assert_eq!(run(["conformax", "predict"], &mut out, &mut err), ExitCode::CouldNotRun);
/// assert!(String::from_utf8_lossy(&err).contains("required arguments"));
/// ```
pub fn run<A>(
    args: impl IntoIterator<Item = A>,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> ExitCode
where
    A: Into<OsString> + Clone,
{
    let mut console = Console::new(out, err);
    let mut command = Cli::parser();
    let matches = command.try_get_matches_from_mut(args);
    let subcommand = matches.as_ref().ok().and_then(|matches| matches.subcommand_name().map(str::to_owned));
    let outcome = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => {
            console.set_quiet(cli.common.quiet);
            on_threads(cli.common.threads.into(), || dispatch(cli.command, &mut console))
        }
        Err(usage) => Err(Failure::Usage(usage.format(&mut command))),
    };
    let subcommand = subcommand.and_then(|name| command.find_subcommand(name));
    let has_flag = |flag: &str| {
        subcommand
            .is_some_and(|command| command.get_arguments().any(|argument| argument.get_long() == Some(flag)))
    };
    match outcome {
        Ok(()) => ExitCode::Done,
        Err(failure) => console.report(&failure, has_flag),
    }
}

fn dispatch(command: Command, console: &mut Console<'_>) -> Result<(), Failure> {
    command.expect_files_apart()?;
    match command {
        Command::Split(args) => split::run(&args, console),
        Command::Calibrate(args) => calibrate::run(&args, console),
        Command::Tune(args) => tune::run(&args, console),
        Command::Predict(args) => predict::run(&args, console),
        Command::Evaluate(args) => evaluate::run(&args, console),
        Command::Watch(args) => watch::run(&args, console),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args, console),
        Command::Merge(args) => merge::run(&args, console),
        Command::Weigh(args) => weigh::run(&args, console),
        Command::Plan(args) => plan::run(&args, console),
        Command::Inspect(args) => inspect::run(&args, console),
        Command::Compare(args) => compare::run(&args, console),
        Command::Report(args) => report::run(&args, console),
        Command::Study(args) => study::run(&args, console),
        #[cfg(feature = "train")]
        Command::Train(args) => train::run(&args, console),
        #[cfg(feature = "train")]
        Command::Logits(args) => logits::run(&args, console),
        Command::Completions(args) => completions::run(&args, console),
        Command::Man(args) => man::run(&args, console),
    }
}

/// Runs `work` in a pool of its own, so that the caller's threads and their number are left alone. Left to itself the
/// pool would have as many threads as the environment says, and that may be any number.
fn on_threads(threads: usize, work: impl FnOnce() -> Result<(), Failure> + Send) -> Result<(), Failure> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        some => some,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(Failure::error)?;
    pool.install(work)
}
