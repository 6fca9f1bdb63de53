//! Scores, sets and probabilities of the entmax family on the device, with the CPU's bits.
#![allow(unsafe_code)] // Addresses are the caller's promise.

use conformax::Gamma;

use crate::layout::{Dtype, Layout};
use crate::program::{Job, Kind, Program};
use crate::{Error, Gpu, Result, Stream};

/// Threads that share a row: one for each lane of the CPU's sums.
const TEAM: u64 = 16;
const WARP: u32 = 32;
const THREADS: u32 = 128;

/// Rows of logits under a score of the family.
///
/// Launches report rows that have no score: of the two 64-bit numbers at `fault` the first holds the least row with
/// NaN, +∞ or nothing but −∞ afterwards, all ones where there is none. Results of such rows are not written.
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
    /// Address of the two reports, the least row at fault first; 0 for launches that report elsewhere or nothing.
    pub fault: u64,
}

/// What `score_labels` writes; the second report is the least row whose label is no class, or masked where that is not
/// allowed.
#[derive(Clone, Copy, Debug)]
pub struct LabelScores {
    /// Address of the labels, `i64`.
    pub labels: u64,
    /// Address of the scores, one `f64` a row.
    pub scores: u64,
    /// Whether a masked label contradicts its mask.
    pub never: bool,
}

/// Where sets go: offsets and labels end to end, best first.
#[derive(Clone, Copy, Debug)]
pub struct PackedSets {
    /// Address of the scratch that [`Family::find_sets`] has filled.
    pub scratch: u64,
    /// Address of the offsets, `i64`, one more than rows.
    pub offsets: u64,
    /// Address of the labels, `u32`.
    pub labels: u64,
    /// Labels that there is room for. Sets beyond it are counted and not written.
    pub places: u64,
}

/// What finding and packing the sets of so many rows needs besides their results.
///
/// It begins with the [`SetReports`]. Sizes of all rows follow, `u32`, at [`Scratch::sizes`]; that of a row with too
/// many is all ones, and [`Family::pack_sets`] counts it as 0.
#[derive(Clone, Copy, Debug)]
pub struct Scratch {
    rows: u64,
}

/// What finding and packing sets reports.
#[derive(Clone, Copy, Debug)]
pub struct SetReports {
    /// Labels of all sets.
    pub total: u64,
    /// The least row at fault.
    pub fault: Option<u64>,
    /// The least row with more labels than a team of threads keeps.
    pub too_many: Option<u64>,
}

/// Labels that a row may find.
const PLACES: u64 = 64;
/// Rows that a block packs.
const PACKED: u64 = 256;
/// Words of the three numbers.
const REPORTS: u64 = 6;

impl Scratch {
    /// For so many rows.
    pub fn new(rows: u64) -> Self {
        Self { rows }
    }

    /// Words of 32 bits.
    pub fn words(self) -> u64 {
        self.sizes() + self.rows * (1 + PLACES)
    }

    /// The word of the first row's size.
    pub fn sizes(self) -> u64 {
        REPORTS + 2 * self.sums()
    }

    /// The counter and the sums of the blocks that pack, as 64-bit numbers.
    fn sums(self) -> u64 {
        1 + self.rows.div_ceil(PACKED)
    }
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
    places: u64,
    sums: u64,
    total: u64,
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

    /// The longest row that stays in registers.
    fn longest(&self) -> u32 {
        if self.dtype == Dtype::F64 { 512 } else { 1024 }
    }

    /// Short rows stay in registers, the others are read again.
    fn layout(&self) -> Result<Layout> {
        let values = self.classes()?.div_ceil(TEAM as u32).next_multiple_of(8);
        Ok(if self.classes()? <= self.longest() {
            Layout::Held { lanes: TEAM as u32, values, full: self.classes()? / TEAM as u32, threads: THREADS }
        } else {
            Layout::Wide { threads: THREADS }
        })
    }

