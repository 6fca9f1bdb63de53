//! A data set is read as it was when it was opened, or not at all.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use conformax_io::{
    ArrayShape, Block, Data, Dtype, NpyWriter, Overwrite, Problem, Result, Source, SourceOptions, Values,
};

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

/// Two files of two rows of 1,000 logits, which are left in their files.
fn opened_in_place(folder: &Path) -> (Source, [PathBuf; 2]) {
    let paths = ["a.npy", "b.npy"].map(|name| folder.join(name));
    for path in &paths {
        write_npy(path, 1.0);
    }
    let options = SourceOptions { block_bytes: 16, ..SourceOptions::default() };
    (Source::open(&Data::Files(paths.to_vec()), &options).unwrap(), paths)
}

fn write_npy(path: &Path, value: f32) {
    let shape = ArrayShape { rows: 2, classes: 1000, dtype: Dtype::F32 };
    let mut writer = NpyWriter::create(path, Overwrite::Replace, shape).unwrap();
    writer.write(&Values::F32(vec![value; 2000])).unwrap();
    writer.finish().unwrap();
}

/// Logits that others read are read after the reader has seen the file's end, and held against the same state of it.
#[test]
fn what_was_left_in_a_file_is_of_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for (shorter, when) in [(true, 0), (false, 0), (false, 2)] {
        let (mut source, [first, _]) = opened_in_place(folder.path());
        let mut blocks = [(); 3].map(|()| Block::default());
        let rests = blocks.each_mut().map(|block| source.read_ahead(block).unwrap());
        let change = || match shorter {
            true => std::fs::write(&first, b"\x93NUMPY").unwrap(),
            false => write_npy(&first, 2.0),
        };
        let mut outcomes = Vec::new();
        for (at, (rest, block)) in rests.into_iter().zip(&mut blocks).enumerate() {
            if at == when {
                change();
            }
            outcomes.push(rest.read(2, block));
        }
        // The third block is in the second file, and the first has ended before it.
        let told = if shorter { 0 } else { 2 };
        assert!(outcomes[..told].iter().all(|outcome| matches!(outcome, Ok(true))), "{outcomes:?}");
        assert_changed(outcomes.swap_remove(told), &first);
    }
}

#[test]
fn a_change_before_the_last_logits_are_read_is_told_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (mut source, [_, second]) = opened_in_place(folder.path());
    let mut blocks = [(); 5].map(|()| Block::default());
    let rests = blocks.each_mut().map(|block| source.read_ahead(block).unwrap());
    assert!(rests[4].is_end() && !rests[3].is_end());
    write_npy(&second, 2.0);
    let mut outcomes: Vec<_> =
        rests.into_iter().zip(&mut blocks).map(|(rest, block)| rest.read(1, block)).collect();
    assert_changed(outcomes.pop().unwrap(), &second);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(true))));
}
