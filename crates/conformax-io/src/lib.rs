//! Logits, tables and calibration files on disk, in and out of the types of [`conformax`].
//!
//! A [`Source`] reads a data set of any size in blocks: `.npy`, `.npz`, Parquet, Arrow, CSV, safetensors, JSON Lines,
//! one file or many. What comes out is written whole or not at all: [`NpzWriter`] for data, [`SetsWriter`] for
//! prediction sets, [`Model`] for what calibration found. Every error names the file and, where there is one, the row.
//!
//! ```
//! use conformax_io::{Block, Data, Source, SourceOptions, Values};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("cal.csv");
//! std::fs::write(&path, "cat,dog,label\n2.5,0.5,cat\n0.25,1.5,dog\n")?;
//!
//! let mut source = Source::open(&Data::Files(vec![path]), &SourceOptions::default())?;
//! let mut block = Block::default();
//! while source.read(&mut block)? {
//!     assert_eq!(block.logits, Values::F64(vec![2.5, 0.5, 0.25, 1.5]));
//!     assert_eq!(block.labels, Some(vec![0, 1]));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! One per format, all on by default: `npy` (`.npy`, `.npz`), `parquet` (Parquet, Arrow), `csv`, `safetensors`,
//! `jsonl`.
#![cfg_attr(
    not(all(
        feature = "npy",
        feature = "parquet",
        feature = "csv",
        feature = "safetensors",
        feature = "jsonl"
    )),
    allow(
        dead_code,
        unused_variables,
        reason = "a build without some formats has no use for all they share"
    )
)]

#[cfg(any(feature = "npy", feature = "safetensors"))]
mod arrays;
mod calibration;
mod data;
mod error;
mod reading;
#[cfg(feature = "parquet")]
mod tables;
#[cfg(any(feature = "csv", feature = "jsonl"))]
mod text;
mod writing;

pub use calibration::calibrating::Calibrating;
pub use calibration::kind::{expect_json_lines, is_calibration};
pub use calibration::model::{Beside, Impossible, KeptLevel, Model, SelectionRecord, TuningRecord};
pub use calibration::part::{Part, PartOf, Settings};
pub use data::block::Block;
pub use data::cells::{CellType, Cells, NamedCells};
pub use data::class_names::ClassNames;
pub use data::format::Format;
pub use data::input::{GIVE_LOGITS, Input, LIKE_PROBABILITIES};
pub use data::per_class::{Clusters, read_clusters, read_label_weights, read_matrix, read_numbers_per_class};
pub use data::utf8::without_mark;
pub use data::values::{Dtype, Values};
pub use error::{Column, Error, Place, Problem, Purpose, Result, printable};
pub use reading::source::{Rest, Source};
pub use reading::source_options::{Data, LabelUse, LabelsAre, SourceOptions};
pub use reading::stamp::is_same_file;
#[cfg(feature = "parquet")]
pub use tables::guard::hush_caught_panics;
#[cfg(feature = "jsonl")]
pub use text::json_request::RequestFault;
#[cfg(feature = "jsonl")]
pub use text::json_row::{JsonLabel, JsonRow, JsonRows, LONGEST_ID, RowFault, whole_id};
pub use writing::data::{DataColumns, DataWriter};
#[cfg(feature = "npy")]
pub use writing::npz_writer::{ArrayShape, NpyWriter, NpzWriter, write_labels};
pub use writing::output::{Output, Overwrite, abandon_outputs};
pub use writing::sets::{PValues, SetColumns, SetRows, SetsWriter};
