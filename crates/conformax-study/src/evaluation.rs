//! One benchmark through every procedure, level and split.
//!
//! Each score is computed once for all rows. A split then only picks calibration scores in order, and a set's
//! size at a threshold is read off the row's scores. The numbers equal those of `calibrate`, `predict` and
//! `evaluate` run one after another for every combination; only the repetition is gone.

use std::time::{Duration, Instant};

use conformax::{
    Alpha, EntmaxScore, Gamma, Logit, Logits, Metrics, RankedSoftmax, Result, ScoreSpec, Strata, Tally,
    score_labels, smallest,
};
use rayon::prelude::*;

use crate::procedure::{Choice, Procedure};
use crate::scored::ScoredRows;
use crate::splits::{Split, Thresholds, Truth};

/// What to run on a benchmark.
pub(crate) struct Plan<'a> {
    pub(crate) procedures: &'a [Procedure],
    pub(crate) alphas: &'a [Alpha],
    pub(crate) splits: &'a [Split],
    /// How many of the splits the sweeps over γ use.
    pub(crate) sweep_splits: usize,
    /// The γ whose sizes on test rows are wanted.
    pub(crate) sweep: &'a [Gamma],
    pub(crate) strata: &'a Strata,
}

/// What came out of a procedure at one level of one split.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) score: ScoreSpec,
    pub(crate) threshold: f64,
    pub(crate) metrics: Metrics,
}

/// A procedure's outcomes.
pub(crate) struct ProcedureOutcomes {
    /// By split, then level.
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    /// The same tuned the paper's way; empty where nothing is tuned.
    pub(crate) paper: Vec<Vec<Outcome>>,
}

/// Average size of the entmax score.
pub(crate) struct SizeAtGamma {
    pub(crate) gamma: Gamma,
    pub(crate) alpha: Alpha,
    pub(crate) split: usize,
    pub(crate) average_size: f64,
}

/// Everything found on a benchmark.
pub(crate) struct Evaluation {
    /// In the order of the plan.
    pub(crate) procedures: Vec<ProcedureOutcomes>,
    pub(crate) gamma_on_test: Vec<SizeAtGamma>,
    pub(crate) gamma_on_tuning: Vec<SizeAtGamma>,
}

/// Parts of the work on a benchmark, as they end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A score was computed for all rows.
    Scored(String),
    /// A procedure chose among its candidates on every split.
    Tuned(String),
    /// A procedure was judged on the test rows of every split.
    Judged(String),
}

/// A score of all rows: the true labels', and every label's as far as thresholds reach.
struct Scored {
    spec: ScoreSpec,
    truth: Vec<f64>,
    rows: ScoredRows,
    /// By split.
    thresholds: Vec<Thresholds>,
}

