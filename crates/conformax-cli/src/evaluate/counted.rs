//! One pass over the data: how every set fared, and which rows had a part in the model.

use conformax::{Empty, Level, Tally, predict_each};
use conformax_io::{Source, row_fingerprints};

use crate::blocks::{for_each_block, with_logits};
use crate::console::Console;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::numbers::{count, rows};

/// Outcomes of one level.
pub(super) struct LevelTally {
    pub(super) tally: Tally,
    /// Sum and sum of squares of the set sizes, for the interval of their mean.
    pub(super) sizes: u64,
    pub(super) squares: u128,
    pub(super) singletons: u64,
    pub(super) covered_singletons: u64,
    pub(super) empty: u64,
}

impl LevelTally {
    fn new(classes: usize) -> Self {
        let tally = Tally::new(classes);
        Self { tally, sizes: 0, squares: 0, singletons: 0, covered_singletons: 0, empty: 0 }
    }

    fn add(&mut self, set: &[u32], label: u32) {
        let (size, covered) = (set.len(), set.contains(&label));
        self.tally.add_outcome(size, covered, label);
        self.sizes += size as u64;
        self.squares += (size as u128) * (size as u128);
        self.singletons += u64::from(size == 1);
        self.covered_singletons += u64::from(size == 1 && covered);
        self.empty += u64::from(size == 0);
    }
}

/// What a pass over the data counted.
pub(super) struct Counted {
    pub(super) tallies: Vec<LevelTally>,
    pub(super) seen: Seen,
}

impl Counted {
    pub(super) fn read(
        source: Source,
        model: &Loaded,
        levels: &[Level],
        empty: Empty,
        console: &mut Console<'_>,
    ) -> Result<Self, Failure> {
        let predictors = model.predictors(levels, empty);
        let mut tallies: Vec<_> = levels.iter().map(|_| LevelTally::new(source.classes())).collect();
        let (mut seen, mut names) = (Seen::default(), Vec::new());
        for_each_block(source, "evaluating", console, |block, _| {
            let labels = block.labels.as_deref().expect("labels were required of the source");
            let ((), sets) = rayon::join(
                || row_fingerprints(block, &mut names),
                || with_logits!(block, logits => predict_each(&predictors, logits)),
            );
            for (tally, sets) in tallies.iter_mut().zip(&sets?) {
                sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
            }
            seen.add(block.first_row, &names, |row| model.model.has_seen(row));
            Ok(())
        })?;
        Ok(Self { tallies, seen })
    }
}

/// Rows that had a part in the model.
#[derive(Default)]
pub(super) struct Seen {
    rows: u64,
    seen: u64,
    first: Option<u64>,
}

impl Seen {
    fn add(&mut self, first_row: u64, names: &[u64], has_seen: impl Fn(u64) -> bool) {
        self.rows += names.len() as u64;
        for (row, _) in (first_row..).zip(names).filter(|(_, name)| has_seen(**name)) {
            self.first.get_or_insert(row);
            self.seen += 1;
        }
    }

    /// Rows that calibrated would make coverage look better than it is on new ones.
    pub(super) fn judge(&self, data: &str, allowed: bool, console: &mut Console<'_>) -> Result<(), Failure> {
        let Some(first) = self.first else { return Ok(()) };
        let what = format!(
            "{data}: {} of {} calibrated or tuned this model, row {first} first",
            count(self.seen),
            rows(self.rows)
        );
        if allowed {
            return console
                .warn(format_args!("{what}; the figures flatter the model and no interval holds for them"));
        }
        Err(Failure::error(format!(
            "{what}; evaluate on other rows, or give --allow-seen if you know what that means"
        )))
    }
}
