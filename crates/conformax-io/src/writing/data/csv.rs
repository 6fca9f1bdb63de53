//! Data as CSV: kept columns, a column per class, and `label`; a `.tsv` has tabs between them.
//!
//! Numbers are the shortest decimals that read back as the same `f64`. A cell that begins with `=`, `+`, `-` or `@` is
//! written as it is: quoting it for spreadsheets would change what every other reader gets.

use std::path::{Path, PathBuf};

use super::{DataColumns, Encode, Sink, finish, sink};
use crate::Block;
use crate::error::{Error, InFile, Problem, Result};
use crate::writing::output::Overwrite;

pub(super) struct CsvData {
    writer: csv::Writer<Sink>,
    path: PathBuf,
    columns: DataColumns,
}

impl CsvData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        let classes: Vec<String> = match &columns.names {
            Some(names) => names.as_slice().to_vec(),
            None => (0..columns.classes).map(|class| class.to_string()).collect(),
        };
        let label = columns.labels.then_some("label");
        let own: Vec<&str> = classes.iter().map(String::as_str).chain(label).collect();
        columns.check_names(&own).in_file(path)?;
        if let Some(name) = classes.iter().find(|name| label == Some(name.as_str()) || name.trim() != **name)
        {
            return Err(Error::new(path, Problem::NotAColumn(name.clone())));
        }
        let tabs = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("tsv"));
        let mut builder = csv::WriterBuilder::new();
        builder.delimiter(if tabs { b'\t' } else { b',' });
        let mut writer = builder.from_writer(sink(path, overwrite)?);
        let keep = columns.keep.iter().map(|(name, _)| name.as_str());
        writer.write_record(keep.chain(own)).map_err(problem).in_file(path)?;
        Ok(Self { writer, path: path.to_owned(), columns: columns.clone() })
    }
}

impl Encode for CsvData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        for &row in rows {
            let keep = block.keep.iter().map(|column| column.cells.text(row));
            let logits = row * block.classes..(row + 1) * block.classes;
            let logits = logits.filter_map(|index| block.logits.get(index)).map(|value| value.to_string());
            let label = self.columns.label(block, row);
            self.writer.write_record(keep.chain(logits).chain(label)).map_err(problem)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        finish(self.writer.into_inner().map_err(|error| error.into_error()).in_file(&self.path)?)
    }
}

fn problem(error: csv::Error) -> Problem {
    Problem::Io(error.into())
}
