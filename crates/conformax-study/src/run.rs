//! Runs a study: every benchmark is read and checked, then evaluated, then summed up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use conformax::{CoverageLaw, Logits, Parameters};
use rayon::prelude::*;

use crate::benchmark::{Benchmark, Found, Wide, advice, titled};
use crate::claims::judge_claims;
use crate::error::{Error, Result};
use crate::evaluation::{Evaluation, Outcome, Plan, SizeAtGamma, Stage, evaluate_benchmark, stages};
use crate::examples::examples_of;
use crate::progress::Progress;
use crate::results::{
    AbsentBenchmark, BenchmarkSummary, CoverageBand, Examples, GammaSize, Means, Paired, Provenance, Record,
    Results, SplitSummary, Spread, Stratum, TuningComparison, TuningWay, Way,
};
use crate::row_influence::Influences;
use crate::splits::Split;
use crate::spread::Chance;
use crate::study::Study;

/// Probability of the band that the coverage law gives.
const BAND: f64 = 0.95;

/// Splits on which the ways to tune are compared. More tell the means apart no better than the rows allow, and each
/// counts every candidate's labels on all rows for calibration.
const SELECTION_SPLITS: usize = 10;
/// With more classes than this all rows do not choose in a study: every candidate's labels are counted on every row,
/// and scoring them takes the square of their number.
pub const SELECTION_CLASSES: usize = 2_000;

/// What a run may be told besides the study.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// A folder that may hold files of built-in benchmarks.
    pub benchmarks: Option<PathBuf>,
}

impl Study {
    /// Runs the study on the current rayon pool. Nothing is computed before every benchmark has been read and
    /// every row checked.
    pub fn run(&self, options: &RunOptions, progress: &dyn Progress) -> Result<Results> {
        let started = Instant::now();
        let (benchmarks, absent) = self.load(options)?;
        let mut results = self.run_on(&benchmarks, progress)?;
        results.absent = absent;
        results.provenance.duration_seconds = started.elapsed().as_secs_f64();
        Ok(results)
    }

    /// Reads the benchmarks that are here, and says what is not.
    pub(crate) fn load(&self, options: &RunOptions) -> Result<(Vec<Benchmark>, Vec<AbsentBenchmark>)> {
        let mut absent = Vec::new();
        let mut benchmarks = Vec::new();
        for entry in &self.benchmarks {
            match Benchmark::load(entry, options.benchmarks.as_deref())? {
                Found::Here(benchmark) => benchmarks.push(*benchmark),
                Found::Absent => absent.push(AbsentBenchmark {
                    name: entry.name.clone(),
                    title: entry.title.clone().unwrap_or_else(|| titled(&entry.name)),
                    advice: advice(&entry.name),
                }),
            }
        }
        Ok((benchmarks, absent))
    }

    /// Runs the study on benchmarks that are in memory, in place of those it names.
    pub fn run_on(&self, benchmarks: &[Benchmark], progress: &dyn Progress) -> Result<Results> {
        Ok(self.run_with_influences(benchmarks, progress)?.0)
    }

    /// The same with how much each row moves each procedure.
    pub(crate) fn run_with_influences(
        &self,
        benchmarks: &[Benchmark],
        progress: &dyn Progress,
    ) -> Result<(Results, Influences)> {
        let started = Instant::now();
        benchmarks.iter().try_for_each(expect_classes)?;
        let findings: Vec<Findings> = benchmarks
            .par_iter()
            .map(|benchmark| self.evaluate(benchmark, progress))
            .collect::<Result<_>>()?;
        let mut results = Results {
            study: self.name.clone(),
            procedures: self.procedures.iter().map(|procedure| procedure.name.clone()).collect(),
            levels: self.levels.iter().map(|alpha| alpha.value()).collect(),
            ..Results::default()
        };
        let (mut all, mut influences) = (Vec::new(), Influences::new());
        for mut findings in findings {
            let is_kept = |record: &&Record| record.split < self.splits as u64;
            results.records.extend(findings.records.iter().filter(is_kept).cloned());
            results.tuned.extend(findings.tuned.iter().filter(is_kept).cloned());
            results.benchmarks.push(findings.summary);
            results.means.append(&mut findings.means);
            results.bands.append(&mut findings.bands);
            results.tuning.append(&mut findings.tuning);
            results.tuning_ways.append(&mut findings.tuning_ways);
            results.gamma_on_test.append(&mut findings.gamma_on_test);
            results.gamma_on_tuning.append(&mut findings.gamma_on_tuning);
            results.examples.extend(findings.examples);
            all.append(&mut findings.records);
            influences.append(&mut findings.influences);
        }
        if self.claim_splits > 0 {
            results.claims = judge_claims(&results, &all, &influences);
        }
        results.provenance = self.provenance(started.elapsed());
        Ok((results, influences))
    }

