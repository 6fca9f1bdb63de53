//! Launches on CUDA tensors. Addresses, shapes and streams are what PyTorch says of its tensors; the Python side keeps
//! the tensors alive and has checked types and shapes.
#![allow(unsafe_code)]

use conformax::Gamma;
use conformax_cuda::{
    Backward, Dtype, Error, Family, Forward, GammaOf, Gpu, LabelScores, Loss, LossBackward, PackedSets,
    Scratch, Stream,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Why no kernel can run here, or None where they can.
#[pyfunction]
pub fn cuda_problem(py: Python<'_>) -> Option<String> {
    py.detach(|| Gpu::available().err().map(|problem| problem.to_string()))
}

/// Compiles a program of every kernel for an architecture and says how many there were; no GPU is needed.
#[pyfunction]
pub fn cuda_compile_all(py: Python<'_>, architecture: &str) -> PyResult<usize> {
    py.detach(|| conformax_cuda::compile_all(architecture)).map_err(python_error)
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

fn on<A: Send>(
    device: usize,
    py: Python<'_>,
    work: impl FnOnce(&Gpu) -> conformax_cuda::Result<A> + Send,
) -> PyResult<A> {
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
    // SAFETY: tensors of this device and shape, which the Python side holds; PyTorch's allocator keeps their memory
    // until the stream has passed.
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
    let backward = LossBackward { dtype, logits, labels, kept, upstream, spread, out, rows, classes, gamma };
    // SAFETY: as for `cuda_entmax`.
    on(device, py, |gpu| unsafe { backward.launch(gpu, Stream(stream)) })
}

/// Rows of logits on a device under a score of the entmax family: launches whose results have the CPU's bits.
#[pyclass(frozen, module = "conformax._conformax")]
pub struct CudaRows {
    family: Family,
    device: usize,
    stream: u64,
}

#[pymethods]
impl CudaRows {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        device: usize,
        stream: u64,
        dtype: u32,
        logits: u64,
        rows: u64,
        classes: u64,
        gamma: f64,
        fault: u64,
    ) -> PyResult<Self> {
        let gamma = Gamma::new(gamma).map_err(|error| python_error(error.into()))?;
        let family = Family { dtype: dtype_of(dtype)?, logits, rows, classes, gamma, fault };
        Ok(Self { family, device, stream })
    }

    /// The score of one label of every row.
    fn score_labels(&self, py: Python<'_>, labels: u64, scores: u64, never: bool) -> PyResult<()> {
        let to = LabelScores { labels, scores, never };
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe { self.family.score_labels(gpu, Stream(self.stream), to) })
    }

    /// The score of every label, +∞ for those further than `bound` below the maximum.
    fn score_all(&self, py: Python<'_>, bound: f64, scores: u64) -> PyResult<()> {
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe { self.family.score_all(gpu, Stream(self.stream), bound, scores) })
    }

    /// Words of 32 bits that finding sets needs, and the word of the first row's size.
    fn set_scratch(&self) -> (u64, u64) {
        let scratch = Scratch::new(self.family.rows);
        (scratch.words(), scratch.sizes())
    }

    /// The set of every row at a finite threshold, into the scratch.
    fn find_sets(&self, py: Python<'_>, threshold: f64, top_label: bool, scratch: u64) -> PyResult<()> {
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe {
            self.family.find_sets(gpu, Stream(self.stream), threshold, top_label, scratch)
        })
    }

    /// Waits, and says how many labels there are in all, and the first row at fault and with too many, if any.
    fn set_reports(&self, py: Python<'_>, scratch: u64) -> PyResult<(u64, Option<u64>, Option<u64>)> {
        // SAFETY: as for `cuda_entmax`.
        let found =
            on(self.device, py, |gpu| unsafe { self.family.set_reports(gpu, Stream(self.stream), scratch) })?;
        Ok((found.total, found.fault, found.too_many))
    }

    /// Packs the sets end to end as far as there is room; once more where there was none or sizes have changed.
    fn pack_sets(
        &self,
        py: Python<'_>,
        scratch: u64,
        offsets: u64,
        labels: u64,
        places: u64,
    ) -> PyResult<()> {
        let to = PackedSets { scratch, offsets, labels, places };
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe { self.family.pack_sets(gpu, Stream(self.stream), to) })
    }

    /// The probabilities of the labels of sets at a threshold, packed as they are.
    fn probabilities(
        &self,
        py: Python<'_>,
        threshold: f64,
        offsets: u64,
        packed: u64,
        p: u64,
        pool: u64,
    ) -> PyResult<()> {
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe {
            self.family.probabilities(gpu, Stream(self.stream), threshold, [offsets, packed, p, pool])
        })
    }

    /// The fingerprint of every row.
    fn fingerprints(&self, py: Python<'_>, out: u64) -> PyResult<()> {
        // SAFETY: as for `cuda_entmax`.
        on(self.device, py, |gpu| unsafe { self.family.fingerprints(gpu, Stream(self.stream), out) })
    }
}
