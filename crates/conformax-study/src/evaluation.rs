//! One benchmark through every procedure, level and split.
//!
//! A row's scores depend on neither split nor level, so each row is visited once per score and asked for the
//! sizes of its sets at all thresholds together ([`Asked`]). The numbers equal those of `calibrate`, `predict` and
//! `evaluate` run one after another for every combination; only the repetition is gone.

mod all_rows;
mod asked;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use conformax::{
    Alpha, Candidate, EntmaxScore, Gamma, KnownScores, Labelled, Logit, Logits, Metrics, Predictor,
    RankedRow, RowSizes, ScoreSpec, SizeScratch, Strata, Tally, score_labels,
};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::evaluation::asked::Asked;
use crate::procedure::{Procedure, ProcedureScore};
use crate::row_influence::{RowInfluence, Visits};
use crate::splits::{Split, Thresholds, Truth};
use crate::test_sizes::{Block, TestSizes};

/// Rows that one task visits.
const CHUNK: usize = 128;
/// Rows of it that are visited under every score before the next are: what is known of them stays in the cache.
const TOGETHER: usize = 16;

/// What to run on a benchmark.
pub(crate) struct Plan<'a> {
    pub(crate) procedures: &'a [Procedure],
    pub(crate) alphas: &'a [Alpha],
    pub(crate) splits: &'a [Split],
    /// How many of the splits the sweeps over γ use.
    pub(crate) sweep_splits: usize,
    /// How many of the splits tune without rows set aside.
    pub(crate) selection_splits: usize,
    /// The γ whose sizes on test rows are wanted.
    pub(crate) sweep: &'a [Gamma],
    pub(crate) strata: &'a Strata,
    /// Whether to give up, asked once a row.
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
}

/// What came out of a procedure at one level of one split.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) score: ScoreSpec,
    pub(crate) threshold: f64,
    pub(crate) metrics: Metrics,
}

impl Outcome {
    /// What predicts as the split calibrated it.
    pub(crate) fn predictor(&self) -> Predictor<ScoreSpec> {
        Predictor::new(self.score, conformax::Thresholds::One(self.threshold))
    }
}

/// A procedure's outcomes.
pub(crate) struct ProcedureOutcomes {
    /// By split, then level.
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    /// The same tuned the paper's way; empty where nothing is tuned.
    pub(crate) paper: Vec<Vec<Outcome>>,
    /// The same with all rows choosing and calibrating, on some of the splits; empty where nothing is tuned.
    pub(crate) all_rows: Vec<Vec<Outcome>>,
    /// By level, what predicts so as the first split calibrated it; empty where that is not known.
    pub(crate) all_rows_first: Vec<Predictor<ScoreSpec>>,
    /// By level, how much each row moves the outcomes.
    pub(crate) influences: Vec<RowInfluence>,
    /// By candidate, its total set size on the tuning rows by split and level; empty where nothing is tuned.
    tuning_sizes: Sizes,
}

/// Average size of the entmax score.
#[derive(Clone)]
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
    /// Every row's labels were ranked.
    Sorted,
    /// A procedure chose among its candidates on every split.
    Tuned(String),
    /// A procedure was judged on the test rows of every split.
    Judged(String),
    /// Sizes were measured for every γ of the sweeps.
    Swept,
    /// Everything was judged on one split, by its number.
    Split(u64),
}

/// A score of all rows' true labels, with the thresholds it takes.
struct Scored {
    spec: ScoreSpec,
    truth: Vec<f64>,
    /// By split.
    thresholds: Vec<Thresholds>,
    /// The largest finite one.
    cutoff: f64,
    /// By row, what its visits have found out so far. A row has one visitor at a time.
    known: Vec<Mutex<KnownScores>>,
}

/// Per level the place of a score among those computed, and its threshold.
type Picks = Vec<(usize, f64)>;

/// By candidate, its total set size by split and level.
type Sizes = Vec<Vec<u64>>;

/// By split, ascending, the levels at which a score is picked.
type OwnLevels = Vec<(usize, Vec<usize>)>;

/// A score where it is picked, with its thresholds there.
struct PickedScore {
    place: usize,
    levels: OwnLevels,
    asked: Asked,
}

