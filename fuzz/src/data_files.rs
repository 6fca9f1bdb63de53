//! Files of logits, read in every way the command reads them.
//!
//! Bytes that are no such file must be refused; those that are one must give the same rows whatever the block size, the
//! file's name and the number of the pass, and rows that the arithmetic can take or refuse.

use std::path::Path;

use conformax::{DataFingerprint, EntmaxScore, Logit, Logits, Predictor, Thresholds};
use conformax_io::{Block, ClassNames, Data, Input, LabelUse, LabelsAre, Source, SourceOptions, Values};

/// The largest input that fits into a pipe before anybody reads from it.
const PIPE: usize = 1 << 16;

/// Reads `bytes` as a file of this extension.
pub fn read(extension: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("z").with_extension(extension);
    std::fs::write(&path, bytes).expect("a file in it");
    let files = Data::Files(vec![path.clone()]);
    let small = read_all(&files, &SourceOptions { block_bytes: 64, ..SourceOptions::default() });
    let whole = read_all(&files, &SourceOptions::default());
    assert_eq!(small, whole, "the size of the blocks makes a difference");
    for options in [everything(), logarithms(), roles()] {
        let _ = read_all(&files, &options);
    }
    read_shards(folder.path(), &path, whole.as_ref());
    let bare = folder.path().join("z");
    std::fs::rename(&path, &bare).expect("another name in the same folder");
    let _ = read_all(&Data::Files(vec![bare]), &SourceOptions::default());
    if bytes.len() <= PIPE {
        read_piped(bytes);
    }
}

/// Reads the file after a copy of itself, and after another: the parts of one data set must fit together.
fn read_shards(folder: &Path, path: &Path, alone: Option<&Contents>) {
    let copy = folder.join("copy").with_extension(path.extension().unwrap_or_default());
    std::fs::copy(path, &copy).expect("a file in it");
    let twice = Data::Files(vec![path.to_owned(), copy]);
    let rows = read_all(&twice, &SourceOptions::default()).map(|contents| contents.rows);
    assert_eq!(rows, alone.map(|contents| 2 * contents.rows), "a file read twice has not twice its rows");
    let other = folder.join("other.csv");
    std::fs::write(&other, "cat,dog,label\n1,2,dog\n").expect("a file in it");
    let _ = read_all(&Data::Files(vec![other, path.to_owned()]), &SourceOptions::default());
}

/// Reads `bytes` as the `.npy` of labels that belongs to three rows of logits.
pub fn read_labels(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (logits, labels) = (folder.path().join("logits.csv"), folder.path().join("labels.npy"));
    std::fs::write(&logits, "cat,dog\n1,2\n3,4\n5,6\n").expect("a file in it");
    std::fs::write(&labels, bytes).expect("a file in it");
    let _ = read_all(&Data::Pair { logits, labels: Some(labels) }, &SourceOptions::default());
}

/// Reads `bytes` as a list of class names.
pub fn read_class_names(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("names");
    std::fs::write(&path, bytes).expect("a file in it");
    if let Ok(names) = ClassNames::read(&path) {
        let classes = names.as_slice().iter().map(|name| names.class(name));
        assert!(classes.eq((0..names.as_slice().len() as u32).map(Some)), "a name is not its own class");
    }
}

/// Every column a file may have, and numbers that must be probabilities.
fn everything() -> SourceOptions {
    SourceOptions {
        label_column: Some("label".to_owned()),
        keep: vec!["id".to_owned()],
        input: Input::Probabilities,
        labels: LabelUse::Required,
        ..SourceOptions::default()
    }
}

/// Logits of another name that must be logarithms, and no labels.
fn logarithms() -> SourceOptions {
    SourceOptions {
        logits_column: Some("scores".to_owned()),
        input: Input::LogProbabilities,
        labels: LabelUse::Ignored,
        names: ClassNames::new(vec!["cat".to_owned(), "dog".to_owned()]).ok(),
        ..SourceOptions::default()
    }
}

/// Columns that are what they are said to be, and labels that are names.
fn roles() -> SourceOptions {
    SourceOptions {
        classes: Some(vec!["dog".to_owned(), "cat".to_owned()]),
        drop: vec!["note".to_owned()],
        keep_others: true,
        labels_are: Some(LabelsAre::Names),
        ..SourceOptions::default()
    }
}

