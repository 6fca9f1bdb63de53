//! Labels as files have them turned into class indices, by one rule for every format.
//!
//! An integer (`1` and `1.0` alike, as a number or as text) is an index, unless classes have integers for names: then
//! it may mean either, and somebody has to say. Other text is a name. True and false are names where classes are called
//! so, and 1 and 0 otherwise. What a label means never depends on the type it is stored in, nor on the labels around
//! it.

use crate::data::class_names::whole_number;
use crate::{Cells, ClassNames, LabelsAre, Problem};

/// What labels are looked up in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) names: Option<&'a ClassNames>,
    pub(crate) classes: usize,
    pub(crate) labels_are: Option<LabelsAre>,
}

/// The class of every cell, or the first row that has none and why. `reuse` lends its memory.
pub(crate) fn resolve(
    cells: &Cells,
    lookup: Lookup<'_>,
    mut reuse: Vec<u32>,
) -> Result<Vec<u32>, (usize, Problem)> {
    reuse.clear();
    reuse.reserve(cells.len());
    match cells {
        Cells::Int(v) => each(v, &mut reuse, |&label| lookup.integer(label.into(), label))?,
        Cells::UInt(v) => each(v, &mut reuse, |&label| lookup.integer(label.into(), label))?,
        Cells::Bool(v) => each(v, &mut reuse, |&label| lookup.truth(label))?,
        Cells::Float(v) => each(v, &mut reuse, |&label| lookup.float(label))?,
        Cells::Text(v) => each(v, &mut reuse, |label| lookup.text(label))?,
    }
    Ok(reuse)
}

fn each<T>(
    cells: &[Option<T>],
    out: &mut Vec<u32>,
    class: impl Fn(&T) -> Result<u32, Problem>,
) -> Result<(), (usize, Problem)> {
    for (row, cell) in cells.iter().enumerate() {
        let label = cell.as_ref().ok_or(Problem::NoLabel).and_then(&class);
        out.push(label.map_err(|problem| (row, problem))?);
    }
    Ok(())
}

impl Lookup<'_> {
    /// An integer, and the way it is written.
    fn integer(&self, label: i128, written: impl ToString) -> Result<u32, Problem> {
        match (self.labels_are, self.names) {
            (Some(LabelsAre::Names), _) => self.name(&written.to_string()),
            (None, Some(names)) if names.are_integers() => Err(Problem::IndexOrName(written.to_string())),
            _ => self.index(label),
        }
    }

    fn index(&self, label: i128) -> Result<u32, Problem> {
        match u32::try_from(label) {
            Ok(class) if (class as usize) < self.classes => Ok(class),
            _ => Err(Problem::LabelOutside { label, classes: self.classes }),
        }
    }

    fn name(&self, label: &str) -> Result<u32, Problem> {
        match self.names {
            Some(names) => names.class(label).ok_or_else(|| Problem::UnknownLabel(label.to_owned())),
            None => Err(Problem::NamesWanted(label.to_owned())),
        }
    }

    fn float(&self, label: f64) -> Result<u32, Problem> {
        // Beyond 2^53 floats are integers that nobody meant.
        match label.fract() == 0.0 && label.abs() < 9e15 {
            true => self.integer(label as i128, label as i64),
            false => Err(Problem::FractionalLabel(label)),
        }
    }

    pub(crate) fn text(&self, label: &str) -> Result<u32, Problem> {
        if let Some(integer) = whole_number(label) {
            return self.integer(integer, label);
        }
        if let Some(class) = self.names.and_then(|names| names.class(label)) {
            return match self.labels_are {
                Some(LabelsAre::Indices) => Err(Problem::NotAnIndex(label.to_owned())),
                _ => Ok(class),
            };
        }
        match (parse_truth(label), label.parse::<f64>()) {
            (Some(truth), _) => self.truth(truth),
            (None, Ok(number)) if self.names.is_none() && number.is_finite() => {
                Err(Problem::FractionalLabel(number))
            }
            _ if self.labels_are == Some(LabelsAre::Indices) => Err(Problem::NotAnIndex(label.to_owned())),
            _ => self.name(label),
        }
    }

    fn truth(&self, label: bool) -> Result<u32, Problem> {
        let called_so = |name: &&String| parse_truth(name).is_some();
        let names = self.names.filter(|_| self.labels_are != Some(LabelsAre::Indices));
        match names.filter(|names| names.as_slice().iter().any(|name| called_so(&name))) {
            None => self.index(label.into()),
            Some(names) => {
                let class = names.as_slice().iter().position(|name| parse_truth(name) == Some(label));
                class.map_or_else(|| Err(Problem::UnknownLabel(label.to_string())), |class| Ok(class as u32))
            }
        }
    }
}

