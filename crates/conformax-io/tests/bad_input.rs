//! Everything that can be wrong with a file gets its own message and its place, and never a panic.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;

use crate::written::{Sample, Write, npy, zip};
use conformax_io::{Block, ClassNames, Data, LabelUse, Source, SourceOptions};

fn read_with(data: &Data, options: &SourceOptions) -> conformax_io::Result<u64> {
    let mut source = Source::open(data, options)?;
    let mut block = Block::default();
    let mut rows = 0;
    while source.read(&mut block)? {
        rows += block.rows() as u64;
    }
    Ok(rows)
}

fn required() -> SourceOptions {
    SourceOptions { labels: LabelUse::Required, block_bytes: 64, ..SourceOptions::default() }
}

fn read(path: &Path) -> conformax_io::Result<u64> {
    read_with(&Data::Files(vec![path.to_owned()]), &required())
}

/// The message for a file of this name and these bytes, without the folder.
fn message(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let message = read(&path).expect_err(name).to_string();
    let start = format!("{}/", folder.path().display());
    message.strip_prefix(&start).unwrap_or_else(|| panic!("{message} names no file")).to_owned()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn logits() -> Vec<u8> {
    npy("<f4", false, &[2, 2], &f32s(&[1.0, 2.0, 3.0, 4.0]))
}

fn npz(logits: Vec<u8>, labels: Vec<u8>) -> Vec<u8> {
    zip(&[("logits.npy", logits), ("labels.npy", labels)], false, false)
}

/// Lines go on as ever, but the record does not end.
#[test]
fn a_row_without_end() {
    let endless = "x\n".repeat(33 << 20);
    let start = "z.csv: row 1: ";
    let csv = message("z.csv", format!("a,b,label\n1,2,0\n\"{endless}"));
    assert!(csv.starts_with(start) && csv.contains("a row is longer than 67108864 bytes"), "{csv}");
    let line = message("z.jsonl", endless.replace('\n', "x"));
    assert!(line.contains("a row is longer than 67108864 bytes"), "{line}");
}

#[test]
fn empty_and_unknown_files() {
    for name in ["z.npy", "z.npz", "z.parquet", "z.arrow", "z.csv", "z.safetensors", "z.jsonl"] {
        assert_eq!(message(name, ""), format!("{name}: holds no rows"));
    }
    assert!(message("z.bin", [0, 1, 2]).contains("unknown format"));
    let missing = read(Path::new("/nowhere/z.npz")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/z.npz: ") && missing.contains("No such file"), "{missing}");
}

#[test]
fn headers_that_lie_are_caught_before_memory_is_set_aside() {
    let lies = |shape: &[usize]| message("z.npz", npz(npy("<f4", false, shape, &[0; 16]), vec![]));
    assert_eq!(
        lies(&[1 << 40, 1 << 20]),
        "z.npz: column `logits`: needs 4611686018427387904 bytes, but only 16 are there"
    );
    assert!(lies(&[1 << 40, 1 << 40]).contains("needs 18446744073709551615 bytes, but only 16"));
    assert!(lies(&[2, 3]).contains("needs 24 bytes, but only 16 are there"));
    assert!(lies(&[1, 2]).contains("8 bytes follow the last value"));
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    assert!(message("z.npy", long).contains("its header has 4294967295 bytes"));
    let header = br#"{"logits":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}}"#;
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header);
    tensors.extend([0; 16]);
    let overflow = message("z.safetensors", &tensors);
    assert!(overflow.contains("damaged") || overflow.contains("needs"), "{overflow}");
    tensors[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(message("z.safetensors", tensors).contains("its header claims"));
}

#[test]
fn wrong_types_and_shapes() {
    let bad = |descr, shape: &[usize], size| {
        message("z.npz", npz(npy(descr, false, shape, &vec![0; size]), vec![]))
    };
    let numbers = "z.npz: logits must be f16, bf16, f32, f64 or integers, got";
    assert_eq!(bad("|b1", &[2, 2], 4), format!("{numbers} |b1"));
    assert_eq!(bad("<c8", &[2, 2], 32), format!("{numbers} <c8"));
    assert_eq!(bad("<f4", &[4], 16), "z.npz: logits must have shape (rows, classes), got (4,)");
    assert_eq!(bad("<f4", &[1, 2, 2], 16), "z.npz: logits must have shape (rows, classes), got (1, 2, 2)");
    let labels = |descr, shape: &[usize], size| {
        message("z.npz", npz(logits(), npy(descr, false, shape, &vec![0; size])))
    };
    assert_eq!(labels("<i4", &[2, 2], 16), "z.npz: labels must have shape (rows,), got (2, 2)");
    let halves = npy("<f4", false, &[2], &f32s(&[1.0, 0.5]));
    assert_eq!(message("z.npz", npz(logits(), halves)), "z.npz: row 1: label 0.5 is not a whole number");
    assert_eq!(labels("|O", &[2], 8), "z.npz: labels must be integers or names, got |O");
    assert_eq!(labels("<i4", &[3], 12), "z.npz: 3 labels for 2 rows of logits");
}

#[test]
fn no_rows_no_classes_no_labels() {
    let none = |shape: &[usize], labels: &[usize]| {
        message("z.npz", npz(npy("<f4", false, shape, &[]), npy("|u1", false, labels, &[])))
    };
    assert_eq!(none(&[0, 5], &[0]), "z.npz: holds no rows");
    assert_eq!(none(&[0, 0], &[0]), "z.npz: holds no classes");
    assert!(message("z.npz", zip(&[("logits.npy", logits())], false, false)).contains("has no labels"));
    assert_eq!(
        message("z.npz", zip(&[("a.npy", logits())], false, false)),
        "z.npz: no column `logits`; there are `a`"
    );
    assert_eq!(message("z.csv", "cat,dog,label\n"), "z.csv: holds no rows");
    assert_eq!(message("z.csv", "label\n1\n"), "z.csv: holds no classes");
    assert_eq!(message("z.jsonl", "\n\n"), "z.jsonl: holds no rows");
    assert_eq!(message("z.jsonl", "{\"logits\":[],\"label\":0}"), "z.jsonl: holds no classes");
}

#[test]
fn labels_outside_the_classes_name_their_row() {
    let with = |labels: &[u8]| message("z.npz", npz(logits(), npy("|i1", false, &[2], labels)));
    assert_eq!(with(&[1, 2]), "z.npz: row 1: label 2 is outside 0..2");
    assert_eq!(with(&[255, 0]), "z.npz: row 0: label -1 is outside 0..2");
    assert_eq!(
        message("z.csv", "cat,dog,label\n1,2,cat\n1,2,cow\n"),
        "z.csv: row 1: label `cow` is not among the class names"
    );
    assert!(message("z.csv", "0,1,label\n1,2,cow\n").contains("row 0: label `cow` is a name, but"));
    assert_eq!(message("z.csv", "0,1,label\n1,2,\n"), "z.csv: row 0: has no label");
    assert_eq!(message("z.jsonl", "{\"logits\":[1,2]}"), "z.jsonl: has no labels");
    assert_eq!(
        message("z.jsonl", "{\"logits\":[1,2],\"label\":1}\n{\"logits\":[1,2]}"),
        "z.jsonl: row 1: has no label"
    );
}

#[test]
fn tables_that_are_not_rectangles() {
    assert_eq!(
        message("z.csv", "a,b,label\n1,2,0\n1,2\n"),
        "z.csv: row 1: damaged or not a table: 2 cells where the header has 3"
    );
    assert_eq!(message("z.csv", "a,b,label\n1,x,0\n"), "z.csv: row 0, column `b`: `x` is not a number");
    assert_eq!(message("z.csv", "0,1,label\n1,,0\n"), "z.csv: row 0, class 1: has no value");
    assert!(message("z.csv", "0.5,1.5,2.5\n1,2,3\n").contains("it must name the columns"));
    assert_eq!(message("z.csv", "a,a,label\n1,2,0\n"), "z.csv: the column `a` occurs twice");
    assert_eq!(
        message("z.csv", b"a,b,label\n1,2,\xff\xfe\n"),
        "z.csv: row 0, column `label`: is not UTF-8 text"
    );
    let ragged = "{\"logits\":[1,2],\"label\":0}\n{\"logits\":[1],\"label\":0}\n";
    assert_eq!(message("z.jsonl", ragged), "z.jsonl: row 1: has 1 logits where 2 were expected");
    assert_eq!(
        message("z.jsonl", "{\"logits\":[1,null],\"label\":0}"),
        "z.jsonl: row 0, class 1: has no value"
    );
    assert_eq!(
        message("z.jsonl", "{\"logits\":[1,\"x\"],\"label\":0}"),
        "z.jsonl: row 0, class 1: `x` is not a number"
    );
    assert!(
        message("z.jsonl", "{\"logits\":[1,-Infinity],\"label\":0}")
            .contains("row 0: damaged or not a JSON object")
    );
    assert_eq!(
        message("z.jsonl", b"{\"logits\":[1,2],\"label\":\"\xff\"}"),
        "z.jsonl: row 0: is not UTF-8 text"
    );
}

#[test]
fn compressions_are_named() {
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
    for name in ["z.csv", "z.jsonl", "z.npy", "z.parquet", "z.csv.gz", "z"] {
        assert_eq!(message(name, gzip), format!("{name}: is compressed with gzip, which is not read"));
    }
    let mut bytes = zip(&[("logits.npy", logits())], false, false);
    let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    (bytes[8], bytes[directory + 10]) = (12, 12);
    assert_eq!(
        message("z.npz", bytes),
        "z.npz: column `logits`: is compressed with bzip2, which is not read"
    );
    let brotli = std::fs::read("../../fuzz/corpus/parquet/brotli").unwrap();
    assert_eq!(message("z.parquet", brotli), "z.parquet: is compressed with Brotli, which is not read");
}

#[test]
fn text_in_other_encodings_is_named() {
    assert_eq!(message("z.csv", b"\xff\xfea\0,\0"), "z.csv: is UTF-16 text, not UTF-8");
    assert_eq!(message("z.jsonl", b"\xff\xfe{\0}\0"), "z.jsonl: row 0: is UTF-16 text, not UTF-8");
}

#[test]
fn labels_of_another_format_say_which() {
    let folder = tempfile::tempdir().unwrap();
    let (logits, labels) = (folder.path().join("z.npy"), folder.path().join("y.csv"));
    std::fs::write(&logits, self::logits()).unwrap();
    std::fs::write(&labels, "label\n0\n1\n").unwrap();
    let error = read_with(&Data::Pair { logits, labels: Some(labels) }, &required()).unwrap_err();
    assert!(
        error.to_string().ends_with("y.csv: labels beside logits are read from .npy files, and this is CSV")
    );
}

#[test]
fn names_in_metadata_must_be_names() {
    let line = "{\"logits\":[1,2],\"label\":0,\"class_names\":[1,2]}";
    assert_eq!(
        message("z.jsonl", line),
        "z.jsonl: row 0: `class_names` must be a JSON array of text, got [1,2]"
    );
    let header = br#"{"__metadata__":{"class_names":"cat, dog"},"logits":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header);
    tensors.extend([0; 16]);
    assert_eq!(
        message("z.safetensors", tensors),
        "z.safetensors: `class_names` must be a JSON array of text, got cat, dog"
    );
}

#[test]
fn a_key_that_occurs_twice_is_asked_about() {
    assert_eq!(
        message("z.jsonl", "{\"logits\":[1,2],\"label\":0,\"logits\":[3,4]}"),
        "z.jsonl: row 0: the column `logits` occurs twice"
    );
    let both = "{\"logits\":[1,2],\"label\":0,\"labels\":1}";
    assert!(message("z.jsonl", both).contains("has a column `labels` and a column `label`"));
    let tensor = r#"{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}"#;
    let header = format!("{{\"logits\":{tensor},\"logits\":{tensor}}}");
    let mut tensors = (header.len() as u64).to_le_bytes().to_vec();
    tensors.extend(header.as_bytes());
    tensors.extend([0; 16]);
    assert_eq!(message("z.safetensors", tensors), "z.safetensors: the column `logits` occurs twice");
    let labels = || npy("|u1", false, &[2], &[0, 1]);
    let arrays = [("logits.npy", logits()), ("labels.npy", labels()), ("label.npy", labels())];
    assert!(message("z.npz", zip(&arrays, false, false)).contains("which of them holds the labels"));
}

/// Of an array that is there twice, one program takes the first and another the last.
#[test]
fn an_array_that_is_there_twice_is_asked_about() {
    let labels = |bytes: [u8; 2]| npy("|u1", false, &[2], &bytes);
    for (twice, name) in [(("labelz.npy", labels([1, 0])), "labels"), (("logitz.npy", logits()), "logits")] {
        let arrays = [("logits.npy", logits()), ("labels.npy", labels([0, 1])), twice];
        let mut bytes = zip(&arrays, false, false);
        // Writers refuse a name they have, so it is made the same afterwards: before the array and in the directory.
        for place in 0..bytes.len() - 5 {
            if matches!(&bytes[place..place + 6], b"labelz" | b"logitz") {
                bytes[place + 5] = b's';
            }
        }
        assert_eq!(message("z.npz", bytes), format!("z.npz: the column `{name}` occurs twice"));
    }
}

#[test]
fn an_array_of_rows_is_called_what_it_is() {
    for name in ["z", "z.json", "z.jsonl"] {
        let wanted =
            format!("{name}: begins with `[`, and rows of JSON are one object to a line (JSON Lines)");
        assert_eq!(message(name, "\n[{\"logits\": [1, 2], \"label\": 0}]\n"), wanted);
    }
}

#[cfg(unix)]
#[test]
fn a_shard_that_links_to_nothing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "cat,dog,label\n1,2,0\n").unwrap();
    std::os::unix::fs::symlink("/nowhere/b.csv", folder.path().join("b.csv")).unwrap();
    let error = refusal(folder.path());
    assert!(error.ends_with("b.csv: is a link to a file that does not exist"), "{error}");
}

