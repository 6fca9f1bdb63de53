//! JSON Lines: `{"logits": [0.1, 2.5], "label": 1}` a line.
//!
//! JSON has no infinities: `"-inf"` and `"-Infinity"` as strings stand for −∞. Kept columns take their type from the
//! first row; a value that does not fit it later is an error.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{Error, InFile, Problem, Result, missing};
use crate::reading::open::Stream;
use crate::reading::reader::{CLASS_NAMES, Layout, Reader, Rows, Wanted};
use crate::text::row_limit::RowLimit;
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

pub(crate) struct JsonLinesReader {
    lines: BufReader<RowLimit<Stream>>,
    path: PathBuf,
    wanted: Wanted,
    label: Option<String>,
    layout: Layout,
    /// The first object, read on opening to learn the number of classes.
    ahead: Option<Map<String, Value>>,
    line: String,
    row: u64,
}

impl JsonLinesReader {
    pub(crate) fn open(stream: Stream, path: &Path, wanted: &Wanted) -> Result<Self> {
        let layout = Layout {
            rows: None,
            classes: 0,
            dtype: Dtype::F64,
            names: None,
            has_labels: false,
            keep: Vec::new(),
        };
        let mut reader = Self {
            lines: BufReader::new(RowLimit::new(stream)),
            path: path.to_owned(),
            wanted: wanted.clone(),
            label: None,
            layout,
            ahead: None,
            line: String::new(),
            row: 0,
        };
        reader.look_ahead()?;
        Ok(reader)
    }

    fn look_ahead(&mut self) -> Result<()> {
        let object = self.next_object()?.ok_or_else(|| Error::new(&self.path, Problem::NoRows))?;
        self.layout.classes = self.array(&object)?.len();
        let label =
            self.wanted.label_names().into_iter().find(|name| object.contains_key(*name)).map(str::to_owned);
        if let (true, None, Some(name)) = (self.wanted.labels, &label, &self.wanted.label_column) {
            return Err(self.missing(name, &object));
        }
        self.label = label.filter(|_| self.wanted.labels);
        self.layout.has_labels = self.label.is_some();
        let names = CLASS_NAMES
            .iter()
            .find_map(|key| object.get(*key))
            .and_then(|value| serde_json::from_value::<Vec<String>>(value.clone()).ok());
        self.layout.names = names.map(ClassNames::new).transpose().in_file(&self.path)?;
        for name in &self.wanted.keep {
            let value = object.get(name).ok_or_else(|| self.missing(name, &object))?;
            self.layout.keep.push(cell_type(value));
        }
        self.ahead = Some(object);
        Ok(())
    }

    fn missing(&self, name: &str, object: &Map<String, Value>) -> Error {
        missing(&self.path, name, object.keys().map(String::as_str)).in_row(self.row)
    }

    fn here(&self, problem: impl Into<Problem>) -> Error {
        Error::new(&self.path, problem).in_row(self.row)
    }

    /// The next object; blank lines are passed over.
    fn next_object(&mut self) -> Result<Option<Map<String, Value>>> {
        if let Some(object) = self.ahead.take() {
            return Ok(Some(object));
        }
        loop {
            self.line.clear();
            let read = self.lines.read_line(&mut self.line).map_err(|error| match error.kind() {
                std::io::ErrorKind::InvalidData if !error.to_string().contains("longer") => {
                    self.here(Problem::NotUtf8)
                }
                _ => self.here(error),
            })?;
            self.lines.get_mut().row_taken();
            let text = self.line.trim();
            if read == 0 {
                return Ok(None);
            }
            if !text.is_empty() {
                return serde_json::from_str(text).map(Some).map_err(|error| self.here(json_problem(&error)));
            }
        }
    }

    fn array<'a>(&self, object: &'a Map<String, Value>) -> Result<&'a Vec<Value>> {
        let name = self.wanted.logits_name();
        let value = object.get(name).ok_or_else(|| self.missing(name, object))?;
        value.as_array().ok_or_else(|| {
            let (what, wanted, found) = ("logits", "an array of numbers", value.to_string());
            self.here(Problem::Dtype { what, wanted, found })
        })
    }

    fn push_logits(&self, object: &Map<String, Value>, logits: &mut Vec<f64>) -> Result<()> {
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

impl Reader for JsonLinesReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        into.logits.reset(Dtype::F64);
        let Values::F64(logits) = &mut into.logits else { unreachable!("the buffer was just made f64") };
        let mut labels = Vec::new();
        let mut keep: Vec<_> = self.layout.keep.iter().map(|&kind| Cells::new(kind)).collect();
        for _ in 0..most {
            let Some(mut object) = self.next_object()? else { break };
            self.push_logits(&object, logits)?;
            if let Some(name) = &self.label {
                labels.push(object.remove(name).unwrap_or(Value::Null));
            }
            for (name, cells) in self.wanted.keep.iter().zip(&mut keep) {
                push(cells, object.remove(name).unwrap_or(Value::Null))
                    .map_err(|problem| self.here(problem).in_column(name))?;
            }
            self.row += 1;
        }
        into.labels = self.layout.has_labels.then(|| label_cells(labels));
        let names = self.wanted.keep.iter().cloned();
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

/// Integers where all labels are integers, text otherwise: a number among names is looked up as text.
fn label_cells(labels: Vec<Value>) -> Cells {
    match labels.iter().map(|label| label.as_i64().map(Some)).collect() {
        Some(integers) => Cells::Int(integers),
        None => Cells::Text(labels.into_iter().map(as_text).collect()),
    }
}

fn as_text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
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

fn push(cells: &mut Cells, value: Value) -> std::result::Result<(), Problem> {
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
        true => Err(differs(&value)),
        false => Ok(()),
    }
}

fn json_problem(error: &serde_json::Error) -> Problem {
    let what = format!("{error}; infinities are written as \"-inf\"");
    Problem::Damaged { format: "a JSON object", what }
}
