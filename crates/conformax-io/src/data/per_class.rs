//! Files with something for each class: its cluster, its weight, its share, what a miss of it costs.
//!
//! JSON: an array in the order of the classes, or an object by name. CSV: a line `class,value` for each, with a heading
//! or without. A matrix: an array of arrays, or lines of numbers.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::data::json_pairs::JsonPairs;
use crate::error::{InFile, Problem, Result};
use crate::{ClassNames, printable};

type Read<T> = std::result::Result<T, Problem>;

/// The cluster of each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// Its number, in the order of the classes; clusters are numbered as they come.
    pub of_class: Vec<u32>,
    /// What each cluster is called.
    pub names: Vec<String>,
}

/// The clusters that a file puts the classes into.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("clusters.csv");
/// std::fs::write(&path, "dog,pets\ncat,pets\nowl,3\n")?;
/// let names = conformax_io::ClassNames::new(["cat", "dog", "owl"].map(str::to_owned).to_vec())?;
/// let clusters = conformax_io::read_clusters(&path, 3, Some(&names))?;
/// assert_eq!(clusters.of_class, [0, 0, 1]);
/// assert_eq!(clusters.names, ["pets", "cluster 3"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_clusters(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Clusters> {
    clusters(&read_text(path)?, classes, names).in_file(path)
}

/// A number for each class, in the order of the classes.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("severity.csv");
/// std::fs::write(&path, "dog,0.5\ncat,1\n")?;
/// let names = conformax_io::ClassNames::new(vec!["cat".into(), "dog".into()])?;
/// assert_eq!(conformax_io::read_numbers_per_class(&path, 2, Some(&names))?, [1.0, 0.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_numbers_per_class(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Vec<f64>> {
    numbers(&read_text(path)?, classes, names).in_file(path)
}

/// Weights of labels: as numbers per class, or as `weigh` writes them, by the names that they have there.
pub fn read_label_weights(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Vec<f64>> {
    label_weights(&read_text(path)?, classes, names).in_file(path)
}

fn label_weights(text: &str, classes: usize, names: Option<&ClassNames>) -> Read<Vec<f64>> {
    let written = match text.trim_start().starts_with('{') {
        true => Some(object(text)?).filter(is_of_weigh),
        false => None,
    };
    let Some(written) = written else { return numbers(text, classes, names) };
    let read = |key: &str| written.get(key).cloned().unwrap_or_default();
    let weights: Vec<f64> = serde_json::from_value(read("weights"))
        .map_err(|error| Problem::PerClass(format!("`weights` are no numbers: {error}")))?;
    let of: Option<Vec<String>> = serde_json::from_value(read("class_names"))
        .map_err(|error| Problem::ClassNames(error.to_string()))?;
    if weights.len() != classes || of.as_ref().is_some_and(|of| of.len() != classes) {
        return Err(Problem::PerClass(format!("wanted {classes} values, got {}", weights.len())));
    }
    match of {
        Some(of) if names.is_some() => {
            let entries = weights.iter().map(|weight| Entry::new((*weight).into()));
            let entries = by_name(of.into_iter().zip(entries), classes, names)?;
            numbers_of(&entries, names)
        }
        _ => Ok(weights),
    }
}

fn object(text: &str) -> Read<JsonPairs<Value>> {
    let values: JsonPairs<Value> = serde_json::from_str(text)
        .map_err(|error| Problem::PerClass(format!("wanted an object of values: {error}")))?;
    match values.repeated() {
        Some(name) => Err(Problem::PerClass(format!("the class `{}` occurs twice", printable(name)))),
        None => Ok(values),
    }
}

/// What `weigh` writes has its values under a name of their own.
fn is_of_weigh(values: &JsonPairs<Value>) -> bool {
    values.get("weights").is_some() && values.get("format").is_some()
}

/// A number for every pair of classes, row after row.
pub fn read_matrix(path: &Path, classes: usize) -> Result<Vec<f64>> {
    let text = read_text(path)?;
    let rows: Vec<Vec<f64>> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text)
            .map_err(|error| Problem::PerClass(format!("wanted rows of numbers: {error}")))
    } else {
        let number =
            |cell: &str| cell.trim().parse().map_err(|_| Problem::NotANumber(cell.trim().to_owned()));
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| line.split(',').map(number).collect()).collect::<std::result::Result<_, _>>()
    }
    .in_file(path)?;
    let shape = rows.len() == classes && rows.iter().all(|row| row.len() == classes);
    match shape {
        true => Ok(rows.concat()),
        false => {
            let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
            let found =
                format!("wanted {classes} rows of {classes} numbers, got {} of up to {columns}", rows.len());
            Err(Problem::PerClass(found)).in_file(path)
        }
    }
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).in_file(path)?;
    let text = String::from_utf8(bytes).map_err(|_| Problem::NotUtf8).in_file(path)?;
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// What a file has for a class, and the line that has it.
struct Entry {
    value: Value,
    line: Option<usize>,
}

impl Entry {
    fn new(value: Value) -> Self {
        Self { value, line: None }
    }

