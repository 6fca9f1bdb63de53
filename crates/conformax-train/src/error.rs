//! `Error`: why a run could not start or had to stop.

use std::path::PathBuf;

/// `std::result::Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run could not start or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The config's file cannot be read.
    #[error("cannot read the config {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The config is not what a config looks like.
    #[error("{file}:{line}: {message}\n  {text}")]
    Written {
        /// The config's file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The line itself.
        text: String,
        /// What was wanted and what came.
        message: String,
    },
    /// The config asks for something that cannot be.
    #[error("{key} {message}")]
    Config {
        /// The key at fault, as in the file: `training.epochs`.
        key: &'static str,
        /// What was wanted and what came.
        message: String,
    },
    /// The folder holds another run.
    #[error(
        "{} holds a run of another config: {difference}; train into another folder, or remove this one",
        folder.display()
    )]
    OtherRun {
        /// The run's folder.
        folder: PathBuf,
        /// Where the two configs differ.
        difference: String,
    },
    /// Another process trains into the folder.
    #[error("{} is being trained into by another process", folder.display())]
    Busy {
        /// The run's folder.
        folder: PathBuf,
    },
    /// A file of the run's folder is not what was written there.
    #[error("{}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The loss became infinite or undefined.
    #[error(
        "the loss is {loss} at step {step}: training diverged; lower training.learning_rate or set training.clip_norm"
    )]
    Diverged {
        /// The step, from 0.
        step: u64,
        /// The loss.
        loss: f32,
    },
    /// The model gave a logit that is no number.
    #[error("the model gives a logit that is not finite for test row {row}, class {class}")]
    Logit {
        /// The row, from 0.
        row: usize,
        /// The class.
        class: usize,
    },
    /// The data's classes are not the checkpoint's.
    #[error("{0}")]
    Labels(String),
    /// Somebody asked to stop before all rows had logits.
    #[error("stopped after the logits of {rows} rows; nothing was written")]
    Unfinished {
        /// Rows that had them.
        rows: usize,
    },
    /// The device is not there.
    #[error("{0}")]
    Device(String),
    /// Somebody asked to stop; what was done is kept.
    #[error("stopped after {step} steps; the same command goes on from there")]
    Stopped {
        /// Steps done.
        step: u64,
    },
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] crate::data::Error),
    /// The checkpoint to start from cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::Error),
    /// A file of the run's folder cannot be written or read.
    #[error(transparent)]
    File(#[from] conformax_io::Error),
}
