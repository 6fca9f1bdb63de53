//! What the world does to a run: full disks, killed processes, damaged and changing files, company at the output.
//!
//! After each of them the output is absent or whole, the message says what happened, and the next run finds nothing in
//! its way.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod changing;
mod company;
mod damaged;
mod disk;
#[cfg(debug_assertions)]
mod held;
#[cfg(debug_assertions)]
mod killed;
mod read_only;

#[allow(dead_code, reason = "shared with the tests of the command, which use more of it")]
#[path = "../command/folder.rs"]
mod folder;
#[path = "../../../conformax-io/tests/written/mod.rs"]
mod written;

/// In a release nothing can be held (see `killed.rs`).
#[cfg(all(target_os = "linux", not(debug_assertions)))]
#[test]
fn kills_at_named_moments() {
    folder::skipped("killing runs at named moments needs a build with debug assertions");
}

/// The commands that write files, each with an output named by itself.
const WRITERS: [&str; 8] = [
    "calibrate cal.npz -o other.json",
    "tune cal.npz -o other.json",
    "predict model.json test.npz -o sets.parquet",
    "predict model.json test.npz -o sets.arrow",
    "predict model.json test.npz -o sets.jsonl",
    "predict model.json test.npz -o sets.csv",
    "split test.npz -o a.npz b.npz",
    "study small.toml -o out",
];

/// A folder in which all of them can run.
fn folder_for_writers() -> folder::Folder {
    let folder = folder::Folder::with_model();
    folder.write("data.npz", folder::Rows::new(300, 1).npz());
    folder.write("small.toml", folder::SMALL_STUDY);
    folder
}

/// Paths of all files below a folder, hidden ones too, relative to it and sorted; empty folders do not count.
fn files_below(folder: &std::path::Path) -> Vec<String> {
    fn walk(folder: &std::path::Path, top: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, top, found),
                false => found.push(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

/// All files below a folder with their bytes. A study tells how long it took, which is never the same.
fn contents(folder: &std::path::Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        let bytes = match name.rsplit('/').next() {
            Some("results.json") => results_without_duration(&bytes),
            Some("index.html") => page_without_duration(bytes),
            _ => bytes,
        };
        (name, bytes)
    };
    files_below(folder).into_iter().map(read).collect()
}

fn results_without_duration(results: &[u8]) -> Vec<u8> {
    let mut json: serde_json::Value = serde_json::from_slice(results).expect("results.json is whole");
    json["provenance"]["duration_seconds"].take();
    json.to_string().into_bytes()
}

fn page_without_duration(page: Vec<u8>) -> Vec<u8> {
    let page = String::from_utf8(page).unwrap();
    let (before, after) = page.split_once("Duration").expect("the page tells how long the study took");
    let (_, rest) = after.split_once(" s<").expect("the duration is in seconds");
    format!("{before}{rest}").into_bytes()
}
