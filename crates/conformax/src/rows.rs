//! Rows in chunks: the one place where work is spread over threads.
//!
//! Rows are independent, so any split gives the same bits. Of several faults the one in the first row is
//! reported, whichever thread met one first.

use crate::kernel::{Bounds, Leaders, Limits, TOGETHER, leaders, prefetch, row_max, row_maxima};
use crate::logits::fault_in_row;
use crate::{Error, Logit, Logits, Result, Row};

/// Logits in a chunk: large enough that a chunk's bookkeeping vanishes, small enough to share out evenly.
const CHUNK: usize = 1 << 18;

/// Rows in a chunk at most, so that the results of narrow ones stay in the cache until they are put together.
const MOST_ROWS: usize = 8192;

/// Chunks per thread before their results are put together: few enough to be in the cache still, enough that threads
/// seldom wait for the last of them.
const CHUNKS_AT_A_TIME: usize = 16;

/// Up to this many classes a row is shorter than the cost of a call, so the maxima of many rows are found
/// together.
const FEW_CLASSES: usize = 64;

/// Logits of such rows that are looked at before anything else is done with them.
const BLOCK: usize = 4096;

/// Rows up to this many classes are asked for one ahead: 16 KiB of `f32`, a third of a first-level cache.
const PREFETCHED_CLASSES: usize = 4096;

/// The first row's fault: of `checks`, each of which looked for one kind in all rows, and of what `read` brings up in
/// the rows before that. So it is the same whatever blocks rows come in, but for labels, weights and draws: these are
/// checked where they are put beside the logits of a block, so that whoever takes rows can rely on them.
pub(crate) fn first_fault(
    checks: impl IntoIterator<Item = Result<()>>,
    read: impl FnOnce(usize) -> Result<()>,
) -> Result<()> {
    match checks.into_iter().filter_map(Result::err).min_by_key(Error::row) {
        None => Ok(()),
        Some(fault) => read(fault.row().unwrap_or_default() as usize).and(Err(fault)),
    }
}

/// Looks at every logit of the rows.
pub(crate) fn read_rows<T: Logit>(logits: Logits<'_, T>) -> Result<()> {
    map_chunks(logits, |first, chunk| visit_rows(first, chunk, |_, _| Ok(()))).map(|_| ())
}

/// Calls `work` with the first row of each chunk and the chunk itself, in parallel; results are in row order.
pub(crate) fn map_chunks<T: Logit, R: Send>(
    logits: Logits<'_, T>,
    work: impl Fn(usize, Logits<'_, T>) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    let rows = rows_in_chunk(logits.classes());
    let count = logits.len().div_ceil(rows);
    let one = |chunk: usize| {
        let first = chunk * rows;
        work(first, logits.rows(first..(first + rows).min(logits.len())))
    };
    let results: Vec<Result<R>> = collect(count, one);
    results.into_iter().collect()
}

/// The same, with the results given to `take` in row order and some at a time: whoever appends large ones to a whole
/// does not need memory for both, and memory that is new costs more than a narrow row does.
pub(crate) fn drain_chunks<T: Logit, R: Send>(
    logits: Logits<'_, T>,
    work: impl Fn(usize, Logits<'_, T>) -> Result<R> + Sync + Send,
    mut take: impl FnMut(R),
) -> Result<()> {
    let rows = rows_in_chunk(logits.classes()) * CHUNKS_AT_A_TIME * threads();
    for first in (0..logits.len()).step_by(rows) {
        let some = logits.rows(first..(first + rows).min(logits.len()));
        map_chunks(some, |within, chunk| work(first + within, chunk))?.into_iter().for_each(&mut take);
    }
    Ok(())
}

/// Calls `work` with the first row of each block of `out` and the block, in parallel; a block has `rows` rows of
/// `width` entries. Results are in row order, and of several errors the first row's is returned, whichever thread met
/// one first.
pub(crate) fn fill_blocks<M: Send, R: Send>(
    out: &mut [M],
    rows: usize,
    width: usize,
    work: impl Fn(usize, &mut [M]) -> Result<R> + Sync + Send,
) -> Result<Vec<R>> {
    let work = |(index, block): (usize, &mut [M])| work(index * rows, block);
    let block = rows * width;
    #[cfg(feature = "rayon")]
    if out.len() > block {
        use rayon::prelude::*;
        let results: Vec<Result<R>> = out.par_chunks_mut(block).enumerate().map(work).collect();
        return results.into_iter().collect();
    }
    out.chunks_mut(block).enumerate().map(work).collect()
}

fn rows_in_chunk(classes: usize) -> usize {
    (CHUNK / classes).clamp(1, MOST_ROWS)
}

#[cfg(feature = "rayon")]
fn threads() -> usize {
    rayon::current_num_threads()
}

#[cfg(not(feature = "rayon"))]
fn threads() -> usize {
    1
}

/// One piece of work stays with its caller: to wake another thread and wait for it costs more than a row or two.
fn collect<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if count > 1 {
        use rayon::prelude::*;
        return (0..count).into_par_iter().map(work).collect();
    }
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
    if classes > FEW_CLASSES {
        return visit_wide_rows(first, chunk, visit);
    }
    let mut maxima = Vec::with_capacity(BLOCK / classes);
    visit_blocks(chunk, |before, data| {
        let checked = row_maxima(data, classes, &mut maxima);
        // Rows before one at fault are visited: what is wrong with them comes first.
        for (row, (logits, max)) in data.chunks_exact(classes).zip(&maxima).enumerate() {
            let index = before + row;
            visit(index, chunk.beside(index, logits, *max))?;
        }
        checked.map_err(|(row, fault)| fault_in_row(fault, (first + before + row) as u64))
    })
}

/// The same for narrow rows, each with what is known of its set before it is looked at by itself.
#[inline]
pub(crate) fn visit_narrow_rows<'a, T: Logit, L: Limits>(
    first: usize,
    chunk: Logits<'a, T>,
    bounds: Bounds<L>,
    mut visit: impl FnMut(Narrow<'_, 'a, T>),
) -> Result<()> {
    let classes = chunk.classes();
    let mut found: Vec<Leaders> = Vec::with_capacity(BLOCK / classes);
    visit_blocks(chunk, |before, data| {
        leaders(data, classes, bounds, &mut found);
        for (row, leaders) in found.iter().enumerate() {
            visit(match leaders.len() {
                Some(len) => Narrow::Set(len, leaders),
                None => {
                    let index = before + row;
                    let logits = &data[row * classes..][..classes];
                    let max = row_max(logits).map_err(|fault| fault_in_row(fault, (first + index) as u64))?;
                    Narrow::Open(chunk.beside(index, logits, max))
                }
            });
        }
        Ok(())
    })
}

