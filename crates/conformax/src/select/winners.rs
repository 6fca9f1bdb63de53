//! `WinnerCounter`: how many true labels each candidate of a selection decides, block by block.

use super::Selection;
use crate::{Error, Labelled, Logit, Result, Score};

/// Counts, for every candidate of a selection, how many true labels it decides, over the rows that calibrated.
#[derive(Clone, Debug, PartialEq)]
pub struct WinnerCounter<S> {
    pub(crate) selection: Selection<S>,
    pub(crate) winners: Vec<u64>,
    pub(crate) n: u64,
}

impl<S: Score + Clone> WinnerCounter<S> {
    /// Without a row so far.
    pub fn new(selection: Selection<S>) -> Self {
        Self { winners: vec![0; selection.rivals().len()], selection, n: 0 }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in the same rows again. An error names the row in the whole.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let wanted = self.selection.classes();
        if rows.logits().classes() != wanted {
            return Err(Error::ClassCount { wanted, got: rows.logits().classes() });
        }
        let winners = self.selection.winners(rows).map_err(|error| error.offset_rows(self.n))?;
        self.winners.iter_mut().zip(winners).for_each(|(all, more)| *all += more);
        self.n += rows.len() as u64;
        Ok(())
    }

    /// Takes in what another counted for the same selection.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        if self.selection != other.selection {
            return Err(Error::Unlike { what: "selections" });
        }
        self.winners.iter_mut().zip(other.winners).for_each(|(mine, theirs)| *mine += theirs);
        self.n += other.n;
        Ok(())
    }

    /// The selection, and how many labels each candidate decides. An error where the rows are not those that chose.
    pub fn finish(self) -> Result<(Selection<S>, Vec<u64>)> {
        if self.n != self.selection.n() {
            let (wanted, got) = (self.selection.n() as usize, self.n as usize);
            return Err(Error::Rows { what: "rows counted", wanted, got });
        }
        Ok((self.selection, self.winners))
    }
}
