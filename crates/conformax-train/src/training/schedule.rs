//! `Schedule`: the step size of every step, up during the warm-up and down afterwards.

use serde::{Deserialize, Serialize};

/// How the step size falls after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// It does not.
    Constant,
    /// In a straight line to zero.
    #[default]
    Linear,
    /// Along half a cosine to zero.
    Cosine,
}

/// Step sizes of a run.
///
/// ```
/// use conformax_train::{Decay, Schedule};
/// let schedule = Schedule { peak: 0.5, warmup: 2, steps: 6, decay: Decay::Linear };
/// let rates: Vec<f64> = (0..6).map(|step| schedule.rate(step)).collect();
/// assert_eq!(rates, [0.25, 0.5, 0.5, 0.375, 0.25, 0.125]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// The largest step size.
    pub peak: f64,
    /// Steps over which it is reached.
    pub warmup: u64,
    /// All steps, the warm-up included.
    pub steps: u64,
    /// How it falls afterwards.
    pub decay: Decay,
}

impl Schedule {
    /// The step size of a step, counted from 0. It is above 0 inside the run, so that no step is for nothing.
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        let falling = self.steps.saturating_sub(self.warmup).max(1) as f64;
        let share = ((step - self.warmup) as f64 / falling).min(1.0);
        self.peak
            * match self.decay {
                Decay::Constant => 1.0,
                Decay::Linear => 1.0 - share,
                Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * share).cos()),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_then_falls_to_nothing() {
        for decay in [Decay::Linear, Decay::Cosine] {
            let schedule = Schedule { peak: 2.0, warmup: 10, steps: 110, decay };
            let rates: Vec<f64> = (0..110).map(|step| schedule.rate(step)).collect();
            assert!(rates[..10].windows(2).all(|pair| pair[0] < pair[1]), "{decay:?}");
            assert!(rates[10..].windows(2).all(|pair| pair[0] > pair[1]), "{decay:?}");
            assert_eq!((rates[9], rates[10], rates[60]), (2.0, 2.0, schedule.rate(60)));
            assert!((rates[60] - 1.0).abs() < 1e-12, "half way down, {decay:?}: {}", rates[60]);
            assert!(rates.iter().all(|rate| *rate > 0.0));
            assert_eq!(schedule.rate(110), 0.0);
        }
    }

    #[test]
    fn stays_where_it_should() {
        let schedule = Schedule { peak: 0.1, warmup: 0, steps: 5, decay: Decay::Constant };
        assert_eq!([schedule.rate(0), schedule.rate(4)], [0.1, 0.1]);
    }

    #[test]
    fn a_warm_up_of_every_step_divides_by_nothing() {
        let schedule = Schedule { peak: 1.0, warmup: 4, steps: 4, decay: Decay::Cosine };
        assert_eq!([schedule.rate(3), schedule.rate(4)], [1.0, 1.0]);
    }
}
