//! Which columns are classes, labels or neither, and what a label means: the same in every format.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field};
use conformax_io::{Block, ClassNames, Data, LabelUse, LabelsAre, Source, SourceOptions};

struct Read {
    logits: Vec<f64>,
    labels: Vec<u32>,
    names: Option<Vec<String>>,
    keep: Vec<(String, Vec<String>)>,
}

fn read(path: &Path, options: &SourceOptions) -> Result<Read, String> {
    read_data(&Data::Files(vec![path.to_owned()]), options)
}

fn read_data(data: &Data, options: &SourceOptions) -> Result<Read, String> {
    let told = |error: conformax_io::Error| {
        let text = error.to_string();
        text.rsplit_once('/').map_or(text.clone(), |(_, rest)| rest.to_owned())
    };
    let mut source = Source::open(data, options).map_err(told)?;
    let names = source.names().map(|names| names.as_slice().to_vec());
    let mut read = Read { logits: Vec::new(), labels: Vec::new(), names, keep: Vec::new() };
    let mut block = Block::default();
    while source.read(&mut block).map_err(told)? {
        read.logits.extend((0..block.logits.len()).map(|index| block.logits.get(index).unwrap()));
        read.labels.extend(block.labels.iter().flatten());
        read.keep = (block.keep.iter())
            .map(|column| {
                let cells = (0..block.rows()).map(|row| column.cells.text(row)).collect();
                (column.name.clone(), cells)
            })
            .collect();
    }
    Ok(read)
}

fn csv(text: &str, options: &SourceOptions) -> Result<Read, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, options)
}

fn refused(text: &str) -> String {
    csv(text, &required()).err().unwrap()
}

