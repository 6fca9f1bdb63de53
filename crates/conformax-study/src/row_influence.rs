//! `RowInfluence`: how much each row moves a procedure's mean over splits, which says how far other rows would have
//! moved it.
//!
//! Over splits a mean `M` of something counted on test rows is, to first order, a sum over rows of `a + b`: what row i
//! counts where it tests, and what it does to the threshold where it calibrates. The threshold is a quantile, so the
//! second is `κ·(e − α)` with `e` the share of its calibrations in which the row's score lies above the threshold, and
//! one slope κ for all rows. It is fitted to the splits: κ is how `M`, less what its test rows count, moves with the
//! mean `e` of its calibrating rows. The variance of `a + b` over rows, divided by their number, is then that of the
//! mean: the infinitesimal jackknife, which is what a bootstrap over rows would come to. A paired difference has the
//! difference of two procedures' influences.
//!
//! Over 60 data sets of 600 rows and 40 of 1,500 drawn from the newsgroups that ship, such variances of differences in
//! size and singletons were 0.7 to 4 times the true ones, 1.2 times in the middle.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::splits::Split;
use crate::test_sizes::TestSizes;

/// Largest set that counts as small: the paper's second stratum ends here.
pub(crate) const SMALL: u64 = 3;

/// What a row may count towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Size,
    Singleton,
    /// A set of at most [`SMALL`] labels.
    Small,
}

/// How many there are.
const COUNTED: usize = 3;

/// What a set of a size counts towards each.
fn counts(size: u32) -> [f64; COUNTED] {
    [f64::from(size), f64::from(u8::from(size == 1)), f64::from(u8::from(u64::from(size) <= SMALL))]
}

/// Influences by row, from their mean, for each thing counted.
#[derive(Clone, Debug)]
pub(crate) struct RowInfluence([Arc<[f32]>; COUNTED]);

/// Of every procedure at every level, by benchmark, procedure and the level's bits.
pub(crate) type Influences = BTreeMap<(String, String, u64), RowInfluence>;

/// A procedure on every split, at every level.
pub(crate) struct Visits<'a, M> {
    pub(crate) splits: &'a [Split],
    pub(crate) levels: usize,
    /// Whether the rows that tune do not calibrate.
    pub(crate) is_tuned: bool,
    /// Only those of test rows are read.
    pub(crate) sizes: &'a TestSizes,
    /// Whether a row's score lies above the threshold, by row, split and level.
    pub(crate) is_missed: M,
}

/// What a row counts where it tests, and how often it is missed where it calibrates: at one level, from the mean of all
/// rows.
type Parts = ([f64; COUNTED], f64);

/// Rows that are summed up together, in an order that threads do not change.
const CHUNK: usize = 512;

impl<M: Fn(usize, usize, usize) -> bool + Sync> Visits<'_, M> {
    /// One for each level.
    pub(crate) fn influences(&self) -> Vec<RowInfluence> {
        let parts = self.parts();
        let sums = self.sums(&parts);
        (0..self.levels).map(|level| self.influence(level, &parts, &sums)).collect()
    }

    fn rows(&self) -> usize {
        self.sizes.rows()
    }

    fn calibrates(&self, split: &Split, row: usize) -> bool {
        !(self.is_tuned && split.tunes(row))
    }

    /// By row, then level.
    fn parts(&self) -> Vec<Parts> {
        let levels = self.levels;
        let mut parts = vec![Parts::default(); self.rows() * levels];
        parts.par_chunks_mut(levels).enumerate().for_each(|(row, parts)| self.add_up_row(row, parts));
        for level in 0..levels {
            let at = |row: usize| row * levels + level;
            let (mut own_mean, mut missed_mean) = Parts::default();
            let mut known = [0u32; 2];
            for row in 0..self.rows() {
                let (own, missed) = parts[at(row)];
                if own[0].is_finite() {
                    known[0] += 1;
                    (0..COUNTED).for_each(|i| own_mean[i] += own[i]);
                }
                if missed.is_finite() {
                    known[1] += 1;
                    missed_mean += missed;
                }
            }
            // A row that never tests or never calibrates is taken for a mean one.
            let centred = |value: f64, sum: f64, known: u32| {
                if value.is_finite() { value - sum / f64::from(known) } else { 0.0 }
            };
            for row in 0..self.rows() {
                let (own, missed) = &mut parts[at(row)];
                (0..COUNTED).for_each(|i| own[i] = centred(own[i], own_mean[i], known[0]));
                *missed = centred(*missed, missed_mean, known[1]);
            }
        }
        parts
    }

    /// A row's means over its splits; NaN where it has none.
    fn add_up_row(&self, row: usize, parts: &mut [Parts]) {
        let (mut tests, mut calibrates) = (0.0, 0.0);
        for (number, split) in self.splits.iter().enumerate() {
            if split.tests(row) {
                tests += 1.0;
                for ((own, _), size) in parts.iter_mut().zip(self.sizes.of(row, number)) {
                    let counted = counts(*size);
                    (0..COUNTED).for_each(|i| own[i] += counted[i]);
                }
            } else if self.calibrates(split, row) {
                calibrates += 1.0;
                for (level, (_, missed)) in parts.iter_mut().enumerate() {
                    *missed += f64::from(u8::from((self.is_missed)(row, number, level)));
                }
            }
        }
        for (own, missed) in parts {
            own.iter_mut().for_each(|own| *own /= tests);
            *missed /= calibrates;
        }
    }

    /// By split, then level: over its test rows, what they count less what they count as a rule; over its calibrating
    /// rows, how often they are missed.
    fn sums(&self, parts: &[Parts]) -> Vec<Parts> {
        let width = self.splits.len() * self.levels;
        let chunks = (0..self.rows().div_ceil(CHUNK)).into_par_iter().map(|chunk| {
            let mut sums = vec![Parts::default(); width];
            for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(self.rows()) {
                let parts = &parts[row * self.levels..][..self.levels];
                for (number, (split, sums)) in
                    self.splits.iter().zip(sums.chunks_exact_mut(self.levels)).enumerate()
                {
                    if split.tests(row) {
                        let levels = sums.iter_mut().zip(parts).zip(self.sizes.of(row, number));
                        for (((rest, _), (own, _)), size) in levels {
                            let counted = counts(*size);
                            (0..COUNTED).for_each(|i| rest[i] += counted[i] - own[i]);
                        }
                    } else if self.calibrates(split, row) {
                        sums.iter_mut().zip(parts).for_each(|((_, pull), (_, missed))| *pull += missed);
                    }
                }
            }
            sums
        });
        let chunks: Vec<Vec<Parts>> = chunks.collect();
        let mut total = vec![Parts::default(); width];
        for sums in &chunks {
            for ((rest, pull), (more, pulled)) in total.iter_mut().zip(sums) {
                (0..COUNTED).for_each(|i| rest[i] += more[i]);
                *pull += pulled;
            }
        }
        total
    }

    fn influence(&self, level: usize, parts: &[Parts], sums: &[Parts]) -> RowInfluence {
        let of_split = |split: usize| &sums[split * self.levels + level];
        let numbered = || self.splits.iter().enumerate();
        let calibrating =
            |split: &Split| if self.is_tuned { split.n_calibrating() } else { split.calibration.len() };
        let pull: Vec<f64> =
            numbered().map(|(number, split)| of_split(number).1 / calibrating(split).max(1) as f64).collect();
        RowInfluence(std::array::from_fn(|i| {
            let rest: Vec<f64> = numbered()
                .map(|(number, split)| of_split(number).0[i] / split.test.len().max(1) as f64)
                .collect();
            let slope = slope(&pull, &rest);
            let rows = parts.iter().skip(level).step_by(self.levels);
            rows.map(|(own, missed)| (own[i] + slope * missed) as f32).collect()
        }))
    }
}

