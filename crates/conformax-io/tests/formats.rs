//! The same data through every format: the same values, labels, names and fingerprint come back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use crate::written::{Sample, Write};
use conformax::DataFingerprint;
use conformax_io::{Block, Data, Dtype, Input, LabelUse, Source, SourceOptions, Values};

struct Read {
    logits: Vec<f64>,
    labels: Vec<u32>,
    dtype: Dtype,
    names: Option<Vec<String>>,
    fingerprint: u64,
}

fn read(data: &Data, options: &SourceOptions) -> conformax_io::Result<Read> {
    let mut source = Source::open(data, options)?;
    let (mut logits, mut labels) = (Vec::new(), Vec::new());
    let mut fingerprint = DataFingerprint::default();
    let mut block = Block::default();
    let mut next = 0;
    while source.read(&mut block)? {
        assert_eq!(block.first_row, next);
        next += block.rows() as u64;
        logits.extend((0..block.logits.len()).map(|index| block.logits.get(index).unwrap()));
        labels.extend(block.labels.iter().flatten());
        fingerprint.extend(&block.row_fingerprints());
    }
    if let Some(rows) = source.rows() {
        assert_eq!(rows, next);
    }
    let names = source.names().map(|names| names.as_slice().to_vec());
    Ok(Read { logits, labels, dtype: source.dtype(), names, fingerprint: fingerprint.value() })
}

fn small_blocks() -> SourceOptions {
    SourceOptions { block_bytes: 300, labels: LabelUse::Required, ..SourceOptions::default() }
}

fn files(paths: &[&Path]) -> Data {
    Data::Files(paths.iter().map(|&path| path.to_owned()).collect())
}

#[test]
fn every_format_gives_the_same_data() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(137, 7);
    let expected = sample.fingerprint();
    let named: Vec<String> = sample.names.clone();
    for (write, dtype, has_names) in Write::ALL {
        let path = write.write(&sample, folder.path());
        let read =
            read(&files(&[&path]), &small_blocks()).unwrap_or_else(|error| panic!("{write:?}: {error}"));
        assert_eq!(read.logits, sample.logits, "{write:?}");
        assert_eq!(read.labels, sample.labels, "{write:?}");
        assert_eq!(read.dtype, dtype, "{write:?}");
        assert_eq!(read.fingerprint, expected, "{write:?}");
        assert_eq!(read.names, has_names.then(|| named.clone()), "{write:?}");
    }
}

#[test]
fn blocks_and_threads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(137, 7);
    for (write, _, _) in Write::ALL {
        let path = write.write(&sample, folder.path());
        for (block_bytes, threads) in [(1, 1), (100, 0), (100, 2), (1 << 23, 3), (1 << 23, 200)] {
            let options = SourceOptions { block_bytes, threads, ..small_blocks() };
            let read = read(&files(&[&path]), &options).unwrap();
            let how = format!("{write:?} by {block_bytes} bytes on {threads} threads");
            assert_eq!(read.fingerprint, sample.fingerprint(), "{how}");
            assert_eq!(read.labels, sample.labels);
        }
    }
}

#[test]
fn logits_and_labels_may_be_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(20, 5);
    let (logits, labels) = sample.write_pair(folder.path(), "");
    let read = read(&Data::Pair { logits, labels: Some(labels) }, &small_blocks()).unwrap();
    assert_eq!((read.logits, read.labels), (sample.logits, sample.labels));
}

#[test]
fn a_folder_of_shards_is_one_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Sample::new(20, 5), Sample::new(30, 5));
    first.write_pair(folder.path(), "-0");
    second.write_pair(folder.path(), "-1");
    std::fs::write(folder.path().join("notes.txt"), "not data").unwrap();
    let read = read(&files(&[folder.path()]), &small_blocks()).unwrap();
    assert_eq!(read.logits, [first.logits, second.logits].concat());
    assert_eq!(read.labels, [first.labels, second.labels].concat());
}

#[test]
fn rows_are_located_in_their_shard() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = [10, 20]
        .iter()
        .enumerate()
        .map(|(index, &rows)| {
            let to = folder.path().join(index.to_string());
            std::fs::create_dir(&to).unwrap();
            Write::Npz.write(&Sample::new(rows, 3), &to)
        })
        .collect();
    let mut source = Source::open(&Data::Files(paths.clone()), &small_blocks()).unwrap();
    let mut block = Block::default();
    while source.read(&mut block).unwrap() {}
    assert_eq!(source.locate(9), (paths[0].as_path(), 9));
    assert_eq!(source.locate(10), (paths[1].as_path(), 0));
    source.rewind().unwrap();
    assert!(source.read(&mut block).unwrap());
    assert_eq!(block.first_row, 0);
}

#[test]
fn kept_columns_come_along() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(40, 3);
    for write in
        [Write::Npz, Write::Deflated, Write::Parquet, Write::Arrow, Write::JsonLines, Write::Safetensors]
    {
        let path = write.write(&sample, folder.path());
        let options = SourceOptions { keep: vec!["id".to_owned()], ..small_blocks() };
        let mut source = Source::open(&files(&[&path]), &options).unwrap();
        assert_eq!(source.classes(), 3, "{write:?}");
        let mut block = Block::default();
        let mut ids = Vec::new();
        while source.read(&mut block).unwrap() {
            assert_eq!(block.keep[0].name, "id");
            ids.extend((0..block.rows()).map(|row| block.keep[0].cells.text(row)));
        }
        let expected: Vec<String> = (0..40).map(|row| (1000 + row).to_string()).collect();
        assert_eq!(ids, expected, "{write:?}");
    }
}

