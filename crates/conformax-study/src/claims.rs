//! The paper's empirical sentences, judged on our numbers.
//!
//! A comparison is a paired difference over the splits, clear where it exceeds 3 standard errors; a sentence
//! says how many comparisons it speaks for. Splits are seed, seed + 1, …: none is chosen. Verdicts follow from
//! the numbers alone, whichever way they fall.

mod evidence;

use crate::results::{Claim, Evidence, Record, Results};
use evidence::{Court, Quantifier, Sentence, Series, above, within};

const INV_PROB: &str = "InvProb";
const RAPS: &str = "RAPS";
const LOG_MARGIN: &str = "log-margin";
const ENTMAX: &str = "1.5-entmax";
const SPARSEMAX: &str = "sparsemax";
const OPT_ENTMAX: &str = "opt-entmax";

const IMAGENET: &str = "imagenet5k";
const NEWSGROUPS: &str = "newsgroups";

/// Coverage this near to 1 − α counts as close: twice the largest gap in the paper's own Table 1.
const CLOSE: f64 = 0.01;
/// Coverage of singletons this near to 1 − α counts as approximately so: the paper's own tables reach 0.05.
const ROUGHLY: f64 = 0.05;
/// Coverage of a stratum this near to 1 − α counts as expected at α = 0.01: the paper's own table reaches 0.012.
const STRATUM: f64 = 0.02;
/// A mean size at most this many times the smallest counts as competitive.
const COMPETITIVE: f64 = 1.1;
/// A share below this counts as none: a figure cannot show it.
const NONE: f64 = 0.001;

fn size(record: &Record) -> f64 {
    record.average_size
}

fn singletons(record: &Record) -> f64 {
    record.singleton_ratio
}

/// Judges every sentence that the study has the procedures for; `records` are those of all splits.
pub(crate) fn judge_claims(results: &Results, records: &[Record]) -> Vec<Claim> {
    let benchmarks = results.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    let procedures = results.procedures.iter().map(String::as_str).collect();
    let court = Court::new(benchmarks, procedures, results.levels.clone(), records);
    if !court.has(&[INV_PROB, RAPS, LOG_MARGIN, ENTMAX, SPARSEMAX, OPT_ENTMAX]) {
        return Vec::new();
    }
    vec![
        coverage_is_close(&court),
        two_are_smallest(&court),
        opt_entmax_beats_inv_prob_on_newsgroups(&court),
        both_dominate_raps(&court),
        entmax_is_competitive(&court),
        log_margin_is_competitive_elsewhere(&court),
        log_margin_is_not_competitive_on_imagenet(&court),
        sparsemax_is_larger(&court),
        sparsemax_is_largest_at_high_confidence(&court),
        best_gamma_depends_on_level(&court),
        best_gamma_depends_on_task(&court),
        singleton_ratios_differ(&court),
        raps_has_fewest_singletons(&court),
        log_margin_has_most_singletons(&court),
        three_give_singletons_at_one_percent(&court),
        no_singletons_on_newsgroups(&court),
        singletons_are_covered(&court),
        log_margin_is_most_adaptive(&court),
        strata_improve_with_confidence(&court),
        three_reach_coverage_in_every_stratum(&court),
        three_give_small_sets_to_easy_rows(&court),
    ]
}

