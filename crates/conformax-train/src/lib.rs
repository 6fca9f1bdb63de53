//! The paper's classifiers in Burn: from raw data to weights, and to logits that the rest of conformax takes.
#![recursion_limit = "256"]

pub mod checkpoint;
pub mod data;
pub mod loss;
pub mod model;
