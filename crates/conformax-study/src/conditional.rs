//! The conditional study: what coverage for every class costs, and what keeps it where the shares of classes change.
//!
//! Each split calibrates 1.5-entmax in five ways and counts, class by class, how their sets fare on its test rows. Then
//! the test rows are drawn anew with other shares of the classes, and four ways of weighing the calibrating rows are
//! held against them. All of it goes through the library's own calibration and evaluation.

mod results;
mod shift;

use std::time::Instant;

use conformax::{
    Alpha, Calibration, Calibrator, Choose, CoverageLaw, Dealer, EntmaxScore, Evaluated, Evaluator, Gamma,
    Labelled, Logit, Logits, Predictor, Prior, Strata, Taxonomy, Thresholds,
};

use crate::benchmark::{Benchmark, Wide};
use crate::error::{Error, Result};
use crate::progress::{Progress, Stage};
use crate::run::{RunOptions, expect_classes};
use crate::splits::Split;
use crate::study::Study;

pub use results::{ClassCoverage, ConditionalRecord, ConditionalResults, ShiftRecord, conditional_csv};

/// One score for all: what differs is where its thresholds come from.
const SCORE: EntmaxScore = EntmaxScore { gamma: Gamma::ENTMAX15 };

/// Probability of the band that the coverage law gives.
const BAND: f64 = 0.95;

/// A way to a threshold for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Marginal,
    ByClass,
    Clustered,
    RankTruncated,
    PriorAdjusted,
}

const WAYS: [Way; 5] = [Way::Marginal, Way::ByClass, Way::Clustered, Way::RankTruncated, Way::PriorAdjusted];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Marginal => "one threshold",
            Self::ByClass => "by class",
            Self::Clustered => "clustered classes",
            Self::RankTruncated => "rank-truncated",
            Self::PriorAdjusted => "prior-adjusted",
        }
    }
}

impl Study {
    /// Runs a conditional study: its benchmarks, levels and splits.
    pub fn run_conditional(
        &self,
        options: &RunOptions,
        progress: &dyn Progress,
    ) -> Result<ConditionalResults> {
        let started = Instant::now();
        let (benchmarks, absent) = self.load(options)?;
        let mut results = self.run_conditional_on(&benchmarks, progress)?;
        results.absent = absent;
        results.provenance.duration_seconds = started.elapsed().as_secs_f64();
        Ok(results)
    }

    /// The same on benchmarks that are in memory, in place of those it names.
    pub fn run_conditional_on(
        &self,
        benchmarks: &[Benchmark],
        progress: &dyn Progress,
    ) -> Result<ConditionalResults> {
        let started = Instant::now();
        let mut results = ConditionalResults {
            study: self.name.clone(),
            levels: self.levels.iter().map(|alpha| alpha.value()).collect(),
            procedures: WAYS.map(|way| way.name().to_owned()).to_vec(),
            weightings: shift::WEIGHTINGS.map(|weighting| weighting.name().to_owned()).to_vec(),
            ..ConditionalResults::default()
        };
        benchmarks.iter().try_for_each(expect_classes)?;
        for benchmark in benchmarks {
            progress.begin(&benchmark.name, self.splits);
            let splits = (0..self.splits as u64)
                .map(|number| {
                    let seed = self.seed.wrapping_add(number);
                    Split::new(benchmark.rows(), self.calibration, self.tuning, seed)
                })
                .collect::<Result<Vec<_>>>()?;
            let run = match &benchmark.logits {
                Wide::F32(values) => self.all_splits(benchmark, values, &splits, &mut results, progress),
                Wide::F64(values) => self.all_splits(benchmark, values, &splits, &mut results, progress),
            };
            run.map_err(|error| too_few_rows(benchmark, error))?;
            results.benchmarks.push(self.summary(benchmark, &splits));
        }
        results.provenance = self.provenance(started.elapsed());
        Ok(results)
    }

    fn all_splits<T: Logit>(
        &self,
        benchmark: &Benchmark,
        logits: &[T],
        splits: &[Split],
        results: &mut ConditionalResults,
        progress: &dyn Progress,
    ) -> Result<()> {
        let all = Rows { logits, labels: &benchmark.labels, classes: benchmark.classes };
        let hardest_first = shift::hardest_first(Logits::new(logits, all.classes)?.labelled(all.labels)?)?;
        for (number, split) in (0..).zip(splits) {
            if progress.stop() {
                return Err(Error::Stopped);
            }
            let began = Instant::now();
            self.one_split(benchmark, &all, &hardest_first, (number, split), results)?;
            progress.end(&benchmark.name, &Stage::Split(number), began.elapsed());
        }
        Ok(())
    }

