//! `ListPages`: lists of one length, copied from the pages of a Parquet column straight into rows.
//!
//! Most writers store logits as plain numbers without nulls, and all rows have as many. For such a column levels need
//! no decoding: it is enough that they are what they have to be. Whatever else there is, a dictionary, a null, another
//! length, damage, makes [`ListPages::read`] answer `None`, and the Parquet crate's own reader goes on from there and
//! says what is wrong, if anything is.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::tables::levels::{Place, all_are};
use crate::{Dtype, Values};

pub(crate) struct ListPages<R: ChunkReader> {
    file: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    leaf: usize,
    classes: usize,
    /// The row group whose pages come next.
    next_group: usize,
    /// Rows that are still to come of the row group being read.
    rows: usize,
    pages: Option<SerializedPageReader<R>>,
    place: Place,
    /// Values of the current page that nobody has asked for yet.
    values: Bytes,
}

impl<R: ChunkReader> ListPages<R> {
    /// The only column below the root `column`; `None` where its numbers are of another type than `dtype`, or the
    /// footer contradicts itself.
    pub(crate) fn new(
        file: Arc<R>,
        metadata: Arc<ParquetMetaData>,
        column: usize,
        dtype: Dtype,
        classes: usize,
    ) -> Option<Self> {
        let schema = metadata.file_metadata().schema_descr();
        let mut below = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == column);
        let (leaf, more) = (below.next()?, below.next());
        let descriptor = schema.column(leaf);
        let stored = match descriptor.physical_type() {
            Type::FLOAT => Some(Dtype::F32),
            Type::DOUBLE => Some(Dtype::F64),
            _ => None,
        };
        let flat = more.is_none()
            && descriptor.max_rep_level() == 1
            && (1..=3).contains(&descriptor.max_def_level());
        let groups = metadata.row_groups();
        let counted: i64 = groups.iter().map(|group| group.num_rows()).fold(0, i64::saturating_add);
        let whole = counted == metadata.file_metadata().num_rows()
            && groups
                .iter()
                .all(|group| group.num_rows() >= 0 && group.num_columns() == schema.num_columns());
        (stored == Some(dtype) && flat && whole && classes > 0).then(|| Self {
            file,
            leaf,
            classes,
            next_group: 0,
            rows: 0,
            pages: None,
            place: Place::before_row(classes),
            values: Bytes::new(),
            metadata: metadata.clone(),
        })
    }

    /// Appends the next rows to `out`, at most `most` of them, and says how many; `None` where a page has something
    /// that this reader leaves to others, and then what is in `out` is of no use.
    pub(crate) fn read(&mut self, most: usize, out: &mut Values) -> Option<usize> {
        let mut read = 0;
        while read < most {
            if self.rows == 0 && !self.open_group()? {
                break;
            }
            let rows = self.rows.min(most - read);
            let mut bytes = rows.checked_mul(self.classes)?.checked_mul(out.dtype().size())?;
            while bytes > 0 {
                if self.values.is_empty() {
                    self.open_page(out.dtype().size())?;
                }
                let taken = self.values.split_to(bytes.min(self.values.len()));
                append(&taken, out);
                bytes -= taken.len();
            }
            read += rows;
            self.rows -= rows;
            // A row is over where another begins, which may be on the next page.
            match self.rows {
                0 => self.close_group()?,
                _ if self.values.is_empty() => self.open_page(out.dtype().size())?,
                _ => {}
            }
        }
        Some(read)
    }

    /// Goes on to the next row group that has rows; `false` after the last.
    fn open_group(&mut self) -> Option<bool> {
        while let Some(group) = self.metadata.row_groups().get(self.next_group) {
            self.next_group += 1;
            self.rows = usize::try_from(group.num_rows()).ok()?;
            let chunk = group.column(self.leaf);
            self.pages = Some(SerializedPageReader::new(self.file.clone(), chunk, self.rows, None).ok()?);
            if self.rows > 0 {
                return Some(true);
            }
            self.close_group()?;
        }
        Some(false)
    }

    /// Makes sure that a row group has as many rows as it should.
    fn close_group(&mut self) -> Option<()> {
        let more = self.pages.take()?.get_next_page().ok()?;
        (more.is_none() && self.values.is_empty() && self.place.is_before_row()).then_some(())
    }

    /// Goes on to the next page; `size` is that of a value.
    fn open_page(&mut self, size: usize) -> Option<()> {
        let page = self.pages.as_mut()?.get_next_page().ok()??;
        let descriptor = self.metadata.file_metadata().schema_descr().column(self.leaf);
        let Parts { count, repetition, definition, values } = Parts::of(page)?;
        if count == 0 || !all_are(descriptor.max_def_level(), &definition, count) {
            return None;
        }
        self.place = self.place.after(&repetition, count)?;
        let len = count.checked_mul(size)?;
        self.values = (len <= values.len()).then(|| values.slice(..len))?;
        Some(())
    }
}

fn append(bytes: &[u8], out: &mut Values) {
    match out {
        Values::F32(out) => out.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
        Values::F64(out) => out.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
        Values::F16(_) | Values::Bf16(_) => unreachable!("pages of lists have singles or doubles"),
    }
}

/// What a page of plain values has.
struct Parts {
    /// Levels of each kind, and values where none is null.
    count: usize,
    repetition: Bytes,
    definition: Bytes,
    values: Bytes,
}

impl Parts {
    fn of(page: Page) -> Option<Self> {
        let (repetition, definition, values, count) = match page {
            Page::DataPage {
                mut buf,
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                ..
            } => (with_length(&mut buf)?, with_length(&mut buf)?, buf, num_values),
            Page::DataPageV2 {
                mut buf,
                num_values,
                encoding: Encoding::PLAIN,
                num_nulls: 0,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let repetition = take(&mut buf, rep_levels_byte_len)?;
                (repetition, take(&mut buf, def_levels_byte_len)?, buf, num_values)
            }
            _ => return None,
        };
        Some(Self { count: usize::try_from(count).ok()?, repetition, definition, values })
    }
}

/// Levels that begin with the number of their bytes.
fn with_length(page: &mut Bytes) -> Option<Bytes> {
    let len = take(page, 4)?;
    take(page, u32::from_le_bytes(len[..].try_into().ok()?))
}

fn take(page: &mut Bytes, len: u32) -> Option<Bytes> {
    let len = usize::try_from(len).ok()?;
    (len <= page.len()).then(|| page.split_to(len))
}
