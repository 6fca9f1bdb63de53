//! From records to verdicts: paired differences, and how many of them a sentence needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::quantity::{Quantity, confidence};
use crate::results::{Evidence, Paired, Record, Verdict};
use crate::row_influence::Influences;
use crate::spread::Chance;

/// How much of the evidence a sentence speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    /// "all", "across", "for all".
    Everywhere,
    /// "almost all": nine comparisons in ten.
    AlmostEverywhere,
    /// "in general", "generally", or nothing said: more than half.
    Mostly,
    /// "depends": one is enough.
    Somewhere,
}

impl Quantifier {
    /// Whether so many of `all` are enough.
    fn holds(self, count: usize, all: usize) -> bool {
        match self {
            Self::Everywhere => count == all,
            Self::AlmostEverywhere => count * 10 >= all * 9,
            Self::Mostly => count * 2 > all,
            Self::Somewhere => count > 0,
        }
    }

    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Everywhere => "in every comparison",
            Self::AlmostEverywhere => "in nine comparisons out of ten",
            Self::Mostly => "in more than half of the comparisons",
            Self::Somewhere => "in at least one comparison",
        }
    }

    /// Reproduced if it holds even with every open comparison against it, not reproduced if it fails even with
    /// every open comparison for it.
    pub(super) fn verdict(self, evidence: &[Evidence]) -> Verdict {
        let count = |verdict| evidence.iter().filter(|evidence| evidence.verdict == verdict).count();
        let (clear, against) = (count(Verdict::Reproduced), count(Verdict::NotReproduced));
        if evidence.is_empty() {
            Verdict::Undecided
        } else if self.holds(clear, evidence.len()) {
            Verdict::Reproduced
        } else if !self.holds(evidence.len() - against, evidence.len()) {
            Verdict::NotReproduced
        } else {
            Verdict::Undecided
        }
    }
}

/// A number per split, with the name it has in a comparison; `None` on a split that has no such number.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
    rows: Rows,
}

/// What is known of how rows move the mean of a series.
#[derive(Clone, Debug)]
enum Rows {
    /// By row.
    Influences(Arc<[f32]>),
    /// They do not: it is a number.
    Nothing,
    Unknown,
}

impl Rows {
    fn times(self, factor: f64) -> Self {
        match self {
            Self::Influences(rows) => {
                Self::Influences(rows.iter().map(|row| (f64::from(*row) * factor) as f32).collect())
            }
            other => other,
        }
    }
}

impl Series {
    pub(super) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    pub(super) fn prefixed(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}{}", self.name), ..self }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        let values = self.values.into_iter().map(|number| number.map(|number| factor * number)).collect();
        Self { values, rows: self.rows.times(factor), name: self.name }
    }

    /// Split by split, divided by another.
    pub(super) fn over(self, other: &Self) -> Self {
        let both = self.values.iter().zip(&other.values);
        let values = both.map(|(own, other)| Some((*own)? / (*other)?)).collect();
        Self { values, rows: Rows::Unknown, name: self.name }
    }

    /// Split by split, the mean of several.
    pub(super) fn mean_of(series: &[Self]) -> Self {
        let splits = series.iter().map(|one| one.values.len()).min().unwrap_or(0);
        let mean = |split: usize| {
            let sum: Option<f64> = series.iter().map(|one| one.values[split]).sum();
            sum.map(|sum| sum / series.len() as f64)
        };
        Self { name: "mean".to_owned(), values: (0..splits).map(mean).collect(), rows: Rows::Unknown }
    }

    pub(super) fn mean(&self) -> f64 {
        let values: Vec<f64> = self.values.iter().flatten().copied().collect();
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// The records of all splits, by benchmark, procedure and level.
pub(super) struct Court<'a> {
    pub(super) benchmarks: Vec<&'a str>,
    pub(super) procedures: Vec<&'a str>,
    pub(super) levels: Vec<f64>,
    records: BTreeMap<(String, String, u64), Vec<&'a Record>>,
    influences: &'a Influences,
}