    fn one_split<T: Logit>(
        &self,
        benchmark: &Benchmark,
        all: &Rows<'_, T>,
        hardest_first: &[usize],
        (number, split): (u64, &Split),
        results: &mut ConditionalResults,
    ) -> Result<()> {
        let parts = Parts {
            calibration: all.pick(&split.calibration),
            tuning: all.pick(&split.tuning),
            calibrating: all.pick(&split.calibrating()),
            test: all.pick(&split.test),
        };
        let seed = self.seed.wrapping_add(number);
        for way in WAYS {
            let (models, evaluated) = match way {
                Way::PriorAdjusted => self.models(way, &parts.adjusted()?, seed)?,
                _ => self.models(way, &parts, seed)?,
            };
            for ((place, model), alpha) in models.iter().enumerate().zip(&self.levels) {
                results.records.push(ConditionalRecord {
                    benchmark: benchmark.name.clone(),
                    procedure: way.name().to_owned(),
                    split: number,
                    ..record(model, &evaluated, place, *alpha)?
                });
                if number == 0 {
                    let classes = class_coverage(&evaluated, place, *alpha, &model.counts)?;
                    results.classes.extend(classes.into_iter().map(|class| ClassCoverage {
                        benchmark: benchmark.name.clone(),
                        procedure: way.name().to_owned(),
                        ..class
                    }));
                }
            }
        }
        let shifted = shift::under_label_shift(&shift::Shift {
            benchmark,
            hardest_first,
            calibration: &parts.calibration,
            test: &parts.test,
            levels: &self.levels,
            seed,
        })?;
        results.shift.extend(shifted.into_iter().map(|record| ShiftRecord { split: number, ..record }));
        Ok(())
    }

    /// A model for each level, and how their sets fared. A prior takes the rows that tune, and calibrates on the rest;
    /// clusters and ranks are dealt rows of their own.
    fn models<T: Logit>(
        &self,
        way: Way,
        parts: &Parts<T>,
        seed: u64,
    ) -> Result<(Vec<LevelModel>, Evaluated)> {
        let Parts { calibration, calibrating, test, .. } = parts;
        let classes = test.classes;
        let every_level = |taxonomy: Taxonomy, rows: &Owned<T>| -> Result<Vec<_>> {
            let calibration = calibrated(taxonomy, rows)?;
            Ok(self.levels.iter().map(|alpha| LevelModel::of(&calibration, rows, *alpha)).collect())
        };
        let models = match way {
            Way::Marginal => every_level(Taxonomy::All, calibration)?,
            Way::PriorAdjusted => every_level(Taxonomy::All, calibrating)?,
            Way::ByClass => every_level(Taxonomy::Label, calibration)?,
            Way::Clustered => self.dealt(Choose::Clusters(None), calibration, seed)?,
            Way::RankTruncated => self.dealt(Choose::Ranks, calibration, seed)?,
        };
        let predictors = models.iter().map(|model| model.predictor.clone()).collect();
        let mut evaluator = Evaluator::new(predictors, classes)?.by(Taxonomy::Label)?;
        evaluator.extend(test.labelled()?)?;
        Ok((models, evaluator.finish()?))
    }

    /// Where some rows choose and the others calibrate. How many rows cluster, and where ranks are cut, depends on the
    /// level.
    fn dealt<T: Logit>(&self, choose: Choose, rows: &Owned<T>, seed: u64) -> Result<Vec<LevelModel>> {
        let mut dealer = Dealer::new(SCORE, rows.classes, choose)?.with_seed(seed);
        dealer.extend(rows.labelled()?)?;
        let at = |alpha: &Alpha| -> Result<LevelModel> {
            match dealer.clone().finish(*alpha) {
                Ok(dealt) => {
                    Ok(LevelModel { predictor: dealt.calibration.at(*alpha).0, counts: dealt.counts })
                }
                // Too few rows for clusters leave one threshold.
                Err(conformax::Error::FewForClusters { .. }) => {
                    Ok(LevelModel::of(&calibrated(Taxonomy::All, rows)?, rows, *alpha))
                }
                Err(error) => Err(error.into()),
            }
        };
        self.levels.iter().map(at).collect()
    }
}

/// The rows of a split, by what they are for.
struct Parts<T> {
    /// Those that tune and those that then calibrate.
    calibration: Owned<T>,
    tuning: Owned<T>,
    calibrating: Owned<T>,
    test: Owned<T>,
}

impl<T: Logit> Parts<T> {
    /// With the logarithm of each class's share among the tuning rows taken from its logits. Every class counts one row
    /// more than it has, so that no share is zero.
    fn adjusted(&self) -> Result<Parts<f64>> {
        let counts: Vec<u64> = self.tuning.counts().iter().map(|count| count + 1).collect();
        let prior = Prior::of_counts(&counts)?;
        Ok(Parts {
            calibration: self.calibration.adjusted(&prior)?,
            tuning: self.tuning.adjusted(&prior)?,
            calibrating: self.calibrating.adjusted(&prior)?,
            test: self.test.adjusted(&prior)?,
        })
    }
}

/// What one level's calibration gave.
struct LevelModel {
    predictor: Predictor<EntmaxScore>,
    /// Rows of each class that calibrated.
    counts: Vec<u64>,
}

