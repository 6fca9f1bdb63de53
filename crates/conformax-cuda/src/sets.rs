//! Scores, sets and probabilities of the entmax family on the device, with the CPU's bits.
#![allow(unsafe_code)] // Addresses are the caller's promise.

use conformax::Gamma;

use crate::layout::{Dtype, Layout};
use crate::program::{Job, Kind, Program};
use crate::{Error, Gpu, Result, Stream};

/// Threads that share a row: one for each lane of the CPU's sums.
const TEAM: u64 = 16;
const THREADS: u32 = 128;

/// Rows of logits under a score of the family.
///
/// Launches report rows that have no score: the caller sets the 64 bits at `fault` to all ones, and they hold the least row
/// with NaN, +∞ or nothing but −∞ afterwards. Results of such rows are not written.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Type of the logits.
    pub dtype: Dtype,
    /// Address of the logits.
    pub logits: u64,
    /// Rows.
    pub rows: u64,
    /// Classes.
    pub classes: u64,
    /// Index of the family.
    pub gamma: Gamma,
    /// Address of the least row at fault.
    pub fault: u64,
}

/// What `score_labels` writes.
#[derive(Clone, Copy, Debug)]
pub struct LabelScores {
    /// Address of the labels, `i64`.
    pub labels: u64,
    /// Address of the scores, one `f64` a row.
    pub scores: u64,
    /// Address of the least row whose label is no class, or masked where that is not allowed; set as `fault` is.
    pub bad_label: u64,
    /// Whether a masked label contradicts its mask.
    pub never: bool,
}

/// Sets at a finite threshold, before they are packed.
#[derive(Clone, Copy, Debug)]
pub struct FoundSets {
    /// The largest score in a set.
    pub threshold: f64,
    /// Address of each row's size, `u32`; all ones where a row has more labels within reach than are kept.
    pub sizes: u64,
    /// Address of [`FoundSets::PLACES`] labels a row, `u32`.
    pub found: u64,
    /// Address of the least row with too many; set as `fault` is.
    pub too_many: u64,
    /// Whether an empty set gets the top label and its ties.
    pub top_label: bool,
}

impl FoundSets {
    /// Labels that a row may find.
    pub const PLACES: usize = 64;
}

