//! `SmallChart`: one quantity of one benchmark at a glance, ours among the others, with a sentence.

use conformax_study::paper;
use serde::Serialize;

use crate::findings::{self, COVERAGE, Quantity, SINGLETONS, SIZE, SSCV};
use crate::number;
use crate::view::{Cell, View};

/// A quantity at the outer two of the printed levels.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SmallChart {
    about: &'static str,
    /// How to read it.
    hint: &'static str,
    tracks: Vec<Track>,
    sentence: String,
}

/// The procedures along one line. Places are in percent of its length.
#[derive(Clone, Debug, Serialize)]
struct Track {
    alpha: String,
    dots: Vec<Dot>,
    /// The value of ours.
    ours: Option<String>,
    low: End,
    high: End,
    /// What the paper prints for ours.
    paper: Option<Tick>,
    /// Where values are held to, and the band that they lie in by chance.
    target: Option<f64>,
    band: Option<(f64, f64)>,
    alternative: String,
}

#[derive(Clone, Debug, Serialize)]
struct Dot {
    name: String,
    class: String,
    at: f64,
    value: String,
    is_ours: bool,
}

/// The smallest or the largest value.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct End {
    /// Whose it is.
    of: String,
    value: String,
    is_best: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Tick {
    at: f64,
    value: String,
    /// Whether it lies further out than the line reaches.
    is_beyond: bool,
}

/// Which end of a line is the better one.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Low,
    High,
    /// Neither: values are held to one between them.
    Middle,
}

struct Kind {
    about: &'static str,
    hint: &'static str,
    quantity: Quantity,
    print: fn(f64) -> String,
    better: Better,
    printed: fn(&str, &str, f64) -> Option<f64>,
}

const KINDS: [Kind; 4] = [
    Kind {
        about: "Size",
        hint: "labels in a set; fewer is better",
        quantity: SIZE,
        print: number::size,
        better: Better::Low,
        // The paper draws sizes and prints none.
        printed: |_, _, _| None,
    },
    Kind {
        about: "Coverage",
        hint: "the line is 1 − α, the band the law’s for one split",
        quantity: COVERAGE,
        print: number::share,
        better: Better::Middle,
        printed: paper::coverage_of,
    },
    Kind {
        about: "Singletons",
        hint: "share of rows with one label; more is better",
        quantity: SINGLETONS,
        print: number::share,
        better: Better::High,
        printed: paper::singletons_of,
    },
    Kind {
        about: "Evenness",
        hint: "SSCV, the worst stratum’s distance from 1 − α; less is better",
        quantity: SSCV,
        print: number::share,
        better: Better::Low,
        printed: paper::sscv_of,
    },
];

/// The charts of a benchmark; none where it has no records.
pub(crate) fn of_benchmark(view: &View<'_>, benchmark: usize) -> Vec<SmallChart> {
    KINDS.iter().filter_map(|kind| kind.chart(view, benchmark)).collect()
}

/// Whether some chart has a tick of the paper's.
pub(crate) fn have_ticks(charts: &[SmallChart]) -> bool {
    charts.iter().flat_map(|chart| &chart.tracks).any(|track| track.paper.is_some())
}

/// The procedure that stands out: γ chosen by the data, the last of those that do so, or else the last of the entmax
/// family.
pub(crate) fn ours<'a>(view: &View<'a>) -> Option<(usize, &'a str)> {
    let chosen = view.procedures().filter(|(_, name)| name.starts_with(paper::OPT_ENTMAX)).last();
    chosen.or_else(|| {
        let in_family = |(_, name): &(usize, &str)| {
            let mut records = view.results.records.iter();
            records.any(|record| record.procedure == *name && record.gamma.is_some())
        };
        view.procedures().filter(in_family).last()
    })
}