#[test]
fn control_characters_are_shown_as_escapes() {
    let name = "a\u{1b}[2J";
    let error = message("z.csv", format!("cat,dog,label\n1,2,{name}\n"));
    assert_eq!(error, "z.csv: row 0: label `a\\u{1b}[2J` is not among the class names");
    let path = Path::new("/nowhere/z\u{1b}[2J\n.npz");
    let error = read(path).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/z\\u{1b}[2J\\n.npz: "), "{error}");
}

#[test]
fn zips_with_something_wrong_inside() {
    assert!(message("z.npz", b"PK\x03\x04 and then nothing").contains("damaged or not an npz file"));
    assert!(
        message("z.npz", zip(&[("logits.npy", b"not an array".to_vec())], false, false))
            .contains("it does not begin as one")
    );
    let nested = zip(&[("logits.npy", zip(&[("logits.npy", logits())], false, false))], false, false);
    assert!(message("z.npz", nested).contains("column `logits`: damaged or not an npy file"));
    for deflated in [false, true] {
        let mut bytes = zip(
            &[("labels.npy", npy("|u1", false, &[2], &[0, 1])), ("logits.npy", logits())],
            deflated,
            false,
        );
        // The entry of `logits.npy` is the last one of the directory, and its checksum the four bytes at 16.
        let entry = bytes.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
        bytes[entry + 16] ^= 1;
        assert!(message("z.npz", bytes).contains("checksum"), "deflated: {deflated}");
    }
    let labels = npy("|u1", false, &[2], &[0, 1]);
    let mut stored = zip(&[("labels.npy", labels), ("logits.npy", logits())], false, false);
    let four = stored.windows(4).position(|bytes| bytes == 4.0f32.to_le_bytes()).unwrap();
    stored[four] ^= 1;
    assert!(message("z.npz", stored).contains("checksum"));
}

#[test]
fn lists_of_the_wrong_length_or_with_gaps() {
    use arrow_array::types::Float32Type;
    use arrow_array::{ArrayRef, ListArray, RecordBatch, UInt16Array};
    use std::sync::Arc;
    let table = |rows: Vec<Option<Vec<Option<f32>>>>| {
        let labels: ArrayRef = Arc::new(UInt16Array::from(vec![0; rows.len()]));
        let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows));
        let batch = RecordBatch::try_from_iter([("logits", lists), ("label", labels)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    };
    let full = || Some(vec![Some(1.0), Some(2.0)]);
    assert_eq!(
        message("z.parquet", table(vec![full(), full(), Some(vec![Some(1.0)])])),
        "z.parquet: row 2: has 1 logits where 2 were expected"
    );
    assert_eq!(message("z.parquet", table(vec![full(), None])), "z.parquet: row 1: has no value");
    assert_eq!(
        message("z.parquet", table(vec![full(), Some(vec![Some(1.0), None])])),
        "z.parquet: row 1, class 1: has no value"
    );
    assert_eq!(message("z.parquet", table(vec![])), "z.parquet: holds no rows");
}

#[test]
fn shards_that_do_not_fit_together() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let read =
        || read(folder.path()).unwrap_err().to_string().replace(&format!("{}/", folder.path().display()), "");
    write("a.csv", "cat,dog,label\n1,2,0\n");
    write("b.csv", "cat,dog,cow,label\n1,2,3,0\n");
    assert_eq!(read(), "b.csv: has 3 classes, 2 were expected");
    write("b.csv", "dog,cat,label\n1,2,0\n");
    assert_eq!(read(), "b.csv: class 0 is `dog` here and `cat` elsewhere");
    write("b.csv", "cat,dog\n1,2\n");
    assert_eq!(read(), "b.csv: has no labels, the files before have");
    write("b.jsonl", "{}");
    assert!(read().contains("several formats (CSV, JSON Lines)"));
    let empty = tempfile::tempdir().unwrap();
    assert!(refusal(empty.path()).contains("holds no data files"));
}

