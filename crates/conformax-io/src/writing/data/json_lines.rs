//! Data as JSON Lines; the first object carries the names of the classes.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::{DataColumns, Encode, Sink, finish, sink};
use crate::error::{InFile, Problem, Result};
use crate::writing::output::Overwrite;
use crate::{Block, Cells};

pub(super) struct JsonLinesData {
    sink: Sink,
    columns: DataColumns,
    begun: bool,
}

impl JsonLinesData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        columns.check_names(&["logits", "label", "labels", "class_names", "classes"]).in_file(path)?;
        Ok(Self { sink: sink(path, overwrite)?, columns: columns.clone(), begun: false })
    }

    fn object(&mut self, block: &Block, row: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for column in &block.keep {
            object.insert(column.name.clone(), cell(&column.cells, row));
        }
        let logits = row * block.classes..(row + 1) * block.classes;
        let logits = logits.filter_map(|index| block.logits.get(index)).map(number);
        object.insert("logits".to_owned(), logits.collect());
        if let Some(labels) = &block.labels {
            let label = match &self.columns.names {
                Some(_) => self.columns.label(block, row).into(),
                None => labels[row].into(),
            };
            object.insert("label".to_owned(), label);
        }
        if let (false, Some(names)) = (self.begun, &self.columns.names) {
            object.insert("class_names".to_owned(), names.as_slice().into());
        }
        self.begun = true;
        object
    }
}

impl Encode for JsonLinesData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        for &row in rows {
            let object = self.object(block, row);
            serde_json::to_writer(&mut self.sink, &object).map_err(|error| Problem::Io(error.into()))?;
            self.sink.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        finish(self.sink)
    }
}

/// JSON has no infinities, so they are text.
fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { value.to_string().into() }
}

fn cell(cells: &Cells, row: usize) -> Value {
    match cells {
        Cells::Bool(v) => v[row].into(),
        Cells::Int(v) => v[row].into(),
        Cells::UInt(v) => v[row].into(),
        Cells::Float(v) => v[row].map_or(Value::Null, number),
        Cells::Text(v) => v[row].clone().into(),
    }
}