fn coverage_is_close(court: &Court<'_>) -> Claim {
    let evidence = court.cells().into_iter().flat_map(|(benchmark, alpha)| {
        court.procedures.iter().filter_map(move |procedure| {
            let coverage = court.series(benchmark, procedure, alpha, |record| record.coverage);
            within(benchmark, alpha, "coverage", &coverage, confidence(alpha), CLOSE)
        })
    });
    let sentence = Sentence {
        id: "coverage-close",
        place: "4.2, on Table 1",
        sentence: "Every procedure covers close to 1 − α of the test rows.",
        measure: "mean coverage lies within 0.01 of 1 − α",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn two_are_smallest(court: &Court<'_>) -> Claim {
    let pair = [OPT_ENTMAX, INV_PROB];
    let evidence = court.cells().into_iter().filter_map(|(benchmark, alpha)| {
        let sizes = |names: &[&str]| -> Vec<Series> {
            names.iter().map(|name| court.series(benchmark, name, alpha, size)).collect()
        };
        let best_other = smallest(sizes(&court.others(&pair)))?;
        let worse_of_two = largest(sizes(&pair))?;
        above(benchmark, alpha, "average size", &best_other, &worse_of_two)
    });
    let sentence = Sentence {
        id: "two-smallest",
        place: "4.2, average set size",
        sentence: "opt-entmax and InvProb give the smallest sets on almost all tasks and levels.",
        measure: "the smallest mean size among the other procedures exceeds the larger of the two",
        quantifier: Quantifier::AlmostEverywhere,
    };
    sentence.judged(evidence.collect())
}

fn opt_entmax_beats_inv_prob_on_newsgroups(court: &Court<'_>) -> Claim {
    let evidence = on(court, NEWSGROUPS).filter_map(|(benchmark, alpha)| {
        let of = |name| court.series(benchmark, name, alpha, size);
        above(benchmark, alpha, "average size", &of(INV_PROB), &of(OPT_ENTMAX))
    });
    let sentence = Sentence {
        id: "opt-entmax-newsgroups",
        place: "4.2, average set size",
        sentence: "On 20 Newsgroups opt-entmax gives smaller sets than InvProb.",
        measure: "InvProb's mean size exceeds opt-entmax's",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(evidence.collect())
}

fn both_dominate_raps(court: &Court<'_>) -> Claim {
    let evidence = court.cells().into_iter().flat_map(|(benchmark, alpha)| {
        [OPT_ENTMAX, INV_PROB].into_iter().filter_map(move |name| {
            let of = |name| court.series(benchmark, name, alpha, size);
            above(benchmark, alpha, "average size", &of(RAPS), &of(name))
        })
    });
    let sentence = Sentence {
        id: "both-dominate-raps",
        place: "4.2, average set size",
        sentence: "opt-entmax and InvProb both give smaller sets than RAPS.",
        measure: "RAPS's mean size exceeds theirs",
        quantifier: Quantifier::AlmostEverywhere,
    };
    sentence.judged(evidence.collect())
}

fn entmax_is_competitive(court: &Court<'_>) -> Claim {
    let cells = court.cells().into_iter();
    let sentence = Sentence {
        id: "entmax-competitive",
        place: "4.2, average set size",
        sentence: "1.5-entmax is in general very competitive.",
        measure: "its mean size is below 1.1 times the smallest",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(cells.filter_map(|(name, alpha)| competitive(court, ENTMAX, name, alpha)).collect())
}

fn log_margin_is_competitive_elsewhere(court: &Court<'_>) -> Claim {
    let cells = court.cells().into_iter().filter(|(name, _)| *name != IMAGENET);
    let sentence = Sentence {
        id: "log-margin-competitive",
        place: "4.2, average set size",
        sentence: "log-margin is in general very competitive, except on ImageNet.",
        measure: "its mean size is below 1.1 times the smallest, on the benchmarks other than ImageNet",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(cells.filter_map(|(name, alpha)| competitive(court, LOG_MARGIN, name, alpha)).collect())
}

fn log_margin_is_not_competitive_on_imagenet(court: &Court<'_>) -> Claim {
    let evidence = on(court, IMAGENET).filter_map(|(benchmark, alpha)| {
        let own = court.series(benchmark, LOG_MARGIN, alpha, size);
        above(benchmark, alpha, "average size", &own, &bar(court, LOG_MARGIN, benchmark, alpha)?)
    });
    let sentence = Sentence {
        id: "log-margin-imagenet",
        place: "4.2, average set size",
        sentence: "On ImageNet log-margin is not competitive.",
        measure: "its mean size exceeds 1.1 times the smallest",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(evidence.collect())
}

fn sparsemax_is_larger(court: &Court<'_>) -> Claim {
    let evidence = court.cells().into_iter().flat_map(|(benchmark, alpha)| {
        court.others(&[SPARSEMAX]).into_iter().filter_map(move |other| {
            let of = |name| court.series(benchmark, name, alpha, size);
            above(benchmark, alpha, "average size", &of(SPARSEMAX), &of(other))
        })
    });
    let sentence = Sentence {
        id: "sparsemax-larger",
        place: "4.2, average set size",
        sentence: "sparsemax generally gives larger sets than the others.",
        measure: "its mean size exceeds another procedure's",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(evidence.collect())
}

fn sparsemax_is_largest_at_high_confidence(court: &Court<'_>) -> Claim {
    let Some((low, high)) = ends(&court.levels) else { return no_levels("sparsemax-high-confidence") };
    let ratio = |benchmark: &str, alpha: f64| {
        let own = court.series(benchmark, SPARSEMAX, alpha, size);
        let others: Vec<Series> = court
            .others(&[SPARSEMAX])
            .into_iter()
            .map(|other| court.series(benchmark, other, alpha, size))
            .collect();
        let mean =
            |split: usize| others.iter().map(|other| other.values[split]).sum::<f64>() / others.len() as f64;
        let values = own.values.iter().enumerate().map(|(split, own)| own / mean(split)).collect();
        Series { name: format!("ratio at {alpha}"), values }
    };
    let evidence = court.benchmarks.iter().filter_map(|benchmark| {
        above(
            benchmark,
            low,
            "sparsemax's size over the others' mean",
            &ratio(benchmark, low),
            &ratio(benchmark, high),
        )
    });
    let sentence = Sentence {
        id: "sparsemax-high-confidence",
        place: "4.2, average set size",
        sentence: "sparsemax's sets are larger especially at high confidence.",
        measure: "its size over the mean of the others' is larger at the smallest α than at the largest",
        quantifier: Quantifier::Mostly,
    };
    sentence.judged(evidence.collect())
}

fn chosen_gamma(court: &Court<'_>, benchmark: &str, alpha: f64, name: String) -> Series {
    let series = court.series(benchmark, OPT_ENTMAX, alpha, |record| record.gamma.unwrap_or(f64::NAN));
    Series { name, ..series }
}

fn best_gamma_depends_on_level(court: &Court<'_>) -> Claim {
    let Some((low, high)) = ends(&court.levels) else { return no_levels("gamma-level") };
    let evidence = court.benchmarks.iter().filter_map(|benchmark| {
        let at = |alpha: f64| chosen_gamma(court, benchmark, alpha, format!("at {alpha}"));
        differs(above(benchmark, low, "γ that opt-entmax chooses", &at(low), &at(high))?)
    });
    let sentence = Sentence {
        id: "gamma-level",
        place: "appendix, on Figure 8",
        sentence: "The best γ depends on the confidence level.",
        measure: "the mean γ that opt-entmax chooses at the smallest and at the largest α differ",
        quantifier: Quantifier::Somewhere,
    };
    sentence.judged(evidence.collect())
}

fn best_gamma_depends_on_task(court: &Court<'_>) -> Claim {
    let mut evidence = Vec::new();
    for alpha in &court.levels {
        for (place, first) in court.benchmarks.iter().enumerate() {
            for second in &court.benchmarks[place + 1..] {
                let of = |name: &str| chosen_gamma(court, name, *alpha, name.to_owned());
                let quantity = "γ that opt-entmax chooses";
                evidence.extend(above(first, *alpha, quantity, &of(first), &of(second)).and_then(differs));
            }
        }
    }
    let sentence = Sentence {
        id: "gamma-task",
        place: "appendix, on Figure 8",
        sentence: "The best γ depends on the task.",
        measure: "the mean γ that opt-entmax chooses on two benchmarks at the same α differ",
        quantifier: Quantifier::Somewhere,
    };
    sentence.judged(evidence)
}

fn singleton_ratios_differ(court: &Court<'_>) -> Claim {
    let evidence = with_singletons(court).into_iter().filter_map(|(benchmark, alpha)| {
        let all = || court.procedures.iter().map(|name| court.series(benchmark, name, alpha, singletons));
        let (most, fewest) = (largest(all().collect())?, smallest(all().collect())?);
        above(benchmark, alpha, "singleton ratio", &most, &fewest)
    });
    let sentence = Sentence {
        id: "singletons-differ",
        place: "4.2, singleton ratio",
        sentence: "Procedures differ in how many singletons they give.",
        measure: "the largest mean singleton ratio exceeds the smallest",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn raps_has_fewest_singletons(court: &Court<'_>) -> Claim {
    let evidence = with_singletons(court).into_iter().flat_map(|(benchmark, alpha)| {
        court.others(&[RAPS]).into_iter().filter_map(move |other| {
            let of = |name| court.series(benchmark, name, alpha, singletons);
            above(benchmark, alpha, "singleton ratio", &of(other), &of(RAPS))
        })
    });
    let sentence = Sentence {
        id: "raps-fewest-singletons",
        place: "4.2, singleton ratio",
        sentence: "RAPS gives the fewest singletons on all tasks and levels.",
        measure: "another procedure's mean singleton ratio exceeds RAPS's, where any procedure gives singletons",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn log_margin_has_most_singletons(court: &Court<'_>) -> Claim {
    let evidence = with_singletons(court).into_iter().flat_map(|(benchmark, alpha)| {
        court.others(&[LOG_MARGIN]).into_iter().filter_map(move |other| {
            let of = |name| court.series(benchmark, name, alpha, singletons);
            above(benchmark, alpha, "singleton ratio", &of(LOG_MARGIN), &of(other))
        })
    });
    let sentence = Sentence {
        id: "log-margin-most-singletons",
        place: "4.2, singleton ratio",
        sentence: "log-margin gives the most singletons on all tasks and levels.",
        measure: "its mean singleton ratio exceeds another procedure's, where any procedure gives singletons",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn three_give_singletons_at_one_percent(court: &Court<'_>) -> Claim {
    let cells = at_level(court, 0.01).filter(|(benchmark, _)| *benchmark != NEWSGROUPS);
    let evidence = cells.flat_map(|(benchmark, alpha)| {
        [INV_PROB, LOG_MARGIN, OPT_ENTMAX].into_iter().filter_map(move |name| {
            let ratio = court.series(benchmark, name, alpha, singletons);
            above(benchmark, alpha, "singleton ratio", &ratio, &Series::constant(NONE, &ratio))
        })
    });
    let sentence = Sentence {
        id: "singletons-at-one-percent",
        place: "4.2, singleton ratio",
        sentence: "InvProb, log-margin and opt-entmax give singletons even at α = 0.01, except on 20 Newsgroups.",
        measure: "the mean singleton ratio exceeds 0.001",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn no_singletons_on_newsgroups(court: &Court<'_>) -> Claim {
    let cells = at_level(court, 0.01).filter(|(benchmark, _)| *benchmark == NEWSGROUPS);
    let evidence = cells.flat_map(|(benchmark, alpha)| {
        court.procedures.iter().filter_map(move |name| {
            let ratio = court.series(benchmark, name, alpha, singletons);
            above(benchmark, alpha, "singleton ratio", &Series::constant(NONE, &ratio), &ratio)
        })
    });
    let sentence = Sentence {
        id: "no-singletons-newsgroups",
        place: "4.2, singleton ratio",
        sentence: "On 20 Newsgroups at α = 0.01 no procedure gives singletons.",
        measure: "the mean singleton ratio is below 0.001",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn singletons_are_covered(court: &Court<'_>) -> Claim {
    let cells = [0.01, 0.05, 0.1].into_iter().flat_map(|alpha| at_level(court, alpha));
    let evidence = cells.flat_map(|(benchmark, alpha)| {
        court.procedures.iter().filter_map(move |name| {
            let records = court.records(benchmark, name, alpha).iter();
            let values: Vec<f64> = records.filter_map(|record| record.singleton_coverage).collect();
            let series = Series { name: (*name).to_owned(), values };
            within(benchmark, alpha, "coverage of singletons", &series, confidence(alpha), ROUGHLY)
        })
    });
    let sentence = Sentence {
        id: "singletons-covered",
        place: "4.2, singleton ratio",
        sentence: "About 1 − α of the singletons hold the true label, for all procedures.",
        measure: "the mean coverage of singletons lies within 0.05 of 1 − α at α = 0.01, 0.05 and 0.1",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn log_margin_is_most_adaptive(court: &Court<'_>) -> Claim {
    let cells = at_level(court, 0.1).filter(|(benchmark, _)| *benchmark == IMAGENET);
    let mut evidence = Vec::new();
    for (benchmark, alpha) in cells {
        for other in court.others(&[LOG_MARGIN]) {
            let (own, other_records) =
                (court.records(benchmark, LOG_MARGIN, alpha), court.records(benchmark, other, alpha));
            let strata = own.first().map_or(0, |record| record.strata.len());
            for stratum in 0..strata {
                let deviation = |record: &Record| {
                    record.strata[stratum].coverage.map(|coverage| (coverage - confidence(alpha)).abs())
                };
                // Only splits on which both procedures have such sets can be compared.
                let (first, second): (Vec<f64>, Vec<f64>) = other_records
                    .iter()
                    .zip(own)
                    .filter_map(|(other, own)| Some((deviation(other)?, deviation(own)?)))
                    .unzip();
                let (from, to) = (own[0].strata[stratum].from, own[0].strata[stratum].to);
                let quantity = format!("|coverage − {}| of sets of {from} to {to}", confidence(alpha));
                let series = |name: &str, values| Series { name: name.to_owned(), values };
                let (first, second) = (series(other, first), series(LOG_MARGIN, second));
                evidence.extend(above(benchmark, alpha, &quantity, &first, &second));
            }
        }
    }
    let sentence = Sentence {
        id: "log-margin-adaptive",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.1 log-margin deviates least from 1 − α at all set sizes.",
        measure: "another procedure's mean deviation in a stratum exceeds log-margin's, where both have such sets",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence)
}

fn strata_improve_with_confidence(court: &Court<'_>) -> Claim {
    let Some((low, high)) = ends(&court.levels) else { return no_levels("strata-improve") };
    let benchmarks = court.benchmarks.iter().filter(|benchmark| **benchmark == IMAGENET);
    let evidence = benchmarks.flat_map(|benchmark| {
        court.procedures.iter().filter_map(move |name| {
            let at = |alpha: f64| {
                let series = court.series(benchmark, name, alpha, |record| record.sscv);
                Series { name: format!("{name} at {alpha}"), ..series }
            };
            above(benchmark, low, "SSCV", &at(high), &at(low))
        })
    });
    let sentence = Sentence {
        id: "strata-improve",
        place: "4.3, on Table 2",
        sentence: "Coverage by set size comes closer to 1 − α as α falls.",
        measure: "SSCV on ImageNet is larger at the largest α than at the smallest",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

fn three_reach_coverage_in_every_stratum(court: &Court<'_>) -> Claim {
    let cells = at_level(court, 0.01).filter(|(benchmark, _)| *benchmark == IMAGENET);
    let mut evidence = Vec::new();
    for (benchmark, alpha) in cells {
        for name in [INV_PROB, LOG_MARGIN, OPT_ENTMAX] {
            let records = court.records(benchmark, name, alpha);
            for stratum in 0..records.first().map_or(0, |record| record.strata.len()) {
                let values = records.iter().filter_map(|record| record.strata[stratum].coverage).collect();
                let series = Series { name: name.to_owned(), values };
                let (from, to) = (records[0].strata[stratum].from, records[0].strata[stratum].to);
                let quantity = format!("coverage of sets of {from} to {to}");
                evidence.extend(within(benchmark, alpha, &quantity, &series, confidence(alpha), STRATUM));
            }
        }
    }
    let sentence = Sentence {
        id: "three-reach-coverage",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.01 InvProb, log-margin and opt-entmax cover as expected at all set sizes.",
        measure: "mean coverage in each stratum lies within 0.02 of 1 − α",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence)
}

fn three_give_small_sets_to_easy_rows(court: &Court<'_>) -> Claim {
    let cells = at_level(court, 0.01).filter(|(benchmark, _)| *benchmark == IMAGENET);
    let small = |record: &Record| {
        let few =
            record.strata.iter().filter(|stratum| stratum.to <= 3).map(|stratum| stratum.n).sum::<u64>();
        few as f64 / record.n_test as f64
    };
    let three = [INV_PROB, LOG_MARGIN, OPT_ENTMAX];
    let evidence = cells.flat_map(|(benchmark, alpha)| {
        three.into_iter().flat_map(move |name| {
            court.others(&three).into_iter().filter_map(move |other| {
                let of = |name| court.series(benchmark, name, alpha, small);
                above(benchmark, alpha, "share of sets of at most 3", &of(name), &of(other))
            })
        })
    });
    let sentence = Sentence {
        id: "three-small-sets",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.01 InvProb, log-margin and opt-entmax still give small sets to easy rows.",
        measure: "their share of sets of at most 3 labels exceeds that of each other procedure",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(evidence.collect())
}

/// 1 − α with the decimal complement, so that 0.9 is written as 0.9.
fn confidence(alpha: f64) -> f64 {
    conformax::Alpha::new(alpha).map_or(1.0 - alpha, conformax::Alpha::confidence)
}

/// The smallest and the largest level.
fn ends(levels: &[f64]) -> Option<(f64, f64)> {
    let low = levels.iter().copied().min_by(f64::total_cmp)?;
    let high = levels.iter().copied().max_by(f64::total_cmp)?;
    (low < high).then_some((low, high))
}

/// The verdict on a sentence that compares levels, in a study that has one.
fn no_levels(id: &'static str) -> Claim {
    let sentence = Sentence {
        id,
        place: "4",
        sentence: "A comparison between levels.",
        measure: "two levels differ",
        quantifier: Quantifier::Everywhere,
    };
    sentence.judged(Vec::new())
}

fn on<'a>(court: &Court<'a>, benchmark: &'static str) -> impl Iterator<Item = (&'a str, f64)> {
    court.cells().into_iter().filter(move |(name, _)| *name == benchmark)
}

fn at_level<'a>(court: &Court<'a>, alpha: f64) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
    court.cells().into_iter().filter(move |(_, level)| *level == alpha)
}

/// Cells in which some procedure gives singletons.
fn with_singletons<'a>(court: &Court<'a>) -> Vec<(&'a str, f64)> {
    let any = |(benchmark, alpha): &(&str, f64)| {
        let names = court.procedures.iter();
        names
            .flat_map(|name| court.records(benchmark, name, *alpha))
            .any(|record| record.singleton_ratio > 0.0)
    };
    court.cells().into_iter().filter(any).collect()
}

fn smallest(series: Vec<Series>) -> Option<Series> {
    series.into_iter().min_by(|a, b| a.mean().total_cmp(&b.mean()))
}

fn largest(series: Vec<Series>) -> Option<Series> {
    series.into_iter().max_by(|a, b| a.mean().total_cmp(&b.mean()))
}

/// What a competitive procedure's size must stay below: 1.1 times the smallest mean among the others.
fn bar(court: &Court<'_>, procedure: &str, benchmark: &str, alpha: f64) -> Option<Series> {
    let others = court.others(&[procedure]);
    let sizes = others.iter().map(|name| court.series(benchmark, name, alpha, size)).collect();
    let smallest = smallest(sizes)?;
    let name = format!("{COMPETITIVE} × {}", smallest.name);
    Some(smallest.map(name, |size| COMPETITIVE * size))
}

fn competitive(court: &Court<'_>, procedure: &str, benchmark: &str, alpha: f64) -> Option<Evidence> {
    let own = court.series(benchmark, procedure, alpha, size);
    above(benchmark, alpha, "average size", &bar(court, procedure, benchmark, alpha)?, &own)
}

/// Evidence of any difference, whichever way: the sign is dropped, so nothing speaks against it.
fn differs(evidence: Evidence) -> Option<Evidence> {
    let mut difference = evidence.difference;
    difference.mean = difference.mean.abs();
    Some(Evidence { difference, verdict: difference.verdict(), ..evidence })
}
