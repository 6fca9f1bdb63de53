//! Data as Arrow record batches, for Parquet and Arrow files: `logits` as lists, `label`, kept columns.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float16Array, Float32Array, Float64Array, RecordBatch, StringArray,
    UInt32Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::{DataColumns, Encode, Sink, finish, sink};
use crate::error::{InFile, Problem, Result};
use crate::reading::reader::CLASS_NAMES;
use crate::writing::output::Overwrite;
use crate::writing::sets::table::{arrow_problem, data_type, kept, parquet_problem};
use crate::{Block, Dtype, Values};

/// A Parquet row group is closed once it takes this much memory.
const ROW_GROUP_BYTES: usize = 32 << 20;

pub(super) struct ParquetData {
    writer: ArrowWriter<Sink>,
    batches: Batches,
}

impl ParquetData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        let batches = Batches::new(columns).in_file(path)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let sink = sink(path, overwrite)?;
        let writer = ArrowWriter::try_new(sink, batches.schema.clone(), Some(properties));
        Ok(Self { writer: writer.map_err(parquet_problem).in_file(path)?, batches })
    }
}

impl Encode for ParquetData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        let batch = self.batches.batch(block, rows).map_err(arrow_problem)?;
        self.writer.write(&batch).map_err(parquet_problem)?;
        if self.writer.in_progress_size() > ROW_GROUP_BYTES {
            self.writer.flush().map_err(parquet_problem)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.writer.inner().get_ref().path().to_owned();
        finish(self.writer.into_inner().map_err(parquet_problem).in_file(&path)?)
    }
}

pub(super) struct ArrowData {
    writer: FileWriter<Sink>,
    batches: Batches,
}

impl ArrowData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        let batches = Batches::new(columns).in_file(path)?;
        let writer = FileWriter::try_new(sink(path, overwrite)?, &batches.schema);
        Ok(Self { writer: writer.map_err(arrow_problem).in_file(path)?, batches })
    }
}

impl Encode for ArrowData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        let batch = self.batches.batch(block, rows).map_err(arrow_problem)?;
        self.writer.write(&batch).map_err(arrow_problem)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let path = self.writer.get_ref().get_ref().path().to_owned();
        // Taking the writer out finishes the file, footer and all.
        finish(self.writer.into_inner().map_err(arrow_problem).in_file(&path)?)
    }
}

/// Rows of blocks as record batches.
struct Batches {
    columns: DataColumns,
    schema: SchemaRef,
}

impl Batches {
    fn new(columns: &DataColumns) -> std::result::Result<Self, Problem> {
        columns.check_names(&["logits", "label", "labels"])?;
        let size = i32::try_from(columns.classes)
            .map_err(|_| Problem::Ragged { wanted: i32::MAX as usize, found: columns.classes })?;
        let item = Arc::new(Field::new_list_field(item_type(columns.dtype), false));
        let mut fields: Vec<Field> =
            columns.keep.iter().map(|(name, cells)| Field::new(name, data_type(*cells), true)).collect();
        fields.push(Field::new("logits", DataType::FixedSizeList(item, size), false));
        let label = if columns.names.is_some() { DataType::Utf8 } else { DataType::UInt32 };
        fields.extend(columns.labels.then(|| Field::new("label", label, false)));
        let names = columns.names.as_ref().and_then(|names| serde_json::to_string(names.as_slice()).ok());
        let notes = names.map(|names| (CLASS_NAMES[0].to_owned(), names));
        let schema = Arc::new(Schema::new(fields).with_metadata(notes.into_iter().collect()));
        Ok(Self { columns: columns.clone(), schema })
    }

    fn batch(&self, block: &Block, rows: &[usize]) -> std::result::Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> =
            block.keep.iter().map(|column| kept(&column.cells.take(rows))).collect();
        columns.push(self.lists(block, rows)?);
        if let Some(labels) = &block.labels {
            columns.push(match &self.columns.names {
                None => Arc::new(UInt32Array::from_iter_values(rows.iter().map(|&row| labels[row]))),
                Some(_) => {
                    Arc::new(StringArray::from_iter(rows.iter().map(|&row| self.columns.label(block, row))))
                }
            });
        }
        RecordBatch::try_new(self.schema.clone(), columns)
    }

    fn lists(&self, block: &Block, rows: &[usize]) -> std::result::Result<ArrayRef, ArrowError> {
        let mut picked = Values::new(block.logits.dtype());
        for &row in rows {
            picked.extend_rows(&block.logits, block.classes, row..row + 1);
        }
        let items: ArrayRef = match picked {
            Values::F16(v) => Arc::new(Float16Array::from(v)),
            Values::Bf16(v) => Arc::new(Float32Array::from_iter_values(v.into_iter().map(f32::from))),
            Values::F32(v) => Arc::new(Float32Array::from(v)),
            Values::F64(v) => Arc::new(Float64Array::from(v)),
        };
        let item = Arc::new(Field::new_list_field(items.data_type().clone(), false));
        let lists = FixedSizeListArray::try_new(item, block.classes as i32, items, None)?;
        Ok(Arc::new(lists))
    }
}

/// Arrow has no bfloat16; single precision holds every value of it.
fn item_type(dtype: Dtype) -> DataType {
    match dtype {
        Dtype::F16 => DataType::Float16,
        Dtype::Bf16 | Dtype::F32 => DataType::Float32,
        Dtype::F64 => DataType::Float64,
    }
}
