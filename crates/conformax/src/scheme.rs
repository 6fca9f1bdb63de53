//! `Scheme`: how thresholds follow from calibration rows, and what is gathered of these for it.

use crate::{Error, Logit, Logits, Loss, LossSteps, Result, Taxonomy};

/// How thresholds follow from calibration rows.
///
/// ```
/// use conformax::{Calibrator, EntmaxScore, Loss, Scheme};
/// let severity = Scheme::Risk(Loss::severity(vec![1.0, 0.1])?);
/// assert!(Calibrator::new(EntmaxScore::default(), 2)?.under(severity).is_ok());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// A threshold for each group; one for all rows by default.
    Groups(Taxonomy),
    /// By the weights that come with the rows, of those that calibrate and those to come
    /// ([`Logits::with_weights`]).
    RowWeights,
    /// By a weight per label: a threshold for each.
    LabelWeights(Vec<f64>),
    /// One threshold that keeps an expected loss below the level.
    Risk(Loss),
}

impl Default for Scheme {
    fn default() -> Self {
        Self::Groups(Taxonomy::All)
    }
}

impl Scheme {
    /// The error of a scheme for another number of classes, or of weights that are none.
    pub fn check(&self, classes: usize) -> Result<()> {
        let per_label = |what, got| match got == classes {
            true => Ok(()),
            false => Err(Error::PerLabel { what, wanted: classes, got }),
        };
        match self {
            Self::Groups(taxonomy) => taxonomy.check(classes),
            Self::RowWeights => Ok(()),
            Self::LabelWeights(weights) => {
                per_label("weights of labels", weights.len())?;
                if let Some(label) = weights.iter().position(|weight| !(0.0..f64::INFINITY).contains(weight))
                {
                    let (what, wanted) = ("weight", "a finite number of at least 0");
                    let (label, value) = (label as u32, weights[label]);
                    return Err(Error::LabelValue { what, wanted, label, value });
                }
                match weights.iter().any(|weight| *weight > 0.0) {
                    true => Ok(()),
                    false => Err(Error::NoWeight),
                }
            }
            Self::Risk(loss) => per_label("classes of a loss", loss.classes()),
        }
    }

    /// The error of rows that lack what the scheme needs of each.
    pub(crate) fn expect<T: Logit>(&self, logits: Logits<'_, T>) -> Result<()> {
        match self {
            Self::Groups(taxonomy) => taxonomy.expect(logits),
            Self::RowWeights => logits.weights().map(|_| ()),
            Self::LabelWeights(_) | Self::Risk(_) => Ok(()),
        }
    }

    pub(crate) fn nothing_gathered(&self, classes: usize) -> Gathered {
        match self {
            Self::Groups(taxonomy) => Gathered::Groups(vec![Vec::new(); taxonomy.groups(classes)]),
            Self::RowWeights | Self::LabelWeights(_) => Gathered::Weighted(Vec::new()),
            Self::Risk(_) => Gathered::Steps(LossSteps::default()),
        }
    }
}

/// What a calibrator has so far.
#[derive(Clone, Debug)]
pub(crate) enum Gathered {
    /// The scores of each group, in the order they came.
    Groups(Vec<Vec<f64>>),
    /// Scores and the weights of their rows, in the order they came.
    Weighted(Vec<(f64, f64)>),
    /// Where losses fall, in no order.
    Steps(LossSteps),
}

impl Gathered {
    pub(crate) fn n(&self) -> u64 {
        match self {
            Self::Groups(groups) => groups.iter().map(|scores| scores.len() as u64).sum(),
            Self::Weighted(scores) => scores.len() as u64,
            Self::Steps(steps) => steps.n,
        }
    }
}
