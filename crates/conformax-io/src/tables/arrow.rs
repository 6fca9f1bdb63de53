//! Arrow IPC, as a file (Feather v2) or as a stream saved to one.
//!
//! A record batch is the unit of reading, as its writer made it: one larger than memory is refused with its size.
//! Logits in lists of floats are not read with it, but left in their place in the file for those who work on them.

use crate::error::{Error, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::roles::Doubts;
use crate::tables::arrow_messages::{Batch, Messages};
use crate::tables::lists_in_place::ListsInPlace;
use crate::tables::record_batch::{TableColumns, doubted};

pub(crate) struct ArrowReader {
    messages: Messages,
    columns: TableColumns,
    in_place: Option<ListsInPlace>,
    layout: Layout,
    doubts: Doubts,
    current: Option<Current>,
    row: u64,
}

/// The batch being given out, and how many of its rows have been.
struct Current {
    batch: Batch,
    given: usize,
}

impl ArrowReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        let (schema, mut messages) = Messages::open(file, wanted.most_inflated)?;
        let columns = TableColumns::find(&schema, wanted, file.path())?;
        let layout = columns.layout(None, columns.classes().unwrap_or(0));
        let doubts = columns.doubts(wanted);
        let in_place = columns.lists_apart().and_then(|(column, _)| ListsInPlace::find(&schema, column));
        messages.leave_in_place(in_place);
        let mut reader = Self { messages, columns, in_place, layout, doubts, current: None, row: 0 };
        if reader.columns.classes().is_none() {
            let first = reader.next_rows()?.ok_or_else(|| Error::new(file.path(), Problem::NoRows))?;
            reader.layout.classes = reader.columns.first_len(&first.batch.columns);
            reader.current = Some(first);
        }
        Ok(reader)
    }

    /// What is left of the current batch, or the next one that has rows.
    fn next_rows(&mut self) -> Result<Option<Current>> {
        if let Some(current) = self.current.take() {
            return Ok(Some(current));
        }
        while let Some(batch) = self.messages.next_batch()? {
            if batch.columns.num_rows() > 0 {
                return Ok(Some(Current { batch, given: 0 }));
            }
        }
        Ok(None)
    }
}

impl Reader for ArrowReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        let Some(Current { batch, given }) = self.next_rows()? else {
            into.logits.reset(self.layout.dtype);
            return self.doubts.settle().map_err(|name| doubted(&name, self.messages.path()));
        };
        let (classes, path) = (self.layout.classes, self.messages.path());
        let rows = most.min(batch.columns.num_rows() - given);
        let some = batch.columns.slice(given, rows);
        self.columns.look(&some, &mut self.doubts, path)?;
        match (self.in_place, batch.lists_at) {
            (Some(lists), Some(at)) => {
                let at = at + lists.bytes_before(&batch.columns, given);
                self.columns.fill_apart(&some, classes, self.row, path, into)?;
                into.unread = Some(self.messages.lists_at(at, rows, classes, self.layout.dtype)?);
            }
            _ => self.columns.fill(&some, classes, self.row, path, into)?,
        }
        self.row += rows as u64;
        let given = given + rows;
        self.current = (given < batch.columns.num_rows()).then_some(Current { batch, given });
        Ok(())
    }
}