/// The parameters of every kernel in `scores.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ScoreRows {
    logits: u64,
    rows: u64,
    classes: u32,
    order: i32,
    delta: f64,
    inverse: f64,
    threshold: f64,
    labels: u64,
    scores: u64,
    sizes: u64,
    found: u64,
    offsets: u64,
    packed: u64,
    fault: u64,
    bad_label: u64,
    never: i32,
    top_label: i32,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ProbabilityRows {
    logits: u64,
    offsets: u64,
    packed: u64,
    p: u64,
    pool: u64,
    rows: u64,
    classes: u32,
    order: i32,
    delta: f64,
    inverse: f64,
    threshold: f64,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct FingerprintRows {
    logits: u64,
    out: u64,
    rows: u64,
    classes: u32,
}

/// The order of the norm as the kernels spell it, with δ and 1/δ.
fn order_of(gamma: Gamma) -> (i32, f64, f64) {
    match gamma.delta() {
        f64::INFINITY => (0, 0.0, 0.0),
        1.0 => (1, 1.0, 1.0),
        2.0 => (2, 2.0, 0.5),
        delta => (3, delta, gamma.inverse_delta()),
    }
}

impl Family {
    fn classes(&self) -> Result<u32> {
        let classes = u32::try_from(self.classes).ok().filter(|classes| *classes > 0);
        classes.ok_or(Error::Shape { rows: self.rows, classes: self.classes })
    }

    /// Short rows stay in registers, the others are read again.
    fn layout(&self) -> Result<Layout> {
        let longest = if self.dtype == Dtype::F64 { 512 } else { 1024 };
        let values = self.classes()?.div_ceil(TEAM as u32).next_multiple_of(8);
        Ok(if self.classes()? <= longest {
            Layout::Held { lanes: TEAM as u32, values, full: self.classes()? / TEAM as u32, threads: THREADS }
        } else {
            Layout::Wide { threads: THREADS }
        })
    }

    fn score_rows(&self) -> Result<ScoreRows> {
        let (order, delta, inverse) = order_of(self.gamma);
        Ok(ScoreRows {
            logits: self.logits,
            rows: self.rows,
            classes: self.classes()?,
            order,
            delta,
            inverse,
            threshold: f64::INFINITY,
            labels: 0,
            scores: 0,
            sizes: 0,
            found: 0,
            offsets: 0,
            packed: 0,
            fault: self.fault,
            bad_label: 0,
            never: 0,
            top_label: 0,
        })
    }

    fn program(&self, job: Job, layout: Layout) -> Program {
        Program { job, kind: Kind::of(self.gamma), dtype: self.dtype, vec: 1, layout }
    }

    /// Blocks where [`TEAM`] threads share a row.
    fn teams(&self) -> u64 {
        (self.rows * TEAM).div_ceil(u64::from(THREADS))
    }

    /// The score of one label of every row.
    ///
    /// # Safety
    ///
    /// The addresses are of memory of this device, large enough, alive until the stream has passed the launch.
    pub unsafe fn score_labels(&self, gpu: &Gpu, stream: Stream, to: LabelScores) -> Result<()> {
        let rows = ScoreRows {
            labels: to.labels,
            scores: to.scores,
            bad_label: to.bad_label,
            never: i32::from(to.never),
            ..self.score_rows()?
        };
        let program = self.program(Job::Scores, self.layout()?);
        // SAFETY: `ScoreRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, self.teams(), THREADS, stream, rows) }
    }

    /// The score of every label of every row, as `f64`; +∞ for labels further than `bound` below the maximum.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn score_all(&self, gpu: &Gpu, stream: Stream, bound: f64, scores: u64) -> Result<()> {
        let rows = ScoreRows { threshold: bound, scores, ..self.score_rows()? };
        let program = self.program(Job::ScoresOfAll, self.layout()?);
        // SAFETY: as above.
        unsafe { gpu.launch(program, self.rows, THREADS, stream, rows) }
    }

    /// The set of every row at a finite threshold.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn find_sets(&self, gpu: &Gpu, stream: Stream, to: FoundSets) -> Result<()> {
        let rows = ScoreRows {
            threshold: to.threshold,
            sizes: to.sizes,
            found: to.found,
            bad_label: to.too_many,
            top_label: i32::from(to.top_label),
            ..self.score_rows()?
        };
        let program = self.program(Job::Sets, self.layout()?);
        // SAFETY: as above.
        unsafe { gpu.launch(program, self.teams(), THREADS, stream, rows) }
    }

    /// Moves what [`find_sets`](Self::find_sets) found to its place end to end; `offsets` are `i64`.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn pack_sets(
        &self,
        gpu: &Gpu,
        stream: Stream,
        from: FoundSets,
        offsets: u64,
        packed: u64,
    ) -> Result<()> {
        let rows = ScoreRows { sizes: from.sizes, found: from.found, offsets, packed, ..self.score_rows()? };
        let program = self.program(Job::PackSets, Layout::Wide { threads: THREADS });
        // SAFETY: as above.
        unsafe { gpu.launch(program, self.teams(), THREADS, stream, rows) }
    }

    /// The probabilities of the labels of sets at `threshold`, as `f64` packed like them; `pool` is scratch of that size.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn probabilities(
        &self,
        gpu: &Gpu,
        stream: Stream,
        threshold: f64,
        [offsets, packed, p, pool]: [u64; 4],
    ) -> Result<()> {
        let (order, delta, inverse) = order_of(self.gamma);
        let rows = ProbabilityRows {
            logits: self.logits,
            offsets,
            packed,
            p,
            pool,
            rows: self.rows,
            classes: self.classes()?,
            order,
            delta,
            inverse,
            threshold,
        };
        let program = self.program(Job::Probabilities, Layout::Wide { threads: THREADS });
        let blocks = self.rows.div_ceil(u64::from(THREADS));
        // SAFETY: `ProbabilityRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, THREADS, stream, rows) }
    }

    /// The fingerprint of every row, `u64`.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn fingerprints(&self, gpu: &Gpu, stream: Stream, out: u64) -> Result<()> {
        let rows = FingerprintRows { logits: self.logits, out, rows: self.rows, classes: self.classes()? };
        let program = self.program(Job::Fingerprints, Layout::Wide { threads: THREADS });
        let blocks = (self.rows * 4).div_ceil(u64::from(THREADS));
        // SAFETY: `FingerprintRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, THREADS, stream, rows) }
    }
}
