//! Label shift made by drawing test rows anew: hard classes become common, easy ones rare.

use conformax::{
    Alpha, Calibrator, EntmaxScore, Evaluator, Generator, LabelShift, Labelled, Logit, Predictor, Scheme,
    Strata, label_weights, score_labels,
};

use super::{Owned, SCORE, ShiftRecord};
use crate::benchmark::Benchmark;
use crate::error::Result;

/// The commonest class is drawn so many times as often as the rarest.
const RATIO: f64 = 10.0;

/// A way to the weight of each label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weighting {
    Unweighted,
    Known,
    Estimated(LabelShift),
}

pub(super) const WEIGHTINGS: [Weighting; 4] = [
    Weighting::Unweighted,
    Weighting::Known,
    Weighting::Estimated(LabelShift::Em),
    Weighting::Estimated(LabelShift::Bbse),
];

impl Weighting {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unweighted => "unweighted",
            Self::Known => "known weights",
            Self::Estimated(LabelShift::Em) => "weights by EM",
            Self::Estimated(LabelShift::Bbse) => "weights by BBSE",
        }
    }
}

/// A split whose test rows are to be drawn anew.
pub(super) struct Shift<'a, T> {
    pub(super) benchmark: &'a Benchmark,
    /// Classes in the order in which they become rarer.
    pub(super) hardest_first: &'a [usize],
    pub(super) calibration: &'a Owned<T>,
    pub(super) test: &'a Owned<T>,
    pub(super) levels: &'a [Alpha],
    pub(super) seed: u64,
}

/// A record per weighting and level. Half of the rows drawn are without labels, for estimating; the others test.
pub(super) fn under_label_shift<T: Logit>(shift: &Shift<'_, T>) -> Result<Vec<ShiftRecord>> {
    let shares = target_shares(shift.hardest_first, &shift.test.counts());
    let drawn = draw(shift.test, &shares, shift.seed);
    let (unlabelled, judged) = drawn.split_at(drawn.len() / 2);
    let (unlabelled, judged) = (shift.test.pick(unlabelled), shift.test.pick(judged));
    let mut records = Vec::new();
    for weighting in WEIGHTINGS {
        let weights = match weighting {
            Weighting::Unweighted => Ok(None),
            Weighting::Known => Ok(Some(known_weights(shift.benchmark, &shares))),
            Weighting::Estimated(method) => {
                label_weights(shift.calibration.labelled()?, unlabelled.logits()?, method).map(Some)
            }
        };
        let judged = match weights {
            Ok(weights) => Ok(judge(shift, weights, &judged)?),
            // A class without a labelled row, or a table of confusions that cannot be inverted, is a finding.
            Err(problem) => Err(problem.to_string()),
        };
        for (place, alpha) in shift.levels.iter().enumerate() {
            let found = judged.as_ref().ok().map(|by_level| by_level[place]);
            records.push(ShiftRecord {
                benchmark: shift.benchmark.name.clone(),
                weighting: weighting.name().to_owned(),
                alpha: alpha.value(),
                split: 0,
                n_test: (drawn.len() - drawn.len() / 2) as u64,
                coverage: found.map(|(coverage, _)| coverage),
                average_size: found.map(|(_, size)| size),
                problem: judged.as_ref().err().cloned(),
            });
        }
    }
    Ok(records)
}

/// Classes from the one that a single threshold for all would cover least, by the scores of all rows.
pub(super) fn hardest_first<T: Logit>(rows: Labelled<'_, T>) -> Result<Vec<usize>> {
    let classes = rows.logits().classes();
    let scores = score_labels(&SCORE, rows)?;
    let mut sorted = scores.clone();
    sorted.sort_by(f64::total_cmp);
    let threshold = sorted[(sorted.len() * 9).div_ceil(10) - 1];
    let mut covered = vec![(0_u64, 0_u64); classes];
    for (label, score) in rows.labels().iter().zip(&scores) {
        let class = &mut covered[*label as usize];
        *class = (class.0 + u64::from(*score <= threshold), class.1 + 1);
    }
    let coverage = |class: &usize| covered[*class].0 as f64 / covered[*class].1.max(1) as f64;
    let mut classes: Vec<usize> = (0..classes).collect();
    classes.sort_by(|a, b| coverage(a).total_cmp(&coverage(b)).then(a.cmp(b)));
    Ok(classes)
}

