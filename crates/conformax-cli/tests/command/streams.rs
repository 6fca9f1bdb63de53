//! Pipes and devices: rows are answered as they come, and what is no plain file is written to.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::folder::Folder;

const TABLE: &str = "cat,dog,label\n2.5,0.5,cat\n0.25,1.5,dog\n0.5,1.25,cat\n1.5,0.25,cat\n";

fn with_model() -> Folder {
    let folder = Folder::empty();
    folder.write("cal.csv", TABLE);
    folder.run("calibrate cal.csv --alpha 0.5 -o model.json").ok();
    folder
}

/// Each line is asked for while the pipe is still open, so rows held back would never be answered.
#[test]
fn rows_are_answered_while_the_pipe_is_open() {
    let folder = with_model();
    let rows: [(&str, &[&str]); 2] = [
        ("jsonl", &["{\"logits\":[2.5,0.5]}\n", "{\"logits\":[0.25,1.5]}\n"]),
        ("csv", &["cat,dog\n2.5,0.5\n", "0.25,1.5\n"]),
    ];
    for (name, rows) in rows {
        let mut child = folder.command("predict model.json -").stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for (row, text) in rows.iter().enumerate() {
            input.write_all(text.as_bytes()).unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["row"], row, "{name}: {line}");
            assert_eq!(answer["labels"][0], ["cat", "dog"][row], "{name}: {line}");
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn devices_are_written_to_and_stay() {
    use std::os::unix::fs::FileTypeExt;
    let folder = with_model();
    for words in ["-o /dev/null", "-o /dev/null --force"] {
        folder.run(&format!("predict model.json cal.csv {words}")).ok();
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
    let plain = folder.run("predict model.json cal.csv").ok();
    for words in ["-o -", "-o /dev/stdout"] {
        let before = folder.names();
        let ran = folder.run(&format!("predict model.json cal.csv {words}")).ok();
        assert_eq!(ran.out, plain.out, "{words}");
        assert_eq!(folder.names(), before, "{words}");
    }
}

#[test]
fn names_reach_the_terminal_without_their_control_characters() {
    let folder = Folder::empty();
    folder.write("cal.csv", "c\u{1b}[2Jt,dog,label\n2.5,x,dog\n");
    let message = folder.run("calibrate cal.csv -o model.json").error();
    assert!(message.contains("column `dog`: `x` is not a number"), "{message}");
    folder.write("cal.csv", "c\u{1b}[2Jt,dog,label\nx,2.5,dog\n");
    let message = folder.run("calibrate cal.csv -o model.json").error();
    assert!(message.contains("column `c\\u{1b}[2Jt`") && !message.contains('\u{1b}'), "{message}");
}
