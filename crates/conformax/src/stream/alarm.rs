//! `Alarm`: bets against exchangeability, whose capital is ever at least `1/δ` with probability at most δ as long as
//! nothing changes (Vovk and others 2021).

use super::counted::Counted;
use crate::kernel::math::{exp, ln};
use crate::random::mix;
use crate::{Error, Result};

/// Capital that grows when scores stop being exchangeable: a Simple Jumper over smoothed p-values.
///
/// ```
/// use conformax::Alarm;
/// let mut alarm = Alarm::new(&[1.0, 2.0, 3.0, 4.0], 0.01, 0)?;
/// for strange in 5..60 {
///     alarm.update(f64::from(strange), None)?;
/// }
/// assert!(alarm.capital() > 20.0); // at most once in twenty streams where nothing changed
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    /// The scores of each group: those of one are strange or not among themselves.
    pub(crate) seen: Vec<Counted>,
    pub(crate) jump: f64,
    pub(crate) seed: u64,
    pub(crate) updates: u64,
    /// Shares of the capital that bet on small, on no, and on large p-values.
    pub(crate) shares: [f64; 3],
    pub(crate) log_capital: f64,
    pub(crate) highest: f64,
}

/// What each share bets on.
const BETS: [f64; 3] = [-1.0, 0.0, 1.0];

impl Alarm {
    /// Against these calibration scores. A share `jump` of the capital changes its bet after every row; `seed` is that
    /// of the draws that break ties.
    pub fn new(scores: &[f64], jump: f64, seed: u64) -> Result<Self> {
        Self::by_group([scores], jump, seed)
    }

    /// The same with scores of several groups: smoothed p-values within each are as independent and uniform as those of
    /// one, so they may bet with one capital.
    pub(crate) fn by_group<'a>(
        groups: impl IntoIterator<Item = &'a [f64]>,
        jump: f64,
        seed: u64,
    ) -> Result<Self> {
        if !(0.0..=1.0).contains(&jump) {
            return Err(Error::Parameter { name: "jump", wanted: "between 0 and 1", got: jump });
        }
        let seen = groups.into_iter().map(Counted::of).collect::<Result<_>>()?;
        Ok(Self { seen, jump, seed, updates: 0, shares: [1.0 / 3.0; 3], log_capital: 0.0, highest: 0.0 })
    }

    /// Takes in the score of a true label, and returns the logarithm of the capital. `u` is the draw that breaks ties,
    /// the alarm's own where not given.
    pub fn update(&mut self, score: f64, u: Option<f64>) -> Result<f64> {
        self.update_in(0, score, u)
    }

    /// The same in a group.
    pub(crate) fn update_in(&mut self, group: usize, score: f64, u: Option<f64>) -> Result<f64> {
        self.p_value(group, score, u).map(|p| self.bet(p))
    }

    /// Capital 1 and these scores again; draws go on where they were.
    pub(crate) fn restarted<'a>(&self, groups: impl IntoIterator<Item = &'a [f64]>) -> Result<Self> {
        Ok(Self { updates: self.updates, ..Self::by_group(groups, self.jump, self.seed)? })
    }

    /// Takes in a score and returns its smoothed p-value among all scores so far, without a bet.
    fn p_value(&mut self, group: usize, score: f64, u: Option<f64>) -> Result<f64> {
        if score.is_nan() {
            return Err(Error::ScoreIsNan { row: self.updates });
        }
        let drawn = (mix(mix(self.seed) ^ self.updates) >> 11) as f64 / (1_u64 << 53) as f64;
        let u = u.unwrap_or(drawn);
        if !(0.0..1.0).contains(&u) {
            return Err(Error::Draw { row: self.updates, value: u });
        }
        let seen = &mut self.seen[group];
        seen.insert(score);
        self.updates += 1;
        let (above, equal) = seen.above_and_equal(score);
        Ok((above as f64 + u * equal as f64) / seen.len() as f64)
    }

    fn bet(&mut self, p: f64) -> f64 {
        let mut won = 0.0;
        for (share, bet) in self.shares.iter_mut().zip(BETS) {
            *share = ((1.0 - self.jump) * *share + self.jump / 3.0) * (1.0 + bet * (p - 0.5));
            won += *share;
        }
        self.shares.iter_mut().for_each(|share| *share /= won);
        self.log_capital += ln(won);
        self.highest = self.highest.max(self.log_capital);
        self.log_capital
    }

    /// The capital, which began at 1; it may overflow where its logarithm does not.
    pub fn capital(&self) -> f64 {
        exp(self.log_capital)
    }

    /// The logarithm of the capital.
    pub fn log_capital(&self) -> f64 {
        self.log_capital
    }

    /// The largest logarithm so far: with probability at least `1 − δ` it never reaches `ln(1/δ)` where nothing
    /// changes.
    pub fn highest(&self) -> f64 {
        self.highest
    }

    /// Scores seen, those of calibration included.
    pub fn rows(&self) -> u64 {
        self.seen.iter().map(Counted::len).sum()
    }
}
