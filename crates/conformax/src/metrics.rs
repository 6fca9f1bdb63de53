//! Sets and true labels become coverage, size, and coverage by size and by class.
//!
//! Counts are integers and divided once, so metrics of a file read block by block equal those of the whole.

use crate::kernel::math::exp;
use crate::{Alpha, CoverageLaw, Error, Level, Logits, PredictionSets, Result, Thresholds};

/// Ranges of set sizes, contiguous from 0; the last has no end.
///
/// ```
/// use conformax::Strata;
/// assert_eq!(Strata::default().ranges().len(), 6);
/// assert_eq!(Strata::new(&[0, 2, 5])?.ranges(), [(0, Some(1)), (2, Some(4)), (5, None)]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strata(Vec<(u64, Option<u64>)>);

impl Strata {
    /// From the first size of each stratum: 0, then rising.
    pub fn new(starts: &[u64]) -> Result<Self> {
        if starts.first() != Some(&0) {
            return Err(Error::Strata { from: starts.first().copied().unwrap_or(0) });
        }
        if let Some(pair) = starts.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::Strata { from: pair[1] });
        }
        let ends = starts[1..].iter().map(|start| Some(start - 1)).chain([None]);
        Ok(Self(starts.iter().copied().zip(ends).collect()))
    }

    /// The paper's: 0–1, 2–3, 4–6, 7–10, 11 and more.
    pub fn paper() -> Self {
        Self::new(&[0, 2, 4, 7, 11]).expect("rises from 0")
    }

    /// First and last size of each stratum.
    pub fn ranges(&self) -> &[(u64, Option<u64>)] {
        &self.0
    }
}

impl Default for Strata {
    /// 0, 1, 2–3, 4–6, 7–10, 11 and more.
    fn default() -> Self {
        Self::new(&[0, 1, 2, 4, 7, 11]).expect("rises from 0")
    }
}

/// Coverage among the sets of some sizes.
///
/// ```
/// use conformax::{Alpha, Strata, Tally};
/// let mut tally = Tally::new(3)?;
/// tally.add(&[0, 2], 2);
/// let strata = tally.metrics(Alpha::new(0.1)?, &Strata::paper())?.strata;
/// assert_eq!((strata[1].from, strata[1].to, strata[1].n, strata[1].coverage), (2, Some(3), 1, Some(1.0)));
/// assert_eq!(strata[0].coverage, None); // no set of 0 or 1 labels
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stratum {
    /// Smallest size.
    pub from: u64,
    /// Largest size; `None` for all beyond.
    pub to: Option<u64>,
    /// Sets of such a size.
    pub n: u64,
    /// Fraction of them that hold the true label; `None` where there is no set.
    pub coverage: Option<f64>,
}

/// How sets fared against the true labels.
///
/// ```
/// use conformax::{Alpha, PredictionSets, Strata, evaluate};
/// let sets = PredictionSets::from_parts(3, vec![0, 1, 3], vec![0, 1, 2])?;
/// let metrics = evaluate(&sets, &[0, 0], Alpha::new(0.1)?, &Strata::default())?;
/// assert_eq!((metrics.coverage, metrics.average_size), (0.5, 1.5));
/// assert_eq!(metrics.singleton_coverage, Some(1.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Rows.
    pub n: u64,
    /// Miscoverage level that `sscv` and `covgap` measure against.
    pub alpha: Alpha,
    /// Fraction of sets that hold the true label.
    pub coverage: f64,
    /// Mean number of labels.
    pub average_size: f64,
    /// Fraction of sets with one label.
    pub singleton_ratio: f64,
    /// Coverage of those; `None` where there is none.
    pub singleton_coverage: Option<f64>,
    /// Fraction of sets without a label.
    pub empty_ratio: f64,
    /// Coverage by size.
    pub strata: Vec<Stratum>,
    /// Largest `|coverage − (1 − α)|` over the strata that hold a set.
    pub sscv: f64,
    /// Coverage by true class; `None` for a class without rows.
    pub class_coverage: Vec<Option<f64>>,
    /// Mean `|class coverage − (1 − α)|` over the classes that have rows.
    pub covgap: f64,
}

/// Rows, and rows whose set holds the true label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    n: u64,
    covered: u64,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.n += other.n;
        self.covered += other.covered;
    }

    fn coverage(self) -> Option<f64> {
        (self.n > 0).then(|| self.covered as f64 / self.n as f64)
    }
}

