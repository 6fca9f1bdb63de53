//! `Level`: what is promised at a miscoverage level, and why: so many rows, this rank among them.

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
/// ```
/// use conformax::{Alpha, Level};
/// let level = Level::new(99, Alpha::new(0.1)?);
/// assert_eq!((level.rank(), level.law().mean()), (Some(90), 0.9));
/// assert_eq!(Level::new(5, Alpha::new(0.1)?).rows_wanted(), Some(9));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    alpha: Alpha,
    n: u64,
}

impl Level {
    /// At this level, with `n` calibration rows.
    pub fn new(n: u64, alpha: Alpha) -> Self {
        Self { alpha, n }
    }

    /// Miscoverage level.
    pub fn alpha(self) -> Alpha {
        self.alpha
    }

    /// Calibration rows.
    pub fn n(self) -> u64 {
        self.n
    }

    /// Rank of the threshold among the calibration scores; `None` where there are too few rows for the level.
    pub fn rank(self) -> Option<u64> {
        conformal_rank(self.n, self.alpha)
    }

    /// The rows that would have been enough, where there are too few.
    pub fn rows_wanted(self) -> Option<u64> {
        self.rank().is_none().then(|| self.alpha.rows_needed())
    }

    /// The law that realised coverage follows where no scores tie; with ties it is at least that.
    pub fn law(self) -> CoverageLaw {
        CoverageLaw::at_level(self.n, self.alpha)
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
}

impl Promise {
    /// Miscoverage level.
    pub fn alpha(&self) -> Alpha {
        match self {
            Self::Marginal(level) => level.alpha(),
            Self::Groups { alpha, .. } => *alpha,
        }
    }
}
