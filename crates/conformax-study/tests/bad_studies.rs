//! A bad study fails before any work, with the line at fault.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use conformax_study::{Error, PAPER, RunOptions, Study};

/// The paper's study with one piece of text replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(PAPER.contains(from), "{from}");
    PAPER.replacen(from, to, 1)
}

/// The same with a benchmark of one's own, about which the paper claims nothing.
fn own(entry: &str) -> String {
    changed("name = \"newsgroups\"", entry).replace("claim_splits = 100\n", "")
}

fn fault(text: &str, folder: &Path) -> (usize, String, String) {
    let result = Study::parse(text, "my.toml", folder)
        .and_then(|study| study.run(&RunOptions::default(), &()).map(|_| ()));
    match result.unwrap_err() {
        Error::Study { place, message } => (place.line, place.text, message),
        other => panic!("{other}"),
    }
}

fn line_of(text: &str, part: &str) -> usize {
    text.lines().position(|line| line.contains(part)).unwrap() + 1
}

#[test]
fn names_the_line_at_fault() {
    for (from, to, at_fault, wanted) in [
        ("score = \"inv_prob\"", "score = \"softmaxx\"", "softmaxx", "softmaxx"),
        ("levels = [0.01,", "levels = [1.5,", "levels", "between 0 and 1"),
        ("levels = [0.01,", "levels = [0.02,", "levels", "twice"),
        ("gamma = 1.5", "gamma = 0.5", "score = \"entmax\"", "gamma"),
        ("gamma = [1.1,", "gamma = [99,", "gamma = [99", "gamma"),
        ("lambda = [0.001,", "lambda = [-1,", "lambda = [-1", "lambda"),
        ("name = \"newsgroups\"", "name = \"news\"", "\"news\"", "not built in"),
        ("name = \"newsgroups\"", "name = \"cifar10\"", "\"cifar10\"", "twice"),
        ("splits = 5", "splits = 0", "splits = 0", "at least 1"),
        ("claim_splits = 100", "claim_splits = 2", "claim_splits = 2", "at least splits"),
        ("calibration = 0.4", "calibration = 1.4", "calibration = 1.4", "between 0 and 1"),
        ("strata = [0, 2,", "strata = [1, 2,", "strata = [1", "1"),
        ("seed = 0", "sead = 0", "sead", "sead"),
        ("splits = 5", "splits = \"5\"", "splits = \"5\"", "expected"),
        ("name = \"sparsemax\"\n", "name = \"InvProb\"\n", "score = \"sparsemax\"", "twice"),
        ("name = \"newsgroups\"", "name = \"mine\"\npath = \"nowhere.npz\"", "nowhere.npz", "there is no"),
        ("name = \"newsgroups\"", "name = \"mine\"\npath = \".\"\ninput = \"p\"", "\"p\"", "probabilities"),
        ("name = \"newsgroups\"", "name = \"newsgroups\"\ninput = \"logits\"", "input", "leave out input"),
        (
            "name = \"newsgroups\"",
            "name = \"mine\"\nlogits = \"a.npy\"",
            "\"mine\"",
            "both logits and labels",
        ),
    ] {
        let text = changed(from, to);
        let (line, shown, message) = fault(&text, Path::new("."));
        let wanted_line = match wanted {
            "twice" if at_fault.starts_with("score") => line_of(&text, at_fault) - 1,
            "twice" if at_fault == "\"cifar10\"" => {
                text.lines().enumerate().filter(|(_, line)| line.contains(at_fault)).last().unwrap().0 + 1
            }
            _ => line_of(&text, at_fault),
        };
        assert_eq!(line, wanted_line, "{to}: {message}");
        assert!(message.contains(wanted), "{to}: {message}");
        assert_eq!(shown, text.lines().nth(line - 1).unwrap().trim());
    }
}

/// A `.npy` file of version 1.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = format!("{header:<117}\n");
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn refuses_rows_that_are_not_numbers_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let logits: Vec<u8> =
        [1.0_f32, 0.0, f32::NAN, 2.0].iter().flat_map(|logit| logit.to_le_bytes()).collect();
    let labels: Vec<u8> = [0u16, 1].iter().flat_map(|label| label.to_le_bytes()).collect();
    std::fs::write(folder.path().join("mine-logits.npy"), npy("<f4", "(2, 2)", &logits)).unwrap();
    std::fs::write(folder.path().join("mine-labels.npy"), npy("<u2", "(2,)", &labels)).unwrap();
    let text = own("name = \"mine\"\npath = \".\"");
    let (line, _, message) = fault(&text, folder.path());
    assert_eq!(line, line_of(&text, "path = \".\""));
    assert!(message.contains("row 1") && message.contains("class 0"), "{message}");
}

#[test]
fn refuses_labels_outside_the_classes() {
    let folder = tempfile::tempdir().unwrap();
    let logits: Vec<u8> = [1.0_f32, 0.0, 0.5, 2.0].iter().flat_map(|logit| logit.to_le_bytes()).collect();
    let labels: Vec<u8> = [0u16, 7].iter().flat_map(|label| label.to_le_bytes()).collect();
    std::fs::write(folder.path().join("l.npy"), npy("<f4", "(2, 2)", &logits)).unwrap();
    std::fs::write(folder.path().join("y.npy"), npy("<u2", "(2,)", &labels)).unwrap();
    let text = own("name = \"mine\"\nlogits = \"l.npy\"\nlabels = \"y.npy\"");
    let (line, _, message) = fault(&text, folder.path());
    assert_eq!(line, line_of(&text, "logits = \"l.npy\""));
    assert!(message.contains('7'), "{message}");
}

#[test]
fn refuses_to_judge_the_papers_claims_on_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.npz"), "").unwrap();
    for text in [
        changed("name = \"newsgroups\"", "name = \"mine\"\npath = \"mine.npz\""),
        changed("name = \"newsgroups\"", "name = \"newsgroups\"\npath = \"mine.npz\""),
        changed("gamma = 1.5", "gamma = 1.6"),
    ] {
        let (line, _, message) = fault(&text, folder.path());
        assert_eq!(line, line_of(&text, "claim_splits = "));
        assert!(message.contains("leave it out"), "{message}");
    }
    assert!(Study::parse(&changed("seed = 0", "seed = 7"), "my.toml", folder.path()).is_ok());
}

#[test]
fn needs_nothing_but_the_data() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine.npz"), "").unwrap();
    let text = "[[benchmarks]]\npath = \"mine.npz\"\n";
    let study = Study::parse(text, "folder/own.toml", folder.path()).unwrap();
    let paper = Study::paper();
    assert_eq!((study.name.as_str(), study.benchmarks[0].name.as_str()), ("own", "mine"));
    assert_eq!((study.seed, study.splits, study.claim_splits), (0, 20, 0));
    assert_eq!((study.calibration, study.tuning), (paper.calibration, paper.tuning));
    assert_eq!((study.levels, study.procedures), (paper.levels, paper.procedures));
    assert!(study.sweep.is_empty());
    let (_, _, message) = fault("[[benchmarks]]\ntitle = \"?\"\n", folder.path());
    assert!(message.contains("needs a name, a path, or logits and labels"), "{message}");
}

#[test]
fn the_papers_procedures_are_called_as_everywhere_else() {
    let names: Vec<String> = Study::paper().procedures.into_iter().map(|procedure| procedure.name).collect();
    assert_eq!(names, conformax_study::paper::PROCEDURES);
}