impl<'a> Court<'a> {
    pub(super) fn new(
        benchmarks: Vec<&'a str>,
        procedures: Vec<&'a str>,
        levels: Vec<f64>,
        records: &'a [Record],
        influences: &'a Influences,
    ) -> Self {
        let mut by_key: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in records {
            let key = (record.benchmark.clone(), record.procedure.clone(), record.alpha.to_bits());
            by_key.entry(key).or_default().push(record);
        }
        Self { benchmarks, procedures, levels, records: by_key, influences }
    }

    /// One split after another.
    fn records(&self, benchmark: &str, procedure: &str, alpha: f64) -> &[&'a Record] {
        let key = (benchmark.to_owned(), procedure.to_owned(), alpha.to_bits());
        self.records.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Rows and strata are the same for all procedures of a benchmark.
    pub(super) fn any_record(&self, benchmark: &str, alpha: f64) -> Option<&'a Record> {
        let mut records = self.procedures.iter().flat_map(|name| self.records(benchmark, name, alpha));
        records.next().copied()
    }

    /// Whether some procedure gives singletons.
    pub(super) fn has_singletons(&self, benchmark: &str, alpha: f64) -> bool {
        let mut records = self.procedures.iter().flat_map(|name| self.records(benchmark, name, alpha));
        records.any(|record| record.singleton_ratio > 0.0)
    }
}

/// A quantity on a benchmark at a level; of one stratum, where it has a number for each.
pub(super) struct Place<'a> {
    pub(super) court: &'a Court<'a>,
    pub(super) benchmark: &'a str,
    pub(super) alpha: f64,
    pub(super) quantity: Quantity,
    pub(super) stratum: usize,
}

impl Place<'_> {
    pub(super) fn series(&self, procedure: &str) -> Series {
        let records = self.court.records(self.benchmark, procedure, self.alpha);
        let values = records.iter().map(|record| self.quantity.read(record, self.stratum)).collect();
        let key = (self.benchmark.to_owned(), procedure.to_owned(), self.alpha.to_bits());
        let rows =
            self.quantity.counted().and_then(|counted| Some(self.court.influences.get(&key)?.of(counted)));
        let rows = rows.map_or(Rows::Unknown, |rows| Rows::Influences(Arc::clone(rows)));
        Series { name: procedure.to_owned(), values, rows }
    }

    pub(super) fn constant(&self, value: f64) -> Series {
        let splits = self.court.procedures.iter().map(|name| self.series(name).values.len()).max();
        let values = vec![Some(value); splits.unwrap_or(0)];
        Series { name: value.to_string(), values, rows: Rows::Nothing }
    }

    /// What the mean of a difference may owe to chance here.
    fn chance(&self, first: &Rows, second: &Rows) -> Chance {
        let record = self.court.any_record(self.benchmark, self.alpha);
        match (first, second, record) {
            (Rows::Influences(first), Rows::Influences(second), _) if first.len() == second.len() => {
                Chance::of_rows(first, second)
            }
            (Rows::Influences(rows), Rows::Nothing, _) | (Rows::Nothing, Rows::Influences(rows), _) => {
                Chance::of_rows(rows, &vec![0.0; rows.len()])
            }
            (.., Some(record)) if !self.quantity.mean_is_known() => Chance::of_shared_rows(record),
            _ => Chance::OfSplits,
        }
    }

    fn evidence(&self, names: &str, [first, second]: [f64; 2], difference: Paired) -> Evidence {
        let record = self.court.any_record(self.benchmark, self.alpha);
        let quantity = record.map_or_else(String::new, |record| self.quantity.name(record, self.stratum));
        Evidence {
            benchmark: self.benchmark.to_owned(),
            alpha: self.alpha,
            quantity: format!("{quantity}: {names}"),
            first,
            second,
            difference,
            verdict: difference.verdict(),
        }
    }
}

/// Evidence that the first series lies above the second; `None` where no split has both.
pub(super) fn above(place: &Place<'_>, first: &Series, second: &Series) -> Option<Evidence> {
    let both = first.values.iter().zip(&second.values).filter_map(|(a, b)| (*a).zip(*b));
    let (firsts, seconds): (Vec<f64>, Vec<f64>) = both.unzip();
    let differences: Vec<f64> = firsts.iter().zip(&seconds).map(|(a, b)| a - b).collect();
    let difference = Paired::of(&differences, place.chance(&first.rows, &second.rows))?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let names = format!("{} − {}", first.name, second.name);
    Some(place.evidence(&names, [mean(&firsts), mean(&seconds)], difference))
}

