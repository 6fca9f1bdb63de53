//! `pooled_strata`: coverage by size of set over all splits, from the counts that each split's coverage came of.

use crate::results::Record;

/// Sets of one range of sizes over all splits.
///
/// ```
/// use conformax_study::{Record, Stratum, pooled_strata};
/// let record = |n, coverage| Record {
///     strata: vec![Stratum { from: 2, to: 3, n, coverage: Some(coverage) }],
///     ..Record::default()
/// };
/// let (few, many) = (record(10, 0.9), record(90, 0.5));
/// let pooled = &pooled_strata(&[&few, &many])[0];
/// assert_eq!((pooled.n, pooled.covered, pooled.coverage()), (100, 54, Some(0.54))); // and not the mean, 0.7
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PooledStratum {
    /// Smallest size.
    pub from: u64,
    /// Largest size.
    pub to: u64,
    /// Sets of such a size.
    pub n: u64,
    /// How many of them hold the true label.
    pub covered: u64,
    /// How many of them are empty; 0 unless the range starts at 0.
    pub empty: u64,
    /// Splits that were pooled.
    pub splits: u64,
}

impl PooledStratum {
    /// Coverage; `None` where there is no such set.
    pub fn coverage(&self) -> Option<f64> {
        (self.n > 0).then(|| self.covered as f64 / self.n as f64)
    }

    /// Sets in a split on average.
    pub fn per_split(&self) -> f64 {
        self.n as f64 / self.splits.max(1) as f64
    }
}

/// Adds up the strata of these records, one per split; covered sets are whole numbers again once multiplied out.
pub fn pooled_strata(records: &[&Record]) -> Vec<PooledStratum> {
    let mut pooled: Vec<PooledStratum> = Vec::new();
    for record in records {
        // With ten classes no set has eleven labels.
        for (i, stratum) in record.strata.iter().filter(|stratum| stratum.from <= stratum.to).enumerate() {
            if pooled.len() == i {
                let (from, to, splits) = (stratum.from, stratum.to, records.len() as u64);
                pooled.push(PooledStratum { from, to, n: 0, covered: 0, empty: 0, splits });
            }
            let into = &mut pooled[i];
            into.n += stratum.n;
            into.covered += (stratum.coverage.unwrap_or(0.0) * stratum.n as f64).round() as u64;
            if stratum.from == 0 {
                into.empty += (record.empty_ratio * record.n_test as f64).round() as u64;
            }
        }
    }
    pooled
}
