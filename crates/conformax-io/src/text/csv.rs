//! CSV: a header that names the classes, then one column per class and a column of labels.
//!
//! Which columns are classes is decided in [`crate::reading::roles`]. A header that counts `0, 1, 2, …` names nothing.
//! Cells and names are trimmed; they are separated by commas, semicolons or tabs, as the header is.

use std::path::{Path, PathBuf};

use crate::data::utf8::text;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::roles::{Doubts, whole};
use crate::reading::stream::{Next, Patience, Stream};
use crate::text::csv_records::CsvRecords;
use crate::text::decimal::plain_decimal;
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

pub(crate) struct CsvReader {
    records: CsvRecords,
    path: PathBuf,
    /// What each column of the file is.
    roles: Vec<Role>,
    header: Vec<String>,
    layout: Layout,
    doubts: Doubts,
    row: u64,
    /// What is wrong with the next row, where the rows before it were given out first.
    failed: Option<Error>,
}

/// A label may be kept too.
#[derive(Debug, Clone, Copy, Default)]
struct Role {
    class: Option<usize>,
    label: bool,
    keep: Option<usize>,
}

impl Role {
    /// The class, where a cell is nothing else.
    fn class_alone(self) -> Option<usize> {
        self.class.filter(|_| !self.label && self.keep.is_none())
    }
}

/// Cells of the rows of a block.
struct Columns<'a> {
    logits: &'a mut Vec<f64>,
    labels: Vec<Option<String>>,
    keep: Vec<Vec<Option<String>>>,
}

impl CsvReader {
    pub(crate) fn open(stream: Box<dyn Stream>, path: &Path, wanted: &Wanted) -> Result<Self> {
        let mut records = CsvRecords::open(stream).in_file(path)?;
        if records.next(Patience::Wait).in_file(path)? != Next::Row {
            return Err(Error::new(path, Problem::NoRows));
        }
        let header: std::result::Result<Vec<String>, Problem> =
            records.cells().map(|name| Ok(text(name)?.trim().to_owned())).collect();
        let header = header.in_file(path)?;
        let present: Vec<&str> = header.iter().map(String::as_str).collect();
        if holds_numbers(&present) {
            return Err(Error::new(path, Problem::NoHeader));
        }
        let columns = wanted.wide_columns(&present).in_file(path)?;
        let mut roles = vec![Role::default(); header.len()];
        for (class, &column) in columns.classes.iter().enumerate() {
            roles[column].class = Some(class);
        }
        for (kept, &column) in columns.keep.iter().enumerate() {
            roles[column].keep = Some(kept);
        }
        let label = columns.label.filter(|_| wanted.labels);
        if let Some(column) = label {
            roles[column].label = true;
        }
        let names: Vec<String> = columns.classes.iter().map(|&column| header[column].clone()).collect();
        let layout = Layout {
            rows: None,
            classes: names.len(),
            dtype: Dtype::F64,
            has_labels: label.is_some(),
            keep: columns.keep.iter().map(|&column| (header[column].clone(), CellType::Text)).collect(),
            names: ClassNames::of_columns(&names).in_file(path)?,
        };
        let doubts = Doubts::new(names.iter().map(String::as_str), wanted);
        Ok(Self { records, path: path.to_owned(), roles, header, layout, doubts, row: 0, failed: None })
    }

    fn here(&self, problem: Problem) -> Error {
        Error::new(&self.path, problem).in_row(self.row)
    }

    /// Takes the cells of the record into the columns.
    fn take_row(&mut self, columns: &mut Columns<'_>) -> Result<()> {
        if self.records.len() != self.roles.len() {
            let what = format!("{} cells where the header has {}", self.records.len(), self.roles.len());
            return Err(self.here(Problem::Damaged { format: "a table", what }));
        }
        let first = columns.logits.len();
        columns.logits.resize(first + self.layout.classes, 0.0);
        let doubtful = !self.doubts.settled();
        for ((cell, role), name) in self.records.cells().zip(&self.roles).zip(&self.header) {
            if let (Some(class), false) = (role.class_alone(), doubtful)
                && let Some(logit) = plain_decimal(cell)
            {
                columns.logits[first + class] = logit;
                continue;
            }
            let named = |problem| Error::new(&self.path, problem).in_row(self.row).in_column(name);
            let cell = text(cell).map_err(named)?.trim();
            if let Some(class) = role.class {
                let logit = number(cell).map_err(|problem| match self.layout.names {
                    Some(_) => named(problem),
                    None => Error::new(&self.path, problem).in_row(self.row).in_class(class),
                })?;
                columns.logits[first + class] = logit;
                if doubtful {
                    self.doubts.take(class, cell.parse().ok().or_else(|| whole(logit)));
                }
            }
            let cell = (!cell.is_empty()).then_some(cell);
            if role.label {
                columns.labels.push(cell.map(str::to_owned));
            }
            if let Some(column) = role.keep {
                columns.keep[column].push(cell.map(str::to_owned));
            }
        }
        self.row += 1;
        let doubt = if doubtful { self.doubts.end_row() } else { Ok(()) };
        doubt.map_err(|name| self.doubt(&name))
    }

    fn next_row(&mut self, patience: Patience, columns: &mut Columns<'_>) -> Result<Next> {
        let next = self.records.next(patience).map_err(|problem| self.here(problem))?;
        match next {
            Next::Row => self.take_row(columns)?,
            Next::NotYet => {}
            Next::End => self.doubts.settle().map_err(|name| self.doubt(&name))?,
        }
        Ok(next)
    }

    fn doubt(&self, name: &str) -> Error {
        Error::new(&self.path, Problem::RowNumbers).in_column(name)
    }
}

impl Reader for CsvReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        into.logits.reset(Dtype::F64);
        let Values::F64(logits) = &mut into.logits else { unreachable!("the buffer was just made f64") };
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut columns =
            Columns { logits, labels: Vec::new(), keep: vec![Vec::new(); self.layout.keep.len()] };
        for rows in 0..most {
            match self.next_row(Patience::after(rows), &mut columns) {
                Ok(Next::Row) => {}
                Ok(_) => break,
                Err(error) if rows == 0 || error.place().row.is_none() => return Err(error),
                // Rows that came before are good, and from a pipe somebody waits for them.
                Err(error) => {
                    columns.logits.truncate(rows * self.layout.classes);
                    columns.labels.truncate(rows);
                    columns.keep.iter_mut().for_each(|cells| cells.truncate(rows));
                    self.failed = Some(error);
                    break;
                }
            }
        }
        into.labels = self.layout.has_labels.then_some(Cells::Text(columns.labels));
        let names = self.layout.keep.iter().map(|(name, _)| name.clone());
        into.keep = names
            .zip(columns.keep)
            .map(|(name, cells)| NamedCells { name, cells: Cells::Text(cells) })
            .collect();
        Ok(())
    }
}

/// Whether a header is a row of logits; columns may be named after whole numbers.
fn holds_numbers(header: &[&str]) -> bool {
    let number = |name: &&str| name.parse::<f64>().is_ok();
    header.iter().all(number) && header.iter().any(|name| name.parse::<i64>().is_err())
}

/// `-inf` and `nan` are numbers here, in any case; what logits may be is the arithmetic's to say.
fn number(cell: &str) -> std::result::Result<f64, Problem> {
    cell.parse().map_err(|_| match cell {
        "" => Problem::Null,
        _ if cell.replacen(',', ".", 1).parse::<f64>().is_ok() => Problem::DecimalComma(cell.to_owned()),
        _ => Problem::NotANumber(cell.to_owned()),
    })
}
