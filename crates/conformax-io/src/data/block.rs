//! `Block`: some consecutive rows of a data set, small enough to hold in memory.

use crate::{Dtype, NamedCells, Values};

/// Consecutive rows, with whatever came beside the logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Row of the data set, over all its files, that comes first here.
    pub first_row: u64,
    /// Logits in a row.
    pub classes: usize,
    /// The logits, row after row.
    pub logits: Values,
    /// The true label of each row, checked to lie in `0..classes`.
    pub labels: Option<Vec<u32>>,
    /// Columns carried through to the output.
    pub keep: Vec<NamedCells>,
}

impl Default for Block {
    /// A block without rows, to be read into.
    fn default() -> Self {
        Self { first_row: 0, classes: 0, logits: Values::new(Dtype::F32), labels: None, keep: Vec::new() }
    }
}

impl Block {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.logits.len() / self.classes.max(1)
    }
}
