//! Classifiers of the paper: from raw data to weights and logits.

pub mod data;
