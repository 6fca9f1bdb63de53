//! Parquet, read page by page: a row group of any size passes through, because only pages are held.
//!
//! The crate is asked for two things, each through a view of the file of its own: the footer through [`Footer`], and
//! then pages through [`Pages`], which holds what their headers claim against what can be. Lists of one length are
//! copied from their pages by [`crate::tables::list_pages`] as long as they are stored plainly, and what is beside them
//! comes by a reader of its own; from the first batch that is not on, the crate makes record batches of all columns.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::Dtype;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::{PositionedFile, Section};
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::roles::Doubts;
use crate::tables::list_pages::ListPages;
use crate::tables::page_header::PageHeader;
use crate::tables::record_batch::{TableColumns, doubted};
use crate::tables::spare::Spare;
use crate::tables::thrift::impossible_list;

pub(crate) struct ParquetReader {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    columns: TableColumns,
    layout: Layout,
    doubts: Doubts,
    lists: Lists,
    /// Made where lists are not copied, at the first read, which says how many rows a batch has.
    batches: Option<ParquetRecordBatchReader>,
    /// Rows of the next batches that have been given out before.
    again: u64,
    row: u64,
}

/// Logits that are copied from their pages.
enum Lists {
    NotYet,
    Copied(Box<CopiedLists>),
    Never,
}

struct CopiedLists {
    pages: ListPages<Pages>,
    /// The columns beside the lists, counted among themselves, and their batches where there are any.
    others: TableColumns,
    batches: Option<ParquetRecordBatchReader>,
    left: u64,
}

impl ParquetReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        let path = file.path();
        check_footer(file)?;
        let metadata = read_metadata(file).map_err(|error| damaged(&error)).in_file(path)?;
        let rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0);
        let columns = TableColumns::find(metadata.schema(), wanted, path)?;
        check_compression(metadata.metadata(), &columns).in_file(path)?;
        let classes = match columns.classes() {
            Some(classes) => classes,
            None => first_row_len(file, &metadata, &columns)?,
        };
        let layout = columns.layout(Some(rows), classes);
        let doubts = columns.doubts(wanted);
        Ok(Self {
            file: file.clone(),
            metadata,
            columns,
            layout,
            doubts,
            lists: Lists::NotYet,
            batches: None,
            again: 0,
            row: 0,
        })
    }

    /// Lists as they are copied from the first row on; `None` where they are not.
    fn copied_lists(&self, most: usize) -> Option<CopiedLists> {
        let (column, others) = self.columns.lists_apart()?;
        let Layout { rows, classes, dtype, .. } = self.layout;
        let pages = Arc::new(Pages::new(&self.file));
        let pages = ListPages::new(pages, self.metadata.metadata().clone(), column, dtype, classes)?;
        let batches = match others.read().is_empty() {
            true => None,
            false => Some(batches(&self.file, &self.metadata, &others, most, 0).ok()?),
        };
        Some(CopiedLists { pages, others: others.projected(), batches, left: rows? })
    }

    /// The next batch of all columns, without rows that were copied. Those are read again, because the crate's way of
    /// skipping rows never ends in some damaged pages.
    fn next_batch(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let batches = match &mut self.batches {
            Some(batches) => batches,
            none => {
                let (group, before) = place_of(self.row, most, self.metadata.metadata());
                self.again = before;
                none.insert(batches(&self.file, &self.metadata, &self.columns, most, group)?)
            }
        };
        for batch in batches {
            let batch = batch.map_err(|error| damaged(&error)).in_file(self.file.path())?;
            let again = usize::try_from(self.again).unwrap_or(usize::MAX).min(batch.num_rows());
            self.again -= again as u64;
            if again < batch.num_rows() {
                return Ok(Some(batch.slice(again, batch.num_rows() - again)));
            }
        }
        Ok(None)
    }

    /// Copies the next lists; `false` where they are left to the Parquet crate, from here on.
    fn copy_lists(&mut self, most: usize, into: &mut Rows) -> bool {
        if let Lists::NotYet = self.lists {
            self.lists = self.copied_lists(most).map_or(Lists::Never, |lists| Lists::Copied(Box::new(lists)));
        }
        let Lists::Copied(lists) = &mut self.lists else { return false };
        let rows = lists.read(most, self.layout.dtype, self.file.path(), into);
        match rows {
            Some(rows) => self.row += rows,
            None => self.lists = Lists::Never,
        }
        rows.is_some()
    }
}

impl CopiedLists {
    /// Replaces `into` by the next rows; `None` where anything is wrong, or not as plain as it has to be.
    fn read(&mut self, most: usize, dtype: Dtype, path: &Path, into: &mut Rows) -> Option<u64> {
        into.logits.reset(dtype);
        let rows = self.pages.read(most, &mut into.logits)?;
        self.left = self.left.checked_sub(rows as u64)?;
        let Some(batches) = &mut self.batches else {
            (into.labels, into.keep) = (None, Vec::new());
            return Some(rows as u64);
        };
        if rows > 0 {
            let batch = batches.next()?.ok().filter(|batch| batch.num_rows() == rows)?;
            self.others.fill_beside(&batch, path, into).ok()?;
        }
        // Columns of other lengths are found out before the last rows are given out.
        let over = self.left > 0 || batches.next().is_none();
        over.then_some(rows as u64)
    }
}

