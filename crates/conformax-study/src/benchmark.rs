//! `Benchmark`: logits with their true labels, built in or from the user's files, checked on arrival.

use std::path::{Path, PathBuf};

use conformax::{DataFingerprint, Logits, score_labels};
use conformax_io::{Block, ClassNames, Data, Input, LabelUse, Source, SourceOptions, Values};

use crate::error::{Error, Result};
use crate::study::BenchmarkEntry;

/// A benchmark that ships with the project.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Name in files.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Fingerprint of its rows, by which they are known in any file.
    pub fingerprint: &'static str,
    arrays: Arrays,
}

#[derive(Clone, Copy, Debug)]
enum Arrays {
    /// Files inside the program: f32 logits of so many classes and u16 labels as `.npy`, a name per line.
    Embedded { classes: usize, logits: &'static [u8], labels: &'static [u8], names: &'static str },
    /// `.npy` files in the folder `benchmarks` of the source tree, too large to be inside the program.
    InSourceTree,
}

macro_rules! embedded {
    ($name:literal, $classes:literal) => {
        Arrays::Embedded {
            classes: $classes,
            logits: include_bytes!(concat!("../benchmarks/", $name, "-logits.npy")),
            labels: include_bytes!(concat!("../benchmarks/", $name, "-labels.npy")),
            names: include_str!(concat!("../benchmarks/", $name, "-names.txt")),
        }
    };
}

/// The benchmarks that ship.
pub const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        name: "cifar10",
        title: "CIFAR-10",
        fingerprint: "0c51bbc08d19fb4a",
        arrays: embedded!("cifar10", 10),
    },
    BuiltIn {
        name: "cifar100",
        title: "CIFAR-100",
        fingerprint: "02baa328c501e3f3",
        arrays: embedded!("cifar100", 100),
    },
    BuiltIn {
        name: "imagenet5k",
        title: "ImageNet-5k",
        fingerprint: "3bf36c211f02c9f3",
        arrays: Arrays::InSourceTree,
    },
    BuiltIn {
        name: "newsgroups",
        title: "20 Newsgroups",
        fingerprint: "fb9c501ec40eeb89",
        arrays: embedded!("newsgroups", 20),
    },
];

/// Where a benchmark's rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchmarkFiles {
    /// One file that holds logits and labels.
    Together(PathBuf),
    /// Two.
    Pair {
        /// Logits.
        logits: PathBuf,
        /// Labels.
        labels: PathBuf,
        /// Names of the classes, where a folder has them.
        names: Option<PathBuf>,
    },
}

impl BenchmarkFiles {
    /// A folder holds `NAME-logits.npy` and `NAME-labels.npy`, and `NAME-names.txt` where classes have names; anything
    /// else holds all.
    pub fn at(path: PathBuf, name: &str) -> Self {
        if path.is_dir() {
            let file = |what: &str| path.join(format!("{name}-{what}"));
            let names = Some(file("names.txt")).filter(|names| names.exists());
            Self::Pair { logits: file("logits.npy"), labels: file("labels.npy"), names }
        } else {
            Self::Together(path)
        }
    }

    fn data(&self) -> Data {
        match self {
            Self::Together(path) => Data::Files(vec![path.clone()]),
            Self::Pair { logits, labels, .. } => {
                Data::Pair { logits: logits.clone(), labels: Some(labels.clone()) }
            }
        }
    }

    fn exist(&self) -> bool {
        match self {
            Self::Together(path) => path.exists(),
            Self::Pair { logits, labels, .. } => logits.exists() && labels.exists(),
        }
    }

    fn names(&self) -> conformax_io::Result<Option<ClassNames>> {
        match self {
            Self::Pair { names: Some(names), .. } => ClassNames::read(names).map(Some),
            _ => Ok(None),
        }
    }
}

/// Logits and labels of a classifier on a test set.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// Name in files.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Number of classes.
    pub classes: usize,
    /// Type of the logits as they came: `f16`, `bf16`, `f32` or `f64`.
    pub dtype: String,
    /// Fingerprint of the rows, 16 hexadecimal digits, as calibration files have it.
    pub fingerprint: String,
    /// True labels.
    pub labels: Vec<u32>,
    /// Names of the classes, where they have any.
    pub names: Option<ClassNames>,
    /// Whether its numbers are taken for logits and look like probabilities.
    pub doubtful: bool,
    pub(crate) logits: Wide,
    /// Per row, whether the true label has the largest logit.
    pub(crate) correct: Vec<bool>,
}

