//! Tables with a column of texts and a column of labels.

use std::collections::BTreeMap;
use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::error::{Error, Problem, Result};
use super::{Dataset, Inputs, Parts, class_names};

/// Reads the training file and those of the other parts that are given; the classes are those of the first.
pub(crate) fn read(files: [Option<&Path>; 3], text: &str, label: &str) -> Result<Dataset> {
    let (mut texts, mut labels, mut names) = (Vec::new(), Vec::new(), None);
    let mut counts = [0; 3];
    for (file, count) in files.into_iter().zip(&mut counts) {
        let Some(path) = file else { continue };
        let table = Table::read(path, text, label)?;
        let names =
            names.get_or_insert_with(|| class_names::from_labels(table.labels.iter().map(String::as_str)));
        let classes: BTreeMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        for (record, label) in table.labels.iter().enumerate() {
            let unknown = || Error::in_record(path, record, Problem::UnknownClass(label.clone()));
            labels.push(*classes.get(label.as_str()).ok_or_else(unknown)?);
        }
        *count = table.texts.len();
        texts.extend(table.texts);
    }
    let [train, validation, test] = counts;
    Ok(Dataset {
        inputs: Inputs::Texts(texts),
        labels,
        class_names: names.unwrap_or_default(),
        parts: Parts::in_sequence(train, validation, test),
    })
}

struct Table {
    texts: Vec<String>,
    labels: Vec<String>,
}

impl Table {
    fn read(path: &Path, text: &str, label: &str) -> Result<Self> {
        let mut reader = ReaderBuilder::new().from_path(path).map_err(|error| fault(path, None, error))?;
        let header = reader.headers().map_err(|error| fault(path, None, error))?;
        let (text, label) = (column(path, header, text)?, column(path, header, label)?);
        let mut table = Self { texts: Vec::new(), labels: Vec::new() };
        for (place, record) in reader.records().enumerate() {
            let record = record.map_err(|error| fault(path, Some(place), error))?;
            let name = record[label].trim();
            if name.is_empty() {
                return Err(Error::in_record(path, place, Problem::EmptyLabel));
            }
            table.labels.push(name.to_owned());
            table.texts.push(record[text].to_owned());
        }
        if table.texts.is_empty() {
            return Err(Error::new(path, Problem::Missing("rows")));
        }
        Ok(table)
    }
}

fn column(path: &Path, header: &StringRecord, wanted: &str) -> Result<usize> {
    header.iter().position(|name| name == wanted).ok_or_else(|| {
        let found = header.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Error::new(path, Problem::NoColumn { wanted: wanted.to_owned(), found })
    })
}

fn fault(path: &Path, record: Option<usize>, error: csv::Error) -> Error {
    let problem = match error.into_kind() {
        ErrorKind::Io(error) => Problem::Io(error),
        ErrorKind::Utf8 { .. } => Problem::NotUtf8,
        ErrorKind::UnequalLengths { expected_len, len, .. } => Problem::Damaged {
            format: "a table",
            what: format!("{len} cells, the header has {expected_len}"),
        },
        other => Problem::Damaged { format: "a table", what: format!("{other:?}") },
    };
    match record {
        Some(record) => Error::in_record(path, record, problem),
        None => Error::new(path, problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn reads_the_parts_with_the_classes_of_the_first() {
        let train = written(b"id,text,label\n1,\"two\nlines, quoted\",spam\n2,plain,ham\n");
        let test = written(b"label,text\nspam,again\n");
        let data = read([Some(train.path()), None, Some(test.path())], "text", "label").unwrap();
        assert_eq!(data.class_names, ["ham", "spam"]);
        assert_eq!((data.labels, data.parts), (vec![1, 0, 1], Parts::in_sequence(2, 0, 1)));
        let texts = ["two\nlines, quoted", "plain", "again"].map(str::to_owned).to_vec();
        assert_eq!(data.inputs, Inputs::Texts(texts));
    }

    #[test]
    fn refuses_bad_tables_by_record() {
        let message = |bytes: &[u8]| {
            let file = written(bytes);
            read([Some(file.path()), None, None], "text", "label").unwrap_err().to_string()
        };
        let cases: [(&[u8], &str); 6] = [
            (b"text,class\nx,1\n", ": no column `label`; there are `text`, `class`"),
            (b"text,label\nx,1\ny\n", ": record 1: damaged or not a table: 1 cells, the header has 2"),
            (b"text,label\nx,1\ncaf\xe9,1\n", ": record 1: is not UTF-8 text"),
            (b"text,label\nx, \n", ": record 0: the label is empty"),
            (b"text,label\n", ": holds no rows"),
            (b"t\xe9xt,label\n", ": is not UTF-8 text"),
        ];
        for (bytes, wanted) in cases {
            assert!(message(bytes).ends_with(wanted), "{} is not {wanted}", message(bytes));
        }
    }

    #[test]
    fn a_class_only_the_test_file_has_is_refused() {
        let (train, test) = (written(b"text,label\nx,a\n"), written(b"text,label\ny,a\nz,b\n"));
        let error =
            read([Some(train.path()), None, Some(test.path())], "text", "label").unwrap_err().to_string();
        assert!(error.ends_with(": record 1: class `b` does not occur in the training part"), "{error}");
    }
}
