//! `Error`: every way a checkpoint can be unfit.

use std::path::PathBuf;

/// Why a checkpoint was not loaded; each message starts with the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The config is not one, or describes a model that is not ours.
    #[error("{}: {problem}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What was wanted and what came.
        problem: String,
    },
    /// The weights are not safetensors, or damaged.
    #[error("{}: not a safetensors file, or damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        problem: String,
    },
    /// A tensor the model needs is not there.
    #[error("{}: tensor {tensor} is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Its name as the file should have it.
        tensor: String,
    },
    /// A tensor that neither the model nor any known head uses.
    #[error("{}: tensor {tensor} is unknown to {model}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// The architecture.
        model: &'static str,
    },
    /// A tensor that is not of the size the config gives it.
    #[error("{}: tensor {tensor} has shape {found:?}, but config.json asks for {wanted:?}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// In the file.
        found: Vec<usize>,
        /// By the config.
        wanted: Vec<usize>,
    },
    /// A tensor that does not hold floats.
    #[error("{}: tensor {tensor} is stored as {found}, wanted F32, F16 or BF16", path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// Its name.
        tensor: String,
        /// The type in the file.
        found: String,
    },
}
