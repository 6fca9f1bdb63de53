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
//! One per format, all on by default: `npy` (`.npy`, `.npz`), `parquet` (Parquet, Arrow), `csv`, `safetensors`, `jsonl`.
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
mod array;
#[cfg(any(feature = "npy", feature = "safetensors"))]
mod arrays_reader;
#[cfg(feature = "parquet")]
mod arrow;
#[cfg(feature = "parquet")]
mod arrow_messages;
mod block;
mod cells;
mod class_names;
#[cfg(any(feature = "npy", feature = "safetensors"))]
mod columns;
#[cfg(feature = "csv")]
mod csv;
#[cfg(any(feature = "npy", feature = "safetensors"))]
mod decode;
mod error;
mod fingerprint;
mod fit;
mod format;
#[cfg(feature = "parquet")]
mod guard;
mod input;
#[cfg(feature = "jsonl")]
mod json_lines;
mod model;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "npy")]
mod npy_header;
#[cfg(feature = "npy")]
mod npz;
#[cfg(feature = "npy")]
mod npz_writer;
mod open;
mod output;
#[cfg(feature = "parquet")]
mod page_header;
#[cfg(feature = "npy")]
mod pair;
#[cfg(feature = "parquet")]
mod parquet;
mod positioned;
mod reader;
#[cfg(feature = "parquet")]
mod record_batch;
mod resolve;
#[cfg(any(feature = "csv", feature = "jsonl"))]
mod row_limit;
#[cfg(feature = "safetensors")]
mod safetensors;
mod sets;
mod shards;
mod source;
mod source_options;
mod stamp;
#[cfg(feature = "parquet")]
mod thrift;
mod values;
#[cfg(feature = "npy")]
mod zip_sink;

pub use block::Block;
pub use cells::{CellType, Cells, NamedCells};
pub use class_names::ClassNames;
pub use error::{Column, Error, Place, Problem, Result};
pub use fingerprint::{DataFingerprint, ROW_HASH, RowSet, row_fingerprints};
pub use format::Format;
#[cfg(feature = "parquet")]
pub use guard::hush_caught_panics;
pub use input::Input;
pub use model::{Model, TuningRecord};
#[cfg(feature = "npy")]
pub use npz_writer::{ArrayShape, NpyWriter, NpzWriter, write_labels};
pub use output::{Output, Overwrite};
pub use sets::{PValues, SetColumns, SetRows, SetsWriter};
pub use source::Source;
pub use source_options::{Data, LabelUse, SourceOptions};
pub use values::{Dtype, Values};