/// Evidence of any difference, whichever way: the sign is dropped, so nothing speaks against it.
pub(super) fn differ(place: &Place<'_>, first: &Series, second: &Series) -> Option<Evidence> {
    let evidence = above(place, first, second)?;
    let difference = Paired { mean: evidence.difference.mean.abs(), ..evidence.difference };
    Some(Evidence { difference, verdict: difference.verdict(), ..evidence })
}

/// Evidence that a series' mean lies within `tolerance` of 1 − α.
///
/// The difference is what is left of the tolerance, so that here too the claim wants it positive.
pub(super) fn within(place: &Place<'_>, series: &Series, tolerance: f64) -> Option<Evidence> {
    let target = confidence(place.alpha);
    let deviations: Vec<f64> = series.values.iter().flatten().map(|value| value - target).collect();
    let deviation = Paired::of(&deviations, place.chance(&series.rows, &Rows::Nothing))?;
    let difference = Paired { mean: tolerance - deviation.mean.abs(), ..deviation };
    let names = format!("{tolerance} − |{} − {target}|", series.name);
    Some(place.evidence(&names, [series.mean(), target], difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(verdicts: &[Verdict]) -> Vec<Evidence> {
        let one = |verdict: &Verdict| Evidence {
            benchmark: String::new(),
            alpha: 0.1,
            quantity: String::new(),
            first: 0.0,
            second: 0.0,
            difference: Paired::default(),
            verdict: *verdict,
        };
        verdicts.iter().map(one).collect()
    }

    #[test]
    fn open_comparisons_decide_nothing() {
        use Quantifier::*;
        use Verdict::*;
        let (yes, no, open) = (Reproduced, NotReproduced, Undecided);
        for (quantifier, verdicts, wanted) in [
            (Everywhere, vec![yes, yes], yes),
            (Everywhere, vec![yes, open], open),
            (Everywhere, vec![yes, open, no], no),
            (AlmostEverywhere, [vec![yes; 9], vec![no]].concat(), yes),
            (AlmostEverywhere, [vec![yes; 8], vec![no, open]].concat(), open),
            (AlmostEverywhere, [vec![yes; 8], vec![no, no]].concat(), no),
            (Mostly, vec![yes, yes, no], yes),
            (Mostly, vec![yes, open, no], open),
            (Mostly, vec![yes, no], no),
            (Somewhere, vec![open, yes], yes),
            (Somewhere, vec![open, no], open),
            (Somewhere, vec![no, no], no),
            (Mostly, vec![], open),
        ] {
            assert_eq!(quantifier.verdict(&evidence(&verdicts)), wanted, "{quantifier:?} {verdicts:?}");
        }
    }

    #[test]
    fn within_a_tolerance_is_clear_only_away_from_its_edge() {
        let verdict = |coverages: [f64; 5]| {
            let records: Vec<Record> = coverages
                .iter()
                .map(|coverage| Record {
                    benchmark: "b".to_owned(),
                    procedure: "p".to_owned(),
                    alpha: 0.1,
                    coverage: *coverage,
                    ..Record::default()
                })
                .collect();
            let influences = Influences::new();
            let court = Court::new(vec!["b"], vec!["p"], vec![0.1], &records, &influences);
            let place =
                Place { court: &court, benchmark: "b", alpha: 0.1, quantity: Quantity::Coverage, stratum: 0 };
            within(&place, &place.series("p"), 0.01).unwrap().verdict
        };
        assert_eq!(verdict([0.899, 0.901, 0.9, 0.899, 0.901]), Verdict::Reproduced);
        assert_eq!(verdict([0.889, 0.891, 0.890, 0.889, 0.891]), Verdict::Undecided);
        assert_eq!(verdict([0.870, 0.871, 0.872, 0.870, 0.871]), Verdict::NotReproduced);
    }
}
