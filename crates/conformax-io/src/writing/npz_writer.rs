//! Writing `.npy` and `.npz`: rows in the type they came in, labels as `i64`, kept columns in theirs, names as text.

use std::io::{BufWriter, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::arrays::npy_header::header_bytes;
use crate::data::values::{ByteOrder, each_dtype};
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::reader::CLASS_NAMES;
use crate::writing::columns::{keep_rows, write_numbers};
use crate::writing::output::{Output, Overwrite};
use crate::writing::zip_sink::{Failure, ZipSink};
use crate::{Block, CellType, Cells, ClassNames, Dtype, Format, NamedCells, Values};

/// Size and type of the array to be written; the header comes first, so both must be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayShape {
    /// Rows to come.
    pub rows: u64,
    /// Logits in a row.
    pub classes: usize,
    /// Their type.
    pub dtype: Dtype,
}

impl ArrayShape {
    fn header(&self) -> Vec<u8> {
        // NumPy has no bfloat16; Python's package for it writes two bytes of anything.
        let name = match self.dtype {
            Dtype::F16 => "f2",
            Dtype::Bf16 => "V2",
            Dtype::F32 => "f4",
            Dtype::F64 => "f8",
        };
        header_bytes(&format!("{}{name}", order_mark()), &[self.rows, self.classes as u64])
    }
}

fn order_mark() -> char {
    match ByteOrder::NATIVE {
        ByteOrder::Little => '<',
        ByteOrder::Big => '>',
    }
}

/// Writes `logits`, `labels`, kept columns and `class_names` into one `.npz`, uncompressed so that it is read at the
/// disk's speed. What is not logits is held in memory until the end.
pub struct NpzWriter {
    zip: ZipWriter<ZipSink>,
    failure: Failure,
    path: std::path::PathBuf,
    shape: ArrayShape,
    written: u64,
    labels: Option<Vec<u32>>,
    keep: Vec<NamedCells>,
    names: Option<ClassNames>,
}

impl NpzWriter {
    /// Opens the file and writes what precedes the logits.
    pub fn create(
        path: &Path,
        overwrite: Overwrite,
        shape: ArrayShape,
        names: Option<ClassNames>,
    ) -> Result<Self> {
        if Output::is_special(path) {
            return Err(Error::new(path, Problem::NotToPipe(Format::Npz)));
        }
        let (sink, failure) = ZipSink::new(Output::create(path, overwrite)?);
        let mut zip = ZipWriter::new(sink);
        start(&mut zip, "logits.npy").in_file(path)?;
        zip.write_all(&shape.header()).in_file(path)?;
        failure.check().in_file(path)?;
        let path = path.to_owned();
        Ok(Self { zip, failure, path, shape, written: 0, labels: None, keep: Vec::new(), names })
    }

    /// Appends rows of a block, given by their index in it.
    pub fn write(&mut self, block: &Block, rows: &[usize]) -> Result<()> {
        for &row in rows {
            self.zip.write_all(row_bytes(block, row)).in_file(&self.path)?;
        }
        self.failure.check().in_file(&self.path)?;
        self.written += rows.len() as u64;
        if let Some(labels) = &block.labels {
            self.labels.get_or_insert_default().extend(rows.iter().map(|&row| labels[row]));
        }
        keep_rows(&mut self.keep, block, rows);
        Ok(())
    }

    /// Writes labels and names and gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        if self.written != self.shape.rows {
            let (wanted, found) = (self.shape.rows, self.written);
            return Err(Error::new(self.path, Problem::Truncated { wanted, found }));
        }
        self.write_rest()?;
        let sink = self.zip.finish().map_err(zip_problem).in_file(&self.path)?;
        self.failure.check().in_file(&self.path)?;
        sink.finish()
    }

    fn write_rest(&mut self) -> Result<()> {
        let labels = self.labels.as_ref().map(|labels| label_cells(labels));
        let labels = labels.map(|cells| NamedCells { name: "labels".to_owned(), cells });
        let names = self.names.as_ref().map(|names| {
            let cells = Cells::Text(names.as_slice().iter().cloned().map(Some).collect());
            NamedCells { name: CLASS_NAMES[0].to_owned(), cells }
        });
        for column in labels.iter().chain(&self.keep).chain(&names) {
            start(&mut self.zip, &format!("{}.npy", column.name))
                .and_then(|()| write_vector(&mut self.zip, &column.cells))
                .in_file(&self.path)
                .map_err(|error| error.in_column(&column.name))?;
        }
        Ok(())
    }
}