impl Reader for ParquetReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        if self.copy_lists(most, into) {
            return Ok(());
        }
        let batch = self.next_batch(most)?;
        let path = self.file.path();
        let Some(batch) = batch else {
            into.logits.reset(self.layout.dtype);
            self.doubts.settle().map_err(|name| doubted(&name, path))?;
            return match self.layout.rows {
                Some(rows) if rows != self.row => {
                    let what = format!("its footer counts {rows} rows, its pages have {}", self.row);
                    Err(Error::new(path, damaged(&what)))
                }
                _ => Ok(()),
            };
        };
        let columns = self.columns.projected();
        columns.look(&batch, &mut self.doubts, path)?;
        columns.fill(&batch, self.layout.classes, self.row, path, into)?;
        self.row += batch.num_rows() as u64;
        Ok(())
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Problem {
    Problem::Damaged { format: "a Parquet file", what: error.to_string() }
}

/// Refuses a footer that would keep the Parquet crate counting; [`crate::tables::thrift`] says how.
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

fn read_metadata(file: &PositionedFile) -> parquet::errors::Result<ArrowReaderMetadata> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Footer(file.clone()))?;
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::default())
}

/// Refuses columns packed in a way that this build does not unpack: the Parquet crate would say that about a page, as
/// if the page were damaged.
fn check_compression(metadata: &ParquetMetaData, columns: &TableColumns) -> std::result::Result<(), Problem> {
    let read = columns.read();
    let schema = metadata.file_metadata().schema_descr();
    for (leaf, chunk) in metadata.row_groups().iter().flat_map(|group| group.columns().iter().enumerate()) {
        let name = match chunk.compression() {
            Compression::BROTLI(_) => "Brotli",
            Compression::LZO => "LZO",
            _ => continue,
        };
        if leaf < schema.num_columns() && read.contains(&schema.get_column_root_idx(leaf)) {
            return Err(Problem::Compressed(name.to_owned()));
        }
    }
    Ok(())
}

/// Batches of `rows` rows each, from a row group on.
fn batches(
    file: &PositionedFile,
    metadata: &ArrowReaderMetadata,
    columns: &TableColumns,
    rows: usize,
    first_group: usize,
) -> Result<ParquetRecordBatchReader> {
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Pages::new(file), metadata.clone());
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.read());
    if first_group > 0 {
        builder = builder.with_row_groups((first_group..metadata.metadata().num_row_groups()).collect());
    }
    builder
        .with_projection(mask)
        .with_batch_size(rows)
        .build()
        .map_err(|error| damaged(&error))
        .in_file(file.path())
}

/// The last row group up to a row that begins with a batch of `most` rows, and the rows from there to the row: batches
/// are then those that would have been read from the beginning, and so are the errors in them.
fn place_of(row: u64, most: usize, metadata: &ParquetMetaData) -> (usize, u64) {
    let (mut place, mut first) = ((0, row), 0);
    for (group, len) in metadata.row_groups().iter().map(|group| group.num_rows() as u64).enumerate() {
        if first <= row && first % most as u64 == 0 {
            place = (group, row - first);
        }
        first = first.saturating_add(len);
    }
    place
}

/// A list column does not say how long its lists are; the first row does.
fn first_row_len(
    file: &PositionedFile,
    metadata: &ArrowReaderMetadata,
    columns: &TableColumns,
) -> Result<usize> {
    let alone = columns.logits_alone();
    let first = batches(file, metadata, &alone, 1, 0)?.next();
    let batch = first.ok_or_else(|| Error::new(file.path(), Problem::NoRows))?;
    let batch = batch.map_err(|error| damaged(&error)).in_file(file.path())?;
    Ok(alone.projected().first_len(&batch))
}

/// Length of the footer's length and the magic word after it.
const FOOTER: u64 = 8;
/// Headers of pages have some dozens of bytes, with statistics a few hundred.
const HEADER_BUFFER: usize = 512;

/// Bytes at positions, without the shared cursor of a cloned file; a length beyond the file is refused before memory is
/// set aside for it.
fn get_bytes(
    file: &PositionedFile,
    spare: &Spare,
    start: u64,
    length: usize,
) -> parquet::errors::Result<Bytes> {
    let bytes = file
        .section(start, length as u64)
        .and_then(|_| spare.filled(length, |buffer| file.read_exact_at(buffer, start)));
    bytes.map_err(|error| ParquetError::External(Box::new(error)))
}

fn section_from(file: &PositionedFile, start: u64) -> parquet::errors::Result<Section> {
    let len = file.len().saturating_sub(start);
    file.section(start, len).map_err(|error| ParquetError::External(Box::new(error)))
}

/// A file whose footer is read.
struct Footer(PositionedFile);

impl Length for Footer {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Footer {
    type T = Section;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        section_from(&self.0, start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        get_bytes(&self.0, &Spare::default(), start, length)
    }
}

/// A file whose pages are read: what the crate asks a stream for is the header of one.
struct Pages {
    file: PositionedFile,
    spare: Spare,
}

impl Pages {
    fn new(file: &PositionedFile) -> Self {
        Self { file: file.clone(), spare: Spare::default() }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Pages {
    type T = PageHeader<BufReader<Section>>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let section = section_from(&self.file, start)?;
        Ok(PageHeader::new(BufReader::with_capacity(HEADER_BUFFER, section)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        get_bytes(&self.file, &self.spare, start, length)
    }
}

#[cfg(test)]
mod tests;
