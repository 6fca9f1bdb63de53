//! Logits from one file and labels from another.

use crate::arrays::array::Vector;
use crate::error::{Error, Problem, Result};
use crate::reading::reader::{Layout, Reader, Rows};

pub(crate) struct PairReader {
    logits: Box<dyn Reader>,
    labels: Vector,
    layout: Layout,
    read: u64,
}

impl PairReader {
    /// Puts labels beside logits; both must have as many rows, which is checked now where both lengths are known.
    pub(crate) fn new(logits: Box<dyn Reader>, labels: Vector) -> Result<Self> {
        let layout = Layout { has_labels: true, ..logits.layout().clone() };
        let pair = Self { logits, labels, layout, read: 0 };
        match pair.layout.rows {
            Some(rows) if rows != pair.labels.rows() => Err(pair.rows_differ(rows)),
            _ => Ok(pair),
        }
    }

    fn rows_differ(&self, logits: u64) -> Error {
        let (what, found) = ("labels".to_owned(), self.labels.rows());
        Error::new(self.labels.path(), Problem::RowsDiffer { logits, what, found })
    }
}

impl Reader for PairReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        self.logits.read(most, into)?;
        let rows = into.len(self.layout.classes);
        let labels = self.labels.read(rows)?;
        self.read += rows as u64;
        if labels.len() != rows || (rows == 0 && self.read != self.labels.rows()) {
            return Err(self.rows_differ(self.read));
        }
        into.labels = Some(labels);
        Ok(())
    }
}
