//! JSON Lines: `{"logits": [0.1, 2.5], "label": 1}` a line.
//!
//! JSON has no infinities: `"-inf"` and `"-Infinity"` as strings stand for −∞. Kept columns take their type from the
//! first row; a value that does not fit it later is an error.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::data::class_names::from_json;
use crate::data::json_pairs::JsonPairs;
use crate::data::utf8::text;
use crate::error::{Error, InFile, Problem, Purpose, Result, missing};
use crate::reading::reader::{CLASS_NAMES, Layout, Reader, Rows, Wanted};
use crate::reading::stream::{Next, Patience, Stream};
use crate::text::lines::Lines;
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

type Object = JsonPairs<Value>;

pub(crate) struct JsonLinesReader {
    lines: Lines,
    path: PathBuf,
    logits: String,
    label: Option<String>,
    layout: Layout,
    /// The first object, read on opening to learn the number of classes.
    ahead: Option<Object>,
    row: u64,
    /// What is wrong with the next row, where the rows before it were given out first.
    failed: Option<Error>,
}

impl JsonLinesReader {
    pub(crate) fn open(stream: Box<dyn Stream>, path: &Path, wanted: &Wanted) -> Result<Self> {
        let layout = Layout {
            rows: None,
            classes: 0,
            dtype: Dtype::F64,
            names: None,
            has_labels: false,
            keep: Vec::new(),
        };
        let mut reader = Self {
            lines: Lines::new(stream),
            path: path.to_owned(),
            logits: wanted.logits_name().to_owned(),
            label: None,
            layout,
            ahead: None,
            row: 0,
            failed: None,
        };
        reader.look_ahead(wanted)?;
        Ok(reader)
    }

    fn look_ahead(&mut self, wanted: &Wanted) -> Result<()> {
        if self.next_object(Patience::Wait)? != Next::Row {
            return Err(Error::new(&self.path, Problem::NoRows));
        }
        let object = self.ahead.take().expect("a row was just read");
        let keys: Vec<&str> = object.keys().collect();
        let columns = wanted.columns(&keys).map_err(|problem| self.here(problem))?;
        let named = |column: usize| object.0[column].0.clone();
        self.layout.classes = self.array(&object)?.len();
        self.label = columns.label.map(named);
        self.layout.has_labels = self.label.is_some();
        let names = CLASS_NAMES.iter().find_map(|key| Some((*key, object.get(key)?)));
        let names = names.map(|(key, value)| from_json(key, &value.to_string())).transpose();
        let names = names.map_err(|problem| self.here(problem))?.flatten();
        self.layout.names = names.map(ClassNames::new).transpose().in_file(&self.path)?;
        let others = columns.others.iter().filter(|_| wanted.keep_others);
        let keep = columns.keep.iter().chain(others);
        self.layout.keep = keep.map(|&column| (named(column), cell_type(&object.0[column].1))).collect();
        self.ahead = Some(object);
        Ok(())
    }

    fn here(&self, problem: impl Into<Problem>) -> Error {
        Error::new(&self.path, problem).in_row(self.row)
    }

    /// Puts the next object into `ahead`, unless one is there; blank lines are passed over.
    fn next_object(&mut self, patience: Patience) -> Result<Next> {
        while self.ahead.is_none() {
            match self.lines.next(patience).map_err(|problem| self.here(problem))? {
                Next::Row => self.ahead = self.parse()?,
                other => return Ok(other),
            }
        }
        Ok(Next::Row)
    }

    /// The object in a line, if there is anything in it.
    fn parse(&mut self) -> Result<Option<Object>> {
        let here = |problem: Problem| Error::new(&self.path, problem).in_row(self.row);
        let line = self.lines.line().and_then(text).map_err(here)?.trim();
        if line.is_empty() {
            return Ok(None);
        }
        let object: Object = serde_json::from_str(line).map_err(|error| here(json_problem(&error)))?;
        match object.repeated() {
            Some(key) => Err(here(Problem::ColumnTwice(key.to_owned()))),
            None => Ok(Some(object)),
        }
    }