    /// Where a warp shares a row, and the elements of one access.
    fn warp_layout(&self) -> Result<(u32, Layout)> {
        let (classes, pack) = (self.classes()?, self.dtype.pack());
        let vec = if self.logits.is_multiple_of(16) && classes.is_multiple_of(pack) { pack } else { 1 };
        if classes > self.longest() {
            return Ok((vec, Layout::Wide { threads: THREADS }));
        }
        let values = classes.div_ceil(WARP).next_multiple_of(vec.max(4));
        Ok((vec, Layout::Held { lanes: WARP, values, full: classes / (WARP * vec), threads: THREADS }))
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
            places: 0,
            sums: 0,
            total: 0,
            fault: self.fault,
            bad_label: 0,
            never: 0,
            top_label: 0,
        })
    }

    pub(crate) fn program(&self, job: Job) -> Result<Program> {
        let (vec, layout) = match job {
            Job::Scores | Job::ScoresOfAll => (1, self.layout()?),
            Job::Sets => self.warp_layout()?,
            Job::PackSets => (1, Layout::Wide { threads: PACKED as u32 }),
            _ => (1, Layout::Wide { threads: THREADS }),
        };
        Ok(Program { job, kind: Kind::of(self.gamma), dtype: self.dtype, vec, unaligned: false, layout })
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
            bad_label: self.fault + 8,
            never: i32::from(to.never),
            ..self.score_rows()?
        };
        let program = self.program(Job::Scores)?;
        // SAFETY: `ScoreRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe {
            self.clear_reports(gpu, stream)?;
            gpu.launch(program, self.teams(), THREADS, stream, rows)
        }
    }

    /// The score of every label of every row, as `f64`; +∞ for labels further than `bound` below the maximum.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn score_all(&self, gpu: &Gpu, stream: Stream, bound: f64, scores: u64) -> Result<()> {
        let rows = ScoreRows { threshold: bound, scores, ..self.score_rows()? };
        let program = self.program(Job::ScoresOfAll)?;
        // SAFETY: as above.
        unsafe {
            self.clear_reports(gpu, stream)?;
            gpu.launch(program, self.rows, THREADS, stream, rows)
        }
    }

    /// Says that no row is at fault.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    unsafe fn clear_reports(&self, gpu: &Gpu, stream: Stream) -> Result<()> {
        // SAFETY: two numbers, by the caller's promise.
        unsafe { gpu.fill(self.fault, 0xff, 16, stream) }
    }

    /// The set of every row at a finite threshold, into [`Scratch::words`] words on a boundary of 8 bytes. Reports go
    /// there too, not to `fault`.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn find_sets(
        &self,
        gpu: &Gpu,
        stream: Stream,
        threshold: f64,
        top_label: bool,
        scratch: u64,
    ) -> Result<()> {
        let rows = ScoreRows { threshold, top_label: i32::from(top_label), ..self.set_rows(scratch)? };
        let program = self.program(Job::Sets)?;
        let blocks = self.rows.div_ceil(u64::from(THREADS / WARP));
        // SAFETY: as above; the reports are the first words of the scratch.
        unsafe {
            gpu.fill(scratch, 0xff, 4 * REPORTS, stream)?;
            gpu.launch(program, blocks, THREADS, stream, rows)
        }
    }

    /// Packs what [`find_sets`](Self::find_sets) found; once more where there was no room or sizes have changed.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn pack_sets(&self, gpu: &Gpu, stream: Stream, to: PackedSets) -> Result<()> {
        let rows = ScoreRows {
            offsets: to.offsets,
            packed: to.labels,
            places: to.places,
            ..self.set_rows(to.scratch)?
        };
        let program = self.program(Job::PackSets)?;
        // SAFETY: as above; the sums are words of the scratch.
        unsafe {
            gpu.fill(rows.sums, 0, 8 * Scratch::new(self.rows).sums(), stream)?;
            gpu.launch(program, self.rows.div_ceil(PACKED), PACKED as u32, stream, rows)
        }
    }

    fn set_rows(&self, scratch: u64) -> Result<ScoreRows> {
        let sizes = scratch + 4 * Scratch::new(self.rows).sizes();
        Ok(ScoreRows {
            sizes,
            found: sizes + 4 * self.rows,
            total: scratch,
            fault: scratch + 8,
            bad_label: scratch + 16,
            sums: scratch + 4 * REPORTS,
            ..self.score_rows()?
        })
    }

    /// Waits for the stream and reads what was reported to a scratch.
    ///
    /// # Safety
    ///
    /// As for [`score_labels`](Self::score_labels).
    pub unsafe fn set_reports(&self, gpu: &Gpu, stream: Stream, scratch: u64) -> Result<SetReports> {
        // SAFETY: as above.
        let [total, fault, too_many] = unsafe { gpu.read(scratch, stream)? };
        let row = |reported: u64| (reported != u64::MAX).then_some(reported);
        Ok(SetReports { total, fault: row(fault), too_many: row(too_many) })
    }

    /// The probabilities of the labels of sets at `threshold`, as `f64` packed like them; `pool` is scratch of that
    /// size.
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
        let program = self.program(Job::Probabilities)?;
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
        let program = self.program(Job::Fingerprints)?;
        let blocks = (self.rows * 4).div_ceil(u64::from(THREADS));
        // SAFETY: `FingerprintRows` is the kernel's `Rows`; the addresses are the caller's promise.
        unsafe { gpu.launch(program, blocks, THREADS, stream, rows) }
    }
}
