//! A column-major matrix read by rows: one positioned read per column fetches a band of rows, which is then turned.
//!
//! A band is as high as it takes for reads to be long, and no higher: what is read stays in a cache until it is turned,
//! and memory that is new takes several times as long as what is read into it.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::arrays::array::MatrixShape;
use crate::data::values::Values;
use crate::error::Result;
use crate::reading::in_place::InPlace;
use crate::reading::positioned::{Section, each_of};

/// A band of a large file, which is seldom in memory as a whole, and of a small one: 64 kB a read over 1,000 columns of
/// `f32`, and 8 kB.
const BAND_BYTES: usize = 64 << 20;
const SMALL_BAND_BYTES: usize = 8 << 20;
/// Files of so many small bands are large.
const LARGE: u64 = 64;
/// With very many columns reads would shrink below a page; the band grows instead, up to twice its usual size.
const SHORTEST_READ: usize = 4096;
/// Bytes between columns: where they begin at multiples of a large power of two, a cache has one place for all of them.
const BETWEEN: usize = 64;
/// Columns that a thread reads before it takes others, and rows that it turns.
const COLUMNS: usize = 64;
const ROWS: usize = 16 * TILE;

pub(crate) struct Columns {
    section: Section,
    shape: MatrixShape,
    band: Mutex<Band>,
}

/// Consecutive rows, column after column: `height` values of the first class and some that mean nothing, then those of
/// the second.
struct Band {
    values: Values,
    first_row: u64,
    height: usize,
}

impl Columns {
    pub(crate) fn new(section: Section, shape: MatrixShape) -> Self {
        let band = Band { values: Values::new(shape.dtype), first_row: 0, height: 0 };
        Self { section, shape, band: Mutex::new(band) }
    }

    /// Replaces the band by one that begins at this row.
    fn fetch(&self, first_row: u64, threads: usize, band: &mut Band) -> Result<()> {
        let (shape, size) = (self.shape, self.shape.dtype.size());
        // A band that was not read to its end is none.
        band.height = 0;
        let left = usize::try_from(shape.rows - first_row).unwrap_or(usize::MAX);
        let height = self.height().min(left);
        let stride = stride(height, size);
        band.values.resize(stride * shape.classes);
        let columns = band.values.as_bytes_mut().chunks_mut(COLUMNS * stride * size);
        each_of(columns.enumerate().collect(), threads, |(some, columns): (usize, &mut [u8])| {
            let classes = (some * COLUMNS) as u64..;
            classes.zip(columns.chunks_exact_mut(stride * size)).try_for_each(|(class, column)| {
                let value = class * shape.rows + first_row;
                self.section.read_exact_at(&mut column[..height * size], value * size as u64)
            })
        })?;
        band.values.swap_from(shape.bytes);
        (band.first_row, band.height) = (first_row, height);
        Ok(())
    }

    /// Rows in a band.
    fn height(&self) -> usize {
        let (classes, size) = (self.shape.classes, self.shape.dtype.size());
        let usual = match self.section.len() > LARGE * SMALL_BAND_BYTES as u64 {
            true => BAND_BYTES,
            false => SMALL_BAND_BYTES,
        };
        let longest = (2 * BAND_BYTES / classes).max(size);
        ((usual / classes).max(SHORTEST_READ.min(longest)) / size).max(1)
    }

    /// Copies rows `at..at + count` of the band to rows `to..` of `into`.
    fn turn(&self, band: &Band, (at, count, to): (usize, usize, usize), threads: usize, into: &mut Values) {
        let (classes, stride) = (self.shape.classes, stride(band.height, self.shape.dtype.size()));
        let places = to * classes..(to + count) * classes;
        match (&band.values, into) {
            (Values::F16(band), Values::F16(out)) => {
                turn(band, stride, at, &mut out[places], classes, threads)
            }
            (Values::Bf16(band), Values::Bf16(out)) => {
                turn(band, stride, at, &mut out[places], classes, threads)
            }
            (Values::F32(band), Values::F32(out)) => {
                turn(band, stride, at, &mut out[places], classes, threads)
            }
            (Values::F64(band), Values::F64(out)) => {
                turn(band, stride, at, &mut out[places], classes, threads)
            }
            (band, out) => unreachable!("a band of {} is turned into {}", band.dtype(), out.dtype()),
        }
    }
}

