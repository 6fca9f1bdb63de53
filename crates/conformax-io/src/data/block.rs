//! `Block`: some consecutive rows of a data set, small enough to hold in memory.

use conformax::Logits;

use crate::data::values::each_dtype;
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
    /// The group of each row, where a column of groups was asked for: numbers into the source's
    /// [`groups`](crate::Source::groups), of which there are `known_groups` so far.
    pub groups: Option<Vec<u32>>,
    /// Groups that have been met.
    pub known_groups: usize,
    /// The weight of each row, where a column of weights was asked for.
    pub weights: Option<Vec<f64>>,
    /// Columns carried through to the output.
    pub keep: Vec<NamedCells>,
    /// Whether the numbers were said to be logits and look like probabilities: none of the first rows is negative, and
    /// all sum to one.
    pub doubtful: bool,
}

impl Default for Block {
    /// A block without rows, to be read into.
    fn default() -> Self {
        Self {
            first_row: 0,
            classes: 0,
            logits: Values::new(Dtype::F32),
            labels: None,
            groups: None,
            known_groups: 0,
            weights: None,
            keep: Vec::new(),
            doubtful: false,
        }
    }
}

impl Block {
    /// The fingerprint of every row; see [`conformax::row_fingerprints`].
    pub fn row_fingerprints(&self) -> Vec<u64> {
        each_dtype!(&self.logits, v => {
            Logits::new(v, self.classes.max(1)).map(conformax::row_fingerprints).unwrap_or_default()
        })
    }

    /// These logits, which are the block's own, with what comes beside them.
    pub fn beside<'a, T: conformax::Logit>(
        &'a self,
        logits: Logits<'a, T>,
    ) -> conformax::Result<Logits<'a, T>> {
        let logits = match &self.groups {
            Some(groups) => logits.with_groups(groups)?,
            None => logits,
        };
        match &self.weights {
            Some(weights) => logits.with_weights(weights),
            None => Ok(logits),
        }
    }

    /// The first rows alone.
    #[must_use]
    pub fn first(&self, rows: usize) -> Self {
        let mut logits = Values::new(self.logits.dtype());
        logits.extend_rows(&self.logits, self.classes, 0..rows);
        let keep = self.keep.iter().map(|kept| {
            let mut cells = kept.cells.clone();
            cells.truncate(rows);
            NamedCells { name: kept.name.clone(), cells }
        });
        Self {
            logits,
            labels: self.labels.as_ref().map(|labels| labels[..rows].to_vec()),
            groups: self.groups.as_ref().map(|groups| groups[..rows].to_vec()),
            weights: self.weights.as_ref().map(|weights| weights[..rows].to_vec()),
            keep: keep.collect(),
            ..*self
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.logits.len() / self.classes.max(1)
    }
}