#[test]
fn probabilities_become_logarithms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.csv");
    std::fs::write(&path, "cat,dog,label\n0.25,0.75,dog\n0,1,1\n").unwrap();
    let options = SourceOptions { input: Input::Probabilities, ..small_blocks() };
    let got = read(&files(&[&path]), &options).unwrap();
    assert_eq!(got.labels, [1, 1]);
    assert_eq!(got.logits[2..], [f64::NEG_INFINITY, 0.0]);
    assert!((got.logits[0] - 0.25f64.ln()).abs() < 1e-15);
    std::fs::write(&path, "cat,dog,label\n0.25,0.75,dog\n0,1.5,1\n").unwrap();
    let error = read(&files(&[&path]), &options).err().unwrap();
    assert!(
        error.to_string().ends_with("p.csv: row 1, class 1: probability must lie between 0 and 1, got 1.5"),
        "{error}"
    );
}

#[test]
fn a_file_without_a_telling_name_is_told_by_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(12, 4);
    for (write, _, _) in Write::ALL {
        let path = write.write(&sample, folder.path());
        let plain = folder.path().join("data");
        std::fs::rename(&path, &plain).unwrap();
        let read =
            read(&files(&[&plain]), &small_blocks()).unwrap_or_else(|error| panic!("{write:?}: {error}"));
        assert_eq!(read.fingerprint, sample.fingerprint(), "{write:?}");
    }
}

#[test]
fn labels_can_be_left_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.csv");
    std::fs::write(&path, "cat,dog,label\n1,2,bird\n").unwrap();
    let options = SourceOptions { labels: LabelUse::Ignored, ..SourceOptions::default() };
    let read = read(&files(&[&path]), &options).unwrap();
    assert_eq!((read.logits.len(), read.labels.len()), (2, 0));
}

#[test]
fn a_split_written_as_npz_reads_back() {
    use conformax_io::{ArrayShape, NpzWriter, Overwrite};
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(50, 6);
    for write in [Write::Npy, Write::Bf16Safetensors, Write::Parquet] {
        let from = match write {
            Write::Npy => {
                let (logits, labels) = sample.write_pair(folder.path(), "");
                Data::Pair { logits, labels: Some(labels) }
            }
            _ => files(&[&write.write(&sample, folder.path())]),
        };
        let mut source = Source::open(&from, &small_blocks()).unwrap();
        let path = folder.path().join("cal.npz");
        let shape = ArrayShape { rows: 25, classes: 6, dtype: source.dtype() };
        let mut writer =
            NpzWriter::create(&path, Overwrite::Replace, shape, source.names().cloned()).unwrap();
        let mut block = Block::default();
        while source.read(&mut block).unwrap() {
            let even: Vec<usize> =
                (0..block.rows()).filter(|row| (block.first_row + *row as u64).is_multiple_of(2)).collect();
            writer.write(&block, &even).unwrap();
        }
        writer.finish().unwrap();
        let back = read(&files(&[&path]), &small_blocks()).unwrap();
        let even = |row: &usize| row.is_multiple_of(2);
        let expected: Vec<f64> = (0..50).filter(even).flat_map(|row| sample.row(row).to_vec()).collect();
        assert_eq!(back.logits, expected, "{write:?}");
        assert_eq!(back.dtype, source.dtype());
        assert_eq!(back.labels, (0..50).filter(even).map(|row| sample.labels[row]).collect::<Vec<_>>());
        assert_eq!(back.names.as_deref(), source.names().map(|names| names.as_slice()));
    }
}

#[test]
fn an_npy_writer_keeps_every_bit() {
    use conformax_io::{ArrayShape, NpyWriter, Overwrite, write_labels};
    let folder = tempfile::tempdir().unwrap();
    let logits = folder.path().join("z.npy");
    let labels = folder.path().join("y.npy");
    let values = vec![f32::MIN_POSITIVE, -0.0, f32::NEG_INFINITY, 1.5, f32::MAX, 1e-45];
    let mut writer =
        NpyWriter::create(&logits, Overwrite::Refuse, ArrayShape { rows: 2, classes: 3, dtype: Dtype::F32 })
            .unwrap();
    writer.write(&Values::F32(values.clone())).unwrap();
    writer.finish().unwrap();
    write_labels(&labels, Overwrite::Refuse, &[2, 0]).unwrap();
    let mut source = Source::open(&Data::Pair { logits, labels: Some(labels) }, &small_blocks()).unwrap();
    let mut block = Block::default();
    assert!(source.read(&mut block).unwrap());
    let Values::F32(back) = block.logits else { panic!("f32 stays f32") };
    assert_eq!(
        back.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        values.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    );
    assert_eq!(block.labels, Some(vec![2, 0]));
}

#[test]
fn integers_are_logits_in_either_order_and_of_any_width() {
    use crate::written::{npy, zip};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.npz");
    let labels = || npy("<f8", false, &[2, 1], &[1.0f64, 0.0].map(f64::to_le_bytes).concat());
    let cases = [
        npy("|i1", false, &[2, 2], &[3, 0xff, 0, 7]),
        npy("|u1", true, &[2, 2], &[3, 0, 255, 7]),
        npy(">i4", false, &[2, 2], &[3i32, -1, 0, 7].map(i32::to_be_bytes).concat()),
    ];
    for (logits, second) in cases.into_iter().zip([-1.0, 255.0, -1.0]) {
        for deflated in [false, true] {
            let arrays = [("logits.npy", logits.clone()), ("labels.npy", labels())];
            std::fs::write(&path, zip(&arrays, deflated, false)).unwrap();
            let got = read(&files(&[&path]), &small_blocks()).unwrap();
            assert_eq!((got.logits, got.dtype), (vec![3.0, second, 0.0, 7.0], Dtype::F64));
            assert_eq!(got.labels, [1, 0]);
        }
    }
}
