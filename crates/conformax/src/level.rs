//! `Level`: what is promised at a miscoverage level, and why: so many rows, this rank among them.

use crate::law::pac_rank_at;
use crate::{Alpha, CoverageLaw};

/// `⌈(n + 1)(1 − α)⌉` in exact arithmetic, or `None` where that exceeds `n` and the threshold is infinite.
///
/// ```
/// use conformax::{Alpha, conformal_rank};
/// assert_eq!(conformal_rank(149, Alpha::new(0.18)?), Some(123)); // 150 × 0.82; floating point says 124
/// assert_eq!(conformal_rank(8, Alpha::new(0.1)?), None);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn conformal_rank(n: u64, alpha: Alpha) -> Option<u64> {
    let places = u128::from(n) + 1;
    let rank = places - alpha.floor_of(places);
    u64::try_from(rank).ok().filter(|rank| *rank <= n)
}

/// A miscoverage level with the calibration rows behind it. The rank follows from the two.
///
/// By default `1 − α` is the mean of coverage over calibration rows. With a `δ` coverage is at least `1 − α` with
/// probability `1 − δ` over them, which takes a higher rank.
///
/// ```
/// use conformax::{Alpha, Level};
/// let level = Level::new(99, Alpha::new(0.1)?);
/// assert_eq!((level.rank(), level.law().mean()), (Some(90), 0.9));
/// assert_eq!(Level::new(5, Alpha::new(0.1)?).rows_wanted(), Some(9));
/// assert_eq!(level.with_delta(Alpha::new(0.05)?).rank(), Some(95));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    alpha: Alpha,
    n: u64,
    delta: Option<Alpha>,
}

impl Level {
    /// At this level, with `n` calibration rows.
    pub fn new(n: u64, alpha: Alpha) -> Self {
        Self { alpha, n, delta: None }
    }

    /// The same with probability `1 − δ` over the calibration rows.
    #[must_use]
    pub fn with_delta(self, delta: Alpha) -> Self {
        Self { delta: Some(delta), ..self }
    }

    /// Miscoverage level.
    pub fn alpha(self) -> Alpha {
        self.alpha
    }

    /// Calibration rows.
    pub fn n(self) -> u64 {
        self.n
    }

    /// The probability, over calibration rows, that coverage may fall short, where the level is one of those.
    pub fn delta(self) -> Option<Alpha> {
        self.delta
    }

    /// Rank of the threshold among the calibration scores; `None` where there are too few rows for the level.
    pub fn rank(self) -> Option<u64> {
        match self.delta {
            None => conformal_rank(self.n, self.alpha),
            Some(delta) => pac_rank_at(self.n, self.alpha, delta.value()),
        }
    }

    /// The rows that would have been enough, where there are too few.
    pub fn rows_wanted(self) -> Option<u64> {
        self.rank().is_none().then(|| self.rows_needed())
    }

    /// The fewest rows that give the level a finite threshold.
    pub fn rows_needed(self) -> u64 {
        match self.delta {
            None => self.alpha.rows_needed(),
            // The largest of n scores is enough where (1 − α)ⁿ ≤ δ.
            Some(delta) => {
                let enough = |n: u64| pac_rank_at(n, self.alpha, delta.value()).is_some();
                let mut high = 1_u64;
                while !enough(high) && high < 1 << 62 {
                    high *= 2;
                }
                let mut low = high / 2;
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if enough(middle) { high = middle } else { low = middle }
                }
                high
            }
        }
    }

    /// The law that realised coverage follows where no scores tie; with ties it is at least that.
    pub fn law(self) -> CoverageLaw {
        CoverageLaw::at_rank(self.n, self.rank())
    }
}

/// What calibration promises, made by nothing else.
///
/// ```
/// use conformax::{Alpha, Calibrator, EntmaxScore, Logits, Promise, Taxonomy};
/// let logits = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?;
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?.by(Taxonomy::Label)?;
/// calibrator.extend(logits.labelled(&[0, 1, 0])?)?;
/// let (_, promise) = calibrator.finish()?.at(Alpha::new(0.4)?);
/// let Promise::Groups { levels, .. } = promise else { unreachable!("by label") };
/// assert_eq!((levels[0].n(), levels[1].rank()), (2, None));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Promise {
    /// Coverage of at least `1 − α` over all rows.
    Marginal(Level),
    /// Coverage of at least `1 − α` within every group, each by its own rows.
    Groups {
        /// Miscoverage level.
        alpha: Alpha,
        /// The level of each group.
        levels: Vec<Level>,
    },
    /// Coverage of at least `1 − α` over all rows where the weights are right: approximate where they are estimated.
    Weighted {
        /// Miscoverage level.
        alpha: Alpha,
        /// Calibration rows.
        n: u64,
    },
    /// Coverage of at least `1 − α` over all rows by a choice that all calibration rows had a say in: no law of
    /// coverage.
    Selected(Level),
    /// An expected loss of at most α.
    Risk {
        /// The bound on the expected loss.
        alpha: Alpha,
        /// Calibration rows.
        n: u64,
    },
}

impl Promise {
    /// Miscoverage level.
    pub fn alpha(&self) -> Alpha {
        match self {
            Self::Marginal(level) | Self::Selected(level) => level.alpha(),
            Self::Groups { alpha, .. } | Self::Weighted { alpha, .. } | Self::Risk { alpha, .. } => *alpha,
        }
    }
}
