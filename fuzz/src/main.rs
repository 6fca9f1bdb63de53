//! The fuzz targets, all in one program: `CONFORMAX_FUZZ_TARGET` says which. `scripts/fuzz` builds and runs it.
#![no_main]

mod calibration_file;
mod data_files;
mod limits;
#[path = "../../crates/conformax/src/kernel/math.rs"]
#[allow(dead_code, reason = "the reference needs some of it")]
mod math;
mod plain;
mod request;
mod rows;
mod study_file;

use std::panic::{catch_unwind, set_hook};
use std::sync::{Mutex, OnceLock};

#[global_allocator]
static MEMORY: limits::Counting = limits::Counting;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
/// What the last panic said. Some are caught on purpose: the Arrow crates panic on damaged files.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

libfuzzer_sys::fuzz_target!(init: start(), |input: &[u8]| {
    let target = TARGET.get().expect("set at the start");
    if catch_unwind(|| limits::within_limits(target, input)).is_err() {
        eprintln!("{}", LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        std::process::abort();
    }
});

fn start() {
    let name = std::env::var("CONFORMAX_FUZZ_TARGET").unwrap_or_default();
    let target = target(&name).unwrap_or_else(|| {
        eprintln!("CONFORMAX_FUZZ_TARGET is {name:?}, which is no folder of fuzz/corpus");
        std::process::exit(2)
    });
    TARGET.get_or_init(|| target);
    // libFuzzer's own hook ends the process at every panic, caught or not.
    set_hook(Box::new(|panic| {
        *LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = panic.to_string();
    }));
}

fn target(name: &str) -> Option<fn(&[u8])> {
    Some(match name {
        "npy" => |input| {
            data_files::read("npy", input);
            data_files::read_labels(input);
        },
        "npz" => |input| data_files::read("npz", input),
        "parquet" => |input| data_files::read("parquet", input),
        "arrow" => |input| {
            data_files::read("arrow", input);
            request::read_table(input);
        },
        "csv" => |input| data_files::read("csv", input),
        "jsonl" => |input| data_files::read("jsonl", input),
        "safetensors" => |input| data_files::read("safetensors", input),
        "class_names" => data_files::read_class_names,
        "model" => calibration_file::read_model,
        "request" => request::read_request,
        "study" => study_file::read_study,
        "rows" => rows::check,
        _ => return None,
    })
}
