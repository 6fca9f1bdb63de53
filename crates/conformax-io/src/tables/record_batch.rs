//! Arrow record batches turned into rows: what Parquet and Arrow files have in common.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};

use crate::data::class_names::from_json;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::reader::{CLASS_NAMES, Layout, Rows, Wanted};
use crate::reading::roles::{Doubts, LOOK, whole};
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

/// Which columns of a schema are what.
#[derive(Debug, Clone)]
pub(crate) struct TableColumns {
    logits: LogitsIn,
    label: Option<usize>,
    keep: Vec<(usize, String, CellType)>,
    dtype: Dtype,
    names: Option<ClassNames>,
}

/// Where the logits are.
#[derive(Debug, Clone)]
enum LogitsIn {
    /// A column of lists, of this many items where the type fixes it.
    Lists(usize, Option<usize>),
    /// A column for each class, and their names.
    Wide(Vec<usize>, Vec<String>),
}

impl TableColumns {
    pub(crate) fn find(schema: &Schema, wanted: &Wanted, path: &Path) -> Result<Self> {
        let present: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        match is_wide(schema, wanted) {
            true => Self::find_wide(schema, &present, wanted),
            false => Self::find_lists(schema, &present, wanted),
        }
        .in_file(path)
    }

    fn find_lists(schema: &Schema, present: &[&str], wanted: &Wanted) -> std::result::Result<Self, Problem> {
        let found = wanted.columns(present)?;
        let (dtype, classes) = list_type(schema.field(found.logits).data_type())?;
        let names = names(schema, Some(found.logits))?.map(ClassNames::new).transpose()?;
        let others = found.others.iter().filter(|_| wanted.keep_others);
        // Lists and the like are not one value per row.
        let others = others.filter(|&&column| !schema.field(column).data_type().is_nested());
        let keep = found.keep.iter().chain(others).map(|&column| kept(schema, column)).collect();
        Ok(Self { logits: LogitsIn::Lists(found.logits, classes), label: found.label, keep, dtype, names })
    }

    fn find_wide(schema: &Schema, present: &[&str], wanted: &Wanted) -> std::result::Result<Self, Problem> {
        let found = wanted.wide_columns(present)?;
        let mut dtype = None;
        for &column in &found.classes {
            let item = number_type(schema.field(column).data_type()).ok_or_else(|| Problem::Dtype {
                what: "columns of classes",
                wanted: "numbers",
                found: format!("{} in `{}`", schema.field(column).data_type(), present[column]),
            })?;
            dtype = Some(if dtype.is_none_or(|before| before == item) { item } else { Dtype::F64 });
        }
        let columns: Vec<String> = found.classes.iter().map(|&class| present[class].to_owned()).collect();
        let names = match names(schema, None)? {
            Some(names) => Some(ClassNames::new(names)?),
            None => ClassNames::of_columns(&columns)?,
        };
        Ok(Self {
            logits: LogitsIn::Wide(found.classes, columns),
            label: found.label.filter(|_| wanted.labels),
            keep: found.keep.iter().map(|&column| kept(schema, column)).collect(),
            dtype: dtype.ok_or(Problem::NoClasses)?,
            names,
        })
    }

    /// What the schema says of the data; the classes are those of the first row where it does not.
    pub(crate) fn layout(&self, rows: Option<u64>, classes: usize) -> Layout {
        Layout {
            rows,
            classes,
            dtype: self.dtype,
            names: self.names.clone(),
            has_labels: self.label.is_some(),
            keep: self.keep.iter().map(|(_, name, cells)| (name.clone(), *cells)).collect(),
        }
    }

    /// Number of classes, where the schema says.
    pub(crate) fn classes(&self) -> Option<usize> {
        match &self.logits {
            LogitsIn::Lists(_, classes) => *classes,
            LogitsIn::Wide(columns, _) => Some(columns.len()),
        }
    }

    /// The same columns without any but the logits.
    #[must_use]
    pub(crate) fn logits_alone(&self) -> Self {
        Self { label: None, keep: Vec::new(), ..self.clone() }
    }

    /// The column of lists and the other columns without it, where the logits are in lists and nothing else asks for
    /// them.
    pub(crate) fn lists_apart(&self) -> Option<(usize, Self)> {
        let LogitsIn::Lists(column, _) = self.logits else { return None };
        let others = Self { logits: LogitsIn::Wide(Vec::new(), Vec::new()), ..self.clone() };
        (!others.read().contains(&column)).then_some((column, others))
    }

