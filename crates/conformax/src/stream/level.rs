//! `AdaptiveLevel`: a level that moves after every row, so that misses come at the rate asked for whatever the sequence
//! (Gibbs, Candès 2021; Angelopoulos, Barber, Bates 2024).

use crate::kernel::math::pow;
use crate::{Alpha, Error, Result};

/// A miscoverage level that adapts: `α ← α + η(α₀ − miss)` after every row.
///
/// It may leave (0, 1): at 0 and below sets are full, at 1 and above empty.
///
/// ```
/// use conformax::{AdaptiveLevel, Alpha};
/// let mut level = AdaptiveLevel::new(Alpha::new(0.1)?, 0.05, None)?;
/// assert!(level.update(0.02)); // a p-value of at most the level is a miss, and the level falls
/// assert_eq!(level.level(), 0.1 + 0.05 * (0.1 - 1.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLevel {
    pub(crate) target: Alpha,
    pub(crate) step: f64,
    pub(crate) decay: Option<f64>,
    pub(crate) level: f64,
    pub(crate) rows: u64,
    pub(crate) misses: u64,
}

impl AdaptiveLevel {
    /// With the step `η`, or `η·t^−decay` where it decays: at a rate between one half and one the level settles where
    /// nothing changes. A step of 0 keeps the level.
    pub fn new(target: Alpha, step: f64, decay: Option<f64>) -> Result<Self> {
        if !(0.0..f64::INFINITY).contains(&step) {
            let (name, wanted) = ("step", "a finite number of at least 0");
            return Err(Error::Parameter { name, wanted, got: step });
        }
        if let Some(decay) = decay.filter(|decay| !(*decay > 0.0 && *decay <= 1.0)) {
            return Err(Error::Parameter { name: "decay", wanted: "above 0 and at most 1", got: decay });
        }
        Ok(Self { target, step, decay, level: target.value(), rows: 0, misses: 0 })
    }

    /// The level of the next row.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Labelled rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them were missed.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// The level asked for.
    pub fn target(&self) -> Alpha {
        self.target
    }

    /// Takes in the p-value of a true label; whether its set missed it.
    pub fn update(&mut self, p_value: f64) -> bool {
        let miss = p_value <= self.level;
        self.take_in(miss);
        miss
    }

    /// Takes in whether a set missed its label, for labels that come late: their sets had the level of their time.
    pub fn take_in(&mut self, miss: bool) {
        self.rows += 1;
        let step = match self.decay {
            None => self.step,
            Some(decay) => self.step * pow(self.rows as f64, -decay),
        };
        self.level += step * (self.target.value() - f64::from(u8::from(miss)));
        self.misses += u64::from(miss);
    }

    /// How far the share of misses may be from the level asked for, whatever p-values came. A miss that
    /// [`take_in`](Self::take_in) is told of at a level of 0 or below is of none, and has no bound.
    pub fn bound(&self) -> f64 {
        let (t, target) = (self.rows as f64, self.target.value());
        match self.decay {
            _ if self.step == 0.0 || self.rows == 0 => f64::INFINITY,
            None => (target.max(1.0 - target) + self.step) / (self.step * t),
            Some(decay) => (1.0 + self.step) / (t * self.step * pow(t, -decay)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::mix;

    #[test]
    fn misses_keep_to_their_bounds_whatever_comes() {
        for (step, decay) in [(0.05, None), (0.005, None), (3.0, None), (0.2, Some(0.6)), (1.0, Some(0.6))] {
            // Rows that are missed as often, or as seldom, as can be, or every now and then.
            keeps_to_its_bounds(step, decay, "missed", |_, _| 0.0);
            keeps_to_its_bounds(step, decay, "covered", |_, _| 1.0);
            let sometimes = |row, _| if mix(row).is_multiple_of(3) { 0.0 } else { 1.0 };
            keeps_to_its_bounds(step, decay, "sometimes missed", sometimes);
            // Adversaries who know the level: one drives it as far down as misses can, then up as far as covered rows
            // can, and so on; the other misses just below the level asked for and covers above it.
            let mut is_falling = true;
            keeps_to_its_bounds(step, decay, "driven to both ends", |_, level| {
                is_falling = if is_falling { level > 0.0 } else { level >= 1.0 };
                if is_falling { 0.0 } else { 1.0 }
            });
            let pushed_on = |_, level| if level < TARGET { 0.0 } else { 1.0 };
            keeps_to_its_bounds(step, decay, "pushed away", pushed_on);
        }
    }

    const TARGET: f64 = 0.1;

    /// A million rows whose p-values somebody chooses who knows their number and the level; after each, the share of
    /// misses is held to the formula.
    fn keeps_to_its_bounds(
        step: f64,
        decay: Option<f64>,
        name: &str,
        mut p_value: impl FnMut(u64, f64) -> f64,
    ) {
        let mut level = AdaptiveLevel::new(Alpha::new(TARGET).unwrap(), step, decay).unwrap();
        let mut misses = 0_u64;
        for row in 1..=1_000_000_u64 {
            let (p, at) = (p_value(row, level.level()), level.level());
            let miss = level.update(p);
            assert_eq!(miss, p <= at, "{name}: row {row} at {at}");
            misses += u64::from(miss);
            let t = row as f64;
            let bound = match decay {
                // (max(α, 1 − α) + η)/(η T)
                None => (0.9 + step) / (step * t),
                // (1 + η)/(T η_T), where η_T = η T^−d
                Some(decay) => (1.0 + step) / (t * step * pow(t, -decay)),
            };
            let off = (misses as f64 / t - TARGET).abs();
            assert!(
                off <= bound * (1.0 + 1e-9),
                "{name}, step {step} {decay:?}, row {row}: {off} over {bound}"
            );
            assert!((level.bound() / bound - 1.0).abs() < 1e-12, "{name}: {} for {bound}", level.bound());
        }
    }
}
