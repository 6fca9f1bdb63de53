//! Every way reading data can fail, and the place it happened.
//!
//! A message reads `cifar/test_batch.bin: record 17: …`: the file first, because that is what the person at the
//! keyboard has to open. Records count from 0.

use std::fmt;
use std::path::{Path, PathBuf};

/// A result whose error names a file or an option.
pub type Result<T> = std::result::Result<T, Error>;

/// Why no data came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A problem of a file or folder.
    #[error("{place}: {problem}")]
    File {
        /// Where it is.
        place: Place,
        /// What it is.
        problem: Problem,
    },
    /// Options that contradict each other or the data.
    #[error("{0}")]
    Options(String),
}

impl Error {
    /// A problem of the file as a whole.
    pub(crate) fn new(path: impl Into<PathBuf>, problem: impl Into<Problem>) -> Self {
        Self::File { place: Place { path: path.into(), record: None }, problem: problem.into() }
    }

    /// A problem of one record in a file.
    pub(crate) fn in_record(path: &Path, record: usize, problem: impl Into<Problem>) -> Self {
        Self::File {
            place: Place { path: path.to_owned(), record: Some(record as u64) },
            problem: problem.into(),
        }
    }

    /// Bytes that do not follow `format`.
    pub(crate) fn damaged(path: &Path, format: &'static str, what: impl fmt::Display) -> Self {
        Self::new(path, Problem::Damaged { format, what: what.to_string() })
    }
}

/// A file or folder and, where there is one, a record in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or folder as it was reached from the path given.
    pub path: PathBuf,
    /// The image, document or row within that file, from 0.
    pub record: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.record.map_or(Ok(()), |record| write!(f, ": record {record}"))
    }
}

/// What was wanted and what came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes do not follow the format.
    #[error("damaged or not {format}: {what}")]
    Damaged {
        /// The format as a noun phrase, "an idx file".
        format: &'static str,
        /// What was wrong with it.
        what: String,
    },
    /// Another length than the header or the format asks for.
    #[error("needs {wanted} bytes, but {found} are there")]
    Length {
        /// Bytes the header promises.
        wanted: u64,
        /// Bytes that exist.
        found: u64,
    },
    /// A file that is not made of whole records.
    #[error("{found} bytes are not a whole number of records of {record} bytes")]
    PartialRecord {
        /// Bytes of one record.
        record: usize,
        /// Bytes of the file.
        found: usize,
    },
    /// An index that names no class.
    #[error("label {label} is outside 0..{classes}")]
    LabelOutside {
        /// The label found.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A class that the training part does not have.
    #[error("class `{0}` does not occur in the training part")]
    UnknownClass(String),
    /// Another number of classes, or other names, than elsewhere.
    #[error("names {found} classes, {wanted} were expected")]
    ClassNames {
        /// Classes of the data.
        wanted: usize,
        /// Names in the file.
        found: usize,
    },
    /// Images and labels of different number.
    #[error("{labels} labels for {images} images")]
    RowsDiffer {
        /// Images.
        images: usize,
        /// Labels.
        labels: usize,
    },
    /// An image that does not fit beside the others.
    #[error("the image is {found}, the others are {wanted}; resize them to one size")]
    SizesDiffer {
        /// Height × width of the first image.
        wanted: String,
        /// Height × width of this one.
        found: String,
    },
    /// A file or folder that should be there is not.
    #[error("holds no {0}")]
    Missing(&'static str),
    /// A column that should be there is not.
    #[error("no column `{wanted}`; there are {found}")]
    NoColumn {
        /// Its name.
        wanted: String,
        /// Those that are there.
        found: String,
    },
    /// A file among class folders, or a folder among images.
    #[error("{0}")]
    Unexpected(&'static str),
    /// A cell without a class.
    #[error("the label is empty")]
    EmptyLabel,
    /// Text that is not UTF-8.
    #[error("is not UTF-8 text")]
    NotUtf8,
}

/// Adds the path to an error that came without one.
pub(crate) trait InFile<T> {
    fn in_file(self, path: &Path) -> Result<T>;
}

impl<T, E: Into<Problem>> InFile<T> for std::result::Result<T, E> {
    fn in_file(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::new(path, error))
    }
}