    /// The columns of the logits.
    fn logits(&self) -> &[usize] {
        match &self.logits {
            LogitsIn::Lists(column, _) => std::slice::from_ref(column),
            LogitsIn::Wide(columns, _) => columns,
        }
    }

    /// The columns that have to be read, ascending and each once.
    pub(crate) fn read(&self) -> Vec<usize> {
        let keep = self.keep.iter().map(|(column, ..)| *column);
        let mut read: Vec<_> = self.logits().iter().copied().chain(self.label).chain(keep).collect();
        read.sort_unstable();
        read.dedup();
        read
    }

    /// The same columns counted within [`Self::read`], as a projected batch has them.
    #[must_use]
    pub(crate) fn projected(&self) -> Self {
        let read = self.read();
        let place = |column: usize| read.partition_point(|&other| other < column);
        Self {
            logits: match &self.logits {
                LogitsIn::Lists(column, classes) => LogitsIn::Lists(place(*column), *classes),
                LogitsIn::Wide(columns, names) => {
                    LogitsIn::Wide(columns.iter().map(|&column| place(column)).collect(), names.clone())
                }
            },
            label: self.label.map(place),
            keep: self
                .keep
                .iter()
                .map(|(column, name, cells)| (place(*column), name.clone(), *cells))
                .collect(),
            ..self.clone()
        }
    }

    /// Number of logits in the first row of a batch.
    pub(crate) fn first_len(&self, batch: &RecordBatch) -> usize {
        match &self.logits {
            LogitsIn::Lists(column, _) => first_len(batch.column(*column)),
            LogitsIn::Wide(columns, _) => columns.len(),
        }
    }

    /// Looks for columns of a wide table that are no classes, until it has seen enough.
    pub(crate) fn look(&self, batch: &RecordBatch, doubts: &mut Doubts, path: &Path) -> Result<()> {
        let LogitsIn::Wide(columns, _) = &self.logits else { return Ok(()) };
        if doubts.settled() {
            return Ok(());
        }
        let batch = batch.slice(0, batch.num_rows().min(LOOK));
        let numbers = columns.iter().map(|&column| {
            let column = batch.column(column);
            let kind = match cell_type(column.data_type()) {
                CellType::Int | CellType::UInt => Some(DataType::Int64),
                CellType::Float => Some(DataType::Float64),
                CellType::Bool | CellType::Text => None,
            };
            kind.map(|kind| arrow_cast::cast(column, &kind)).transpose()
        });
        let numbers: std::result::Result<Vec<Option<ArrayRef>>, ArrowError> = numbers.collect();
        let numbers = numbers.map_err(|error| arrow_problem(&error)).in_file(path)?;
        for row in 0..batch.num_rows() {
            if doubts.settled() {
                break;
            }
            for (class, column) in numbers.iter().enumerate() {
                let cell =
                    column.as_ref().filter(|column| column.is_valid(row)).and_then(|column| match column
                        .as_primitive_opt::<Int64Type>(
                    ) {
                        Some(cells) => Some(cells.value(row)),
                        None => whole(column.as_primitive::<Float64Type>().value(row)),
                    });
                doubts.take(class, cell);
            }
            doubts.end_row().map_err(|name| doubted(&name, path))?;
        }
        Ok(())
    }

    /// Whose columns of classes may be in doubt.
    pub(crate) fn doubts(&self, wanted: &Wanted) -> Doubts {
        let names = match &self.logits {
            LogitsIn::Wide(_, names) => names.as_slice(),
            LogitsIn::Lists(..) => &[],
        };
        Doubts::new(names.iter().map(String::as_str), wanted)
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
        into.logits.reset(self.dtype);
        match &self.logits {
            LogitsIn::Lists(column, _) => copy_lists(batch.column(*column), classes, &mut into.logits),
            LogitsIn::Wide(columns, _) => copy_columns(batch, columns, &mut into.logits),
        }
        .map_err(|fault| fault.located(first_row, path))?;
        self.fill_beside(batch, path, into)
    }

    /// The same for lists whose values are elsewhere, and checked here for all that is known of them.
    pub(crate) fn fill_apart(
        &self,
        batch: &RecordBatch,
        classes: usize,
        first_row: u64,
        path: &Path,
        into: &mut Rows,
    ) -> Result<()> {
        if let LogitsIn::Lists(column, _) = self.logits {
            list_items(batch.column(column), classes).map_err(|fault| fault.located(first_row, path))?;
        }
        self.fill_beside(batch, path, into)
    }

