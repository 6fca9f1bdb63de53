//! Data as `.npz`, and logits alone as `.npy`.

use std::path::Path;

use super::{DataColumns, Encode};
use crate::error::{Error, Problem, Result};
use crate::writing::npz_writer::{ArrayShape, NpyWriter, NpzWriter};
use crate::writing::output::Overwrite;
use crate::{Block, Values};

fn shape(columns: &DataColumns) -> ArrayShape {
    ArrayShape { rows: columns.rows, classes: columns.classes, dtype: columns.dtype }
}

pub(super) struct NpzData(NpzWriter);

impl NpzData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        columns.check_names(&["logits", "labels", "class_names"]).map_err(|error| Error::new(path, error))?;
        Ok(Self(NpzWriter::create(path, overwrite, shape(columns), columns.names.clone())?))
    }
}

impl Encode for NpzData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        self.0.write(block, rows).map_err(Error::into_problem)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.finish()
    }
}

pub(super) struct NpyData(NpyWriter);

impl NpyData {
    pub(super) fn new(path: &Path, overwrite: Overwrite, columns: &DataColumns) -> Result<Self> {
        if columns.labels || !columns.keep.is_empty() {
            return Err(Error::new(path, Problem::LogitsAlone));
        }
        Ok(Self(NpyWriter::create(path, overwrite, shape(columns))?))
    }
}

impl Encode for NpyData {
    fn write(&mut self, block: &Block, rows: &[usize]) -> std::result::Result<(), Problem> {
        let mut picked = Values::new(block.logits.dtype());
        for &row in rows {
            picked.extend_rows(&block.logits, block.classes, row..row + 1);
        }
        self.0.write(&picked).map_err(Error::into_problem)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.finish()
    }
}