    /// Where it is, to begin a message with.
    fn place(&self) -> String {
        self.line.map_or(String::new(), |line| format!("line {line}: "))
    }
}

fn clusters(text: &str, classes: usize, names: Option<&ClassNames>) -> Read<Clusters> {
    let mut known: Vec<String> = Vec::new();
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let entries = entries(text, classes, names)?;
    let of_class = entries.iter().enumerate().map(|(class, entry)| {
        let name = cluster_name(&entry.value).map_err(|why| {
            Problem::PerClass(format!("{}the class `{}` {why}", entry.place(), class_name(class, names)))
        })?;
        Ok(*numbers.entry(name).or_insert_with_key(|name| {
            known.push(name.clone());
            known.len() as u32 - 1
        }))
    });
    let of_class = of_class.collect::<Read<_>>()?;
    Ok(Clusters { of_class, names: called(&known) })
}

fn cluster_name(value: &Value) -> std::result::Result<String, &'static str> {
    match value {
        Value::Null => Err("has no cluster"),
        Value::String(name) if name.trim().is_empty() => Err("has no cluster"),
        Value::String(name) => Ok(name.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Array(_) => Err("has a list for its cluster; wanted is a name or a number"),
        Value::Object(_) => Err("has an object for its cluster; wanted is a name or a number"),
    }
}

/// A number says little on its own, and must not be called as another cluster is.
fn called(known: &[String]) -> Vec<String> {
    let called = |name: &String| match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Some(format!("cluster {name}")).filter(|longer| !known.contains(longer)),
        false => None,
    };
    known.iter().map(|name| called(name).unwrap_or_else(|| name.clone())).collect()
}

fn numbers(text: &str, classes: usize, names: Option<&ClassNames>) -> Read<Vec<f64>> {
    numbers_of(&entries(text, classes, names)?, names)
}

fn numbers_of(entries: &[Entry], names: Option<&ClassNames>) -> Read<Vec<f64>> {
    let number = |(class, entry): (usize, &Entry)| {
        let text = match &entry.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.parse().map_err(|_| {
            let (place, name) = (entry.place(), class_name(class, names));
            Problem::PerClass(format!("{place}the class `{name}` has `{}`, not a number", printable(&text)))
        })
    };
    entries.iter().enumerate().map(number).collect()
}

/// What the file has for each class, in the order of the classes.
fn entries(text: &str, classes: usize, names: Option<&ClassNames>) -> Read<Vec<Entry>> {
    match text.trim_start().chars().next() {
        Some('[') => {
            let values: Vec<Value> = serde_json::from_str(text)
                .map_err(|error| Problem::PerClass(format!("wanted an array of values: {error}")))?;
            match values.len() == classes {
                true => Ok(values.into_iter().map(Entry::new).collect()),
                false => Err(Problem::PerClass(format!("wanted {classes} values, got {}", values.len()))),
            }
        }
        Some('{') => {
            let values = object(text)?;
            if is_of_weigh(&values) {
                return Err(Problem::LabelWeights);
            }
            by_name(values.0.into_iter().map(|(name, value)| (name, Entry::new(value))), classes, names)
        }
        _ => of_lines(text, classes, names),
    }
}

/// Lines of `class,value`. The first may be a heading, which a class that is misspelt looks like.
fn of_lines(text: &str, classes: usize, names: Option<&ClassNames>) -> Read<Vec<Entry>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let pair = |(place, line): (usize, &str)| {
        let wrong = || {
            let line = printable(line);
            Problem::PerClass(format!("line {}: wanted `class,value`, got `{line}`", place + 1))
        };
        let cells = cells(line).ok_or_else(wrong)?;
        let (value, name) = cells.split_last().filter(|(_, name)| !name.is_empty()).ok_or_else(wrong)?;
        let entry = Entry { value: Value::from(value.as_str()), line: Some(place + 1) };
        let name = match (name, line.rsplit_once(',')) {
            // A name with commas that nobody has quoted, as it stands there.
            ([_, _, ..], Some((name, _))) => name.trim().to_owned(),
            _ => name.concat(),
        };
        Ok((name, entry))
    };
    let mut pairs = lines.map(pair).collect::<Read<Vec<_>>>()?;
    let heading = match pairs.first().is_some_and(|(name, _)| class_of(name, classes, names).is_none()) {
        true => Some(pairs.remove(0)),
        false => None,
    };
    by_name(pairs.into_iter(), classes, names).map_err(|problem| match (problem, heading) {
        (Problem::PerClass(what), Some((name, entry))) => {
            let line = entry.line.unwrap_or_default();
            let name = printable(&name);
            Problem::PerClass(format!(
                "{what}; line {line}, which begins with `{name}`, was taken for a heading"
            ))
        }
        (problem, _) => problem,
    })
}