pub(crate) fn evaluate_benchmark<T: Logit>(
    logits: Logits<'_, T>,
    labels: &[u32],
    plan: &Plan<'_>,
    report: &(dyn Fn(Stage, Duration) + Sync),
) -> Result<Evaluation> {
    let procedures: Vec<Procedure> =
        plan.procedures.iter().map(|procedure| procedure.for_classes(logits.classes())).collect();
    let mut specs: Vec<ScoreSpec> = Vec::new();
    let swept = plan.sweep.iter().map(|gamma| ScoreSpec::Entmax(EntmaxScore { gamma: *gamma }));
    for spec in procedures.iter().flat_map(|procedure| procedure.scores().to_vec()).chain(swept) {
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    let bench = Bench { labels, plan, scored: score_rows(logits, labels, &specs, plan, report)? };
    let outcomes = procedures.iter().map(|procedure| bench.run(procedure, report));
    Ok(Evaluation {
        procedures: outcomes.collect::<Result<_>>()?,
        gamma_on_test: bench.gamma_on_test(),
        gamma_on_tuning: bench.gamma_on_tuning(&procedures),
    })
}

fn score_rows<T: Logit>(
    logits: Logits<'_, T>,
    labels: &[u32],
    specs: &[ScoreSpec],
    plan: &Plan<'_>,
    report: &(dyn Fn(Stage, Duration) + Sync),
) -> Result<Vec<Scored>> {
    let started = Instant::now();
    let ranked = ranked_rows(logits, specs)?;
    if !ranked.is_empty() {
        report(Stage::Scored("sorted softmax".to_owned()), started.elapsed());
    }
    let scored = specs.par_iter().map(|spec| {
        let started = Instant::now();
        let truth = Truth::new(match spec {
            ScoreSpec::Raps(score) => ranked
                .par_iter()
                .zip(labels)
                .map(|(row, label)| {
                    let place = row.labels().iter().position(|other| other == label);
                    place.map_or(f64::INFINITY, |place| row.raps(score, place))
                })
                .collect(),
            _ => score_labels(spec, logits, labels)?,
        });
        let thresholds = plan.splits.par_iter().map(|split| truth.thresholds(split, plan.alphas));
        let thresholds: Vec<Thresholds> = thresholds.collect::<Result<_>>()?;
        // An infinite threshold takes every label, whatever its score.
        let finite = thresholds.iter().flat_map(Thresholds::all).filter(|threshold| threshold.is_finite());
        let cutoff = finite.fold(f64::NEG_INFINITY, f64::max);
        let rows = match spec {
            ScoreSpec::Raps(score) => ScoredRows::raps(score, &ranked, logits.classes(), cutoff),
            _ => ScoredRows::new(spec, logits, cutoff)?,
        };
        report(Stage::Scored(spec.to_string()), started.elapsed());
        Ok(Scored { spec: *spec, truth: truth.scores, rows, thresholds })
    });
    scored.collect()
}

/// Every row's softmax, sorted once for all RAPS candidates: their draw is the same, so is their ranking.
fn ranked_rows<T: Logit>(logits: Logits<'_, T>, specs: &[ScoreSpec]) -> Result<Vec<RankedSoftmax>> {
    let draw = specs.iter().find_map(|spec| match spec {
        ScoreSpec::Raps(score) => Some(score.draw),
        _ => None,
    });
    let Some(draw) = draw else { return Ok(Vec::new()) };
    let rows = (0..logits.len()).into_par_iter();
    rows.map(|row| Ok(RankedSoftmax::new(logits.row(row)?, draw))).collect()
}

/// A benchmark's scores with what is asked of them.
struct Bench<'a> {
    labels: &'a [u32],
    plan: &'a Plan<'a>,
    scored: Vec<Scored>,
}