pub(crate) fn evaluate_benchmark<T: Logit>(
    logits: Logits<'_, T>,
    labels: &[u32],
    plan: &Plan<'_>,
    report: &(dyn Fn(Stage, Duration) + Sync),
) -> Result<Evaluation> {
    let procedures = procedures_for(plan, logits.classes());
    let specs = scores_of(&procedures, plan.sweep);
    let started = Instant::now();
    let (rows, draw) = (logits.labelled(labels)?, RankedRow::draw_for(&specs));
    let ranked = (0..logits.len()).into_par_iter().map(|row| Ok(RankedRow::new(logits.row(row)?, draw)));
    let ranked: Vec<RankedRow> = ranked.collect::<Result<_>>()?;
    report(Stage::Sorted, started.elapsed());
    let scored = specs.par_iter().map(|spec| score_truth(spec, rows, &ranked, plan));
    let bench = Bench { logits, labels, plan, ranked: &ranked, scored: scored.collect::<Result<_>>()? };
    // One for all procedures: tens of megabytes that need not be cleared, since all that is read is written first.
    let mut sizes = TestSizes::new(logits.len(), plan.splits.len(), plan.alphas.len());
    let outcomes = procedures.iter().map(|procedure| bench.run(procedure, &mut sizes, report));
    let outcomes: Vec<ProcedureOutcomes> = outcomes.collect::<Result<_>>()?;
    let started = Instant::now();
    let evaluation = Evaluation {
        gamma_on_test: bench.gamma_on_test()?,
        gamma_on_tuning: bench.gamma_on_tuning(&procedures, &outcomes),
        procedures: outcomes,
    };
    report(Stage::Swept, started.elapsed());
    Ok(evaluation)
}

fn procedures_for(plan: &Plan<'_>, classes: usize) -> Vec<Procedure> {
    plan.procedures.iter().map(|procedure| procedure.for_classes(classes)).collect()
}

/// Every score that is needed, once.
fn scores_of(procedures: &[Procedure], sweep: &[Gamma]) -> Vec<ScoreSpec> {
    let mut specs: Vec<ScoreSpec> = Vec::new();
    let swept = sweep.iter().map(|gamma| ScoreSpec::Entmax(EntmaxScore { gamma: *gamma }));
    for spec in procedures.iter().flat_map(Procedure::scores).copied().chain(swept) {
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    specs
}

/// How many stages a benchmark of so many classes will report.
pub(crate) fn stages(plan: &Plan<'_>, classes: usize) -> usize {
    let procedures = procedures_for(plan, classes);
    let tuned = procedures.iter().filter(|procedure| procedure.is_tuned()).count();
    2 + tuned + procedures.len()
}

fn score_truth<T: Logit>(
    spec: &ScoreSpec,
    rows: Labelled<'_, T>,
    ranked: &[RankedRow],
    plan: &Plan<'_>,
) -> Result<Scored> {
    let truth = Truth::new(match ranked.first().is_some_and(|ranked| ranked.holds(spec)) {
        true => (0..rows.len())
            .into_par_iter()
            .map(|row| Ok(ranked[row].score(spec, rows.logits().row(row)?, rows.labels()[row])))
            .collect::<Result<_>>()?,
        false => score_labels(spec, rows)?,
    });
    let thresholds = plan.splits.par_iter().map(|split| truth.thresholds(split, plan.alphas));
    let thresholds: Vec<Thresholds> = thresholds.collect::<Result<_>>()?;
    // An infinite threshold takes every label, whatever its score.
    let finite = thresholds.iter().flat_map(Thresholds::all).filter(|threshold| threshold.is_finite());
    let cutoff = finite.fold(f64::NEG_INFINITY, f64::max);
    let known = truth.scores.iter().map(|_| Mutex::default()).collect();
    Ok(Scored { spec: *spec, truth: truth.scores, thresholds, cutoff, known })
}

/// A benchmark's scores with what is asked of them.
struct Bench<'a, T> {
    logits: Logits<'a, T>,
    labels: &'a [u32],
    plan: &'a Plan<'a>,
    ranked: &'a [RankedRow],
    scored: Vec<Scored>,
}

