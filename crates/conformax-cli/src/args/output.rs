//! Where results go.

use std::path::PathBuf;

use clap::Args;
use conformax_io::Overwrite;

/// One file to write, and whether it may take the place of another.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// File to write; it appears under its name once it is whole.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the output where it exists.
    #[arg(long)]
    pub(crate) force: bool,
}

impl OutputArgs {
    pub(crate) fn overwrite(&self) -> Overwrite {
        overwrite(self.force)
    }
}

pub(crate) fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Replace } else { Overwrite::Refuse }
}