    /// Replaces what is in `into` beside the logits.
    pub(crate) fn fill_beside(&self, batch: &RecordBatch, path: &Path, into: &mut Rows) -> Result<()> {
        let column = |index: usize| {
            let name = batch.schema_ref().field(index).name();
            cells(batch.column(index)).in_file(path).map_err(|error| error.in_column(name))
        };
        into.labels = self.label.map(column).transpose()?;
        into.keep.clear();
        for (index, name, _) in &self.keep {
            into.keep.push(NamedCells { name: name.clone(), cells: column(*index)? });
        }
        Ok(())
    }
}

/// The error for a column that is no class.
pub(crate) fn doubted(name: &str, path: &Path) -> Error {
    Error::new(path, Problem::RowNumbers).in_column(name)
}

/// Whether a table has a column for each class: it was said, or nothing in it could be a column of lists.
fn is_wide(schema: &Schema, wanted: &Wanted) -> bool {
    let lists = schema.fields().iter().any(|field| field.data_type().is_nested());
    let named = schema.index_of(wanted.logits_name()).is_ok();
    let floats = schema.fields().iter().any(|field| field.data_type().is_floating());
    wanted.classes.is_some() || (wanted.logits_column.is_none() && !lists && !named && floats)
}

fn kept(schema: &Schema, column: usize) -> (usize, String, CellType) {
    let field = schema.field(column);
    (column, field.name().clone(), cell_type(field.data_type()))
}

pub(crate) fn arrow_problem(error: &ArrowError) -> Problem {
    Problem::Damaged { format: "an Arrow table", what: error.to_string() }
}

/// Number of logits in the first row of a column of lists.
fn first_len(lists: &ArrayRef) -> usize {
    match lists.data_type() {
        DataType::FixedSizeList(_, size) => usize::try_from(*size).unwrap_or(0),
        DataType::LargeList(_) => lists.as_list::<i64>().value_length(0).try_into().unwrap_or(0),
        _ => lists.as_list::<i32>().value_length(0).try_into().unwrap_or(0),
    }
}

fn list_type(column: &DataType) -> std::result::Result<(Dtype, Option<usize>), Problem> {
    let wrong = || {
        let (wanted, found) = ("lists of f16, f32, f64 or integers", column.to_string());
        Problem::Dtype { what: "logits", wanted, found }
    };
    let (item, classes) = match column {
        DataType::FixedSizeList(item, size) => (item, Some(usize::try_from(*size).map_err(|_| wrong())?)),
        DataType::List(item) | DataType::LargeList(item) => (item, None),
        _ => return Err(wrong()),
    };
    Ok((number_type(item.data_type()).ok_or_else(wrong)?, classes))
}

/// The type that logits of a column's type come out as; integers become `f64`.
fn number_type(column: &DataType) -> Option<Dtype> {
    match column {
        DataType::Float16 => Some(Dtype::F16),
        DataType::Float32 => Some(Dtype::F32),
        DataType::Float64 => Some(Dtype::F64),
        integer if integer.is_integer() => Some(Dtype::F64),
        _ => None,
    }
}

fn names(schema: &Schema, logits: Option<usize>) -> std::result::Result<Option<Vec<String>>, Problem> {
    let field = logits.map(|logits| schema.field(logits).metadata());
    let notes: Vec<_> = field.into_iter().chain([schema.metadata()]).collect();
    for key in CLASS_NAMES {
        if let Some(text) = notes.iter().find_map(|notes| notes.get(key)) {
            return from_json(key, text);
        }
    }
    Ok(None)
}

/// A row, and where there is one a class, that cannot be taken.
struct Fault {
    row: usize,
    class: Option<usize>,
    problem: Problem,
}

impl Fault {
    /// The error for it, in a batch that begins at this row.
    fn located(self, first_row: u64, path: &Path) -> Error {
        let error = Error::new(path, self.problem).in_row(first_row + self.row as u64);
        self.class.into_iter().fold(error, Error::in_class)
    }
}

/// Copies lists of `classes` values each, end to end.
fn copy_lists(lists: &ArrayRef, classes: usize, out: &mut Values) -> std::result::Result<(), Fault> {
    let items = list_items(lists, classes)?;
    let items = as_floats(&items, out.dtype()).map_err(|error| Fault {
        row: 0,
        class: None,
        problem: arrow_problem(&error),
    })?;
    match out {
        Values::F16(v) => v.extend_from_slice(items.as_primitive::<Float16Type>().values()),
        Values::F32(v) => v.extend_from_slice(items.as_primitive::<Float32Type>().values()),
        Values::F64(v) => v.extend_from_slice(items.as_primitive::<Float64Type>().values()),
        Values::Bf16(_) => unreachable!("Arrow has no bfloat16"),
    }
    Ok(())
}

