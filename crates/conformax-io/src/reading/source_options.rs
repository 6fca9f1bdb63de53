//! `Data` and `SourceOptions`: what to read, and how.

use std::path::PathBuf;

use crate::ClassNames;
use crate::data::input::Input;

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Files, folders of shards, or `-`: each holds logits and, where there are some, labels.
    Files(Vec<PathBuf>),
    /// Logits in one file, labels in another.
    Pair {
        /// A `.npy` of shape (rows, classes); `-` for standard input.
        logits: PathBuf,
        /// A `.npy` of shape (rows,): integers or names.
        labels: Option<PathBuf>,
    },
}

/// Whether labels are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelUse {
    /// Their absence is an error.
    Required,
    /// They are read where they are.
    #[default]
    IfPresent,
    /// They are not looked at.
    Ignored,
}

/// How to read it; the defaults suit a file with `logits` and `labels`.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Name of the array or column of logits, `logits` unless given.
    pub logits_column: Option<String>,
    /// Name of the array or column of labels, `labels` or `label` unless given.
    pub label_column: Option<String>,
    /// Columns to carry through to the output.
    pub keep: Vec<String>,
    /// What the numbers are.
    pub input: Input,
    /// Names of the classes; where the file has names too, they must agree.
    pub names: Option<ClassNames>,
    /// Whether labels are read.
    pub labels: LabelUse,
    /// About how many bytes of logits a block holds.
    pub block_bytes: usize,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            logits_column: None,
            label_column: None,
            keep: Vec::new(),
            input: Input::default(),
            names: None,
            labels: LabelUse::default(),
            block_bytes: 8 << 20,
        }
    }
}
