//! `Sentence`: a claim as data, and the comparisons it asks for.

use super::evidence::{Court, Place, Quantifier, Series, above, differ, within};
use super::quantity::Quantity;
use crate::results::{Claim, Evidence, Verdict};

/// A sentence of the paper and how to judge it.
pub(super) struct Sentence {
    pub(super) id: &'static str,
    pub(super) place: &'static str,
    /// What the paper says, in our words.
    pub(super) sentence: &'static str,
    /// What is compared, as the start of a rule.
    pub(super) measure: &'static str,
    pub(super) quantifier: Quantifier,
    pub(super) cells: Cells,
    pub(super) quantity: Quantity,
    pub(super) comparison: Comparison,
}

/// Where a sentence speaks: every such benchmark at every such level.
#[derive(Clone, Copy)]
pub(super) struct Cells {
    pub(super) benchmarks: Benchmarks,
    pub(super) levels: Levels,
}

#[derive(Clone, Copy)]
pub(super) enum Benchmarks {
    All,
    Only(&'static str),
    AllBut(&'static str),
}

#[derive(Clone, Copy)]
pub(super) enum Levels {
    All,
    These(&'static [f64]),
    /// Where some procedure gives singletons on the benchmark.
    WithSingletons,
}

/// What must be so.
#[derive(Clone, Copy)]
pub(super) enum Comparison {
    /// Every series of the first side lies above every one of the second, in each cell.
    Above(Side, Side),
    /// Each procedure lies within so much of 1 − α, in each cell.
    Within(Who, f64),
    /// On each benchmark, above itself at the largest level.
    AboveAtSmallestAlpha(Side),
    /// On each benchmark, above itself at the smallest level.
    AboveAtLargestAlpha(Side),
    /// The procedure's number differs between the smallest and the largest level, whichever way.
    DifferBetweenLevels(&'static str),
    /// The procedure's number differs between benchmarks, whichever way.
    DifferBetweenBenchmarks(&'static str),
    /// The largest number of all procedures differs from the smallest.
    DifferBetweenProcedures,
}

/// Procedures.
#[derive(Clone, Copy)]
pub(super) enum Who {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// A comparison for each procedure.
    Each(Who),
    /// The one with the smallest mean, times a number.
    Smallest(f64, Who),
    /// The one with the largest mean.
    Largest(Who),
    /// A procedure's number over the mean of the others'.
    OverMeanOfOthers(&'static str),
    Number(f64),
}

impl Sentence {
    pub(super) fn judge(&self, court: &Court<'_>) -> Claim {
        let evidence = self.evidence(court);
        let verdict = match self.quantifier.verdict(&evidence) {
            Verdict::Reproduced if !self.comparison.can_be_refuted() => Verdict::Irrefutable,
            verdict => verdict,
        };
        Claim {
            id: self.id.to_owned(),
            sentence: self.sentence.to_owned(),
            place: self.place.to_owned(),
            rule: self.rule(),
            found: found(&evidence),
            verdict,
            evidence,
        }
    }

    fn rule(&self) -> String {
        let rule = format!("{}, by more than 3 standard errors {}", self.measure, self.quantifier.rule());
        match self.comparison.can_be_refuted() {
            true => rule,
            false => format!("{rule}; no numbers could speak against it, so it is not counted as reproduced"),
        }
    }

    fn evidence(&self, court: &Court<'_>) -> Vec<Evidence> {
        let cells = || self.cells.of(court).into_iter();
        match self.comparison {
            Comparison::Above(first, second) => cells()
                .flat_map(|cell| self.in_places(court, cell))
                .flat_map(|place| all_above(&place, &first.series(&place), &second.series(&place)))
                .collect(),
            Comparison::Within(who, tolerance) => cells()
                .flat_map(|cell| self.in_places(court, cell))
                .flat_map(|place| {
                    let series = Side::Each(who).series(&place);
                    series.into_iter().filter_map(move |one| within(&place, &one, tolerance))
                })
                .collect(),
            Comparison::AboveAtSmallestAlpha(side) => self.at_ends(court, |low, high| {
                let (first, second) = (side.at_level(low), side.at_level(high));
                first.iter().zip(&second).filter_map(|(first, second)| above(low, first, second)).collect()
            }),
            Comparison::AboveAtLargestAlpha(side) => self.at_ends(court, |low, high| {
                let (first, second) = (side.at_level(high), side.at_level(low));
                first.iter().zip(&second).filter_map(|(first, second)| above(high, first, second)).collect()
            }),
            Comparison::DifferBetweenLevels(name) => self.at_ends(court, |low, high| {
                let named = |place: &Place<'_>| place.series(name).named(format!("at {}", place.alpha));
                differ(low, &named(low), &named(high)).into_iter().collect()
            }),
            Comparison::DifferBetweenBenchmarks(name) => self.between_benchmarks(court, name),
            Comparison::DifferBetweenProcedures => cells()
                .flat_map(|cell| self.in_places(court, cell))
                .filter_map(|place| {
                    let all = Side::Each(Who::AllBut(&[])).series(&place);
                    differ(&place, &largest(all.clone())?, &smallest(all)?)
                })
                .collect(),
        }
    }

    /// The cell, or each of its strata where the quantity has a number for each.
    fn in_places<'c>(
        &self,
        court: &'c Court<'_>,
        (benchmark, alpha): (&'c str, f64),
    ) -> impl Iterator<Item = Place<'c>> + use<'c> {
        let quantity = self.quantity;
        let count = court.any_record(benchmark, alpha).map_or(0, |record| quantity.count(record));
        (0..count).map(move |stratum| Place { court, benchmark, alpha, quantity, stratum })
    }

    /// What `compare` makes of the smallest and the largest level on each benchmark.
    fn at_ends(
        &self,
        court: &Court<'_>,
        compare: impl Fn(&Place<'_>, &Place<'_>) -> Vec<Evidence>,
    ) -> Vec<Evidence> {
        let Some((low, high)) = ends(&court.levels) else { return Vec::new() };
        let benchmarks = self.cells.benchmarks.of(court).into_iter();
        let at = |benchmark, alpha| Place { court, benchmark, alpha, quantity: self.quantity, stratum: 0 };
        benchmarks.flat_map(|benchmark| compare(&at(benchmark, low), &at(benchmark, high))).collect()
    }

    fn between_benchmarks(&self, court: &Court<'_>, name: &str) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        for &alpha in &court.levels {
            let places: Vec<Place<'_>> = self
                .cells
                .benchmarks
                .of(court)
                .into_iter()
                .map(|benchmark| Place { court, benchmark, alpha, quantity: self.quantity, stratum: 0 })
                .collect();
            let named = |place: &Place<'_>| place.series(name).named(place.benchmark.to_owned());
            for (index, first) in places.iter().enumerate() {
                let later = places[index + 1..].iter();
                evidence.extend(later.filter_map(|second| differ(first, &named(first), &named(second))));
            }
        }
        evidence
    }
}

impl Comparison {
    /// Whether any numbers could speak against the sentence. A difference whose sign is dropped has none that could.
    pub(super) fn can_be_refuted(self) -> bool {
        match self {
            Self::Above(..)
            | Self::Within(..)
            | Self::AboveAtSmallestAlpha(_)
            | Self::AboveAtLargestAlpha(_) => true,
            Self::DifferBetweenLevels(_)
            | Self::DifferBetweenBenchmarks(_)
            | Self::DifferBetweenProcedures => false,
        }
    }
}

impl Cells {
    fn of<'a>(self, court: &Court<'a>) -> Vec<(&'a str, f64)> {
        let levels = |benchmark: &'a str| {
            let wanted = move |alpha: &f64| match self.levels {
                Levels::All => true,
                Levels::These(levels) => levels.contains(alpha),
                Levels::WithSingletons => court.has_singletons(benchmark, *alpha),
            };
            court.levels.iter().copied().filter(wanted).map(move |alpha| (benchmark, alpha))
        };
        self.benchmarks.of(court).into_iter().flat_map(levels).collect()
    }
}

impl Benchmarks {
    fn of<'a>(self, court: &Court<'a>) -> Vec<&'a str> {
        let wanted = |name: &&str| match self {
            Self::All => true,
            Self::Only(only) => *name == only,
            Self::AllBut(but) => *name != but,
        };
        court.benchmarks.iter().copied().filter(wanted).collect()
    }
}

impl Who {
    fn names<'a>(self, court: &Court<'a>) -> Vec<&'a str> {
        let wanted = |name: &&str| match self {
            Self::These(names) => names.contains(name),
            Self::AllBut(names) => !names.contains(name),
        };
        court.procedures.iter().copied().filter(wanted).collect()
    }
}

