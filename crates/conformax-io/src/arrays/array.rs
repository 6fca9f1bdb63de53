//! Arrays of known type and shape inside a file: a `Matrix` of logits and a `Vector` of labels, both read in order.
//!
//! The bytes come from a slice of a file or from a stream (a pipe, an inflated zip entry). Logits in a file are left
//! there for those who work on them. Column-major matrices are read from files only, a band of rows at a time; a stream
//! that holds one is first copied to an unnamed temporary file.

use std::cmp::Ordering;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::arrays::columns::Columns;
use crate::arrays::widened::Widened;
use crate::data::values::{ByteOrder, Values};
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::in_place::{InPlace, RowAfterRow, Unread};
use crate::reading::positioned::{PositionedFile, Section};
use crate::reading::reader::Rows;
use crate::reading::stream::Stream;
use crate::{Cells, Dtype};

/// The bytes of one array.
pub(crate) enum Payload {
    File(Section),
    Stream {
        stream: Box<dyn Read + Send>,
        path: PathBuf,
    },
    /// A stream whose writer may still be at work.
    Pipe {
        stream: Box<dyn Stream>,
        path: PathBuf,
    },
}

impl Payload {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(section) => section.path(),
            Self::Stream { path, .. } | Self::Pipe { path, .. } => path,
        }
    }

    /// Whether the next value is yet to be written by somebody else.
    fn would_wait(&mut self) -> bool {
        match self {
            Self::Pipe { stream, .. } => stream.would_wait(),
            Self::File(_) | Self::Stream { .. } => false,
        }
    }

    fn into_stream(self) -> (Box<dyn Read + Send>, PathBuf) {
        match self {
            Self::File(section) => {
                let path = section.path().to_owned();
                (Box::new(section), path)
            }
            Self::Stream { stream, path } => (stream, path),
            Self::Pipe { stream, path } => (Box::new(stream), path),
        }
    }

    /// Integers as `f64` in the machine's own order; floats as they are.
    fn widened(self, element: Element, order: ByteOrder) -> Self {
        let Element::Int { size, signed } = element else { return self };
        let (inner, path) = self.into_stream();
        let stream = Widened { inner, size, signed, order, floats: Vec::new(), taken: 0 };
        Self::Stream { stream: Box::new(stream), path }
    }

    fn reader(&mut self) -> &mut dyn Read {
        match self {
            Self::File(section) => section,
            Self::Stream { stream, .. } => stream,
            Self::Pipe { stream, .. } => stream,
        }
    }

    /// The same bytes with positions: a stream is copied to a temporary file that has no name and needs no cleaning. No
    /// more than the `len` bytes that were promised are taken from it, and one to see that it ends there.
    fn into_section(self, len: u64) -> Result<Section> {
        match self {
            Self::File(section) => Ok(section),
            streamed => {
                let (stream, path) = streamed.into_stream();
                let mut spool = tempfile::tempfile().in_file(&path)?;
                let found =
                    std::io::copy(&mut stream.take(len.saturating_add(1)), &mut spool).in_file(&path)?;
                match found.cmp(&len) {
                    Ordering::Less => Err(Error::new(path, Problem::Truncated { wanted: len, found })),
                    Ordering::Equal => Ok(PositionedFile::from_file(spool, &path)?.whole()),
                    Ordering::Greater => Err(bytes_follow(&path)),
                }
            }
        }
    }
}

fn bytes_follow(path: &Path) -> Error {
    Error::new(path, Problem::Damaged { format: "an array", what: "bytes follow the last value".to_owned() })
}

/// A payload read from its beginning, with a count of what came.
struct Counted {
    payload: Payload,
    at: u64,
    len: u64,
}