impl Kind {
    fn chart(&self, view: &View<'_>, benchmark: usize) -> Option<SmallChart> {
        let levels = findings::outer_levels(view);
        let tracks: Vec<Track> =
            levels.iter().filter_map(|level| self.track(view, benchmark, *level)).collect();
        (!tracks.is_empty()).then(|| SmallChart {
            about: self.about,
            hint: self.hint,
            tracks,
            sentence: self.sentence(view, benchmark, &levels),
        })
    }

    fn track(&self, view: &View<'_>, benchmark: usize, level: usize) -> Option<Track> {
        let alpha = view.results.levels[level];
        let ours = ours(view).map(|(procedure, _)| procedure);
        let values: Vec<(usize, f64)> = view
            .procedures()
            .filter_map(|(procedure, _)| {
                Some((procedure, findings::mean(view, Cell { benchmark, procedure, level }, self.quantity)?))
            })
            .collect();
        let printed = ours.and_then(|ours| {
            let benchmark = view.results.benchmarks[benchmark].name_in_paper()?;
            (self.printed)(benchmark, &view.results.procedures[ours], alpha)
        });
        let band = (self.better == Better::Middle)
            .then(|| view.band(Cell { benchmark, procedure: ours.unwrap_or(0), level }))
            .flatten()
            .map(|band| (band.low, band.high));
        let target = (self.better == Better::Middle).then_some(1.0 - alpha);
        let scale = Scale::new(values.iter().map(|(_, value)| *value), printed, target, band)?;
        let ranked = findings::ranked(view, benchmark, level, self.quantity);
        let backwards: Vec<_> = ranked.iter().rev().copied().collect();
        let (low, high) = (self.end(&ranked, Better::Low)?, self.end(&backwards, Better::High)?);
        let dot = |(procedure, value): &(usize, f64)| Dot {
            name: view.results.procedures[*procedure].clone(),
            class: view.styles[*procedure].class.clone(),
            at: scale.at(*value),
            value: (self.print)(*value),
            is_ours: Some(*procedure) == ours,
        };
        // Ours is drawn last, over the others.
        let mut dots: Vec<Dot> = values.iter().map(dot).collect();
        dots.sort_by_key(|dot| dot.is_ours);
        let listed: Vec<String> = dots.iter().map(|dot| format!("{} {}", dot.name, dot.value)).collect();
        Some(Track {
            alpha: format!("α = {}", number::level(alpha)),
            alternative: format!(
                "{} at α = {}: {}",
                self.about,
                number::level(alpha),
                number::listed(&listed)
            ),
            ours: dots.iter().find(|dot| dot.is_ours).map(|dot| dot.value.clone()),
            dots,
            low,
            high,
            paper: printed.map(|value| Tick {
                at: scale.at(value),
                value: number::share(value),
                is_beyond: !scale.reaches(value),
            }),
            target: target.map(|value| scale.at(value)),
            band: band.map(|(low, high)| (scale.at(low), scale.at(high) - scale.at(low))),
        })
    }

    /// The value at one end and whose it is, from that end on.
    fn end(&self, values: &[(&str, f64)], side: Better) -> Option<End> {
        let value = (self.print)(values.first()?.1);
        let names: Vec<&str> = values
            .iter()
            .take_while(|(_, other)| (self.print)(*other) == value)
            .map(|(name, _)| *name)
            .collect();
        let of = match (self.better, names.as_slice()) {
            (_, all) if all.len() == values.len() && all.len() > 1 => "all procedures".to_owned(),
            // Coverage has no better end, so nobody is named.
            (Better::Middle, _) if side == Better::Low => "lowest".to_owned(),
            (Better::Middle, _) => "highest".to_owned(),
            (_, [one]) => (*one).to_owned(),
            (_, [first, rest @ ..]) => format!("{first} +{}", rest.len()),
            (_, []) => String::new(),
        };
        Some(End { of, value, is_best: self.better == side })
    }

