//! `Dataset`: inputs and labels in the order of the files, and which rows are for what.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::error::InFile;
use super::{Error, Images, Result};
use crate::checkpoint::hexadecimal;

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
    /// The SHA-256 of inputs, labels and names, in hexadecimal digits. Image files are told by class, name and length:
    /// reading all of ImageNet for a sum would take as long as an epoch.
    pub(crate) fn digest(&self) -> Result<String> {
        let mut sum = Sha256::new();
        let mut add = |bytes: &[u8]| {
            // With their length first: "ab" and "c" are not "a" and "bc".
            sum.update((bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        };
        self.class_names.iter().for_each(|name| add(name.as_bytes()));
        let labels: Vec<u8> = self.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        add(&labels);
        match &self.inputs {
            Inputs::Texts(texts) => texts.iter().for_each(|text| add(text.as_bytes())),
            Inputs::Images(Images::Memory(pixels)) => {
                (0..self.labels.len()).for_each(|row| add(pixels.row(row)));
            }
            Inputs::Images(Images::Files(files)) => {
                for file in files {
                    let name = file.file_name().unwrap_or_default();
                    add(name.as_encoded_bytes());
                    let length = std::fs::metadata(file).in_file(file)?.len();
                    add(&length.to_le_bytes());
                }
            }
        }
        Ok(hexadecimal(&sum.finalize()))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_tells_data_apart() {
        let data = |texts: [&str; 2], labels: [u32; 2]| Dataset {
            inputs: Inputs::Texts(texts.map(str::to_owned).to_vec()),
            labels: labels.to_vec(),
            class_names: vec!["a".into(), "b".into()],
            parts: Parts::in_sequence(1, 0, 1),
        };
        let digest = |data: Dataset| data.digest().unwrap();
        let one = digest(data(["ab", "c"], [0, 1]));
        assert_eq!((one.len(), one.clone()), (64, digest(data(["ab", "c"], [0, 1]))));
        assert_ne!(one, digest(data(["a", "bc"], [0, 1])));
        assert_ne!(one, digest(data(["ab", "c"], [1, 1])));
    }
}
