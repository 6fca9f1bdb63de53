//! Sets as JSON Lines: `{"row":0,"labels":["cat"],"size":1}`.

use std::io::Write;

use serde::Serialize;

use super::{Encode, SetColumns, SetRows, Sink};
use crate::{Cells, ClassNames, Problem};

pub(super) struct JsonLinesSets {
    sink: Sink,
    names: Option<ClassNames>,
}

impl JsonLinesSets {
    pub(super) fn new(sink: Sink, columns: &SetColumns) -> Self {
        Self { sink, names: columns.names.clone() }
    }

    fn write_set(&mut self, rows: &SetRows<'_>, set: usize) -> Result<(), Problem> {
        let row = rows.row_of(set);
        write!(self.sink, "{{\"row\":{}", rows.first_row + row as u64)?;
        for column in rows.keep {
            self.sink.write_all(b",")?;
            self.json(&column.name)?;
            self.sink.write_all(b":")?;
            match &column.cells {
                Cells::Bool(v) => self.json(&v[row])?,
                Cells::Int(v) => self.json(&v[row])?,
                Cells::UInt(v) => self.json(&v[row])?,
                Cells::Float(v) => self.json(&v[row])?,
                Cells::Text(v) => self.json(&v[row])?,
            }
        }
        let labels = rows.labels_of(set);
        self.sink.write_all(b",\"labels\":")?;
        match self.names.clone() {
            None => self.json(labels)?,
            Some(names) => {
                let named: Vec<_> = labels.iter().map(|&label| names.name(label)).collect();
                self.json(&named)?;
            }
        }
        write!(self.sink, ",\"size\":{}", labels.len())?;
        self.list("probabilities", rows.probabilities_of(set))?;
        self.list("p_values", rows.p_values_of(set))?;
        if let Some(alpha) = rows.alpha_of(set) {
            self.sink.write_all(b",\"alpha\":")?;
            self.json(&alpha)?;
        }
        self.sink.write_all(b"}\n")?;
        Ok(())
    }

    fn list(&mut self, name: &str, values: Option<&[f64]>) -> Result<(), Problem> {
        let Some(values) = values else { return Ok(()) };
        write!(self.sink, ",\"{name}\":")?;
        self.json(values)
    }

    fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Problem> {
        serde_json::to_writer(&mut self.sink, value).map_err(|error| Problem::Io(error.into()))
    }
}

impl Encode for JsonLinesSets {
    fn write(&mut self, rows: &SetRows<'_>) -> Result<(), Problem> {
        (0..rows.sets()).try_for_each(|set| self.write_set(rows, set))
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(self.sink.flush()?)
    }

    fn close(self: Box<Self>) -> Result<Sink, Problem> {
        Ok(self.sink)
    }
}
