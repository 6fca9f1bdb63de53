//! `Failure`: why the command did not end with 0, and how that is told.

use std::error::Error;
use std::path::{Path, PathBuf};

/// Any way not to finish.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It ran and the answer is no.
    No(String),
    /// The arguments do not make sense; help and version arrive this way too.
    Usage(clap::Error),
    /// Something went wrong; the chain of causes is printed.
    Error(Box<dyn Error + Send + Sync>),
    /// Someone pressed Ctrl-C.
    Interrupted,
    /// Whoever read standard output has had enough, as `head` does.
    OutputClosed,
}

impl Failure {
    pub(crate) fn error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Error(error.into())
    }

    /// A failure to do with one file.
    pub(crate) fn of_file(path: &Path, what: impl std::fmt::Display) -> Self {
        Self::error(format!("{}: {what}", shown_path(path)))
    }

    /// The same failure, where these files had been written before it: whoever cannot read the table has them.
    pub(crate) fn after_writing(self, paths: &[impl AsRef<Path>]) -> Self {
        let Self::Error(error) = self else { return self };
        match error.downcast::<NotPrinted>() {
            Ok(fault) => {
                let written = paths.iter().map(|path| path.as_ref().to_owned()).collect();
                Self::error(NotPrinted { written, ..*fault })
            }
            Err(error) => Self::Error(error),
        }
    }

    /// A fault in a row of a file.
    pub(crate) fn of_row(path: &Path, error: conformax::Error) -> Self {
        Self::error(RowFault { path: path.to_owned(), error })
    }
}

/// Standard output that takes no more, and what was written before that nevertheless.
#[derive(Debug)]
struct NotPrinted {
    error: std::io::Error,
    written: Vec<PathBuf>,
}

impl std::fmt::Display for NotPrinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "writing to standard output: {}", self.error)?;
        let names: Vec<String> = self.written.iter().map(|path| shown_path(path).to_string()).collect();
        match self.written.len() {
            0 => Ok(()),
            1 => write!(f, "; {} was written", names[0]),
            _ => write!(f, "; {} were written", names.join(", ")),
        }
    }
}

impl Error for NotPrinted {}

/// A fault in a row of a file; the message says which row.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", shown_path(path))]
struct RowFault {
    path: PathBuf,
    error: conformax::Error,
}

/// `-` is how standard input is typed, not how it is called.
fn shown_path(path: &Path) -> impl std::fmt::Display {
    let name = if path.as_os_str() == "-" { "standard input".into() } else { path.to_string_lossy() };
    conformax_io::printable(&name).to_string()
}

impl From<std::io::Error> for Failure {
    /// The command itself writes to standard output and standard error only; files have errors of their own.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::error(NotPrinted { error, written: Vec::new() }),
        }
    }
}

impl From<conformax::Error> for Failure {
    fn from(error: conformax::Error) -> Self {
        Self::error(error)
    }
}

impl From<conformax_io::Error> for Failure {
    fn from(error: conformax_io::Error) -> Self {
        Self::error(error)
    }
}

impl From<conformax_study::Error> for Failure {
    fn from(error: conformax_study::Error) -> Self {
        match error {
            conformax_study::Error::Stopped => Self::Interrupted,
            error => Self::error(error),
        }
    }
}

