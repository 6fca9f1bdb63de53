//! `Data` and `SourceOptions`: what to read, and how.

use std::path::PathBuf;
use std::sync::Arc;

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
    /// A file that is in memory as a whole.
    InMemory {
        /// What it would be called, which also tells its format.
        name: PathBuf,
        /// What it would hold.
        bytes: Arc<Vec<u8>>,
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

/// What integers among the labels mean, where classes have integers for names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelsAre {
    /// Positions among the logits, from 0.
    Indices,
    /// Names of classes.
    Names,
}

/// How to read it; the defaults suit a file with `logits` and `labels`.
///
/// In a table of one column per class (CSV, and Parquet or Arrow without a column of lists) every column is a class
/// unless another of these options says what it is.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Name of the array or column of logits, `logits` unless given.
    pub logits_column: Option<String>,
    /// Name of the array or column of labels, `labels` or `label` unless given.
    pub label_column: Option<String>,
    /// What integers among the labels mean; where that is not clear and not said, they are refused.
    pub labels_are: Option<LabelsAre>,
    /// The columns of the classes, in their order, where each class has one; the other columns are then none.
    pub classes: Option<Vec<String>>,
    /// Columns to carry through to the output.
    pub keep: Vec<String>,
    /// The column of each row's group, where rows come in groups.
    pub group_column: Option<String>,
    /// The names of all groups there are, in their order; where not given, they are numbered as they are met.
    pub group_names: Option<Vec<String>>,
    /// The column of each row's weight, where rows have one.
    pub weight_column: Option<String>,
    /// Whether every other column with one value per row is carried through too.
    pub keep_others: bool,
    /// Columns that are neither classes nor carried through.
    pub drop: Vec<String>,
    /// What the numbers are.
    pub input: Input,
    /// The shares of the classes that are taken out of the logits.
    pub prior: Option<conformax::Prior>,
    /// Names of the classes; where the file has names too, they must agree.
    pub names: Option<ClassNames>,
    /// Whether labels are read.
    pub labels: LabelUse,
    /// About how many bytes of logits a block holds.
    pub block_bytes: usize,
    /// The most bytes that a compressed batch of an Arrow file may come to, where its writer is not to be trusted.
    pub most_inflated: Option<u64>,
    /// Threads of the caller's pool that may read at a time, where logits need only be copied from their file.
    pub threads: usize,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            logits_column: None,
            label_column: None,
            labels_are: None,
            classes: None,
            keep: Vec::new(),
            group_column: None,
            group_names: None,
            weight_column: None,
            keep_others: false,
            drop: Vec::new(),
            input: Input::default(),
            prior: None,
            names: None,
            labels: LabelUse::default(),
            block_bytes: 8 << 20,
            most_inflated: None,
            threads: 1,
        }
    }
}
