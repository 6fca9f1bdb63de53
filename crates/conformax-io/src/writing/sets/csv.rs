//! Sets as CSV: lists are joined with `|`; a `|` or `\` within a name is written with a `\` before it.

use super::{Encode, SetColumns, SetRows, Sink};
use crate::{ClassNames, Problem};

pub(super) struct CsvSets {
    writer: csv::Writer<Sink>,
    names: Option<ClassNames>,
}

impl CsvSets {
    pub(super) fn new(sink: Sink, columns: &SetColumns) -> Result<Self, Problem> {
        let mut writer = csv::Writer::from_writer(sink);
        let optional = [
            ("probabilities", columns.probabilities),
            ("p_values", columns.p_values),
            ("alpha", columns.alpha),
        ];
        let header = ["row"]
            .into_iter()
            .chain(columns.keep.iter().map(|(name, _)| name.as_str()))
            .chain(["labels", "size"])
            .chain(optional.iter().filter(|(_, there)| *there).map(|(name, _)| *name));
        writer.write_record(header).map_err(csv_problem)?;
        Ok(Self { writer, names: columns.names.clone() })
    }

    fn label(&self, label: u32) -> String {
        match self.names.as_ref().and_then(|names| names.name(label)) {
            Some(name) => name.replace('\\', "\\\\").replace('|', "\\|"),
            None => label.to_string(),
        }
    }
}

impl Encode for CsvSets {
    fn write(&mut self, rows: &SetRows<'_>) -> Result<(), Problem> {
        for set in 0..rows.sets() {
            let (row, labels) = (rows.row_of(set), rows.labels_of(set));
            let mut record = vec![(rows.first_row + row as u64).to_string()];
            record.extend(rows.keep.iter().map(|column| column.cells.text(row)));
            record.push(labels.iter().map(|&label| self.label(label)).collect::<Vec<_>>().join("|"));
            record.push(labels.len().to_string());
            record.extend(rows.probabilities_of(set).map(joined));
            record.extend(rows.p_values_of(set).map(joined));
            record.extend(rows.alpha_of(set).map(|alpha| alpha.to_string()));
            self.writer.write_record(record).map_err(csv_problem)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Problem> {
        Ok(self.writer.flush()?)
    }

    fn close(self: Box<Self>) -> Result<Sink, Problem> {
        self.writer.into_inner().map_err(|error| Problem::Io(error.into_error()))
    }
}

/// Rust prints the shortest decimal that reads back as the same number.
fn joined(values: &[f64]) -> String {
    values.iter().map(f64::to_string).collect::<Vec<_>>().join("|")
}

fn csv_problem(error: csv::Error) -> Problem {
    Problem::Io(error.into())
}
