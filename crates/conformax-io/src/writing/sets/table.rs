//! Sets as Arrow record batches, for Parquet and Arrow files.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Encode, PValues, SetColumns, SetRows, Sink};
use crate::reading::reader::CLASS_NAMES;
use crate::{CellType, Cells, ClassNames, Problem};

/// A batch has about this many list items at most: offsets are 32 bits wide, and memory is bounded.
const MOST_ITEMS: usize = 1 << 20;
/// A Parquet row group is closed once it takes this much memory.
const ROW_GROUP_BYTES: usize = 32 << 20;

pub(super) struct ParquetSets {
    writer: ArrowWriter<Sink>,
    schema: SchemaRef,
    names: Option<ClassNames>,
}

impl ParquetSets {
    pub(super) fn new(sink: Sink, columns: &SetColumns) -> Result<Self, Problem> {
        let schema = schema(columns);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = ArrowWriter::try_new(sink, schema.clone(), Some(properties)).map_err(parquet_problem)?;
        Ok(Self { writer, schema, names: columns.names.clone() })
    }
}

impl Encode for ParquetSets {
    fn write(&mut self, rows: &SetRows<'_>) -> Result<(), Problem> {
        for piece in pieces(rows) {
            let batch = batch(&self.schema, rows, piece, self.names.as_ref()).map_err(arrow_problem)?;
            self.writer.write(&batch).map_err(parquet_problem)?;
            if self.writer.in_progress_size() > ROW_GROUP_BYTES {
                self.writer.flush().map_err(parquet_problem)?;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Sink, Problem> {
        self.writer.into_inner().map_err(parquet_problem)
    }
}

/// The two forms of Arrow IPC: a file has a footer and is read from its end, a stream as it comes.
enum Ipc {
    File(FileWriter<Sink>),
    Stream(StreamWriter<Sink>),
}

pub(super) struct ArrowSets {
    writer: Ipc,
    schema: SchemaRef,
    names: Option<ClassNames>,
}

impl ArrowSets {
    pub(super) fn file(sink: Sink, columns: &SetColumns) -> Result<Self, Problem> {
        let schema = schema(columns);
        let writer = Ipc::File(FileWriter::try_new(sink, &schema).map_err(arrow_problem)?);
        Ok(Self { writer, schema, names: columns.names.clone() })
    }

    pub(super) fn stream(sink: Sink, columns: &SetColumns) -> Result<Self, Problem> {
        let schema = schema(columns);
        let writer = Ipc::Stream(StreamWriter::try_new(sink, &schema).map_err(arrow_problem)?);
        Ok(Self { writer, schema, names: columns.names.clone() })
    }
}

impl Encode for ArrowSets {
    fn write(&mut self, rows: &SetRows<'_>) -> Result<(), Problem> {
        for piece in pieces(rows) {
            let batch = batch(&self.schema, rows, piece, self.names.as_ref()).map_err(arrow_problem)?;
            match &mut self.writer {
                Ipc::File(writer) => writer.write(&batch),
                Ipc::Stream(writer) => writer.write(&batch),
            }
            .map_err(arrow_problem)?;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<Sink, Problem> {
        // Taking the writer out finishes what it wrote, footer and all.
        match self.writer {
            Ipc::File(writer) => writer.into_inner(),
            Ipc::Stream(writer) => writer.into_inner(),
        }
        .map_err(arrow_problem)
    }
}

/// A full disk is told as one, not as a fault of the format.
pub(crate) fn parquet_problem(error: ParquetError) -> Problem {
    Problem::Io(match error {
        ParquetError::External(cause) => cause.downcast().map_or_else(std::io::Error::other, |error| *error),
        other => std::io::Error::other(other),
    })
}

pub(crate) fn arrow_problem(error: ArrowError) -> Problem {
    match error {
        ArrowError::IoError(_, error) => Problem::Io(error),
        other => Problem::Io(std::io::Error::other(other)),
    }
}

fn schema(columns: &SetColumns) -> SchemaRef {
    let list = |name: &str, item: DataType| Field::new(name, DataType::List(item_field(item)), false);
    let label = if columns.names.is_some() { DataType::Utf8 } else { DataType::UInt32 };
    let mut fields = vec![Field::new("row", DataType::UInt64, false)];
    fields.extend(columns.keep.iter().map(|(name, kind)| Field::new(name, data_type(*kind), true)));
    fields.extend([list("labels", label), Field::new("size", DataType::UInt32, false)]);
    fields.extend(columns.probabilities.then(|| list("probabilities", DataType::Float64)));
    fields.extend(columns.p_values.then(|| list("p_values", DataType::Float64)));
    fields.extend(columns.alpha.then(|| Field::new("alpha", DataType::Float64, false)));
    let names = columns.names.as_ref().and_then(|names| serde_json::to_string(names.as_slice()).ok());
    let notes = names.map(|names| (CLASS_NAMES[0].to_owned(), names));
    Arc::new(Schema::new(fields).with_metadata(notes.into_iter().collect()))
}

fn item_field(item: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(item, false))
}

pub(crate) fn data_type(kind: CellType) -> DataType {
    match kind {
        CellType::Bool => DataType::Boolean,
        CellType::Int => DataType::Int64,
        CellType::UInt => DataType::UInt64,
        CellType::Float => DataType::Float64,
        CellType::Text => DataType::Utf8,
    }
}

/// Ranges of sets with few enough list items each.
fn pieces(rows: &SetRows<'_>) -> Vec<std::ops::Range<usize>> {
    let classes = match rows.p_values {
        Some(PValues::OfAll(all)) => rows.classes_of(all),
        _ => 0,
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in 1..=rows.sets() {
        let items = |end: usize| (rows.offsets[end] - rows.offsets[start]).max((end - start) * classes);
        if end == rows.sets() || items(end + 1) > MOST_ITEMS {
            pieces.push(start..end);
            start = end;
        }
    }
    pieces
}

fn batch(
    schema: &SchemaRef,
    rows: &SetRows<'_>,
    piece: std::ops::Range<usize>,
    names: Option<&ClassNames>,
) -> Result<RecordBatch, ArrowError> {
    let picked: Vec<usize> = piece.clone().map(|set| rows.row_of(set)).collect();
    let sizes: Vec<usize> = piece.clone().map(|set| rows.labels_of(set).len()).collect();
    let items = rows.offsets[piece.start]..rows.offsets[piece.end];
    let numbers = picked.iter().map(|&row| rows.first_row + row as u64);
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from_iter_values(numbers))];
    columns.extend(rows.keep.iter().map(|column| kept(&column.cells.take(&picked))));
    columns.push(lists(&sizes, labels(&rows.labels[items.clone()], names))?);
    columns.push(Arc::new(UInt32Array::from_iter_values(sizes.iter().map(|&size| size as u32))));
    if let Some(values) = rows.probabilities {
        columns.push(lists(&sizes, floats(&values[items.clone()]))?);
    }
    match rows.p_values {
        Some(PValues::OfSet(values)) => columns.push(lists(&sizes, floats(&values[items]))?),
        Some(PValues::OfAll(all)) => {
            let values: Vec<f64> =
                piece.clone().filter_map(|set| rows.p_values_of(set)).flatten().copied().collect();
            columns.push(lists(&vec![rows.classes_of(all); piece.len()], floats(&values))?);
        }
        None => {}
    }
    if rows.alphas.is_some() {
        columns.push(Arc::new(Float64Array::from_iter(piece.map(|set| rows.alpha_of(set)))));
    }
    RecordBatch::try_new(schema.clone(), columns)
}

fn lists(sizes: &[usize], items: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let offsets = OffsetBuffer::from_lengths(sizes.iter().copied());
    let field = item_field(items.data_type().clone());
    Ok(Arc::new(ListArray::try_new(field, offsets, items, None)?))
}

fn labels(labels: &[u32], names: Option<&ClassNames>) -> ArrayRef {
    match names {
        None => Arc::new(UInt32Array::from(labels.to_vec())),
        Some(names) => Arc::new(StringArray::from_iter_values(
            labels.iter().map(|&label| names.name(label).expect("sets hold labels of their own classes")),
        )),
    }
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

pub(crate) fn kept(cells: &Cells) -> ArrayRef {
    match cells {
        Cells::Bool(v) => Arc::new(BooleanArray::from(v.clone())),
        Cells::Int(v) => Arc::new(Int64Array::from(v.clone())),
        Cells::UInt(v) => Arc::new(UInt64Array::from(v.clone())),
        Cells::Float(v) => Arc::new(Float64Array::from(v.clone())),
        Cells::Text(v) => Arc::new(StringArray::from(v.clone())),
    }
}
