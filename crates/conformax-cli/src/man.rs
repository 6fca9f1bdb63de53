//! `conformax man`: the manual, from the same definitions as `--help`.

use clap::{Args, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::console::Console;
use crate::failure::Failure;

/// Print a manual page.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax man | man -l -
  conformax man predict > conformax-predict.1")]
pub(crate) struct ManArgs {
    /// The subcommand; the command as a whole unless given.
    #[arg(value_name = "SUBCOMMAND")]
    subcommand: Option<String>,
}

pub(crate) fn run(args: &ManArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    let page = match &args.subcommand {
        None => command,
        Some(name) => command
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::error(format!("there is no subcommand `{name}`")))?,
    };
    Man::new(page).render(&mut console.out())?;
    Ok(())
}