    pub(crate) fn provenance(&self, took: Duration) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arithmetic_version: conformax::ARITHMETIC_VERSION,
            draw_scheme: conformax::DRAW_SCHEME.to_owned(),
            seed: self.seed,
            splits: self.splits as u64,
            claim_splits: self.claim_splits as u64,
            machine: machine(),
            threads: rayon::current_num_threads() as u64,
            duration_seconds: took.as_secs_f64(),
        }
    }

    fn evaluate(&self, benchmark: &Benchmark, progress: &dyn Progress) -> Result<Findings> {
        let splits: Vec<Split> = (0..self.splits.max(self.claim_splits) as u64)
            .into_par_iter()
            .map(|number| {
                let seed = self.seed.wrapping_add(number);
                Split::new(benchmark.rows(), self.calibration, self.tuning, seed)
            })
            .collect::<Result<_>>()?;
        if let Some(split) = splits.first() {
            expect_rows(benchmark, split)?;
        }
        let plan = Plan {
            procedures: &self.procedures,
            alphas: &self.levels,
            splits: &splits,
            sweep: &self.sweep,
            sweep_splits: self.splits,
            selection_splits: match benchmark.classes {
                ..=SELECTION_CLASSES => splits.len().min(SELECTION_SPLITS),
                _ => 0,
            },
            strata: &self.strata,
            stop: &|| progress.stop(),
        };
        progress.begin(&benchmark.name, stages(&plan, benchmark.classes));
        let report = |stage: Stage, took: Duration| progress.end(&benchmark.name, &stage, took);
        let evaluation = match &benchmark.logits {
            Wide::F32(values) => evaluate_benchmark(
                Logits::new(values, benchmark.classes)?,
                &benchmark.labels,
                &plan,
                &report,
            )?,
            Wide::F64(values) => evaluate_benchmark(
                Logits::new(values, benchmark.classes)?,
                &benchmark.labels,
                &plan,
                &report,
            )?,
        };
        let examples = splits
            .first()
            .map(|split| examples_of(benchmark, split, &self.procedures, &evaluation))
            .transpose()?;
        Ok(Findings { examples, ..self.sum_up(benchmark, &splits, &evaluation) })
    }

    fn sum_up(&self, benchmark: &Benchmark, splits: &[Split], evaluation: &Evaluation) -> Findings {
        let mut findings = Findings { summary: self.summary(benchmark, splits), ..Findings::default() };
        for (procedure, outcomes) in self.procedures.iter().zip(&evaluation.procedures) {
            for (level, alpha) in self.levels.iter().enumerate() {
                let of = |way: Way, by_split: &[Vec<Outcome>]| -> Vec<Record> {
                    let numbered = by_split.iter().zip(splits).enumerate();
                    numbered
                        .map(|(number, (outcomes, split))| {
                            let (n_cal, n_tune) = match way {
                                Way::Split | Way::Paper if procedure.is_tuned() => {
                                    (split.n_calibrating(), split.tuning.len())
                                }
                                Way::Split | Way::Paper | Way::AllRows => (split.calibration.len(), 0),
                            };
                            Record {
                                benchmark: benchmark.name.clone(),
                                procedure: way.named(&procedure.name),
                                alpha: alpha.value(),
                                split: number as u64,
                                n_tune: n_tune as u64,
                                n_cal: n_cal as u64,
                                ..record(&outcomes[level], benchmark.classes as u64)
                            }
                        })
                        .collect()
                };
                let records = of(Way::Split, &outcomes.outcomes);
                let paper = of(Way::Paper, &outcomes.paper);
                let all_rows = of(Way::AllRows, &outcomes.all_rows);
                findings.means.extend(means(&records));
                findings.tuning.extend(tuning_comparison(&records, &paper));
                let ways = Way::ALL.into_iter().zip([&records, &paper, &all_rows]);
                let ways = ways.filter_map(|(way, records)| {
                    tuning_way(way, &procedure.name, &records[..all_rows.len()])
                });
                findings.tuning_ways.extend(ways);
                findings.tuned.extend(paper.into_iter().chain(all_rows));
                findings.records.extend(records);
                let key = (benchmark.name.clone(), procedure.name.clone(), alpha.value().to_bits());
                findings.influences.insert(key, outcomes.influences[level].clone());
            }
        }
        findings.bands = self.bands(benchmark, splits);
        let sizes = |sizes: &[SizeAtGamma]| {
            let named = sizes.iter().map(|size| GammaSize {
                benchmark: benchmark.name.clone(),
                gamma: size.gamma.value(),
                alpha: size.alpha.value(),
                split: size.split as u64,
                average_size: size.average_size,
            });
            named.collect()
        };
        findings.gamma_on_test = sizes(&evaluation.gamma_on_test);
        findings.gamma_on_tuning = sizes(&evaluation.gamma_on_tuning);
        findings
    }

    pub(crate) fn summary(&self, benchmark: &Benchmark, splits: &[Split]) -> BenchmarkSummary {
        let splits = splits.iter().take(self.splits).enumerate();
        BenchmarkSummary {
            name: benchmark.name.clone(),
            title: benchmark.title.clone(),
            rows: benchmark.rows() as u64,
            classes: benchmark.classes as u64,
            dtype: benchmark.dtype.clone(),
            accuracy: benchmark.accuracy(),
            fingerprint: benchmark.fingerprint.clone(),
            doubtful: benchmark.doubtful,
            ships: benchmark.shipped().is_some(),
            splits: splits
                .map(|(number, split)| SplitSummary {
                    split: number as u64,
                    n_cal: split.calibration.len() as u64,
                    n_test: split.test.len() as u64,
                    calibration_accuracy: benchmark.accuracy_on(&split.calibration),
                    test_accuracy: benchmark.accuracy_on(&split.test),
                })
                .collect(),
        }
    }

    /// Procedures that tune calibrate on fewer rows, so they have a band of their own.
    fn bands(&self, benchmark: &Benchmark, splits: &[Split]) -> Vec<CoverageBand> {
        let Some(split) = splits.first() else { return Vec::new() };
        let mut bands = Vec::new();
        for tuned in [false, true] {
            let procedures: Vec<String> = self
                .procedures
                .iter()
                .filter(|procedure| procedure.is_tuned() == tuned)
                .map(|procedure| procedure.name.clone())
                .collect();
            if procedures.is_empty() {
                continue;
            }
            let n_cal = if tuned { split.n_calibrating() } else { split.calibration.len() } as u64;
            let n_test = split.test.len() as u64;
            bands.extend(self.levels.iter().map(|alpha| {
                let law = CoverageLaw::at_level(n_cal, *alpha);
                let (low, high) = law.interval_of_rows(BAND, n_test).expect("a band is a probability");
                CoverageBand {
                    benchmark: benchmark.name.clone(),
                    alpha: alpha.value(),
                    procedures: procedures.clone(),
                    n_cal,
                    n_test,
                    probability: BAND,
                    mean: law.mean(),
                    low,
                    high,
                }
            }));
        }
        bands
    }
}