/// Logits in a type that arithmetic reads without converting bit by bit; widening is exact.
#[derive(Clone, Debug)]
pub(crate) enum Wide {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// What became of a benchmark's name.
pub(crate) enum Found {
    Here(Box<Benchmark>),
    /// Too large to be built in, and not in any folder looked at.
    Absent,
}

impl Benchmark {
    /// Reads a study's benchmark whole, and checks every row. `folder` may hold files of built-in benchmarks.
    pub(crate) fn load(entry: &BenchmarkEntry, folder: Option<&Path>) -> Result<Found> {
        let fault = |message: String| match &entry.place {
            Some(place) => place.fault(message),
            None => Error::Benchmark { name: entry.name.clone(), message },
        };
        let read = |files: &BenchmarkFiles| {
            let read = files.names().and_then(|names| read_files(&files.data(), names, entry.input));
            let (logits, labels, names) = read.map_err(|error| fault(chain(&error)))?;
            let benchmark = Self::new(&entry.name, &entry.name, logits, labels);
            benchmark.map(|benchmark| benchmark.with_names(names)).map_err(|error| fault(chain(&error)))
        };
        let benchmark = match &entry.files {
            Some(files) => read(files)?,
            None => match (Self::built_in(&entry.name), in_folders(&entry.name, &likely_folders(folder))) {
                (Some(benchmark), _) => benchmark,
                (None, Some(files)) => read(&files)?,
                (None, None) => return Ok(Found::Absent),
            },
        };
        // A name alone makes no rows those of the benchmark that ships.
        let shipped = benchmark.shipped().map(|known| known.title.to_owned());
        let title = entry.title.clone().or(shipped).unwrap_or_else(|| entry.name.clone());
        Ok(Found::Here(Box::new(Self { title, ..benchmark })))
    }

    /// A benchmark that is inside the program; `None` for any other name.
    ///
    /// ```
    /// let benchmark = conformax_study::Benchmark::built_in("cifar10").unwrap();
    /// assert_eq!((benchmark.rows(), benchmark.classes), (10_000, 10));
    /// ```
    pub fn built_in(name: &str) -> Option<Self> {
        let known = BUILT_IN.iter().find(|known| known.name == name)?;
        let Arrays::Embedded { classes, logits, labels, names } = known.arrays else { return None };
        let (logits, labels) = embedded(classes, logits, labels);
        let names = ClassNames::new(names.lines().map(str::to_owned).collect()).ok();
        let benchmark =
            Self::new(known.name, known.title, logits, labels).expect("what is built in is sound");
        Some(benchmark.with_names(names))
    }

    /// The benchmark that ships and has this name and these rows.
    pub(crate) fn shipped(&self) -> Option<&'static BuiltIn> {
        BUILT_IN.iter().find(|known| known.name == self.name && known.fingerprint == self.fingerprint)
    }

    /// Reads a data set whole, and checks every row.
    pub fn read(name: &str, data: &Data) -> Result<Self> {
        let fault = |message: String| Error::Benchmark { name: name.to_owned(), message };
        let (logits, labels, names) =
            read_files(data, None, Input::default()).map_err(|error| fault(chain(&error)))?;
        let benchmark = Self::new(name, name, logits, labels).map_err(|error| fault(error.to_string()))?;
        Ok(benchmark.with_names(names))
    }

    /// A benchmark from arrays; every row is checked.
    pub fn new(name: &str, title: &str, logits: Block, labels: Vec<u32>) -> conformax::Result<Self> {
        let mut fingerprint = DataFingerprint::default();
        fingerprint.extend(&logits.row_fingerprints());
        let dtype = logits.logits.dtype().to_string();
        let (classes, doubtful) = (logits.classes, logits.doubtful);
        let wide = match logits.logits {
            Values::F16(values) => Wide::F32(values.into_iter().map(f32::from).collect()),
            Values::Bf16(values) => Wide::F32(values.into_iter().map(f32::from).collect()),
            Values::F32(values) => Wide::F32(values),
            Values::F64(values) => Wide::F64(values),
        };
        let correct = match &wide {
            Wide::F32(values) => correct(Logits::new(values, classes)?, &labels)?,
            Wide::F64(values) => correct(Logits::new(values, classes)?, &labels)?,
        };
        Ok(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            classes,
            dtype,
            fingerprint: fingerprint.to_string(),
            labels,
            names: None,
            doubtful,
            logits: wide,
            correct,
        })
    }

    /// The same with names for its classes.
    #[must_use]
    pub fn with_names(self, names: Option<ClassNames>) -> Self {
        Self { names, ..self }
    }

    /// What people call a class: its name, or its number where it has none.
    pub(crate) fn class_name(&self, class: u32) -> String {
        let name = self.names.as_ref().and_then(|names| names.name(class));
        name.map_or_else(|| class.to_string(), str::to_owned)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Share of rows whose true label has the largest logit, ties included.
    pub fn accuracy(&self) -> f64 {
        self.correct.iter().filter(|correct| **correct).count() as f64 / self.rows() as f64
    }

    /// The same among some rows.
    pub(crate) fn accuracy_on(&self, rows: &[u32]) -> f64 {
        let correct = rows.iter().filter(|row| self.correct[**row as usize]).count();
        correct as f64 / rows.len() as f64
    }
}

