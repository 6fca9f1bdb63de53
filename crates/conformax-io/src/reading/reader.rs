//! `Reader`: what every format offers: a layout known on opening, then rows in order.

use crate::error::Result;
use crate::reading::in_place::Unread;
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

/// What is known about a file before its rows are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    /// Number of rows, where the format says so.
    pub(crate) rows: Option<u64>,
    pub(crate) classes: usize,
    pub(crate) dtype: Dtype,
    pub(crate) names: Option<ClassNames>,
    pub(crate) has_labels: bool,
    /// Name and type of each kept column, in the order asked for.
    pub(crate) keep: Vec<(String, CellType)>,
}

/// Rows as a format has them: labels not yet looked up, probabilities not yet logarithms.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) logits: Values,
    /// The logits instead, where they are still in the file.
    pub(crate) unread: Option<Unread>,
    pub(crate) labels: Option<Cells>,
    pub(crate) keep: Vec<NamedCells>,
}

impl Rows {
    pub(crate) fn len(&self, classes: usize) -> usize {
        self.unread.as_ref().map_or_else(|| self.logits.len() / classes.max(1), Unread::len)
    }

    /// Leaves the first rows.
    pub(crate) fn truncate(&mut self, rows: usize, classes: usize) {
        match &mut self.unread {
            Some(unread) => unread.truncate(rows),
            None => self.logits.resize(rows * classes),
        }
        self.labels.iter_mut().for_each(|labels| labels.truncate(rows));
        self.keep.iter_mut().for_each(|kept| kept.cells.truncate(rows));
    }
}

/// One open file of one format.
pub(crate) trait Reader: Send {
    fn layout(&self) -> &Layout;

    /// Replaces `into` by the next rows, at most `most` of them; no rows means the end. Rows that have come through a
    /// pipe are given out as soon as there are no more of them. Before, nothing of `into` is unread.
    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()>;
}

/// Which columns to look for; the fields are those of [`crate::SourceOptions`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) logits_column: Option<String>,
    pub(crate) label_column: Option<String>,
    /// Whether labels are read where they exist.
    pub(crate) labels: bool,
    pub(crate) classes: Option<Vec<String>>,
    pub(crate) keep: Vec<String>,
    pub(crate) keep_others: bool,
    pub(crate) drop: Vec<String>,
    /// Names that the classes are known to have.
    pub(crate) names: Option<ClassNames>,
    /// The most bytes that a compressed batch may come to.
    pub(crate) most_inflated: Option<u64>,
}

/// Names that arrays and metadata of class names go by.
pub(crate) const CLASS_NAMES: [&str; 2] = ["class_names", "classes"];
