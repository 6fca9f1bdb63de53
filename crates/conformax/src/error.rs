//! `Error`: every way a call can fail, with the place and the value that made it fail.

use std::fmt;

use crate::Alpha;

/// `std::result::Result` with this crate's [`Error`].
///
/// ```
/// fn level() -> conformax::Result<conformax::Alpha> {
///     conformax::Alpha::new(0.1)
/// }
/// assert!(level().is_ok());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// What was wanted, what came, and where.
///
/// ```
/// use conformax::{Alpha, Error};
/// let error = Alpha::new(1.5).unwrap_err();
/// assert_eq!(error, Error::Alpha(1.5));
/// assert_eq!(error.to_string(), "alpha must lie strictly between 0 and 1, got 1.5");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A miscoverage level outside (0, 1).
    Alpha(f64),
    /// A confidence outside (0, 1).
    Confidence(f64),
    /// Text that is not a decimal number of at most 18 significant digits.
    Decimal(String),
    /// An entmax index outside 1..=16.
    Gamma(f64),
    /// A score's parameter outside its range.
    Parameter {
        /// The parameter's name, as it is spelled everywhere.
        name: &'static str,
        /// What a valid value is.
        wanted: &'static str,
        /// The value that came.
        got: f64,
    },
    /// A parameter that the score does not take, or that contradicts its name.
    ForeignParameter {
        /// The score's name.
        score: &'static str,
        /// The parameter's name.
        name: &'static str,
        /// The value that came.
        got: String,
        /// The value that goes with the name; `None` where the score has no such parameter.
        has: Option<String>,
    },
    /// A name that no score has.
    UnknownScore(String),
    /// Zero classes, or more than a `u32` can number.
    Classes(usize),
    /// A buffer whose length is not a whole number of rows.
    Shape {
        /// Elements in the buffer.
        len: usize,
        /// Classes a row should have.
        classes: usize,
    },
    /// An array whose rows do not lie one after another in memory.
    Layout,
    /// Two arrays that should have one entry per row and do not agree.
    Rows {
        /// What the second array holds.
        what: &'static str,
        /// Rows of logits.
        wanted: usize,
        /// Entries of the second array.
        got: usize,
    },
    /// A row of a group that the calibration rows do not have.
    Group {
        /// The row.
        row: u64,
        /// Its group.
        group: u32,
        /// Groups there are.
        groups: usize,
    },
    /// Clusters of another number of classes.
    Clusters {
        /// Classes.
        wanted: usize,
        /// Entries of the list of clusters.
        got: usize,
    },
    /// A cluster without a class.
    EmptyCluster(u32),
    /// A list that should have an entry for each class.
    PerLabel {
        /// What it holds.
        what: &'static str,
        /// Entries it should have.
        wanted: usize,
        /// Entries it has.
        got: usize,
    },
    /// A value of a class outside its range.
    LabelValue {
        /// What the value is.
        what: &'static str,
        /// What a valid value is.
        wanted: &'static str,
        /// The class.
        label: u32,
        /// The value that came.
        value: f64,
    },
    /// A weight of a row that is negative or no finite number.
    Weight {
        /// The row.
        row: u64,
        /// Its weight.
        value: f64,
    },
    /// Weights of which none is positive.
    NoWeight,
    /// Rows that are too few of each class, or classes, to find clusters.
    FewForClusters {
        /// The level.
        alpha: Alpha,
        /// Classes there are.
        classes: usize,
        /// Rows of the rarest.
        rarest: u64,
    },
    /// Losses of which none is positive.
    NoLoss {
        /// What the losses are.
        what: &'static str,
    },
    /// A confusion matrix that cannot be inverted.
    Singular,
    /// Something that does not go with the way thresholds are found.
    NotWith {
        /// What was asked for.
        what: &'static str,
        /// What it does not go with.
        with: &'static str,
    },
    /// Rows that come without something that is needed for each of them.
    Missing {
        /// What each row should have come with.
        what: &'static str,
    },
    /// Two accumulators that do not belong together.
    Unlike {
        /// What differs.
        what: &'static str,
    },
    /// Bytes that are not what they should be.
    Bytes {
        /// What they should be.
        wanted: &'static str,
        /// What is wrong with them.
        what: &'static str,
    },
    /// Prediction sets that cannot be.
    Sets {
        /// What is wrong with them.
        what: &'static str,
    },
    /// Two collections of rows with different numbers of classes.
    ClassCount {
        /// Classes of the first.
        wanted: usize,
        /// Classes of the second.
        got: usize,
    },
    /// A NaN or +∞ logit.
    Logit {
        /// Row of the offending logit.
        row: u64,
        /// Class of the offending logit.
        class: usize,
        /// NaN or +∞.
        value: f64,
    },
    /// A row in which every class has probability zero.
    AllMasked {
        /// The row of −∞ alone.
        row: u64,
    },
    /// A label that is not a class.
    Label {
        /// Row of the offending label.
        row: u64,
        /// The label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// Under [`Masked::Never`](crate::Masked::Never), a calibration row whose true label has logit −∞.
    MaskedLabel {
        /// Row of the masked true label.
        row: u64,
        /// The label.
        label: u32,
    },
    /// A uniform draw outside [0, 1).
    Draw {
        /// Row of the offending draw.
        row: u64,
        /// The draw.
        value: f64,
    },
    /// Calibration without a single row.
    NoCalibrationRows,
    /// Evaluation without a single row.
    NoTestRows,
    /// A calibration score that is NaN.
    ScoreIsNan {
        /// Index of the score.
        row: u64,
    },
    /// Tuning without a single candidate.
    NoCandidates,
    /// Tuning without a single row to tune on.
    NoTuningRows,
    /// A fraction outside (0, 1).
    Fraction(f64),
    /// Fractions that do not sum to one.
    Fractions(f64),
    /// Strata that are not contiguous ranges starting at zero.
    Strata {
        /// First size of the offending stratum.
        from: u64,
    },
    /// A probability outside (0, 1).
    Probability(f64),
    /// A precision outside (0, 1).
    Precision(f64),
    /// A rank outside 1..=n.
    Rank {
        /// The rank.
        rank: u64,
        /// Number of calibration rows.
        n: u64,
    },
}