#[cfg(feature = "train")]
impl From<conformax_train::Error> for Failure {
    fn from(error: conformax_train::Error) -> Self {
        match error {
            conformax_train::Error::Unfinished { .. } => Self::Interrupted,
            error => Self::error(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        std::io::Error::from(error).into()
    }
}

/// What to do next, where the message alone does not say, in the flags that the subcommand has.
pub(crate) fn hint(error: &(dyn Error + 'static), has_flag: impl Fn(&str) -> bool) -> Option<String> {
    in_flags(any_hint(error)?, has_flag)
}

/// A hint without what it says of other flags: advice is separated by semicolons, alternatives by commas and "or".
fn in_flags(hint: &str, has_flag: impl Fn(&str) -> bool) -> Option<String> {
    let named = |text: &str| {
        let words =
            text.split(|c: char| c.is_whitespace() || c == '`').filter_map(|word| word.strip_prefix("--"));
        words.map(|word| word.trim_end_matches([',', ';']).to_owned()).collect::<Vec<_>>()
    };
    let known = |text: &str| named(text).iter().all(|flag| has_flag(flag));
    if known(hint) {
        return Some(hint.to_owned());
    }
    let mut kept = Vec::new();
    for advice in hint.split("; ") {
        let alternatives = advice.split(", ").map(|one| one.strip_prefix("or ").unwrap_or(one));
        let left: Vec<&str> = alternatives.filter(|one| known(one)).collect();
        match left.split_last() {
            None => {}
            Some((last, [])) => kept.push((*last).to_owned()),
            Some((last, others)) => kept.push(format!("{}, or {last}", others.join(", "))),
        }
    }
    (!kept.is_empty()).then(|| kept.join("; "))
}

fn any_hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    use conformax_io::{Problem, Purpose};
    let core = error.downcast_ref::<RowFault>().map(|fault| &fault.error);
    if let Some(error) = core.or_else(|| error.downcast_ref::<conformax::Error>()) {
        return hint_of_core(error);
    }
    #[cfg(feature = "serve")]
    if let Some(error) = error.downcast_ref::<conformax_serve::Error>() {
        return crate::serve::hint(error);
    }
    match error.downcast_ref::<conformax_io::Error>()?.problem() {
        Problem::Io(error) => hint_of_system(error.kind()),
        Problem::Changed => Some("run again when nothing else writes to it"),
        Problem::Damaged { .. } | Problem::Truncated { .. } => Some("write or copy the file again"),
        Problem::Exists => Some("give another name, or --force to replace it"),
        Problem::NoFolder => Some("make the folder first, or write elsewhere"),
        Problem::NotToPipe(_) => Some("name a file"),
        Problem::Compressed(_) => Some("unpack the file first, or write it with another compression"),
        Problem::LabelsFormat(_) => Some("give a table of logits and labels as DATA, without --labels"),
        Problem::NoLabels => Some("name them with --label-column NAME, or --logits FILE --labels FILE"),
        Problem::TwoLabelColumns => Some("name the right one with --label-column"),
        Problem::Missing { purpose: Purpose::Logits, .. } => Some("name the right one with --logits-column"),
        Problem::Missing { purpose: Purpose::Labels, .. } => Some("name the right one with --label-column"),
        Problem::RowNumbers | Problem::UnknownClass(_) => Some(COLUMNS),
        Problem::UnnamedColumn(_) => Some("leave it out with --drop '', or list the classes with --classes"),
        Problem::NoLabel => Some("leave out rows without a label, or label them"),
        Problem::NoLogitsColumn(_) => Some("leave out --logits-column; --classes lists columns of classes"),
        Problem::NoClassColumns => Some("leave out --classes; --logits-column names the column of logits"),
        Problem::NotANumber(_) if error.downcast_ref::<conformax_io::Error>().is_some_and(in_column) => {
            Some(COLUMNS)
        }
        Problem::ColumnTwice(_) => Some("give the columns names of their own, or leave them out with --drop"),
        Problem::NamesWanted(_) => Some("give them with --names FILE"),
        Problem::IndexOrName(_) => Some("say so with --labels-are indices or --labels-are names"),
        Problem::LogitsAlone | Problem::TextInSafetensors(_) => Some("name the output .npz or .parquet"),
        Problem::LabelWeights => Some("give them with --label-weights"),
        Problem::NoScores(_) => Some("calibrate again, and keep the scores"),
        Problem::NoRows => Some("every data file needs at least one row"),
        Problem::Probability(_) | Problem::LogProbability(_) => Some(
            "say with --input what the numbers are; a model takes numbers of the kind that calibrated it",
        ),
        Problem::LabelOutside { .. } => {
            Some("labels count from 0 in the order of the logits; name the right ones with --label-column")
        }
        Problem::ClassesDiffer { .. } => {
            Some("a model fits data with the same classes in the same order; calibrate again for other data")
        }
        Problem::NamesDiffer { .. } => Some(
            "a model fits data with the same classes in the same order; --classes lists columns in another order; \
             calibrate again for other data",
        ),
        Problem::RowsDiffer { .. } => {
            Some("logits and what comes beside them must be of the same rows, in the same order")
        }
        _ => None,
    }
}

/// How a column is said not to be a class.
const COLUMNS: &str =
    "leave the column out with --drop, carry it over with --keep, or list the classes with --classes";

fn in_column(error: &conformax_io::Error) -> bool {
    matches!(error.place().column, Some(conformax_io::Column::Named(_)))
}

fn hint_of_system(kind: std::io::ErrorKind) -> Option<&'static str> {
    use std::io::ErrorKind;
    match kind {
        ErrorKind::NotFound => Some("check the name"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("make room or write elsewhere; no half-written file was left")
        }
        ErrorKind::FileTooLarge => Some("raise the limit on file sizes (ulimit -f) or write elsewhere"),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            Some("choose a file or folder that you may read or write")
        }
        _ => None,
    }
}

fn hint_of_core(error: &conformax::Error) -> Option<&'static str> {
    use conformax::Error;
    match error {
        Error::Logit { .. } | Error::AllMasked { .. } => {
            Some("find out what made the model produce it; `conformax inspect` counts such values")
        }
        Error::MaskedLabel { .. } => Some("correct the mask or the label, or leave out `--masked never`"),
        Error::Fraction(_) | Error::Fractions(_) => {
            Some("write fractions as decimals that sum to 1, as in --fractions 0.4,0.6")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_no_flag_that_is_not_there() {
        let with = |hint: &str, flags: &[&str]| in_flags(hint, |flag| flags.contains(&flag));
        let three = "leave it out with --drop, carry it over with --keep, or list the classes with --classes";
        assert_eq!(with(three, &["drop", "keep", "classes"]).as_deref(), Some(three));
        assert_eq!(with(three, &["drop"]).as_deref(), Some("leave it out with --drop"));
        let two = "leave it out with --drop, or carry it over with --keep";
        assert_eq!(with(three, &["drop", "keep"]).as_deref(), Some(two));
        assert_eq!(with(three, &[]), None);
        let advice = "labels count from 0; name the right ones with --label-column";
        assert_eq!(with(advice, &[]).as_deref(), Some("labels count from 0"));
        assert_eq!(with("correct it, or leave out `--masked never`", &[]).as_deref(), Some("correct it"));
    }
}
