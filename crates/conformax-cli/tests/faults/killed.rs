//! `kill -9` at twenty random moments: what has the final name is whole, and the next run clears the rest away.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::folder::{Folder, Rows, SMALL_STUDY};
use crate::{contents, files_below};

const MOMENTS: usize = 20;

/// Moments within a run that takes `whole`, and a little after it; the same in every run of the test.
fn moments(whole: Duration) -> impl Iterator<Item = Duration> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        whole.mul_f64(1.05 * (state >> 11) as f64 / (1u64 << 53) as f64)
    })
    .take(MOMENTS)
}

fn is_temporary(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with('.') && name.contains(".conformax-") && name.ends_with(".tmp")
}

/// Starts the command and kills it after a while.
fn kill_after(folder: &Folder, words: &str, moment: Duration) {
    let mut child = folder.command(words).spawn().unwrap();
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Removes everything that was not there at the beginning.
fn reset(folder: &Folder, inputs: &BTreeMap<String, Vec<u8>>) {
    for name in files_below(folder.path()) {
        if !inputs.contains_key(&name) {
            std::fs::remove_file(folder.file(&name)).unwrap();
        }
    }
}

/// Kills a run at each moment; `finished` is there exactly when the run had done all it had to do.
fn survives(folder: &Folder, words: &str, finished: &str) {
    let inputs = contents(folder.path());
    let start = Instant::now();
    folder.run(words).ok();
    let whole_run = start.elapsed();
    let undisturbed = contents(folder.path());
    let mut cut_short = 0;
    for moment in moments(whole_run) {
        reset(folder, &inputs);
        kill_after(folder, words, moment);
        let mut left = contents(folder.path());
        left.retain(|name, _| !is_temporary(name));
        for (name, bytes) in &left {
            assert!(undisturbed[name] == *bytes, "{words}: {name} is not whole, killed after {moment:?}");
        }
        let next = folder.run(words);
        if left.contains_key(finished) {
            assert!(next.error().contains("exists already"));
        } else {
            cut_short += 1;
            next.ok();
        }
        assert!(contents(folder.path()) == undisturbed, "{words}: killed after {moment:?}");
    }
    reset(folder, &inputs);
    assert!(cut_short >= MOMENTS / 2, "{words}: only {cut_short} runs were killed before their end");
}

/// As above, where the output exists and is to be replaced: it stays as it was until the new one is whole.
fn replaces_whole(folder: &Folder, words: &str, output: &str) {
    let start = Instant::now();
    folder.run(words).ok();
    let (whole_run, new) = (start.elapsed(), folder.read(output));
    let names = folder.names();
    for moment in moments(whole_run) {
        folder.write(output, "old");
        kill_after(folder, words, moment);
        let found = folder.read(output);
        assert!(found == b"old" || found == new, "{words}: killed after {moment:?}");
        folder.run(words).ok();
        assert!(folder.read(output) == new);
        assert_eq!(folder.names(), names);
    }
}

fn folder() -> Folder {
    let folder = Folder::empty();
    folder.write("cal.npz", Rows::new(4000, 1).npz());
    folder.write("test.npz", Rows::new(4000, 2).npz());
    folder.run("calibrate cal.npz -o model.json").ok();
    folder
}

#[test]
fn predict_is_whole_or_absent() {
    survives(&folder(), "predict model.json test.npz --probabilities -o sets.jsonl", "sets.jsonl");
    replaces_whole(&folder(), "predict model.json test.npz --force -o sets.parquet", "sets.parquet");
}

#[test]
fn calibrate_is_whole_or_absent() {
    survives(&folder(), "calibrate cal.npz --alpha 0.1 --alpha 0.05 -o other.json", "other.json");
    replaces_whole(&folder(), "calibrate cal.npz --force -o other.json", "other.json");
}

#[test]
fn a_study_is_whole_or_can_be_repeated() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(300, 1).npz());
    folder.write("small.toml", SMALL_STUDY);
    survives(&folder, "study small.toml -o out", "out/results.json");
}
