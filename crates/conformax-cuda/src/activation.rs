//! γ-entmax and its losses on the device: what each launch takes, and the launch.
#![allow(unsafe_code)] // Addresses are the caller's promise.

use conformax::Gamma;

use crate::layout::{Dtype, Layout};
use crate::program::{Job, Kind, Program};
use crate::{Error, Gpu, Result, Stream};

/// The index of the family: one for all rows, or one each.
#[derive(Clone, Copy, Debug)]
pub enum GammaOf {
    /// For all rows.
    All(Gamma),
    /// Addresses of `f64` on the device, `stride` elements apart (0: one for all). A γ outside 1..=16 makes its row
    /// NaN.
    Each {
        /// Address of the first.
        first: u64,
        /// From one row's to the next.
        stride: i64,
    },
}

/// γ as the kernels read it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Index {
    gamma: f64,
    scale: f64,
    delta: f64,
    gammas: u64,
    stride: i64,
}

impl GammaOf {
    fn index(self) -> (Kind, Index) {
        match self {
            Self::Each { first, stride } => {
                (Kind::Each, Index { gamma: 0.0, scale: 1.0, delta: 1.0, gammas: first, stride })
            }
            Self::All(gamma) => {
                let (kind, delta) = (Kind::of(gamma), gamma.delta());
                let (scale, delta) =
                    if kind == Kind::Soft { (1.0, 0.0) } else { (gamma.inverse_delta(), delta) };
                (kind, Index { gamma: gamma.value(), scale, delta, gammas: 0, stride: 0 })
            }
        }
    }
}

/// The classes of a row, as every launch here counts them.
fn classes_of(rows: u64, classes: u64) -> Result<u32> {
    let counted = u32::try_from(classes).ok().filter(|classes| *classes > 0 && *classes < u32::MAX);
    counted.ok_or(Error::Shape { rows, classes })
}

/// The program of a launch whose rows of this shape begin at these addresses.
fn dealt(
    job: Job,
    gamma: GammaOf,
    dtype: Dtype,
    (rows, classes): (u64, u64),
    addresses: &[u64],
) -> Result<Program> {
    let (kind, _) = gamma.index();
    let (layout, vec, unaligned) =
        Layout::at(classes_of(rows, classes)?, dtype, kind == Kind::Each, addresses);
    Ok(Program { job, kind, dtype, vec, unaligned, layout })
}

/// The probabilities of every row.
#[derive(Clone, Copy, Debug)]
pub struct Forward {
    /// Type of the logits and the probabilities.
    pub dtype: Dtype,
    /// Address of the logits.
    pub logits: u64,
    /// Address of the probabilities.
    pub out: u64,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Index of the family.
    pub gamma: GammaOf,
}

/// The loss of one label of every row; no probabilities are written.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Type of the logits; losses are `f64` for `f64` and else `f32`.
    pub dtype: Dtype,
    /// Address of the logits.
    pub logits: u64,
    /// Address of the labels, `i64`. A label that is no class makes its row NaN.
    pub labels: u64,
    /// Address of the losses.
    pub losses: u64,
    /// Address of what the backward pass needs: [`Loss::KEPT`] `f64` a row.
    pub kept: u64,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Index of the family.
    pub gamma: GammaOf,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ForwardRows {
    logits: u64,
    out: u64,
    labels: u64,
    losses: u64,
    roots: u64,
    rows: u64,
    classes: u32,
    index: Index,
}

impl Forward {
    pub(crate) fn program(&self) -> Result<Program> {
        let addresses = [self.logits, self.out];
        dealt(Job::Forward, self.gamma, self.dtype, (self.rows, self.classes), &addresses)
    }

    /// Launches it.
    ///
    /// # Safety
    ///
    /// The addresses are of memory of this device, large enough, alive until the stream has passed the launch.
    pub unsafe fn launch(&self, gpu: &Gpu, stream: Stream) -> Result<()> {
        let program = self.program()?;
        let rows = ForwardRows {
            logits: self.logits,
            out: self.out,
            labels: 0,
            losses: 0,
            roots: 0,
            rows: self.rows,
            classes: classes_of(self.rows, self.classes)?,
            index: self.gamma.index().1,
        };
        let (blocks, threads) = program.layout.grid(self.rows);
        // SAFETY: `ForwardRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, threads, stream, rows) }
    }
}

impl Loss {
    /// Numbers that a row keeps for the backward pass.
    pub const KEPT: usize = 6;

    pub(crate) fn program(&self) -> Result<Program> {
        dealt(Job::Loss, self.gamma, self.dtype, (self.rows, self.classes), &[self.logits])
    }