impl Bench<'_> {
    fn of(&self, spec: &ScoreSpec) -> &Scored {
        self.scored.iter().find(|scored| scored.spec == *spec).expect("every score of the plan was computed")
    }

    fn run(
        &self,
        procedure: &Procedure,
        report: &(dyn Fn(Stage, Duration) + Sync),
    ) -> Result<ProcedureOutcomes> {
        let started = Instant::now();
        let result = match &procedure.choice {
            Choice::Fixed(spec) => {
                let scored = self.of(spec);
                let pick = |split: usize| {
                    scored.thresholds[split].calibration.iter().map(|threshold| (scored, *threshold)).collect()
                };
                ProcedureOutcomes { outcomes: self.judge_splits(pick)?, paper: Vec::new() }
            }
            Choice::Tuned(candidates) => {
                let scored: Vec<&Scored> = candidates.iter().map(|spec| self.of(spec)).collect();
                let tune = |judging: fn(&Thresholds) -> &[f64]| {
                    let splits = (0..self.plan.splits.len()).into_par_iter();
                    splits.map(|split| self.tune(split, &scored, judging)).collect::<Result<Vec<_>>>()
                };
                let valid = tune(|thresholds| &thresholds.judging)?;
                let paper = tune(|thresholds| &thresholds.paper_judging)?;
                report(Stage::Tuned(procedure.name.clone()), started.elapsed());
                ProcedureOutcomes {
                    outcomes: self.judge_splits(|split| valid[split].clone())?,
                    paper: self.judge_splits(|split| paper[split].clone())?,
                }
            }
        };
        report(Stage::Judged(procedure.name.clone()), started.elapsed());
        Ok(result)
    }

    /// Per level the candidate with the smallest sets on the tuning rows, judged by the thresholds that
    /// `judging` names, and its threshold on the calibrating rows.
    fn tune<'s>(
        &self,
        split: usize,
        candidates: &[&'s Scored],
        judging: fn(&Thresholds) -> &[f64],
    ) -> Result<Vec<Pick<'s>>> {
        let tuning_rows = &self.plan.splits[split].tuning;
        let sizes: Vec<Vec<f64>> = candidates
            .iter()
            .map(|scored| average_sizes(&scored.rows, tuning_rows, judging(&scored.thresholds[split])))
            .collect();
        (0..self.plan.alphas.len())
            .map(|level| {
                let at_level: Vec<f64> = sizes.iter().map(|sizes| sizes[level]).collect();
                let chosen = candidates[smallest(&at_level).ok_or(conformax::Error::NoCandidates)?];
                Ok((chosen, chosen.thresholds[split].calibrating[level]))
            })
            .collect()
    }

    fn judge_splits<'s>(
        &self,
        picks: impl Fn(usize) -> Vec<Pick<'s>> + Sync,
    ) -> Result<Vec<Vec<Outcome>>> {
        let splits = self.plan.splits.par_iter().enumerate();
        splits.map(|(number, split)| self.judge(split, &picks(number))).collect()
    }

    /// The metrics of a score and threshold per level on the split's test rows.
    fn judge(&self, split: &Split, picks: &[Pick<'_>]) -> Result<Vec<Outcome>> {
        let classes = self.scored.first().map_or(0, |scored| scored.rows.classes());
        let mut tallies = vec![Tally::new(classes); picks.len()];
        let mut first = 0;
        for group in picks.chunk_by(|a, b| a.0.spec == b.0.spec) {
            let thresholds: Vec<f64> = group.iter().map(|(_, threshold)| *threshold).collect();
            let tallies = &mut tallies[first..first + group.len()];
            let scored = group[0].0;
            for row in split.test.iter().map(|row| *row as usize) {
                scored.rows.sizes(row, &thresholds, |level, size| {
                    let covered = scored.truth[row] <= thresholds[level];
                    tallies[level].add_outcome(size, covered, self.labels[row]);
                });
            }
            first += group.len();
        }
        let outcomes = picks.iter().zip(&tallies).zip(self.plan.alphas);
        outcomes
            .map(|(((scored, threshold), tally), alpha)| {
                let metrics = tally.metrics(*alpha, self.plan.strata)?;
                Ok(Outcome { score: scored.spec, threshold: *threshold, metrics })
            })
            .collect()
    }

    /// Sizes on test rows for each γ of the sweep, calibrated on all rows for calibration.
    fn gamma_on_test(&self) -> Vec<SizeAtGamma> {
        let mut sizes = Vec::new();
        for gamma in self.plan.sweep {
            let scored = self.of(&ScoreSpec::Entmax(EntmaxScore { gamma: *gamma }));
            for (number, split) in self.plan.splits.iter().take(self.plan.sweep_splits).enumerate() {
                let thresholds = &scored.thresholds[number].calibration;
                let averages = average_sizes(&scored.rows, &split.test, thresholds);
                sizes.extend(self.at_gamma(*gamma, number, averages));
            }
        }
        sizes
    }

    /// Sizes on tuning rows for each γ that a procedure chooses from: what its choice saw.
    fn gamma_on_tuning(&self, procedures: &[Procedure]) -> Vec<SizeAtGamma> {
        let tuned = procedures.iter().filter(|procedure| procedure.is_tuned());
        let in_family = |spec: &ScoreSpec| spec.gamma().is_some();
        let family = tuned.map(Procedure::scores).find(|scores| scores.iter().all(in_family));
        let mut sizes = Vec::new();
        for spec in family.unwrap_or_default() {
            let (Some(gamma), scored) = (spec.gamma(), self.of(spec)) else { continue };
            for (number, split) in self.plan.splits.iter().take(self.plan.sweep_splits).enumerate() {
                let thresholds = &scored.thresholds[number].judging;
                let averages = average_sizes(&scored.rows, &split.tuning, thresholds);
                sizes.extend(self.at_gamma(gamma, number, averages));
            }
        }
        sizes
    }

    fn at_gamma(&self, gamma: Gamma, split: usize, averages: Vec<f64>) -> impl Iterator<Item = SizeAtGamma> {
        let at = self.plan.alphas.iter().zip(averages);
        at.map(move |(alpha, average_size)| SizeAtGamma { gamma, alpha: *alpha, split, average_size })
    }
}

/// A score and its threshold at a level.
type Pick<'s> = (&'s Scored, f64);

/// The mean set size over `rows` at each threshold.
fn average_sizes(scored: &ScoredRows, rows: &[u32], thresholds: &[f64]) -> Vec<f64> {
    let mut totals = vec![0u64; thresholds.len()];
    for row in rows {
        scored.sizes(*row as usize, thresholds, |level, size| totals[level] += size as u64);
    }
    totals.into_iter().map(|total| total as f64 / rows.len() as f64).collect()
}
