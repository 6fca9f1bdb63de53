//! `ExitCode`: what the command tells whoever started it.

use std::process::Termination;

/// 0 for done, 1 for "the answer is no", 2 for "could not run".
///
/// ```
/// assert_eq!(conformax_cli::ExitCode::No.code(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// Done.
    Done,
    /// It ran, and the answer is no: coverage is below what was expected.
    No,
    /// It could not run: wrong arguments, an unreadable file, an interruption.
    CouldNotRun,
}

impl ExitCode {
    /// The number a shell sees.
    ///
    /// ```
    /// assert_eq!(conformax_cli::ExitCode::Done.code(), 0);
    /// ```
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::CouldNotRun => 2,
        }
    }
}

impl Termination for ExitCode {
    fn report(self) -> std::process::ExitCode {
        self.code().into()
    }
}
