//! The names of classes: from a list, from numbers, or from the labels themselves.

use std::collections::BTreeSet;
use std::path::Path;

use super::error::{Error, InFile, Problem, Result};

/// `0`, `1` and on, for files that know no names.
pub(crate) fn numbers(classes: usize) -> Vec<String> {
    (0..classes).map(|class| class.to_string()).collect()
}

/// One name a line, or numbers where the file is not there. Blank lines at the end do not count.
pub(crate) fn from_list(path: &Path, classes: usize) -> Result<Vec<String>> {
    if !path.try_exists().in_file(path)? {
        return Ok(numbers(classes));
    }
    let bytes = std::fs::read(path).in_file(path)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::new(path, Problem::NotUtf8))?;
    let names: Vec<String> = text.trim_end().lines().map(|line| line.trim().to_owned()).collect();
    if names.len() != classes {
        return Err(Error::new(path, Problem::ClassNames { wanted: classes, found: names.len() }));
    }
    Ok(names)
}

/// The labels that occur, each once: by value where all are whole numbers (so that 10 follows 9), by name otherwise.
pub(crate) fn from_labels<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<String> {
    let distinct: BTreeSet<&str> = labels.collect();
    let mut names: Vec<String> = distinct.into_iter().map(str::to_owned).collect();
    let number = |name: &String| name.parse::<u64>().ok();
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by_key(number);
    }
    names
}

/// A label that must name one of `classes`.
pub(crate) fn check(path: &Path, record: usize, label: u32, classes: usize) -> Result<u32> {
    if (label as usize) < classes {
        return Ok(label);
    }
    Err(Error::in_record(path, record, Problem::LabelOutside { label, classes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_numbers_are_ordered_by_value() {
        assert_eq!(from_labels(["10", "9", "9"].into_iter()), ["9", "10"]);
        assert_eq!(from_labels(["b", "10", "9"].into_iter()), ["10", "9", "b"]);
    }

    #[test]
    fn a_list_must_name_every_class() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("names.txt");
        assert_eq!(from_list(&path, 2).unwrap(), ["0", "1"]);
        std::fs::write(&path, "cat\ndog\n\n").unwrap();
        assert_eq!(from_list(&path, 2).unwrap(), ["cat", "dog"]);
        let error = from_list(&path, 3).unwrap_err().to_string();
        assert!(error.ends_with("names.txt: names 2 classes, 3 were expected"), "{error}");
        std::fs::write(&path, b"caf\xe9\n").unwrap();
        assert!(from_list(&path, 1).unwrap_err().to_string().ends_with("is not UTF-8 text"));
    }
}
