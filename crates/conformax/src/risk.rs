//! Risk: a loss that falls as the set grows, kept below α on average.
//!
//! The threshold is the smallest score `t` of any label with `Σ ℓ_i(t) + B ≤ α(n + 1)`, else +∞, where `B` is the
//! largest loss there is; then `E ℓ ≤ α`. Losses are counted in units of a power of two, at most 2⁻⁶¹ of `B`, rounded
//! up: sums are exact and in any order the same, and what is rounded (a loss of less than 2⁻⁹ of `B` whose bits reach
//! below the unit) errs on the safe side.

use crate::room::append;
use crate::weights::parts;
use crate::{Alpha, Error, Result};

/// Bits that the largest loss takes.
const BOUND_BITS: i32 = 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Severity,
    Cost,
}

/// What a set loses.
///
/// ```
/// use conformax::Loss;
/// let severity = Loss::severity(vec![1.0, 0.25])?;
/// assert_eq!((severity.of(&[1], 0), severity.of(&[0], 0)), (1.0, 0.0));
/// let cost = Loss::cost(vec![0.0, 2.0, 0.5, 1.0, 0.0, 2.0, 1.0, 2.0, 0.0], 3)?;
/// assert_eq!((cost.of(&[1, 2], 0), cost.of(&[], 0), cost.bound()), (0.5, 2.0, 2.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    kind: Kind,
    classes: usize,
    /// One per class, or by class and then by label of the set.
    values: Vec<f64>,
    units: Vec<u64>,
    bound: f64,
    unit: i32,
}

impl Loss {
    /// A miss of a label loses so much: one number per class.
    pub fn severity(of_class: Vec<f64>) -> Result<Self> {
        let classes = of_class.len();
        Self::new(Kind::Severity, classes, of_class)
    }

    /// A set loses the least cost among its labels, `costs[label · classes + other]`; an empty set the largest there
    /// is. The true label costs nothing.
    pub fn cost(costs: Vec<f64>, classes: usize) -> Result<Self> {
        if costs.len() != classes * classes {
            let (what, wanted, got) = ("costs", classes * classes, costs.len());
            return Err(Error::PerLabel { what, wanted, got });
        }
        if let Some(label) = (0..classes).find(|label| costs[label * (classes + 1)] != 0.0) {
            let (what, value) = ("cost of the true label", costs[label * (classes + 1)]);
            return Err(Error::LabelValue { what, wanted: "0", label: label as u32, value });
        }
        Self::new(Kind::Cost, classes, costs)
    }

    fn new(kind: Kind, classes: usize, values: Vec<f64>) -> Result<Self> {
        let (what, per_class) = match kind {
            Kind::Severity => ("severity", 1),
            Kind::Cost => ("cost", classes),
        };
        if let Some(place) = values.iter().position(|value| !(0.0..f64::INFINITY).contains(value)) {
            let (label, value) = ((place / per_class) as u32, values[place]);
            return Err(Error::LabelValue { what, wanted: "a finite number of at least 0", label, value });
        }
        let bound = values.iter().copied().fold(0.0, f64::max);
        if bound == 0.0 {
            return Err(Error::NoLoss { what });
        }
        let (digits, exponent) = parts(bound);
        let unit = exponent + (64 - digits.leading_zeros() as i32) - BOUND_BITS;
        let units = values.iter().map(|value| units_up(*value, unit)).collect();
        Ok(Self { kind, classes, values, units, bound, unit })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The largest loss there is.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Whether it is the least cost among a set's labels rather than the severity of a miss.
    pub fn is_cost(&self) -> bool {
        self.kind == Kind::Cost
    }

    /// The numbers it was made of.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// What a set loses where this is the true label.
    pub fn of(&self, set: &[u32], label: u32) -> f64 {
        self.value(self.units_of(set, label).into())
    }

    pub(crate) fn units_of(&self, set: &[u32], label: u32) -> u64 {
        match self.kind {
            Kind::Severity if set.contains(&label) => 0,
            Kind::Severity => self.units[label as usize],
            Kind::Cost => {
                let costs = set.iter().map(|other| self.cost_units(label, *other));
                costs.min().unwrap_or(self.bound_units())
            }
        }
    }

    /// A number of units as a number.
    pub(crate) fn value(&self, units: u128) -> f64 {
        // In two steps, as a loss may be so small or so large that the power of two alone is none.
        let half = self.unit / 2;
        units as f64 * power_of_two(half) * power_of_two(self.unit - half)
    }

    fn bound_units(&self) -> u64 {
        units_up(self.bound, self.unit)
    }

    fn cost_units(&self, label: u32, other: u32) -> u64 {
        self.units[label as usize * self.classes + other as usize]
    }

    /// What an empty set loses.
    pub(crate) fn of_empty(&self, label: u32) -> u64 {
        match self.kind {
            Kind::Severity => self.units[label as usize],
            Kind::Cost => self.bound_units(),
        }
    }

    /// Appends where the loss of a row falls as the threshold grows, and by how much, given the labels that score no
    /// more than the true one, with their scores.
    pub(crate) fn steps_into(&self, label: u32, mut scored: Vec<(f64, u32)>, steps: &mut Vec<(f64, u64)>) {
        scored.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut loss = self.of_empty(label);
        for (score, other) in scored {
            let next = match self.kind {
                Kind::Severity if other == label => 0,
                Kind::Severity => continue,
                Kind::Cost => self.cost_units(label, other).min(loss),
            };
            if next < loss || other == label {
                steps.push((score, loss - next));
                loss = next;
            }
        }
    }

    /// `⌊α(n + 1)⌋` in units.
    fn allowed(&self, n: u64, alpha: Alpha) -> u128 {
        let rows = u128::from(n) + 1;
        match u32::try_from(self.unit) {
            Ok(up) => alpha.floor_of(rows).checked_shr(up).unwrap_or(0),
            Err(_) => {
                let down = self.unit.unsigned_abs();
                // Beyond that the losses are so small that any level allows them all.
                if down < rows.leading_zeros() { alpha.floor_of(rows << down) } else { u128::MAX }
            }
        }
    }
}

/// `2^exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A number in units of `2^unit`, rounded up.
fn units_up(value: f64, unit: i32) -> u64 {
    let (digits, exponent) = parts(value);
    match (digits, exponent - unit) {
        (0, _) => 0,
        (_, up @ 0..) => digits << up,
        (_, down) if down < -63 => 1,
        (_, down) => {
            let down = down.unsigned_abs();
            (digits >> down) + u64::from(digits & ((1 << down) - 1) != 0)
        }
    }
}

/// Where the losses of calibration rows fall as the threshold grows: the evidence of risk control.
///
/// ```
/// use conformax::{Calibrator, EntmaxScore, Evidence, Logits, Loss, Scheme};
/// let severity = Scheme::Risk(Loss::severity(vec![1.0, 0.5])?);
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?.under(severity)?;
/// calibrator.extend(Logits::new(&[1.0_f32, 3.0, 2.0, 0.0], 2)?.labelled(&[0, 0])?)?;
/// let calibration = calibrator.finish()?;
/// let Evidence::Losses(losses) = calibration.evidence() else { unreachable!("the scheme is of a risk") };
/// assert_eq!(losses.steps().iter().map(|(score, _)| *score).collect::<Vec<_>>(), [0.0, 2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossSteps {
    pub(crate) n: u64,
    /// The losses of empty sets.
    pub(crate) start: u128,
    /// A score, and by how much the loss of its row falls there; ascending once finished.
    pub(crate) steps: Vec<(f64, u64)>,
}