/// The log-margin of a label is zero exactly where nothing is ahead of it. The pass reads every row, and so
/// finds what is wrong with any.
fn correct<T: conformax::Logit>(logits: Logits<'_, T>, labels: &[u32]) -> conformax::Result<Vec<bool>> {
    let margin = conformax::EntmaxScore { gamma: conformax::Gamma::SOFTMAX };
    Ok(score_labels(&margin, logits.labelled(labels)?)?.into_iter().map(|margin| margin == 0.0).collect())
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn read_files(
    data: &Data,
    names: Option<ClassNames>,
    input: Input,
) -> conformax_io::Result<(Block, Vec<u32>, Option<ClassNames>)> {
    let options = SourceOptions { labels: LabelUse::Required, names, input, ..SourceOptions::default() };
    let mut source = Source::open(data, &options)?;
    let (mut whole, mut block) = (Block { doubtful: true, ..Block::default() }, Block::default());
    let mut labels = Vec::new();
    while source.read(&mut block)? {
        whole.doubtful &= block.doubtful;
        whole.logits.extend_rows(&block.logits, block.classes, 0..block.rows());
        labels.extend(block.labels.as_deref().unwrap_or_default());
    }
    whole.classes = source.classes();
    Ok((whole, labels, source.names().cloned()))
}

/// Bytes of the header of the arrays inside the program.
const HEADER: usize = 128;

fn embedded(classes: usize, logits: &[u8], labels: &[u8]) -> (Block, Vec<u32>) {
    let (logits, _) = logits[HEADER..].as_chunks::<4>();
    let (labels, _) = labels[HEADER..].as_chunks::<2>();
    let logits = Values::F32(logits.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
    let labels = labels.iter().map(|bytes| u32::from(u16::from_le_bytes(*bytes))).collect();
    (Block { classes, logits, ..Block::default() }, labels)
}

/// `folder`, then `benchmarks` of the working folder and of every folder above it, then that of the sources
/// this program was built from.
fn likely_folders(folder: Option<&Path>) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let roots = here.ancestors().chain(Path::new(env!("CARGO_MANIFEST_DIR")).ancestors());
    folder.map(Path::to_owned).into_iter().chain(roots.map(|root| root.join("benchmarks"))).collect()
}

fn in_folders(name: &str, folders: &[PathBuf]) -> Option<BenchmarkFiles> {
    let existing = folders.iter().filter(|folder| folder.is_dir());
    existing.map(|folder| BenchmarkFiles::at(folder.clone(), name)).find(BenchmarkFiles::exist)
}

/// What a benchmark that ships is called, whether or not it is there.
pub(crate) fn titled(name: &str) -> String {
    BUILT_IN.iter().find(|known| known.name == name).map_or(name, |known| known.title).to_owned()
}

/// What to do about a benchmark that is not there.
pub(crate) fn advice(name: &str) -> String {
    format!(
        "{name} is too large to be built in; it is in the folder benchmarks of the source tree: run there, or give \
         path = \"FOLDER\" under its name in the study"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_files_by_name_and_only_where_both_are() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [PathBuf::from("no such folder"), folder.path().to_owned()];
        assert_eq!(in_folders("imagenet5k", &folders), None);
        std::fs::write(folder.path().join("imagenet5k-logits.npy"), "").unwrap();
        assert_eq!(in_folders("imagenet5k", &folders), None);
        std::fs::write(folder.path().join("imagenet5k-labels.npy"), "").unwrap();
        assert!(in_folders("imagenet5k", &folders).is_some());
        assert!(advice("imagenet5k").contains("benchmarks of the source tree"));
    }

    #[test]
    fn embedded_arrays_have_the_header_that_is_skipped() {
        for built_in in BUILT_IN {
            let Arrays::Embedded { classes, logits, labels, names } = built_in.arrays else { continue };
            assert_eq!(names.lines().count(), classes, "{}", built_in.name);
            for (bytes, dtype) in [(logits, "<f4"), (labels, "<u2")] {
                let header = String::from_utf8_lossy(&bytes[10..HEADER]);
                assert!(header.ends_with('\n') && header.contains(dtype), "{header}");
                assert!(header.contains("'fortran_order': False"), "{header}");
            }
            assert_eq!((logits.len() - HEADER) / 4, classes * ((labels.len() - HEADER) / 2));
        }
    }
}
