//! NumPy's `.npy`: a Python dictionary of type, order and shape, then the values.
//!
//! The header is read by hand: the crates that do it multiply the shape unchecked, so that a header that lies panics.

use std::io::Read;
use std::path::Path;

use crate::arrays::array::{Matrix, NUMBERS, Order, Payload, Vector};
use crate::arrays::npy_header::Header;
use crate::error::{Error, InFile, Problem, Purpose, Result};
use crate::reading::positioned::PositionedFile;
use crate::reading::reader::{Layout, Reader, Rows, Wanted};
use crate::reading::stream::Stream;

/// Reads a lone `.npy` of logits; it has no labels and no other columns.
pub(crate) struct NpyReader {
    logits: Matrix,
    layout: Layout,
}

impl NpyReader {
    pub(crate) fn open(file: &PositionedFile, wanted: &Wanted) -> Result<Self> {
        Self::new(open_matrix(file)?, wanted, file.path())
    }

    pub(crate) fn from_stream(mut stream: Box<dyn Stream>, path: &Path, wanted: &Wanted) -> Result<Self> {
        let header = Header::read(&mut stream, path)?;
        let payload = Payload::Pipe { stream, path: path.to_owned() };
        Self::new(matrix(&header, payload)?, wanted, path)
    }

    fn new(logits: Matrix, wanted: &Wanted, path: &Path) -> Result<Self> {
        if wanted.classes.is_some() {
            return Err(Error::new(path, Problem::NoClassColumns));
        }
        // An array has no name, and nothing beside it.
        let label = wanted.label_column.as_ref().filter(|_| wanted.labels);
        let asked = (wanted.keep.first().map(|name| (Purpose::Keep, name)))
            .or(wanted.drop.first().map(|name| (Purpose::Drop, name)))
            .or(wanted.logits_column.as_ref().map(|name| (Purpose::Logits, name)))
            .or(label.map(|name| (Purpose::Labels, name)));
        if let Some((purpose, name)) = asked {
            let found = "the logits alone".to_owned();
            return Err(Error::new(path, Problem::Missing { purpose, wanted: name.clone(), found }));
        }
        let layout = layout(&logits);
        Ok(Self { logits, layout })
    }
}

/// What a matrix alone says about a data set.
pub(crate) fn layout(logits: &Matrix) -> Layout {
    let shape = logits.shape();
    Layout {
        rows: Some(shape.rows),
        classes: shape.classes,
        dtype: shape.dtype,
        names: None,
        has_labels: false,
        keep: Vec::new(),
    }
}

impl Reader for NpyReader {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        into.labels = None;
        into.keep.clear();
        self.logits.read(most, into).map(drop)
    }
}

/// The matrix in a `.npy` file, which must hold exactly as many bytes as its header says.
pub(crate) fn open_matrix(file: &PositionedFile) -> Result<Matrix> {
    let (header, payload) = open_payload(file)?;
    matrix(&header, payload)
}

/// The vector in a `.npy` file.
pub(crate) fn open_vector(file: &PositionedFile) -> Result<Vector> {
    let (header, payload) = open_payload(file)?;
    vector(&header, payload, "labels")
}

fn open_payload(file: &PositionedFile) -> Result<(Header, Payload)> {
    let mut whole = file.whole();
    let header = Header::read(&mut whole, file.path())?;
    let data = whole.after(header.len)?;
    header.check_len(data.len(), file.path())?;
    Ok((header, Payload::File(data)))
}

/// The matrix of logits that a header, which may describe anything, says to follow.
pub(crate) fn matrix(header: &Header, payload: Payload) -> Result<Matrix> {
    let path = payload.path().to_owned();
    let what = "logits";
    let &[rows, classes] = header.shape.as_slice() else {
        let found = header.shape_text();
        return Err(Error::new(path, Problem::Shape { what, wanted: "(rows, classes)", found }));
    };
    let classes = usize::try_from(classes)
        .map_err(|_| Problem::Truncated { wanted: u64::MAX, found: 0 })
        .in_file(&path)?;
    let order = if header.fortran { Order::ColumnMajor } else { Order::RowMajor };
    let matrix = header
        .element
        .and_then(|element| Matrix::of_numbers(payload, element, rows, classes, header.bytes, order));
    matrix.unwrap_or_else(|| {
        let (wanted, found) = (NUMBERS, header.descr.clone());
        Err(Error::new(path, Problem::Dtype { what, wanted, found }))
    })
}

/// The vector a header describes; a column of shape (rows, 1) is one too.
pub(crate) fn vector(header: &Header, payload: Payload, what: &'static str) -> Result<Vector> {
    let rows = match header.shape.as_slice() {
        &[rows] | &[rows, 1] => rows,
        _ => {
            let found = header.shape_text();
            return Err(Error::new(payload.path(), Problem::Shape { what, wanted: "(rows,)", found }));
        }
    };
    match header.element {
        Some(element) => Ok(Vector::new(payload, element, header.bytes, rows)),
        None => {
            let (wanted, found) = ("integers or names", header.descr.clone());
            Err(Error::new(payload.path(), Problem::Dtype { what, wanted, found }))
        }
    }
}

/// The array in a zip entry of `len` bytes that is read in order.
pub(crate) fn from_entry(
    mut stream: Box<dyn Read + Send>,
    len: u64,
    path: &Path,
) -> Result<(Header, Payload)> {
    let header = Header::read(&mut stream, path)?;
    let left = len.checked_sub(header.len);
    header.check_len(left.unwrap_or(0), path)?;
    Ok((header, Payload::Stream { stream, path: path.to_owned() }))
}
