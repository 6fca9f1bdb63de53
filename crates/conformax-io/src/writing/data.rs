//! `DataWriter`: rows of a data set on their way to a file, in any format that is read.
//!
//! What is written reads back as the same logits, labels, names and kept columns. Formats that hold one value per cell
//! say labels by their names where there are some.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use crate::error::{Error, Problem, Result};
use crate::writing::output::{Output, Overwrite};
use crate::{Block, CellType, ClassNames, Dtype, Format, Source};

#[cfg(feature = "npy")]
mod arrays;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "jsonl")]
mod json_lines;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "parquet")]
mod table;

/// What there is to be written.
#[derive(Debug, Clone)]
pub struct DataColumns {
    /// Rows to come.
    pub rows: u64,
    /// Logits in a row.
    pub classes: usize,
    /// Their type.
    pub dtype: Dtype,
    /// Names of the classes.
    pub names: Option<ClassNames>,
    /// Whether there are labels.
    pub labels: bool,
    /// Columns carried over, with their types.
    pub keep: Vec<(String, CellType)>,
}

impl DataColumns {
    /// Everything that a source gives, for so many of its rows.
    pub fn of(source: &Source, rows: u64) -> Self {
        Self {
            rows,
            classes: source.classes(),
            dtype: source.dtype(),
            names: source.names().cloned(),
            labels: source.has_labels(),
            keep: source.kept().map(|(name, cells)| (name.to_owned(), cells)).collect(),
        }
    }

    /// The label of a row as a text or table has it.
    fn label(&self, block: &Block, row: usize) -> Option<String> {
        let label = block.labels.as_ref()?[row];
        let name = self.names.as_ref().and_then(|names| names.name(label));
        Some(name.map_or_else(|| label.to_string(), str::to_owned))
    }

    /// Refuses a kept column that has a name of the format's own.
    fn check_names(&self, own: &[&str]) -> std::result::Result<(), Problem> {
        match self.keep.iter().find(|(name, _)| own.contains(&name.as_str())) {
            Some((name, _)) => Err(Problem::ColumnTaken(name.clone())),
            None => Ok(()),
        }
    }
}

/// One format's way of writing.
trait Encode: Send {
    /// Appends rows of a block, given by their index in it.
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem>;
    /// Writes what comes last and gives the file its name.
    fn finish(self: Box<Self>) -> Result<()>;
}

type Sink = BufWriter<Output>;

fn sink(path: &Path, overwrite: Overwrite) -> Result<Sink> {
    Ok(BufWriter::with_capacity(1 << 18, Output::create(path, overwrite)?))
}

/// Gives a file its name.
fn finish(sink: Sink) -> Result<()> {
    let path = sink.get_ref().path().to_owned();
    sink.into_inner().map_err(|error| Error::new(path, error.into_error()))?.finish()
}

fn boxed<E: Encode + 'static>(encode: Result<E>) -> Result<Box<dyn Encode>> {
    encode.map(|encode| Box::new(encode) as _)
}

/// Writes rows of data in the format that a file's name stands for.
pub struct DataWriter {
    encode: Box<dyn Encode>,
    path: PathBuf,
}

impl DataWriter {
    /// Opens the file and writes what precedes the rows.
    pub fn create(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        let format = Format::of_name(path).ok_or_else(|| Error::new(path, Problem::UnknownFormat))?;
        let encode = match format {
            #[cfg(feature = "npy")]
            Format::Npz => boxed(arrays::NpzData::new(path, overwrite, columns)),
            #[cfg(feature = "npy")]
            Format::Npy => boxed(arrays::NpyData::new(path, overwrite, columns)),
            #[cfg(feature = "csv")]
            Format::Csv => boxed(csv::CsvData::new(path, overwrite, columns)),
            #[cfg(feature = "jsonl")]
            Format::JsonLines => boxed(json_lines::JsonLinesData::new(path, overwrite, columns)),
            #[cfg(feature = "safetensors")]
            Format::Safetensors => boxed(safetensors::SafetensorsData::new(path, overwrite, columns)),
            #[cfg(feature = "parquet")]
            Format::Parquet => boxed(table::ParquetData::new(path, overwrite, columns)),
            #[cfg(feature = "parquet")]
            Format::Arrow => boxed(table::ArrowData::new(path, overwrite, columns)),
            #[allow(unreachable_patterns, reason = "a build with every format writes them all")]
            other => Err(Error::new(path, Problem::FeatureOff(other.feature()))),
        }?;
        Ok(Self { encode, path: path.to_owned() })
    }

    /// Appends rows of a block, given by their index in it.
    pub fn write(&mut self, block: &Block, rows: &[usize]) -> Result<()> {
        self.encode.write(block, rows).map_err(|problem| Error::new(&self.path, problem))
    }

    /// Writes what comes last and gives the file its name.
    pub fn finish(self) -> Result<()> {
        self.encode.finish()
    }
}
