//! Parquet, read page by page: a row group of any size passes through, because only pages are held.
//!
//! The crate is asked for two things, each through a view of the file of its own: the footer through [`Footer`], and then
//! pages through [`Pages`], which holds what their headers claim against what can be.

use std::io::BufReader;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::{PositionedFile, Section};
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::roles::Doubts;
use crate::tables::page_header::PageHeader;
use crate::tables::record_batch::{TableColumns, doubted};
use crate::tables::thrift::impossible_list;

pub(crate) struct ParquetReader {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    columns: TableColumns,
    layout: Layout,
    doubts: Doubts,
    /// Made at the first read, which says how many rows a batch has.
    batches: Option<ParquetRecordBatchReader>,
    row: u64,
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
        Ok(Self { file: file.clone(), metadata, columns, layout, doubts, batches: None, row: 0 })
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
            none => none.insert(batches(&self.file, &self.metadata, &self.columns, most)?),
        };
        let Some(batch) = batches.next() else {
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
        let batch = batch.map_err(|error| damaged(&error)).in_file(path)?;
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

/// Refuses columns packed in a way that this build does not unpack: the Parquet crate would say that about a page, as if
/// the page were damaged.
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

fn batches(
    file: &PositionedFile,
    metadata: &ArrowReaderMetadata,
    columns: &TableColumns,
    rows: usize,
) -> Result<ParquetRecordBatchReader> {
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(Pages(file.clone()), metadata.clone());
    let mask = ProjectionMask::roots(builder.parquet_schema(), columns.read());
    builder
        .with_projection(mask)
        .with_batch_size(rows)
        .build()
        .map_err(|error| damaged(&error))
        .in_file(file.path())
}

/// A list column does not say how long its lists are; the first row does.
fn first_row_len(
    file: &PositionedFile,
    metadata: &ArrowReaderMetadata,
    columns: &TableColumns,
) -> Result<usize> {
    let alone = columns.logits_alone();
    let first = batches(file, metadata, &alone, 1)?.next();
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
fn get_bytes(file: &PositionedFile, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
    let outside = |error: Error| ParquetError::External(Box::new(error));
    file.section(start, length as u64).map_err(outside)?;
    let mut buffer = vec![0; length];
    file.read_exact_at(&mut buffer, start).map_err(outside)?;
    Ok(buffer.into())
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
        get_bytes(&self.0, start, length)
    }
}

/// A file whose pages are read: what the crate asks a stream for is the header of one.
struct Pages(PositionedFile);

impl Length for Pages {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Pages {
    type T = PageHeader<BufReader<Section>>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        let section = section_from(&self.0, start)?;
        Ok(PageHeader::new(BufReader::with_capacity(HEADER_BUFFER, section)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        get_bytes(&self.0, start, length)
    }
}