/// True or false in any case, as Python and JSON write them.
fn parse_truth(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> ClassNames {
        ClassNames::new(list.iter().map(|&name| name.to_owned()).collect()).unwrap()
    }

    fn look(names: Option<&ClassNames>, labels_are: Option<LabelsAre>) -> Lookup<'_> {
        Lookup { names, classes: 3, labels_are }
    }

    /// One label in every type it can be stored in.
    fn stored(label: i64) -> [Cells; 5] {
        [
            Cells::Int(vec![Some(label)]),
            Cells::UInt(vec![Some(label as u64)]),
            Cells::Float(vec![Some(label as f64)]),
            Cells::Text(vec![Some(label.to_string())]),
            Cells::Text(vec![Some(format!("{label}.0"))]),
        ]
    }

    #[test]
    fn integers_are_indices_whatever_their_type() {
        let animals = names(&["cat", "dog", "owl"]);
        for cells in stored(2) {
            for known in [None, Some(&animals)] {
                assert_eq!(resolve(&cells, look(known, None), Vec::new()).unwrap(), [2], "{cells:?}");
            }
        }
    }

    #[test]
    fn integers_are_asked_about_where_names_are_integers_too() {
        let years = names(&["1", "2", "3"]);
        for cells in stored(1) {
            let ask = resolve(&cells, look(Some(&years), None), Vec::new()).unwrap_err().1;
            assert!(matches!(ask, Problem::IndexOrName(_)), "{cells:?}: {ask}");
            let index = resolve(&cells, look(Some(&years), Some(LabelsAre::Indices)), Vec::new());
            assert_eq!(index.unwrap(), [1], "{cells:?}");
        }
        for cells in &stored(1)[..4] {
            let name = resolve(cells, look(Some(&years), Some(LabelsAre::Names)), Vec::new());
            assert_eq!(name.unwrap(), [0], "{cells:?}");
        }
        let counting = names(&["0", "1", "2"]);
        assert_eq!(resolve(&stored(1)[0], look(Some(&counting), None), Vec::new()).unwrap(), [1]);
    }

    #[test]
    fn booleans_are_names_where_classes_are_called_so() {
        let answers = names(&["True", "False", "maybe"]);
        let stored = [Cells::Bool(vec![Some(true)]), Cells::Text(vec![Some("true".to_owned())])];
        for cells in stored {
            assert_eq!(resolve(&cells, look(None, None), Vec::new()).unwrap(), [1]);
            assert_eq!(resolve(&cells, look(Some(&answers), None), Vec::new()).unwrap(), [0]);
        }
    }

    #[test]
    fn what_is_no_label_says_what_it_is() {
        let animals = names(&["cat", "dog", "owl"]);
        let error = |label: &str, names, kind| {
            let cells = Cells::Text(vec![Some(label.to_owned())]);
            resolve(&cells, look(names, kind), Vec::new()).unwrap_err().1.to_string()
        };
        assert_eq!(error("1.5", None, None), "label 1.5 is not a whole number");
        assert_eq!(error("-1", None, None), "label -1 is outside 0..3");
        assert_eq!(error("3", Some(&animals), None), "label 3 is outside 0..3");
        assert_eq!(error("emu", Some(&animals), None), "label `emu` is not among the class names");
        assert!(error("emu", None, None).contains("the names of the classes are not known"));
        assert_eq!(error("cat", Some(&animals), Some(LabelsAre::Indices)), "label `cat` is not an index");
        let floats = resolve(&Cells::Float(vec![Some(0.0), Some(0.5)]), look(None, None), Vec::new());
        assert!(matches!(floats, Err((1, Problem::FractionalLabel(_)))));
    }
}
