//! The messages of an Arrow IPC file, one after another, each held against the file's length before it is read.
//!
//! Needed by `arrow-ipc` 59.3.2: its `FileReader` and `StreamReader` set memory aside for whatever length a message or
//! a compressed buffer claims (`MutableBuffer::from_len_zeroed(bodyLength)`, `Vec::with_capacity(decompressed_size)`),
//! and a claim that cannot be met ends the process. Its `StreamDecoder` takes messages that somebody else has read. The
//! file form is the stream form between a magic word and a footer, so both are read alike.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, RecordBatch as BatchHeader, root_as_message};
use arrow_schema::Schema;

use crate::Dtype;
use crate::data::values::ByteOrder;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::in_place::{RowAfterRow, Unread};
use crate::reading::positioned::PositionedFile;
use crate::tables::lists_in_place::ListsInPlace;
use crate::tables::page_header::TIGHTEST;

/// Begins a file.
const MAGIC: &[u8; 6] = b"ARROW1";
/// Begins a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

pub(crate) struct Messages {
    file: PositionedFile,
    at: u64,
    decoder: StreamDecoder,
    most_inflated: Option<u64>,
    /// The last message, whose memory the next one takes once its batch is gone.
    last: Option<Buffer>,
    /// The lists whose values are left in the file, where they can be.
    in_place: Option<ListsInPlace>,
}

/// A message, and the part of it that was not read.
struct Taken {
    bytes: Buffer,
    left_out: Option<Range<u64>>,
}

/// A record batch, and where in the file the values of its lists are where they were left there.
pub(crate) struct Batch {
    pub(crate) columns: RecordBatch,
    pub(crate) lists_at: Option<u64>,
}

impl Messages {
    /// Opens a file and reads its schema.
    pub(crate) fn open(file: &PositionedFile, most_inflated: Option<u64>) -> Result<(Schema, Self)> {
        let mut magic = [0; 6];
        file.read_exact_at(&mut magic, 0)?;
        let is_file = magic == *MAGIC;
        let at = if is_file { after_magic(file)? } else { 0 };
        let messages = Self {
            file: file.clone(),
            at,
            decoder: StreamDecoder::new(),
            most_inflated,
            last: None,
            in_place: None,
        };
        if is_file {
            messages.expect_end()?;
        }
        let metadata = messages.metadata()?.ok_or_else(|| messages.damaged("it has no schema"))?;
        let message = messages.parse(&metadata)?;
        let schema =
            message.header_as_schema().ok_or_else(|| messages.damaged("it does not begin with a schema"))?;
        Ok((fb_to_schema(schema), messages))
    }

