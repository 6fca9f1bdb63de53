//! Labels as files have them (integers of any width, or names) turned into class indices.

use crate::data::class_names::{class_of_index, class_of_text};
use crate::{Cells, ClassNames, Problem};

/// The class of every cell, or the first row that has none and why. `reuse` lends its memory.
pub(crate) fn resolve(
    cells: &Cells,
    names: Option<&ClassNames>,
    classes: usize,
    mut reuse: Vec<u32>,
) -> Result<Vec<u32>, (usize, Problem)> {
    reuse.clear();
    reuse.reserve(cells.len());
    match cells {
        Cells::Int(v) => each(v, &mut reuse, |&label| class_of_index(label.into(), classes))?,
        Cells::UInt(v) => each(v, &mut reuse, |&label| class_of_index(label.into(), classes))?,
        Cells::Bool(v) => each(v, &mut reuse, |&label| class_of_index(label.into(), classes))?,
        Cells::Text(v) => each(v, &mut reuse, |label| class_of_text(label, names, classes))?,
        Cells::Float(_) => {
            let (what, wanted) = ("labels", "integers or names");
            return Err((0, Problem::Dtype { what, wanted, found: "floats".to_owned() }));
        }
    }
    Ok(reuse)
}

fn each<T>(
    cells: &[Option<T>],
    out: &mut Vec<u32>,
    class: impl Fn(&T) -> Result<u32, Problem>,
) -> Result<(), (usize, Problem)> {
    for (row, cell) in cells.iter().enumerate() {
        let label = cell.as_ref().ok_or(Problem::Null).and_then(&class);
        out.push(label.map_err(|problem| (row, problem))?);
    }
    Ok(())
}
