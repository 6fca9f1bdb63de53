//! Prediction sets on their way to a file: one row per example (and level), written block by block.
//!
//! Columns: `row`, the kept ones, `labels` best first, `size`, then `probabilities`, `p_values` and `alpha` where asked
//! for. Labels are names where names are known and indices otherwise.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Error, Problem, Result};
use crate::writing::output::{Output, Overwrite};
use crate::{CellType, ClassNames, Format, NamedCells};

#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "jsonl")]
mod json_lines;
#[cfg(feature = "parquet")]
pub(crate) mod table;

/// Which columns the sets have.
#[derive(Debug, Clone, Default)]
pub struct SetColumns {
    /// Columns carried over from the data, with their types.
    pub keep: Vec<(String, CellType)>,
    /// Names to write instead of indices.
    pub names: Option<ClassNames>,
    /// Whether there are probabilities.
    pub probabilities: bool,
    /// Whether there are p-values.
    pub p_values: bool,
    /// Whether each row says its level.
    pub alpha: bool,
}

/// Names that kept columns may not have.
const OWN_COLUMNS: [&str; 6] = ["row", "labels", "size", "probabilities", "p_values", "alpha"];

/// P-values of a block of sets, row after row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PValues<'a> {
    /// One for each label in the set, in the same order.
    OfSet(&'a [f64]),
    /// One for each class of each row, in the order of the classes; levels share them.
    OfAll(&'a [f64]),
}

/// Sets of consecutive rows. What a column of [`SetColumns`] promises must be there.
#[derive(Debug, Clone, Copy)]
pub struct SetRows<'a> {
    /// Row of the data set that comes first here.
    pub first_row: u64,
    /// Kept columns.
    pub keep: &'a [NamedCells],
    /// Set `i` is `labels[offsets[i]..offsets[i + 1]]`.
    pub offsets: &'a [usize],
    /// The labels, end to end, best first within a set.
    pub labels: &'a [u32],
    /// Aligned with `labels`.
    pub probabilities: Option<&'a [f64]>,
    /// The p-values.
    pub p_values: Option<PValues<'a>>,
    /// The levels, where a row has a set for each: its sets follow one another in this order.
    pub alphas: Option<&'a [f64]>,
}

impl<'a> SetRows<'a> {
    /// Number of sets: one per row, or per row and level.
    pub fn sets(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn levels(&self) -> usize {
        self.alphas.map_or(1, <[f64]>::len).max(1)
    }

    /// The row of a set, counted from the first one here.
    fn row_of(&self, set: usize) -> usize {
        set / self.levels()
    }

    fn alpha_of(&self, set: usize) -> Option<f64> {
        self.alphas.map(|alphas| alphas[set % alphas.len()])
    }

    fn range(&self, set: usize) -> std::ops::Range<usize> {
        self.offsets[set]..self.offsets[set + 1]
    }

    fn labels_of(&self, set: usize) -> &'a [u32] {
        &self.labels[self.range(set)]
    }

    fn probabilities_of(&self, set: usize) -> Option<&'a [f64]> {
        self.probabilities.map(|all| &all[self.range(set)])
    }

    fn p_values_of(&self, set: usize) -> Option<&'a [f64]> {
        self.p_values.map(|values| match values {
            PValues::OfSet(all) => &all[self.range(set)],
            PValues::OfAll(all) => {
                let classes = self.classes_of(all);
                &all[self.row_of(set) * classes..][..classes]
            }
        })
    }

    /// How many classes a list with a number for each class of each row speaks of.
    fn classes_of(&self, all: &[f64]) -> usize {
        all.len() / (self.sets() / self.levels()).max(1)
    }
}

/// Where the bytes go.
enum Target {
    File(Output),
    Pipe(Box<dyn Write + Send>),
    Memory(Vec<u8>),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::File(output) => output.write(bytes),
            Self::Pipe(pipe) => pipe.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::File(output) => output.flush(),
            Self::Pipe(pipe) => pipe.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}

type Sink = BufWriter<Target>;

/// One format's way of writing; `close` writes what comes last and gives the sink back.
trait Encode: Send {
    fn write(&mut self, rows: &SetRows<'_>) -> std::result::Result<(), Problem>;

    /// Hands on what was written, where the format can be read before its end.
    fn flush(&mut self) -> std::result::Result<(), Problem> {
        Ok(())
    }

    fn close(self: Box<Self>) -> std::result::Result<Sink, Problem>;
}

/// Whether a name stands for the stream form of Arrow, as its registered extension does.
fn is_stream(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("arrows"))
}

