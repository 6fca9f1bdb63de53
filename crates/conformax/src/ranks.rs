//! `Ranks`: how far down the ranking a label may stand and still be looked at.
//!
//! `S'(x, y) = S(x, y)` where the rank of `y` is at most that of its class, else +∞. The ranks are chosen on rows that
//! do not calibrate, so thresholds per class on `S'` keep the guarantee of each class.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rows::{map_chunks, visit_rows};
use crate::{Alpha, Error, Labelled, Logit, Logits, Result, Row};

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

    /// The error of rows of another number of classes.
    pub(crate) fn check(&self, classes: usize) -> Result<()> {
        if self.0.len() == classes {
            return Ok(());
        }
        Err(Error::PerLabel { what: "largest ranks", wanted: classes, got: self.0.len() })
    }
}

/// The place of a label in the ranking, from 1 on; of tied labels that of the last.
fn rank_of<T: Logit>(row: Row<'_, T>, label: u32) -> usize {
    let own = row.logit(label);
    row.logits().iter().filter(|logit| logit.to_f64() >= own).count()
}

/// Chooses the largest rank of each label on rows that do not calibrate.
///
/// Half of a class's misses may come from its rank, the other half stays for its score: the rank is the smallest that
/// no more than `α/2` of the class's rows exceed, by the conformal rule. A class with too few rows for that has no
/// limit. An accumulator: any blocks in any order, merged or not, give the same ranks.
///
/// ```
/// use conformax::{Alpha, Logits, RankChooser};
/// let logits = Logits::new(&[3.0_f32, 2.0, 1.0, 0.0, 5.0, 1.0, 4.0, 6.0, 1.0], 3)?;
/// let mut chooser = RankChooser::new(3)?;
/// chooser.extend(logits.labelled(&[0, 1, 0])?)?;
/// assert_eq!(chooser.finish(Alpha::new(0.8)?)?.as_slice(), [2, 3, 3]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankChooser {
    /// For each label, how many of its rows have each rank.
    pub(crate) counts: Vec<BTreeMap<u32, u64>>,
    pub(crate) n: u64,
}

impl RankChooser {
    /// On rows of so many classes.
    pub fn new(classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        Ok(Self { counts: vec![BTreeMap::new(); classes], n: 0 })
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let (wanted, got) = (self.counts.len(), rows.logits().classes());
        if wanted != got {
            return Err(Error::ClassCount { wanted, got });
        }
        let chunks = map_chunks(rows.logits(), |first, chunk| {
            let mut ranks = Vec::with_capacity(chunk.len());
            visit_rows(first, chunk, |index, row| {
                ranks.push(rank_of(row, rows.labels()[first + index]) as u32);
                Ok(())
            })?;
            Ok(ranks)
        });
        let chunks = chunks.map_err(|error| error.offset_rows(self.n))?;
        for (label, rank) in rows.labels().iter().zip(chunks.concat()) {
            *self.counts[*label as usize].entry(rank).or_insert(0) += 1;
        }
        self.n += rows.len() as u64;
        Ok(())
    }

    /// Takes in what another took in.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        if self.counts.len() != other.counts.len() {
            return Err(Error::Unlike { what: "numbers of classes" });
        }
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            theirs.into_iter().for_each(|(rank, count)| *mine.entry(rank).or_insert(0) += count);
        }
        self.n += other.n;
        Ok(())
    }

    /// The ranks at a level.
    pub fn finish(self, alpha: Alpha) -> Result<Ranks> {
        let classes = self.counts.len() as u32;
        let ranks = self.counts.iter().map(|counts| {
            let n: u64 = counts.values().sum();
            // The conformal rank at α/2, and a half of an integer loses nothing of the floor.
            let misses = alpha.floor_of(u128::from(n) + 1) / 2;
            let wanted = u64::try_from(u128::from(n) + 1 - misses).ok().filter(|rank| *rank <= n)?;
            let mut below = 0;
            let reached = counts.iter().find(|(_, count)| {
                below += **count;
                below >= wanted
            });
            reached.map(|(rank, _)| *rank)
        });
        Ranks::new(ranks.map(|rank| rank.unwrap_or(classes)).collect())
    }
}
