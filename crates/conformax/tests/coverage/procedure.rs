//! `Procedure`: how calibrating rows become a predictor, and `Trial`: what it covers, split after split.

use std::fmt;

use conformax::{
    Alpha, ApsScore, Calibrated, CalibratingRows, Draw, EntmaxScore, Gamma, InvProbScore, MarginScore,
    Masked, PredictionSets, RapsScore, Result, SapsScore, ScoreSpec, TopKScore, Tuning, TuningRows,
    calibrate, entmax_grid, raps_grid, tune,
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
        let draw = Draw::Seeded(7);
        let entmax = [1.0, 1.3, 1.5, 2.0]
            .map(|gamma| ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(gamma).expect("at least 1") }));
        let others = [
            ScoreSpec::InvProb(InvProbScore),
            ScoreSpec::Aps(ApsScore { draw }),
            ScoreSpec::Raps(RapsScore { lambda: 0.1, k_reg: 2, draw, ..RapsScore::default() }),
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
    fn calibrate(&self, trial: Trial, rows: &Rows, random: &mut Random) -> Result<Calibrated<ScoreSpec>> {
        match self {
            Self::Plain(score) => calibrate(*score, rows.logits(), &rows.labels, trial.alpha),
            Self::OptEntmax(tuning) | Self::OptRaps(tuning) => {
                let chosen = trial.pool.draw((2 * trial.n / 3).max(1), random);
                let tuned = tune(
                    &self.grid(),
                    TuningRows::new(chosen.logits(), &chosen.labels)?,
                    CalibratingRows::new(rows.logits(), &rows.labels)?,
                    trial.alpha,
                    *tuning,
                    Masked::Allowed,
                )?;
                Ok(tuned.calibration.at(trial.alpha))
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
}

/// Rows whose set holds the true label.
pub fn covered(sets: &PredictionSets, labels: &[u32]) -> u64 {
    sets.iter().zip(labels).filter(|(set, label)| set.contains(label)).count() as u64
}