    /// A file ends as it began. One that was cut between two messages would only seem to have fewer rows.
    fn expect_end(&self) -> Result<()> {
        let mut end = [0; 6];
        self.file.read_exact_at(&mut end, self.file.len().saturating_sub(6))?;
        if end == *MAGIC { Ok(()) } else { Err(self.damaged("its end is missing")) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Leaves the values of these lists in the file, for [`Self::lists_at`].
    pub(crate) fn leave_in_place(&mut self, lists: Option<ListsInPlace>) {
        self.in_place = lists;
    }

    /// The next record batch; dictionaries on the way are taken in.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch>> {
        loop {
            let start = self.at;
            let Some(message) = self.next_message()? else { return Ok(None) };
            let Some(columns) = self.decode(&message)? else { continue };
            let (Some(lists), Some(left_out)) = (self.in_place, message.left_out) else {
                return Ok(Some(Batch { columns, lists_at: None }));
            };
            if lists.is_at(&columns, message.bytes[left_out.start as usize..].as_ptr()) {
                return Ok(Some(Batch { columns, lists_at: Some(start + left_out.start) }));
            }
            // The decoder copies what is not aligned, and what it copied was never read.
            (self.at, self.in_place) = (start, None);
        }
    }

    fn decode(&mut self, message: &Taken) -> Result<Option<RecordBatch>> {
        let batch = self.decoder.decode(&mut message.bytes.clone());
        batch.map_err(|error| self.damaged(&error.to_string()))
    }

    /// Lists of so many values each in their place in the file, for somebody else to read.
    pub(crate) fn lists_at(&self, at: u64, rows: usize, classes: usize, dtype: Dtype) -> Result<Unread> {
        let section = self.file.section(at, (rows * classes * dtype.size()) as u64)?;
        let from = Arc::new(RowAfterRow { section, classes, dtype, order: ByteOrder::NATIVE });
        Ok(Unread { from, rows: 0..rows as u64 })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(self.path(), Problem::Damaged { format: "an Arrow file", what: what.to_owned() })
    }

    /// The metadata of the message at this place, without its frame; `None` at the end.
    fn metadata(&self) -> Result<Option<Vec<u8>>> {
        if self.at == self.file.len() {
            return Ok(None);
        }
        let mut frame = [0; 8];
        self.file.read_exact_at(&mut frame, self.at)?;
        let (marker, len) = frame.split_at(4);
        if marker != CONTINUATION {
            return Err(self.damaged("a message does not begin as one"));
        }
        let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]);
        if len == 0 {
            return Ok(None);
        }
        self.file.section(self.at + 8, len.into())?;
        let mut metadata = vec![0; len as usize];
        self.file.read_exact_at(&mut metadata, self.at + 8)?;
        Ok(Some(metadata))
    }

    fn parse<'a>(&self, metadata: &'a [u8]) -> Result<Message<'a>> {
        root_as_message(metadata).map_err(|error| self.damaged(&error.to_string()))
    }

    /// The next message, frame and all, without the values that stay in the file.
    fn next_message(&mut self) -> Result<Option<Taken>> {
        let Some(metadata) = self.metadata()? else { return Ok(None) };
        let message = self.parse(&metadata)?;
        let body = u64::try_from(message.bodyLength())
            .map_err(|_| self.damaged("a message has a negative length"))?;
        let before = 8 + metadata.len() as u64;
        let len = before.saturating_add(body);
        self.file.section(self.at, len)?;
        let left_out = (message.header_as_record_batch())
            .and_then(|batch| self.in_place?.place(&batch, body))
            .map(|place| before + place.start..before + place.end);
        let mut bytes = self.message_memory(len)?;
        let unread = left_out.clone().unwrap_or(len..len);
        self.file.read_exact_at(&mut bytes[..unread.start as usize], self.at)?;
        self.file.read_exact_at(&mut bytes[unread.end as usize..], self.at + unread.end)?;
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        if let Some(batch) = message.header_as_record_batch().or(dictionary) {
            self.check_inflated(&batch, &bytes[before as usize..])?;
        }
        self.at += len;
        let bytes = Buffer::from_vec(bytes);
        self.last = Some(bytes.clone());
        Ok(Some(Taken { bytes, left_out }))
    }

    /// Memory for a message: that of the last one, or zeros that the system gives out when they are first touched.
    fn message_memory(&mut self, len: u64) -> Result<Vec<u8>> {
        let last = self.last.take().and_then(|last| last.into_vec().ok());
        match last.filter(|last: &Vec<u8>| last.capacity() as u64 >= len) {
            Some(mut last) => {
                last.resize(len as usize, 0);
                Ok(last)
            }
            None => {
                drop(self.room_for(len)?);
                Ok(vec![0; len as usize])
            }
        }
    }

    /// Compressed buffers begin with the length they inflate to. Together they must be able to come from so many bytes,
    /// and are tried out before the decoder relies on them.
    fn check_inflated(&self, batch: &BatchHeader<'_>, body: &[u8]) -> Result<()> {
        if batch.compression().is_none() {
            return Ok(());
        }
        let claims = batch.buffers().into_iter().flatten().filter_map(|buffer| {
            let start = usize::try_from(buffer.offset()).ok()?;
            let claim = body.get(start..)?.first_chunk::<8>()?;
            // −1 says that the buffer is not compressed after all; an empty one has no length.
            u64::try_from(i64::from_le_bytes(*claim)).ok().filter(|_| buffer.length() > 0)
        });
        let total = claims.fold(0, u64::saturating_add);
        if total > (body.len() as u64).saturating_mul(TIGHTEST) {
            return Err(self.damaged(&format!("{} bytes claim to inflate to {total}", body.len())));
        }
        if self.most_inflated.is_some_and(|most| total > most) {
            return Err(Error::new(self.path(), Problem::BatchTooLarge(total)));
        }
        self.room_for(total).map(drop)
    }

    fn room_for(&self, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        usize::try_from(len)
            .ok()
            .and_then(|len| bytes.try_reserve_exact(len).ok())
            .ok_or(Problem::BatchTooLarge(len))
            .in_file(self.path())?;
        Ok(bytes)
    }
}

