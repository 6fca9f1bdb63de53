//! What each column is for.
//!
//! Most formats have the logits in one column or array, found by its name. A *wide* table has a column per class
//! instead: there every column is a class unless it is the label, kept, dropped, or not among the classes that were
//! listed. What looks like no class there (no name, a name twice, numbers of rows) is asked about rather than guessed
//! at.

use std::collections::HashMap;

use crate::error::{Problem, Purpose, missing};
use crate::reading::reader::{CLASS_NAMES, Wanted};

/// Columns of a format that has its logits in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) logits: usize,
    pub(crate) label: Option<usize>,
    pub(crate) keep: Vec<usize>,
    /// Neither of these, nor names of classes, nor dropped.
    pub(crate) others: Vec<usize>,
}

/// Columns of a wide table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WideColumns {
    /// The column of each class.
    pub(crate) classes: Vec<usize>,
    pub(crate) label: Option<usize>,
    pub(crate) keep: Vec<usize>,
}

impl Wanted {
    /// The name of the logits among those present; the default is `logits`.
    pub(crate) fn logits_name(&self) -> &str {
        self.logits_column.as_deref().unwrap_or("logits")
    }

    /// Finds columns by their names where the logits are one of them.
    pub(crate) fn columns(&self, present: &[&str]) -> Result<Columns, Problem> {
        if self.classes.is_some() {
            return Err(Problem::NoClassColumns);
        }
        let logits = the_one(present, self.logits_name(), Purpose::Logits)?;
        let label = if self.labels { self.label(present)? } else { None };
        let keep = self.each(present, &self.keep, Purpose::Keep)?;
        let drop = self.each(present, &self.drop, Purpose::Drop)?;
        exclude(present, &[(Purpose::Logits, &[logits]), (Purpose::Keep, &keep), (Purpose::Drop, &drop)])?;
        exclude(present, &[(Purpose::Labels, label.as_slice()), (Purpose::Drop, &drop)])?;
        let is_label = |column: usize| match &self.label_column {
            Some(name) => present[column] == name,
            None => LABELS.contains(&present[column]),
        };
        let others = (0..present.len()).filter(|column| {
            *column != logits
                && !is_label(*column)
                && !keep.contains(column)
                && !drop.contains(column)
                && !CLASS_NAMES.contains(&present[*column])
        });
        Ok(Columns { logits, label, others: others.collect(), keep })
    }

    /// Finds the columns of a wide table.
    pub(crate) fn wide_columns(&self, present: &[&str]) -> Result<WideColumns, Problem> {
        if let Some(name) = &self.logits_column {
            return Err(Problem::NoLogitsColumn(name.clone()));
        }
        let label = self.label(present)?;
        let mut keep = self.each(present, &self.keep, Purpose::Keep)?;
        let drop = self.each(present, &self.drop, Purpose::Drop)?;
        let spoken_for = |column: usize| {
            label == Some(column) || keep.contains(&column) || self.drop.iter().any(|d| d == present[column])
        };
        let classes = match &self.classes {
            Some(names) => self.each(present, names, Purpose::Class)?,
            None => {
                let classes: Vec<_> = (0..present.len()).filter(|&column| !spoken_for(column)).collect();
                if let Some(&unnamed) = classes.iter().find(|&&column| present[column].is_empty()) {
                    return Err(Problem::UnnamedColumn(unnamed));
                }
                let mut names = HashMap::with_capacity(classes.len());
                let twice = classes.iter().find(|&&column| names.insert(present[column], column).is_some());
                if let Some(&twice) = twice {
                    return Err(Problem::ColumnTwice(present[twice].to_owned()));
                }
                classes
            }
        };
        let (class, kept) = ((Purpose::Class, &classes[..]), (Purpose::Keep, &keep[..]));
        let (labels, dropped) = ((Purpose::Labels, label.as_slice()), (Purpose::Drop, &drop[..]));
        exclude(present, &[class, kept, dropped])?;
        exclude(present, &[class, labels, dropped])?;
        if self.keep_others {
            let mut is_class = vec![false; present.len()];
            classes.iter().for_each(|&class| is_class[class] = true);
            let others = (0..present.len()).filter(|&column| !is_class[column] && !spoken_for(column));
            let others: Vec<_> = others.collect();
            keep.extend(others);
        }
        Ok(WideColumns { classes, label, keep })
    }

    /// The column of labels, where there is one; whether it is to be read is another question.
    fn label(&self, present: &[&str]) -> Result<Option<usize>, Problem> {
        match &self.label_column {
            Some(name) if self.labels || present.contains(&name.as_str()) => {
                the_one(present, name, Purpose::Labels).map(Some)
            }
            Some(_) => Ok(None),
            None => {
                let elsewhere = |name: &&str| {
                    let classes = self.classes.iter().flatten();
                    self.drop.iter().chain(classes).any(|other| other == name)
                };
                let found: Vec<&str> =
                    LABELS.into_iter().filter(|name| present.contains(name) && !elsewhere(name)).collect();
                match found[..] {
                    [] => Ok(None),
                    [name] => the_one(present, name, Purpose::Labels).map(Some),
                    _ => Err(Problem::TwoLabelColumns),
                }
            }
        }
    }

