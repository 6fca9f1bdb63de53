//! Arrow IPC, as a file (Feather v2) or as a stream saved to one.
//!
//! A record batch is the unit of reading, as its writer made it: one larger than memory is refused with its size.

use arrow_array::RecordBatch;

use crate::error::{Error, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::roles::Doubts;
use crate::tables::arrow_messages::Messages;
use crate::tables::record_batch::{TableColumns, doubted};

pub(crate) struct ArrowReader {
    messages: Messages,
    columns: TableColumns,
    layout: Layout,
    doubts: Doubts,
    /// What is left of the batch being given out.
    current: Option<RecordBatch>,
    row: u64,
}

impl ArrowReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        let (schema, messages) = Messages::open(file, wanted.most_inflated)?;
        let columns = TableColumns::find(&schema, wanted, file.path())?;
        let layout = columns.layout(None, columns.classes().unwrap_or(0));
        let doubts = columns.doubts(wanted);
        let mut reader = Self { messages, columns, layout, doubts, current: None, row: 0 };
        if reader.columns.classes().is_none() {
            let first = reader.next_batch()?.ok_or_else(|| Error::new(file.path(), Problem::NoRows))?;
            reader.layout.classes = reader.columns.first_len(&first);
            reader.current = Some(first);
        }
        Ok(reader)
    }

    /// What is left of the current batch, or the next one that has rows.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.current.take() {
            return Ok(Some(batch));
        }
        while let Some(batch) = self.messages.next_batch()? {
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
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
        let Some(batch) = self.next_batch()? else {
            into.logits.reset(self.layout.dtype);
            return self.doubts.settle().map_err(|name| doubted(&name, self.messages.path()));
        };
        let rows = most.min(batch.num_rows());
        if rows < batch.num_rows() {
            self.current = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let path = self.messages.path();
        self.columns.look(&batch.slice(0, rows), &mut self.doubts, path)?;
        self.columns.fill(&batch.slice(0, rows), self.layout.classes, self.row, path, into)?;
        self.row += rows as u64;
        Ok(())
    }
}