/// Reads `bytes` from a pipe.
#[cfg(target_os = "linux")]
fn read_piped(bytes: &[u8]) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(bytes).expect("a pipe holds this much");
    drop(writer);
    let path = Path::new("/proc/self/fd").join(reader.as_raw_fd().to_string());
    let _ = read_all(&Data::Files(vec![path]), &SourceOptions::default());
}

#[cfg(not(target_os = "linux"))]
fn read_piped(_: &[u8]) {}

/// What a data set held, to be compared with another reading of it.
#[derive(Debug, PartialEq)]
struct Contents {
    rows: u64,
    fingerprint: u64,
    labels: Vec<u32>,
}

/// Reads a data set twice; `None` where it is refused.
fn read_all(data: &Data, options: &SourceOptions) -> Option<Contents> {
    let mut source = match Source::open(data, options) {
        Ok(source) => source,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    assert!(format!("{source:?}").starts_with("Source"));
    let first = read_once(&mut source);
    if source.rewind().is_ok() {
        assert_eq!(read_once(&mut source), first, "a second pass gives other rows");
    }
    first
}

fn read_once(source: &mut Source) -> Option<Contents> {
    let (mut block, mut fingerprint) = (Block::default(), DataFingerprint::default());
    let mut contents = Contents { rows: 0, fingerprint: 0, labels: Vec::new() };
    while read_block(source, &mut block)? {
        assert_eq!(block.first_row, contents.rows);
        fingerprint.extend(&block.row_fingerprints());
        contents.rows += block.rows() as u64;
        contents.labels.extend(block.labels.iter().flatten());
        predict(source, &block);
        hand_on(&block);
    }
    if let Some(promised) = source.rows() {
        assert_eq!(contents.rows, promised, "the number of rows is not what was promised");
    }
    contents.fingerprint = fingerprint.value();
    Some(contents)
}

/// Reads a block and checks its shape; `None` where the rest of the file is refused.
fn read_block(source: &mut Source, block: &mut Block) -> Option<bool> {
    let more = source.read(block).ok()?;
    if more {
        let rows = block.rows();
        assert!(rows > 0 && block.classes == source.classes());
        assert_eq!(block.logits.len(), rows * block.classes);
        assert_eq!(block.logits.dtype(), source.dtype());
        assert_eq!(block.labels.is_some(), source.has_labels());
        if let Some(labels) = &block.labels {
            assert_eq!(labels.len(), rows);
            assert!(labels.iter().all(|&label| (label as usize) < block.classes));
        }
        let kept = block.keep.iter().map(|column| (column.name.as_str(), column.cells.cell_type()));
        assert!(kept.eq(source.kept()), "a kept column changed its name or type");
        assert!(block.keep.iter().all(|column| column.cells.len() == rows));
    }
    Some(more)
}

/// What a block's owner does with it: rows go into another block, kept cells into an output.
fn hand_on(block: &Block) {
    let mut rows = Values::new(block.logits.dtype());
    rows.extend_rows(&block.logits, block.classes, 0..block.rows());
    assert_eq!(rows.as_bytes(), block.logits.as_bytes());
    let last = rows.get(rows.len() - 1).map(f64::to_bits);
    assert_eq!(last, block.logits.get(block.logits.len() - 1).map(f64::to_bits));
    for column in &block.keep {
        let taken = column.cells.take(&[block.rows() - 1]);
        assert_eq!((taken.len(), taken.text(0)), (1, column.cells.text(block.rows() - 1)));
    }
}

/// Whatever a file held, sets come out of it or an error that can be shown.
fn predict(source: &Source, block: &Block) {
    let result = match &block.logits {
        Values::F16(logits) => predict_sets(logits, block.classes),
        Values::Bf16(logits) => predict_sets(logits, block.classes),
        Values::F32(logits) => predict_sets(logits, block.classes),
        Values::F64(logits) => predict_sets(logits, block.classes),
    };
    if let Err(error) = result {
        assert!(!source.error_in(block, error).to_string().is_empty());
    }
}

fn predict_sets<T: Logit>(logits: &[T], classes: usize) -> conformax::Result<()> {
    let predictor = Predictor::new(EntmaxScore::default(), Thresholds::One(1.5));
    let sets = predictor.predict(Logits::new(logits, classes)?)?;
    assert!(sets.iter().all(|set| !set.is_empty()), "the top label is in every set of this score");
    Ok(())
}