/// What is in lists of `classes` values each, none of which is missing.
fn list_items(lists: &ArrayRef, classes: usize) -> std::result::Result<ArrayRef, Fault> {
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
    Ok(items)
}

/// Copies columns side by side, row after row.
fn copy_columns(batch: &RecordBatch, columns: &[usize], out: &mut Values) -> std::result::Result<(), Fault> {
    let (rows, classes) = (batch.num_rows(), columns.len());
    out.resize(rows * classes);
    for (class, &column) in columns.iter().enumerate() {
        let column = batch.column(column);
        if let Some(row) = first_null(column) {
            return Err(Fault { row, class: Some(class), problem: Problem::Null });
        }
        let column = as_floats(column, out.dtype()).map_err(|error| Fault {
            row: 0,
            class: Some(class),
            problem: arrow_problem(&error),
        })?;
        match out {
            Values::F16(v) => spread(column.as_primitive::<Float16Type>().values(), class, classes, v),
            Values::F32(v) => spread(column.as_primitive::<Float32Type>().values(), class, classes, v),
            Values::F64(v) => spread(column.as_primitive::<Float64Type>().values(), class, classes, v),
            Values::Bf16(_) => unreachable!("Arrow has no bfloat16"),
        }
    }
    Ok(())
}

fn spread<T: Copy>(column: &[T], class: usize, classes: usize, out: &mut [T]) {
    for (row, value) in column.iter().enumerate() {
        out[row * classes + class] = *value;
    }
}

fn as_floats(items: &ArrayRef, dtype: Dtype) -> std::result::Result<ArrayRef, ArrowError> {
    let wanted = match dtype {
        Dtype::F16 => DataType::Float16,
        Dtype::F32 => DataType::Float32,
        Dtype::F64 | Dtype::Bf16 => DataType::Float64,
    };
    if *items.data_type() == wanted { Ok(items.clone()) } else { arrow_cast::cast(items, &wanted) }
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

fn item_type(column: &DataType) -> Option<&DataType> {
    match column {
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            Some(item.data_type())
        }
        _ => None,
    }
}

/// The items of lists that have one each.
fn only_items(lists: &ArrayRef) -> std::result::Result<ArrayRef, Problem> {
    let shape = |found: String| Problem::Shape { what: "a column", wanted: "(rows,)", found };
    let items = match lists.data_type() {
        DataType::FixedSizeList(_, 1) => {
            let list = lists.as_fixed_size_list();
            list.values().slice(list.value_offset(0) as usize, lists.len())
        }
        DataType::List(_) => {
            let list = lists.as_list::<i32>();
            list.values()
                .slice(list.offsets()[0] as usize, (list.offsets()[lists.len()] - list.offsets()[0]) as usize)
        }
        DataType::LargeList(_) => {
            let list = lists.as_list::<i64>();
            list.values()
                .slice(list.offsets()[0] as usize, (list.offsets()[lists.len()] - list.offsets()[0]) as usize)
        }
        other => return Err(shape(other.to_string())),
    };
    let one_each = (0..lists.len()).all(|row| match lists.data_type() {
        DataType::List(_) => lists.as_list::<i32>().value_length(row) == 1,
        DataType::LargeList(_) => lists.as_list::<i64>().value_length(row) == 1,
        _ => true,
    });
    match one_each && lists.null_count() == 0 {
        true => Ok(items),
        false => Err(shape("lists of other lengths than 1".to_owned())),
    }
}

fn cell_type(column: &DataType) -> CellType {
    match item_type(column).unwrap_or(column) {
        DataType::Boolean => CellType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => CellType::Int,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => CellType::UInt,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => CellType::Float,
        _ => CellType::Text,
    }
}

/// A column as cells; dates, decimals and the like become the text Arrow shows for them. Lists of one are their items,
/// as an array of shape (rows, 1) is a vector.
fn cells(column: &ArrayRef) -> std::result::Result<Cells, Problem> {
    let column = &match item_type(column.data_type()) {
        Some(_) => only_items(column)?,
        None => column.clone(),
    };
    let cast = |to: &DataType| arrow_cast::cast(column, to).map_err(|error| arrow_problem(&error));
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