/// What was found on one benchmark.
#[derive(Default)]
struct Findings {
    summary: BenchmarkSummary,
    /// Over all splits, those of the claims included.
    records: Vec<Record>,
    /// Of tuned procedures, by the other ways to tune.
    tuned: Vec<Record>,
    influences: Influences,
    means: Vec<Means>,
    bands: Vec<CoverageBand>,
    tuning: Vec<TuningComparison>,
    tuning_ways: Vec<TuningWay>,
    gamma_on_test: Vec<GammaSize>,
    gamma_on_tuning: Vec<GammaSize>,
    examples: Option<Examples>,
}

/// The part of a record that an outcome knows.
fn record(outcome: &Outcome, classes: u64) -> Record {
    let Outcome { score, threshold, metrics } = outcome;
    let Parameters { gamma, lambda, k_reg, .. } = score.parameters();
    Record {
        n_test: metrics.n,
        threshold: *threshold,
        gamma: gamma.map(|gamma| gamma.value()),
        lambda: lambda.map(|lambda| lambda.value()),
        k_reg: k_reg.map(u64::from),
        coverage: metrics.coverage,
        average_size: metrics.average_size,
        singleton_ratio: metrics.singleton_ratio,
        singleton_coverage: metrics.singleton_coverage,
        empty_ratio: metrics.empty_ratio,
        sscv: metrics.sscv,
        covgap: metrics.covgap,
        strata: metrics
            .strata
            .iter()
            .map(|stratum| Stratum {
                from: stratum.from,
                to: stratum.to.unwrap_or(classes),
                n: stratum.n,
                coverage: stratum.coverage,
            })
            .collect(),
        ..Record::default()
    }
}

