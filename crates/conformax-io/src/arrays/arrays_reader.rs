//! A file of named arrays (`.npz`, safetensors) read as a data set: logits, labels and kept columns side by side.

use std::path::Path;

use crate::arrays::array::{Matrix, Vector};
use crate::arrays::decode::cell_type;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::reader::{Layout, Reader, Rows};
use crate::{ClassNames, NamedCells, printable};

pub(crate) struct ArraysReader {
    logits: Matrix,
    labels: Option<Vector>,
    keep: Vec<(String, Vector)>,
    layout: Layout,
}

impl ArraysReader {
    /// Puts arrays of one file together; all must have as many rows as the logits.
    pub(crate) fn new(
        logits: Matrix,
        labels: Option<Vector>,
        keep: Vec<(String, Vector)>,
        names: Option<ClassNames>,
        path: &Path,
    ) -> Result<Self> {
        let shape = *logits.shape();
        let beside = keep.iter().map(|(name, vector)| (format!("values of `{}`", printable(name)), vector));
        for (what, vector) in labels.iter().map(|labels| ("labels".to_owned(), labels)).chain(beside) {
            let (logits, found) = (shape.rows, vector.rows());
            if found != logits {
                return Err(Error::new(path, Problem::RowsDiffer { logits, what, found }));
            }
        }
        let layout = Layout {
            rows: Some(shape.rows),
            classes: shape.classes,
            dtype: shape.dtype,
            names,
            has_labels: labels.is_some(),
            keep: keep.iter().map(|(name, vector)| (name.clone(), cell_type(vector.element()))).collect(),
        };
        Ok(Self { logits, labels, keep, layout })
    }
}

impl Reader for ArraysReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        let rows = self.logits.read(most, into)?;
        into.labels = self.labels.as_mut().map(|labels| labels.read(rows)).transpose()?;
        into.keep.clear();
        for (name, column) in &mut self.keep {
            into.keep.push(NamedCells { name: name.clone(), cells: column.read(rows)? });
        }
        Ok(())
    }
}

/// More text than this is not a list of class names.
const LONGEST_NAMES: u64 = 256 << 20;

/// The class names in a vector, which must have one for each class.
pub(crate) fn read_names(mut vector: Vector, classes: usize) -> Result<ClassNames> {
    let path = vector.path().to_owned();
    if vector.rows() != classes as u64 || vector.rows() * vector.element().size() as u64 > LONGEST_NAMES {
        let found = usize::try_from(vector.rows()).unwrap_or(usize::MAX);
        return Err(Error::new(path, Problem::ClassesDiffer { wanted: classes, found }));
    }
    ClassNames::new(vector.read_text()?).in_file(&path)
}