impl Error {
    /// The same error with its row counted from `first_row`, for callers that work through a file block by block.
    #[must_use]
    pub fn offset_rows(self, first_row: u64) -> Self {
        match self.row() {
            Some(row) => self.at_row(row + first_row),
            None => self,
        }
    }

    /// The same fault in another row, where it is of a row.
    #[must_use]
    pub fn at_row(mut self, place: u64) -> Self {
        match &mut self {
            Self::Logit { row, .. }
            | Self::AllMasked { row }
            | Self::Label { row, .. }
            | Self::MaskedLabel { row, .. }
            | Self::Group { row, .. }
            | Self::Weight { row, .. }
            | Self::Draw { row, .. }
            | Self::ScoreIsNan { row } => *row = place,
            _ => {}
        }
        self
    }

    /// The row at fault, where one is.
    pub fn row(&self) -> Option<u64> {
        match self {
            Self::Logit { row, .. }
            | Self::AllMasked { row }
            | Self::Label { row, .. }
            | Self::MaskedLabel { row, .. }
            | Self::Group { row, .. }
            | Self::Weight { row, .. }
            | Self::Draw { row, .. }
            | Self::ScoreIsNan { row } => Some(*row),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alpha(value) => write!(f, "alpha must lie strictly between 0 and 1, got {value}"),
            Self::Confidence(value) => write!(f, "confidence must lie strictly between 0 and 1, got {value}"),
            Self::Decimal(text) => {
                write!(f, "wanted a decimal number of at most 18 significant digits, got {text:?}")
            }
            Self::Gamma(value) => write!(f, "gamma must lie between 1 and 16, got {value}"),
            Self::Parameter { name, wanted, got } => write!(f, "{name} must be {wanted}, got {got}"),
            Self::ForeignParameter { score, name, got, has: Some(has) } => {
                write!(f, "the score {score} has {name} = {has}, got {got}")
            }
            Self::ForeignParameter { score, name, got, has: None } => {
                write!(f, "the score {score} takes no {name}, got {got}")
            }
            Self::UnknownScore(name) => {
                write!(f, "no score is called {name:?}; there are {}", crate::ScoreSpec::names().join(", "))
            }
            Self::Classes(classes) => {
                write!(f, "the number of classes must lie between 1 and {}, got {classes}", u32::MAX)
            }
            Self::Shape { len, classes } => {
                write!(f, "{len} logits are not a whole number of rows of {classes} classes")
            }
            Self::Layout => write!(
                f,
                "the rows of the array must lie one after another in memory (standard layout), and these do not"
            ),
            Self::Rows { what, wanted, got } => {
                write!(f, "there are {wanted} rows of logits but {got} {what}")
            }
            Self::Group { row, group, groups } => {
                write!(f, "row {row} is of group {group}, but calibration rows are of groups 0..{groups}")
            }
            Self::Clusters { wanted, got } => {
                write!(f, "every one of {wanted} classes must have a cluster, got {got} clusters")
            }
            Self::EmptyCluster(cluster) => {
                write!(f, "clusters are numbered from 0 without gaps, but no class is in cluster {cluster}")
            }
            Self::PerLabel { what, wanted, got } => write!(f, "wanted {wanted} {what}, got {got}"),
            Self::LabelValue { what, wanted, label, value } => {
                write!(f, "the {what} of class {label} must be {wanted}, got {value}")
            }
            Self::Weight { row, value } => {
                write!(f, "the weight of row {row} must be a finite number of at least 0, got {value}")
            }
            Self::NoWeight => write!(f, "at least one weight must be positive, and all are 0"),
            Self::FewForClusters { alpha, classes, rarest } => write!(
                f,
                "too few rows of each class, or classes, to find clusters at alpha = {alpha}: of {classes} classes the \
                 rarest has {rarest} {}; calibrate on more, or give clusters of your own",
                if *rarest == 1 { "row" } else { "rows" }
            ),
            Self::NoLoss { what } => write!(f, "at least one {what} must be positive, and all are 0"),
            Self::Singular => write!(
                f,
                "the confusion matrix cannot be inverted: some label is never predicted; use the method em, or more rows"
            ),
            Self::NotWith { what, with } => write!(f, "{what} cannot be had with {with}"),
            Self::Missing { what } => write!(f, "rows must come with {what} here, and these do not"),
            Self::Unlike { what } => write!(f, "these do not belong together: their {what} differ"),
            Self::Bytes { wanted, what } => write!(f, "these bytes are not {wanted}: {what}"),
            Self::Sets { what } => write!(f, "prediction sets must have {what}"),
            Self::ClassCount { wanted, got } => write!(f, "wanted {wanted} classes, got {got}"),
            Self::Logit { row, class, value } => write!(
                f,
                "logit at row {row}, class {class} is {value}: wanted a finite number, or -inf for a class of probability zero"
            ),
            Self::AllMasked { row } => {
                write!(f, "every logit of row {row} is -inf: at least one class must be possible")
            }
            Self::Label { row, label, classes } => write!(
                f,
                "label at row {row} is {label}, but with {classes} classes labels lie in 0..{classes}"
            ),
            Self::MaskedLabel { row, label } => write!(
                f,
                "the true label {label} of row {row} has logit -inf, which `masked = never` declares impossible"
            ),
            Self::Draw { row, value } => {
                write!(f, "the uniform draw of row {row} must lie in [0, 1), got {value}")
            }
            Self::NoCalibrationRows => write!(f, "calibration needs at least one row, got none"),
            Self::NoTestRows => write!(f, "metrics need at least one row, got none"),
            Self::ScoreIsNan { row } => write!(f, "the calibration score of row {row} is NaN"),
            Self::NoCandidates => write!(f, "tuning needs at least one candidate, got none"),
            Self::NoTuningRows => write!(f, "tuning needs at least one row to tune on, got none"),
            Self::Fraction(value) => write!(f, "a fraction must lie strictly between 0 and 1, got {value}"),
            Self::Fractions(sum) => write!(f, "fractions must sum to 1, these sum to {sum}"),
            Self::Strata { from } => write!(
                f,
                "strata must be contiguous and start at 0: the one from {from} does not follow the one before it"
            ),
            Self::Probability(value) => {
                write!(f, "a probability must lie strictly between 0 and 1, got {value}")
            }
            Self::Precision(value) => {
                write!(f, "precision must lie strictly between 0 and 1, got {value}")
            }
            Self::Rank { rank, n } => write!(f, "a rank among {n} rows must lie in 1..={n}, got {rank}"),
        }
    }
}

impl std::error::Error for Error {}
