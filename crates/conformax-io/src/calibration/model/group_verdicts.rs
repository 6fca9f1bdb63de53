//! What the coverage of groups says of what a model promises them.

use conformax::{GroupTally, Level, Scheme, Taxonomy, Thresholds, Verdict};

use super::{KeptLevel, Model};

/// What the coverage of a group is held to.
enum HeldTo {
    /// The law of its own rows.
    Law(Level, f64),
    /// `1 − α`, although nothing is promised of it.
    Level,
    Nothing,
}

impl Model {
    /// A verdict on the coverage of each group that has something to be held to. Rows were counted by this taxonomy,
    /// and by this column where it is one of groups. A group with thresholds of its own is held to its own law, any
    /// other to `1 − α`; each a little more leniently, so that all of them together fail by chance once in a thousand
    /// times. There is none on the classes of no cluster, nor where `α` bounds a loss.
    pub fn group_verdicts(
        &self,
        kept: &KeptLevel,
        (taxonomy, column): (&Taxonomy, Option<&str>),
        tallies: &[GroupTally],
    ) -> Vec<Option<Verdict>> {
        let (is_own, rest) = (self.has_groups(taxonomy, column), self.no_cluster());
        let thresholds = self.group_thresholds(kept);
        let held_to = |group| match kept.group_levels().get(group).zip(thresholds.get(group)) {
            _ if matches!(self.scheme, Scheme::Risk(_)) => HeldTo::Nothing,
            _ if is_own && rest == Some(group) => HeldTo::Nothing,
            Some((level, threshold)) if is_own => HeldTo::Law(*level, *threshold),
            _ => HeldTo::Level,
        };
        let held: Vec<(HeldTo, &GroupTally)> =
            tallies.iter().enumerate().map(|(group, tally)| (held_to(group), tally)).collect();
        let is_judged = |(to, tally): &&(HeldTo, &GroupTally)| tally.n > 0 && !matches!(to, HeldTo::Nothing);
        let judged = held.iter().filter(is_judged).count().max(1);
        let verdict = |(to, tally): &(HeldTo, &GroupTally)| match to {
            HeldTo::Law(level, threshold) => Some(tally.verdict(*level, *threshold, judged)),
            HeldTo::Level => Some(tally.shortfall(kept.alpha(), judged)),
            HeldTo::Nothing => None,
        };
        held.iter().map(verdict).collect()
    }

    /// Whether groups are those that thresholds go by: others have no law of their own, however many there are.
    fn has_groups(&self, taxonomy: &Taxonomy, column: Option<&str>) -> bool {
        match (&self.scheme, taxonomy) {
            (Scheme::Groups(Taxonomy::Group(_)), Taxonomy::Group(_)) => {
                column == self.beside.column.as_deref()
            }
            (Scheme::Groups(own), counted) => own == counted,
            (Scheme::RowWeights | Scheme::LabelWeights(_) | Scheme::Risk(_), _) => false,
        }
    }

    /// The threshold of each class, cluster or group, in their order; none where all rows share one, or where it goes
    /// by the weight of the row.
    pub fn group_thresholds(&self, kept: &KeptLevel) -> Vec<f64> {
        match (&self.scheme, &kept.thresholds) {
            // Those of clusters are kept by label.
            (Scheme::Groups(taxonomy @ Taxonomy::Cluster(clusters)), Thresholds::PerLabel(of_label)) => {
                let rest = self.no_cluster();
                let number = |group: usize| (rest != Some(group)).then_some(group as u32);
                let label = |group: usize| clusters.iter().position(|own| *own == number(group));
                (0..taxonomy.groups(self.classes)).filter_map(label).map(|label| of_label[label]).collect()
            }
            (_, Thresholds::PerLabel(of_each) | Thresholds::PerGroup(of_each)) => of_each.clone(),
            (_, Thresholds::One(_) | Thresholds::ByWeight(_)) => Vec::new(),
        }
    }

    /// The group of the classes of no cluster, where there are some. They go by the rows of all, and nothing is
    /// promised of them: neither of each, nor of all rows together.
    pub fn no_cluster(&self) -> Option<usize> {
        match &self.scheme {
            Scheme::Groups(taxonomy @ Taxonomy::Cluster(clusters)) if clusters.contains(&None) => {
                Some(taxonomy.groups(self.classes) - 1)
            }
            _ => None,
        }
    }
}
