//! `Procedure`: how calibrating rows become a predictor, and `Trial`: what it covers, split after split.

use std::fmt;

use conformax::{
    Alpha, ApsScore, Draw, EntmaxScore, Gamma, InvProbScore, Lambda, MarginScore, Masked, PredictionSets,
    Predictor, RapsScore, Result, SapsScore, ScoreSpec, SortedScores, Thresholds, TopKScore, TuneOn, Tuning,
    calibrate, entmax_grid, raps_grid, score_labels, tune,
};

use super::pool::{CLASSES, Pool, Random, Rows};
use super::verdict::{Verdict, law_holds, splits_wanted};

/// A score as it is, or the one that tuning picks.
#[derive(Clone, Debug)]
pub enum Procedure {
    Plain(ScoreSpec),
    OptEntmax(Tuning),
    OptRaps(Tuning),
}

impl Procedure {
    /// Every score with typical parameters.
    pub fn plain() -> Vec<Self> {
        let (draw, lambda) = (Draw::Seeded(7), Lambda::new(0.1).expect("not negative"));
        let entmax = [1.0, 1.3, 1.5, 2.0]
            .map(|gamma| ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(gamma).expect("at least 1") }));
        let others = [
            ScoreSpec::InvProb(InvProbScore),
            ScoreSpec::Aps(ApsScore { draw }),
            ScoreSpec::Raps(RapsScore { lambda, k_reg: 2, draw, ..RapsScore::default() }),
            ScoreSpec::Saps(SapsScore { draw, ..SapsScore::default() }),
            ScoreSpec::TopK(TopKScore),
            ScoreSpec::Margin(MarginScore),
        ];
        entmax.into_iter().chain(others).map(Self::Plain).collect()
    }

    /// The scores that tuning chooses from; a plain score is a grid of one.
    pub fn grid(&self) -> Vec<ScoreSpec> {
        match self {
            Self::Plain(score) => vec![*score],
            Self::OptEntmax(_) => entmax_grid().into_iter().map(ScoreSpec::Entmax).collect(),
            Self::OptRaps(_) => {
                raps_grid(CLASSES, Draw::Seeded(7)).into_iter().map(ScoreSpec::Raps).collect()
            }
        }
    }

    /// The predictor from these calibrating rows, with fresh tuning rows (40 beside every 60) where it tunes.
    fn calibrate(&self, trial: Trial, rows: &Rows, random: &mut Random) -> Result<Predictor<ScoreSpec>> {
        match self {
            Self::Plain(score) => calibrate(*score, rows.logits(), &rows.labels, trial.alpha),
            Self::OptEntmax(tuning) | Self::OptRaps(tuning) => {
                let chosen = trial.pool.draw((2 * trial.n / 3).max(1), random);
                let tuned = tune(TuneOn {
                    grid: &self.grid(),
                    tuning: chosen.labelled()?,
                    calibrating: rows.labelled()?,
                    alpha: trial.alpha,
                    method: *tuning,
                    masked: Masked::Allowed,
                })?;
                Ok(tuned.calibration.at(trial.alpha).0)
            }
        }
    }
}

impl fmt::Display for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(score) => score.fmt(f),
            Self::OptEntmax(Tuning::Valid) => f.write_str("opt-entmax"),
            Self::OptRaps(Tuning::Valid) => f.write_str("opt-raps"),
            Self::OptEntmax(Tuning::Paper) => f.write_str("opt-entmax, paper's tuning"),
            Self::OptRaps(Tuning::Paper) => f.write_str("opt-raps, paper's tuning"),
        }
    }
}

/// Where a procedure is put to the test: `n` calibrating and `m` test rows of a pool, at a level.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub pool: Pool,
    pub n: usize,
    pub m: usize,
    pub alpha: Alpha,
}