    fn each(&self, present: &[&str], names: &[String], purpose: Purpose) -> Result<Vec<usize>, Problem> {
        let mut found = Vec::new();
        for name in names {
            let column = match purpose {
                // Dropping all columns of a name is no ambiguity.
                Purpose::Drop => present.iter().position(|other| other == name),
                _ => None,
            };
            let column = match column {
                Some(column) => column,
                None => the_one(present, name, purpose)?,
            };
            if purpose == Purpose::Class && found.contains(&column) {
                return Err(Problem::NameTwice(name.clone()));
            }
            if !found.contains(&column) {
                found.push(column);
            }
        }
        Ok(found)
    }
}

/// The names that labels go by.
const LABELS: [&str; 2] = ["labels", "label"];

/// The column of a name, of which there must be one.
fn the_one(present: &[&str], name: &str, purpose: Purpose) -> Result<usize, Problem> {
    let mut found = present.iter().enumerate().filter(|(_, other)| **other == name).map(|(column, _)| column);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(Problem::ColumnTwice(name.to_owned())),
        (None, _) => Err(missing(purpose, name, present.iter().copied())),
    }
}

/// Refuses a column that two of these lists have.
fn exclude(present: &[&str], lists: &[(Purpose, &[usize])]) -> Result<(), Problem> {
    for (at, (second, columns)) in lists.iter().enumerate() {
        for (first, before) in &lists[..at] {
            if let Some(&column) = columns.iter().find(|column| before.contains(column)) {
                let column = present[column].to_owned();
                return Err(Problem::TwoPurposes { column, purposes: [*first, *second] });
            }
        }
    }
    Ok(())
}

/// Looks at the first rows of a wide table for classes that are none: identifiers, and numbers of rows.
///
/// A class that was listed, or whose name was known before, is one whatever it holds.
#[derive(Debug)]
pub(crate) struct Doubts {
    columns: Vec<Doubt>,
    rows: usize,
    settled: bool,
}

#[derive(Debug)]
struct Doubt {
    name: String,
    known: bool,
    /// The cells so far, as long as all of them are whole numbers.
    whole: Option<Vec<i64>>,
}

/// The whole number that a float is, where it is one: numbers of rows pass through floats wherever a cell was missing.
pub(crate) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// Rows that are looked at.
pub(crate) const LOOK: usize = 32;
/// Fewer rows than this count up by chance.
const FEWEST_COUNTING: usize = 3;
/// Fewer whole numbers than this differ by chance.
const FEWEST_DIFFERENT: usize = 8;

impl Doubts {
    pub(crate) fn new<'a>(classes: impl Iterator<Item = &'a str>, wanted: &Wanted) -> Self {
        let known = |name: &str| wanted.names.as_ref().is_some_and(|names| names.class(name).is_some());
        let columns = classes
            .map(|name| Doubt { name: name.to_owned(), known: known(name), whole: Some(Vec::new()) })
            .collect();
        Self { columns, rows: 0, settled: wanted.classes.is_some() }
    }

    /// Whether there is anything left to look at.
    pub(crate) fn settled(&self) -> bool {
        self.settled
    }

    /// The cell of a class in the row being looked at; `None` where it is not a whole number.
    pub(crate) fn take(&mut self, class: usize, cell: Option<i64>) {
        let column = &mut self.columns[class];
        match (cell, &mut column.whole) {
            (Some(cell), Some(cells)) => cells.push(cell),
            _ => column.whole = None,
        }
    }

    /// Ends a row; the error is the name of a column that is no class.
    pub(crate) fn end_row(&mut self) -> Result<(), String> {
        self.rows += 1;
        if self.rows == LOOK { self.settle() } else { Ok(()) }
    }

    /// Decides with what has been seen.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        let fractions = self.columns.iter().any(|column| column.whole.is_none());
        match self.columns.iter().find(|column| !column.known && column.is_no_class(fractions)) {
            Some(column) => Err(column.name.clone()),
            None => Ok(()),
        }
    }
}

impl Doubt {
    fn is_no_class(&self, others_have_fractions: bool) -> bool {
        let Some(cells) = self.whole.as_deref().filter(|cells| !cells.is_empty()) else { return false };
        let counting = cells.len() >= FEWEST_COUNTING
            && cells.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let mut sorted = cells.to_vec();
        sorted.sort_unstable();
        let different = cells.len() >= FEWEST_DIFFERENT && sorted.windows(2).all(|pair| pair[0] != pair[1]);
        // Whatever the others hold: logits may be whole numbers too.
        counting || is_identifier(&self.name) || (others_have_fractions && different)
    }
}

