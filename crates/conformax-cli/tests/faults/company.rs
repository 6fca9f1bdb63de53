//! Several processes at one output: each ends, and the file is whole and one of theirs.

use std::process::{Child, ChildStdin, Stdio};

use crate::contents;
use crate::folder::{Folder, Rows, SMALL_STUDY, wait_until};

const ALPHAS: [&str; 4] = ["0.4", "0.3", "0.2", "0.1"];

/// Runs that differ in their level, all with the output open and waiting for more rows.
fn waiting(folder: &Folder, more: &str) -> Vec<(Child, ChildStdin)> {
    let before = folder.names().len();
    let start = |alpha: &&str| {
        let words = format!("predict model.json - --alpha {alpha} {more} -o sets.jsonl");
        let mut child = folder.command(&words).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, b"{\"logits\":[0,1,2,3,4,5]}\n").unwrap();
        (child, stdin)
    };
    let mut children: Vec<_> = ALPHAS.iter().map(start).collect();
    let mut running: Vec<_> = children.iter_mut().map(|(child, _)| child).collect();
    wait_until(&mut running, || folder.names().len() >= before + ALPHAS.len());
    children
}

/// Lets all of them go at once; gives their exit codes and messages.
fn ended(runs: Vec<(Child, ChildStdin)>) -> Vec<(i32, String)> {
    let (children, inputs): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    drop(inputs);
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    children.into_iter().map(end).collect()
}

/// What each level gives when it is alone.
fn alone(folder: &Folder) -> Vec<String> {
    let run = |alpha: &&str| {
        folder
            .run_with(&format!("predict model.json - --alpha {alpha}"), b"{\"logits\":[0,1,2,3,4,5]}\n")
            .ok()
            .out
    };
    ALPHAS.iter().map(run).collect()
}

#[test]
fn one_wins_and_the_others_are_told() {
    let folder = Folder::with_model();
    let alone = alone(&folder);
    let ended = ended(waiting(&folder, ""));
    let winner = ended.iter().position(|(code, _)| *code == 0).expect("one of them wins");
    for (run, (code, message)) in ended.iter().enumerate().filter(|(run, _)| *run != winner) {
        assert_eq!(*code, 2, "{run}: {message}");
        assert!(message.contains("sets.jsonl: exists already"), "{message}");
    }
    assert_eq!(folder.text("sets.jsonl"), alone[winner]);
    assert_eq!(folder.names(), ["cal.npz", "model.json", "sets.jsonl", "test.npz"]);
}

#[test]
fn the_last_one_stays_where_all_may_replace() {
    let folder = Folder::with_model();
    let alone = alone(&folder);
    for (code, message) in ended(waiting(&folder, "--force")) {
        assert_eq!(code, 0, "{message}");
    }
    let found = folder.text("sets.jsonl");
    assert!(alone.contains(&found), "{found}");
    assert_eq!(folder.names(), ["cal.npz", "model.json", "sets.jsonl", "test.npz"]);
}

#[test]
fn two_studies_in_one_folder_do_not_mix() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(300, 1).npz());
    folder.write("small.toml", SMALL_STUDY);
    folder.write("other.toml", SMALL_STUDY.replace("[0.1, 0.2]", "[0.1, 0.3]"));
    let studies = ["small", "other"];
    for study in studies {
        folder.run(&format!("study {study}.toml -o {study}")).ok();
    }
    let children =
        studies.map(|study| folder.command(&format!("study {study}.toml -o out")).spawn().unwrap());
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let codes = outputs.each_ref().map(|output| output.status.code().unwrap());
    let winner = codes.iter().position(|code| *code == 0).expect("one of them wins");
    let message = String::from_utf8_lossy(&outputs[1 - winner].stderr);
    assert!(codes[1 - winner] == 2 && message.contains("exists already"), "{codes:?} {message}");
    assert!(contents(&folder.file("out")) == contents(&folder.file(studies[winner])));
}
