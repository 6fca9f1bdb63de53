//! A data set is read as it was when it was opened, or not at all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use conformax_io::{Block, Data, Problem, Result, Source, SourceOptions};

/// Two files of two rows, read in blocks of one row.
fn opened(folder: &Path) -> (Source, [PathBuf; 2]) {
    let paths = ["a.csv", "b.csv"].map(|name| folder.join(name));
    for path in &paths {
        std::fs::write(path, "cat,dog\n1,2\n3,4\n").unwrap();
    }
    let options = SourceOptions { block_bytes: 16, ..SourceOptions::default() };
    (Source::open(&Data::Files(paths.to_vec()), &options).unwrap(), paths)
}

fn rows_to_the_end(source: &mut Source) -> Result<usize> {
    let (mut block, mut rows) = (Block::default(), 0);
    while source.read(&mut block)? {
        rows += block.rows();
    }
    Ok(rows)
}

#[track_caller]
fn assert_changed<T: std::fmt::Debug>(outcome: Result<T>, path: &Path) {
    let error = outcome.unwrap_err();
    assert!(matches!(error.problem(), Problem::Changed), "{error}");
    assert_eq!(error.place().path, path);
}

#[test]
fn files_that_stay_as_they_were_are_read_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, _) = opened(folder.path());
    assert_eq!(rows_to_the_end(&mut source).unwrap(), 4);
    source.rewind().unwrap();
    assert_eq!(rows_to_the_end(&mut source).unwrap(), 4);
}

#[test]
fn a_longer_file_is_told_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, [first, second]) = opened(folder.path());
    let mut block = Block::default();
    assert!(source.read(&mut block).unwrap());
    std::fs::write(&first, "cat,dog\n1,2\n3,4\n5,6\n").unwrap();
    assert_changed(rows_to_the_end(&mut source), &first);
    let (mut source, _) = opened(folder.path());
    std::fs::write(&second, "cat,dog\n1,2\n3,4\n5,6\n").unwrap();
    assert_changed(rows_to_the_end(&mut source), &second);
}

#[test]
fn what_looks_like_damage_is_told_as_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, [_, second]) = opened(folder.path());
    std::fs::write(&second, "cat,dog\n1,2\n3").unwrap();
    assert_changed(rows_to_the_end(&mut source), &second);
    let (mut source, _) = opened(folder.path());
    std::fs::remove_file(&second).unwrap();
    assert_changed(rows_to_the_end(&mut source), &second);
}

#[test]
fn a_second_pass_is_over_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, [first, _]) = opened(folder.path());
    assert_eq!(rows_to_the_end(&mut source).unwrap(), 4);
    std::fs::write(&first, "cat,dog,eel\n1,2,3\n").unwrap();
    assert_changed(source.rewind(), &first);
}