/// Writers fill up with zeros after the magic word, to the alignment they like: 8 bytes or 64.
fn after_magic(file: &PositionedFile) -> Result<u64> {
    let mut at = 8;
    let mut word = [0; 4];
    while at < 64 && word == [0; 4] {
        file.read_exact_at(&mut word, at)?;
        at += 8;
    }
    Ok(if word == [0; 4] { at } else { at - 8 })
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{FixedSizeListBuilder, Float32Builder, LargeListBuilder, ListBuilder};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float32Type;
    use arrow_array::*;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};

    use super::*;

    const ROWS: usize = 6;
    const CLASSES: i32 = 3;

    fn value(row: usize, class: usize) -> f32 {
        (10 * row + class) as f32
    }

    fn rows() -> impl Iterator<Item = [f32; 3]> {
        (0..ROWS).map(|row| [0, 1, 2].map(|class| value(row, class)))
    }

    fn lists() -> [ArrayRef; 3] {
        let mut plain = ListBuilder::new(Float32Builder::new());
        let mut large = LargeListBuilder::new(Float32Builder::new());
        let mut fixed = FixedSizeListBuilder::new(Float32Builder::new(), CLASSES);
        for row in rows() {
            plain.append_value(row.map(Some));
            large.append_value(row.map(Some));
            fixed.values().append_slice(&row);
            fixed.append(true);
        }
        [Arc::new(plain.finish()), Arc::new(large.finish()), Arc::new(fixed.finish())]
    }

    /// A column of every type whose buffers are counted, and one whose buffers are not.
    fn beside() -> (Vec<ArrayRef>, ArrayRef) {
        let texts: Vec<String> = (0..ROWS).map(|row| format!("row {row}")).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
        let field = Arc::new(arrow_schema::Field::new("n", numbers.data_type().clone(), true));
        let counted: Vec<ArrayRef> = vec![
            Arc::new(NullArray::new(ROWS)),
            Arc::new(BooleanArray::from(vec![true; ROWS])),
            numbers.clone(),
            Arc::new(StringArray::from_iter_values(&texts)),
            Arc::new(LargeBinaryArray::from_iter_values(&texts)),
            Arc::new(FixedSizeBinaryArray::try_from_iter(texts.iter().map(|_| [1_u8, 2])).unwrap()),
            Arc::new(texts.iter().map(String::as_str).collect::<DictionaryArray<types::Int8Type>>()),
            Arc::new(StructArray::from(vec![(field, numbers)])),
            lists()[0].clone(),
            lists()[2].clone(),
        ];
        (counted, Arc::new(StringViewArray::from_iter_values(&texts)))
    }

    /// Writes two batches: the columns, then the lists.
    fn written(columns: &[ArrayRef], lists: &ArrayRef, options: IpcWriteOptions) -> tempfile::NamedTempFile {
        let columns = columns.iter().chain([lists]).enumerate();
        let batch =
            RecordBatch::try_from_iter(columns.map(|(place, column)| (place.to_string(), column.clone())));
        let (batch, file) = (batch.unwrap(), tempfile::NamedTempFile::new().unwrap());
        let mut writer = FileWriter::try_new_with_options(&file, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch.slice(2, 3)).unwrap();
        writer.finish().unwrap();
        file
    }

    fn items(batch: &RecordBatch) -> ArrayRef {
        let lists = batch.columns().last().unwrap();
        match lists.data_type() {
            arrow_schema::DataType::FixedSizeList(..) => lists.as_fixed_size_list().values().clone(),
            arrow_schema::DataType::LargeList(_) => lists.as_list::<i64>().values().clone(),
            _ => lists.as_list::<i32>().values().clone(),
        }
    }

    /// For each batch whether its lists were left in the file, and their values from wherever they are.
    fn read(file: &Path) -> Vec<(bool, Vec<f32>)> {
        let file = PositionedFile::open(file).unwrap();
        let (schema, mut messages) = Messages::open(&file, None).unwrap();
        let lists = ListsInPlace::find(&schema, schema.fields().len() - 1);
        messages.leave_in_place(lists);
        let mut batches = Vec::new();
        while let Some(batch) = messages.next_batch().unwrap() {
            let mut values = items(&batch.columns).as_primitive::<Float32Type>().values().to_vec();
            if let Some(at) = batch.lists_at {
                // Memory of an earlier message may hold anything here.
                values.fill(f32::NAN);
                let before = lists.unwrap().bytes_before(&batch.columns, 1)
                    - lists.unwrap().bytes_before(&batch.columns, 0);
                assert_eq!(before, 4 * CLASSES as u64);
                let rows = values.len() / CLASSES as usize;
                let unread = messages.lists_at(at, rows, CLASSES as usize, Dtype::F32).unwrap();
                let mut read = crate::Values::F32(values);
                unread.read(1, &mut read).unwrap();
                values = (0..read.len()).map(|index| read.get(index).unwrap() as f32).collect();
            }
            batches.push((batch.lists_at.is_some(), values));
        }
        batches
    }

    fn expected(in_place: bool) -> Vec<(bool, Vec<f32>)> {
        let all: Vec<f32> = rows().flatten().collect();
        vec![(in_place, all.clone()), (in_place, all[6..15].to_vec())]
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_refused() {
        let [plain, ..] = lists();
        let batch = RecordBatch::try_from_iter([("logits", plain)]).unwrap();
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        (0..2).for_each(|_| writer.write(&batch).unwrap());
        let whole = writer.into_inner().unwrap();
        let rows_of = |bytes: &[u8]| -> Result<usize> {
            let file = PositionedFile::in_memory(&Arc::new(bytes.to_vec()), Path::new("z.arrow"));
            let (_, mut messages) = Messages::open(&file, None)?;
            let mut rows = 0;
            while let Some(batch) = messages.next_batch()? {
                rows += batch.columns.num_rows();
            }
            Ok(rows)
        };
        assert_eq!(rows_of(&whole).unwrap(), 2 * ROWS);
        for cut in 0..whole.len() {
            assert!(rows_of(&whole[..cut]).is_err(), "cut at {cut} of {}", whole.len());
        }
    }

    #[test]
    fn lists_stay_in_the_file_whatever_comes_before_them() {
        let (counted, uncounted) = beside();
        for lists in lists() {
            for column in &counted {
                let file = written(&[column.clone(), column.clone()], &lists, IpcWriteOptions::default());
                assert_eq!(
                    read(file.path()),
                    expected(true),
                    "{} after {}",
                    lists.data_type(),
                    column.data_type()
                );
            }
            let file = written(&counted, &lists, IpcWriteOptions::default());
            assert_eq!(read(file.path()), expected(true), "{}", lists.data_type());
            let file = written(std::slice::from_ref(&uncounted), &lists, IpcWriteOptions::default());
            assert_eq!(read(file.path()), expected(false), "{}", lists.data_type());
        }
    }

    #[test]
    fn compressed_lists_are_read_with_their_batch() {
        let options = IpcWriteOptions::default();
        let options = options.try_with_compression(Some(arrow_ipc::CompressionType::LZ4_FRAME)).unwrap();
        for lists in lists() {
            let file = written(&[], &lists, options.clone());
            assert_eq!(read(file.path()), expected(false), "{}", lists.data_type());
        }
    }

    /// A wrong count of buffers cannot put other values in the place of the logits.
    #[test]
    fn what_was_left_out_by_mistake_is_read_after_all() {
        let columns: [ArrayRef; 1] = [Arc::new(Int64Array::from_iter_values(0..ROWS as i64))];
        let file = written(&columns, &lists()[0], IpcWriteOptions::default());
        let file = PositionedFile::open(file.path()).unwrap();
        let (schema, mut messages) = Messages::open(&file, None).unwrap();
        messages.leave_in_place(ListsInPlace::find(&schema, 1).map(|lists| lists.displaced(-2)));
        let batch = messages.next_batch().unwrap().unwrap();
        assert_eq!(batch.lists_at, None);
        assert_eq!(items(&batch.columns).as_primitive::<Float32Type>().values()[..], expected(true)[0].1);
        let numbers = batch.columns.column(0).as_primitive::<types::Int64Type>();
        assert_eq!(numbers.values()[..], [0, 1, 2, 3, 4, 5]);
    }
}
