//! Every way reading or writing a file can fail, and the place it happened.
//!
//! A message reads `cal.npy: row 17, class 3: …`: file, row and column first, because that is what the person at the
//! keyboard has to open. Rows and classes count from 0, as they do in the arrays and in the `row` column of the output.
//! Messages speak of files, not of the program that reads them: a [`Problem`] carries what is missing, and the program
//! adds which of its options supplies it. Control characters in names of files, columns and classes are escaped.

use std::fmt;
use std::path::{Path, PathBuf};

/// A result whose error names a file.
pub type Result<T> = std::result::Result<T, Error>;

/// A problem and the place it was met.
#[derive(Debug)]
pub struct Error(Box<Located>);

#[derive(Debug)]
struct Located {
    place: Place,
    problem: Problem,
}

impl Error {
    /// A problem of the file as a whole.
    pub fn new(path: impl Into<PathBuf>, problem: impl Into<Problem>) -> Self {
        let place = Place { path: path.into(), row: None, column: None };
        Self(Box::new(Located { place, problem: problem.into() }))
    }

    /// The same problem, pinned to a row; a row already given stays.
    #[must_use]
    pub fn in_row(mut self, row: u64) -> Self {
        self.0.place.row.get_or_insert(row);
        self
    }

    /// The same problem, pinned to a class; a column already given stays.
    #[must_use]
    pub fn in_class(mut self, class: usize) -> Self {
        self.0.place.column.get_or_insert(Column::Class(class));
        self
    }

    /// The same problem, pinned to a named column; a column already given stays.
    #[must_use]
    pub fn in_column(mut self, name: &str) -> Self {
        self.0.place.column.get_or_insert_with(|| Column::Named(name.to_owned()));
        self
    }

    /// What happened, wherever it did.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        self.0.problem
    }

    /// Where it happened.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What happened.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printable(&format!("{}: {}", self.0.place, self.0.problem)).fmt(f)
    }
}

impl std::error::Error for Error {}

/// A file and, where there is one, a row and a column in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the caller named it; `-` for standard input.
    pub path: PathBuf,
    /// The row within that file, from 0.
    pub row: Option<u64>,
    /// The column within that row.
    pub column: Option<Column>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.to_str() {
            Some("-") => f.write_str("standard input")?,
            _ => write!(f, "{}", self.path.display())?,
        }
        let mut before = ": ";
        if let Some(row) = self.row {
            write!(f, "{before}row {row}")?;
            before = ", ";
        }
        match &self.column {
            Some(Column::Class(class)) => write!(f, "{before}class {class}"),
            Some(Column::Named(name)) => write!(f, "{before}column `{name}`"),
            None => Ok(()),
        }
    }
}

/// A column of a table, or a class of a row of logits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The logit of this class.
    Class(usize),
    /// A column by its name.
    Named(String),
}

/// What a column or an array is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// It holds the logits.
    Logits,
    /// It holds the logits of one class.
    Class,
    /// It holds the labels.
    Labels,
    /// It is carried over to the output.
    Keep,
    /// It is left alone.
    Drop,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logits => "the logits",
            Self::Class => "a class",
            Self::Labels => "the labels",
            Self::Keep => "a column to keep",
            Self::Drop => "a column to drop",
        })
    }
}

