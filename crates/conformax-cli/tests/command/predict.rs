//! `predict`: the sets in the file are the library's, in every format and with every column.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use conformax::{Alpha, Calibration, EntmaxScore, PredictionSets};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::folder::{Folder, Rows, lines};

fn calibration() -> Calibration<EntmaxScore> {
    let cal = Rows::new(200, 1);
    Calibration::of(EntmaxScore::default(), cal.as_logits().labelled(&cal.labels).unwrap()).unwrap()
}

fn sets(alpha: f64) -> PredictionSets {
    calibration().at(Alpha::new(alpha).unwrap()).0.predict(Rows::new(300, 2).as_logits()).unwrap()
}

fn labels(line: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(line["labels"].clone()).unwrap()
}

#[test]
fn lines_look_like_this() {
    let folder = Folder::with_model();
    folder.write("few.csv", "0,1,2,3,4,5,id\n4,0,1,0,0,0,first\n2,2.5,0,0,1,2,\"se,cond\"\n");
    let head = "predict model.json few.csv --keep id";
    insta::assert_snapshot!(folder.run(head).seen());
    insta::assert_snapshot!(folder.run(&format!("{head} --probabilities --p-values --alpha 0.1,0.4")).seen());
    insta::assert_snapshot!(
        folder.run(&format!("{head} --all-p-values --format csv --alpha 0.1,0.4")).seen()
    );
}

#[test]
fn sets_are_the_librarys() {
    let folder = Folder::with_model();
    let ran = folder.run("predict model.json test.npz").ok();
    let wanted = sets(0.1);
    let lines = lines(&ran.out);
    assert_eq!(lines.len(), 300);
    for (row, line) in lines.iter().enumerate() {
        assert_eq!(line["row"], row);
        assert_eq!(labels(line), wanted.get(row).unwrap());
        assert_eq!(line["size"], wanted.get(row).unwrap().len());
    }
}

#[test]
fn levels_come_row_by_row_in_the_order_asked_for() {
    let folder = Folder::with_model();
    let ran = folder.run("predict model.json test.npz --alpha 0.3 --confidence 0.95").ok();
    let (loose, tight) = (sets(0.3), sets(0.05));
    let lines = lines(&ran.out);
    assert_eq!(lines.len(), 600);
    for (index, line) in lines.iter().enumerate() {
        let row = index / 2;
        let (sets, alpha) = if index % 2 == 0 { (&loose, 0.3) } else { (&tight, 0.05) };
        assert_eq!((line["row"].as_u64(), line["alpha"].as_f64()), (Some(row as u64), Some(alpha)));
        assert_eq!(labels(line), sets.get(row).unwrap(), "row {row} at {alpha}");
    }
}

#[test]
fn probabilities_and_p_values_stand_beside_their_labels() {
    let folder = Folder::with_model();
    let test = Rows::new(300, 2);
    let (calibration, alpha) = (calibration(), Alpha::new(0.1).unwrap());
    let (sets, p) = calibration.at(alpha).0.predict_probabilities(test.as_logits()).unwrap();
    let p_values = calibration.p_values(test.as_logits()).unwrap();
    let ran = folder.run("predict model.json test.npz --probabilities --p-values").ok();
    let numbers = |line: &serde_json::Value, key: &str| -> Vec<f64> {
        serde_json::from_value(line[key].clone()).unwrap()
    };
    for (row, line) in lines(&ran.out).iter().enumerate() {
        assert_eq!(numbers(line, "probabilities"), p[sets.offsets()[row]..sets.offsets()[row + 1]]);
        let of = |label: &u32| p_values[row * crate::folder::CLASSES + *label as usize].value();
        assert_eq!(numbers(line, "p_values"), sets.get(row).unwrap().iter().map(of).collect::<Vec<_>>());
    }
    let ran = folder.run("predict model.json test.npz --all-p-values").ok();
    let all: Vec<f64> = lines(&ran.out).iter().flat_map(|line| numbers(line, "p_values")).collect();
    assert_eq!(all, p_values.iter().map(|p| p.value()).collect::<Vec<_>>());
}

fn parquet(folder: &Folder, name: &str) -> Vec<RecordBatch> {
    let file = File::open(folder.file(name)).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect()
}

fn arrow(folder: &Folder, name: &str) -> Vec<RecordBatch> {
    let file = File::open(folder.file(name)).unwrap();
    arrow_ipc::reader::FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect()
}

/// Row, labels, size and probabilities of every set.
type Set = (u64, Vec<u32>, u32, Vec<f64>);

fn sets_of(batches: &[RecordBatch]) -> Vec<Set> {
    let mut sets = Vec::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        for index in 0..batch.num_rows() {
            let labels = column("labels").as_list::<i32>().value(index);
            let probabilities = column("probabilities").as_list::<i32>().value(index);
            sets.push((
                column("row").as_primitive::<UInt64Type>().value(index),
                labels.as_primitive::<UInt32Type>().values().to_vec(),
                column("size").as_primitive::<UInt32Type>().value(index),
                probabilities.as_primitive::<Float64Type>().values().to_vec(),
            ));
        }
    }
    sets
}

