//! Rows in chunks: the one place where work is spread over threads.
//!
//! Rows are independent, so any split gives the same bits. Of several faults the one in the first row is
//! reported, whichever thread met one first.

use crate::kernel::{prefetch, row_max, row_maxima};
use crate::logits::fault_in_row;
use crate::{Error, Logit, Logits, Result, Row};

/// Logits in a chunk: large enough that a chunk's bookkeeping vanishes, small enough to share out evenly.
const CHUNK: usize = 1 << 18;

/// Up to this many classes a row is shorter than the cost of a call, so the maxima of many rows are found
/// together.
const FEW_CLASSES: usize = 64;

/// Rows up to this many classes are asked for one ahead: 16 KiB of `f32`, a third of a first-level cache.
const PREFETCHED_CLASSES: usize = 4096;

/// Calls `work` with the first row of each chunk and the chunk itself, in parallel; results are in row order.
pub(crate) fn map_chunks<T: Logit, R: Send>(
    logits: Logits<'_, T>,
    work: impl Fn(usize, Logits<'_, T>) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    let rows = (CHUNK / logits.classes()).max(1);
    let count = logits.len().div_ceil(rows);
    let one = |chunk: usize| {
        let first = chunk * rows;
        work(first, logits.rows(first..(first + rows).min(logits.len())))
    };
    let results: Vec<Result<R>> = collect(count, one);
    results.into_iter().collect()
}

#[cfg(feature = "rayon")]
fn collect<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    use rayon::prelude::*;
    (0..count).into_par_iter().map(work).collect()
}

#[cfg(not(feature = "rayon"))]
fn collect<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    (0..count).map(work).collect()
}

/// Calls `visit` with each row of a chunk and its index in the chunk; `first` is the index of its first row in
/// the whole, for messages.
#[inline]
pub(crate) fn visit_rows<'a, T: Logit>(
    first: usize,
    chunk: Logits<'a, T>,
    mut visit: impl FnMut(usize, Row<'a, T>) -> Result<()>,
) -> Result<()> {
    let classes = chunk.classes();
    let u = |index: usize| chunk.u().map(|u| u[index]);
    if classes > FEW_CLASSES {
        for (index, logits) in chunk.as_slice().chunks_exact(classes).enumerate() {
            let max = row_max(logits).map_err(|fault| fault_in_row(fault, (first + index) as u64))?;
            // The next row comes while this one is worked on. A longer one would push this one out of the cache, and the
            // hardware sees it coming anyway.
            if classes <= PREFETCHED_CLASSES {
                prefetch(
                    chunk.as_slice().get((index + 1) * classes..(index + 2) * classes).unwrap_or_default(),
                );
            }
            visit(index, Row::trusted(logits, max, u(index)))?;
        }
        return Ok(());
    }
    let block = 4096 / classes;
    let mut maxima = Vec::with_capacity(block);
    let mut index = 0;
    for data in chunk.as_slice().chunks(block * classes) {
        row_maxima(data, classes, &mut maxima)
            .map_err(|(row, fault)| fault_in_row(fault, (first + index + row) as u64))?;
        for (logits, max) in data.chunks_exact(classes).zip(&maxima) {
            visit(index, Row::trusted(logits, *max, u(index)))?;
            index += 1;
        }
    }
    Ok(())
}

/// One label per row, each a class.
pub(crate) fn check_labels<T: Logit>(logits: Logits<'_, T>, labels: &[u32]) -> Result<()> {
    if labels.len() != logits.len() {
        return Err(Error::Rows { what: "labels", wanted: logits.len(), got: labels.len() });
    }
    let classes = logits.classes();
    match labels.iter().position(|label| *label as usize >= classes) {
        Some(row) => Err(Error::Label { row: row as u64, label: labels[row], classes }),
        None => Ok(()),
    }
}
