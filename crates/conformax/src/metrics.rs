//! Sets and true labels become coverage, size, and coverage by size and by class.
//!
//! Counts are integers and divided once, so metrics of a file read block by block equal those of the whole.

use crate::{Alpha, Error, PredictionSets, Result};

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
    ///
    /// ```
    /// # use conformax::{Error, Strata};
    /// assert_eq!(Strata::new(&[1, 2]).unwrap_err(), Error::Strata { from: 1 });
    /// assert_eq!(Strata::new(&[0, 2, 2]).unwrap_err(), Error::Strata { from: 2 });
    /// ```
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
    ///
    /// ```
    /// # use conformax::Strata;
    /// assert_eq!(Strata::paper().ranges()[0], (0, Some(1)));
    /// ```
    pub fn paper() -> Self {
        Self::new(&[0, 2, 4, 7, 11]).expect("rises from 0")
    }

    /// First and last size of each stratum.
    ///
    /// ```
    /// # use conformax::Strata;
    /// assert_eq!(Strata::default().ranges()[1], (1, Some(1)));
    /// ```
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
/// let mut tally = Tally::new(3);
/// tally.add(&[0, 2], 2);
/// let strata = tally.metrics(Alpha::new(0.1)?, &Strata::paper())?.strata;
/// assert_eq!((strata[1].from, strata[1].to, strata[1].n, strata[1].coverage), (2, Some(3), 1, Some(1.0)));
/// assert_eq!(strata[0].coverage, None); // no set of 0 or 1 labels
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
/// let sets = PredictionSets::from_parts(3, vec![0, 1, 3], vec![0, 1, 2]).unwrap();
/// let metrics = evaluate(&sets, &[0, 0], Alpha::new(0.1)?, &Strata::default())?;
/// assert_eq!((metrics.coverage, metrics.average_size), (0.5, 1.5));
/// assert_eq!(metrics.singleton_coverage, Some(1.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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

/// Counts from which metrics follow: add sets as they come, merge what threads or files counted.
///
/// ```
/// use conformax::{Alpha, Strata, Tally};
/// let mut tally = Tally::new(3);
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
    /// Nothing counted yet.
    ///
    /// ```
    /// # use conformax::Tally;
    /// assert_eq!(Tally::new(3).n(), 0);
    /// ```
    pub fn new(classes: usize) -> Self {
        Self { sizes: vec![Count::default(); classes + 1], classes: vec![Count::default(); classes] }
    }

    /// Counts one set. Panics where the label or the set's size is beyond the classes.
    ///
    /// ```
    /// # use conformax::Tally;
    /// let mut tally = Tally::new(3);
    /// tally.add(&[0, 2], 2);
    /// assert_eq!((tally.n(), tally.covered()), (1, 1));
    /// ```
    pub fn add(&mut self, set: &[u32], label: u32) {
        self.add_outcome(set.len(), set.contains(&label), label);
    }

    /// Counts one set of which size and outcome are known already. Panics as [`Tally::add`] does.
    ///
    /// ```
    /// # use conformax::Tally;
    /// let mut tally = Tally::new(3);
    /// tally.add_outcome(2, true, 1);
    /// assert_eq!((tally.n(), tally.covered()), (1, 1));
    /// ```
    pub fn add_outcome(&mut self, size: usize, covered: bool, label: u32) {
        let one = Count { n: 1, covered: u64::from(covered) };
        self.sizes[size].add(one);
        self.classes[label as usize].add(one);
    }

    /// Adds what another tally counted. Panics where it has other classes.
    ///
    /// ```
    /// # use conformax::Tally;
    /// let mut one = Tally::new(2);
    /// one.add(&[0], 0);
    /// let mut both = one.clone();
    /// both.merge(&one);
    /// assert_eq!(both.n(), 2);
    /// ```
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.classes.len(), other.classes.len(), "tallies of the same classes");
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(count, other)| count.add(*other));
        self.classes.iter_mut().zip(&other.classes).for_each(|(count, other)| count.add(*other));
    }

    /// Rows counted.
    ///
    /// ```
    /// # use conformax::Tally;
    /// assert_eq!(Tally::new(2).n(), 0);
    /// ```
    pub fn n(&self) -> u64 {
        self.sizes.iter().map(|count| count.n).sum()
    }

    /// Rows whose set holds the true label.
    ///
    /// ```
    /// # use conformax::Tally;
    /// assert_eq!(Tally::new(2).covered(), 0);
    /// ```
    pub fn covered(&self) -> u64 {
        self.sizes.iter().map(|count| count.covered).sum()
    }

    /// Divides. An error where nothing was counted.
    ///
    /// ```
    /// # use conformax::{Alpha, Error, Strata, Tally};
    /// let nothing = Tally::new(2).metrics(Alpha::new(0.1)?, &Strata::default());
    /// assert_eq!(nothing.unwrap_err(), Error::NoTestRows);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn metrics(&self, alpha: Alpha, strata: &Strata) -> Result<Metrics> {
        let n = self.n();
        if n == 0 {
            return Err(Error::NoTestRows);
        }
        let ratio = |count: u64| count as f64 / n as f64;
        let violation = |coverage: f64| (coverage - alpha.confidence()).abs();
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
/// let sets = PredictionSets::from_parts(2, vec![0, 1], vec![0]).unwrap();
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
    let mut tally = Tally::new(classes);
    sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
    tally.metrics(alpha, strata)
}