/// How far measured figures can be trusted, rows being what they are; `None` where nothing was measured.
///
/// ```
/// use conformax::Tally;
/// let mut tally = Tally::new(2)?;
/// (0..10).for_each(|row| tally.add_outcome(1, row < 8, 0));
/// let (low, high) = tally.intervals(0.95)?.coverage.unwrap();
/// assert!(0.4 < low && low < 0.8 && 0.8 < high && high < 1.0);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Intervals {
    /// Of coverage, exact (Clopper and Pearson), as are all but the mean's.
    pub coverage: Option<(f64, f64)>,
    /// Of the mean size, by the normal distribution.
    pub average_size: Option<(f64, f64)>,
    /// Of the share of sets with one label.
    pub singleton_ratio: Option<(f64, f64)>,
    /// Of their coverage.
    pub singleton_coverage: Option<(f64, f64)>,
    /// Of the share of sets without a label.
    pub empty_ratio: Option<(f64, f64)>,
}

/// What measured coverage says of the promise; see [`Tally::verdict`].
///
/// ```
/// use conformax::{Alpha, LawIs, Level, Tally, Thresholds, Verdict};
/// let mut tally = Tally::new(2)?;
/// (0..100).for_each(|row| tally.add_outcome(1, row % 2 == 0, 0)); // half of the rows, and 90 % are promised
/// let verdict = tally.verdict(Level::new(999, Alpha::new(0.1)?), &Thresholds::One(1.0), LawIs::Exact);
/// assert!(matches!(verdict, Verdict::TooLow(least) if least > 75));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Too few rows were covered for chance to explain: fewer than this.
    TooLow(u64),
    /// As promised.
    AsPromised,
    /// So many were covered that chance does not explain it: more than this. The rows are easier than those that
    /// calibrated.
    TooHigh(u64),
}

/// Counts from which metrics follow: add sets as they come, merge what threads or files counted.
///
/// ```
/// use conformax::{Alpha, Strata, Tally};
/// let mut tally = Tally::new(3)?;
/// tally.add(&[0, 2], 2);
/// tally.add(&[1], 0);
/// assert_eq!(tally.metrics(Alpha::new(0.1)?, &Strata::default())?.coverage, 0.5);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    sizes: Vec<Count>,
    classes: Vec<Count>,
}

impl Tally {
    /// Nothing counted yet, of sets of so many classes.
    pub fn new(classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        Ok(Self { sizes: vec![Count::default(); classes + 1], classes: vec![Count::default(); classes] })
    }

    /// Counts one set. Panics where the label or the set's size is beyond the classes.
    pub fn add(&mut self, set: &[u32], label: u32) {
        self.add_outcome(set.len(), set.contains(&label), label);
    }

    /// Counts one set of which size and outcome are known already. Panics as [`Tally::add`] does.
    ///
    /// Public for whoever finds sizes without making sets, as a study does.
    pub fn add_outcome(&mut self, size: usize, covered: bool, label: u32) {
        let one = Count { n: 1, covered: u64::from(covered) };
        self.sizes[size].add(one);
        self.classes[label as usize].add(one);
    }