fn required() -> SourceOptions {
    SourceOptions { labels: LabelUse::Required, ..SourceOptions::default() }
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn parquet(columns: Vec<(&str, ArrayRef)>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.parquet");
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    (folder, path)
}

const WITH_ID: &str = "id,cat,dog,label\n17,2.5,0.5,cat\n4,0.25,1.5,dog\n90,0.5,0.25,cat\n";

#[test]
fn an_identifier_does_not_become_a_class() {
    let error = refused(WITH_ID);
    assert_eq!(
        error,
        "z.csv: column `id`: holds whole numbers that identify or number rows; whether it is a class must be said"
    );
    // So does one among logits that are whole numbers, as a quantised model gives.
    assert_eq!(refused("id,cat,dog,label\n17,2,0,cat\n4,0,3,dog\n90,5,1,cat\n"), error);
    let counting = refused("n,cat,dog,label\n1,2.5,0.5,cat\n2,0.25,1.5,dog\n3,0.5,0.25,cat\n");
    assert!(counting.starts_with("z.csv: column `n`: holds whole numbers"), "{counting}");
    let pandas = refused(",cat,dog,label\n0,2.5,0.5,cat\n1,0.25,1.5,dog\n");
    assert_eq!(pandas, "z.csv: column 0 has no name; whether it is a class must be said");
    assert_eq!(refused("cat,dog,label,label\n1,2,0,1\n"), "z.csv: the column `label` occurs twice");
    assert!(refused("cat,dog,label,labels\n1,2,0,1\n").contains("which of them holds the labels"));
}

#[test]
fn columns_are_what_they_are_said_to_be() {
    let logits = [2.5, 0.5, 0.25, 1.5, 0.5, 0.25];
    let ways = [
        SourceOptions { drop: list(&["id"]), ..required() },
        SourceOptions { keep: list(&["id", "id"]), ..required() },
        SourceOptions { classes: Some(list(&["cat", "dog"])), ..required() },
    ];
    for options in ways {
        let got = csv(WITH_ID, &options).unwrap();
        assert_eq!((got.logits.as_slice(), got.labels.as_slice()), (&logits[..], &[0, 1, 0][..]));
        let kept =
            if options.keep.is_empty() { vec![] } else { vec![("id".to_owned(), list(&["17", "4", "90"]))] };
        assert_eq!(got.keep, kept);
    }
    let all = SourceOptions { classes: Some(list(&["dog", "id", "cat"])), ..required() };
    assert_eq!(csv(WITH_ID, &all).unwrap().logits[..3], [0.5, 17.0, 2.5]);
    let label = SourceOptions { keep: list(&["label"]), drop: list(&["id"]), ..required() };
    let got = csv(WITH_ID, &label).unwrap();
    assert_eq!((got.labels, got.keep[0].1.clone()), (vec![0, 1, 0], list(&["cat", "dog", "cat"])));
    let error = |options| csv(WITH_ID, &options).err().unwrap();
    let missing = error(SourceOptions { drop: list(&["ids"]), ..required() });
    assert!(missing.starts_with("z.csv: no column `ids`; there are"), "{missing}");
    let column = error(SourceOptions { logits_column: Some("z".to_owned()), ..required() });
    assert!(column.contains("has one column per class"), "{column}");
}

#[test]
fn a_known_class_is_one_whatever_it_holds() {
    let names = ClassNames::new(list(&["id", "cat", "dog"])).unwrap();
    let options = SourceOptions { names: Some(names), ..required() };
    assert_eq!(csv(WITH_ID, &options).unwrap().labels, [1, 2, 1]);
}

#[test]
fn semicolons_tabs_marks_and_spaces_are_taken() {
    for text in [
        "cat;dog;label\n2.5;0.5;cat\n0.25;1.5;dog\n",
        "cat\tdog\tlabel\n2.5\t0.5\tcat\n0.25\t1.5\tdog\n",
        "\u{feff}cat, dog , label\r\n2.5, 0.5, cat\r\n0.25, 1.5 ,dog",
        "\n\u{feff}\"cat\",\"dog\",\"label\"\n2.5,0.5,cat\n\n0.25,1.5,dog\n".trim_start(),
    ] {
        let got = csv(text, &required()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(got.names, Some(list(&["cat", "dog"])), "{text:?}");
        assert_eq!((got.logits, got.labels), (vec![2.5, 0.5, 0.25, 1.5], vec![0, 1]), "{text:?}");
    }
    assert_eq!(
        refused("cat;dog;label\n2,5;0,5;cat\n"),
        "z.csv: row 0, column `cat`: `2,5` is not a number; decimals are written with a point"
    );
}

#[test]
fn a_mark_before_json_is_no_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.jsonl");
    std::fs::write(&path, "\u{feff}{\"logits\":[1,2],\"label\":[1]}\n").unwrap();
    assert_eq!(read(&path, &required()).unwrap().labels, [1]);
    let names = folder.path().join("names");
    std::fs::write(&names, "\u{feff}cat\ndog\n").unwrap();
    assert_eq!(ClassNames::read(&names).unwrap().as_slice(), ["cat", "dog"]);
}

#[test]
fn a_wide_table_reads_like_a_wide_text() {
    let columns = || -> Vec<(&str, ArrayRef)> {
        vec![
            ("id", Arc::new(Int64Array::from(vec![17, 4, 90])) as ArrayRef),
            ("cat", Arc::new(Float32Array::from(vec![2.5, 0.25, 0.5]))),
            ("dog", Arc::new(Float32Array::from(vec![0.5, 1.5, 0.25]))),
            ("label", Arc::new(StringArray::from(vec!["cat", "dog", "cat"]))),
        ]
    };
    let (_folder, path) = parquet(columns());
    let error = read(&path, &required()).err().unwrap();
    assert!(error.starts_with("z.parquet: column `id`: holds whole numbers"), "{error}");
    for options in [
        SourceOptions { drop: list(&["id"]), ..required() },
        SourceOptions { keep: list(&["id"]), block_bytes: 8, ..required() },
        SourceOptions { classes: Some(list(&["cat", "dog"])), ..required() },
    ] {
        let got = read(&path, &options).unwrap();
        assert_eq!(got.logits, [2.5, 0.5, 0.25, 1.5, 0.5, 0.25]);
        assert_eq!((got.labels, got.names), (vec![0, 1, 0], Some(list(&["cat", "dog"]))));
    }
    let text = ("note", Arc::new(StringArray::from(vec!["a", "b", "c"])) as ArrayRef);
    let (_folder, path) = parquet(columns().into_iter().skip(1).chain([text]).collect());
    let error = read(&path, &required()).err().unwrap();
    assert_eq!(error, "z.parquet: columns of classes must be numbers, got Utf8 in `note`");
    let lists: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Float32Type, _, _>([Some(vec![
            Some(1.0),
            Some(2.0),
        ])]));
    let (_folder, path) = parquet(vec![("X", lists), ("y", Arc::new(Int64Array::from(vec![0])))]);
    assert_eq!(read(&path, &required()).err().unwrap(), "z.parquet: no column `logits`; there are `X`, `y`");
    let asked = SourceOptions { classes: Some(list(&["a"])), ..required() };
    assert!(read(&path, &asked).is_err());
}