fn refusal(path: &Path) -> String {
    read(path).unwrap_err().to_string()
}

#[test]
fn given_names_must_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = Write::Csv.write(&Sample::new(5, 3), folder.path());
    let with = |names: &[&str]| {
        let names = ClassNames::new(names.iter().map(|&name| name.to_owned()).collect()).unwrap();
        let options = SourceOptions { names: Some(names), ..required() };
        read_with(&Data::Files(vec![path.clone()]), &options).unwrap_err().to_string()
    };
    assert!(with(&["a", "b"]).ends_with("has 3 classes, 2 were expected"));
    assert!(with(&["kläss 1", "kläss 2"]).ends_with("`kläss 0` is not among the expected classes"));
    assert!(with(&["kläss 0", "kläss 1", "x"]).ends_with("class 2 is `kläss 2` here and `x` elsewhere"));
}

#[test]
fn a_pair_of_different_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let (logits, _) = Sample::new(20, 5).write_pair(folder.path(), "");
    let (_, labels) = Sample::new(19, 5).write_pair(folder.path(), "");
    let (long, _) = Sample::new(20, 5).write_pair(folder.path(), "-long");
    std::fs::rename(long, &logits).unwrap();
    let error = read_with(&Data::Pair { logits, labels: Some(labels) }, &required()).unwrap_err().to_string();
    assert!(error.ends_with("labels.npy: 19 labels for 20 rows of logits"), "{error}");
}