impl<T: Logit> Bench<'_, T> {
    fn place_of(&self, spec: &ScoreSpec) -> usize {
        let place = self.scored.iter().position(|scored| scored.spec == *spec);
        place.expect("every score of the plan was computed")
    }

    fn run(
        &self,
        procedure: &Procedure,
        sizes: &mut TestSizes,
        report: &(dyn Fn(Stage, Duration) + Sync),
    ) -> Result<ProcedureOutcomes> {
        let started = Instant::now();
        let result = match &procedure.choice {
            ProcedureScore::Fixed(spec) => {
                let place = self.place_of(spec);
                let thresholds = self.scored[place].thresholds.iter();
                let picks: Vec<Picks> = thresholds
                    .map(|thresholds| thresholds.calibration.iter().map(|q| (place, *q)).collect())
                    .collect();
                self.add_test_sizes(&picks, &[], sizes)?;
                ProcedureOutcomes {
                    outcomes: self.judge(&picks, sizes)?,
                    paper: Vec::new(),
                    all_rows: Vec::new(),
                    all_rows_first: Vec::new(),
                    influences: self.influences(&picks, sizes, false),
                    tuning_sizes: Vec::new(),
                }
            }
            ProcedureScore::Tuned(candidates) => {
                let places: Vec<usize> = candidates.iter().map(|spec| self.place_of(spec)).collect();
                let (own, papers) = self.judging_sizes(&places)?;
                let (valid, paper) = (self.tune(&places, &own)?, self.tune(&places, &papers)?);
                report(Stage::Tuned(procedure.name.clone()), started.elapsed());
                self.add_test_sizes(&valid, &[], sizes)?;
                let (outcomes, influences) =
                    (self.judge(&valid, sizes)?, self.influences(&valid, sizes, true));
                self.add_test_sizes(&paper, &valid, sizes)?;
                let (all_rows, all_rows_first) = self.select(&places)?;
                ProcedureOutcomes {
                    outcomes,
                    paper: self.judge(&paper, sizes)?,
                    all_rows,
                    all_rows_first,
                    influences,
                    tuning_sizes: own,
                }
            }
        };
        report(Stage::Judged(procedure.name.clone()), started.elapsed());
        Ok(result)
    }

    /// Per split and level the candidate with the smallest total size, and its threshold on the calibrating rows.
    fn tune(&self, candidates: &[usize], sizes: &[Vec<u64>]) -> Result<Vec<Picks>> {
        let levels = self.plan.alphas.len();
        let choose = |split: usize, level: usize| {
            // Every candidate is judged on the same rows, so the smallest total has the smallest mean.
            let judged = candidates.iter().zip(sizes).map(|(place, sizes)| {
                let threshold = self.scored[*place].thresholds[split].judging[level];
                Candidate::new(*place, threshold, sizes[split * levels + level] as f64)
            });
            let chosen = *conformax::Choice::of(judged.collect())?.score();
            Ok((chosen, self.scored[chosen].thresholds[split].calibrating[level]))
        };
        let splits = 0..self.plan.splits.len();
        splits.map(|split| (0..levels).map(|level| choose(split, level)).collect()).collect()
    }

    /// By candidate, total set sizes on the tuning rows by split and level: judged by their own thresholds, and by
    /// those of the calibrating rows.
    fn judging_sizes(&self, candidates: &[usize]) -> Result<(Sizes, Sizes)> {
        let levels = self.plan.alphas.len();
        let width = self.plan.splits.len() * levels;
        let asked = candidates.iter().map(|place| {
            let thresholds = self.scored[*place].thresholds.iter();
            let judging = thresholds.clone().flat_map(|split| &split.judging);
            Asked::new(judging.chain(thresholds.flat_map(|split| &split.paper_judging)).copied())
        });
        let asked: Vec<Asked> = asked.collect();
        let totals = self.fold_rows(
            candidates,
            || vec![0u64; 2 * width],
            |totals, (candidate, row), sizes, table| {
                let sizes = asked[candidate].of_row(sizes, table);
                let tuned = self.plan.splits.iter().enumerate().filter(|(_, split)| split.tunes(row));
                for start in tuned.flat_map(|(number, _)| [number * levels, width + number * levels]) {
                    totals[start..][..levels].iter_mut().zip(sizes.from(start)).for_each(add);
                }
            },
            joined,
        )?;
        let halves = totals.iter().map(|totals| totals.split_at(width));
        Ok(halves.map(|(own, paper)| (own.to_vec(), paper.to_vec())).unzip())
    }

    /// Visits every row with the sizes of its sets under some scores, in parallel; comes to one state for each score.
    /// A visit is told which of the scores it is about, and the row.
    fn fold_rows<A: Send>(
        &self,
        places: &[usize],
        zero: impl Fn() -> A + Sync + Send,
        visit: impl Fn(&mut A, (usize, usize), &mut RowSizes<'_>, &mut Vec<u32>) + Sync,
        join: impl Fn(A, A) -> A + Sync + Send,
    ) -> Result<Vec<A>> {
        let zeros = || places.iter().map(|_| zero()).collect::<Vec<A>>();
        let chunks = (0..self.logits.len().div_ceil(CHUNK)).into_par_iter();
        let folded = chunks.map(|chunk| {
            let (mut states, mut scratch, mut table) = (zeros(), SizeScratch::default(), Vec::new());
            let end = ((chunk + 1) * CHUNK).min(self.logits.len());
            for start in (chunk * CHUNK..end).step_by(TOGETHER) {
                for (index, (place, state)) in places.iter().zip(&mut states).enumerate() {
                    for row in start..(start + TOGETHER).min(end) {
                        self.visit(&self.scored[*place], row, &mut scratch, |sizes| {
                            visit(state, (index, row), sizes, &mut table);
                        })?;
                    }
                }
            }
            Ok(states)
        });
        folded.try_reduce(zeros, |a, b| Ok(a.into_iter().zip(b).map(|(a, b)| join(a, b)).collect()))
    }

    fn visit(
        &self,
        scored: &Scored,
        row: usize,
        scratch: &mut SizeScratch,
        ask: impl FnOnce(&mut RowSizes<'_>),
    ) -> Result<()> {
        if (self.plan.stop)() {
            return Err(Error::Stopped);
        }
        let mut known = scored.known[row].lock().unwrap_or_else(PoisonError::into_inner);
        let of = self.logits.row(row)?;
        self.ranked[row].with_sizes(&scored.spec, of, &mut known, scored.cutoff, scratch, ask);
        Ok(())
    }

    /// The metrics of each split's picks on its test rows.
    fn judge(&self, picks: &[Picks], sizes: &TestSizes) -> Result<Vec<Vec<Outcome>>> {
        let splits = self.plan.splits.par_iter().zip(picks).enumerate();
        splits.map(|(number, (split, picks))| self.judge_split(split, picks, sizes, number)).collect()
    }

    /// How much each row moves them, by level.
    fn influences(&self, picks: &[Picks], sizes: &TestSizes, is_tuned: bool) -> Vec<RowInfluence> {
        let visits = Visits {
            splits: self.plan.splits,
            levels: self.plan.alphas.len(),
            is_tuned,
            sizes,
            is_missed: |row, split: usize, level: usize| {
                let (place, threshold) = picks[split][level];
                self.scored[place].truth[row] > threshold
            },
        };
        visits.influences()
    }

    /// Puts in the sizes of test rows under these picks, except where `before` had the same.
    fn add_test_sizes(&self, picks: &[Picks], before: &[Picks], sizes: &mut TestSizes) -> Result<()> {
        let is_new = |split: usize, level: usize| {
            before.get(split).is_none_or(|before| before[level] != picks[split][level])
        };
        let mut levels_by_score: BTreeMap<usize, OwnLevels> = BTreeMap::new();
        for (split, picks) in picks.iter().enumerate() {
            for (level, (place, _)) in picks.iter().enumerate().filter(|(level, _)| is_new(split, *level)) {
                let own = levels_by_score.entry(*place).or_default();
                match own.last_mut().filter(|(last, _)| *last == split) {
                    Some((_, levels)) => levels.push(level),
                    None => own.push((split, vec![level])),
                }
            }
        }
        let scores = levels_by_score.into_iter().map(|(place, levels)| {
            let of_split = |(split, levels): &(usize, Vec<usize>)| {
                levels.iter().map(|level| picks[*split][*level].1).collect::<Vec<f64>>()
            };
            let asked = Asked::new(levels.iter().flat_map(of_split));
            PickedScore { place, levels, asked }
        });
        let scores: Vec<PickedScore> = scores.collect();
        sizes.blocks().try_for_each(|mut block| {
            let mut memory = (SizeScratch::default(), Vec::new());
            scores.iter().try_for_each(|score| self.add_sizes_of(score, &mut block, &mut memory))
        })
    }

    /// The part of one score, in one block.
    fn add_sizes_of(
        &self,
        score: &PickedScore,
        block: &mut Block<'_>,
        (scratch, table): &mut (SizeScratch, Vec<u32>),
    ) -> Result<()> {
        for row in block.rows() {
            let tests = |split: usize| self.plan.splits[split].tests(row);
            if !score.levels.iter().any(|(split, _)| tests(*split)) {
                continue;
            }
            self.visit(&self.scored[score.place], row, scratch, |sizes| {
                let sizes = score.asked.of_row(sizes, table);
                let mut first = 0;
                for (split, levels) in &score.levels {
                    if tests(*split) {
                        let out = block.of(row, *split);
                        levels.iter().zip(sizes.from(first)).for_each(|(level, size)| out[*level] = size);
                    }
                    first += levels.len();
                }
            })?;
        }
        Ok(())
    }

    fn judge_split(
        &self,
        split: &Split,
        picks: &Picks,
        sizes: &TestSizes,
        number: usize,
    ) -> Result<Vec<Outcome>> {
        let levels = self.plan.alphas.len();
        let mut tallies = vec![Tally::new(self.logits.classes())?; levels];
        for row in split.test.iter().map(|row| *row as usize) {
            let sizes = sizes.of(row, number);
            for (((place, threshold), size), tally) in picks.iter().zip(sizes).zip(&mut tallies) {
                let covered = self.scored[*place].truth[row] <= *threshold;
                tally.add_outcome(*size as usize, covered, self.labels[row]);
            }
        }
        let outcomes = picks.iter().zip(&tallies).zip(self.plan.alphas);
        outcomes
            .map(|(((place, threshold), tally), alpha)| {
                let metrics = tally.metrics(*alpha, self.plan.strata)?;
                Ok(Outcome { score: self.scored[*place].spec, threshold: *threshold, metrics })
            })
            .collect()
    }

    /// Sizes on test rows for each γ of the sweep, calibrated on all rows for calibration.
    fn gamma_on_test(&self) -> Result<Vec<SizeAtGamma>> {
        let sizes = self.plan.sweep.iter().zip(self.sweep_totals()?);
        let sizes =
            sizes.map(|(gamma, totals)| self.sizes_at_gamma(*gamma, &totals, |split| split.test.len()));
        Ok(sizes.collect::<Vec<_>>().concat())
    }

    /// Sizes on tuning rows for each γ that a procedure chooses from: what its choice saw.
    fn gamma_on_tuning(&self, procedures: &[Procedure], outcomes: &[ProcedureOutcomes]) -> Vec<SizeAtGamma> {
        let in_family = |spec: &ScoreSpec| spec.gamma().is_some();
        let mut tuned = procedures.iter().zip(outcomes).filter(|(procedure, _)| procedure.is_tuned());
        let family = tuned.find(|(procedure, _)| procedure.scores().iter().all(in_family));
        let candidates = family.into_iter().flat_map(|(procedure, outcomes)| {
            let gammas = procedure.scores().iter().filter_map(|spec| spec.gamma());
            gammas.zip(&outcomes.tuning_sizes)
        });
        let sizes =
            candidates.map(|(gamma, totals)| self.sizes_at_gamma(gamma, totals, |split| split.tuning.len()));
        sizes.collect::<Vec<_>>().concat()
    }

    /// Means of totals by split and level, on the splits of the sweeps.
    fn sizes_at_gamma(&self, gamma: Gamma, totals: &[u64], rows: fn(&Split) -> usize) -> Vec<SizeAtGamma> {
        let levels = self.plan.alphas.len();
        let totals = totals.iter().take(self.plan.sweep_splits * levels).enumerate();
        let sizes = totals.map(|(index, total)| {
            let (split, level) = (index / levels, index % levels);
            let average_size = *total as f64 / rows(&self.plan.splits[split]) as f64;
            SizeAtGamma { gamma, alpha: self.plan.alphas[level], split, average_size }
        });
        sizes.collect()
    }

    /// By γ of the sweep, total sizes on test rows by split and level, on the splits of the sweeps.
    fn sweep_totals(&self) -> Result<Vec<Vec<u64>>> {
        let spec = |gamma: &Gamma| ScoreSpec::Entmax(EntmaxScore { gamma: *gamma });
        let places = self.plan.sweep.iter().map(|gamma| self.place_of(&spec(gamma)));
        let places: Vec<usize> = places.collect();
        let splits = &self.plan.splits[..self.plan.sweep_splits];
        let levels = self.plan.alphas.len();
        let asked = places.iter().map(|place| {
            let thresholds = self.scored[*place].thresholds[..splits.len()].iter();
            Asked::new(thresholds.flat_map(|thresholds| &thresholds.calibration).copied())
        });
        let asked: Vec<Asked> = asked.collect();
        self.fold_rows(
            &places,
            || vec![0u64; splits.len() * levels],
            |totals, (gamma, row), sizes, table| {
                let sizes = asked[gamma].of_row(sizes, table);
                for (number, _) in splits.iter().enumerate().filter(|(_, split)| split.tests(row)) {
                    let start = number * levels;
                    totals[start..][..levels].iter_mut().zip(sizes.from(start)).for_each(add);
                }
            },
            joined,
        )
    }
}

fn add((total, size): (&mut u64, u32)) {
    *total += u64::from(size);
}

fn joined(mut totals: Vec<u64>, others: Vec<u64>) -> Vec<u64> {
    totals.iter_mut().zip(others).for_each(|(total, other)| *total += other);
    totals
}