    /// Adds what another tally counted. Panics where it has other classes.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.classes.len(), other.classes.len(), "tallies of the same classes");
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(count, other)| count.add(*other));
        self.classes.iter_mut().zip(&other.classes).for_each(|(count, other)| count.add(*other));
    }

    /// The counts by size and by class, each as rows and covered rows.
    #[expect(clippy::type_complexity, reason = "two lists of pairs")]
    pub(crate) fn counts(&self) -> (Vec<(u64, u64)>, Vec<(u64, u64)>) {
        let pairs = |counts: &[Count]| counts.iter().map(|count| (count.n, count.covered)).collect();
        (pairs(&self.sizes), pairs(&self.classes))
    }

    /// From [`counts`](Self::counts); `None` where they do not fit together.
    pub(crate) fn from_counts(classes: usize, sizes: &[(u64, u64)], by_class: &[(u64, u64)]) -> Option<Self> {
        let total = |counts: &[(u64, u64)]| {
            counts.iter().try_fold((0_u64, 0_u64), |sum, count| {
                (count.1 <= count.0).then_some(())?;
                Some((sum.0.checked_add(count.0)?, sum.1.checked_add(count.1)?))
            })
        };
        let sound = by_class.len() == classes
            && Some(sizes.len()) == classes.checked_add(1)
            && total(sizes).is_some()
            && total(sizes) == total(by_class);
        let counts = |pairs: &[(u64, u64)]| {
            pairs.iter().map(|(n, covered)| Count { n: *n, covered: *covered }).collect()
        };
        sound.then(|| Self { sizes: counts(sizes), classes: counts(by_class) })
    }

    /// Rows counted.
    pub fn n(&self) -> u64 {
        self.sizes.iter().map(|count| count.n).sum()
    }

    /// Rows whose set holds the true label.
    pub fn covered(&self) -> u64 {
        self.sizes.iter().map(|count| count.covered).sum()
    }

    /// Divides. An error where nothing was counted.
    pub fn metrics(&self, alpha: Alpha, strata: &Strata) -> Result<Metrics> {
        let n = self.n();
        if n == 0 {
            return Err(Error::NoTestRows);
        }
        let ratio = |count: u64| count as f64 / n as f64;
        let confidence = alpha.confidence();
        let violation = |coverage: f64| (coverage - confidence).abs();
        let strata: Vec<Stratum> = strata.ranges().iter().map(|range| self.stratum(*range)).collect();
        let sscv = strata.iter().filter_map(|stratum| stratum.coverage).map(violation).fold(0.0, f64::max);
        let class_coverage: Vec<Option<f64>> = self.classes.iter().map(|class| class.coverage()).collect();
        let gaps: Vec<f64> = class_coverage.iter().flatten().copied().map(violation).collect();
        let labels: u64 = (0..).zip(&self.sizes).map(|(size, count): (u64, _)| size * count.n).sum();
        let singletons = self.sizes.get(1).copied().unwrap_or_default();
        Ok(Metrics {
            n,
            alpha,
            coverage: ratio(self.covered()),
            average_size: ratio(labels),
            singleton_ratio: ratio(singletons.n),
            singleton_coverage: singletons.coverage(),
            empty_ratio: ratio(self.sizes[0].n),
            strata,
            sscv,
            covgap: gaps.iter().sum::<f64>() / gaps.len() as f64,
            class_coverage,
        })
    }

    /// Intervals that hold the true figures with this confidence, strictly between 0 and 1.
    pub fn intervals(&self, confidence: f64) -> Result<Intervals> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::Probability(confidence));
        }
        let (n, singletons) = (self.n(), self.sizes.get(1).copied().unwrap_or_default());
        let share = |hits, n| interval_of_share(hits, n, confidence);
        Ok(Intervals {
            coverage: share(self.covered(), n),
            average_size: self.interval_of_size(confidence),
            singleton_ratio: share(singletons.n, n),
            singleton_coverage: share(singletons.covered, singletons.n),
            empty_ratio: share(self.sizes[0].n, n),
        })
    }

    fn interval_of_size(&self, confidence: f64) -> Option<(f64, f64)> {
        let n = self.n();
        let (mut sum, mut squares) = (0_u128, 0_u128);
        for (size, count) in (0_u128..).zip(&self.sizes) {
            sum += size * u128::from(count.n);
            squares += size * size * u128::from(count.n);
        }
        if n < 2 {
            return None;
        }
        let (rows, mean) = (n as f64, sum as f64 / n as f64);
        // n·Σx² − (Σx)² is a whole number, so nothing cancels.
        let spread = u128::from(n) * squares - sum * sum;
        let error = (spread as f64 / (rows * (rows - 1.0)) / rows).sqrt() * normal_quantile(confidence);
        Some(((mean - error).max(0.0), mean + error))
    }

    /// What the coverage counted here says of a promise: too low or too high where chance would do as badly once in a
    /// thousand times. `bound` says that coverage may exceed its law, as it does where calibration scores tie at the
    /// threshold; it is then never too high.
    pub fn verdict(&self, level: Level, thresholds: &Thresholds, bound: LawIs) -> Verdict {
        let (n, law) = (self.n(), thresholds.law(level));
        let (least, most) = (law.quantile_of_count(0.001, n), law.quantile_of_count(0.999, n));
        match self.covered() {
            covered if covered < least => Verdict::TooLow(least),
            covered if covered > most && bound == LawIs::Exact => Verdict::TooHigh(most),
            _ => Verdict::AsPromised,
        }
    }

    fn stratum(&self, (from, to): (u64, Option<u64>)) -> Stratum {
        let end = to.map_or(self.sizes.len(), |to| (to as usize + 1).min(self.sizes.len()));
        let mut count = Count::default();
        self.sizes.get(from as usize..end).unwrap_or_default().iter().for_each(|size| count.add(*size));
        Stratum { from, to, n: count.n, coverage: count.coverage() }
    }
}

/// All metrics of some sets against the true labels.
///
/// ```
/// use conformax::{Alpha, Error, PredictionSets, Strata, evaluate};
/// let sets = PredictionSets::from_parts(2, vec![0, 1], vec![0])?;
/// let error = evaluate(&sets, &[5], Alpha::new(0.1)?, &Strata::default()).unwrap_err();
/// assert_eq!(error, Error::Label { row: 0, label: 5, classes: 2 });
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn evaluate(sets: &PredictionSets, labels: &[u32], alpha: Alpha, strata: &Strata) -> Result<Metrics> {
    if labels.len() != sets.len() {
        return Err(Error::Rows { what: "labels", wanted: sets.len(), got: labels.len() });
    }
    let classes = sets.classes();
    if let Some(row) = labels.iter().position(|label| *label as usize >= classes) {
        return Err(Error::Label { row: row as u64, label: labels[row], classes });
    }
    let mut tally = Tally::new(classes)?;
    sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
    tally.metrics(alpha, strata)
}