/// The cells of a line; between quotes a comma is itself, and a quote is doubled. `None` where a quote does not end:
/// the crate `csv`, which comes with a feature of that name alone, would end it for us, and would not see one behind a
/// space.
fn cells(line: &str) -> Option<Vec<String>> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if quoted => quoted = false,
            '"' if cell.trim().is_empty() => quoted = true,
            ',' if !quoted => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            other => cell.push(other),
        }
    }
    cells.push(cell.trim().to_owned());
    (!quoted).then_some(cells)
}

fn class_of(name: &str, classes: usize, names: Option<&ClassNames>) -> Option<usize> {
    match names {
        Some(names) => names.class(name).map(|class| class as usize),
        None => name.parse().ok().filter(|class| *class < classes),
    }
}

/// What the class is called, fit to be shown.
fn class_name(class: usize, names: Option<&ClassNames>) -> String {
    names.map_or(class.to_string(), |names| printable(&names.as_slice()[class]).to_string())
}

fn by_name(
    pairs: impl Iterator<Item = (String, Entry)>,
    classes: usize,
    names: Option<&ClassNames>,
) -> Read<Vec<Entry>> {
    let mut entries: Vec<Option<Entry>> = (0..classes).map(|_| None).collect();
    for (name, entry) in pairs {
        let (place, shown) = (entry.place(), printable(&name));
        let Some(class) = class_of(&name, classes, names) else {
            return Err(Problem::PerClass(format!("{place}`{shown}` is none of the {classes} classes")));
        };
        if entries[class].replace(entry).is_some() {
            return Err(Problem::PerClass(format!("{place}the class `{shown}` occurs twice")));
        }
    }
    let entry = |(class, entry): (usize, Option<Entry>)| {
        let left_out = || Problem::PerClass(format!("the class `{}` is left out", class_name(class, names)));
        entry.ok_or_else(left_out)
    };
    entries.into_iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn animals() -> ClassNames {
        ClassNames::new(["cat", "dog, big", "owl"].map(str::to_owned).to_vec()).unwrap()
    }

    fn read(text: &str) -> std::result::Result<(Vec<u32>, Vec<String>), String> {
        let found = clusters(text, 3, Some(&animals())).map_err(|problem| problem.to_string())?;
        Ok((found.of_class, found.names))
    }

    #[test]
    fn clusters_come_in_lines_lists_and_objects() {
        let wanted = Ok((vec![0, 0, 1], vec!["pets".to_owned(), "birds".to_owned()]));
        for text in [
            "owl,birds\n\"dog, big\",pets\ncat,pets\n",
            "class,cluster\r\ncat,pets\r\ndog, big,pets\r\n\r\nowl,birds",
            r#"["pets", "pets", "birds"]"#,
            r#"{"owl": "birds", "cat": "pets", "dog, big": "pets"}"#,
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        let quoted = "cat,\"a \"\"b\"\", c\"\n\"dog, big\",\"x\"\nowl,x\n";
        assert_eq!(read(quoted).unwrap().1, ["a \"b\", c", "x"]);
    }

    #[test]
    fn a_number_is_called_a_cluster_unless_another_one_is() {
        assert_eq!(read("[1, 2, 2]").unwrap().1, ["cluster 1", "cluster 2"]);
        assert_eq!(read(r#"["1", "cluster 1", "2"]"#).unwrap().1, ["1", "cluster 1", "cluster 2"]);
    }

    #[test]
    fn what_is_no_cluster_is_told_with_its_class_and_line() {
        for (text, wanted) in [
            ("cat,a\n\"dog, big\",\nowl,b\n", "line 2: the class `dog, big` has no cluster"),
            (r#"["a", null, "b"]"#, "the class `dog, big` has no cluster"),
            (r#"["a", " ", "b"]"#, "the class `dog, big` has no cluster"),
            (
                r#"["a", "b", ["c"]]"#,
                "the class `owl` has a list for its cluster; wanted is a name or a number",
            ),
            (r#"{"cat": {}, "dog, big": 1, "owl": 1}"#, "the class `cat` has an object for its cluster"),
            ("cat,a\nowl,b\nemu,b\n", "line 3: `emu` is none of the 3 classes"),
            ("cat,a\nowl,b\ncat,b\n", "line 3: the class `cat` occurs twice"),
            ("cat,a\nowl\n", "line 2: wanted `class,value`, got `owl`"),
            ("cat,a\n\"owl,b\n", "line 2: wanted `class,value`"),
            (
                "catt,a\n\"dog, big\",a\nowl,b\n",
                "the class `cat` is left out; line 1, which begins with `catt`, was taken for a heading",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(wanted), "{text}: {message}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_with_its_class_and_line() {
        let read = |text: &str| numbers(text, 3, Some(&animals())).map_err(|problem| problem.to_string());
        assert_eq!(read("[1, \"0.5\", 2]"), Ok(vec![1.0, 0.5, 2.0]));
        assert_eq!(read("[1, null, 2]").unwrap_err(), "the class `dog, big` has `null`, not a number");
        let message = read("cat,1\nowl,much\n\"dog, big\",2\n").unwrap_err();
        assert_eq!(message, "line 2: the class `owl` has `much`, not a number");
    }
}
