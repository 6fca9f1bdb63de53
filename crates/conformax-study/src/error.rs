//! `Error`: why a study cannot run, and where in its file the reason is.

use std::path::PathBuf;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a study cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The study's file cannot be read.
    #[error("cannot read the study {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Something the study asks for cannot be.
    #[error("{place}: {message}\n  {}", place.text)]
    Study {
        /// The line at fault.
        place: Place,
        /// What was wanted and what came.
        message: String,
    },
    /// A benchmark on which no line of a study is at fault.
    #[error("benchmark {name}: {message}")]
    Benchmark {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// [`Progress::stop`](crate::Progress::stop) said so.
    #[error("stopped before the end")]
    Stopped,
    /// The core refused.
    #[error(transparent)]
    Core(#[from] conformax::Error),
}

/// A line of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The study's file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The line itself.
    pub text: String,
}

impl Place {
    /// The line that holds the byte at `offset` of `text`.
    pub(crate) fn of(file: &str, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count();
        let text = text.lines().nth(line).unwrap_or_default().trim().to_owned();
        Self { file: file.to_owned(), line: line + 1, text }
    }

    pub(crate) fn fault(&self, message: impl Into<String>) -> Error {
        Error::Study { place: self.clone(), message: message.into() }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
