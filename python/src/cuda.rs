//! Launches on CUDA tensors. Addresses, shapes and streams are what PyTorch says of its tensors; the Python side keeps the
//! tensors alive and has checked types and shapes.
#![allow(unsafe_code)]

use conformax::Gamma;
use conformax_cuda::{Backward, Dtype, Error, Forward, GammaOf, Gpu, Loss, LossBackward, Stream};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Why no kernel can run here, or None where they can.
#[pyfunction]
pub fn cuda_problem(py: Python<'_>) -> Option<String> {
    py.detach(|| Gpu::available().err().map(|problem| problem.to_string()))
}

fn python_error(error: Error) -> PyErr {
    match error {
        Error::Core(_) | Error::Shape { .. } => PyValueError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

fn dtype_of(code: u32) -> PyResult<Dtype> {
    match code {
        0 => Ok(Dtype::F32),
        1 => Ok(Dtype::F64),
        2 => Ok(Dtype::F16),
        3 => Ok(Dtype::Bf16),
        _ => Err(PyValueError::new_err(format!("wanted 0 to 3 for the type of the logits, got {code}"))),
    }
}

/// One γ, or the address of one for each row.
fn gamma_of(gamma: f64, gammas: u64, stride: i64) -> PyResult<GammaOf> {
    if gammas != 0 {
        return Ok(GammaOf::Each { first: gammas, stride });
    }
    Gamma::new(gamma).map(GammaOf::All).map_err(|error| python_error(error.into()))
}

fn on(device: usize, py: Python<'_>, work: impl FnOnce(&Gpu) -> conformax_cuda::Result<()> + Send) -> PyResult<()> {
    // A first call compiles.
    py.detach(|| Gpu::get(device).and_then(|gpu| work(&gpu))).map_err(python_error)
}

/// The probabilities of every row.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn cuda_entmax(
    py: Python<'_>,
    device: usize,
    stream: u64,
    dtype: u32,
    logits: u64,
    out: u64,
    rows: u64,
    classes: u64,
    gamma: f64,
    gammas: u64,
    stride: i64,
) -> PyResult<()> {
    let (dtype, gamma) = (dtype_of(dtype)?, gamma_of(gamma, gammas, stride)?);
    let forward = Forward { dtype, logits, out, rows, classes, gamma };
    // SAFETY: tensors of this device and shape, which the Python side holds; PyTorch's allocator keeps their memory until
    // the stream has passed.
    on(device, py, |gpu| unsafe { forward.launch(gpu, Stream(stream)) })
}

/// The backward product of every row, and each row's part of the gradient in γ.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn cuda_entmax_backward(
    py: Python<'_>,
    device: usize,
    stream: u64,
    dtype: u32,
    p: u64,
    upstream: u64,
    out: u64,
    in_gamma: u64,
    rows: u64,
    classes: u64,
    gamma: f64,
    gammas: u64,
    stride: i64,
) -> PyResult<()> {
    let (dtype, gamma) = (dtype_of(dtype)?, gamma_of(gamma, gammas, stride)?);
    let backward = Backward { dtype, p, upstream, out, in_gamma, rows, classes, gamma };
    // SAFETY: as for `cuda_entmax`.
    on(device, py, |gpu| unsafe { backward.launch(gpu, Stream(stream)) })
}

/// The loss of a label of every row.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn cuda_entmax_loss(
    py: Python<'_>,
    device: usize,
    stream: u64,
    dtype: u32,
    logits: u64,
    labels: u64,
    losses: u64,
    kept: u64,
    rows: u64,
    classes: u64,
    gamma: f64,
    gammas: u64,
    stride: i64,
) -> PyResult<()> {
    let (dtype, gamma) = (dtype_of(dtype)?, gamma_of(gamma, gammas, stride)?);
    let loss = Loss { dtype, logits, labels, losses, kept, rows, classes, gamma };
    // SAFETY: as for `cuda_entmax`.
    on(device, py, |gpu| unsafe { loss.launch(gpu, Stream(stream)) })
}

/// The gradient of the losses in the logits.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn cuda_entmax_loss_backward(
    py: Python<'_>,
    device: usize,
    stream: u64,
    dtype: u32,
    logits: u64,
    labels: u64,
    kept: u64,
    upstream: u64,
    spread: i64,
    out: u64,
    rows: u64,
    classes: u64,
    gamma: f64,
    gammas: u64,
    stride: i64,
) -> PyResult<()> {
    let (dtype, gamma) = (dtype_of(dtype)?, gamma_of(gamma, gammas, stride)?);
    let backward =
        LossBackward { dtype, logits, labels, kept, upstream, spread, out, rows, classes, gamma };
    // SAFETY: as for `cuda_entmax`.
    on(device, py, |gpu| unsafe { backward.launch(gpu, Stream(stream)) })
}
