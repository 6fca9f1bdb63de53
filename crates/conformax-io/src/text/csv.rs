//! CSV: a header that names the classes, then one column per class and a column of labels.
//!
//! Every column is a class except the label and those to be kept. A header that counts `0, 1, 2, …` names nothing.

use std::path::{Path, PathBuf};

use crate::error::{Error, InFile, Problem, Result, missing};
use crate::reading::open::Stream;
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::text::row_limit::RowLimit;
use crate::{CellType, Cells, ClassNames, Dtype, NamedCells, Values};

pub(crate) struct CsvReader {
    reader: csv::Reader<RowLimit<Stream>>,
    path: PathBuf,
    /// What each column of the file is.
    roles: Vec<Role>,
    header: Vec<String>,
    layout: Layout,
    record: csv::ByteRecord,
    row: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Class(usize),
    Label,
    Kept(usize),
    Skipped,
}

impl CsvReader {
    pub(crate) fn open(stream: Stream, path: &Path, wanted: &Wanted) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(RowLimit::new(stream));
        let header = reader.byte_headers().map_err(csv_problem).in_file(path)?;
        let header: Option<Vec<String>> =
            header.iter().map(|name| String::from_utf8(name.to_vec()).ok()).collect();
        let mut header = header.ok_or(Problem::NotUtf8).in_file(path)?;
        if let Some(first) = header.first_mut() {
            *first = first.trim_start_matches('\u{feff}').to_owned();
        }
        let roles = roles(&header, wanted, path)?;
        let layout = layout(&header, &roles, path, wanted)?;
        Ok(Self {
            reader,
            path: path.to_owned(),
            roles,
            header,
            layout,
            record: csv::ByteRecord::new(),
            row: 0,
        })
    }

    /// Reads one record into the columns; `false` at the end.
    fn read_row(
        &mut self,
        logits: &mut Vec<f64>,
        labels: &mut Vec<Option<String>>,
        keep: &mut [Vec<Option<String>>],
    ) -> Result<bool> {
        let more = self.reader.read_byte_record(&mut self.record).map_err(csv_problem);
        if !more.in_file(&self.path).map_err(|error| error.in_row(self.row))? {
            return Ok(false);
        }
        self.reader.get_mut().row_taken();
        let here = |problem: Problem| Error::new(&self.path, problem).in_row(self.row);
        if self.record.len() != self.roles.len() {
            return Err(here(Problem::Damaged {
                format: "a table",
                what: format!("{} cells where the header has {}", self.record.len(), self.roles.len()),
            }));
        }
        for ((cell, role), name) in self.record.iter().zip(&self.roles).zip(&self.header) {
            let named = |problem| here(problem).in_column(name);
            let cell = std::str::from_utf8(cell).map_err(|_| named(Problem::NotUtf8))?;
            match *role {
                Role::Class(class) => {
                    logits.push(number(cell).map_err(|problem| match self.layout.names {
                        Some(_) => named(problem),
                        None => here(problem).in_class(class),
                    })?)
                }
                Role::Label => labels.push(text(cell)),
                Role::Kept(column) => keep[column].push(text(cell)),
                Role::Skipped => {}
            }
        }
        self.row += 1;
        Ok(true)
    }
}

impl Reader for CsvReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        into.logits.reset(Dtype::F64);
        let Values::F64(logits) = &mut into.logits else { unreachable!("the buffer was just made f64") };
        let mut labels = Vec::new();
        let mut keep = vec![Vec::new(); self.layout.keep.len()];
        let mut rows = 0;
        while rows < most && self.read_row(logits, &mut labels, &mut keep)? {
            rows += 1;
        }
        into.labels = self.layout.has_labels.then_some(Cells::Text(labels));
        let mut kept: Vec<(usize, &String)> = self
            .roles
            .iter()
            .zip(&self.header)
            .filter_map(|(role, name)| match role {
                Role::Kept(column) => Some((*column, name)),
                _ => None,
            })
            .collect();
        kept.sort();
        into.keep = kept
            .into_iter()
            .zip(keep)
            .map(|((_, name), cells)| NamedCells { name: name.clone(), cells: Cells::Text(cells) })
            .collect();
        Ok(())
    }
}

fn roles(header: &[String], wanted: &Wanted, path: &Path) -> Result<Vec<Role>> {
    for name in wanted.keep.iter().chain(wanted.label_column.iter().filter(|_| wanted.labels)) {
        if !header.contains(name) {
            return Err(missing(path, name, header.iter().map(String::as_str)));
        }
    }
    let label = wanted.label_names().into_iter().find(|name| header.iter().any(|column| column == name));
    let mut classes = 0;
    Ok(header
        .iter()
        .map(|name| {
            let kept = wanted.keep.iter().position(|keep| keep == name);
            match (kept, Some(name.as_str()) == label) {
                (Some(column), _) => Role::Kept(column),
                (None, true) if wanted.labels => Role::Label,
                (None, true) => Role::Skipped,
                (None, false) => {
                    classes += 1;
                    Role::Class(classes - 1)
                }
            }
        })
        .collect())
}

fn layout(header: &[String], roles: &[Role], path: &Path, wanted: &Wanted) -> Result<Layout> {
    let names: Vec<String> = header
        .iter()
        .zip(roles)
        .filter(|(_, role)| matches!(role, Role::Class(_)))
        .map(|(name, _)| name.clone())
        .collect();
    let classes = names.len();
    let counting = names.iter().enumerate().all(|(class, name)| *name == class.to_string());
    if !counting
        && names.iter().all(|name| name.parse::<f64>().is_ok())
        && names.iter().any(|name| name.parse::<i64>().is_err())
    {
        return Err(Error::new(path, Problem::NoHeader));
    }
    let names = if counting { None } else { Some(ClassNames::new(names).in_file(path)?) };
    Ok(Layout {
        rows: None,
        classes,
        dtype: Dtype::F64,
        names,
        has_labels: roles.contains(&Role::Label),
        keep: vec![CellType::Text; wanted.keep.len()],
    })
}

/// `-inf` and `nan` are numbers here, in any case; what logits may be is the arithmetic's to say.
fn number(cell: &str) -> std::result::Result<f64, Problem> {
    match cell.trim() {
        "" => Err(Problem::Null),
        trimmed => trimmed.parse().map_err(|_| Problem::NotANumber(cell.to_owned())),
    }
}

fn text(cell: &str) -> Option<String> {
    let cell = cell.trim();
    (!cell.is_empty()).then(|| cell.to_owned())
}

fn csv_problem(error: csv::Error) -> Problem {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Problem::Io(error),
        other => Problem::Damaged { format: "a CSV file", what: format!("{other:?}") },
    }
}
