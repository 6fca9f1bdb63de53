//! The paper's classifiers in Burn: from raw data to weights, and to logits that the rest of conformax takes.
//!
//! ```text
//! Config ──▶ Examples ──▶ Classifier ──▶ training ──▶ model.safetensors ──▶ test.npz
//! (TOML)     (data.rs)    (model.rs)     (training.rs)                      (export.rs)
//! ```
//!
//! [`logits`] does the last step alone, with a checkpoint's own head.
//!
//! A run is one [`Config`] and one folder. [`train`] takes up a run that was stopped where its last checkpoint is, and
//! on the CPU ends with the same weights, bit for bit, as one that was never stopped: every step reseeds the backend
//! and asks for its batch by number.
//!
//! # Features
//! - `tch`: LibTorch beside the portable CPU backend, for a GPU. Needs `LIBTORCH` at build time.
#![recursion_limit = "256"]

pub mod checkpoint;
pub mod data;
pub mod loss;
pub mod model;

mod backend;
mod card;
mod config;
mod curve;
mod error;
mod export;
mod logits;
mod run_folder;
mod training;
mod weights;

pub use backend::Device;
pub use card::Card;
pub use config::{Config, ModelConfig, TokensConfig, TrainingConfig};
pub use curve::{Curve, EpochRecord};
pub use error::{Error, Result};
pub use logits::{LogitsRequest, Matched, Scored, logits};
pub use run_folder::{Resumed, RunFolder};
pub use training::{Decay, Decayed, Observer, Outcome, Schedule, StepPart, Unobserved, train};
