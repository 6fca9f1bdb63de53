//! What is written, whole or not at all: prediction sets and data.

pub(crate) mod columns;
pub(crate) mod data;
#[cfg(feature = "npy")]
pub(crate) mod npz_writer;
pub(crate) mod output;
pub(crate) mod sets;
#[cfg(feature = "npy")]
pub(crate) mod zip_sink;
