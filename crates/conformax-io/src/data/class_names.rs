//! `ClassNames`: the names of the classes, in order, and the way from a name to its index.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, InFile, Problem, Result};

/// Names of the classes in the order of the logits; no name occurs twice. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassNames(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    names: Vec<String>,
    index: HashMap<String, u32>,
    /// Some name looks like an index, so text that looks like one is always a name.
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
        let numeric = names.iter().any(|name| name.parse::<i128>().is_ok());
        Ok(Self(Arc::new(Inner { names, index, numeric })))
    }

    /// Reads names from a file: a JSON array of strings, or one name per line.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).in_file(path)?;
        let text = String::from_utf8(bytes).map_err(|_| Problem::NotUtf8).in_file(path)?;
        let names = match from_json(&text) {
            Some(names) => names,
            None => text.lines().map(|line| line.trim_end().to_owned()).collect(),
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

    /// Checks that two lists agree, and says where they first do not.
    pub fn expect_same(&self, found: &Self) -> std::result::Result<(), Problem> {
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

/// Names given as a JSON array, as file metadata carries them.
pub(crate) fn from_json(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok()
}

/// The class a text label means: a known name; or an index, where no name could be mistaken for one.
pub(crate) fn class_of_text(
    text: &str,
    names: Option<&ClassNames>,
    classes: usize,
) -> std::result::Result<u32, Problem> {
    if let Some(class) = names.and_then(|names| names.class(text)) {
        return Ok(class);
    }
    match (text.parse::<i128>(), names) {
        (Ok(label), None) => class_of_index(label, classes),
        (Ok(label), Some(names)) if !names.0.numeric => class_of_index(label, classes),
        (_, Some(_)) => Err(Problem::UnknownLabel(text.to_owned())),
        (Err(_), None) => Err(Problem::NamesWanted(text.to_owned())),
    }
}

/// The class an integer label means.
pub(crate) fn class_of_index(label: i128, classes: usize) -> std::result::Result<u32, Problem> {
    match u32::try_from(label) {
        Ok(class) if (class as usize) < classes => Ok(class),
        _ => Err(Problem::LabelOutside { label, classes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> ClassNames {
        ClassNames::new(list.iter().map(|&name| name.to_owned()).collect()).unwrap()
    }

    #[test]
    fn a_label_is_a_name_before_it_is_an_index() {
        let animals = names(&["cat", "dog"]);
        assert_eq!(class_of_text("dog", Some(&animals), 2).unwrap(), 1);
        assert_eq!(class_of_text("1", Some(&animals), 2).unwrap(), 1);
        let years = names(&["1990", "1", "0"]);
        assert_eq!(class_of_text("1", Some(&years), 3).unwrap(), 1);
        assert!(matches!(class_of_text("2", Some(&years), 3), Err(Problem::UnknownLabel(_))));
    }

    #[test]
    fn unknown_labels_say_what_is_missing() {
        assert!(matches!(class_of_text("cat", None, 2), Err(Problem::NamesWanted(_))));
        assert!(matches!(class_of_text("-1", None, 2), Err(Problem::LabelOutside { label: -1, .. })));
        assert!(matches!(class_of_index(2, 2), Err(Problem::LabelOutside { .. })));
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
    }
}