/// Shares that fall from the first class to the last, evenly in their logarithms. A class without a test row gets none.
fn target_shares(hardest_first: &[usize], test_counts: &[u64]) -> Vec<f64> {
    let step = root(1.0 / RATIO, hardest_first.len().saturating_sub(1).max(1));
    let mut next = 1.0;
    let mut shares = vec![0.0; hardest_first.len()];
    for class in hardest_first {
        if test_counts[*class] > 0 {
            shares[*class] = next;
        }
        next *= step;
    }
    let total: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= total);
    shares
}

/// The number whose power is `value`, by products alone: the same bits on every system.
fn root(value: f64, power: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while f64::midpoint(low, high) > low && f64::midpoint(low, high) < high {
        let middle = f64::midpoint(low, high);
        let reached = (0..power).fold(1.0, |product, _| product * middle);
        *(if reached < value { &mut low } else { &mut high }) = middle;
    }
    high
}

/// As many rows as test, each of a class drawn by its share and then any of that class, so some come more than once.
fn draw<T: Logit>(test: &Owned<T>, shares: &[f64], seed: u64) -> Vec<u32> {
    let mut of_class = vec![Vec::new(); shares.len()];
    (0..).zip(&test.labels).for_each(|(row, label)| of_class[*label as usize].push(row));
    let mut generator = Generator::new(seed, "label shift");
    let unit = |generator: &mut Generator| generator.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    (0..test.labels.len())
        .map(|_| {
            let mut left = unit(&mut generator);
            let drawn = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            // Shares may sum to a little less than one.
            let class = drawn.or(shares.iter().rposition(|share| *share > 0.0)).unwrap_or(0);
            of_class[class][generator.below(of_class[class].len() as u64) as usize]
        })
        .collect()
}

/// The share among the drawn rows over the share among all of the benchmark's.
fn known_weights(benchmark: &Benchmark, shares: &[f64]) -> Vec<f64> {
    let mut counts = vec![0_u64; benchmark.classes];
    benchmark.labels.iter().for_each(|label| counts[*label as usize] += 1);
    let rows = benchmark.rows() as f64;
    let weight = |(share, count): (&f64, &u64)| if *count == 0 { 0.0 } else { share * rows / *count as f64 };
    shares.iter().zip(&counts).map(weight).collect()
}

/// Coverage and average size at each level.
fn judge<T: Logit>(
    shift: &Shift<'_, T>,
    weights: Option<Vec<f64>>,
    judged: &Owned<T>,
) -> Result<Vec<(f64, f64)>> {
    let scheme = weights.map_or_else(Scheme::default, Scheme::LabelWeights);
    let mut calibrator = Calibrator::new(SCORE, judged.classes)?.under(scheme)?;
    calibrator.extend(shift.calibration.labelled()?)?;
    let calibration = calibrator.finish()?;
    let predictors: Vec<Predictor<EntmaxScore>> =
        shift.levels.iter().map(|alpha| calibration.at(*alpha).0).collect();
    let mut evaluator = Evaluator::new(predictors, judged.classes)?;
    evaluator.extend(judged.labelled()?)?;
    let evaluated = evaluator.finish()?;
    let of_level = |(tally, alpha): (&conformax::Tally, &Alpha)| {
        let metrics = tally.metrics(*alpha, &Strata::default())?;
        Ok((metrics.coverage, metrics.average_size))
    };
    evaluated.tallies.iter().zip(shift.levels).map(of_level).collect()
}
