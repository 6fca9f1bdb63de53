//! `PredictionSets`: the labels of every set, stored end to end.
//!
//! A mask of rows × classes would cost a thousand bytes where a set of three labels costs twenty; one is made
//! on request.

use crate::kernel::Leaders;
use crate::{Error, Result};

/// Prediction sets, packed: `offsets[i]..offsets[i + 1]` are the places of set `i`, its labels best first.
///
/// ```
/// use conformax::PredictionSets;
/// let sets = PredictionSets::from_parts(3, vec![0, 2, 2, 3], vec![1, 0, 2])?;
/// assert_eq!(sets.get(0), Some(&[1, 0][..]));
/// assert_eq!(sets.get(3), None);
/// assert!(sets.contains(2, 2));
/// assert_eq!(sets.sizes().collect::<Vec<_>>(), [2, 0, 1]);
/// assert_eq!((&sets).into_iter().map(<[u32]>::len).max(), Some(2));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictionSets {
    classes: usize,
    offsets: Vec<usize>,
    labels: Vec<u32>,
}

impl PredictionSets {
    pub(crate) fn with_capacity(classes: usize, rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { classes, offsets, labels: Vec::with_capacity(rows) }
    }

    /// Appends the set that `fill` appends to the labels.
    #[inline]
    pub(crate) fn push_with(&mut self, fill: impl FnOnce(&mut Vec<u32>)) {
        fill(&mut self.labels);
        self.offsets.push(self.labels.len());
    }

    /// Appends the set of a narrow row.
    #[inline]
    pub(crate) fn push_leaders(&mut self, len: usize, leaders: &Leaders) {
        let end = self.labels.len() + len;
        // More than there are and then fewer: a copy of known length, and a branch that is seldom mispredicted.
        self.labels.extend_from_slice(&leaders.first);
        if len > leaders.first.len() {
            self.labels.extend(leaders.rest());
        }
        self.labels.truncate(end);
        self.offsets.push(end);
    }

    /// Appends the sets of another collection over the same classes.
    pub(crate) fn append(&mut self, other: &Self) {
        let before = self.labels.len();
        self.labels.extend_from_slice(&other.labels);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| before + offset));
    }

    /// From offsets, starting at 0 and not falling, and labels below `classes`, none of them twice in a set.
    pub fn from_parts(classes: usize, offsets: Vec<usize>, labels: Vec<u32>) -> Result<Self> {
        let fault = |what| Err(Error::Sets { what });
        if classes == 0 || u32::try_from(classes).is_err() {
            return Err(Error::Classes(classes));
        }
        if offsets.first() != Some(&0) || offsets.last() != Some(&labels.len()) || !offsets.is_sorted() {
            return fault("offsets that rise from 0 to the number of labels");
        }
        if labels.iter().any(|label| *label as usize >= classes) {
            return fault("labels that are classes");
        }
        let mut last_in = vec![usize::MAX; classes];
        for (row, ends) in offsets.windows(2).enumerate() {
            for label in &labels[ends[0]..ends[1]] {
                if std::mem::replace(&mut last_in[*label as usize], row) == row {
                    return fault("each label once in a set");
                }
            }
        }
        Ok(Self { classes, offsets, labels })
    }

    /// Classes, offsets and labels, as [`from_parts`](Self::from_parts) takes them.
    pub fn into_parts(self) -> (usize, Vec<usize>, Vec<u32>) {
        (self.classes, self.offsets, self.labels)
    }

    /// Number of sets, one per row.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The set of row `index`, best first; `None` where there is no such row.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u32]> {
        let (start, end) = (self.offsets.get(index)?, self.offsets.get(index + 1)?);
        Some(&self.labels[*start..*end])
    }

    /// Whether `label` is in the set of row `index`; not where there is no such row.
    pub fn contains(&self, index: usize, label: u32) -> bool {
        self.get(index).is_some_and(|set| set.contains(&label))
    }

    /// The sets in row order.
    pub fn iter(&self) -> Sets<'_> {
        Sets { ends: self.offsets.windows(2), labels: &self.labels }
    }

    /// The size of each set in row order.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Where each set begins, and one past the last.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// All labels, set after set.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Rows × classes booleans, row after row.
    pub fn mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.len() * self.classes];
        for (row, set) in mask.chunks_exact_mut(self.classes).zip(self.iter()) {
            set.iter().for_each(|label| row[*label as usize] = true);
        }
        mask
    }
}

impl<'a> IntoIterator for &'a PredictionSets {
    type Item = &'a [u32];
    type IntoIter = Sets<'a>;

    fn into_iter(self) -> Sets<'a> {
        self.iter()
    }
}

/// The sets of some rows, one after another.
///
/// ```
/// use conformax::PredictionSets;
/// let sets = PredictionSets::from_parts(3, vec![0, 1, 3], vec![0, 1, 2])?;
/// assert_eq!(sets.iter().map(<[u32]>::len).collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sets<'a> {
    ends: std::slice::Windows<'a, usize>,
    labels: &'a [u32],
}

impl<'a> Iterator for Sets<'a> {
    type Item = &'a [u32];

    #[inline]
    fn next(&mut self) -> Option<&'a [u32]> {
        self.ends.next().map(|ends| &self.labels[ends[0]..ends[1]])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ends.size_hint()
    }
}

impl ExactSizeIterator for Sets<'_> {}
