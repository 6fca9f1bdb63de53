//! Arrow record batches turned into rows: what Parquet and Arrow files have in common.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};

use crate::data::class_names::from_json;
use crate::error::{Error, InFile, Problem, Result, missing};
use crate::reading::reader::{CLASS_NAMES, Rows, Wanted};
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

/// Which columns of a schema are what.
#[derive(Debug, Clone)]
pub(crate) struct TableColumns {
    pub(crate) logits: usize,
    pub(crate) label: Option<usize>,
    pub(crate) keep: Vec<usize>,
    pub(crate) dtype: Dtype,
    /// Where the type fixes it.
    pub(crate) classes: Option<usize>,
    pub(crate) names: Option<ClassNames>,
    pub(crate) keep_types: Vec<CellType>,
}

impl TableColumns {
    pub(crate) fn find(schema: &Schema, wanted: &Wanted, path: &Path) -> Result<Self> {
        let index = |name: &str| schema.index_of(name).ok();
        let require = |name: &str| {
            index(name)
                .ok_or_else(|| missing(path, name, schema.fields().iter().map(|field| field.name().as_str())))
        };
        let logits = require(wanted.logits_name())?;
        let (dtype, classes) = list_type(schema.field(logits).data_type(), path)?;
        let label = match (&wanted.label_column, wanted.labels) {
            (_, false) => None,
            (Some(name), true) => Some(require(name)?),
            (None, true) => wanted.label_names().into_iter().find_map(index),
        };
        let keep: Vec<usize> = wanted.keep.iter().map(|name| require(name)).collect::<Result<_>>()?;
        let keep_types = keep.iter().map(|&column| cell_type(schema.field(column).data_type())).collect();
        let names = names(schema, logits).map(ClassNames::new).transpose().in_file(path)?;
        Ok(Self { logits, label, keep, dtype, classes, names, keep_types })
    }

    /// The columns that have to be read, ascending and each once.
    pub(crate) fn read(&self) -> Vec<usize> {
        let mut read: Vec<_> =
            [self.logits].into_iter().chain(self.label).chain(self.keep.iter().copied()).collect();
        read.sort_unstable();
        read.dedup();
        read
    }

    /// The same columns counted within [`Self::read`], as a projected batch has them.
    pub(crate) fn projected(&self) -> Self {
        let read = self.read();
        let place = |column: usize| read.partition_point(|&other| other < column);
        Self {
            logits: place(self.logits),
            label: self.label.map(place),
            keep: self.keep.iter().map(|&column| place(column)).collect(),
            ..self.clone()
        }
    }

    /// Replaces `into` by a batch; `first_row` is for the errors.
    pub(crate) fn fill(
        &self,
        batch: &RecordBatch,
        classes: usize,
        first_row: u64,
        path: &Path,
        into: &mut Rows,
    ) -> Result<()> {
        let here = |Fault { row, class, problem }: Fault| {
            let error = Error::new(path, problem).in_row(first_row + row as u64);
            class.into_iter().fold(error, Error::in_class)
        };
        into.logits.reset(self.dtype);
        copy_lists(batch.column(self.logits), classes, &mut into.logits).map_err(here)?;
        let column = |index: usize| {
            let name = batch.schema_ref().field(index).name();
            cells(batch.column(index))
                .map_err(|error| arrow_problem(&error))
                .in_file(path)
                .map_err(|error| error.in_column(name))
        };
        into.labels = self.label.map(column).transpose()?;
        into.keep.clear();
        for &index in &self.keep {
            let name = batch.schema_ref().field(index).name().clone();
            into.keep.push(NamedCells { name, cells: column(index)? });
        }
        Ok(())
    }
}

pub(crate) fn arrow_problem(error: &ArrowError) -> Problem {
    Problem::Damaged { format: "an Arrow table", what: error.to_string() }
}

/// Number of logits in the first row of a column of lists.
pub(crate) fn first_len(lists: &ArrayRef) -> usize {
    match lists.data_type() {
        DataType::FixedSizeList(_, size) => usize::try_from(*size).unwrap_or(0),
        DataType::LargeList(_) => lists.as_list::<i64>().value_length(0).try_into().unwrap_or(0),
        _ => lists.as_list::<i32>().value_length(0).try_into().unwrap_or(0),
    }
}

