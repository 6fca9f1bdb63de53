//! Which files a subcommand reads and writes, and that no file is both.

use std::path::{Path, PathBuf};

use conformax_io::{Format, Output, is_same_file};

use super::Command;
use crate::failure::Failure;

/// The files that a subcommand was given.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Files and folders of shards; `-` is standard input.
    pub(crate) read: Vec<PathBuf>,
    pub(crate) written: Vec<PathBuf>,
}

impl Files {
    /// Refuses an output that is an input too: to replace what a result was made from is never meant, not even with
    /// `--force`.
    fn expect_apart(&self) -> Result<(), Failure> {
        let files = self.written.iter().filter(|path| !Output::is_special(path));
        for output in files {
            if let Some(what) = self.read.iter().find_map(|input| shared(input, output)) {
                return Err(Failure::of_file(output, format_args!("{what}: name another output")));
            }
        }
        Ok(())
    }
}

/// What the output has to do with the input, where it is that or a shard of it.
fn shared(input: &Path, output: &Path) -> Option<String> {
    let same = |path: &Path| format!("is the same file as {}, which is read", name(path));
    if input == Path::new("-") {
        return is_same_file(Path::new("/dev/stdin"), output).then(|| same(input));
    }
    if input == output {
        return Some("is read too".to_owned());
    }
    // What is no data is no shard, and may lie among them.
    let Some(shards) = Format::of_name(output).and_then(|_| std::fs::read_dir(input).ok()) else {
        return is_same_file(input, output).then(|| same(input));
    };
    if is_in(input, output) {
        return Some(format!("would lie in {}, whose files are read", name(input)));
    }
    let mut shards = shards.flatten().map(|shard| shard.path());
    shards.find(|shard| is_same_file(shard, output)).map(|shard| same(&shard))
}

/// Whether a file lies in a folder, or would.
fn is_in(folder: &Path, file: &Path) -> bool {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let of_file = std::fs::canonicalize(parent.unwrap_or(Path::new(".")));
    of_file.is_ok_and(|of_file| std::fs::canonicalize(folder).is_ok_and(|folder| folder == of_file))
}

fn name(input: &Path) -> String {
    match input.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => conformax_io::printable(&input.to_string_lossy()).to_string(),
    }
}

impl Command {
    /// Refuses to write over what is read, before anything is opened.
    pub(crate) fn expect_files_apart(&self) -> Result<(), Failure> {
        let files = match self {
            Self::Split(args) => args.files(),
            Self::Calibrate(args) => args.files(),
            Self::Tune(args) => args.files(),
            Self::Predict(args) => args.files(),
            Self::Evaluate(args) => args.files(),
            Self::Watch(args) => args.files(),
            Self::Merge(args) => args.files(),
            Self::Weigh(args) => args.files(),
            Self::Report(args) => args.files(),
            #[cfg(feature = "train")]
            Self::Logits(args) => args.files(),
            // These fill a folder of their own, in which nothing that they read lies.
            #[cfg(feature = "serve")]
            Self::Serve(_) => Files::default(),
            #[cfg(feature = "train")]
            Self::Train(_) => Files::default(),
            Self::Study(_) => Files::default(),
            Self::Plan(_) | Self::Inspect(_) | Self::Compare(_) | Self::Completions(_) | Self::Man(_) => {
                Files::default()
            }
        };
        files.expect_apart()
    }
}