impl LevelModel {
    fn of<T: Logit>(calibration: &Calibration<EntmaxScore>, rows: &Owned<T>, alpha: Alpha) -> Self {
        Self { predictor: calibration.at(alpha).0, counts: rows.counts() }
    }
}

/// What the arithmetic refuses in a split of sound rows is for want of rows, and names no row of the benchmark.
fn too_few_rows(benchmark: &Benchmark, error: Error) -> Error {
    let Error::Core(problem) = error else { return error };
    let message = format!(
        "{} rows of {} classes are too few to be split into some that tune, some that calibrate and some that test, \
         each with rows of the same classes: {problem}",
        benchmark.rows(),
        benchmark.classes
    );
    Error::Benchmark { name: benchmark.title.clone(), message }
}

fn calibrated<T: Logit>(taxonomy: Taxonomy, rows: &Owned<T>) -> Result<Calibration<EntmaxScore>> {
    let mut calibrator = Calibrator::new(SCORE, rows.classes)?.by(taxonomy)?;
    calibrator.extend(rows.labelled()?)?;
    Ok(calibrator.finish()?)
}

/// What a model's sets were like, without the names of what it belongs to.
fn record(
    model: &LevelModel,
    evaluated: &Evaluated,
    place: usize,
    alpha: Alpha,
) -> Result<ConditionalRecord> {
    let metrics = evaluated.tallies[place].metrics(alpha, &Strata::default())?;
    let worst = evaluated.groups[place].iter().filter_map(|class| class.coverage()).reduce(f64::min);
    let always = match model.predictor.thresholds() {
        Thresholds::PerLabel(thresholds) => thresholds.iter().filter(|t| **t == f64::INFINITY).count(),
        one if one.are_infinite() => evaluated.groups[place].len(),
        _ => 0,
    };
    Ok(ConditionalRecord {
        alpha: alpha.value(),
        n_cal: model.counts.iter().sum(),
        n_test: metrics.n,
        coverage: metrics.coverage,
        average_size: metrics.average_size,
        singleton_ratio: metrics.singleton_ratio,
        covgap: metrics.covgap,
        worst_class_coverage: worst.unwrap_or_default(),
        classes_in_every_set: always as u64,
        ..ConditionalRecord::default()
    })
}

/// The coverage of each class, and where it would lie by the law were the class calibrated by itself, on those of its
/// rows that calibrated.
fn class_coverage(
    evaluated: &Evaluated,
    place: usize,
    alpha: Alpha,
    counts: &[u64],
) -> Result<Vec<ClassCoverage>> {
    let mut classes = Vec::with_capacity(counts.len());
    for (class, (tally, n_cal)) in (0..).zip(evaluated.groups[place].iter().zip(counts)) {
        let Some(coverage) = tally.coverage() else { continue };
        let (low, high) = CoverageLaw::at_level(*n_cal, alpha).interval_of_rows(BAND, tally.n)?;
        classes.push(ClassCoverage {
            alpha: alpha.value(),
            class,
            n_cal: *n_cal,
            n_test: tally.n,
            coverage,
            low,
            high,
            ..ClassCoverage::default()
        });
    }
    Ok(classes)
}

/// A benchmark's rows.
struct Rows<'a, T> {
    logits: &'a [T],
    labels: &'a [u32],
    classes: usize,
}

/// Some rows, copied.
pub(crate) struct Owned<T> {
    logits: Vec<T>,
    labels: Vec<u32>,
    classes: usize,
}

impl<T: Logit> Rows<'_, T> {
    fn pick(&self, rows: &[u32]) -> Owned<T> {
        let (classes, mut logits) = (self.classes, Vec::with_capacity(rows.len() * self.classes));
        for row in rows {
            let start = *row as usize * classes;
            logits.extend_from_slice(&self.logits[start..start + classes]);
        }
        Owned { logits, labels: rows.iter().map(|row| self.labels[*row as usize]).collect(), classes }
    }
}

impl<T: Logit> Owned<T> {
    fn labelled(&self) -> Result<Labelled<'_, T>> {
        Ok(self.logits()?.labelled(&self.labels)?)
    }

    fn logits(&self) -> Result<Logits<'_, T>> {
        Ok(Logits::new(&self.logits, self.classes)?)
    }

    /// Some of them again.
    fn pick(&self, rows: &[u32]) -> Self {
        Rows { logits: &self.logits, labels: &self.labels, classes: self.classes }.pick(rows)
    }

    /// Rows of each class.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.classes];
        self.labels.iter().for_each(|label| counts[*label as usize] += 1);
        counts
    }

    fn adjusted(&self, prior: &Prior) -> Result<Owned<f64>> {
        let mut logits = Vec::new();
        prior.adjust(self.logits()?, &mut logits)?;
        Ok(Owned { logits, labels: self.labels.clone(), classes: self.classes })
    }
}