/// The same labels in every format and type; each must mean the same.
fn labelled(folder: &Path, names: &[&str], label: i64) -> Vec<(String, PathBuf)> {
    let header = names.join(",");
    let logits = vec!["0.5"; names.len()].join(",");
    let mut files = vec![
        ("z.csv".to_owned(), format!("{header},label\n{logits},{label}\n")),
        ("float.csv".to_owned(), format!("{header},label\n{logits},{label}.0\n")),
    ];
    let list = serde_json_list(names);
    for (name, written) in [
        ("integer.jsonl", label.to_string()),
        ("float.jsonl", format!("{label}.0")),
        ("text.jsonl", format!("\"{label}\"")),
        ("list.jsonl", format!("[{label}]")),
    ] {
        let line = format!("{{\"logits\":[{logits}],\"label\":{written},\"class_names\":{list}}}\n");
        files.push((name.to_owned(), line));
    }
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(&name);
        std::fs::write(&path, text).unwrap();
        paths.push((name, path));
    }
    for (name, labels) in [
        ("integer.parquet", Arc::new(Int64Array::from(vec![label])) as ArrayRef),
        ("float.parquet", Arc::new(Float64Array::from(vec![label as f64]))),
        ("text.parquet", Arc::new(StringArray::from(vec![label.to_string()]))),
        (
            "list.parquet",
            Arc::new(FixedSizeListArray::new(
                Arc::new(Field::new_list_field(DataType::Int64, true)),
                1,
                Arc::new(Int64Array::from(vec![label])),
                None,
            )),
        ),
    ] {
        let columns = names.iter().map(|&name| (name, Arc::new(Float64Array::from(vec![0.5])) as ArrayRef));
        let batch = RecordBatch::try_from_iter(columns.chain([("label", labels)])).unwrap();
        let path = folder.join(name);
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        paths.push((name.to_owned(), path));
    }
    paths
}

fn serde_json_list(names: &[&str]) -> String {
    format!("[{}]", names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(","))
}

#[test]
fn a_label_means_the_same_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let classes = |names: &[&str]| SourceOptions { classes: Some(list(names)), ..required() };
    for (name, path) in labelled(folder.path(), &["cat", "dog", "owl"], 2) {
        let wide = !name.ends_with("jsonl");
        let options = if wide { classes(&["cat", "dog", "owl"]) } else { required() };
        assert_eq!(read(&path, &options).unwrap().labels, [2], "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, path) in labelled(folder.path(), &["1", "2", "3"], 1) {
        let plain = if name.ends_with("jsonl") { required() } else { classes(&["1", "2", "3"]) };
        let error = read(&path, &plain).err().unwrap_or_else(|| panic!("{name} was not asked about"));
        assert!(error.contains("may be an index or a name"), "{name}: {error}");
        let indices = SourceOptions { labels_are: Some(LabelsAre::Indices), ..plain.clone() };
        assert_eq!(read(&path, &indices).unwrap().labels, [1], "{name}");
    }
}

