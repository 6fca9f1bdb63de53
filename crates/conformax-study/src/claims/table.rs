//! The paper's 21 empirical sentences, one row each.

use super::comparison::{Benchmarks, Cells, Comparison, Levels, Sentence, Side, Who};
use super::evidence::Quantifier;
use super::quantity::Quantity;
use crate::paper::{ENTMAX, INV_PROB, LOG_MARGIN, OPT_ENTMAX, RAPS, SPARSEMAX};

pub(super) const IMAGENET: &str = "imagenet5k";
pub(super) const NEWSGROUPS: &str = "newsgroups";

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

/// The two that the paper finds best.
const BEST: Who = Who::These(&[OPT_ENTMAX, INV_PROB]);
/// The three that the paper finds to adapt.
const THREE: Who = Who::These(&[INV_PROB, LOG_MARGIN, OPT_ENTMAX]);

const EVERY: Cells = Cells { benchmarks: Benchmarks::All, levels: Levels::All };
const WITH_SINGLETONS: Cells = Cells { levels: Levels::WithSingletons, ..EVERY };
const IMAGENET_AT_ONE_PERCENT: Cells =
    Cells { benchmarks: Benchmarks::Only(IMAGENET), levels: Levels::These(&[0.01]) };

/// In the paper's order.
pub(super) const CLAIMS: [Sentence; 21] = [
    Sentence {
        id: "coverage-close",
        place: "4.2, on Table 1",
        sentence: "Every procedure covers close to 1 − α of the test rows.",
        measure: "mean coverage lies within 0.01 of 1 − α",
        quantifier: Quantifier::Everywhere,
        cells: EVERY,
        quantity: Quantity::Coverage,
        comparison: Comparison::Within(Who::AllBut(&[]), CLOSE),
    },
    Sentence {
        id: "two-smallest",
        place: "4.2, average set size",
        sentence: "opt-entmax and InvProb give the smallest sets on almost all tasks and levels.",
        measure: "the smallest mean size among the other procedures exceeds the larger of the two",
        quantifier: Quantifier::AlmostEverywhere,
        cells: EVERY,
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Smallest(1.0, Who::AllBut(&[OPT_ENTMAX, INV_PROB])),
            Side::Largest(BEST),
        ),
    },
    Sentence {
        id: "opt-entmax-newsgroups",
        place: "4.2, average set size",
        sentence: "On 20 Newsgroups opt-entmax gives smaller sets than InvProb.",
        measure: "InvProb's mean size exceeds opt-entmax's",
        quantifier: Quantifier::Mostly,
        cells: Cells { benchmarks: Benchmarks::Only(NEWSGROUPS), ..EVERY },
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Each(Who::These(&[INV_PROB])),
            Side::Each(Who::These(&[OPT_ENTMAX])),
        ),
    },
    Sentence {
        id: "both-dominate-raps",
        place: "4.2, average set size",
        sentence: "opt-entmax and InvProb both give smaller sets than RAPS.",
        measure: "RAPS's mean size exceeds theirs",
        quantifier: Quantifier::AlmostEverywhere,
        cells: EVERY,
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(Side::Each(Who::These(&[RAPS])), Side::Each(BEST)),
    },
    Sentence {
        id: "entmax-competitive",
        place: "4.2, average set size",
        sentence: "1.5-entmax is in general very competitive.",
        measure: "its mean size is below 1.1 times the smallest",
        quantifier: Quantifier::Mostly,
        cells: EVERY,
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Smallest(COMPETITIVE, Who::AllBut(&[ENTMAX])),
            Side::Each(Who::These(&[ENTMAX])),
        ),
    },
    Sentence {
        id: "log-margin-competitive",
        place: "4.2, average set size",
        sentence: "log-margin is in general very competitive, except on ImageNet.",
        measure: "its mean size is below 1.1 times the smallest, on the benchmarks other than ImageNet",
        quantifier: Quantifier::Mostly,
        cells: Cells { benchmarks: Benchmarks::AllBut(IMAGENET), ..EVERY },
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Smallest(COMPETITIVE, Who::AllBut(&[LOG_MARGIN])),
            Side::Each(Who::These(&[LOG_MARGIN])),
        ),
    },
    Sentence {
        id: "log-margin-imagenet",
        place: "4.2, average set size",
        sentence: "On ImageNet log-margin is not competitive.",
        measure: "its mean size exceeds 1.1 times the smallest",
        quantifier: Quantifier::Mostly,
        cells: Cells { benchmarks: Benchmarks::Only(IMAGENET), ..EVERY },
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Each(Who::These(&[LOG_MARGIN])),
            Side::Smallest(COMPETITIVE, Who::AllBut(&[LOG_MARGIN])),
        ),
    },
    Sentence {
        id: "sparsemax-larger",
        place: "4.2, average set size",
        sentence: "sparsemax generally gives larger sets than the others.",
        measure: "its mean size exceeds another procedure's",
        quantifier: Quantifier::Mostly,
        cells: EVERY,
        quantity: Quantity::AverageSize,
        comparison: Comparison::Above(
            Side::Each(Who::These(&[SPARSEMAX])),
            Side::Each(Who::AllBut(&[SPARSEMAX])),
        ),
    },
    Sentence {
        id: "sparsemax-high-confidence",
        place: "4.2, average set size",
        sentence: "sparsemax's sets are larger especially at high confidence.",
        measure: "its size over the mean of the others' is larger at the smallest α than at the largest",
        quantifier: Quantifier::Mostly,
        cells: EVERY,
        quantity: Quantity::AverageSize,
        comparison: Comparison::AboveAtSmallestAlpha(Side::OverMeanOfOthers(SPARSEMAX)),
    },
    Sentence {
        id: "gamma-level",
        place: "appendix, on Figure 8",
        sentence: "The best γ depends on the confidence level.",
        measure: "the mean γ that opt-entmax chooses at the smallest and at the largest α differ",
        quantifier: Quantifier::Somewhere,
        cells: EVERY,
        quantity: Quantity::Gamma,
        comparison: Comparison::DifferBetweenLevels(OPT_ENTMAX),
    },
    Sentence {
        id: "gamma-task",
        place: "appendix, on Figure 8",
        sentence: "The best γ depends on the task.",
        measure: "the mean γ that opt-entmax chooses on two benchmarks at the same α differ",
        quantifier: Quantifier::Somewhere,
        cells: EVERY,
        quantity: Quantity::Gamma,
        comparison: Comparison::DifferBetweenBenchmarks(OPT_ENTMAX),
    },
    Sentence {
        id: "singletons-differ",
        place: "4.2, singleton ratio",
        sentence: "Procedures differ in how many singletons they give.",
        measure: "the largest mean singleton ratio exceeds the smallest",
        quantifier: Quantifier::Everywhere,
        cells: WITH_SINGLETONS,
        quantity: Quantity::SingletonRatio,
        comparison: Comparison::DifferBetweenProcedures,
    },
    Sentence {
        id: "raps-fewest-singletons",
        place: "4.2, singleton ratio",
        sentence: "RAPS gives the fewest singletons on all tasks and levels.",
        measure: "another procedure's mean singleton ratio exceeds RAPS's, where any procedure gives singletons",
        quantifier: Quantifier::Everywhere,
        cells: WITH_SINGLETONS,
        quantity: Quantity::SingletonRatio,
        comparison: Comparison::Above(Side::Each(Who::AllBut(&[RAPS])), Side::Each(Who::These(&[RAPS]))),
    },
    Sentence {
        id: "log-margin-most-singletons",
        place: "4.2, singleton ratio",
        sentence: "log-margin gives the most singletons on all tasks and levels.",
        measure: "its mean singleton ratio exceeds another procedure's, where any procedure gives singletons",
        quantifier: Quantifier::Everywhere,
        cells: WITH_SINGLETONS,
        quantity: Quantity::SingletonRatio,
        comparison: Comparison::Above(
            Side::Each(Who::These(&[LOG_MARGIN])),
            Side::Each(Who::AllBut(&[LOG_MARGIN])),
        ),
    },
    Sentence {
        id: "singletons-at-one-percent",
        place: "4.2, singleton ratio",
        sentence: "InvProb, log-margin and opt-entmax give singletons even at α = 0.01, except on 20 Newsgroups.",
        measure: "the mean singleton ratio exceeds 0.001",
        quantifier: Quantifier::Everywhere,
        cells: Cells { benchmarks: Benchmarks::AllBut(NEWSGROUPS), levels: Levels::These(&[0.01]) },
        quantity: Quantity::SingletonRatio,
        comparison: Comparison::Above(Side::Each(THREE), Side::Number(NONE)),
    },
    Sentence {
        id: "no-singletons-newsgroups",
        place: "4.2, singleton ratio",
        sentence: "On 20 Newsgroups at α = 0.01 no procedure gives singletons.",
        measure: "the mean singleton ratio is below 0.001",
        quantifier: Quantifier::Everywhere,
        cells: Cells { benchmarks: Benchmarks::Only(NEWSGROUPS), levels: Levels::These(&[0.01]) },
        quantity: Quantity::SingletonRatio,
        comparison: Comparison::Above(Side::Number(NONE), Side::Each(Who::AllBut(&[]))),
    },
    Sentence {
        id: "singletons-covered",
        place: "4.2, singleton ratio",
        sentence: "About 1 − α of the singletons hold the true label, for all procedures.",
        measure: "the mean coverage of singletons lies within 0.05 of 1 − α at α = 0.01, 0.05 and 0.1",
        quantifier: Quantifier::Everywhere,
        cells: Cells { levels: Levels::These(&[0.01, 0.05, 0.1]), ..EVERY },
        quantity: Quantity::SingletonCoverage,
        comparison: Comparison::Within(Who::AllBut(&[]), ROUGHLY),
    },
    Sentence {
        id: "log-margin-adaptive",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.1 log-margin deviates least from 1 − α at all set sizes.",
        measure: "another procedure's mean deviation in a stratum exceeds log-margin's, where both have such sets",
        quantifier: Quantifier::Everywhere,
        cells: Cells { benchmarks: Benchmarks::Only(IMAGENET), levels: Levels::These(&[0.1]) },
        quantity: Quantity::StratumDeviation,
        comparison: Comparison::Above(
            Side::Each(Who::AllBut(&[LOG_MARGIN])),
            Side::Each(Who::These(&[LOG_MARGIN])),
        ),
    },
    Sentence {
        id: "strata-improve",
        place: "4.3, on Table 2",
        sentence: "Coverage by set size comes closer to 1 − α as α falls.",
        measure: "SSCV on ImageNet is larger at the largest α than at the smallest",
        quantifier: Quantifier::Everywhere,
        cells: Cells { benchmarks: Benchmarks::Only(IMAGENET), ..EVERY },
        quantity: Quantity::Sscv,
        comparison: Comparison::AboveAtLargestAlpha(Side::Each(Who::AllBut(&[]))),
    },
    Sentence {
        id: "three-reach-coverage",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.01 InvProb, log-margin and opt-entmax cover as expected at all set sizes.",
        measure: "mean coverage in each stratum lies within 0.02 of 1 − α",
        quantifier: Quantifier::Everywhere,
        cells: IMAGENET_AT_ONE_PERCENT,
        quantity: Quantity::StratumCoverage,
        comparison: Comparison::Within(THREE, STRATUM),
    },
    Sentence {
        id: "three-small-sets",
        place: "4.3, on Table 2",
        sentence: "On ImageNet at α = 0.01 InvProb, log-margin and opt-entmax still give small sets to easy rows.",
        measure: "their share of sets of at most 3 labels exceeds that of each other procedure",
        quantifier: Quantifier::Everywhere,
        cells: IMAGENET_AT_ONE_PERCENT,
        quantity: Quantity::SmallSets,
        comparison: Comparison::Above(
            Side::Each(THREE),
            Side::Each(Who::AllBut(&[INV_PROB, LOG_MARGIN, OPT_ENTMAX])),
        ),
    },
];