    /// Launches it.
    ///
    /// # Safety
    ///
    /// The addresses are of memory of this device, large enough, alive until the stream has passed the launch.
    pub unsafe fn launch(&self, gpu: &Gpu, stream: Stream) -> Result<()> {
        let program = self.program()?;
        let rows = ForwardRows {
            logits: self.logits,
            out: 0,
            labels: self.labels,
            losses: self.losses,
            roots: self.kept,
            rows: self.rows,
            classes: classes_of(self.rows, self.classes)?,
            index: self.gamma.index().1,
        };
        let (blocks, threads) = program.layout.grid(self.rows);
        // SAFETY: `ForwardRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, threads, stream, rows) }
    }
}

/// The backward product of every row, and its part of the gradient in γ.
#[derive(Clone, Copy, Debug)]
pub struct Backward {
    /// Type of all three matrices.
    pub dtype: Dtype,
    /// Address of the probabilities.
    pub p: u64,
    /// Address of the upstream gradient.
    pub upstream: u64,
    /// Address of the product.
    pub out: u64,
    /// Address of an `f64` a row, or 0 where the gradient in γ is not wanted.
    pub in_gamma: u64,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Index of the family.
    pub gamma: GammaOf,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct BackwardRows {
    p: u64,
    upstream: u64,
    out: u64,
    in_gamma: u64,
    rows: u64,
    classes: u32,
    index: Index,
}

impl Backward {
    pub(crate) fn program(&self) -> Result<Program> {
        let job = Job::Backward { in_gamma: self.in_gamma != 0 };
        let addresses = [self.p, self.upstream, self.out];
        dealt(job, self.gamma, self.dtype, (self.rows, self.classes), &addresses)
    }

    /// Launches it.
    ///
    /// # Safety
    ///
    /// The addresses are of memory of this device, large enough, alive until the stream has passed the launch.
    pub unsafe fn launch(&self, gpu: &Gpu, stream: Stream) -> Result<()> {
        let program = self.program()?;
        let rows = BackwardRows {
            p: self.p,
            upstream: self.upstream,
            out: self.out,
            in_gamma: self.in_gamma,
            rows: self.rows,
            classes: classes_of(self.rows, self.classes)?,
            index: self.gamma.index().1,
        };
        let (blocks, threads) = program.layout.grid(self.rows);
        // SAFETY: `BackwardRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, threads, stream, rows) }
    }
}

/// The gradient of the loss in the logits.
#[derive(Clone, Copy, Debug)]
pub struct LossBackward {
    /// Type of the logits and the gradient.
    pub dtype: Dtype,
    /// Address of the logits.
    pub logits: u64,
    /// Address of the labels, `i64`.
    pub labels: u64,
    /// Address of what the forward pass kept.
    pub kept: u64,
    /// Address of the upstream gradient, of the type of the losses.
    pub upstream: u64,
    /// Elements from one row's upstream to the next; 0 where all rows share one.
    pub spread: i64,
    /// Address of the gradient.
    pub out: u64,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Index of the family.
    pub gamma: GammaOf,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct LossBackwardRows {
    logits: u64,
    out: u64,
    labels: u64,
    upstream: u64,
    roots: u64,
    rows: u64,
    classes: u32,
    index: Index,
    spread: i64,
}

impl LossBackward {
    /// Threads of a block.
    const THREADS: u32 = 256;

    pub(crate) fn program(&self) -> Result<Program> {
        let aligned = [self.logits, self.out].iter().all(|address| address % 16 == 0);
        let (pack, classes) = (self.dtype.pack(), classes_of(self.rows, self.classes)?);
        Ok(Program {
            job: Job::LossBackward,
            kind: self.gamma.index().0,
            dtype: self.dtype,
            vec: if aligned && classes.is_multiple_of(pack) { pack } else { 1 },
            // Packs of the whole matrix; where they would not be on boundaries they are single elements.
            unaligned: false,
            layout: Layout::Wide { threads: Self::THREADS },
        })
    }

    /// Launches it.
    ///
    /// # Safety
    ///
    /// The addresses are of memory of this device, large enough, alive until the stream has passed the launch.
    pub unsafe fn launch(&self, gpu: &Gpu, stream: Stream) -> Result<()> {
        let program = self.program()?;
        let classes = classes_of(self.rows, self.classes)?;
        let rows = LossBackwardRows {
            logits: self.logits,
            out: self.out,
            labels: self.labels,
            upstream: self.upstream,
            roots: self.kept,
            rows: self.rows,
            classes,
            index: self.gamma.index().1,
            spread: self.spread,
        };
        // Eight blocks a multiprocessor are as many as run at once; each goes on until all is done.
        let packs = self.rows * u64::from(classes) / u64::from(program.vec);
        let blocks = packs.div_ceil(u64::from(Self::THREADS)).min(u64::from(gpu.multiprocessors()) * 8);
        // SAFETY: `LossBackwardRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, Self::THREADS, stream, rows) }
    }
}