/// Means over the splits of one benchmark, procedure and level.
fn means(records: &[Record]) -> Option<Means> {
    let first = records.first()?;
    let spread = |value: fn(&Record) -> f64| Spread::of(&records.iter().map(value).collect::<Vec<_>>());
    let singletons: Vec<f64> = records.iter().filter_map(|record| record.singleton_coverage).collect();
    Some(Means {
        benchmark: first.benchmark.clone(),
        procedure: first.procedure.clone(),
        alpha: first.alpha,
        coverage: spread(|record| record.coverage)?,
        average_size: spread(|record| record.average_size)?,
        singleton_ratio: spread(|record| record.singleton_ratio)?,
        singleton_coverage: Spread::of(&singletons),
        empty_ratio: spread(|record| record.empty_ratio)?,
        sscv: spread(|record| record.sscv)?,
        covgap: spread(|record| record.covgap)?,
    })
}

/// A way to tune, over the splits on which all ways are compared.
fn tuning_way(way: Way, procedure: &str, records: &[Record]) -> Option<TuningWay> {
    let spread = |value: fn(&Record) -> f64| Spread::of(&records.iter().map(value).collect::<Vec<_>>());
    let first = records.first()?;
    Some(TuningWay {
        benchmark: first.benchmark.clone(),
        procedure: procedure.to_owned(),
        alpha: first.alpha,
        way,
        coverage: spread(|record| record.coverage)?,
        average_size: spread(|record| record.average_size)?,
    })
}

fn tuning_comparison(valid: &[Record], paper: &[Record]) -> Option<TuningComparison> {
    let (first, _) = valid.first().zip(paper.first())?;
    let coverage = |records: &[Record]| records.iter().map(|record| record.coverage).collect::<Vec<f64>>();
    let size = |records: &[Record]| records.iter().map(|record| record.average_size).collect::<Vec<f64>>();
    let difference = |paper: Vec<f64>, valid: Vec<f64>, chance: Chance| {
        Paired::of(&paper.iter().zip(&valid).map(|(paper, valid)| paper - valid).collect::<Vec<_>>(), chance)
    };
    let alpha = conformax::Alpha::new(first.alpha).ok()?;
    Some(TuningComparison {
        benchmark: first.benchmark.clone(),
        procedure: first.procedure.clone(),
        alpha: first.alpha,
        promised: CoverageLaw::at_level(first.n_cal, alpha).mean(),
        valid_coverage: Spread::of(&coverage(valid))?,
        paper_coverage: Spread::of(&coverage(paper))?,
        coverage_difference: difference(coverage(paper), coverage(valid), Chance::OfSplits)?,
        valid_size: Spread::of(&size(valid))?,
        paper_size: Spread::of(&size(paper))?,
        size_difference: difference(size(paper), size(valid), Chance::of_shared_rows(first))?,
    })
}

/// Operating system, architecture and, where it says so, the processor.
fn machine() -> String {
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    match model {
        Some((_, model)) => format!("{system}, {}", model.trim()),
        None => system,
    }
}

/// Every part of a split needs a row; splits of as many rows are alike in that.
fn expect_rows(benchmark: &Benchmark, split: &Split) -> Result<()> {
    let parts = [split.tuning.len(), split.n_calibrating(), split.test.len()];
    if parts.iter().all(|rows| *rows > 0) {
        return Ok(());
    }
    let message = format!(
        "has too few rows ({}) to be split into some that choose, some that calibrate and some that test: they would be \
         {}, {} and {}",
        benchmark.rows(),
        parts[0],
        parts[1],
        parts[2]
    );
    Err(Error::Benchmark { name: benchmark.title.clone(), message })
}

/// One class is in every set, so that nothing is left to compare.
pub(crate) fn expect_classes(benchmark: &Benchmark) -> Result<()> {
    match benchmark.classes {
        0 | 1 => {
            let message = format!("has {} class, and a study compares sets of at least 2", benchmark.classes);
            Err(Error::Benchmark { name: benchmark.title.clone(), message })
        }
        _ => Ok(()),
    }
}
