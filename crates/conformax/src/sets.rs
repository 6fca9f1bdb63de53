//! `PredictionSets`: the labels of every set, stored end to end.
//!
//! A mask of rows × classes would cost a thousand bytes where a set of three labels costs twenty; one is made
//! on request.

/// Prediction sets, packed: `offsets[i]..offsets[i + 1]` are the places of set `i`, its labels best first.
///
/// ```
/// use conformax::PredictionSets;
/// let sets = PredictionSets::from_parts(3, vec![0, 2, 2, 3], vec![1, 0, 2]).unwrap();
/// assert_eq!(sets.len(), 3);
/// assert_eq!(sets.get(0), [1, 0]);
/// assert!(sets.get(1).is_empty());
/// assert!(sets.contains(2, 2));
/// assert_eq!(sets.sizes().collect::<Vec<_>>(), [2, 0, 1]);
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

    /// Appends the set of the first `len` of `labels`.
    #[inline]
    pub(crate) fn push_first<const N: usize>(&mut self, len: usize, labels: [u32; N]) {
        // All of them and then fewer: a copy of known length, and nothing to guess.
        self.labels.extend_from_slice(&labels);
        self.labels.truncate(self.labels.len() - (N - len));
        self.offsets.push(self.labels.len());
    }

    /// Appends the sets of another collection over the same classes.
    pub(crate) fn append(&mut self, other: &Self) {
        let before = self.labels.len();
        self.labels.extend_from_slice(&other.labels);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| before + offset));
    }

    /// From offsets, starting at 0 and not falling, and labels below `classes`; `None` where they are not so.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// assert!(PredictionSets::from_parts(3, vec![0, 1], vec![2]).is_some());
    /// assert!(PredictionSets::from_parts(3, vec![0, 1], vec![3]).is_none());
    /// ```
    pub fn from_parts(classes: usize, offsets: Vec<usize>, labels: Vec<u32>) -> Option<Self> {
        let sound = offsets.first() == Some(&0)
            && offsets.last() == Some(&labels.len())
            && offsets.is_sorted()
            && labels.iter().all(|label| (*label as usize) < classes);
        sound.then_some(Self { classes, offsets, labels })
    }

    /// Number of sets, one per row.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// assert_eq!(PredictionSets::from_parts(3, vec![0, 1], vec![2]).unwrap().len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no row.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// assert!(PredictionSets::from_parts(3, vec![0], vec![]).unwrap().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of classes.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// assert_eq!(PredictionSets::from_parts(3, vec![0], vec![]).unwrap().classes(), 3);
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The set of row `index`, best first. Panics where there is no such row, as a slice does.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// assert_eq!(PredictionSets::from_parts(3, vec![0, 2], vec![2, 0]).unwrap().get(0), [2, 0]);
    /// ```
    #[inline]
    pub fn get(&self, index: usize) -> &[u32] {
        &self.labels[self.offsets[index]..self.offsets[index + 1]]
    }

    /// Whether `label` is in the set of row `index`.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(3, vec![0, 2], vec![2, 0]).unwrap();
    /// assert!(sets.contains(0, 2) && !sets.contains(0, 1));
    /// ```
    pub fn contains(&self, index: usize, label: u32) -> bool {
        self.get(index).contains(&label)
    }

    /// The sets in row order.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(3, vec![0, 2, 3], vec![2, 0, 1]).unwrap();
    /// assert_eq!(sets.iter().map(<[u32]>::len).max(), Some(2));
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.offsets.windows(2).map(|ends| &self.labels[ends[0]..ends[1]])
    }

    /// The size of each set in row order.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(3, vec![0, 2, 3], vec![2, 0, 1]).unwrap();
    /// assert_eq!(sets.sizes().collect::<Vec<_>>(), [2, 1]);
    /// ```
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Where each set begins, and one past the last.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(3, vec![0, 2, 3], vec![2, 0, 1]).unwrap();
    /// assert_eq!(sets.offsets(), [0, 2, 3]);
    /// ```
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// All labels, set after set.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(3, vec![0, 2, 3], vec![2, 0, 1]).unwrap();
    /// assert_eq!(sets.labels(), [2, 0, 1]);
    /// ```
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Rows × classes booleans, row after row.
    ///
    /// ```
    /// # use conformax::PredictionSets;
    /// let sets = PredictionSets::from_parts(2, vec![0, 1, 3], vec![1, 0, 1]).unwrap();
    /// assert_eq!(sets.mask(), [false, true, true, true]);
    /// ```
    pub fn mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.len() * self.classes];
        for (row, set) in mask.chunks_exact_mut(self.classes).zip(self.iter()) {
            set.iter().for_each(|label| row[*label as usize] = true);
        }
        mask
    }
}