/// Whether coverage follows its law exactly, or at least.
///
/// ```
/// use conformax::{Alpha, LawIs, Level, Tally, Thresholds, Verdict};
/// let (mut tally, level) = (Tally::new(2)?, Level::new(999, Alpha::new(0.1)?));
/// (0..100).for_each(|_| tally.add_outcome(1, true, 0)); // every row, and 90 % are promised
/// let verdict = |law| tally.verdict(level, &Thresholds::One(1.0), law);
/// assert!(matches!(verdict(LawIs::Exact), Verdict::TooHigh(_)));
/// assert_eq!(verdict(LawIs::ABound), Verdict::AsPromised);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawIs {
    /// No calibration score ties with the threshold.
    Exact,
    /// Ties make coverage at least what the law says.
    ABound,
}

/// The exact interval (Clopper and Pearson) of a share of `hits` in `n`; `None` of nothing, and for a confidence
/// outside (0, 1). Its ends are quantiles of Beta distributions, the same that coverage follows.
///
/// ```
/// let (low, high) = conformax::interval_of_share(2, 10, 0.95).unwrap();
/// assert!((low - 0.0252).abs() < 1e-4 && (high - 0.5561).abs() < 1e-4);
/// ```
pub fn interval_of_share(hits: u64, n: u64, confidence: f64) -> Option<(f64, f64)> {
    if !(confidence > 0.0 && confidence < 1.0) || hits > n {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    let cut = |rank: u64, at: f64| CoverageLaw::new(n, Some(rank)).ok().map(|law| law.quantile(at));
    if n == 0 {
        return None;
    }
    let low = if hits == 0 { 0.0 } else { cut(hits, tail)? };
    let high = if hits == n { 1.0 } else { cut(hits + 1, 1.0 - tail)? };
    Some((low, high))
}

/// The normal distribution lies within this many deviations of its mean with this probability.
fn normal_quantile(probability: f64) -> f64 {
    // Bisected on an integral of the density by Simpson's rule: asked for once a table, so plainness wins over speed.
    let within = |deviations: f64| {
        const STEPS: u32 = 400;
        let step = deviations / f64::from(STEPS);
        let density = |x: f64| exp(-x * x / 2.0) * 0.398_942_280_401_432_7;
        let weight = |place: u32| match place {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=STEPS).map(|place| weight(place) * density(f64::from(place) * step)).sum();
        2.0 * sum * step / 3.0
    };
    let (mut low, mut high) = (0.0_f64, 40.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if within(middle) < probability { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_agree_with_printed_tables() {
        // Clopper and Pearson 1934: 95 % for 2 of 10 is 0.025 to 0.556.
        let (low, high) = interval_of_share(2, 10, 0.95).unwrap();
        assert!((low - 0.025_210_7).abs() < 1e-6 && (high - 0.556_095_5).abs() < 1e-6, "{low} {high}");
        assert_eq!(interval_of_share(0, 10, 0.95).unwrap().0, 0.0);
        assert_eq!(interval_of_share(10, 10, 0.95).unwrap().1, 1.0);
        assert_eq!(interval_of_share(0, 0, 0.95), None);
    }

    #[test]
    fn normal_quantiles_agree_with_printed_tables() {
        for (probability, deviations) in
            [(0.5, 0.674_489_750_196), (0.95, 1.959_963_984_540), (0.999, 3.290_526_731_492)]
        {
            assert!((normal_quantile(probability) - deviations).abs() < 1e-8, "{probability}");
        }
    }

    #[test]
    fn the_mean_of_equal_sizes_is_certain() {
        let mut tally = Tally::new(4).unwrap();
        (0..10).for_each(|_| tally.add_outcome(3, true, 0));
        assert_eq!(tally.intervals(0.95).unwrap().average_size, Some((3.0, 3.0)));
        let mut tally = Tally::new(4).unwrap();
        [1, 2].iter().for_each(|size| tally.add_outcome(*size, true, 0));
        let (low, high) = tally.intervals(0.95).unwrap().average_size.unwrap(); // deviation 1/√2
        assert!((high - low - 1.959_963_984_540).abs() < 1e-8);
        assert!(tally.intervals(95.0).is_err());
    }
}
