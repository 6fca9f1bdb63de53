//! Arrow IPC, as a file (Feather v2) or as a stream saved to one.
//!
//! A record batch is the unit of reading: one larger than memory cannot be read, however it was written.

use std::io::BufReader;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{Error, InFile, Problem, Result};
use crate::positioned::{PositionedFile, Section};
use crate::reader::{Layout, Reader, Rows, Wanted};
use crate::record_batch::{TableColumns, first_len};

type Batches = Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>> + Send>;

pub(crate) struct ArrowReader {
    file: PositionedFile,
    columns: TableColumns,
    layout: Layout,
    batches: Batches,
    /// The batch being given out, and how many of its rows are left in it.
    current: Option<RecordBatch>,
    row: u64,
}

impl ArrowReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        let path = file.path();
        let (schema, _) = open_batches(file, None)?;
        let columns = TableColumns::find(&schema, wanted, path)?;
        let (_, batches) = open_batches(file, Some(columns.read()))?;
        let columns = columns.projected();
        let layout = Layout {
            rows: None,
            classes: columns.classes.unwrap_or(0),
            dtype: columns.dtype,
            names: columns.names.clone(),
            has_labels: columns.label.is_some(),
            keep: columns.keep_types.clone(),
        };
        let mut reader = Self { file: file.clone(), columns, layout, batches, current: None, row: 0 };
        if reader.columns.classes.is_none() {
            let first = reader.next_batch()?.ok_or_else(|| Error::new(path, Problem::NoRows))?;
            reader.layout.classes = first_len(first.column(reader.columns.logits));
            reader.current = Some(first);
        }
        Ok(reader)
    }

    /// What is left of the current batch, or the next one that has rows.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.current.take() {
            return Ok(Some(batch));
        }
        for batch in self.batches.by_ref() {
            let batch = batch.map_err(|error| damaged(&error)).in_file(self.file.path())?;
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
            return Ok(());
        };
        let rows = most.min(batch.num_rows());
        if rows < batch.num_rows() {
            self.current = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.columns.fill(&batch.slice(0, rows), self.layout.classes, self.row, self.file.path(), into)?;
        self.row += rows as u64;
        Ok(())
    }
}

fn damaged(error: &ArrowError) -> Problem {
    Problem::Damaged { format: "an Arrow file", what: error.to_string() }
}

fn open_batches(file: &PositionedFile, columns: Option<Vec<usize>>) -> Result<(SchemaRef, Batches)> {
    let bytes: BufReader<Section> = BufReader::new(file.whole());
    let mut magic = [0; 6];
    file.read_exact_at(&mut magic, 0)?;
    let opened =
        match &magic == b"ARROW1" {
            true => FileReader::try_new(bytes, columns)
                .map(|reader| (reader.schema(), Box::new(reader) as Batches)),
            false => StreamReader::try_new(bytes, columns)
                .map(|reader| (reader.schema(), Box::new(reader) as Batches)),
        };
    opened.map_err(|error| damaged(&error)).in_file(file.path())
}
