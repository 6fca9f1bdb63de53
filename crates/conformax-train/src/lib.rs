//! The paper's classifiers in Burn: from raw data to weights, and to logits that the rest of conformax takes.

pub mod loss;
