//! `conformax completions`: what a shell needs to complete the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::console::Console;
use crate::failure::Failure;

/// Print a script that completes the command line in your shell.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  conformax completions bash > ~/.local/share/bash-completion/completions/conformax
  conformax completions zsh > ~/.zfunc/_conformax
  conformax completions fish > ~/.config/fish/completions/conformax.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "conformax", &mut script);
    Ok(console.out().write_all(&script)?)
}
