//! Opening one file of a data set with the reader of its format.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::calibration::kind::Kind;
use crate::data::format::Format;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Reader, Wanted};
use crate::reading::stamp::Stamp;
use crate::reading::stream::{Pipe, Stream};

/// One file of a data set, and the file its labels are in where that is another.
#[derive(Debug, Clone)]
pub(crate) struct File {
    path: PathBuf,
    labels: Option<PathBuf>,
    /// What it holds, where that is no file but memory.
    bytes: Option<Arc<Vec<u8>>>,
    /// As they were before anything was read.
    stamps: [Option<Stamp>; 2],
}

impl File {
    pub(crate) fn new(path: &Path, labels: Option<&Path>) -> Self {
        Self {
            path: path.to_owned(),
            labels: labels.map(Path::to_owned),
            bytes: None,
            stamps: [Stamp::of(path), labels.and_then(Stamp::of)],
        }
    }

    pub(crate) fn in_memory(name: &Path, bytes: &Arc<Vec<u8>>) -> Self {
        let bytes = Some(Arc::clone(bytes));
        Self { path: name.to_owned(), labels: None, bytes, stamps: [None, None] }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that its labels are in.
    pub(crate) fn labels_path(&self) -> &Path {
        self.labels.as_deref().unwrap_or(&self.path)
    }

    /// What tells it from every other file; `None` for a pipe that may be another one each time.
    pub(crate) fn identity(&self) -> Option<PathBuf> {
        if self.path == Path::new("-") {
            return Some(self.path.clone());
        }
        let stamp = self.stamps[0].as_ref()?;
        // Names differ where one is a link to the other, which the numbers of files tell and paths do not always.
        match stamp.identity() {
            Some((device, number)) => Some(PathBuf::from(format!("{device}/{number}"))),
            None => std::fs::canonicalize(&self.path).ok(),
        }
    }

    /// An error where this file, or the one with its labels, is no longer what it was when the data set was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let paths = [Some(self.path()), self.labels.as_deref()];
        for (path, before) in paths.into_iter().zip(&self.stamps) {
            if let (Some(path), Some(before)) = (path, before)
                && Stamp::of(path).as_ref() != Some(before)
            {
                return Err(Error::new(path, Problem::Changed));
            }
        }
        Ok(())
    }

    /// Standard input, a named pipe or a device: bytes that pass by once.
    pub(crate) fn is_pipe(&self) -> bool {
        self.bytes.is_none() && is_pipe(&self.path)
    }
}

fn is_pipe(path: &Path) -> bool {
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Bytes of a text file that are read at once.
const TEXT_BUFFER: usize = 1 << 18;
/// Enough of a file to tell its format.
const START: usize = 64;
/// Enough of a pipe: the longest of the magic words, and shorter than any two lines of text, which must not wait here.
const PIPE_START: usize = 6;

/// Opens a file, with the labels from beside it where it has some there.
pub(crate) fn open(file: &File, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    let path = file.path();
    if let Some(bytes) = &file.bytes {
        return open_positioned(path, &PositionedFile::in_memory(bytes, path), wanted);
    }
    match &file.labels {
        None => open_alone(path, wanted),
        Some(labels) => {
            let alone = Wanted { labels: false, ..wanted.clone() };
            with_labels(open_alone(path, &alone)?, labels, wanted)
        }
    }
}

fn open_alone(path: &Path, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    if is_pipe(path) {
        return open_stream(path, wanted);
    }
    open_positioned(path, &PositionedFile::open(path)?, wanted)
}

fn open_positioned(path: &Path, data: &PositionedFile, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    let start = start_of(data)?;
    let format = Format::of_name(path).or_else(|| Format::of_bytes(&start));
    let format = known(format, &start).in_file(path)?;
    if data.len() == 0 {
        return Err(Error::new(path, Problem::NoRows));
    }
    let stream = || -> Box<dyn Stream> { Box::new(BufReader::with_capacity(TEXT_BUFFER, data.whole())) };
    match format {
        Format::Npy => npy(path, data, wanted),
        Format::Npz => npz(path, data, wanted),
        Format::Parquet => parquet(path, data, wanted),
        Format::Arrow => arrow(path, data, wanted),
        Format::Safetensors => safetensors(path, data, wanted),
        Format::Csv => csv(path, stream(), wanted),
        Format::JsonLines => json_lines(path, stream(), wanted),
    }
}

/// The first bytes of a file that is not compressed as a whole.
fn start_of(file: &PositionedFile) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    file.whole().take(START as u64).read_to_end(&mut start).in_file(file.path())?;
    check_compression(&start).in_file(file.path())?;
    match Kind::of_bytes(&start) {
        Some(kind) => Err(Error::new(file.path(), not_data(kind))),
        None => Ok(start),
    }
}

fn not_data(kind: Kind) -> Problem {
    Problem::OtherKind { found: kind.name().to_owned(), wanted: "data" }
}

