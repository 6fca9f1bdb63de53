//! Files with something for each class: its cluster, its weight, its share, what a miss of it costs.
//!
//! JSON: an array in the order of the classes, or an object by name. CSV: a line `class,value` for each, with a heading
//! or without. A matrix: an array of arrays, or lines of numbers.

use std::path::Path;

use crate::data::json_pairs::JsonPairs;
use crate::error::{InFile, Problem, Result};
use crate::{ClassNames, printable};

/// What a file has for each class, in the order of the classes, as text.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("severity.csv");
/// std::fs::write(&path, "dog,0.5\ncat,1\n")?;
/// let names = conformax_io::ClassNames::new(vec!["cat".into(), "dog".into()])?;
/// assert_eq!(conformax_io::read_per_class(&path, 2, Some(&names))?, ["1", "0.5"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_per_class(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Vec<String>> {
    let text = read_text(path)?;
    per_class(&text, classes, names).in_file(path)
}

/// The same as numbers.
pub fn read_numbers_per_class(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Vec<f64>> {
    let values = read_per_class(path, classes, names)?;
    let number = |value: &String| value.parse().map_err(|_| Problem::NotANumber(value.clone()));
    values.iter().map(number).collect::<std::result::Result<_, _>>().in_file(path)
}

/// Weights of labels: as numbers per class, or as `weigh` writes them, by the names that they have there.
pub fn read_label_weights(path: &Path, classes: usize, names: Option<&ClassNames>) -> Result<Vec<f64>> {
    let text = read_text(path)?;
    let written = match text.trim_start().starts_with('{') {
        true => Some(object(&text).in_file(path)?).filter(is_of_weigh),
        false => None,
    };
    let Some(written) = written else { return read_numbers_per_class(path, classes, names) };
    let read = |key: &str| written.get(key).cloned().unwrap_or_default();
    let weights: Vec<f64> = serde_json::from_value(read("weights"))
        .map_err(|error| Problem::PerClass(format!("`weights` are no numbers: {error}")))
        .in_file(path)?;
    let of: Option<Vec<String>> = serde_json::from_value(read("class_names"))
        .map_err(|error| Problem::ClassNames(error.to_string()))
        .in_file(path)?;
    if weights.len() != classes || of.as_ref().is_some_and(|of| of.len() != classes) {
        let what = format!("wanted {classes} values, got {}", weights.len());
        return Err(Problem::PerClass(what)).in_file(path);
    }
    match of {
        Some(of) if names.is_some() => {
            let order: Vec<String> = (0..classes).map(|place| place.to_string()).collect();
            let places = by_name(of.into_iter().zip(order), classes, names).in_file(path)?;
            let place = |place: &String| place.parse::<usize>().expect("it was made of one");
            Ok(places.iter().map(|at| weights[place(at)]).collect())
        }
        _ => Ok(weights),
    }
}

fn object(text: &str) -> std::result::Result<JsonPairs<serde_json::Value>, Problem> {
    let values: JsonPairs<serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| Problem::PerClass(format!("wanted an object of values: {error}")))?;
    match values.repeated() {
        Some(name) => Err(Problem::PerClass(format!("the class `{}` occurs twice", printable(name)))),
        None => Ok(values),
    }
}

/// What `weigh` writes has its values under a name of their own.
fn is_of_weigh(values: &JsonPairs<serde_json::Value>) -> bool {
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

fn per_class(
    text: &str,
    classes: usize,
    names: Option<&ClassNames>,
) -> std::result::Result<Vec<String>, Problem> {
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        // As a file of lines would leave it out.
        serde_json::Value::Null => String::new(),
        other => other.to_string(),
    };
    match text.trim_start().chars().next() {
        Some('[') => {
            let values: Vec<serde_json::Value> = serde_json::from_str(text)
                .map_err(|error| Problem::PerClass(format!("wanted an array of values: {error}")))?;
            match values.len() == classes {
                true => Ok(values.iter().map(shown).collect()),
                false => Err(Problem::PerClass(format!("wanted {classes} values, got {}", values.len()))),
            }
        }
        Some('{') => {
            let values = object(text)?;
            if is_of_weigh(&values) {
                return Err(Problem::LabelWeights);
            }
            by_name(values.0.iter().map(|(name, value)| (name.clone(), shown(value))), classes, names)
        }
        _ => {
            let mut pairs = Vec::new();
            for (line, row) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let Some((name, value)) = row.rsplit_once(',') else {
                    return Err(Problem::PerClass(format!(
                        "line {}: wanted `class,value`, got `{}`",
                        line + 1,
                        printable(row)
                    )));
                };
                let (name, value) = (name.trim().trim_matches('"'), value.trim().trim_matches('"'));
                let heading = line == 0 && class_of(name, classes, names).is_none();
                if !heading {
                    pairs.push((name.to_owned(), value.to_owned()));
                }
            }
            by_name(pairs.into_iter(), classes, names)
        }
    }
}

fn class_of(name: &str, classes: usize, names: Option<&ClassNames>) -> Option<usize> {
    match names {
        Some(names) => names.class(name).map(|class| class as usize),
        None => name.parse().ok().filter(|class| *class < classes),
    }
}

fn by_name(
    pairs: impl Iterator<Item = (String, String)>,
    classes: usize,
    names: Option<&ClassNames>,
) -> std::result::Result<Vec<String>, Problem> {
    let mut values = vec![None; classes];
    for (name, value) in pairs {
        let Some(class) = class_of(&name, classes, names) else {
            return Err(Problem::PerClass(format!("`{name}` is none of the {classes} classes")));
        };
        if values[class].replace(value).is_some() {
            return Err(Problem::PerClass(format!("the class `{name}` occurs twice")));
        }
    }
    let name = |class: usize| names.map_or(class.to_string(), |names| names.as_slice()[class].clone());
    let value = |(class, value): (usize, Option<String>)| {
        value.ok_or_else(|| Problem::PerClass(format!("the class `{}` is left out", name(class))))
    };
    values.into_iter().enumerate().map(value).collect()
}