impl RowInfluence {
    pub(crate) fn of(&self, counted: Counted) -> &Arc<[f32]> {
        &self.0[counted as usize]
    }
}

/// The least-squares slope of `y` on `x`; 0 where `x` does not vary.
fn slope(x: &[f64], y: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (x_mean, y_mean) = (mean(x), mean(y));
    let products: f64 = x.iter().zip(y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let squares: f64 = x.iter().map(|x| (x - x_mean) * (x - x_mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Variance of a mean over so many rows, from their influences.
pub(crate) fn variance_of_mean(influences: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = influences.len().max(1) as f64;
    let mean = influences.clone().sum::<f64>() / n;
    influences.map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 400;

    fn splits() -> Vec<Split> {
        (0..60).map(|seed| Split::new(ROWS, 0.4, 0.4, seed).unwrap()).collect()
    }

    fn score(row: usize) -> f64 {
        ((row * 7919) % ROWS) as f64
    }

    /// The threshold of a split: of the rows that calibrate, nine in ten score at most so much.
    fn threshold(split: &Split) -> f64 {
        let mut scores: Vec<f64> = split.calibration.iter().map(|row| score(*row as usize)).collect();
        scores.sort_by(f64::total_cmp);
        scores[scores.len() * 9 / 10]
    }

    fn variance(size: impl Fn(usize, f64) -> u32 + Sync) -> f64 {
        let splits = splits();
        let thresholds: Vec<f64> = splits.iter().map(threshold).collect();
        let mut sizes = TestSizes::new(ROWS, splits.len(), 1);
        sizes.blocks().for_each(|mut block| {
            for (row, split) in block.rows().flat_map(|row| (0..splits.len()).map(move |split| (row, split)))
            {
                block.of(row, split)[0] = size(row, thresholds[split]);
            }
        });
        let visits = Visits {
            splits: &splits,
            levels: 1,
            is_tuned: false,
            sizes: &sizes,
            is_missed: |row, split: usize, _| score(row) > thresholds[split],
        };
        let influences = visits.influences();
        variance_of_mean(influences[0].of(Counted::Size).iter().map(|value| f64::from(*value)))
    }

    #[test]
    fn is_the_spread_of_rows_where_the_threshold_does_not_matter() {
        let size = |row: usize| (row % 5) as u32;
        // Sizes 0 to 4 in equal shares have variance 2.
        let wanted = 2.0 / ROWS as f64;
        let found = variance(|row, _| size(row));
        assert!((found / wanted - 1.0).abs() < 1e-3, "{found} {wanted}");
    }

    #[test]
    fn is_nothing_for_coverage_which_no_rows_change() {
        let covered = variance(|row, threshold| u32::from(score(row) <= threshold));
        let of_indicators = 0.09 / ROWS as f64;
        assert!(covered < 0.1 * of_indicators, "{covered} {of_indicators}");
    }

    #[test]
    fn follows_the_threshold_where_it_alone_matters() {
        // Sets grow by one label for every four points of the threshold, the same for every row: the mean is the
        // threshold's, whose variance over data sets is α (1 − α) / (n f²) with f = 1 / 400, over 16.
        let found = variance(|_, threshold| (threshold / 4.0) as u32);
        let wanted = 0.09 * (ROWS * ROWS) as f64 / 16.0 / ROWS as f64;
        assert!((0.5..2.0).contains(&(found / wanted)), "{found} {wanted}");
    }
}