    /// What the chart shows, at the level where it shows most.
    fn sentence(&self, view: &View<'_>, benchmark: usize, levels: &[usize]) -> String {
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else { return String::new() };
        let text = match self.about {
            "Coverage" => findings::furthest(view, benchmark).map(|(distance, ..)| {
                format!("Every procedure is within {distance:.2} points of 1 − α at every level.")
            }),
            "Size" => {
                self.compared(view, benchmark, *last, |name, value| format!("{name} takes {value} labels"))
            }
            "Singletons" => self.compared(view, benchmark, *first, |name, value| {
                format!("{name} settles a share of {value} with one label")
            }),
            _ => self.compared(view, benchmark, *first, |name, value| {
                format!("{name} misses 1 − α by {value} in its worst stratum")
            }),
        };
        findings::bound(&text.unwrap_or_default())
    }

    fn compared(
        &self,
        view: &View<'_>,
        benchmark: usize,
        level: usize,
        first: impl Fn(&str, &str) -> String,
    ) -> Option<String> {
        let at = format!("At α = {}", number::level(view.results.levels[level]));
        let (procedure, name) = ours(view)?;
        let mean = |procedure| findings::mean(view, Cell { benchmark, procedure, level }, self.quantity);
        let value = (self.print)(mean(procedure)?);
        let others: Vec<(&str, f64)> = findings::ranked(view, benchmark, level, self.quantity)
            .into_iter()
            .filter(|(other, _)| *other != name)
            .collect();
        let first = format!("{at} {}", first(name, &value));
        Some(match others.as_slice() {
            [] => format!("{first}."),
            [(other, one)] => format!("{first}, {other} {}.", (self.print)(*one)),
            [(least, low), .., (most, high)] => {
                format!(
                    "{first}, the others {} ({least}) to {} ({most}).",
                    (self.print)(*low),
                    (self.print)(*high)
                )
            }
        })
    }
}

/// From values to places on a line.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Wide enough for all values, and for a printed one unless it is further away than they are wide. Values that are
    /// held to a target lie on both sides of the middle.
    fn new(
        values: impl Iterator<Item = f64>,
        printed: Option<f64>,
        target: Option<f64>,
        band: Option<(f64, f64)>,
    ) -> Option<Self> {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return None;
        }
        if let Some(target) = target {
            let (below, above) = band.unwrap_or((low, high));
            let most = [low, high, below, above].iter().map(|v| (v - target).abs()).fold(0.0, f64::max);
            let most = if most > 0.0 { 1.15 * most } else { 0.01 };
            return Some(Self { low: target - most, high: target + most });
        }
        let width = if high > low { high - low } else { high.abs().max(0.01) * 0.1 };
        let printed = printed.map(|value| value.clamp(low - width, high + width));
        let (low, high) = (printed.map_or(low, |v| v.min(low)), printed.map_or(high, |v| v.max(high)));
        let margin = 0.06 * (high - low).max(width);
        Some(Self { low: low - margin, high: high + margin })
    }

    fn reaches(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// In percent, to the tenth.
    fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        (1000.0 * share).round() / 10.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reaches_what_the_paper_prints_unless_it_is_far_away() {
        let scale = Scale::new([1.0, 2.0].into_iter(), Some(2.5), None, None).unwrap();
        assert!(scale.reaches(2.5) && scale.at(1.0) < 10.0);
        let scale = Scale::new([1.0, 2.0].into_iter(), Some(9.0), None, None).unwrap();
        assert!(!scale.reaches(9.0) && scale.at(9.0) == 100.0);
    }

    #[test]
    fn a_target_is_in_the_middle_and_one_value_is_too() {
        let scale = Scale::new([0.89, 0.9].into_iter(), None, Some(0.9), Some((0.88, 0.91))).unwrap();
        assert_eq!(scale.at(0.9), 50.0);
        let scale = Scale::new([0.5].into_iter(), None, None, None).unwrap();
        assert_eq!(scale.at(0.5), 50.0);
        assert!(Scale::new([].into_iter(), None, None, None).is_none());
    }
}
