//! `Dataset`: inputs and labels in the order of the files, and which rows are for what.

use std::ops::Range;

use super::{Error, Images, Result};

/// What a classifier learns from.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// What is to be classified, by row.
    pub inputs: Inputs,
    /// The class of each row.
    pub labels: Vec<u32>,
    /// The names of the classes; numbers where the files have none.
    pub class_names: Vec<String>,
    /// Which rows train, validate and test.
    pub parts: Parts,
}

impl Dataset {
    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }
}

/// What is to be classified.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Pictures.
    Images(Images),
    /// Documents.
    Texts(Vec<String>),
}

/// The three uses of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Rows whose gradients change the weights.
    Train,
    /// Rows that say when to stop.
    Validation,
    /// Rows whose logits are the result.
    Test,
}

/// The rows of each part, ascending; no row is in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Rows for training.
    pub train: Vec<usize>,
    /// Rows for validation; may be empty.
    pub validation: Vec<usize>,
    /// Rows for testing.
    pub test: Vec<usize>,
}

impl Parts {
    /// Parts that lie one after the other, with this many rows each.
    pub(crate) fn in_sequence(train: usize, validation: usize, test: usize) -> Self {
        let part = |range: Range<usize>| range.collect();
        Self {
            train: part(0..train),
            validation: part(train..train + validation),
            test: part(train + validation..train + validation + test),
        }
    }

    /// The rows of one part.
    pub fn rows(&self, part: Part) -> &[usize] {
        match part {
            Part::Train => &self.train,
            Part::Validation => &self.validation,
            Part::Test => &self.test,
        }
    }

    /// The rows of a part that must have some.
    pub(crate) fn some_rows(&self, part: Part) -> Result<&[usize]> {
        let rows = self.rows(part);
        let empty = || Error::Options(format!("the {} part has no rows", part.name()));
        if rows.is_empty() { Err(empty()) } else { Ok(rows) }
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Train => "training",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}
