//! What the coverage of groups says of what a model promises them.

use conformax::{GroupTally, Level, Scheme, Taxonomy, Thresholds, Verdict};

use super::{KeptLevel, Model};

impl Model {
    /// A verdict on the coverage of each group, counted by a column or by true labels. A group with thresholds of its
    /// own is held to its own law, any other to `1 − α`; each a little more leniently, so that all of them together
    /// fail by chance once in a thousand times.
    pub fn group_verdicts(&self, kept: &KeptLevel, by_column: bool, tallies: &[GroupTally]) -> Vec<Verdict> {
        let present = tallies.iter().filter(|tally| tally.n > 0).count();
        let verdict = |(group, tally): (usize, &GroupTally)| match self.own_level(
            kept,
            by_column,
            tallies.len(),
            group,
        ) {
            Some((level, threshold)) => tally.verdict(level, threshold, present),
            None => tally.shortfall(kept.alpha(), present),
        };
        tallies.iter().enumerate().map(verdict).collect()
    }

    /// The level and the threshold of a group that the model itself tells apart.
    fn own_level(
        &self,
        kept: &KeptLevel,
        by_column: bool,
        groups: usize,
        group: usize,
    ) -> Option<(Level, f64)> {
        let levels = kept.group_levels();
        let level = *levels.get(group).filter(|_| levels.len() == groups)?;
        match (&self.scheme, &kept.thresholds) {
            (Scheme::Groups(Taxonomy::Group(_)), Thresholds::PerGroup(thresholds)) if by_column => {
                Some((level, thresholds[group]))
            }
            (Scheme::Groups(Taxonomy::Label), Thresholds::PerLabel(thresholds)) if !by_column => {
                Some((level, thresholds[group]))
            }
            (Scheme::Groups(Taxonomy::Cluster(clusters)), Thresholds::PerLabel(thresholds)) if !by_column => {
                // Classes of no cluster go by the rows of all, and are promised nothing of their own.
                let label = clusters.iter().position(|own| *own == Some(group as u32))?;
                Some((level, thresholds[label]))
            }
            _ => None,
        }
    }
}