impl Side {
    fn series(self, place: &Place<'_>) -> Vec<Series> {
        let each = |who: Who| who.names(place.court).into_iter().map(|name| place.series(name)).collect();
        match self {
            Self::Each(who) => each(who),
            Self::Smallest(1.0, who) => smallest(each(who)).into_iter().collect(),
            Self::Smallest(times, who) => {
                let smallest = smallest(each(who)).into_iter();
                smallest.map(|one| one.times(times).prefixed(&format!("{times} × "))).collect()
            }
            Self::Largest(who) => largest(each(who)).into_iter().collect(),
            Self::OverMeanOfOthers(name) => {
                let others: Vec<&str> =
                    place.court.procedures.iter().copied().filter(|other| *other != name).collect();
                let others: Vec<Series> = others.into_iter().map(|other| place.series(other)).collect();
                vec![place.series(name).over(&Series::mean_of(&others)).named(format!("{name} over others"))]
            }
            Self::Number(value) => vec![place.constant(value)],
        }
    }

    /// The series with the level in their names, to be compared with those of another.
    fn at_level(self, place: &Place<'_>) -> Vec<Series> {
        let named = |series: Series| {
            let name = format!("{} at {}", series.name, place.alpha);
            series.named(name)
        };
        self.series(place).into_iter().map(named).collect()
    }
}

fn all_above(place: &Place<'_>, first: &[Series], second: &[Series]) -> Vec<Evidence> {
    let pairs = first.iter().flat_map(|first| second.iter().map(move |second| (first, second)));
    pairs.filter_map(|(first, second)| above(place, first, second)).collect()
}

fn smallest(series: Vec<Series>) -> Option<Series> {
    series.into_iter().min_by(|a, b| a.mean().total_cmp(&b.mean()))
}

fn largest(series: Vec<Series>) -> Option<Series> {
    series.into_iter().max_by(|a, b| a.mean().total_cmp(&b.mean()))
}

/// The smallest and the largest level; `None` where there is one.
fn ends(levels: &[f64]) -> Option<(f64, f64)> {
    let low = levels.iter().copied().min_by(f64::total_cmp)?;
    let high = levels.iter().copied().max_by(f64::total_cmp)?;
    (low < high).then_some((low, high))
}

/// Our figures in a sentence.
fn found(evidence: &[Evidence]) -> String {
    let count = |verdict| evidence.iter().filter(|evidence| evidence.verdict == verdict).count();
    match evidence.len() {
        0 => "nothing to compare in this study".to_owned(),
        all => format!(
            "on these rows so in {} of {all} comparisons, the opposite in {}, not clear in {}",
            count(Verdict::Reproduced),
            count(Verdict::NotReproduced),
            count(Verdict::Undecided)
        ),
    }
}