/// Cut anywhere, or with any byte changed, a file is read or refused: nothing panics and nothing runs away.
#[test]
fn damaged_files_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::new(9, 3);
    for (write, _, _) in Write::ALL {
        let path = write.write(&sample, folder.path());
        let whole = std::fs::read(&path).unwrap();
        let step = (whole.len() / 97).max(1);
        for end in (0..whole.len()).step_by(step) {
            std::fs::write(&path, &whole[..end]).unwrap();
            let outcome = read(&path);
            assert!(outcome.is_err() || matches!(outcome, Ok(rows) if rows <= 9), "{write:?} cut at {end}");
        }
        for at in (0..whole.len()).step_by(step) {
            for flip in [0xff, 0x01] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                std::fs::write(&path, &bytes).unwrap();
                let outcome = std::panic::catch_unwind(|| read(&path).map_err(|error| error.to_string()));
                assert!(outcome.is_ok(), "{write:?}: byte {at} xor {flip:#x} panicked");
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// What the arithmetic finds is reported with the file and row the user knows.
#[test]
fn faults_found_later_are_located_in_their_shard() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "cat,dog,label\n1,2,0\n1,2,0\n").unwrap();
    std::fs::write(folder.path().join("b.csv"), "cat,dog,label\n1,2,0\n1,nan,0\n-inf,-inf,0\n").unwrap();
    let mut source =
        Source::open(&Data::Files(vec![folder.path().to_owned()]), &SourceOptions::default()).unwrap();
    let mut block = Block::default();
    while source.read(&mut block).unwrap() {}
    assert_eq!(block.first_row, 2);
    let conformax_io::Values::F64(values) = &block.logits else { panic!("CSV is f64") };
    let logits = conformax::Logits::new(values, 2).unwrap();
    let rows = logits.labelled(&[0, 0, 0]).unwrap();
    let error = conformax::score_labels(&conformax::ScoreSpec::default(), rows).unwrap_err();
    let message = source.error_in(&block, error).to_string();
    assert!(message.contains("b.csv: row 1, class 1: logit is NaN"), "{message}");
    let masked = source.error_in(&block, conformax::Error::AllMasked { row: 2 }).to_string();
    assert!(masked.contains("b.csv: row 2: every logit is -inf"), "{masked}");
}
