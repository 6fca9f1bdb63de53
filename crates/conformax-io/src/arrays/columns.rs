//! A column-major matrix read by rows: one positioned read per column fetches a band of rows, which is then turned.
//!
//! A band is as high as memory allows so that each read is long: 64 MB over 1,000 columns of `f32` is 64 kB a read. Of
//! a smaller file it is an eighth, since memory that is new takes several times as long as what is read into it.

use std::thread;

use crate::arrays::array::MatrixShape;
use crate::data::values::Values;
use crate::error::{InFile, Result};
use crate::reading::positioned::Section;

const BAND_BYTES: usize = 64 << 20;
/// With very many columns reads would shrink below a page; the band grows instead, up to twice its usual size.
const SHORTEST_READ: usize = 4096;
/// Bytes between columns: where they begin at multiples of a large power of two, a cache has one place for all of them.
const BETWEEN: usize = 64;

pub(crate) struct Columns {
    section: Section,
    shape: MatrixShape,
    /// Threads that read side by side.
    threads: usize,
    /// Column-major: `height` values of the first class and some that mean nothing, then those of the second.
    band: Values,
    first_row: u64,
    height: usize,
}

impl Columns {
    pub(crate) fn new(section: Section, shape: MatrixShape) -> Self {
        Self { section, shape, threads: 1, band: Values::new(shape.dtype), first_row: 0, height: 0 }
    }

    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Fills `into`, whatever it holds, with rows `first..first + rows` in row-major order.
    pub(crate) fn read(&mut self, first: u64, rows: usize, into: &mut Values) -> Result<()> {
        into.resize(rows * self.shape.classes);
        let mut done = 0;
        while done < rows {
            let row = first + done as u64;
            let in_band =
                row.checked_sub(self.first_row).map(|at| at as usize).filter(|&at| at < self.height);
            let Some(at) = in_band else {
                self.fetch(row)?;
                continue;
            };
            let count = (rows - done).min(self.height - at);
            self.turn(at, count, done, into);
            done += count;
        }
        Ok(())
    }

    fn fetch(&mut self, first_row: u64) -> Result<()> {
        let (classes, size) = (self.shape.classes, self.shape.dtype.size());
        let eighth = usize::try_from(self.section.len() / 8).unwrap_or(usize::MAX);
        let longest = (2 * BAND_BYTES / classes).max(size);
        let read = (eighth.min(BAND_BYTES) / classes).max(SHORTEST_READ.min(longest)) / size;
        let left = usize::try_from(self.shape.rows - first_row).unwrap_or(usize::MAX);
        self.height = read.max(1).min(left);
        self.first_row = first_row;
        let stride = self.stride();
        self.band.resize(stride * classes);
        let (section, shape, len) = (&self.section, self.shape, self.height * size);
        let columns: Vec<(usize, &mut [u8])> =
            self.band.as_bytes_mut().chunks_exact_mut(stride * size).enumerate().collect();
        let read = |(class, column): &mut (usize, &mut [u8])| {
            let value = *class as u64 * shape.rows + first_row;
            section.read_exact_at(&mut column[..len], value * size as u64)
        };
        side_by_side(columns, self.threads, &self.section, read)?;
        self.band.swap_from(self.shape.bytes);
        Ok(())
    }

    /// Values from one column of the band to the next.
    fn stride(&self) -> usize {
        self.height + BETWEEN / self.shape.dtype.size()
    }

    /// Copies `count` rows of the band, from its row `at`, to rows `to..` of `into`.
    fn turn(&self, at: usize, count: usize, to: usize, into: &mut Values) {
        let (classes, stride) = (self.shape.classes, self.stride());
        match (&self.band, into) {
            (Values::F16(band), Values::F16(out)) => {
                turn(band, stride, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::Bf16(band), Values::Bf16(out)) => {
                turn(band, stride, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::F32(band), Values::F32(out)) => {
                turn(band, stride, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::F64(band), Values::F64(out)) => {
                turn(band, stride, at, &mut out[to * classes..][..count * classes], classes)
            }
            (band, out) => unreachable!("a band of {} is turned into {}", band.dtype(), out.dtype()),
        }
    }
}

/// Calls `read` with each column, of which each thread takes as many; the error is that of the first column that has
/// one.
fn side_by_side<C: Send>(
    mut columns: Vec<C>,
    threads: usize,
    section: &Section,
    read: impl Fn(&mut C) -> Result<()> + Sync,
) -> Result<()> {
    let share = columns.len().div_ceil(threads);
    let read_all = |columns: &mut [C]| columns.iter_mut().try_for_each(&read);
    let mut shares = columns.chunks_mut(share);
    let mine = shares.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: std::io::Result<Vec<_>> =
            shares.map(|share| thread::Builder::new().spawn_scoped(scope, move || read_all(share))).collect();
        let others = others.in_file(section.path())?;
        let mine = read_all(mine);
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        others.fold(mine, |before, after| before.and(after))
    })
}

/// Square tiles keep both sides of the turn in the first-level cache.
const TILE: usize = 16;

fn turn<T: Copy>(band: &[T], stride: usize, at: usize, out: &mut [T], classes: usize) {
    for (tile, rows) in out.chunks_mut(TILE * classes).enumerate() {
        let top = at + tile * TILE;
        for left in (0..classes).step_by(TILE) {
            let right = classes.min(left + TILE);
            for (down, row) in rows.chunks_exact_mut(classes).enumerate() {
                for class in left..right {
                    row[class] = band[class * stride + top + down];
                }
            }
        }
    }
}
