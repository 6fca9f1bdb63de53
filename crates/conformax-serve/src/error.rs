//! `Error`: why the service could not start, or could not keep what it was told.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What was wanted, what came and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder that could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A model or an output that could not be read or written.
    #[error(transparent)]
    Io(#[from] conformax_io::Error),
    /// A journal that cannot be read to its end, though what comes after was on the disk.
    #[error(
        "{0}: damaged at byte {at}, with {labels} label{1} after it that may have been acknowledged; restore the file \
         from a copy, or cut it there and lose what follows: truncate -s {at} {0}",
        path.display(),
        if *labels == 1 { "" } else { "s" }
    )]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Where it cannot be read.
        at: u64,
        /// Labels that can be read beyond.
        labels: u64,
    },
    /// A journal that was there and has been emptied or removed.
    #[error(
        "{}: has been emptied or removed, and with it labels that may have been acknowledged; restore the file from a \
         copy, or move its folder away to begin anew", path.display()
    )]
    Emptied {
        /// The journal.
        path: PathBuf,
    },
    /// A file under the name of a journal that is none.
    #[error("{}: is not a journal of this version; move it away, or keep what is learned elsewhere", path.display())]
    NoJournal {
        /// The file.
        path: PathBuf,
    },
    /// A snapshot that cannot be read.
    #[error("{}: {what}; restore the file from a copy, or move its folder away to begin anew", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: conformax::Error,
    },
    /// A state folder that another process uses.
    #[error("{}: another process serves from this folder; stop it, or take another folder", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// An address that could not be listened on.
    #[error("listening on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// An address that others can reach, without a token.
    #[error("{0} can be reached from other machines, and without a token anybody there could ask")]
    Open(SocketAddr),
    /// A token that nobody should use.
    #[error("a token must have at least 16 printable characters without spaces, got {0}")]
    Token(usize),
    /// A name of a model that does not fit into addresses and file names.
    #[error("a model's name must be 1 to 64 letters, digits, dots, dashes or underscores, got {0:?}")]
    Name(String),
    /// Two models of one name.
    #[error("two models are called {0:?}")]
    NameTwice(String),
    /// No model at all.
    #[error("at least one model is needed")]
    NoModel,
    /// Threads that could not be started.
    #[error("starting threads: {0}")]
    Threads(std::io::Error),
    /// The disk did not take what it was told to keep, so that nothing more can be promised.
    #[error("the journal could not be synced to the disk; look after the disk and start again")]
    NotSynced,
}

impl Error {
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    pub(crate) fn damaged(path: &Path, what: conformax::Error) -> Self {
        Self::Snapshot { path: path.to_owned(), what }
    }
}
