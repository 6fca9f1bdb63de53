//! `TestSizes`: set sizes by row, split and level.
//!
//! They are found row by row and summed up split by split. Rows lie in blocks, and within a block split after split, so
//! that either goes through memory in order: with all splits of a row side by side, every row of a split was a cache
//! miss.

use std::ops::Range;

use rayon::prelude::*;

/// Rows of a block.
const ROWS: usize = 16;

/// Sizes of all rows, zero where none were put in.
pub(crate) struct TestSizes {
    sizes: Vec<u32>,
    rows: usize,
    splits: usize,
    levels: usize,
}

impl TestSizes {
    pub(crate) fn new(rows: usize, splits: usize, levels: usize) -> Self {
        Self { sizes: vec![0; rows.next_multiple_of(ROWS) * splits * levels], rows, splits, levels }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Of a row on a split, by level.
    #[inline]
    pub(crate) fn of(&self, row: usize, split: usize) -> &[u32] {
        let place = (row / ROWS * self.splits + split) * ROWS + row % ROWS;
        &self.sizes[place * self.levels..][..self.levels]
    }

    /// Blocks to fill side by side.
    pub(crate) fn blocks(&mut self) -> impl IndexedParallelIterator<Item = Block<'_>> {
        let (rows, levels) = (self.rows, self.levels);
        let blocks = self.sizes.par_chunks_mut((ROWS * self.splits * levels).max(1)).enumerate();
        blocks.map(move |(block, sizes)| Block { first: block * ROWS, rows, levels, sizes })
    }
}

/// Some rows' sizes, to be filled.
pub(crate) struct Block<'a> {
    first: usize,
    rows: usize,
    levels: usize,
    sizes: &'a mut [u32],
}

impl Block<'_> {
    /// Its rows.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.first..(self.first + ROWS).min(self.rows)
    }

    /// Of one of its rows on a split, by level.
    #[inline]
    pub(crate) fn of(&mut self, row: usize, split: usize) -> &mut [u32] {
        let place = split * ROWS + row - self.first;
        &mut self.sizes[place * self.levels..][..self.levels]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_split_and_level_has_a_place_of_its_own() {
        let (rows, splits, levels) = (ROWS + 3, 5, 2);
        let mut sizes = TestSizes::new(rows, splits, levels);
        let number = |row: usize, split: usize| (row * splits + split) as u32;
        sizes.blocks().for_each(|mut block| {
            for (row, split) in block.rows().flat_map(|row| (0..splits).map(move |split| (row, split))) {
                block.of(row, split).copy_from_slice(&[number(row, split), 1]);
            }
        });
        for (row, split) in (0..rows).flat_map(|row| (0..splits).map(move |split| (row, split))) {
            assert_eq!(sizes.of(row, split), [number(row, split), 1]);
        }
    }
}
