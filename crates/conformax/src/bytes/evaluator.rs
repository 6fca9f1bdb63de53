//! `Evaluator`.

use super::Framed;
use super::numbers::{Reader, Writer};
use super::parts::{
    read_loss, read_predictor, read_row_set, read_taxonomy, write_loss, write_predictor, write_row_set,
    write_taxonomy,
};
use crate::evaluate::{Evaluator, GroupTally};
use crate::fingerprint::{Overlap, Whole};
use crate::metrics::Tally;
use crate::{Result, ScoreSpec};

impl Framed for Evaluator<ScoreSpec> {
    const WHAT: &'static str = "those of an evaluation";
    const KIND: u32 = 4;
    const VERSION: u32 = 3;

    fn write(&self, to: &mut Writer) {
        to.list(&self.predictors, write_predictor);
        to.u64(self.classes as u64);
        to.list(&self.model_rows, write_row_set);
        to.list(&self.tallies, |to, tally| {
            let (sizes, classes) = tally.counts();
            [sizes, classes].iter().for_each(|counts| {
                to.list(counts, |to, (n, covered)| {
                    to.u64(*n);
                    to.u64(*covered);
                });
            });
        });
        to.option(self.taxonomy.as_ref(), write_taxonomy);
        to.list(&self.groups, |to, of_predictor| {
            to.list(of_predictor, |to, group| {
                [group.n, group.covered, group.labels].iter().for_each(|count| to.u64(*count));
            });
        });
        to.option(self.loss.as_ref(), write_loss);
        to.list(&self.losses, |to, loss| {
            to.u64((loss >> 64) as u64);
            to.u64(*loss as u64);
        });
        to.u64(self.overlap.looked_at);
        to.list(&self.overlap.wholes, |to, whole| {
            [whole.rows, whole.sum].iter().for_each(|word| to.u64(*word))
        });
        let met: Vec<_> = self.overlap.met.iter().collect();
        to.list(&met, |to, (name, (count, first))| {
            [**name, *count, *first].iter().for_each(|word| to.u64(*word))
        });
        to.u64(self.next_row);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let predictors = from.list(read_predictor)?;
        let (classes, model_rows) = (from.usize()?, from.list(read_row_set)?);
        let counts = |from: &mut Reader<'_>| from.list(|from| Ok((from.u64()?, from.u64()?)));
        let tallies = from.list(|from| {
            let (sizes, by_class) = (counts(from)?, counts(from)?);
            Tally::from_counts(classes, &sizes, &by_class)
                .ok_or(from.fault("their counts do not fit together"))
        })?;
        let taxonomy = from.option(read_taxonomy)?;
        let groups = from.list(|from| {
            from.list(|from| Ok(GroupTally { n: from.u64()?, covered: from.u64()?, labels: from.u64()? }))
        })?;
        let loss = from.option(read_loss)?;
        let losses = from.list(|from| Ok(u128::from(from.u64()?) << 64 | u128::from(from.u64()?)))?;
        let fits = |count: usize, wanted: bool| count == if wanted { predictors.len() } else { 0 };
        let of_taxonomy = taxonomy.as_ref().map_or(0, |taxonomy| taxonomy.groups(classes));
        if !fits(groups.len(), taxonomy.is_some())
            || !fits(losses.len(), loss.is_some())
            || groups.iter().any(|groups| groups.len() != of_taxonomy)
        {
            return Err(from.fault("their counts do not fit together"));
        }
        let looked_at = from.u64()?;
        let wholes = from.list(|from| Ok(Whole { rows: from.u64()?, sum: from.u64()? }))?;
        let met = from.list(|from| Ok((from.u64()?, (from.u64()?, from.u64()?))))?.into_iter().collect();
        if ![0, model_rows.len()].contains(&wholes.len()) {
            return Err(from.fault("their counts do not fit together"));
        }
        if tallies.len() != predictors.len() || tallies.windows(2).any(|pair| pair[0].n() != pair[1].n()) {
            return Err(from.fault("their counts do not fit together"));
        }
        let overlap = Overlap { looked_at, wholes, met };
        let next_row = from.u64()?;
        Ok(Self {
            predictors,
            classes,
            model_rows,
            tallies,
            taxonomy,
            groups,
            loss,
            losses,
            overlap,
            next_row,
        })
    }
}
