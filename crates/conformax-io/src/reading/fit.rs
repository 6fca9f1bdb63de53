//! Whether the files of a data set fit together: classes, names, types and labels.

use std::path::Path;

use crate::CellType;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::open::{File, open};
use crate::reading::reader::{Layout, Wanted};
use crate::reading::source_options::{LabelUse, SourceOptions};

/// Checks a first file against what was asked for; names that were given become its names.
pub(crate) fn check_first(path: &Path, layout: &mut Layout, options: &SourceOptions) -> Result<()> {
    if layout.classes == 0 {
        return Err(Error::new(path, Problem::NoClasses));
    }
    if options.labels == LabelUse::Required && !layout.has_labels {
        return Err(Error::new(path, Problem::NoLabels));
    }
    if let Some(given) = &options.names {
        if let Some(found) = &layout.names {
            given.expect_same(found).in_file(path)?;
        }
        layout.names = Some(given.clone());
    }
    match &layout.names {
        Some(names) if names.as_slice().len() != layout.classes => {
            let (wanted, found) = (names.as_slice().len(), layout.classes);
            Err(Error::new(path, Problem::ClassesDiffer { wanted, found }))
        }
        _ => Ok(()),
    }
}

/// Checks a further file against the first.
pub(crate) fn check_next(path: &Path, found: &Layout, first: &Layout) -> Result<()> {
    if found.classes != first.classes {
        let (wanted, found) = (first.classes, found.classes);
        return Err(Error::new(path, Problem::ClassesDiffer { wanted, found }));
    }
    let differ = |what: &str, wanted: String, found: String| {
        Err(Error::new(path, Problem::TypesDiffer { what: what.to_owned(), wanted, found }))
    };
    if found.dtype != first.dtype {
        return differ("logits", first.dtype.to_string(), found.dtype.to_string());
    }
    if first.keep.len() != found.keep.len() {
        let count = |layout: &Layout| layout.keep.len().to_string();
        return differ("kept columns", count(first), count(found));
    }
    if let Some((wanted, found)) = first.keep.iter().zip(&found.keep).find(|(a, b)| a != b) {
        let shown = |(name, cells): &(String, CellType)| format!("{cells} `{name}`");
        return differ("kept columns", shown(wanted), shown(found));
    }
    if first.has_labels && !found.has_labels {
        return Err(Error::new(path, Problem::LabelsDiffer));
    }
    match (&first.names, &found.names) {
        (Some(first), Some(found)) => first.expect_same(found).in_file(path),
        _ => Ok(()),
    }
}

/// Adds up the rows of all files, checking their headers on the way; `None` as soon as one does not say.
pub(crate) fn total_rows(files: &[File], wanted: &Wanted, first: &Layout) -> Result<Option<u64>> {
    let mut total = first.rows;
    for file in &files[1..] {
        if file.is_pipe() {
            return Ok(None);
        }
        let reader = open(file, wanted)?;
        check_next(file.path(), reader.layout(), first)?;
        total = total.zip(reader.layout().rows).and_then(|(a, b)| a.checked_add(b));
    }
    Ok(total)
}
