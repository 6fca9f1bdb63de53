//! Where results go.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
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

/// A folder to fill; `-` is standard output wherever a file is written, and no folder can go there.
pub(crate) fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.to_str() {
        Some("-") => Err("it stands for standard output, and a folder is wanted (./- is one of that name)"),
        _ => Ok(path),
    })
}

pub(crate) fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Replace } else { Overwrite::Refuse }
}