fn list_type(column: &DataType, path: &Path) -> Result<(Dtype, Option<usize>)> {
    let wrong = || {
        let (wanted, found) = ("lists of f16, f32 or f64", column.to_string());
        Error::new(path, Problem::Dtype { what: "logits", wanted, found })
    };
    let (item, classes) = match column {
        DataType::FixedSizeList(item, size) => (item, Some(usize::try_from(*size).map_err(|_| wrong())?)),
        DataType::List(item) | DataType::LargeList(item) => (item, None),
        _ => return Err(wrong()),
    };
    let dtype = match item.data_type() {
        DataType::Float16 => Dtype::F16,
        DataType::Float32 => Dtype::F32,
        DataType::Float64 => Dtype::F64,
        _ => return Err(wrong()),
    };
    Ok((dtype, classes))
}

fn names(schema: &Schema, logits: usize) -> Option<Vec<String>> {
    let notes = [schema.field(logits).metadata(), schema.metadata()];
    CLASS_NAMES.iter().find_map(|key| notes.iter().find_map(|notes| from_json(notes.get(*key)?)))
}

/// A row, and where there is one a class, that cannot be taken.
struct Fault {
    row: usize,
    class: Option<usize>,
    problem: Problem,
}

/// Copies lists of `classes` values each, end to end.
fn copy_lists(lists: &ArrayRef, classes: usize, out: &mut Values) -> std::result::Result<(), Fault> {
    if let Some(row) = first_null(lists) {
        return Err(Fault { row, class: None, problem: Problem::Null });
    }
    let (items, start) = match lists.data_type() {
        DataType::FixedSizeList(_, _) => {
            let list = lists.as_fixed_size_list();
            (list.values(), list.value_offset(0) as usize)
        }
        DataType::LargeList(_) => {
            let list = lists.as_list::<i64>();
            same_lengths(list.offsets().windows(2).map(|pair| (pair[1] - pair[0]) as usize), classes)?;
            (list.values(), list.offsets()[0] as usize)
        }
        _ => {
            let list = lists.as_list::<i32>();
            same_lengths(list.offsets().windows(2).map(|pair| (pair[1] - pair[0]) as usize), classes)?;
            (list.values(), list.offsets()[0] as usize)
        }
    };
    let items = items.slice(start, lists.len() * classes);
    if let Some(item) = first_null(&items) {
        let (row, class) = (item / classes, Some(item % classes));
        return Err(Fault { row, class, problem: Problem::Null });
    }
    match out {
        Values::F16(v) => v.extend_from_slice(items.as_primitive::<Float16Type>().values()),
        Values::F32(v) => v.extend_from_slice(items.as_primitive::<Float32Type>().values()),
        Values::F64(v) => v.extend_from_slice(items.as_primitive::<Float64Type>().values()),
        Values::Bf16(_) => unreachable!("Arrow has no bfloat16"),
    }
    Ok(())
}

fn first_null(array: &ArrayRef) -> Option<usize> {
    (array.null_count() > 0).then(|| (0..array.len()).find(|&row| array.is_null(row))).flatten()
}

fn same_lengths(mut lengths: impl Iterator<Item = usize>, wanted: usize) -> std::result::Result<(), Fault> {
    let mut row = 0;
    let wrong = lengths.find(|&found| {
        row += 1;
        found != wanted
    });
    match wrong {
        Some(found) => Err(Fault { row: row - 1, class: None, problem: Problem::Ragged { wanted, found } }),
        None => Ok(()),
    }
}

fn cell_type(column: &DataType) -> CellType {
    match column {
        DataType::Boolean => CellType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => CellType::Int,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => CellType::UInt,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => CellType::Float,
        _ => CellType::Text,
    }
}

/// A column as cells; dates, decimals and the like become the text Arrow shows for them.
fn cells(column: &ArrayRef) -> std::result::Result<Cells, ArrowError> {
    let cast = |to: &DataType| arrow_cast::cast(column, to);
    Ok(match cell_type(column.data_type()) {
        CellType::Bool => Cells::Bool(column.as_boolean().iter().collect()),
        CellType::Int => Cells::Int(cast(&DataType::Int64)?.as_primitive::<Int64Type>().iter().collect()),
        CellType::UInt => Cells::UInt(cast(&DataType::UInt64)?.as_primitive::<UInt64Type>().iter().collect()),
        CellType::Float => {
            Cells::Float(cast(&DataType::Float64)?.as_primitive::<Float64Type>().iter().collect())
        }
        CellType::Text => {
            let text = cast(&DataType::Utf8)?;
            Cells::Text(text.as_string::<i32>().iter().map(|cell| cell.map(str::to_owned)).collect())
        }
    })
}