    fn array<'a>(&self, object: &'a Object) -> Result<&'a Vec<Value>> {
        let keys = object.keys();
        let value = object
            .get(&self.logits)
            .ok_or_else(|| self.here(missing(Purpose::Logits, &self.logits, keys)))?;
        value.as_array().ok_or_else(|| {
            let (what, wanted, found) = ("logits", "an array of numbers", value.to_string());
            self.here(Problem::Dtype { what, wanted, found })
        })
    }

    fn push_logits(&self, object: &Object, logits: &mut Vec<f64>) -> Result<()> {
        let row = self.array(object)?;
        let wanted = self.layout.classes;
        if row.len() != wanted {
            return Err(self.here(Problem::Ragged { wanted, found: row.len() }));
        }
        for (class, value) in row.iter().enumerate() {
            logits.push(number(value).map_err(|problem| self.here(problem).in_class(class))?);
        }
        Ok(())
    }
}

impl JsonLinesReader {
    fn read_row(
        &mut self,
        patience: Patience,
        logits: &mut Vec<f64>,
        labels: &mut Vec<Option<String>>,
        keep: &mut [Cells],
    ) -> Result<Next> {
        let next = self.next_object(patience)?;
        if next != Next::Row {
            return Ok(next);
        }
        let object = self.ahead.take().expect("a row was just read");
        self.push_logits(&object, logits)?;
        for ((name, _), cells) in self.layout.keep.iter().zip(keep) {
            push(cells, object.get(name).unwrap_or(&Value::Null))
                .map_err(|problem| self.here(problem).in_column(name))?;
        }
        if let Some(name) = &self.label {
            labels.push(label(object.get(name)));
        }
        Ok(Next::Row)
    }
}

impl Reader for JsonLinesReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        into.logits.reset(Dtype::F64);
        let Values::F64(logits) = &mut into.logits else { unreachable!("the buffer was just made f64") };
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut labels = Vec::new();
        let mut keep: Vec<_> = self.layout.keep.iter().map(|(_, kind)| Cells::new(*kind)).collect();
        for rows in 0..most {
            match self.read_row(Patience::after(rows), logits, &mut labels, &mut keep) {
                Ok(Next::Row) => self.row += 1,
                Ok(_) => break,
                Err(error) if rows == 0 => return Err(error),
                // Rows that came before are good, and from a pipe somebody waits for them.
                Err(error) => {
                    logits.truncate(rows * self.layout.classes);
                    keep.iter_mut().for_each(|cells| cells.truncate(rows));
                    self.failed = Some(error);
                    break;
                }
            }
        }
        into.labels = self.layout.has_labels.then_some(Cells::Text(labels));
        let names = self.layout.keep.iter().map(|(name, _)| name.clone());
        into.keep = names.zip(keep).map(|(name, cells)| NamedCells { name, cells }).collect();
        Ok(())
    }
}

fn number(value: &Value) -> std::result::Result<f64, Problem> {
    match value {
        Value::Number(number) => number.as_f64().ok_or_else(|| Problem::NotANumber(number.to_string())),
        Value::String(text) => text.parse().map_err(|_| Problem::NotANumber(text.clone())),
        Value::Null => Err(Problem::Null),
        other => Err(Problem::NotANumber(other.to_string())),
    }
}

/// The label as text, whatever its type: what it means does not depend on that. A list of one is its only element.
pub(super) fn label(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::Array(list)) if list.len() == 1 => as_text(&list[0]),
        _ => as_text(value?),
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn cell_type(value: &Value) -> CellType {
    match value {
        Value::Bool(_) => CellType::Bool,
        Value::Number(number) if number.is_i64() => CellType::Int,
        Value::Number(number) if number.is_u64() => CellType::UInt,
        Value::Number(_) => CellType::Float,
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => CellType::Text,
    }
}

fn push(cells: &mut Cells, value: &Value) -> std::result::Result<(), Problem> {
    let wanted = cells.cell_type();
    let differs = |value: &Value| Problem::TypesDiffer {
        what: "values".to_owned(),
        wanted: wanted.to_string(),
        found: value.to_string(),
    };
    if let Cells::Text(v) = cells {
        v.push(as_text(value));
        return Ok(());
    }
    let null = value.is_null();
    match cells {
        Cells::Bool(v) => v.push(value.as_bool()),
        Cells::Int(v) => v.push(value.as_i64()),
        Cells::UInt(v) => v.push(value.as_u64()),
        Cells::Float(v) => v.push(value.as_f64()),
        Cells::Text(_) => unreachable!("text was pushed above"),
    }
    match cells.last_is_empty() && !null {
        true => Err(differs(value)),
        false => Ok(()),
    }
}

pub(super) fn json_problem(error: &serde_json::Error) -> Problem {
    let what = format!("{error}; infinities are written as \"-inf\"");
    Problem::Damaged { format: "a JSON object", what }
}
