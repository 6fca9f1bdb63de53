//! Data written in one format and read back: logits, labels, names and kept columns are what they were.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use crate::written::{Sample, Write};
use conformax::DataFingerprint;
use conformax_io::{
    Block, Cells, ClassNames, Data, DataColumns, DataWriter, Dtype, LabelUse, NamedCells, Overwrite, Source,
    SourceOptions, Values,
};
use half::bf16;

const NAMES: [&str; 8] =
    ["z.npz", "z.parquet", "z.arrow", "z.csv", "z.tsv", "z.jsonl", "z.safetensors", "z.ndjson"];

fn keeping(names: &[&str]) -> SourceOptions {
    let keep = names.iter().map(|&name| name.to_owned()).collect();
    SourceOptions { labels: LabelUse::Required, keep, block_bytes: 64, ..SourceOptions::default() }
}

fn columns(block: &Block, rows: usize, names: Option<ClassNames>) -> DataColumns {
    DataColumns {
        rows: rows as u64,
        classes: block.classes,
        dtype: block.logits.dtype(),
        names,
        labels: block.labels.is_some(),
        keep: block.keep.iter().map(|column| (column.name.clone(), column.cells.cell_type())).collect(),
    }
}

fn write(path: &Path, block: &Block, names: Option<ClassNames>) -> conformax_io::Result<()> {
    let rows: Vec<usize> = (0..block.rows()).rev().collect();
    let mut writer = DataWriter::create(path, Overwrite::Refuse, &columns(block, rows.len(), names))?;
    for rows in rows.chunks(3) {
        writer.write(block, rows)?;
    }
    writer.finish()
}

/// A block of five rows, the hardest to write there are.
fn block() -> Block {
    let logits =
        Values::F32(vec![0.1, -0.0, f32::NEG_INFINITY, 1e-45, f32::MAX, 2.5, 3.0, 4.0, 5.0, 1.0 / 3.0]);
    let id = NamedCells { name: "id".to_owned(), cells: Cells::Int((0..5).map(|id| Some(id - 2)).collect()) };
    let weight = NamedCells {
        name: "weight".to_owned(),
        cells: Cells::Float((0..5).map(|row| Some(row as f64 / 7.0)).collect()),
    };
    Block {
        first_row: 0,
        classes: 2,
        logits,
        labels: Some(vec![0, 1, 1, 0, 1]),
        keep: vec![id, weight],
        ..Block::default()
    }
}

#[test]
fn every_format_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let names = ClassNames::new(vec!["=cat, \"big\"".to_owned(), "dög|\\".to_owned()]).unwrap();
    for file in NAMES {
        let path = folder.path().join(file);
        write(&path, &block(), Some(names.clone())).unwrap_or_else(|error| panic!("{error}"));
        let mut source = Source::open(&Data::Files(vec![path]), &keeping(&["id", "weight"]))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(source.names(), Some(&names), "{file}");
        let (mut back, mut values, mut labels, mut kept) =
            (Block::default(), Vec::new(), Vec::new(), Vec::new());
        while source.read(&mut back).unwrap() {
            values.extend((0..back.logits.len()).map(|index| back.logits.get(index).unwrap().to_bits()));
            labels.extend(back.labels.iter().flatten().copied());
            kept.extend(
                (0..back.rows()).map(|row| [back.keep[0].cells.text(row), back.keep[1].cells.text(row)]),
            );
        }
        let expected = block();
        let bits = |row: usize| (0..2).map(move |class| row * 2 + class);
        let expected_bits: Vec<u64> =
            (0..5).rev().flat_map(bits).map(|index| expected.logits.get(index).unwrap().to_bits()).collect();
        assert_eq!(values, expected_bits, "{file}");
        assert_eq!(labels, [1, 0, 1, 1, 0], "{file}");
        assert_eq!(kept[4], ["-2", "0"], "{file}");
        assert_eq!(kept[0][1], (4.0_f64 / 7.0).to_string(), "{file}");
    }
}