/// What a pipe holds, where that is a file of ours; no more of it is waited for than it takes to tell.
fn kind_of(stream: &mut Pipe) -> std::io::Result<Option<Kind>> {
    for len in PIPE_START..START {
        let start = stream.peek(len)?;
        if let Some(kind) = Kind::of_bytes(start) {
            return Ok(Some(kind));
        }
        if start.len() < len || !Kind::may_begin(start) {
            break;
        }
    }
    Ok(None)
}

/// The format, where there is one and what the bytes begin with is not an array of rows.
fn known(format: Option<Format>, start: &[u8]) -> std::result::Result<Format, Problem> {
    match format {
        None | Some(Format::JsonLines) if start.trim_ascii_start().starts_with(b"[") => {
            Err(Problem::JsonArray)
        }
        None => Err(Problem::UnknownFormat),
        Some(format) => Ok(format),
    }
}

/// Names a compression that is not looked behind, which would otherwise be taken for damage.
fn check_compression(start: &[u8]) -> std::result::Result<(), Problem> {
    let magics: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "gzip"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    match magics.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, name)) => Err(Problem::Compressed((*name).to_owned())),
        None => Ok(()),
    }
}

fn open_stream(path: &Path, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    let raw: Box<dyn Read + Send> = match path == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).in_file(path)?),
    };
    let mut stream = Pipe::new(raw).in_file(path)?;
    let start = stream.peek(PIPE_START).in_file(path)?;
    if start.is_empty() {
        return Err(Error::new(path, Problem::NoRows));
    }
    check_compression(start).in_file(path)?;
    let format = known(Format::of_bytes(start), start).in_file(path)?;
    if let Some(kind) = kind_of(&mut stream).in_file(path)? {
        return Err(Error::new(path, not_data(kind)));
    }
    match format {
        Format::Npy => npy_stream(path, Box::new(stream), wanted),
        Format::Csv => csv(path, Box::new(stream), wanted),
        Format::JsonLines => json_lines(path, Box::new(stream), wanted),
        Format::Npz => Err(Error::new(path, Problem::NotFromPipe("npz"))),
        Format::Parquet => Err(Error::new(path, Problem::NotFromPipe("Parquet"))),
        Format::Arrow => Err(Error::new(path, Problem::NotFromPipe("Arrow"))),
        Format::Safetensors => Err(Error::new(path, Problem::NotFromPipe("safetensors"))),
    }
}

/// Opens with a format's reader, or says that the format was left out of the build.
macro_rules! format_reader {
    ($name:ident, $feature:literal, |$path:ident, $bytes:ident: $data:ty, $wanted:ident| $open:expr) => {
        #[cfg(feature = $feature)]
        fn $name($path: &Path, $bytes: $data, $wanted: &Wanted) -> Result<Box<dyn Reader>> {
            Ok(Box::new($open?))
        }

        #[cfg(not(feature = $feature))]
        fn $name(path: &Path, _: $data, _: &Wanted) -> Result<Box<dyn Reader>> {
            Err(Error::new(path, Problem::FeatureOff($feature)))
        }
    };
}

format_reader!(npy, "npy", |_path, file: &PositionedFile, wanted| crate::arrays::npy::NpyReader::open(
    file, wanted
));
format_reader!(npy_stream, "npy", |path, stream: Box<dyn Stream>, wanted| {
    crate::arrays::npy::NpyReader::from_stream(stream, path, wanted)
});
format_reader!(npz, "npy", |_path, file: &PositionedFile, wanted| crate::arrays::npz::open(file, wanted));
format_reader!(parquet, "parquet", |path, file: &PositionedFile, wanted| {
    crate::tables::guard::Guarded::open(path, || crate::tables::parquet::ParquetReader::open(file, wanted))
});
format_reader!(arrow, "parquet", |path, file: &PositionedFile, wanted| {
    crate::tables::guard::Guarded::open(path, || crate::tables::arrow::ArrowReader::open(file, wanted))
});
format_reader!(safetensors, "safetensors", |_path, file: &PositionedFile, wanted| {
    crate::arrays::safetensors::open(file, wanted)
});
format_reader!(csv, "csv", |path, stream: Box<dyn Stream>, wanted| crate::text::csv::CsvReader::open(
    stream, path, wanted
));
format_reader!(json_lines, "jsonl", |path, stream: Box<dyn Stream>, wanted| {
    crate::text::json_lines::JsonLinesReader::open(stream, path, wanted)
});

#[cfg(feature = "npy")]
fn with_labels(logits: Box<dyn Reader>, labels: &Path, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    if !wanted.labels {
        return Ok(logits);
    }
    let file = PositionedFile::open(labels)?;
    // A table would have its labels beside the logits.
    let found = Format::of_bytes(&start_of(&file)?).or_else(|| Format::of_name(labels));
    if let Some(other) = found.filter(|format| *format != Format::Npy) {
        return Err(Error::new(labels, Problem::LabelsFormat(other)));
    }
    let labels = crate::arrays::npy::open_vector(&file)?;
    Ok(Box::new(crate::reading::pair::PairReader::new(logits, labels)?))
}

#[cfg(not(feature = "npy"))]
fn with_labels(_: Box<dyn Reader>, labels: &Path, _: &Wanted) -> Result<Box<dyn Reader>> {
    Err(Error::new(labels, Problem::FeatureOff("npy")))
}
