//! `kill -9` at every moment in the life of an output: what has the final name is whole, and the next run clears the
//! rest away.
//!
//! The runs hold still at the moment that is asked for, so nothing here depends on how fast or busy the machine is.
//! Only builds with debug assertions can be held.

use std::collections::BTreeMap;

use crate::folder::{Folder, Rows, SMALL_STUDY};
use crate::held::kill_at;
use crate::{contents, files_below};

/// In the order in which an output goes through them.
const BEFORE_IT_IS_NAMED: [&str; 4] = ["created", "cleared", "written", "synced"];

fn is_temporary(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.starts_with('.') && name.contains(".conformax-") && name.ends_with(".tmp")
}

/// Removes everything that was not there at the beginning.
fn reset(folder: &Folder, inputs: &BTreeMap<String, Vec<u8>>) {
    for name in files_below(folder.path()) {
        if !inputs.contains_key(&name) {
            std::fs::remove_file(folder.file(&name)).unwrap();
        }
    }
}

/// Kills a run at each moment of each output, of which the last one says that the run had done all it had to do.
fn survives(folder: &Folder, words: &str, outputs: &[&str]) {
    let finished = *outputs.last().unwrap();
    let inputs = contents(folder.path());
    folder.run(words).ok();
    let undisturbed = contents(folder.path());
    for output in outputs {
        for moment in BEFORE_IT_IS_NAMED.into_iter().chain(["named"]) {
            reset(folder, &inputs);
            kill_at(moment, output, &mut folder.command(words));
            let how = format!("{words}: killed when {output} was {moment}");
            let mut left = contents(folder.path());
            left.retain(|name, _| !is_temporary(name));
            for (name, bytes) in &left {
                assert!(undisturbed[name] == *bytes, "{how}: {name} is not whole");
            }
            let has_its_name = !BEFORE_IT_IS_NAMED.contains(&moment);
            assert_eq!(left.contains_key(*output), has_its_name, "{how}");
            let next = folder.run(words);
            if has_its_name && *output == finished {
                assert!(next.error().contains("exists already"), "{how}");
            } else {
                next.ok();
            }
            assert!(contents(folder.path()) == undisturbed, "{how}: the next run");
        }
    }
    reset(folder, &inputs);
}

/// As above, where the output exists and is to be replaced: it stays as it was until the new one is whole.
fn replaces_whole(folder: &Folder, words: &str, output: &str) {
    folder.run(words).ok();
    let (new, names) = (folder.read(output), folder.names());
    for moment in BEFORE_IT_IS_NAMED.into_iter().chain(["named"]) {
        folder.write(output, "old");
        kill_at(moment, output, &mut folder.command(words));
        let expected = if moment == "named" { &new[..] } else { b"old" };
        assert!(folder.read(output) == expected, "{words}: killed when it was {moment}");
        folder.run(words).ok();
        assert!(folder.read(output) == new, "{words}: killed when it was {moment}");
        assert_eq!(folder.names(), names, "{words}: killed when it was {moment}");
    }
}

#[test]
fn predict_is_whole_or_absent() {
    let folder = Folder::with_model();
    survives(&folder, "predict model.json test.npz --probabilities -o sets.jsonl", &["sets.jsonl"]);
    replaces_whole(&folder, "predict model.json test.npz --force -o sets.parquet", "sets.parquet");
}

#[test]
fn calibrate_is_whole_or_absent() {
    let folder = Folder::with_model();
    survives(&folder, "calibrate cal.npz --alpha 0.1 --alpha 0.05 -o other.json", &["other.json"]);
    replaces_whole(&folder, "calibrate cal.npz --force -o other.json", "other.json");
}

#[test]
fn a_study_is_whole_or_can_be_repeated() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(300, 1).npz());
    folder.write("small.toml", SMALL_STUDY);
    let outputs = ["out/results.csv", "out/report/index.html", "out/results.json"];
    survives(&folder, "study small.toml -o out", &outputs);
}