impl Counted {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.payload.reader().read(&mut buffer[filled..]) {
                Ok(0) => {
                    let found = self.at + filled as u64;
                    return Err(Error::new(
                        self.payload.path(),
                        Problem::Truncated { wanted: self.len, found },
                    ));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new(self.payload.path(), error)),
            }
        }
        self.at += filled as u64;
        Ok(())
    }

    /// Reads up to the end of a stream, so that checksums at its end are seen.
    fn finish(&mut self) -> Result<()> {
        match self.payload.reader().read(&mut [0; 1]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(bytes_follow(self.payload.path())),
            Err(error) => Err(Error::new(self.payload.path(), error)),
        }
    }
}

/// The types that logits may have.
pub(crate) const NUMBERS: &str = "f16, bf16, f32, f64 or integers";

/// Which index runs fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    RowMajor,
    ColumnMajor,
}

/// Size and type of a matrix of logits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatrixShape {
    pub(crate) rows: u64,
    pub(crate) classes: usize,
    pub(crate) dtype: Dtype,
    pub(crate) bytes: ByteOrder,
    pub(crate) order: Order,
}

impl MatrixShape {
    /// Bytes of the whole matrix; `None` where no file could be that long.
    pub(crate) fn len(&self) -> Option<u64> {
        self.rows.checked_mul(self.classes as u64)?.checked_mul(self.dtype.size() as u64)
    }
}

/// Logits being read in row order, however they lie in the file.
pub(crate) struct Matrix {
    shape: MatrixShape,
    next_row: u64,
    cells: Storage,
}

enum Storage {
    Stream(Counted),
    File(Arc<dyn InPlace>),
}

/// Values read at once. A pipe's header may claim any width, so memory grows with what really comes.
const STEP: usize = 1 << 22;

impl Matrix {
    /// Takes a payload of floats or integers that starts with the first value; `None` for other elements.
    pub(crate) fn of_numbers(
        payload: Payload,
        element: Element,
        rows: u64,
        classes: usize,
        bytes: ByteOrder,
        order: Order,
    ) -> Option<Result<Self>> {
        let (dtype, bytes, payload) = match element {
            Element::Float(dtype) => (dtype, bytes, payload),
            Element::Int { .. } => (Dtype::F64, ByteOrder::NATIVE, payload.widened(element, bytes)),
            Element::Bool | Element::Unicode(_) | Element::Bytes(_) => return None,
        };
        Some(Self::new(payload, MatrixShape { rows, classes, dtype, bytes, order }))
    }

    fn new(payload: Payload, shape: MatrixShape) -> Result<Self> {
        let overflow = Problem::Truncated { wanted: u64::MAX, found: 0 };
        let len = shape.len().ok_or(overflow).in_file(payload.path())?;
        // One row or one class lie the same way in both orders, and rows need no temporary copy.
        let plain = shape.order == Order::RowMajor || shape.classes <= 1 || shape.rows <= 1;
        let cells = match (plain, payload) {
            (true, Payload::File(section)) => {
                let MatrixShape { classes, dtype, bytes: order, .. } = shape;
                Storage::File(Arc::new(RowAfterRow { section, classes, dtype, order }))
            }
            (true, payload) => Storage::Stream(Counted { payload, at: 0, len }),
            (false, payload) => Storage::File(Arc::new(Columns::new(payload.into_section(len)?, shape))),
        };
        Ok(Self { shape, next_row: 0, cells })
    }

    pub(crate) fn shape(&self) -> &MatrixShape {
        &self.shape
    }

    /// Replaces the logits of `into` by the next rows, at most `most` of them.
    pub(crate) fn read(&mut self, most: usize, into: &mut Rows) -> Result<usize> {
        let left = usize::try_from(self.shape.rows - self.next_row).unwrap_or(usize::MAX);
        let rows = most.min(left);
        let rows = match &mut self.cells {
            Storage::File(from) if rows > 0 => {
                let rows_after = self.next_row..self.next_row + rows as u64;
                into.unread = Some(Unread { from: Arc::clone(from), rows: rows_after });
                rows
            }
            Storage::File(_) => {
                into.logits.reset(self.shape.dtype);
                0
            }
            Storage::Stream(counted) => read_stream(counted, rows, &self.shape, &mut into.logits)?,
        };
        self.next_row += rows as u64;
        Ok(rows)
    }
}