#[test]
fn labels_in_lines_do_not_depend_on_the_lines_around_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("z.jsonl");
    let line =
        |label: &str| format!("{{\"logits\":[1,2],\"label\":{label},\"class_names\":[\"a\",\"b\"]}}\n");
    std::fs::write(&path, [line("1"), line("\"a\""), line("0"), line("true"), line("\"1\"")].concat())
        .unwrap();
    for block_bytes in [1, 1 << 20] {
        let options = SourceOptions { block_bytes, ..required() };
        assert_eq!(read(&path, &options).unwrap().labels, [1, 0, 0, 1, 1]);
    }
}

/// Labels of every type and shape that an array can have them in.
#[test]
fn labels_in_arrays_mean_what_they_mean_in_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let logits = || crate::written::npy("<f4", false, &[2, 2], &[0.5f32; 4].map(f32::to_le_bytes).concat());
    std::fs::write(path("z.npy"), logits()).unwrap();
    let types: [(&str, &str, Vec<u8>); 6] = [
        ("|b1", "BOOL", vec![1, 0]),
        ("|u1", "U8", vec![1, 0]),
        ("<i8", "I64", [1i64, 0].map(i64::to_le_bytes).concat()),
        ("<f4", "F32", [1.0f32, 0.0].map(f32::to_le_bytes).concat()),
        ("<f8", "F64", [1.0f64, 0.0].map(f64::to_le_bytes).concat()),
        ("<U1", "", ['1', '0'].map(|digit| u32::from(digit).to_le_bytes()).concat()),
    ];
    for (descr, dtype, data) in types {
        for shape in [&[2][..], &[2, 1]] {
            let labels = crate::written::npy(descr, false, shape, &data);
            std::fs::write(path("y.npy"), &labels).unwrap();
            let pair = Data::Pair { logits: path("z.npy"), labels: Some(path("y.npy")) };
            assert_eq!(read_data(&pair, &required()).unwrap().labels, [1, 0], "npy {descr} {shape:?}");
            let arrays = [("logits.npy", logits()), ("labels.npy", labels)];
            std::fs::write(path("z.npz"), crate::written::zip(&arrays, false, false)).unwrap();
            assert_eq!(read(&path("z.npz"), &required()).unwrap().labels, [1, 0], "npz {descr} {shape:?}");
            if dtype.is_empty() {
                continue;
            }
            let header = format!(
                r#"{{"logits":{{"dtype":"I16","shape":[2,2],"data_offsets":[0,8]}},"labels":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[8,{}]}}}}"#,
                8 + data.len()
            );
            let numbers = [3i16, -1, 0, 7].map(i16::to_le_bytes).concat();
            let head = (header.len() as u64).to_le_bytes();
            let bytes = [&head[..], header.as_bytes(), &numbers, &data].concat();
            std::fs::write(path("z.safetensors"), bytes).unwrap();
            let got = read(&path("z.safetensors"), &required()).unwrap();
            assert_eq!(
                (got.logits, got.labels),
                (vec![3.0, -1.0, 0.0, 7.0], vec![1, 0]),
                "{dtype} {shape:?}"
            );
        }
    }
}

#[test]
fn whole_and_boolean_columns_are_logits_and_labels() {
    let lists = FixedSizeListArray::new(
        Arc::new(Field::new_list_field(DataType::Int64, true)),
        2,
        Arc::new(Int64Array::from(vec![3, -1, 0, 7])),
        None,
    );
    let truth = BooleanArray::from(vec![true, false]);
    let (_folder, path) = parquet(vec![("logits", Arc::new(lists) as ArrayRef), ("label", Arc::new(truth))]);
    let got = read(&path, &required()).unwrap();
    assert_eq!((got.logits, got.labels), (vec![3.0, -1.0, 0.0, 7.0], vec![1, 0]));
    assert_eq!(csv("0,1,label\n1,2,True\n2,1,false\n", &required()).unwrap().labels, [1, 0]);
}
