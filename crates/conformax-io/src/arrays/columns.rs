//! A column-major matrix read by rows: one positioned read per column fetches a band of rows, which is then turned.
//!
//! A band is as high as memory allows so that each read is long: 64 MB over 1,000 columns of `f32` is 64 kB a read.

use crate::arrays::array::MatrixShape;
use crate::data::values::Values;
use crate::error::Result;
use crate::reading::positioned::Section;

const BAND_BYTES: usize = 64 << 20;
/// With very many columns reads would shrink below a page; the band grows instead, up to twice its usual size.
const SHORTEST_READ: usize = 4096;

pub(crate) struct Columns {
    section: Section,
    shape: MatrixShape,
    /// Column-major: `height` values of the first class, then of the second.
    band: Values,
    first_row: u64,
    height: usize,
}

impl Columns {
    pub(crate) fn new(section: Section, shape: MatrixShape) -> Self {
        Self { section, shape, band: Values::new(shape.dtype), first_row: 0, height: 0 }
    }

    /// Fills `into` (empty) with rows `first..first + rows` in row-major order.
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
        let longest = (2 * BAND_BYTES / classes).max(size);
        let read = (BAND_BYTES / classes).max(SHORTEST_READ.min(longest)) / size;
        let left = usize::try_from(self.shape.rows - first_row).unwrap_or(usize::MAX);
        self.height = read.max(1).min(left);
        self.first_row = first_row;
        self.band.resize(self.height * classes);
        for (class, column) in self.band.as_bytes_mut().chunks_exact_mut(self.height * size).enumerate() {
            let value = class as u64 * self.shape.rows + first_row;
            self.section.read_exact_at(column, value * size as u64)?;
        }
        self.band.swap_from(self.shape.bytes);
        Ok(())
    }

    /// Copies `count` rows of the band, from its row `at`, to rows `to..` of `into`.
    fn turn(&self, at: usize, count: usize, to: usize, into: &mut Values) {
        let (classes, height) = (self.shape.classes, self.height);
        match (&self.band, into) {
            (Values::F16(band), Values::F16(out)) => {
                turn(band, height, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::Bf16(band), Values::Bf16(out)) => {
                turn(band, height, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::F32(band), Values::F32(out)) => {
                turn(band, height, at, &mut out[to * classes..][..count * classes], classes)
            }
            (Values::F64(band), Values::F64(out)) => {
                turn(band, height, at, &mut out[to * classes..][..count * classes], classes)
            }
            (band, out) => unreachable!("a band of {} is turned into {}", band.dtype(), out.dtype()),
        }
    }
}

/// Square tiles keep both sides of the turn in the first-level cache.
const TILE: usize = 16;

fn turn<T: Copy>(band: &[T], height: usize, at: usize, out: &mut [T], classes: usize) {
    for (tile, rows) in out.chunks_mut(TILE * classes).enumerate() {
        let top = at + tile * TILE;
        for left in (0..classes).step_by(TILE) {
            let right = classes.min(left + TILE);
            for (down, row) in rows.chunks_exact_mut(classes).enumerate() {
                for class in left..right {
                    row[class] = band[class * height + top + down];
                }
            }
        }
    }
}
