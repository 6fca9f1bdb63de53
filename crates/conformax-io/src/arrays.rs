//! Files of arrays, each with a type and a shape: `.npy`, `.npz`, safetensors.

pub(crate) mod array;
pub(crate) mod arrays_reader;
pub(crate) mod columns;
pub(crate) mod decode;
#[cfg(feature = "npy")]
pub(crate) mod npy;
#[cfg(feature = "npy")]
pub(crate) mod npy_header;
#[cfg(feature = "npy")]
pub(crate) mod npz;
#[cfg(feature = "safetensors")]
pub(crate) mod safetensors;
pub(crate) mod widened;
