//! Every seed that fuzzing started from or found, through the readers: none panics, hangs or takes too much memory.

#[path = "../../../fuzz/src/calibration_file.rs"]
mod calibration_file;
#[path = "../../../fuzz/src/data_files.rs"]
mod data_files;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/request.rs"]
mod request;

use replay::replay;

#[global_allocator]
static MEMORY: limits::Counting = limits::Counting;

#[test]
fn npy() {
    replay("npy", |seed| data_files::read("npy", seed));
    replay("npy", data_files::read_labels);
}

#[test]
fn npz() {
    replay("npz", |seed| data_files::read("npz", seed));
}

#[test]
fn parquet() {
    replay("parquet", |seed| data_files::read("parquet", seed));
}

#[test]
fn arrow() {
    replay("arrow", |seed| data_files::read("arrow", seed));
    replay("arrow", request::read_table);
}

#[test]
fn csv() {
    replay("csv", |seed| data_files::read("csv", seed));
}

#[test]
fn jsonl() {
    replay("jsonl", |seed| data_files::read("jsonl", seed));
}

#[test]
fn safetensors() {
    replay("safetensors", |seed| data_files::read("safetensors", seed));
}

#[test]
fn class_names() {
    replay("class_names", data_files::read_class_names);
}

#[test]
fn model() {
    replay("model", calibration_file::read_model);
}

#[test]
fn request() {
    replay("request", request::read_request);
}
