//! Arrow tables that are not what they should be: cut, of another width, with what is no logit, too long, too large.

use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, FixedSizeListArray, ListArray, RecordBatch};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use serde_json::{Value, json};

use crate::folder::{CLASSES, Folder};
use crate::service::{Answer, Service};

const STREAM: &str = "application/vnd.apache.arrow.stream";
const FILE: &str = "application/vnd.apache.arrow.file";

/// These rows as a table in each form, under its content type.
fn tables(rows: &[Vec<f64>]) -> [(&'static str, Vec<u8>); 2] {
    let logits = rows.iter().map(|row| Some(row.iter().map(|value| Some(*value))));
    of_column(Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(logits)), false)
}

fn of_column(logits: ArrayRef, compressed: bool) -> [(&'static str, Vec<u8>); 2] {
    let batch = RecordBatch::try_from_iter([("logits", logits)]).unwrap();
    let options = || {
        let plain = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).unwrap();
        plain.try_with_compression(compressed.then_some(CompressionType::ZSTD)).unwrap()
    };
    let mut stream = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options()).unwrap();
    let mut file = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options()).unwrap();
    stream.write(&batch).unwrap();
    file.write(&batch).unwrap();
    [(STREAM, stream.into_inner().unwrap()), (FILE, file.into_inner().unwrap())]
}

fn post(service: &Service, kind: &str, table: &[u8]) -> Answer {
    service.client().ask("POST", "/v1/predict", &[("content-type", kind)], table).unwrap()
}

fn good(rows: usize) -> Vec<Vec<f64>> {
    (0..rows).map(|row| (0..CLASSES).map(|class| (row * class % 5) as f64).collect()).collect()
}

#[test]
fn wrong_tables_get_problems_that_say_where() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --max-rows 3 --max-body 1");
    let with = |row: usize, class: usize, value: f64| {
        let mut rows = good(3);
        rows[row][class] = value;
        rows
    };
    let narrow: Vec<Vec<f64>> = good(2).into_iter().map(|row| row[1..].to_vec()).collect();
    let ragged = vec![vec![0.0; CLASSES], vec![0.0; CLASSES - 1]];
    for (name, rows, status, row, class) in [
        ("NaN", with(1, 3, f64::NAN), 422, json!(1), json!(3)),
        ("infinite", with(2, 5, f64::INFINITY), 422, json!(2), json!(5)),
        ("masked", vec![good(1)[0].clone(), vec![f64::NEG_INFINITY; CLASSES]], 422, json!(1), Value::Null),
        ("narrow", narrow, 422, Value::Null, Value::Null),
        ("ragged", ragged, 422, json!(1), Value::Null),
        ("long", good(4), 413, Value::Null, Value::Null),
    ] {
        for (kind, table) in tables(&rows) {
            let problem = post(&service, kind, &table).problem(status);
            assert_eq!((&problem["row"], &problem["class"]), (&row, &class), "{name}, {kind}: {problem}");
        }
    }
    // Nothing of that has left a trace, and it goes on as before.
    assert_eq!(service.status("model")["predicted"], 0);
    for (kind, table) in tables(&good(3)) {
        assert_eq!(post(&service, kind, &table).status, 200, "{kind}");
    }
    assert_eq!(service.status("model")["predicted"], 6);
}

/// Whoever sends them is told with every answer, and whoever runs the service once for each model.
#[test]
fn rows_that_look_like_probabilities_are_told_of() {
    let folder = Folder::with_model();
    folder.write("other.json", folder.read("model.json"));
    let mut service = Service::start(&folder, "a=model.json b=other.json");
    let wanted = "these rows are not negative and sum to 1, as probabilities do, and are taken for logits; if that is \
                  what they are, give the logits";
    let json = |path: &str, rows: &[Vec<f64>]| {
        let rows: Vec<Value> = rows.iter().map(|row| json!({ "logits": row })).collect();
        service.post(path, &json!({ "rows": rows }).to_string()).json()
    };
    let mut rows = vec![vec![0.5, 0.25, 0.125, 0.125, 0.0, 0.0]; 3];
    for _ in 0..2 {
        let answer = json("/v1/predict", &rows);
        assert!(answer["warning"].as_str().unwrap().starts_with(wanted), "{answer}");
        let described = service.get("/openapi.json").json();
        let known = described["components"]["schemas"]["Sets"]["properties"].as_object().unwrap();
        assert!(answer.as_object().unwrap().keys().eq(known.keys()), "{answer}");
        for (kind, table) in tables(&rows) {
            let answer = post(&service, kind, &table);
            assert!(answer.head.contains(&format!("conformax-warning: {wanted}")), "{kind}: {}", answer.head);
        }
    }
    assert!(json("/v1/predict?model=b", &rows)["warning"].is_string());
    // One row is enough to know better.
    rows.push(good(2)[1].clone());
    assert_eq!(json("/v1/predict", &rows)["warning"], Value::Null);
    for (kind, table) in tables(&rows) {
        let answer = post(&service, kind, &table);
        assert!(
            answer.status == 200 && !answer.head.contains("conformax-warning"),
            "{kind}: {}",
            answer.head
        );
    }
    // What is said comes in order, so that nothing of the first model is on its way once the second is told of.
    service.wait_until(|service| service.notes().contains("b: warning: "));
    assert_eq!(service.notes().matches(wanted).count(), 2, "{}", service.notes());
}

/// Cut anywhere it is refused; a stream that ends where a message does is a whole one of fewer messages.
#[test]
fn tables_that_are_cut_are_refused() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json");
    for (kind, table) in tables(&good(3)) {
        let mut whole = 0;
        for cut in (0..table.len()).step_by(4) {
            let answer = post(&service, kind, &table[..cut]);
            match answer.status {
                200 if kind == STREAM => whole += 1,
                _ => drop(answer.problem(422)),
            }
        }
        // After the schema, and with all rows and without the mark of the end or with a half of it.
        assert!(whole <= 3, "{kind}: {whole}");
    }
}

/// Some kilobytes that would be 24 megabytes.
#[test]
fn tables_that_inflate_beyond_bounds_are_refused() {
    let folder = Folder::with_model();
    let service = Service::start(&folder, "model.json --max-rows 10000000 --max-body 1");
    let rows = (0..500_000).map(|_| Some([Some(0.0); CLASSES]));
    let logits = FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows, CLASSES as i32);
    for (kind, table) in of_column(Arc::new(logits), true) {
        assert!(table.len() < 1 << 20, "{} bytes are refused for their number", table.len());
        let problem = post(&service, kind, &table).problem(422);
        assert!(problem["detail"].as_str().unwrap().contains("24000"), "{kind}: {problem}");
    }
    assert_eq!(service.status("model")["predicted"], 0);
}
