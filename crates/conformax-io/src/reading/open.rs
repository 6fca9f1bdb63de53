//! Opening one file of a data set with the reader of its format.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::data::format::Format;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Reader, Wanted};
use crate::reading::stamp::Stamp;

/// One file of a data set, and the file its labels are in where that is another.
#[derive(Debug, Clone)]
pub(crate) struct File {
    path: PathBuf,
    labels: Option<PathBuf>,
    /// As they were before anything was read.
    stamps: [Option<Stamp>; 2],
}

impl File {
    pub(crate) fn new(path: &Path, labels: Option<&Path>) -> Self {
        Self {
            path: path.to_owned(),
            labels: labels.map(Path::to_owned),
            stamps: [Stamp::of(path), labels.and_then(Stamp::of)],
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        is_pipe(&self.path)
    }
}

fn is_pipe(path: &Path) -> bool {
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Bytes that pass by once.
pub(crate) type Stream = Box<dyn BufRead + Send>;

/// Enough of a stream to tell its format and to make reads large.
const STREAM_BUFFER: usize = 1 << 18;

/// Opens a file, with the labels from beside it where it has some there.
pub(crate) fn open(file: &File, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    let path = file.path();
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
    let data = PositionedFile::open(path)?;
    let format = match Format::of_name(path) {
        Some(format) => format,
        None => sniff(&data)?,
    };
    if data.len() == 0 {
        return Err(Error::new(path, Problem::NoRows));
    }
    let stream = || -> Stream { Box::new(BufReader::with_capacity(STREAM_BUFFER, data.whole())) };
    match format {
        Format::Npy => npy(path, &data, wanted),
        Format::Npz => npz(path, &data, wanted),
        Format::Parquet => parquet(path, &data, wanted),
        Format::Arrow => arrow(path, &data, wanted),
        Format::Safetensors => safetensors(path, &data, wanted),
        Format::Csv => csv(path, stream(), wanted),
        Format::JsonLines => json_lines(path, stream(), wanted),
    }
}

fn sniff(data: &PositionedFile) -> Result<Format> {
    let mut start = Vec::new();
    data.whole().take(64).read_to_end(&mut start).in_file(data.path())?;
    Format::of_bytes(&start).ok_or_else(|| Error::new(data.path(), Problem::UnknownFormat))
}

fn open_stream(path: &Path, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    let raw: Box<dyn Read + Send> = match path == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).in_file(path)?),
    };
    let mut stream: Stream = Box::new(BufReader::with_capacity(STREAM_BUFFER, raw));
    let start = stream.fill_buf().in_file(path)?;
    if start.is_empty() {
        return Err(Error::new(path, Problem::NoRows));
    }
    match Format::of_bytes(start) {
        Some(Format::Npy) => npy_stream(path, stream, wanted),
        Some(Format::Csv) => csv(path, stream, wanted),
        Some(Format::JsonLines) => json_lines(path, stream, wanted),
        Some(Format::Npz) => Err(Error::new(path, Problem::NotFromPipe("npz"))),
        Some(Format::Parquet) => Err(Error::new(path, Problem::NotFromPipe("Parquet"))),
        Some(Format::Arrow) => Err(Error::new(path, Problem::NotFromPipe("Arrow"))),
        Some(Format::Safetensors) => Err(Error::new(path, Problem::NotFromPipe("safetensors"))),
        None => Err(Error::new(path, Problem::UnknownFormat)),
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
format_reader!(npy_stream, "npy", |path, stream: Stream, wanted| {
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
format_reader!(csv, "csv", |path, stream: Stream, wanted| crate::text::csv::CsvReader::open(
    stream, path, wanted
));
format_reader!(json_lines, "jsonl", |path, stream: Stream, wanted| {
    crate::text::json_lines::JsonLinesReader::open(stream, path, wanted)
});

#[cfg(feature = "npy")]
fn with_labels(logits: Box<dyn Reader>, labels: &Path, wanted: &Wanted) -> Result<Box<dyn Reader>> {
    if !wanted.labels {
        return Ok(logits);
    }
    let labels = crate::arrays::npy::open_vector(&PositionedFile::open(labels)?)?;
    Ok(Box::new(crate::reading::pair::PairReader::new(logits, labels)?))
}

#[cfg(not(feature = "npy"))]
fn with_labels(_: Box<dyn Reader>, labels: &Path, _: &Wanted) -> Result<Box<dyn Reader>> {
    Err(Error::new(labels, Problem::FeatureOff("npy")))
}
