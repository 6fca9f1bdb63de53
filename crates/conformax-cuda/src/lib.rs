//! CUDA kernels of conformax, on memory that others own.
//!
//! A caller hands over addresses, a shape and a stream, as PyTorch's tensors have them; nothing here allocates device
//! memory, copies to the host or waits. Kernels are CUDA C under `src/kernels`, compiled for the GPU at hand by NVRTC
//! on first use, one small program per type and layout, and kept on disk ([`Gpu`] says where). The driver and NVRTC are
//! looked for at run time, so that the crate builds and loads on machines without either; [`Gpu::available`] says what
//! is missing.
//!
//! ```
//! // On a machine without a driver the answer is an error that says so.
//! if let Err(problem) = conformax_cuda::Gpu::available() {
//!     assert!(problem.to_string().contains("CUDA"));
//! }
//! ```

mod activation;
mod cache;
mod error;
mod gpu;
mod layout;
mod program;
mod samples;
mod sets;

pub use activation::{Backward, Forward, GammaOf, Loss, LossBackward};
pub use error::Error;
pub use gpu::{Gpu, Stream};
pub use layout::Dtype;
pub use samples::compile_all;
pub use sets::{Family, LabelScores, PackedSets, Scratch, SetReports};

/// What every call gives.
pub type Result<T> = std::result::Result<T, Error>;