fn start(zip: &mut ZipWriter<ZipSink>, name: &str) -> std::result::Result<(), Problem> {
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    zip.start_file(name, stored).map_err(zip_problem)
}

fn zip_problem(error: zip::result::ZipError) -> Problem {
    Problem::Io(error.into())
}

fn label_cells(labels: &[u32]) -> Cells {
    Cells::Int(labels.iter().map(|&label| Some(label.into())).collect())
}

/// A column with its header. Text is fixed-width UTF-32, as NumPy keeps it; an empty cell is empty text or NaN, and an
/// error among integers, which have no value for it.
fn write_vector(out: &mut impl Write, cells: &Cells) -> std::result::Result<(), Problem> {
    let width = match cells {
        Cells::Text(v) => v.iter().flatten().map(|text| text.chars().count()).max().unwrap_or(0).max(1),
        _ => 0,
    };
    let descr = match cells.cell_type() {
        CellType::Bool => "|b1".to_owned(),
        CellType::Int => format!("{}i8", order_mark()),
        CellType::UInt => format!("{}u8", order_mark()),
        CellType::Float => format!("{}f8", order_mark()),
        CellType::Text => format!("{}U{width}", order_mark()),
    };
    out.write_all(&header_bytes(&descr, &[cells.len() as u64]))?;
    match cells {
        Cells::Text(v) => {
            for text in v {
                let text = text.as_deref().unwrap_or_default();
                for code in text.chars().map(u32::from).chain(std::iter::repeat(0)).take(width) {
                    out.write_all(&code.to_ne_bytes())?;
                }
            }
            Ok(())
        }
        numbers => write_numbers(out, numbers),
    }
}

fn row_bytes(block: &Block, row: usize) -> &[u8] {
    let range = row * block.classes..(row + 1) * block.classes;
    each_dtype!(&block.logits, v => bytemuck::cast_slice(&v[range]))
}

/// Writes one matrix of logits as `.npy`.
pub struct NpyWriter {
    output: BufWriter<Output>,
    shape: ArrayShape,
    written: u64,
}

impl NpyWriter {
    /// Opens the file and writes its header.
    pub fn create(path: &Path, overwrite: Overwrite, shape: ArrayShape) -> Result<Self> {
        let mut output = BufWriter::with_capacity(1 << 18, Output::create(path, overwrite)?);
        output.write_all(&shape.header()).in_file(path)?;
        Ok(Self { output, shape, written: 0 })
    }

    /// Appends whole rows; they must be of the type the file was opened with.
    pub fn write(&mut self, rows: &Values) -> Result<()> {
        let path = self.output.get_ref().path();
        if rows.dtype() != self.shape.dtype {
            let (wanted, found) = (self.shape.dtype.to_string(), rows.dtype().to_string());
            return Err(Error::new(path, Problem::TypesDiffer { what: "logits".to_owned(), wanted, found }));
        }
        self.written += rows.len() as u64;
        self.output
            .write_all(rows.as_bytes())
            .map_err(|error| Error::new(self.output.get_ref().path(), error))
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<()> {
        let path = self.output.get_ref().path().to_owned();
        let wanted = self.shape.rows * self.shape.classes as u64;
        if self.written != wanted {
            return Err(Error::new(path, Problem::Truncated { wanted, found: self.written }));
        }
        self.output.into_inner().map_err(|error| error.into_error()).in_file(&path)?.finish()
    }
}

/// Writes labels as a `.npy` of `i64`.
pub fn write_labels(path: &Path, overwrite: Overwrite, labels: &[u32]) -> Result<()> {
    let mut output = BufWriter::new(Output::create(path, overwrite)?);
    write_vector(&mut output, &label_cells(labels)).in_file(path)?;
    output.into_inner().map_err(|error| error.into_error()).in_file(path)?.finish()
}