/// What was wanted and what came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system said no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The output is there already and may not be replaced.
    #[error("exists already")]
    Exists,
    /// The folder an output is to appear in is not there.
    #[error("cannot be written: its folder does not exist")]
    NoFolder,
    /// A format whose writer goes back to its beginning, and an output where nobody can.
    #[error("{0} cannot be written to a pipe or a device")]
    NotToPipe(crate::Format),
    /// A shard that is a link to nothing.
    #[error("is a link to a file that does not exist")]
    DanglingLink,
    /// Neither the name nor the first bytes say what the file is.
    #[error("unknown format; known are .npy, .npz, .parquet, .arrow, .csv, .tsv, .safetensors and .jsonl")]
    UnknownFormat,
    /// Rows of JSON in one array.
    #[error("begins with `[`, and rows of JSON are one object to a line (JSON Lines)")]
    JsonArray,
    /// The file, or a part of it, is compressed in a way that is not read.
    #[error("is compressed with {0}, which is not read")]
    Compressed(String),
    /// Labels of their own in a file that is not an array.
    #[error("labels beside logits are read from .npy files, and this is {0}")]
    LabelsFormat(crate::Format),
    /// The format is known but was left out of this build.
    #[error("this build leaves out the feature `{0}` that reads and writes such files")]
    FeatureOff(&'static str),
    /// A format sets are not written in, or that was left out of this build.
    #[error("sets are written as .parquet, .arrow, .jsonl or .csv, not as {0}")]
    SetsFormat(crate::Format),
    /// A kept column named like one of the output's own.
    #[error("the column `{0}` cannot be kept: the output has a column of that name")]
    ColumnTaken(String),
    /// A class whose name cannot head a column.
    #[error("the class `{0}` cannot be a column: its name is taken, or begins or ends with a space")]
    NotAColumn(String),
    /// Text among tensors.
    #[error("the column `{0}` is text, which safetensors cannot hold")]
    TextInSafetensors(String),
    /// Labels or columns that would be lost.
    #[error("an .npy file holds logits alone, and there are labels or columns beside them")]
    LogitsAlone,
    /// A format that needs random access came through a pipe.
    #[error("{0} cannot be read from a pipe; save it to a file and name the file")]
    NotFromPipe(&'static str),
    /// A second pass was asked over something that can be read once.
    #[error("a pipe can be read once only; save it to a file and name the file")]
    OnceOnly,
    /// The bytes do not follow the format.
    #[error("damaged or not {format}: {what}")]
    Damaged {
        /// The format as a noun phrase, "an npy file".
        format: &'static str,
        /// What was wrong with it.
        what: String,
    },
    /// The header promises more than the file holds, or the file shrank while it was read.
    #[error("needs {wanted} bytes, but only {found} are there")]
    Truncated {
        /// Bytes up to the end of what was to be read.
        wanted: u64,
        /// Bytes that exist.
        found: u64,
    },
    /// Somebody else wrote to the file, replaced it or removed it.
    #[error("changed while it was read")]
    Changed,
    /// Elements of the wrong type.
    #[error("{what} must be {wanted}, got {found}")]
    Dtype {
        /// "logits", "labels" or another array.
        what: &'static str,
        /// Types that are accepted.
        wanted: &'static str,
        /// The type as the file spells it.
        found: String,
    },
    /// An array with the wrong dimensions.
    #[error("{what} must have shape {wanted}, got {found}")]
    Shape {
        /// "logits", "labels" or another array.
        what: &'static str,
        /// "(rows, classes)" or "(rows,)".
        wanted: &'static str,
        /// The shape found, as Python writes it.
        found: String,
    },
    /// A column or array that should be there is not.
    #[error("no column `{wanted}`; there are {found}")]
    Missing {
        /// What it is wanted for.
        purpose: Purpose,
        /// Its name.
        wanted: String,
        /// Those that are there.
        found: String,
    },
    /// Labels were required and none came.
    #[error("has no labels")]
    NoLabels,
    /// Two columns that the labels may be in.
    #[error("has a column `labels` and a column `label`; which of them holds the labels must be said")]
    TwoLabelColumns,
    /// A name that should stand for one column.
    #[error("the column `{0}` occurs twice")]
    ColumnTwice(String),
    /// A column of a table of one column per class that has no name, counted from 0.
    #[error("column {0} has no name; whether it is a class must be said")]
    UnnamedColumn(usize),
    /// A column that looks like identifiers, among those that would be classes.
    #[error("holds whole numbers that identify or number rows; whether it is a class must be said")]
    RowNumbers,
    /// Two things asked of one column that exclude each other.
    #[error("the column `{column}` cannot be both {} and {}", purposes[0], purposes[1])]
    TwoPurposes {
        /// Its name.
        column: String,
        /// What was asked of it.
        purposes: [Purpose; 2],
    },
    /// A column of logits was named, but the table has a column for each class.
    #[error("has one column per class, so the logits are not in a column `{0}`")]
    NoLogitsColumn(String),
    /// Columns of classes were named, but the logits are in one column or array.
    #[error("has its logits in one column, so the classes are no columns")]
    NoClassColumns,
    /// Nothing to read.
    #[error("holds no rows")]
    NoRows,
    /// Rows without logits.
    #[error("holds no classes")]
    NoClasses,
    /// A file that is there already, under this or another name.
    #[error("is given twice: its rows would count twice")]
    FileTwice,
    /// A part that is there already, under this name.
    #[error("holds the same rows as `{0}`, which would count twice")]
    PartTwice(String),
    /// A file of another kind than was wanted.
    #[error("is {found}, not {wanted}")]
    OtherKind {
        /// What it is.
        found: String,
        /// What was wanted.
        wanted: &'static str,
    },
    /// An output for sets whose name says no format.
    #[error("its name says no format; sets are written as .parquet, .arrow, .jsonl or .csv")]
    SetsName,
    /// A folder without data.
    #[error("the folder holds no data files")]
    EmptyFolder,
    /// A folder whose files cannot be shards of one data set.
    #[error("the folder holds files of several formats ({0}); name the files one by one")]
    MixedFolder(String),
    /// A row of another length than the first.
    #[error("has {found} logits where {wanted} were expected")]
    Ragged {
        /// Classes of the rows before.
        wanted: usize,
        /// Logits in this row.
        found: usize,
    },
    /// A row without the key that says its group.
    #[error("every row must say its group under `{0}`, and this one does not")]
    NoGroup(String),
    /// A group that the model does not know.
    #[error("the group `{0}` is none of those that calibrated")]
    UnknownGroup(String),
    /// A file of values per class that lacks one, or has one too many.
    #[error("{0}")]
    PerClass(String),
    /// A file of weights of labels where other values per class are wanted.
    #[error("these are weights of labels, as `weigh` writes them, which no other values per class can be")]
    LabelWeights,
    /// A key of a row that means nothing there.
    #[error("the key `{key}` means nothing here; known are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something.
        known: String,
    },
    /// Text where a number should be.
    #[error("`{0}` is not a number")]
    NotANumber(String),
    /// A number written with a comma.
    #[error("`{0}` is not a number; decimals are written with a point")]
    DecimalComma(String),
    /// A row without a label, where labels are read.
    #[error("has no label")]
    NoLabel,
    /// An empty cell where a value should be.
    #[error("has no value")]
    Null,
    /// A first line of numbers where names should be.
    #[error("the first line holds numbers; it must name the columns (one per class, and the label)")]
    NoHeader,
    /// NaN or +∞ among the logits.
    #[error("logit is {0}: wanted a finite number, or -inf for a class of probability zero")]
    NotALogit(f64),
    /// A row without a possible class.
    #[error("every logit is -inf: at least one class must be possible")]
    AllMasked,
    /// A true label that the mask declares impossible.
    #[error("the true label {0} has logit -inf, which `masked = never` declares impossible")]
    MaskedLabel(u32),
    /// The arithmetic refused, for a reason that lies in no one row.
    #[error("{0}")]
    Arithmetic(#[from] conformax::Error),
    /// Not a probability.
    #[error("probability must lie between 0 and 1, got {0}")]
    Probability(f64),
    /// Not the logarithm of a probability.
    #[error("log-probability must be at most 0, got {0}")]
    LogProbability(f64),
    /// An index that names no class.
    #[error("label {label} is outside 0..{classes}")]
    LabelOutside {
        /// The label found.
        label: i128,
        /// Number of classes.
        classes: usize,
    },
    /// A name that names no class.
    #[error("label `{0}` is not among the class names")]
    UnknownLabel(String),
    /// A name, and no names to look it up in.
    #[error("label `{0}` is a name, but the names of the classes are not known")]
    NamesWanted(String),
    /// An integer that could be an index, while there are classes whose names are integers.
    #[error(
        "label `{0}` may be an index or a name, since classes have integers for names; which must be said"
    )]
    IndexOrName(String),
    /// A name where indices were promised.
    #[error("label `{0}` is not an index")]
    NotAnIndex(String),
    /// A number with a fraction.
    #[error("label {0} is not a whole number")]
    FractionalLabel(f64),
    /// Logits and what comes beside them of different length.
    #[error("{found} {what} for {logits} rows of logits")]
    RowsDiffer {
        /// Rows of logits.
        logits: u64,
        /// What there is another number of: labels, or values of a column.
        what: String,
        /// How many there are of it.
        found: u64,
    },
    /// Files taken as one data set disagree on the number of classes.
    #[error("has {found} classes, {wanted} were expected")]
    ClassesDiffer {
        /// Classes expected.
        wanted: usize,
        /// Classes found.
        found: usize,
    },
    /// Files taken as one data set disagree on the type of the logits or of a kept column.
    #[error("{what} are {found}, those of the files before are {wanted}")]
    TypesDiffer {
        /// "logits" or the name of a column.
        what: String,
        /// The type of the first file.
        wanted: String,
        /// The type found.
        found: String,
    },
    /// Some of the files taken as one data set have labels and some have none.
    #[error("has no labels, the files before have")]
    LabelsDiffer,
    /// Two lists of class names disagree.
    #[error("class {class} is `{found}` here and `{wanted}` elsewhere")]
    NamesDiffer {
        /// First class at which they disagree.
        class: usize,
        /// The name expected.
        wanted: String,
        /// The name found.
        found: String,
    },
    /// A column or class that the expected names do not include.
    #[error("`{0}` is not among the expected classes")]
    UnknownClass(String),
    /// A line without a name among lines of names.
    #[error("line {0} is empty, and the name of a class is wanted")]
    NameEmpty(usize),
    /// Names of classes that are not a list of text.
    #[error("`class_names` must be a JSON array of text, got {0}")]
    ClassNames(String),
    /// One name for two classes.
    #[error("the class name `{0}` occurs twice")]
    NameTwice(String),
    /// Text that is not UTF-8.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// Text in UTF-16.
    #[error("is UTF-16 text, not UTF-8")]
    Utf16,
    /// A row that no memory should be set aside for.
    #[error("a row is longer than {0} bytes")]
    RowTooLong(usize),
    /// A record batch that does not fit into memory.
    #[error("a record batch needs {0} bytes of memory; write the file in smaller batches")]
    BatchTooLarge(u64),
    /// A calibration file that contradicts itself or that this version cannot read.
    #[error("not a calibration file that can be used: {0}")]
    Model(String),
    /// A calibration file that is sound, and was asked for what it cannot give.
    #[error("{0}")]
    Refused(String),
    /// A calibration file without what p-values and new levels follow from.
    #[error("it cannot be {0}: it was saved without scores")]
    NoScores(&'static str),
    /// A part of a calibration or evaluation that cannot be used.
    #[error("not a usable part: {0}")]
    Part(String),
}

/// The problem of a name that is not among those present.
pub(crate) fn missing<'a>(purpose: Purpose, wanted: &str, found: impl Iterator<Item = &'a str>) -> Problem {
    let mut found: Vec<_> = found.map(|name| format!("`{name}`")).collect();
    found.sort();
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Problem::Missing { purpose, wanted: wanted.to_owned(), found }
}

/// Text from a file as a terminal may show it: a control character could clear the screen, or write a line that looks
/// like the program's own, so each is written as its escape.
///
/// ```
/// assert_eq!(conformax_io::printable("cat\x1b[2J").to_string(), "cat\\u{1b}[2J");
/// ```
pub fn printable(text: &str) -> impl fmt::Display {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() || is_direction(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Characters that turn the direction of what follows, so that it is not read as it is stored.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Adds the path to an error that came without one.
pub(crate) trait InFile<T> {
    fn in_file(self, path: &Path) -> Result<T>;
}

impl<T, E: Into<Problem>> InFile<T> for std::result::Result<T, E> {
    fn in_file(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::new(path, error))
    }
}
