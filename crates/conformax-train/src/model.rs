//! The paper's classifiers.

mod attention;
pub mod bert;
mod encoder;
pub mod vit;