#[test]
fn every_output_format_holds_the_same_sets() {
    let folder = Folder::with_model();
    for name in ["sets.parquet", "sets.arrow", "sets.jsonl", "sets.csv"] {
        folder.run(&format!("predict model.json test.npz --probabilities -o {name}")).ok();
    }
    let from_lines: Vec<Set> = lines(&folder.text("sets.jsonl"))
        .iter()
        .map(|line| {
            let p = serde_json::from_value(line["probabilities"].clone()).unwrap();
            (line["row"].as_u64().unwrap(), labels(line), line["size"].as_u64().unwrap() as u32, p)
        })
        .collect();
    let text = folder.text("sets.csv");
    assert_eq!(text.lines().next(), Some("row,labels,size,probabilities"));
    let from_csv = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        (
            cells[0].parse().unwrap(),
            cells[1].split('|').map(|label| label.parse().unwrap()).collect(),
            cells[2].parse().unwrap(),
            cells[3].split('|').map(|p| p.parse().unwrap()).collect(),
        )
    });
    assert_eq!(from_lines.len(), 300);
    assert_eq!(from_csv.collect::<Vec<Set>>(), from_lines);
    assert_eq!(sets_of(&parquet(&folder, "sets.parquet")), from_lines);
    assert_eq!(sets_of(&arrow(&folder, "sets.arrow")), from_lines);
}

#[test]
fn columns_have_the_documented_types_and_order() {
    let folder = Folder::with_model();
    let line = "{\"logits\":[0,1,2,3,4,5],\"id\":7,\"name\":\"x\",\"ok\":true,\"weight\":0.5}\n";
    folder.write("new.jsonl", line);
    folder.write("names.txt", "ant\nbee\ncat\ndog\nelk\nfox\n");
    let all = "--keep id,name,ok,weight --probabilities --p-values --alpha 0.1,0.2";
    folder.run(&format!("predict model.json new.jsonl {all} -o sets.parquet")).ok();
    folder.run(&format!("predict model.json new.jsonl {all} --names names.txt -o named.parquet")).ok();
    let schema = |name: &str| -> String {
        let batches = parquet(&folder, name);
        let fields = batches[0].schema();
        let shown: Vec<String> =
            fields.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        shown.join("\n")
    };
    insta::assert_snapshot!(schema("sets.parquet"));
    insta::assert_snapshot!(schema("named.parquet"));
    let batches = parquet(&folder, "named.parquet");
    let labels = batches[0].column_by_name("labels").unwrap().as_list::<i32>().value(0);
    assert_eq!(labels.as_string::<i32>().value(0), "fox");
    let taken = folder.run("predict model.json new.jsonl --keep size").error();
    assert!(taken.contains("size"), "{taken}");
}

#[test]
fn names_travel_from_the_data_into_the_sets() {
    let folder = Folder::empty();
    folder.write("cal.csv", "cat,dog,eel,label\n3,1,0,cat\n0,2,1.5,eel\n1,0,4,eel\n2,2.5,0,cat\n");
    folder.run("calibrate cal.csv --alpha 0.2 -o model.json").ok();
    folder.write("new.npy", crate::written::npy("<f4", false, &[1, 3], &row_bytes([2.0, 1.75, -1.0])));
    let ran = folder.run("predict model.json new.npy").ok();
    assert_eq!(ran.out, "{\"row\":0,\"labels\":[\"cat\",\"dog\"],\"size\":2}\n");
}

fn row_bytes(row: [f32; 3]) -> Vec<u8> {
    row.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn empty_sets_get_the_top_label_on_request() {
    let folder = Folder::with_data();
    folder.run("calibrate cal.npz --score lac --alpha 0.6 -o model.json").ok();
    let sizes = |words: &str| -> Vec<u64> {
        let ran = folder.run(&format!("predict model.json test.npz {words}")).ok();
        lines(&ran.out).iter().map(|line| line["size"].as_u64().unwrap()).collect()
    };
    let (plain, filled) = (sizes(""), sizes("--non-empty"));
    assert!(plain.contains(&0));
    assert!(!filled.contains(&0));
    assert!(plain.iter().zip(&filled).all(|(plain, filled)| (*plain).max(1) == *filled));
}

#[test]
fn threads_change_nothing() {
    let folder = Folder::with_model();
    folder.run("predict model.json test.npz --probabilities --threads 1 -o one.parquet").ok();
    folder.run("predict model.json test.npz --probabilities --threads 3 -o three.parquet").ok();
    assert_eq!(folder.read("one.parquet"), folder.read("three.parquet"));
}

#[test]
fn an_existing_output_is_kept_unless_forced() {
    let folder = Folder::with_model();
    folder.write("sets.csv", "precious");
    let message = folder.run("predict model.json test.npz -o sets.csv").error();
    assert!(message.contains("sets.csv: exists already") && message.contains("--force"), "{message}");
    assert_eq!(folder.text("sets.csv"), "precious");
    folder.run("predict model.json test.npz -o sets.csv --force").ok();
    assert!(folder.text("sets.csv").starts_with("row,labels,size\n"));
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    use std::io::{BufRead, BufReader};
    let folder = Folder::with_model();
    folder.write("long.npz", Rows::new(60_000, 9).npz());
    let mut child = folder.command("predict model.json long.npz").spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"row\":0"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
