//! `Cells`: one column of a table that is not logits: labels, or a column carried through to the output.

/// The cells of a column, `None` where one is empty.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// True or false.
    Bool(Vec<Option<bool>>),
    /// Signed integers.
    Int(Vec<Option<i64>>),
    /// Unsigned integers.
    UInt(Vec<Option<u64>>),
    /// Floats.
    Float(Vec<Option<f64>>),
    /// Text.
    Text(Vec<Option<String>>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// True or false.
    Bool,
    /// Signed integers.
    Int,
    /// Unsigned integers.
    UInt,
    /// Floats.
    Float,
    /// Text.
    Text,
}

impl std::fmt::Display for CellType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "booleans",
            Self::Int | Self::UInt => "integers",
            Self::Float => "floats",
            Self::Text => "text",
        })
    }
}

/// A column under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedCells {
    /// The name of the column.
    pub name: String,
    /// Its cells.
    pub cells: Cells,
}

macro_rules! each_type {
    ($cells:expr, $vector:ident => $body:expr) => {
        match $cells {
            Cells::Bool($vector) => $body,
            Cells::Int($vector) => $body,
            Cells::UInt($vector) => $body,
            Cells::Float($vector) => $body,
            Cells::Text($vector) => $body,
        }
    };
}

impl Cells {
    /// An empty column of a type.
    pub fn new(cell_type: CellType) -> Self {
        match cell_type {
            CellType::Bool => Self::Bool(Vec::new()),
            CellType::Int => Self::Int(Vec::new()),
            CellType::UInt => Self::UInt(Vec::new()),
            CellType::Float => Self::Float(Vec::new()),
            CellType::Text => Self::Text(Vec::new()),
        }
    }

    /// The cells as names; the error is the row of one that is empty. A whole number has the same name in any type.
    pub fn names(&self) -> Result<Vec<String>, usize> {
        let name = |row: usize| match self {
            Self::Bool(v) => v[row].map(|cell| cell.to_string()),
            Self::Int(v) => v[row].map(|cell| cell.to_string()),
            Self::UInt(v) => v[row].map(|cell| cell.to_string()),
            // −0 is 0.
            Self::Float(v) => v[row].map(|cell| (cell + 0.0).to_string()),
            Self::Text(v) => v[row].as_deref().filter(|text| !text.is_empty()).map(|text| {
                // What pandas writes of a column of whole numbers with a gap.
                let whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let digits = text.strip_suffix(".0").filter(|text| whole(text.trim_start_matches('-')));
                digits.unwrap_or(text).to_owned()
            }),
        };
        (0..self.len()).map(|row| name(row).ok_or(row)).collect()
    }

    /// The cells as numbers; the error is the row of one that is none, and what it is.
    pub(crate) fn numbers(&self) -> Result<Vec<f64>, (usize, Option<String>)> {
        let number = |row: usize| match self {
            Self::Bool(v) => Err(v[row].map(|cell| cell.to_string())),
            Self::Int(v) => v[row].map(|cell| cell as f64).ok_or(None),
            Self::UInt(v) => v[row].map(|cell| cell as f64).ok_or(None),
            Self::Float(v) => v[row].ok_or(None),
            Self::Text(v) => {
                let text = v[row].as_deref().ok_or(None)?;
                text.trim().parse().map_err(|_| Some(text.to_owned()))
            }
        };
        (0..self.len()).map(|row| number(row).map_err(|found| (row, found))).collect()
    }

    /// The type of the cells.
    pub fn cell_type(&self) -> CellType {
        match self {
            Self::Bool(_) => CellType::Bool,
            Self::Int(_) => CellType::Int,
            Self::UInt(_) => CellType::UInt,
            Self::Float(_) => CellType::Float,
            Self::Text(_) => CellType::Text,
        }
    }

    /// How many cells there are.
    pub fn len(&self) -> usize {
        each_type!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends cells of the same type.
    pub(crate) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Bool(to), Self::Bool(from)) => to.extend(from),
            (Self::Int(to), Self::Int(from)) => to.extend(from),
            (Self::UInt(to), Self::UInt(from)) => to.extend(from),
            (Self::Float(to), Self::Float(from)) => to.extend(from),
            (Self::Text(to), Self::Text(from)) => to.extend(from),
            (to, from) => unreachable!("{} are appended to {}", from.cell_type(), to.cell_type()),
        }
    }

    /// Leaves the first `rows` cells.
    pub(crate) fn truncate(&mut self, rows: usize) {
        each_type!(self, v => v.truncate(rows));
    }

    pub(crate) fn last_is_empty(&self) -> bool {
        each_type!(self, v => v.last().is_some_and(Option::is_none))
    }

    /// The cells at these rows, in this order: how one block becomes the rows of several outputs.
    #[must_use]
    pub fn take(&self, rows: &[usize]) -> Self {
        match self {
            Self::Bool(v) => Self::Bool(rows.iter().map(|&row| v[row]).collect()),
            Self::Int(v) => Self::Int(rows.iter().map(|&row| v[row]).collect()),
            Self::UInt(v) => Self::UInt(rows.iter().map(|&row| v[row]).collect()),
            Self::Float(v) => Self::Float(rows.iter().map(|&row| v[row]).collect()),
            Self::Text(v) => Self::Text(rows.iter().map(|&row| v[row].clone()).collect()),
        }
    }

    /// The cell as text, the way CSV shows it; empty for an empty cell.
    pub fn text(&self, row: usize) -> String {
        fn shown<T: ToString>(cell: Option<&T>) -> String {
            cell.map(T::to_string).unwrap_or_default()
        }
        each_type!(self, v => shown(v[row].as_ref()))
    }
}
