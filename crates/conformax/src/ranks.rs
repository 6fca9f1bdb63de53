//! `Ranks`: how far down the ranking a label may stand and still be looked at.
//!
//! `S'(x, y) = S(x, y)` where the rank of `y` is at most that of its class, else +∞. The ranks are chosen on rows that
//! do not calibrate, so thresholds per class on `S'` keep the guarantee of each class.

use std::sync::Arc;

use crate::{Alpha, Error, Logit, Result, Row};

/// The largest rank of each label; a label that stands behind it scores +∞. Tied labels take the rank of the last.
///
/// ```
/// use conformax::{EntmaxScore, Logits, Predictor, Ranks, Thresholds};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(9.0)).with_ranks(Ranks::new(vec![3, 1, 3])?);
/// let sets = model.predict(Logits::new(&[3.0_f32, 2.0, 1.0], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[0, 2][..])); // label 1 counts only where it is the first
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(Arc<[u32]>);

impl Ranks {
    /// One per label, from 1 on.
    pub fn new(ranks: Vec<u32>) -> Result<Self> {
        if let Some(label) = ranks.iter().position(|rank| *rank == 0) {
            let (what, wanted) = ("largest rank", "at least 1");
            return Err(Error::LabelValue { what, wanted, label: label as u32, value: 0.0 });
        }
        Ok(Self(ranks.into()))
    }

    /// Chosen by the ranks of true labels, label by label, in rows that do not calibrate.
    ///
    /// Half of a class's misses may come from its rank, the other half stays for its score: the rank is the smallest
    /// that no more than `α/2` of the class's rows exceed, by the conformal rule. A class with too few rows for that
    /// has no limit.
    pub(crate) fn chosen(of_labels: Vec<Vec<u32>>, alpha: Alpha) -> Result<Self> {
        let classes = of_labels.len() as u32;
        let of_label = |mut ranks: Vec<u32>| {
            let n = ranks.len() as u64;
            // The conformal rank at α/2, and a half of an integer loses nothing of the floor.
            let misses = alpha.floor_of(u128::from(n) + 1) / 2;
            let wanted = u64::try_from(u128::from(n) + 1 - misses).ok().filter(|rank| *rank <= n);
            wanted.map_or(classes, |wanted| *ranks.select_nth_unstable(wanted as usize - 1).1)
        };
        Self::new(of_labels.into_iter().map(of_label).collect())
    }

    /// The largest rank of each label.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Whether a label stands no further down than it may.
    #[inline]
    pub(crate) fn hold<T: Logit>(&self, row: Row<'_, T>, label: u32) -> bool {
        let most = self.0[label as usize] as usize;
        most >= row.classes() || rank_of(row, label) <= most
    }

    /// The same where the rank is known.
    pub(crate) fn allow(&self, label: u32, rank: u32) -> bool {
        rank <= self.0[label as usize]
    }

    /// The error of rows of another number of classes.
    pub(crate) fn check(&self, classes: usize) -> Result<()> {
        if self.0.len() == classes {
            return Ok(());
        }
        Err(Error::PerLabel { what: "largest ranks", wanted: classes, got: self.0.len() })
    }
}

/// The place of a label in the ranking, from 1 on; of tied labels that of the last.
pub(crate) fn rank_of<T: Logit>(row: Row<'_, T>, label: u32) -> usize {
    let own = row.logit(label);
    row.logits().iter().filter(|logit| logit.to_f64() >= own).count()
}
