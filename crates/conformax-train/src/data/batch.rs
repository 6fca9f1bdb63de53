//! `Batch`: what a model sees at one step.

use std::sync::Arc;

use super::Enlarging;

/// Inputs and labels of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Which step it is for, counted from 0 over all epochs.
    pub step: u64,
    /// What is to be classified.
    pub inputs: BatchInputs,
    /// The class of each row.
    pub labels: Vec<u32>,
}

/// Numbers in row-major order, and their shape.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchInputs {
    /// Normalised pixels.
    Images {
        /// The pixels.
        values: Vec<f32>,
        /// Images, channels, height, width.
        shape: [usize; 4],
        /// How the device makes them larger, if it does.
        enlarging: Option<Arc<Enlarging>>,
    },
    /// Tokens of documents, padded to one length.
    Tokens {
        /// The number of each token.
        ids: Vec<i64>,
        /// 1 for a token, 0 for padding.
        mask: Vec<i64>,
        /// Which of the sequences of a document a token belongs to; 0 where there is one.
        types: Vec<i64>,
        /// Documents, length.
        shape: [usize; 2],
    },
}