/// Whether a column is called as identifiers are.
fn is_identifier(name: &str) -> bool {
    let name = name.to_lowercase();
    IDENTIFIERS.contains(&name.as_str()) || name.ends_with("_id")
}

/// Names of columns that identify or number rows, the same in Python.
const IDENTIFIERS: [&str; 4] = ["id", "index", "idx", "row"];

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted { labels: true, ..Wanted::default() }
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn every_column_without_another_purpose_is_a_class() {
        let wanted = Wanted { keep: list(&["id"]), drop: list(&["note"]), ..wanted() };
        let found = wanted.wide_columns(&["id", "cat", "label", "dog", "note"]).unwrap();
        assert_eq!(found, WideColumns { classes: vec![1, 3], label: Some(2), keep: vec![0] });
    }

    #[test]
    fn listed_classes_come_in_the_order_of_the_list() {
        let wanted = Wanted { classes: Some(list(&["dog", "cat"])), keep_others: true, ..wanted() };
        let found = wanted.wide_columns(&["", "cat", "label", "dog", "note"]).unwrap();
        assert_eq!(found, WideColumns { classes: vec![3, 1], label: Some(2), keep: vec![0, 4] });
    }

    #[test]
    fn what_is_not_clear_is_asked() {
        let error = |wanted: Wanted, header: &[&str]| wanted.wide_columns(header).unwrap_err().to_string();
        assert!(error(wanted(), &["", "cat", "dog"]).starts_with("column 0 has no name"));
        assert_eq!(error(wanted(), &["cat", "dog", "cat"]), "the column `cat` occurs twice");
        assert_eq!(error(wanted(), &["cat", "label", "label"]), "the column `label` occurs twice");
        assert!(error(wanted(), &["cat", "label", "labels"]).contains("which of them"));
        let both = Wanted { keep: list(&["id"]), drop: list(&["id"]), ..wanted() };
        assert_eq!(
            error(both, &["id", "cat"]),
            "the column `id` cannot be both a column to keep and a column to drop"
        );
        let named = Wanted { logits_column: Some("z".to_owned()), ..wanted() };
        assert!(error(named, &["cat", "dog"]).contains("one column per class"));
    }

    #[test]
    fn a_column_that_occurs_twice_and_is_not_used_does_no_harm() {
        let found = wanted().columns(&["logits", "x", "x", "label"]).unwrap();
        assert_eq!((found.logits, found.label, found.others), (0, Some(3), vec![1, 2]));
        assert!(matches!(wanted().columns(&["logits", "logits"]), Err(Problem::ColumnTwice(_))));
        assert!(matches!(wanted().columns(&["logits", "label", "labels"]), Err(Problem::TwoLabelColumns)));
        let dropped = Wanted { drop: list(&["label"]), ..wanted() };
        assert_eq!(dropped.columns(&["logits", "label", "labels"]).unwrap().label, Some(2));
    }

    fn doubtful(names: &[&str], rows: &[&[Option<i64>]]) -> Option<String> {
        let mut doubts = Doubts::new(names.iter().copied(), &wanted());
        for row in rows {
            row.iter().enumerate().for_each(|(class, cell)| doubts.take(class, *cell));
            if let Err(name) = doubts.end_row() {
                return Some(name);
            }
        }
        doubts.settle().err()
    }

    #[test]
    fn numbers_of_rows_are_no_class() {
        let counting: Vec<[Option<i64>; 2]> = (7..40).map(|row| [Some(row), None]).collect();
        let rows: Vec<&[Option<i64>]> = counting.iter().map(|row| &row[..]).collect();
        assert_eq!(doubtful(&["n", "cat"], &rows).as_deref(), Some("n"));
        assert_eq!(doubtful(&["n", "cat"], &rows[..2]), None);
        let ids: Vec<[Option<i64>; 2]> = (0..8).map(|row| [Some(row * 7919 % 101), None]).collect();
        let rows: Vec<&[Option<i64>]> = ids.iter().map(|row| &row[..]).collect();
        assert_eq!(doubtful(&["customer", "cat"], &rows).as_deref(), Some("customer"));
        assert_eq!(doubtful(&["customer", "cat"], &rows[..7]), None);
        assert_eq!(doubtful(&["customer_id", "cat"], &rows[..1]).as_deref(), Some("customer_id"));
    }

    #[test]
    fn whole_logits_are_logits() {
        let rows: [&[Option<i64>]; 4] =
            [&[Some(3), Some(1)], &[Some(1), Some(3)], &[Some(2), Some(2)], &[Some(0), Some(5)]];
        assert_eq!(doubtful(&["cat", "dog"], &rows), None);
        assert_eq!(doubtful(&["cat", "row_id"], &rows).as_deref(), Some("row_id"), "by its name alone");
        let masked: [&[Option<i64>]; 40] = [&[Some(0), None]; 40];
        assert_eq!(doubtful(&["cat", "dog"], &masked), None);
        assert_eq!(doubtful(&["cat", "id"], &masked), None, "a class, since it has fractions");
    }
}
