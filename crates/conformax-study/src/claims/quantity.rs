//! `Quantity`: what a claim compares, read from a record.

use crate::results::Record;
use crate::row_influence::{Counted, SMALL};

/// A number that a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Coverage,
    AverageSize,
    SingletonRatio,
    SingletonCoverage,
    /// The γ that was chosen.
    Gamma,
    Sscv,
    /// Share of sets of at most [`SMALL`] labels.
    SmallSets,
    /// Coverage of the sets of a size, a number per stratum.
    StratumCoverage,
    /// Its distance from 1 − α.
    StratumDeviation,
}

impl Quantity {
    /// How many numbers a record has: one, or one per stratum.
    pub(super) fn count(self, record: &Record) -> usize {
        match self {
            Self::StratumCoverage | Self::StratumDeviation => record.strata.len(),
            _ => 1,
        }
    }

    /// The number, or `None` where the split has no such sets.
    pub(super) fn read(self, record: &Record, stratum: usize) -> Option<f64> {
        match self {
            Self::Coverage => Some(record.coverage),
            Self::AverageSize => Some(record.average_size),
            Self::SingletonRatio => Some(record.singleton_ratio),
            Self::SingletonCoverage => record.singleton_coverage,
            Self::Gamma => record.gamma,
            Self::Sscv => Some(record.sscv),
            Self::SmallSets => {
                let small = record.strata.iter().filter(|stratum| stratum.to <= SMALL);
                Some(small.map(|stratum| stratum.n).sum::<u64>() as f64 / record.n_test as f64)
            }
            Self::StratumCoverage => record.strata.get(stratum)?.coverage,
            Self::StratumDeviation => {
                let coverage = record.strata.get(stratum)?.coverage?;
                Some((coverage - confidence(record.alpha)).abs())
            }
        }
    }

    /// What it is called in a comparison, as `record` has it.
    pub(super) fn name(self, record: &Record, stratum: usize) -> String {
        let sizes = || record.strata.get(stratum).map_or((0, 0), |stratum| (stratum.from, stratum.to));
        match self {
            Self::Coverage => "coverage".to_owned(),
            Self::AverageSize => "average size".to_owned(),
            Self::SingletonRatio => "singleton ratio".to_owned(),
            Self::SingletonCoverage => "coverage of singletons".to_owned(),
            Self::Gamma => "chosen γ".to_owned(),
            Self::Sscv => "SSCV".to_owned(),
            Self::SmallSets => format!("share of sets of at most {SMALL}"),
            Self::StratumCoverage => format!("coverage of sets of {} to {}", sizes().0, sizes().1),
            Self::StratumDeviation => {
                let (from, to) = sizes();
                format!("|coverage − {}| of sets of {from} to {to}", confidence(record.alpha))
            }
        }
    }

    /// What a row counts towards it, where it is a mean over test rows.
    pub(super) fn counted(self) -> Option<Counted> {
        match self {
            Self::AverageSize => Some(Counted::Size),
            Self::SingletonRatio => Some(Counted::Singleton),
            Self::SmallSets => Some(Counted::Small),
            _ => None,
        }
    }

    /// Whether its mean over all splits is known whatever the rows are: see [`crate::Chance::OfSplits`].
    pub(super) fn mean_is_known(self) -> bool {
        self == Self::Coverage
    }
}

/// 1 − α with the decimal complement, so that 0.9 is written as 0.9.
pub(super) fn confidence(alpha: f64) -> f64 {
    conformax::Alpha::new(alpha).map_or(1.0 - alpha, conformax::Alpha::confidence)
}