/// Values from one column of a band to the next.
fn stride(height: usize, size: usize) -> usize {
    height + BETWEEN / size
}

impl InPlace for Columns {
    fn read(&self, rows: Range<u64>, threads: usize, into: &mut Values) -> Result<()> {
        let count = (rows.end - rows.start) as usize;
        into.reuse(self.shape.dtype, count * self.shape.classes);
        into.resize(count * self.shape.classes);
        let mut band = self.band.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < count {
            let row = rows.start + done as u64;
            let in_band =
                row.checked_sub(band.first_row).map(|at| at as usize).filter(|&at| at < band.height);
            let Some(at) = in_band else {
                self.fetch(row, threads, &mut band)?;
                continue;
            };
            let some = (count - done).min(band.height - at);
            self.turn(&band, (at, some, done), threads, into);
            done += some;
        }
        Ok(())
    }
}

/// Square tiles keep both sides of the turn in the first-level cache.
const TILE: usize = 16;

fn turn<T: Copy + Default + Send + Sync>(
    band: &[T],
    stride: usize,
    at: usize,
    out: &mut [T],
    classes: usize,
    threads: usize,
) {
    let pieces = out.chunks_mut(ROWS * classes).enumerate().collect();
    let turned = each_of(pieces, threads, |(piece, rows): (usize, &mut [T])| {
        turn_piece(band, stride, at + piece * ROWS, rows, classes);
        Ok(())
    });
    turned.expect("copying cannot fail");
}

/// Some columns are gone through down all rows before the next: the hardware sees that coming, and across all columns
/// it does not.
fn turn_piece<T: Copy + Default>(band: &[T], stride: usize, top: usize, rows: &mut [T], classes: usize) {
    let height = rows.len() / classes;
    let (whole_rows, whole_classes) = (height / TILE * TILE, classes / TILE * TILE);
    for left in (0..whole_classes).step_by(TILE) {
        for down in (0..whole_rows).step_by(TILE) {
            let (from, to) = (left * stride + top + down, down * classes + left);
            turn_tile(&band[from..], stride, &mut rows[to..], classes);
        }
    }
    for (down, row) in rows.chunks_exact_mut(classes).enumerate() {
        let done = if down < whole_rows { whole_classes } else { 0 };
        for class in done..classes {
            row[class] = band[class * stride + top + down];
        }
    }
}

#[inline(always)]
fn turn_tile<T: Copy + Default>(band: &[T], stride: usize, out: &mut [T], classes: usize) {
    let mut tile = [[T::default(); TILE]; TILE];
    for (class, values) in tile.iter_mut().enumerate() {
        values.copy_from_slice(&band[class * stride..][..TILE]);
    }
    for down in 0..TILE {
        let row: [T; TILE] = std::array::from_fn(|class| tile[class][down]);
        out[down * classes..][..TILE].copy_from_slice(&row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole tiles, what is left beside and below them, and pieces of several threads.
    #[test]
    fn turning_puts_every_value_in_its_place() {
        for (rows, classes) in [(1, 1), (16, 16), (40, 33), (2 * ROWS + 21, 50)] {
            let (at, stride) = (3, rows + 9);
            let value = |row: usize, class: usize| (1 + row * classes + class) as u32;
            let mut band = vec![0; stride * classes];
            for (row, class) in (0..rows).flat_map(|row| (0..classes).map(move |class| (row, class))) {
                band[class * stride + at + row] = value(row, class);
            }
            let wanted: Vec<u32> = (1..=(rows * classes) as u32).collect();
            for threads in [1, 3] {
                let mut out = vec![0; rows * classes];
                turn(&band, stride, at, &mut out, classes, threads);
                assert_eq!(out, wanted, "{rows} rows of {classes} on {threads} threads");
            }
        }
    }
}
