//! The messages of an Arrow IPC file, one after another, each held against the file's length before it is read.
//!
//! Needed by `arrow-ipc` 59.3.2: its `FileReader` and `StreamReader` set memory aside for whatever length a message or a
//! compressed buffer claims (`MutableBuffer::from_len_zeroed(bodyLength)`, `Vec::with_capacity(decompressed_size)`), and a
//! claim that cannot be met ends the process. Its `StreamDecoder` takes messages that somebody else has read. The file form
//! is the stream form between a magic word and a footer, so both are read alike.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, RecordBatch as BatchHeader, root_as_message};
use arrow_schema::Schema;

use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::PositionedFile;
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
}

impl Messages {
    /// Opens a file and reads its schema.
    pub(crate) fn open(file: &PositionedFile, most_inflated: Option<u64>) -> Result<(Schema, Self)> {
        let mut magic = [0; 6];
        file.read_exact_at(&mut magic, 0)?;
        let at = if magic == *MAGIC { after_magic(file)? } else { 0 };
        let messages =
            Self { file: file.clone(), at, decoder: StreamDecoder::new(), most_inflated, last: None };
        let metadata = messages.metadata()?.ok_or_else(|| messages.damaged("it has no schema"))?;
        let message = messages.parse(&metadata)?;
        let schema =
            message.header_as_schema().ok_or_else(|| messages.damaged("it does not begin with a schema"))?;
        Ok((fb_to_schema(schema), messages))
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The next record batch; dictionaries on the way are taken in.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(mut message) = self.next_message()? {
            let batch = self.decoder.decode(&mut message);
            if let Some(batch) = batch.map_err(|error| self.damaged(&error.to_string()))? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
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

    /// The whole next message, frame and all.
    fn next_message(&mut self) -> Result<Option<Buffer>> {
        let Some(metadata) = self.metadata()? else { return Ok(None) };
        let message = self.parse(&metadata)?;
        let body = u64::try_from(message.bodyLength())
            .map_err(|_| self.damaged("a message has a negative length"))?;
        let before = 8 + metadata.len() as u64;
        let len = before.saturating_add(body);
        self.file.section(self.at, len)?;
        let last = self.last.take().and_then(|last| last.into_vec().ok());
        let mut bytes = match last.filter(|last: &Vec<u8>| last.capacity() as u64 >= len) {
            Some(last) => last,
            None => self.room_for(len)?,
        };
        bytes.resize(len as usize, 0);
        self.file.read_exact_at(&mut bytes, self.at)?;
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        if let Some(batch) = message.header_as_record_batch().or(dictionary) {
            self.check_inflated(&batch, &bytes[before as usize..])?;
        }
        self.at += len;
        let bytes = Buffer::from_vec(bytes);
        self.last = Some(bytes.clone());
        Ok(Some(bytes))
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