#[test]
fn other_columns_are_kept_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(12, 3);
    for from in [Write::Npz, Write::Parquet, Write::Arrow, Write::JsonLines, Write::Safetensors] {
        let path = from.write(&sample, folder.path());
        let options = SourceOptions { keep_others: true, ..keeping(&[]) };
        let source = Source::open(&Data::Files(vec![path]), &options).unwrap();
        let kept: Vec<&str> = source.kept().map(|(name, _)| name).collect();
        assert!(kept.contains(&"id") && !kept.contains(&"class_names"), "{from:?}: {kept:?}");
    }
}

#[test]
fn fingerprints_survive_every_change_of_format() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(40, 5);
    let mut block = Block::default();
    let first = Write::Bf16Safetensors.write(&sample, folder.path());
    for file in NAMES.map(|name| format!("back-{name}")) {
        let mut source = Source::open(&Data::Files(vec![first.clone()]), &SourceOptions::default()).unwrap();
        let path = folder.path().join(file);
        let mut writer = DataWriter::create(&path, Overwrite::Refuse, &DataColumns::of(&source, 40)).unwrap();
        while source.read(&mut block).unwrap() {
            writer.write(&block, &(0..block.rows()).collect::<Vec<_>>()).unwrap();
        }
        writer.finish().unwrap();
        let mut back = Source::open(&Data::Files(vec![path.clone()]), &SourceOptions::default()).unwrap();
        let mut fingerprint = DataFingerprint::default();
        while back.read(&mut block).unwrap() {
            fingerprint.extend(&block.row_fingerprints());
        }
        assert_eq!(fingerprint.value(), sample.fingerprint(), "{}", path.display());
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |name: &str, block: &Block, names: Option<ClassNames>| {
        let path = folder.path().join(name);
        let error = write(&path, block, names).expect_err(name);
        assert!(!path.exists());
        error.problem().to_string()
    };
    let named = |name: &str| {
        let mut block = block();
        block.keep[0].name = name.to_owned();
        block
    };
    assert!(refusal("z.npy", &block(), None).contains("holds logits alone"));
    assert!(refusal("z.parquet", &named("logits"), None).contains("has a column of that name"));
    assert!(refusal("z.csv", &named("1"), None).contains("has a column of that name"));
    let label = ClassNames::new(vec!["label".to_owned(), "x".to_owned()]).unwrap();
    assert!(refusal("z.csv", &block(), Some(label)).contains("cannot be a column"));
    let text = Block {
        keep: vec![NamedCells { name: "id".to_owned(), cells: Cells::Text(vec![None; 5]) }],
        ..block()
    };
    assert!(refusal("z.safetensors", &text, None).contains("is text, which safetensors cannot hold"));
    let gaps = Block {
        keep: vec![NamedCells { name: "id".to_owned(), cells: Cells::Int(vec![None; 5]) }],
        ..block()
    };
    assert!(refusal("z.npz", &gaps, None).contains("has no value"));
    assert!(refusal("z.txt", &block(), None).contains("unknown format"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn logits_alone_are_written_as_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("z.npy");
    let bare = Block {
        logits: Values::Bf16(vec![bf16::from_f32(0.5); 4]),
        labels: None,
        keep: Vec::new(),
        ..block()
    };
    write(&path, &bare, None).unwrap();
    let source = Source::open(&Data::Files(vec![path]), &SourceOptions::default()).unwrap();
    assert_eq!((source.rows(), source.classes(), source.dtype()), (Some(2), 2, Dtype::Bf16));
}

#[cfg(unix)]
#[test]
fn an_archive_is_not_written_to_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("z.npz");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    let error = write(&link, &block(), None).unwrap_err();
    assert!(error.to_string().ends_with("npz cannot be written to a pipe or a device"), "{error}");
    let text = folder.path().join("z.csv");
    std::os::unix::fs::symlink("/dev/null", &text).unwrap();
    write(&text, &block(), None).unwrap();
    assert!(std::fs::symlink_metadata(&text).unwrap().is_symlink());
}