/// A narrow row.
pub(crate) enum Narrow<'f, 'a, T> {
    /// The size of its set, and its labels.
    Set(usize, &'f Leaders),
    /// To be looked at.
    Open(Row<'a, T>),
}

/// Calls `visit` with whole rows that fit the first-level cache and the number of rows before them.
#[inline]
fn visit_blocks<'a, T: Logit>(
    chunk: Logits<'a, T>,
    mut visit: impl FnMut(usize, &'a [T]) -> Result<()>,
) -> Result<()> {
    // Whole groups of the narrow rows that are taken together.
    let rows = (BLOCK / chunk.classes()).next_multiple_of(TOGETHER);
    let mut blocks = chunk.as_slice().chunks(rows * chunk.classes());
    (0..).step_by(rows).zip(&mut blocks).try_for_each(|(before, data)| visit(before, data))
}

#[inline]
fn visit_wide_rows<'a, T: Logit>(
    first: usize,
    chunk: Logits<'a, T>,
    mut visit: impl FnMut(usize, Row<'a, T>) -> Result<()>,
) -> Result<()> {
    let (classes, data) = (chunk.classes(), chunk.as_slice());
    for (index, logits) in data.chunks_exact(classes).enumerate() {
        let max = row_max(logits).map_err(|fault| fault_in_row(fault, (first + index) as u64))?;
        // The next row comes while this one is worked on. A longer one would push this one out of the cache, and the
        // hardware sees it coming anyway.
        if classes <= PREFETCHED_CLASSES {
            prefetch(data.get((index + 1) * classes..(index + 2) * classes).unwrap_or_default());
        }
        visit(index, chunk.beside(index, logits, max))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread::current;

    use super::*;

    /// A service predicts a row at a time, and would wait for another thread at each.
    #[test]
    fn a_single_chunk_stays_on_the_thread_of_its_caller() {
        let here = current().id();
        let data = [0.0_f32; 30];
        let logits = Logits::new(&data, 3).unwrap();
        let found = map_chunks(logits, |first, chunk| Ok((first, chunk.len(), current().id())));
        assert_eq!(found.unwrap(), [(0, 10, here)]);
        let mut out = [0_u8; 20];
        let found = fill_blocks(&mut out, 10, 2, |first, block| Ok((first, block.len(), current().id())));
        assert_eq!(found.unwrap(), [(0, 20, here)]);
    }
}