/// Writes prediction sets as Parquet, Arrow, JSON Lines or CSV.
pub struct SetsWriter {
    encode: Box<dyn Encode>,
    path: std::path::PathBuf,
    /// Somebody may be reading along.
    live: bool,
}

impl SetsWriter {
    /// Opens a file; its format is told by its name (`.arrows` is the stream form of Arrow). A pipe or a device without
    /// a telling name gets JSON Lines.
    pub fn create(path: &Path, overwrite: Overwrite, columns: &SetColumns) -> Result<Self> {
        let live = Output::is_special(path);
        let format = Format::of_name(path).or(live.then_some(Format::JsonLines));
        let format = format.ok_or_else(|| Error::new(path, Problem::SetsName))?;
        let output = Output::create(path, overwrite)?;
        let path = output.path().to_owned();
        Ok(Self { live, ..Self::new(Target::File(output), &path, format, columns)? })
    }

    /// Writes into a pipe, such as standard output.
    pub fn to_pipe(pipe: Box<dyn Write + Send>, format: Format, columns: &SetColumns) -> Result<Self> {
        Self::new(Target::Pipe(pipe), Path::new("standard output"), format, columns)
    }

    /// Writes into memory what a file of this name would hold; [`into_bytes`](Self::into_bytes) gives it out.
    pub fn in_memory(name: &Path, columns: &SetColumns) -> Result<Self> {
        let format = Format::of_name(name).ok_or_else(|| Error::new(name, Problem::SetsName))?;
        Ok(Self { live: false, ..Self::new(Target::Memory(Vec::new()), name, format, columns)? })
    }

    fn new(target: Target, path: &Path, format: Format, columns: &SetColumns) -> Result<Self> {
        if let Some((name, _)) = columns.keep.iter().find(|(name, _)| OWN_COLUMNS.contains(&name.as_str())) {
            return Err(Error::new(path, Problem::ColumnTaken(name.clone())));
        }
        let sink = BufWriter::with_capacity(1 << 18, target);
        let encode: std::result::Result<Box<dyn Encode>, Problem> = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => table::ParquetSets::new(sink, columns).map(|sets| Box::new(sets) as _),
            #[cfg(feature = "parquet")]
            Format::Arrow if is_stream(path) => {
                table::ArrowSets::stream(sink, columns).map(|sets| Box::new(sets) as _)
            }
            #[cfg(feature = "parquet")]
            Format::Arrow => table::ArrowSets::file(sink, columns).map(|sets| Box::new(sets) as _),
            #[cfg(feature = "jsonl")]
            Format::JsonLines => Ok(Box::new(json_lines::JsonLinesSets::new(sink, columns))),
            #[cfg(feature = "csv")]
            Format::Csv => csv::CsvSets::new(sink, columns).map(|sets| Box::new(sets) as _),
            _ => Err(Problem::SetsFormat(format)),
        };
        let encode = encode.map_err(|problem| Error::new(path, problem))?;
        Ok(Self { encode, path: path.to_owned(), live: true })
    }

    /// Appends sets; whoever reads from a pipe has them when this returns, if the format is a text.
    pub fn write(&mut self, rows: &SetRows<'_>) -> Result<()> {
        let written = self.encode.write(rows);
        let written = if self.live { written.and_then(|()| self.encode.flush()) } else { written };
        written.map_err(|problem| Error::new(&self.path, problem))
    }

    /// Writes what comes last and gives the file its name.
    pub fn finish(self) -> Result<()> {
        self.into_bytes().map(|_| ())
    }

    /// Writes what comes last, and gives out what was written into memory: nothing where it went elsewhere.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        let path = self.path;
        let sink = self.encode.close().map_err(|problem| Error::new(&path, problem))?;
        let target = sink.into_inner().map_err(|error| Error::new(&path, error.into_error()))?;
        match target {
            Target::File(output) => output.finish()?,
            Target::Pipe(mut pipe) => pipe.flush().map_err(|error| Error::new(&path, error))?,
            Target::Memory(bytes) => return Ok(bytes),
        }
        Ok(Vec::new())
    }
}
