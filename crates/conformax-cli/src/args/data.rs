//! Where rows come from: files, folders of shards, a pair of arrays, or standard input.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use conformax_io::{
    ClassNames, Data, Error, Input, LabelUse, LabelsAre, Problem, Source, SourceOptions, printable,
};

use crate::failure::Failure;
use crate::interrupt;

/// Data and how to read it.
#[derive(Args, Clone, Debug)]
pub(crate) struct DataArgs {
    /// .npz, .npy, Parquet, Arrow, CSV, safetensors or JSON Lines; several files or a folder are taken as one,
    /// `-` is standard input.
    #[arg(value_name = "DATA", conflicts_with = "logits")]
    #[arg(required_unless_present_any = ["logits", "labels"])]
    pub(crate) data: Vec<PathBuf>,
    /// Logits in a file of their own, of shape (rows, classes).
    #[arg(long, value_name = "FILE", help_heading = "Data options")]
    pub(crate) logits: Option<PathBuf>,
    /// Labels to go with --logits, of shape (rows,): integers or names.
    #[arg(long, value_name = "FILE", help_heading = "Data options")]
    pub(crate) labels: Option<PathBuf>,
    /// Name of the array or column of logits [default: logits].
    #[arg(long, value_name = "NAME", help_heading = "Data options")]
    pub(crate) logits_column: Option<String>,
    /// Name of the array or column of labels [default: labels or label].
    #[arg(long, value_name = "NAME", help_heading = "Data options")]
    pub(crate) label_column: Option<String>,
    /// Columns of the classes, in their order, where each class has one; other columns are then none.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data options")]
    pub(crate) classes: Vec<String>,
    /// Columns that are no classes and are left alone.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data options")]
    pub(crate) drop: Vec<String>,
    /// Columns that are no classes and are carried over to the output, where there is one.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', help_heading = "Data options")]
    pub(crate) keep: Vec<String>,
    /// What integers among the labels are, where classes have integers for names.
    #[arg(long, value_name = "KIND", help_heading = "Data options")]
    pub(crate) labels_are: Option<LabelKind>,
    /// What the numbers are; probabilities become logarithms, zeros minus infinity.
    /// [default: logits, or what the model was calibrated on]
    #[arg(long, value_name = "KIND", help_heading = "Data options")]
    pub(crate) input: Option<InputKind>,
    /// Names of the classes in the order of the logits: one per line, or a JSON array.
    #[arg(long, value_name = "FILE", help_heading = "Data options")]
    pub(crate) names: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LabelKind {
    Indices,
    Names,
}

impl From<LabelKind> for LabelsAre {
    fn from(kind: LabelKind) -> Self {
        match kind {
            LabelKind::Indices => Self::Indices,
            LabelKind::Names => Self::Names,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum InputKind {
    Logits,
    Probabilities,
    LogProbabilities,
}

impl From<InputKind> for Input {
    fn from(kind: InputKind) -> Self {
        match kind {
            InputKind::Logits => Self::Logits,
            InputKind::Probabilities => Self::Probabilities,
            InputKind::LogProbabilities => Self::LogProbabilities,
        }
    }
}

impl DataArgs {
    /// Opens the data as given.
    pub(crate) fn open(&self, labels: LabelUse) -> Result<Source, Failure> {
        self.open_with(labels, |_| {})
    }

    /// The same with more options.
    pub(crate) fn open_with(
        &self,
        labels: LabelUse,
        adjust: impl FnOnce(&mut SourceOptions),
    ) -> Result<Source, Failure> {
        let mut options = self.options(labels, self.read_names()?);
        adjust(&mut options);
        let (data, names) = (self.data()?, options.names.clone());
        let opened = interrupt::opening(move || Source::open(&data, &options))?;
        opened.map_err(|error| self.of_names(error, names.as_ref()))
    }

    /// The error of a file of names, where there are not as many as there are classes.
    fn of_names(&self, error: Error, given: Option<&ClassNames>) -> Failure {
        match (error.problem(), &self.names, given) {
            (Problem::ClassesDiffer { wanted, found }, Some(path), Some(names))
                if names.as_slice().len() == *wanted =>
            {
                let data = self.describe();
                Failure::of_file(path, format_args!("names {wanted} classes, and {data} has {found}"))
            }
            _ => error.into(),
        }
    }

    /// Whether it says nothing of how to read what it names.
    pub(crate) fn is_plain(&self) -> bool {
        let Self { data: _, logits, labels, logits_column, label_column, .. } = self;
        let Self { classes, drop, keep, labels_are, input, names, .. } = self;
        logits.is_none()
            && labels.is_none()
            && [logits_column, label_column].iter().all(|name| name.is_none())
            && [classes, drop, keep].iter().all(|columns| columns.is_empty())
            && labels_are.is_none()
            && input.is_none()
            && names.is_none()
    }

    /// Whether no rows are named.
    pub(crate) fn is_nothing(&self) -> bool {
        self.data.is_empty() && self.logits.is_none() && self.labels.is_none()
    }

    /// The names of `--names`.
    pub(crate) fn read_names(&self) -> Result<Option<ClassNames>, Failure> {
        Ok(self.names.as_deref().map(ClassNames::read).transpose()?)
    }

    pub(crate) fn data(&self) -> Result<Data, Failure> {
        match (&self.logits, &self.labels) {
            (Some(logits), labels) => Ok(Data::Pair { logits: logits.clone(), labels: labels.clone() }),
            (None, None) => Ok(Data::Files(self.data.clone())),
            (None, Some(labels)) => Err(Failure::of_file(
                labels,
                "--labels goes with --logits: name the file of the logits with --logits too, in place of DATA",
            )),
        }
    }

    /// The file's own name, without the folders it is in: a page may be passed on.
    pub(crate) fn title(&self) -> String {
        let path = self.logits.as_deref().or(self.data.first().map(PathBuf::as_path));
        match path.and_then(Path::file_name) {
            Some(name) if name != "-" => name.to_string_lossy().into_owned(),
            _ => "data".to_owned(),
        }
    }

    pub(crate) fn options(&self, labels: LabelUse, names: Option<ClassNames>) -> SourceOptions {
        SourceOptions {
            logits_column: self.logits_column.clone(),
            label_column: self.label_column.clone(),
            labels_are: self.labels_are.map(Into::into),
            classes: (!self.classes.is_empty()).then(|| self.classes.clone()),
            drop: self.drop.clone(),
            keep: self.keep.clone(),
            input: self.input(),
            names,
            labels,
            threads: rayon::current_num_threads(),
            ..SourceOptions::default()
        }
    }

    /// What the numbers are said to be.
    pub(crate) fn input(&self) -> Input {
        self.input.map_or(Input::Logits, Input::from)
    }

    /// What was typed, for a split of the same data: paths, then flags. Standard input cannot be read again, and
    /// numbers stay what they are unless `--input` says what to make of them.
    pub(crate) fn words(&self) -> String {
        let path = |path: &PathBuf| match path.to_str() {
            Some("-") => "DATA".to_owned(),
            _ => quoted(&path.to_string_lossy()),
        };
        let mut words: Vec<String> = self.data.iter().map(path).collect();
        let mut flag =
            |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name} {value}")));
        let list = |columns: &[String]| (!columns.is_empty()).then(|| quoted(&columns.join(",")));
        let column = |column: &Option<String>| column.as_deref().map(quoted);
        flag("--logits", self.logits.as_ref().map(path));
        flag("--labels", self.labels.as_ref().map(path));
        flag("--logits-column", column(&self.logits_column));
        flag("--label-column", column(&self.label_column));
        flag("--classes", list(&self.classes));
        flag("--drop", list(&self.drop));
        flag("--keep", list(&self.keep));
        flag("--labels-are", self.labels_are.map(typed));
        flag("--names", self.names.as_ref().map(path));
        words.join(" ")
    }

    /// The name of the file of the logits, without folder and ending.
    pub(crate) fn stem(&self) -> String {
        let stem = self.data.iter().chain(&self.logits).find_map(|path| path.file_stem());
        match stem.map(|stem| stem.to_string_lossy()) {
            Some(stem) if stem != "-" => stem.into_owned(),
            _ => "data".to_owned(),
        }
    }

    /// The flags that the parts of such a split need: their columns have the usual names, and their labels are indices.
    pub(crate) fn words_of_parts(&self) -> String {
        let input = self.input.map(|input| format!(" --input {}", typed(input)));
        let labels = self.labels_are.map(|_| " --labels-are indices".to_owned());
        input.into_iter().chain(labels).collect()
    }

    /// Every file that is named.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.data.iter().chain(&self.logits).chain(&self.labels).chain(&self.names).cloned().collect()
    }

    /// The data as a person would call it.
    pub(crate) fn describe(&self) -> String {
        let paths: &[PathBuf] = self.logits.as_ref().map_or(&self.data, std::slice::from_ref);
        let shown = |path: &PathBuf| printable(&path.to_string_lossy()).to_string();
        match paths {
            [only] if only.as_os_str() == "-" => "standard input".to_owned(),
            [only] => shown(only),
            [first, rest @ ..] => format!("{} and {} more", shown(first), rest.len()),
            [] => "nothing".to_owned(),
        }
    }
}

/// The word that stands for a choice.
fn typed(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

/// A word as a shell takes it for one; what no terminal should be sent is written as `$'…'` has it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=:,./@%".contains(c);
    match () {
        () if !word.is_empty() && word.chars().all(plain) => word.to_owned(),
        () if printable(word).to_string() == word => format!("'{}'", word.replace('\'', r"'\''")),
        () => format!("$'{}'", word.bytes().map(escaped).collect::<String>()),
    }
}

/// A byte between `$'` and `'`. Three octal digits end there, whatever follows.
fn escaped(byte: u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_divide_them() {
        assert_eq!(quoted("data/a-1.npz"), "data/a-1.npz");
        assert_eq!(quoted("my data.csv"), "'my data.csv'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("größe"), "'größe'");
    }

    #[test]
    fn words_are_escaped_where_a_terminal_would_act_on_them() {
        assert_eq!(quoted("it's\u{1b}[2J\\7.csv"), r"$'it\'s\033[2J\\7.csv'");
        assert_eq!(quoted("\u{202e}"), r"$'\342\200\256'");
    }
}
