//! From raw files to batches of numbers.
//!
//! ```text
//! Source ──read──▶ Dataset ──split──▶ Dataset ──prepare──▶ Examples ──▶ Plan ──▶ Batches
//! (a format,       (inputs, labels,   (its rows            (checked,    (step    (the same,
//!  a path)          parts as given)    divided)             tokenised)   → Batch) ahead on threads)
//! ```
//!
//! A batch is a function of the seed and the step alone: not of the number of threads, nor of where a run was
//! taken up again. What cannot be read is an error that names the file; nothing is left out silently.

mod augment;
mod batch;
mod batches;
mod cifar;
mod class_names;
mod csv_text;
mod dataset;
mod error;
mod examples;
mod folder;
mod idx;
mod image_folder;
mod image_transform;
mod images;
mod news_text;
mod newsgroups;
mod plan;
mod resample;
mod source;
mod splitting;
mod tokens;

pub use augment::Augment;
pub use batch::{Batch, BatchInputs};
pub use batches::Batches;
pub use dataset::{Dataset, Inputs, Part, Parts};
pub use error::{Error, Place, Problem, Result};
pub use examples::{Examples, Preparation};
pub use image_transform::{ImageTransform, Resize};
pub use images::{Images, Pixels};
pub use news_text::Remove;
pub use plan::Plan;
pub use resample::{Enlarging, Matrix};
pub use source::Source;
pub use splitting::Splitting;
pub use tokens::Tokenizing;
