//! `ClassNames`: the names of the classes, in order, and the way from a name to its index.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::data::utf8::{text, without_mark};
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::reader::CLASS_NAMES;

/// Names of the classes in the order of the logits; no name occurs twice. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassNames(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    names: Vec<String>,
    index: HashMap<String, u32>,
    /// Some name reads as an integer and is not the index of its class, so that an integer may mean either.
    numeric: bool,
}

impl ClassNames {
    /// Takes the names in the order of the logits.
    pub fn new(names: Vec<String>) -> std::result::Result<Self, Problem> {
        let mut index = HashMap::with_capacity(names.len());
        for (class, name) in names.iter().enumerate() {
            let class = u32::try_from(class).map_err(|_| Problem::NameTwice(name.clone()))?;
            if index.insert(name.clone(), class).is_some() {
                return Err(Problem::NameTwice(name.clone()));
            }
        }
        let counting = |class: usize, name: &str| whole_number(name) == i128::try_from(class).ok();
        let numeric = names.iter().any(|name| whole_number(name).is_some())
            && !names.iter().enumerate().all(|(class, name)| counting(class, name));
        Ok(Self(Arc::new(Inner { names, index, numeric })))
    }

    /// The names in the header of a table; `0, 1, 2, …` names nothing.
    pub(crate) fn of_columns(names: &[String]) -> std::result::Result<Option<Self>, Problem> {
        match names.iter().enumerate().all(|(class, name)| *name == class.to_string()) {
            true => Ok(None),
            false => Self::new(names.to_vec()).map(Some),
        }
    }

    /// Reads names from a file: a JSON array of strings, or one name per line. Empty lines at its end name nothing.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).in_file(path)?;
        let text = without_mark(&bytes).and_then(text).in_file(path)?;
        let names: Vec<String> = match serde_json::from_str(text) {
            Ok(names) => names,
            Err(_) => of_lines(text).in_file(path)?,
        };
        if names.is_empty() {
            return Err(Error::new(path, Problem::NoClasses));
        }
        Self::new(names).in_file(path)
    }

    /// The names in order.
    pub fn as_slice(&self) -> &[String] {
        &self.0.names
    }

    /// The name of a class.
    pub fn name(&self, class: u32) -> Option<&str> {
        self.0.names.get(class as usize).map(String::as_str)
    }

    /// The class of a name.
    pub fn class(&self, name: &str) -> Option<u32> {
        self.0.index.get(name).copied()
    }

    /// Whether an integer may be meant as an index or as a name.
    pub(crate) fn are_integers(&self) -> bool {
        self.0.numeric
    }

    /// Checks that two lists agree, and says where they first do not.
    pub fn expect_same(&self, found: &Self) -> std::result::Result<(), Problem> {
        let stranger = found.as_slice().iter().find(|name| self.class(name).is_none());
        let all_there = self.as_slice().iter().all(|name| found.class(name).is_some());
        if let Some(stranger) = stranger.filter(|_| all_there) {
            return Err(Problem::UnknownClass(stranger.clone()));
        }
        let (wanted, found) = (self.as_slice(), found.as_slice());
        if wanted.len() != found.len() {
            return Err(Problem::ClassesDiffer { wanted: wanted.len(), found: found.len() });
        }
        match (0..wanted.len()).find(|&class| wanted[class] != found[class]) {
            None => Ok(()),
            Some(class) => Err(Problem::NamesDiffer {
                class,
                wanted: wanted[class].clone(),
                found: found[class].clone(),
            }),
        }
    }
}

fn of_lines(text: &str) -> std::result::Result<Vec<String>, Problem> {
    let names: Vec<String> = text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
    match names.iter().position(String::is_empty) {
        Some(empty) => Err(Problem::NameEmpty(empty + 1)),
        None => Ok(names),
    }
}

/// Names given as a JSON array, as file metadata carries them. Under `classes` there may be something else, such as
/// their number; under `class_names` there may not.
pub(crate) fn from_json(key: &str, text: &str) -> std::result::Result<Option<Vec<String>>, Problem> {
    match serde_json::from_str(text) {
        Ok(names) => Ok(Some(names)),
        Err(_) if key == CLASS_NAMES[0] => Err(Problem::ClassNames(shortened(text))),
        Err(_) => Ok(None),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The integer that a text reads as; `1.0`, as tools write integers that passed through floats, is one.
pub(crate) fn whole_number(text: &str) -> Option<i128> {
    let (digits, zeros) = text.split_once('.').unwrap_or((text, ""));
    let whole = zeros.bytes().all(|digit| digit == b'0');
    digits.parse().ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_name_nothing() {
        assert_eq!(of_lines("cat\r\nbig dog \n\n \n").unwrap(), ["cat", "big dog"]);
        assert!(of_lines("\n").unwrap().is_empty());
        let message = of_lines("cat\n\ndog\n").unwrap_err().to_string();
        assert!(message.contains("line 2 is empty"), "{message}");
    }

    fn names(list: &[&str]) -> ClassNames {
        ClassNames::new(list.iter().map(|&name| name.to_owned()).collect()).unwrap()
    }

    #[test]
    fn integers_for_names_are_told_from_indices() {
        assert!(!names(&["cat", "dog"]).are_integers());
        assert!(names(&["1990", "1", "0"]).are_integers());
        assert!(names(&["cat", "2.0"]).are_integers());
        assert!(!names(&["0", "1", "2"]).are_integers());
        assert_eq!(
            (whole_number("-1"), whole_number("7.00"), whole_number("1.")),
            (Some(-1), Some(7), Some(1))
        );
        assert_eq!((whole_number("1.5"), whole_number("1e3"), whole_number(".0")), (None, None, None));
    }

    #[test]
    fn metadata_that_is_no_list_of_names_is_refused() {
        assert_eq!(from_json("classes", "10").unwrap(), None);
        assert_eq!(
            from_json("class_names", "[1, 2]").unwrap_err().to_string(),
            "`class_names` must be a JSON array of text, got [1, 2]"
        );
    }

    #[test]
    fn rejects_a_name_that_occurs_twice() {
        let twice = vec!["a".to_owned(), "b".to_owned(), "a".to_owned()];
        assert!(matches!(ClassNames::new(twice), Err(Problem::NameTwice(name)) if name == "a"));
    }

    #[test]
    fn lists_that_differ_name_the_first_difference() {
        let error = names(&["a", "b"]).expect_same(&names(&["a", "c"])).unwrap_err();
        assert_eq!(error.to_string(), "class 1 is `c` here and `b` elsewhere");
        let error = names(&["a", "b"]).expect_same(&names(&["id", "a", "b"])).unwrap_err();
        assert_eq!(error.to_string(), "`id` is not among the expected classes");
    }
}
