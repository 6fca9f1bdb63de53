//! `Asked`: the thresholds of all splits and levels at which rows are asked for their set sizes, in one question.
//!
//! Splits differ little in their thresholds, so a row has few sizes at hundreds of them. Sorted once for all rows, they
//! are answered by where sizes grow.

use conformax::RowSizes;

/// Thresholds in the order in which they are looked up, and sorted.
pub(super) struct Asked {
    /// Ascending, each once.
    sorted: Vec<f64>,
    /// For each threshold, its place among those.
    places: Vec<u32>,
}

impl Asked {
    pub(super) fn new(thresholds: impl Iterator<Item = f64>) -> Self {
        let asked: Vec<f64> = thresholds.collect();
        let mut sorted = asked.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.dedup();
        let place = |threshold: &f64| sorted.partition_point(|other| other < threshold) as u32;
        Self { places: asked.iter().map(place).collect(), sorted }
    }

    /// The sizes of a row's sets; `table` is memory that rows use one after another.
    pub(super) fn of_row<'a>(&'a self, sizes: &mut RowSizes<'_>, table: &'a mut Vec<u32>) -> Answers<'a> {
        table.resize(self.sorted.len(), 0);
        sizes.at_each(&self.sorted, table);
        Answers { places: &self.places, sizes: table }
    }
}

/// A row's set sizes at the thresholds asked for, in their order.
pub(super) struct Answers<'a> {
    places: &'a [u32],
    sizes: &'a [u32],
}

impl Answers<'_> {
    pub(super) fn one(&self, threshold: usize) -> usize {
        self.sizes[self.places[threshold] as usize] as usize
    }

    /// Those from a threshold on.
    #[inline]
    pub(super) fn from(&self, threshold: usize) -> impl Iterator<Item = u32> {
        self.places[threshold..].iter().map(|place| self.sizes[*place as usize])
    }
}
