//! Data that passes by once: named pipes stand in for standard input.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![cfg(unix)]

use std::path::{Path, PathBuf};

use crate::written::{Sample, Write, npy};
use conformax_io::{Block, Data, LabelUse, Source, SourceOptions};

/// A named pipe that will deliver these bytes.
fn pipe(folder: &Path, bytes: Vec<u8>) -> PathBuf {
    let path = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let to = path.clone();
    // A reader that refuses early closes the pipe; the writer's error is then no news.
    std::thread::spawn(move || std::fs::write(to, bytes));
    path
}

fn read(source: &mut Source) -> (Vec<f64>, Vec<u32>) {
    let (mut logits, mut labels, mut block) = (Vec::new(), Vec::new(), Block::default());
    while source.read(&mut block).unwrap() {
        logits.extend((0..block.logits.len()).map(|index| block.logits.get(index).unwrap()));
        labels.extend(block.labels.iter().flatten());
    }
    (logits, labels)
}

fn options() -> SourceOptions {
    SourceOptions { block_bytes: 256, labels: LabelUse::Required, ..SourceOptions::default() }
}

#[test]
fn text_is_read_as_it_comes() {
    let sample = Sample::new(50, 4);
    for write in [Write::Csv, Write::JsonLines] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(write.write(&sample, folder.path())).unwrap();
        let path = pipe(folder.path(), bytes);
        let mut source = Source::open(&Data::Files(vec![path]), &options()).unwrap();
        assert_eq!(read(&mut source), (sample.logits.clone(), sample.labels.clone()), "{write:?}");
        let again = source.rewind().unwrap_err().to_string();
        assert!(again.contains("read once only"), "{again}");
    }
}

#[test]
fn arrays_in_either_order_are_read_with_labels_from_a_file() {
    let sample = Sample::new(50, 4);
    let columns: Vec<u8> = (0..4)
        .flat_map(|class| (0..50).map(move |row| row * 4 + class))
        .flat_map(|index: usize| (sample.logits[index] as f32).to_le_bytes())
        .collect();
    let rows: Vec<u8> = sample.logits.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
    for (fortran, data) in [(false, rows), (true, columns)] {
        let folder = tempfile::tempdir().unwrap();
        let (_, labels) = sample.write_pair(folder.path(), "");
        let logits = pipe(folder.path(), npy("<f4", fortran, &[50, 4], &data));
        let mut source = Source::open(&Data::Pair { logits, labels: Some(labels) }, &options()).unwrap();
        assert_eq!(read(&mut source), (sample.logits.clone(), sample.labels.clone()), "fortran: {fortran}");
    }
}

#[test]
fn an_array_that_breaks_off_says_how_much_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let logits = pipe(folder.path(), npy("<f4", false, &[50, 4], &[0; 399]));
    let mut source = Source::open(&Data::Pair { logits, labels: None }, &SourceOptions::default()).unwrap();
    let error = source.read(&mut Block::default()).unwrap_err().to_string();
    assert!(error.ends_with("needs 800 bytes, but only 399 are there"), "{error}");
}

#[test]
fn formats_that_need_places_are_refused() {
    for write in [Write::Npz, Write::Parquet, Write::Arrow, Write::Safetensors] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(write.write(&Sample::new(5, 3), folder.path())).unwrap();
        let path = pipe(folder.path(), bytes);
        let error = Source::open(&Data::Files(vec![path]), &options()).unwrap_err().to_string();
        assert!(error.contains("cannot be read from a pipe"), "{error}");
    }
}

/// Rows are given out when there are no more of them, not when a block is full; a row that has begun is waited for.
#[cfg(target_os = "linux")]
#[test]
fn rows_are_given_out_as_they_come() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd;
    let rows = |text: [&str; 4]| text.map(|row| row.as_bytes().to_vec());
    let lines = rows([
        "{\"logits\":[1,2]}\n",
        "{\"logits\":[3,4]}\n",
        "{\"logits\":[5,6]}\n",
        "{\"logits\":[7,8]}\n",
    ]);
    let table = rows(["cat,dog\n1,2\n", "3,4\n", "5,6\n", "7,8\n"]);
    for [first, second, third, fourth] in [lines, table] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let path = Path::new("/proc/self/fd").join(reader.as_raw_fd().to_string());
        writer.write_all(&[first, second].concat()).unwrap();
        let mut source = Source::open(&Data::Files(vec![path]), &SourceOptions::default()).unwrap();
        let mut next = || {
            let mut block = Block::default();
            source
                .read(&mut block)
                .unwrap()
                .then(|| block.logits.get(0).unwrap())
                .map(|first| (first, block.rows()))
        };
        assert_eq!(next(), Some((1.0, 2)));
        let (half, rest) = fourth.split_at(2);
        writer.write_all(&[&third, half].concat()).unwrap();
        assert_eq!(next(), Some((5.0, 1)));
        writer.write_all(rest).unwrap();
        assert_eq!(next(), Some((7.0, 1)));
        drop(writer);
        assert_eq!(next(), None);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn rows_of_an_array_are_given_out_as_they_come() {
    use std::io::Write as _;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = Path::new("/proc/self/fd").join(reader.as_raw_fd().to_string());
    let whole = npy("<f4", false, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes).concat());
    let (start, rest) = whole.split_at(whole.len() - 8);
    writer.write_all(start).unwrap();
    let mut source = Source::open(&Data::Files(vec![path]), &SourceOptions::default()).unwrap();
    let mut block = Block::default();
    assert!(source.read(&mut block).unwrap());
    assert_eq!(block.rows(), 2);
    writer.write_all(rest).unwrap();
    drop(writer);
    assert!(source.read(&mut block).unwrap());
    assert_eq!((block.rows(), block.logits.get(0)), (1, Some(5.0)));
    assert!(!source.read(&mut block).unwrap());
}