impl Trial {
    /// As many test rows as make the fewest rows in all tell one rank from the next.
    pub fn new(pool: Pool, n: usize, alpha: f64) -> Result<Self> {
        Ok(Self { pool, n, m: n + 1, alpha: Alpha::new(alpha)? })
    }

    /// Splits fresh rows again and again, and judges what the procedure covers.
    pub fn run(self, procedure: &Procedure, seed: u64) -> Result<Verdict> {
        self.judge(seed, |calibrating, test, random| {
            procedure.calibrate(self, calibrating, random)?.predict(test.logits())
        })
    }

    /// The same for any way from calibrating and test rows to sets, the faulty ones included.
    pub fn judge(
        self,
        seed: u64,
        mut sets: impl FnMut(&Rows, &Rows, &mut Random) -> Result<PredictionSets>,
    ) -> Result<Verdict> {
        let (n, m) = (self.n as u64, self.m as u64);
        let mut random = Random::new(seed);
        let mut counts = Vec::new();
        for _ in 0..splits_wanted(n, m, self.alpha) {
            let calibrating = self.pool.draw(self.n, &mut random);
            let test = self.pool.draw(self.m, &mut random);
            counts.push(covered(&sets(&calibrating, &test, &mut random)?, &test.labels));
        }
        Ok(law_holds(&counts, n, m, self.alpha))
    }

    /// The same at several levels and in a hundredth of the time: `n + m` rows are scored once and shuffled for split
    /// after split.
    ///
    /// A shuffle gives distinct scores the ranks that fresh rows would have, split by split and whatever the rows, so
    /// the law is the same. The score is chosen once for each of the [`POPULATIONS`], and there the sets themselves are
    /// made too: they must cover what the scores say.
    pub fn run_shuffled(self, procedure: &Procedure, levels: &[Alpha], seed: u64) -> Result<Vec<Verdict>> {
        let (n, m) = (self.n as u64, self.m as u64);
        let most = levels.iter().map(|level| splits_wanted(n, m, *level)).max().unwrap_or_default();
        let mut random = Random::new(seed);
        let mut counts = vec![Vec::with_capacity(most); levels.len()];
        for population in 0..POPULATIONS {
            let rows = self.pool.draw(self.n + self.m, &mut random);
            let score =
                *procedure.calibrate(self, &self.pool.draw(self.n, &mut random), &mut random)?.score();
            let scores = score_labels(&score, rows.labelled()?)?;
            let mut order: Vec<usize> = (0..scores.len()).collect();
            for split in (population..most).step_by(POPULATIONS) {
                for place in 0..self.n {
                    let other = place + random.below(order.len() - place);
                    order.swap(place, other);
                }
                let scores_of = |rows: &[usize]| rows.iter().map(|row| scores[*row]).collect::<Vec<f64>>();
                let (calibrating, test) = order.split_at(self.n);
                let calibrated = SortedScores::new(scores_of(calibrating))?;
                let test_scores = scores_of(test);
                for (level, counts) in levels.iter().zip(&mut counts) {
                    let threshold = calibrated.threshold(*level);
                    let within = test_scores.iter().filter(|score| **score <= threshold).count() as u64;
                    if split == population {
                        let test = rows.take(test);
                        let sets =
                            Predictor::new(score, Thresholds::One(threshold)).predict(test.logits())?;
                        assert_eq!(covered(&sets, &test.labels), within, "sets and scores disagree");
                    }
                    counts.push(within);
                }
            }
        }
        let verdict = |(counts, level): (&Vec<u64>, &Alpha)| law_holds(counts, n, m, *level);
        Ok(counts.iter().zip(levels).map(verdict).collect())
    }
}

/// How often a shuffled trial draws rows, and tunes where the procedure does.
pub const POPULATIONS: usize = 50;

/// Rows whose set holds the true label.
pub fn covered(sets: &PredictionSets, labels: &[u32]) -> u64 {
    sets.iter().zip(labels).filter(|(set, label)| set.contains(label)).count() as u64
}