/// Replaces `into` by the next rows, fewer than `rows` where a pipe has no more of them now.
fn read_stream(counted: &mut Counted, rows: usize, shape: &MatrixShape, into: &mut Values) -> Result<usize> {
    into.reuse(shape.dtype, rows * shape.classes);
    if rows == 0 {
        counted.finish()?;
        return Ok(0);
    }
    if matches!(counted.payload, Payload::Pipe { .. }) {
        into.reset(shape.dtype);
        return read_pipe(counted, rows, shape, into);
    }
    let (wanted, size) = (rows * shape.classes, shape.dtype.size());
    let mut filled = 0;
    while filled < wanted {
        if filled == into.len() {
            into.resize(wanted.min(filled + STEP));
        }
        counted.fill(&mut into.as_bytes_mut()[filled * size..])?;
        filled = into.len();
    }
    into.swap_from(shape.bytes);
    Ok(rows)
}

/// Reads one row, and those after it that are there.
fn read_pipe(counted: &mut Counted, most: usize, shape: &MatrixShape, into: &mut Values) -> Result<usize> {
    let size = shape.dtype.size();
    let mut rows = 0;
    while rows < most && (rows == 0 || !counted.payload.would_wait()) {
        let end = into.len() + shape.classes;
        while into.len() < end {
            let start = into.len();
            into.resize(end.min(start + STEP));
            counted.fill(&mut into.as_bytes_mut()[start * size..])?;
        }
        rows += 1;
    }
    into.swap_from(shape.bytes);
    Ok(rows)
}

/// What the elements of a vector are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    Int {
        size: usize,
        signed: bool,
    },
    Float(Dtype),
    /// UTF-32 text of this many characters, padded with zeros.
    Unicode(usize),
    /// UTF-8 text of this many bytes, padded with zeros.
    Bytes(usize),
}

impl Element {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int { size, .. } | Self::Bytes(size) => size,
            Self::Float(dtype) => dtype.size(),
            Self::Unicode(characters) => characters.saturating_mul(4),
        }
    }
}

/// Labels, names or another column, read in order.
pub(crate) struct Vector {
    counted: Counted,
    element: Element,
    bytes: ByteOrder,
    left: u64,
    rows: u64,
    buffer: Vec<u8>,
}

/// A vector is decoded in pieces of about this many bytes: text can be wide.
const PIECE: usize = 1 << 16;

impl Vector {
    pub(crate) fn new(payload: Payload, element: Element, bytes: ByteOrder, rows: u64) -> Self {
        let counted = Counted { payload, at: 0, len: rows.saturating_mul(element.size() as u64) };
        Self { counted, element, bytes, left: rows, rows, buffer: Vec::new() }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn element(&self) -> Element {
        self.element
    }

    pub(crate) fn path(&self) -> &Path {
        self.counted.payload.path()
    }

    /// The next cells, at most `most` of them.
    pub(crate) fn read(&mut self, most: usize) -> Result<Cells> {
        let mut cells = crate::arrays::decode::empty(self.element);
        let mut wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(most);
        if wanted == 0 {
            self.counted.finish()?;
        }
        let size = self.element.size();
        while wanted > 0 {
            let piece = wanted.min((PIECE / size.max(1)).max(1));
            self.buffer.resize(piece * size, 0);
            self.counted.fill(&mut self.buffer)?;
            let first = self.rows - self.left;
            crate::arrays::decode::extend(&mut cells, &self.buffer, piece, self.element, self.bytes)
                .map_err(|row| {
                    Error::new(self.counted.payload.path(), Problem::NotUtf8).in_row(first + row as u64)
                })?;
            self.left -= piece as u64;
            wanted -= piece;
        }
        Ok(cells)
    }

    /// Everything, as text: how a short list of names is read.
    pub(crate) fn read_text(&mut self) -> Result<Vec<String>> {
        let cells = self.read(usize::MAX)?;
        Ok((0..cells.len()).map(|row| cells.text(row)).collect())
    }
}
