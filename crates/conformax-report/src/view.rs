//! `View`: a study's records found by benchmark, procedure and level, and their means over splits.

use std::collections::HashMap;

use conformax_plot::Style;
use conformax_study::{
    BenchmarkSummary, CoverageBand, Record, Results, SELECTION_CLASSES, Spread, Way, paper,
};

use crate::{number, style};

/// Results with an index; benchmarks, procedures and levels are named by their place in the study's order.
pub(crate) struct View<'a> {
    pub(crate) results: &'a Results,
    /// One per procedure.
    pub(crate) styles: Vec<Style>,
    /// Tuned procedures once more, where all rows choose: they have records, and cells after those of the procedures.
    pub(crate) all_rows: Vec<String>,
    cells: HashMap<Cell, Vec<&'a Record>>,
}

/// One procedure on one benchmark at one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) benchmark: usize,
    pub(crate) procedure: usize,
    pub(crate) level: usize,
}

impl<'a> View<'a> {
    pub(crate) fn new(results: &'a Results) -> Self {
        let mut cells: HashMap<Cell, Vec<&Record>> = HashMap::new();
        let all_rows = results.procedures.iter().map(|name| Way::AllRows.named(name));
        let all_rows: Vec<String> =
            all_rows.filter(|name| results.tuned.iter().any(|record| record.procedure == *name)).collect();
        let names: Vec<&String> = results.procedures.iter().chain(&all_rows).collect();
        let tuned = results.tuned.iter().filter(|record| all_rows.contains(&record.procedure));
        for record in results.records.iter().chain(tuned) {
            let cell = Cell {
                benchmark: place(&results.benchmarks, |b| b.name == record.benchmark),
                procedure: place(&names, |name| **name == record.procedure),
                level: place(&results.levels, |alpha| *alpha == record.alpha),
            };
            cells.entry(cell).or_default().push(record);
        }
        Self { results, styles: style::of_procedures(&results.procedures), all_rows, cells }
    }

    /// The records of a cell, one per split.
    pub(crate) fn records(&self, cell: Cell) -> &[&'a Record] {
        self.cells.get(&cell).map_or(&[], Vec::as_slice)
    }

    /// Mean and spread over the cell's splits of what `metric` reads; `None` where no split has it.
    pub(crate) fn spread_of(&self, cell: Cell, metric: impl Fn(&Record) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.records(cell).iter().filter_map(|record| metric(record)).collect();
        Spread::of(&values)
    }

    pub(crate) fn benchmarks(&self) -> impl Iterator<Item = (usize, &'a BenchmarkSummary)> + use<'a> {
        self.results.benchmarks.iter().enumerate()
    }

    pub(crate) fn procedures(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.results.procedures.iter().map(String::as_str).enumerate()
    }

    /// The procedures that tables have, with those that all rows tune after the study's.
    pub(crate) fn tabled(&self) -> impl Iterator<Item = (usize, &str)> {
        self.results.procedures.iter().chain(&self.all_rows).map(String::as_str).enumerate()
    }

    /// On which splits all rows choose, where they do on fewer than the study's.
    pub(crate) fn all_rows_note(&self) -> Option<String> {
        let ways = self.results.tuning_ways.iter().find(|it| it.way == Way::AllRows)?;
        (!self.all_rows.is_empty() && ways.coverage.splits < self.results.provenance.splits).then(|| {
            format!("{}: over the first {} splits.", number::listed(&self.all_rows), ways.coverage.splits)
        })
    }

    /// Where all rows do not choose although procedures are tuned there, and why.
    pub(crate) fn too_wide_note(&self) -> Option<String> {
        let is_tuned = |name: &str| self.results.tuning.iter().any(|comparison| comparison.benchmark == name);
        let wide = self.results.benchmarks.iter().filter(|it| it.classes > SELECTION_CLASSES as u64);
        let titles: Vec<String> = wide.filter(|it| is_tuned(&it.name)).map(|it| it.title.clone()).collect();
        (!titles.is_empty()).then(|| {
            format!(
                "All rows do not choose on {}: with more than {} classes a study would take too long. conformax tune \
                 --rows all does it for one calibration, with any number of classes.",
                number::listed(&titles),
                number::count(SELECTION_CLASSES as u64)
            )
        })
    }

    pub(crate) fn levels(&self) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        self.results.levels.iter().copied().enumerate()
    }

    /// The levels that the paper prints: 0.10, 0.05 and 0.01, or the ends and the middle of another study's.
    pub(crate) fn printed_levels(&self) -> Vec<usize> {
        let levels = &self.results.levels;
        let wanted: Vec<usize> =
            [0.1, 0.05, 0.01].iter().filter_map(|&alpha| levels.iter().position(|&a| a == alpha)).collect();
        if !wanted.is_empty() {
            return wanted;
        }
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by(|&a, &b| levels[b].total_cmp(&levels[a]));
        let mut picked = match order.as_slice() {
            [] => Vec::new(),
            [first, .., last] => vec![*first, order[order.len() / 2], *last],
            [one] => vec![*one],
        };
        picked.dedup();
        picked
    }

    /// Whether the paper prints numbers for any of the benchmarks.
    pub(crate) fn has_printed_numbers(&self) -> bool {
        let printed = |name: &str| paper::ACCURACY.iter().any(|row| row.benchmark == name);
        self.results.benchmarks.iter().filter_map(BenchmarkSummary::name_in_paper).any(printed)
    }

    /// The band of a cell's coverage.
    pub(crate) fn band(&self, cell: Cell) -> Option<&'a CoverageBand> {
        let results = self.results;
        results.bands.iter().find(|band| {
            band.benchmark == results.benchmarks[cell.benchmark].name
                && band.alpha == results.levels[cell.level]
                && band.procedures.contains(&results.procedures[cell.procedure])
        })
    }
}

fn place<T>(items: &[T], is: impl Fn(&T) -> bool) -> usize {
    items.iter().position(is).expect("a record names a benchmark, procedure and level of its study")
}
