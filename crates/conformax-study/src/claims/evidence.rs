//! From records to verdicts: paired differences, and how many of them a sentence needs.

use std::collections::BTreeMap;

use crate::results::{Claim, Evidence, Paired, Record, Verdict};

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

    fn rule(self) -> &'static str {
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

/// A sentence and how to judge it.
pub(super) struct Sentence {
    pub(super) id: &'static str,
    pub(super) place: &'static str,
    pub(super) sentence: &'static str,
    /// What is compared, as the start of a rule.
    pub(super) measure: &'static str,
    pub(super) quantifier: Quantifier,
}

impl Sentence {
    pub(super) fn judged(self, evidence: Vec<Evidence>) -> Claim {
        let count = |verdict| evidence.iter().filter(|evidence| evidence.verdict == verdict).count();
        let found = match evidence.len() {
            0 => "nothing to compare in this study".to_owned(),
            all => format!(
                "so in {} of {all} comparisons, the opposite in {}, not clear in {}",
                count(Verdict::Reproduced),
                count(Verdict::NotReproduced),
                count(Verdict::Undecided)
            ),
        };
        Claim {
            id: self.id.to_owned(),
            sentence: self.sentence.to_owned(),
            place: self.place.to_owned(),
            rule: format!("{}, by more than 3 standard errors {}", self.measure, self.quantifier.rule()),
            found,
            verdict: self.quantifier.verdict(&evidence),
            evidence,
        }
    }
}

/// A number per split, with the name it has in a comparison.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

impl Series {
    pub(super) fn constant(value: f64, like: &Self) -> Self {
        Self { name: value.to_string(), values: vec![value; like.values.len()] }
    }

    pub(super) fn map(self, name: String, value: impl Fn(f64) -> f64) -> Self {
        Self { name, values: self.values.into_iter().map(value).collect() }
    }

    pub(super) fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }
}

/// The records of all splits, by benchmark, procedure and level.
pub(super) struct Court<'a> {
    pub(super) benchmarks: Vec<&'a str>,
    pub(super) procedures: Vec<&'a str>,
    pub(super) levels: Vec<f64>,
    records: BTreeMap<(String, String, u64), Vec<&'a Record>>,
}

impl<'a> Court<'a> {
    pub(super) fn new(
        benchmarks: Vec<&'a str>,
        procedures: Vec<&'a str>,
        levels: Vec<f64>,
        records: &'a [Record],
    ) -> Self {
        let mut by_key: BTreeMap<_, Vec<&Record>> = BTreeMap::new();
        for record in records {
            let key = (record.benchmark.clone(), record.procedure.clone(), record.alpha.to_bits());
            by_key.entry(key).or_default().push(record);
        }
        Self { benchmarks, procedures, levels, records: by_key }
    }

    /// One split after another.
    pub(super) fn records(&self, benchmark: &str, procedure: &str, alpha: f64) -> &[&'a Record] {
        let key = (benchmark.to_owned(), procedure.to_owned(), alpha.to_bits());
        self.records.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn series(
        &self,
        benchmark: &str,
        procedure: &str,
        alpha: f64,
        value: impl Fn(&Record) -> f64,
    ) -> Series {
        let records = self.records(benchmark, procedure, alpha);
        Series { name: procedure.to_owned(), values: records.iter().map(|record| value(record)).collect() }
    }

    /// Whether the study has all of these.
    pub(super) fn has(&self, procedures: &[&str]) -> bool {
        procedures.iter().all(|procedure| self.procedures.contains(procedure))
    }

    /// Every benchmark with every level.
    pub(super) fn cells(&self) -> Vec<(&'a str, f64)> {
        let benchmarks = self.benchmarks.iter();
        benchmarks.flat_map(|name| self.levels.iter().map(move |alpha| (*name, *alpha))).collect()
    }

    pub(super) fn others(&self, than: &[&str]) -> Vec<&'a str> {
        self.procedures.iter().filter(|name| !than.contains(*name)).copied().collect()
    }
}

/// Evidence that the first series lies above the second; `None` where there are no splits to compare.
pub(super) fn above(
    benchmark: &str,
    alpha: f64,
    quantity: &str,
    first: &Series,
    second: &Series,
) -> Option<Evidence> {
    let differences: Vec<f64> = first.values.iter().zip(&second.values).map(|(a, b)| a - b).collect();
    let difference = Paired::of(&differences)?;
    Some(Evidence {
        benchmark: benchmark.to_owned(),
        alpha,
        quantity: format!("{quantity}: {} − {}", first.name, second.name),
        first: first.mean(),
        second: second.mean(),
        difference,
        verdict: difference.verdict(),
    })
}

/// Evidence that a series' mean lies within `tolerance` of `target`.
///
/// The difference is what is left of the tolerance, so that here too the claim wants it positive.
pub(super) fn within(
    benchmark: &str,
    alpha: f64,
    quantity: &str,
    series: &Series,
    target: f64,
    tolerance: f64,
) -> Option<Evidence> {
    let deviation = Paired::of(&series.values.iter().map(|value| value - target).collect::<Vec<_>>())?;
    let difference = Paired { mean: tolerance - deviation.mean.abs(), ..deviation };
    Some(Evidence {
        benchmark: benchmark.to_owned(),
        alpha,
        quantity: format!("{quantity}: {tolerance} − |{} − {target}|", series.name),
        first: series.mean(),
        second: target,
        difference,
        verdict: difference.verdict(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(verdicts: &[Verdict]) -> Vec<Evidence> {
        let series = |value: f64| Series { name: "x".to_owned(), values: vec![value; 3] };
        let one = |verdict: &Verdict| {
            let first = match verdict {
                Verdict::Reproduced => 1.0,
                Verdict::NotReproduced => -1.0,
                Verdict::Undecided => 0.0,
            };
            above("b", 0.1, "size", &series(first), &series(0.0)).unwrap()
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
        let series = |values: &[f64]| Series { name: "coverage".to_owned(), values: values.to_vec() };
        let verdict =
            |values: &[f64]| within("b", 0.1, "coverage", &series(values), 0.9, 0.01).unwrap().verdict;
        assert_eq!(verdict(&[0.899, 0.901, 0.9]), Verdict::Reproduced);
        assert_eq!(verdict(&[0.889, 0.891, 0.890]), Verdict::Undecided);
        assert_eq!(verdict(&[0.870, 0.871, 0.872]), Verdict::NotReproduced);
    }
}