impl LossSteps {
    /// Of steps that were kept before. An error where they are out of order or fall below nothing.
    pub fn from_parts(n: u64, start: u128, steps: Vec<(f64, u64)>) -> Result<Self> {
        let fall: u128 = steps.iter().map(|(_, fall)| u128::from(*fall)).sum();
        if n == 0 {
            return Err(Error::NoCalibrationRows);
        }
        let ordered = steps.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        if !ordered || fall != start || steps.iter().any(|(score, _)| score.is_nan()) {
            return Err(Error::Bytes {
                wanted: "the losses of calibration rows",
                what: "they do not fall to nothing",
            });
        }
        Ok(Self { n, start, steps })
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The losses of empty sets, in the loss's units.
    pub fn start(&self) -> u128 {
        self.start
    }

    /// Scores, ascending, and by how much the loss of a row falls at each, in the loss's units.
    pub fn steps(&self) -> &[(f64, u64)] {
        &self.steps
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.start += other.start;
        append(&mut self.steps, &other.steps);
    }

    pub(crate) fn sort(&mut self) {
        self.steps.sort_unstable_by(|(a, v), (b, w)| a.total_cmp(b).then(v.cmp(w)));
    }

    /// The threshold at which the expected loss is at most α.
    pub fn threshold(&self, loss: &Loss, alpha: Alpha) -> f64 {
        let Some(room) = loss.allowed(self.n, alpha).checked_sub(loss.bound_units().into()) else {
            return f64::INFINITY;
        };
        let mut left = self.start;
        let reached = self.steps.iter().find(|(_, fall)| {
            left -= u128::from(*fall);
            left <= room
        });
        reached.map_or(f64::INFINITY, |(score, _)| *score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_round_up() {
        assert_eq!(units_up(1.0, -61), 1 << 61);
        assert_eq!(units_up(1.0, 1), 1);
        assert_eq!(units_up(3.0, 1), 2);
        assert_eq!(units_up(4.0, 1), 2);
        assert_eq!(units_up(1e-300, -61), 1);
        assert_eq!(units_up(0.0, -61), 0);
    }

    #[test]
    fn losses_of_any_size_scale() {
        let steps = |loss: &Loss| {
            let mut all = LossSteps { n: 99, ..LossSteps::default() };
            for score in 0..99 {
                all.start += u128::from(loss.of_empty(0));
                loss.steps_into(0, vec![(f64::from(score), 0)], &mut all.steps);
            }
            all
        };
        let alpha = Alpha::new(0.1).unwrap();
        let one = Loss::severity(vec![1.0]).unwrap();
        assert_eq!(steps(&one).threshold(&one, alpha), 89.0, "split conformal: rank 90");
        let eighth = Loss::severity(vec![0.125]).unwrap();
        assert_eq!(steps(&eighth).threshold(&eighth, Alpha::new(0.0125).unwrap()), 89.0);
        let large = Loss::severity(vec![1e30]).unwrap();
        assert_eq!(steps(&large).threshold(&large, alpha), f64::INFINITY);
        let small = Loss::severity(vec![1e-30]).unwrap();
        assert_eq!(steps(&small).threshold(&small, alpha), 0.0);
    }
}
