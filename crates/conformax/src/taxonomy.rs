//! `Taxonomy`: which calibration rows stand behind the threshold of a label in a row.

use crate::{Error, Logit, Logits, Result};

/// Who shares a threshold with whom.
///
/// ```
/// use conformax::Taxonomy;
/// assert_eq!(Taxonomy::Cluster(vec![Some(0), Some(0), Some(1)]).groups(3), 2);
/// assert_eq!(Taxonomy::Label.groups(3), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Taxonomy {
    /// All rows together: one threshold.
    #[default]
    All,
    /// The rows of a label: a threshold per label.
    Label,
    /// The rows of a cluster of labels; the number of each label's cluster, counted from 0 without gaps. A label of
    /// none takes the threshold of all rows together, which is the last group.
    Cluster(Vec<Option<u32>>),
    /// The rows of a group that comes with each row ([`Logits::with_groups`]), of so many groups.
    Group(usize),
}

impl Taxonomy {
    /// Number of groups among so many classes.
    pub fn groups(&self, classes: usize) -> usize {
        match self {
            Self::All => 1,
            Self::Label => classes,
            Self::Cluster(clusters) => named_clusters(clusters) + usize::from(clusters.contains(&None)),
            Self::Group(count) => *count,
        }
    }

    /// The error of clusters that leave a class or a number out, or of no group at all.
    pub(crate) fn check(&self, classes: usize) -> Result<()> {
        match self {
            Self::Cluster(clusters) if clusters.len() != classes => {
                Err(Error::Clusters { wanted: classes, got: clusters.len() })
            }
            Self::Cluster(clusters) => {
                let missing =
                    (0..named_clusters(clusters) as u32).find(|cluster| !clusters.contains(&Some(*cluster)));
                missing.map_or(Ok(()), |cluster| Err(Error::EmptyCluster(cluster)))
            }
            Self::Group(0) => Err(Error::Missing { what: "at least one group" }),
            Self::All | Self::Label | Self::Group(_) => Ok(()),
        }
    }

    /// The error of rows that lack a group, or have one there is not.
    pub(crate) fn expect<T: Logit>(&self, logits: Logits<'_, T>) -> Result<()> {
        match self {
            Self::Group(count) => logits.groups_below(*count).map(|_| ()),
            Self::All | Self::Label | Self::Cluster(_) => Ok(()),
        }
    }

    /// The group of a label in a row of this group; [`expect`](Self::expect) has seen the row.
    #[inline]
    pub(crate) fn group(&self, label: u32, of_row: Option<u32>) -> usize {
        match self {
            Self::All => 0,
            Self::Label => label as usize,
            Self::Cluster(clusters) => {
                clusters[label as usize].map_or_else(|| named_clusters(clusters), |cluster| cluster as usize)
            }
            Self::Group(_) => of_row.unwrap_or_default() as usize,
        }
    }
}

/// Clusters that have a number.
fn named_clusters(clusters: &[Option<u32>]) -> usize {
    clusters.iter().flatten().map(|cluster| *cluster as usize + 1).max().unwrap_or(0)
}
