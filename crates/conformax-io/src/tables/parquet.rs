//! Parquet, read page by page: a row group of any size passes through, because only pages are held.

use std::io::{BufReader, Read};

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::tables::page_header::PageHeader;
use crate::tables::record_batch::{TableColumns, first_len};
use crate::tables::thrift::impossible_list;

pub(crate) struct ParquetReader {
    file: PositionedFile,
    columns: TableColumns,
    layout: Layout,
    /// Made at the first read, which says how many rows a batch has.
    batches: Option<ParquetRecordBatchReader>,
    row: u64,
}

impl ParquetReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        let path = file.path();
        check_footer(file)?;
        let builder = builder(file)?;
        let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
        let columns = TableColumns::find(builder.schema(), wanted, path)?;
        let classes = match columns.classes {
            Some(classes) => classes,
            None => first_row_len(file, &columns)?,
        };
        let layout = Layout {
            rows: Some(rows),
            classes,
            dtype: columns.dtype,
            names: columns.names.clone(),
            has_labels: columns.label.is_some(),
            keep: columns.keep_types.clone(),
        };
        Ok(Self { file: file.clone(), columns, layout, batches: None, row: 0 })
    }
}

impl Reader for ParquetReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        let path = self.file.path();
        let batches = match &mut self.batches {
            Some(batches) => batches,
            none => none.insert(batches(&self.file, &self.columns, most)?),
        };
        let Some(batch) = batches.next() else {
            into.logits.reset(self.layout.dtype);
            return match self.layout.rows {
                Some(rows) if rows != self.row => {
                    let what = format!("its footer counts {rows} rows, its pages have {}", self.row);
                    Err(Error::new(path, damaged(&what)))
                }
                _ => Ok(()),
            };
        };
        let batch = batch.map_err(|error| damaged(&error)).in_file(path)?;
        self.columns.projected().fill(&batch, self.layout.classes, self.row, path, into)?;
        self.row += batch.num_rows() as u64;
        Ok(())
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Problem {
    Problem::Damaged { format: "a Parquet file", what: error.to_string() }
}

/// Refuses a footer that would keep the Parquet crate counting.
fn check_footer(file: &PositionedFile) -> Result<()> {
    let Some(end) = file.len().checked_sub(FOOTER) else { return Ok(()) };
    let mut length = [0; 4];
    file.read_exact_at(&mut length, end)?;
    let length = u32::from_le_bytes(length);
    let Some(start) = end.checked_sub(length.into()) else { return Ok(()) };
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, start)?;
    match impossible_list(&footer) {
        Some(len) => {
            let what = format!("a list in its footer claims {len} elements");
            Err(Error::new(file.path(), damaged(&what)))
        }
        None => Ok(()),
    }
}

fn builder(file: &PositionedFile) -> Result<ParquetRecordBatchReaderBuilder<Chunks>> {
    ParquetRecordBatchReaderBuilder::try_new(Chunks(file.clone()))
        .map_err(|error| damaged(&error))
        .in_file(file.path())
}

fn batches(file: &PositionedFile, columns: &TableColumns, rows: usize) -> Result<ParquetRecordBatchReader> {
    let builder = builder(file)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.read());
    builder
        .with_projection(mask)
        .with_batch_size(rows)
        .build()
        .map_err(|error| damaged(&error))
        .in_file(file.path())
}

/// A list column does not say how long its lists are; the first row does.
fn first_row_len(file: &PositionedFile, columns: &TableColumns) -> Result<usize> {
    let alone = TableColumns { label: None, keep: Vec::new(), ..columns.clone() };
    let first = batches(file, &alone, 1)?.next();
    let batch = first.ok_or_else(|| Error::new(file.path(), Problem::NoRows))?;
    let batch = batch.map_err(|error| damaged(&error)).in_file(file.path())?;
    Ok(first_len(batch.column(0)))
}

/// Length of the footer's length and the magic word after it.
const FOOTER: u64 = 8;
/// Headers of pages have some dozens of bytes, with statistics a few hundred.
const HEADER_BUFFER: usize = 512;

/// Lets the Parquet crate read at positions, without the shared cursor of a cloned file.
struct Chunks(PositionedFile);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let len = self.0.len().saturating_sub(start);
        let section = self.0.section(start, len).map_err(|error| ParquetError::External(Box::new(error)))?;
        let stream = BufReader::with_capacity(HEADER_BUFFER, section);
        // Streams are asked for the end of the file, where the footer's length is, and for headers of pages.
        Ok(if len == FOOTER { Box::new(stream) } else { Box::new(PageHeader::new(stream)) })
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let outside = |error: Error| ParquetError::External(Box::new(error));
        // A length beyond the file is refused before memory is set aside for it.
        self.0.section(start, length as u64).map_err(outside)?;
        let mut buffer = vec![0; length];
        self.0.read_exact_at(&mut buffer, start).map_err(outside)?;
        Ok(buffer.into())
    }
}
