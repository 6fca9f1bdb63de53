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

/// Faults that the parser, the reader and the arithmetic find.
#[test]
fn rows_before_a_bad_one_are_answered() {
    let folder = with_model();
    let good = "{\"logits\":[2.5,0.5]}\n{\"logits\":[0.25,1.5]}\n{\"logits\":[1.5,0.5]}\n";
    let faults =
        ["{\"logits\":[1]}\n", "nonsense\n", "{\"logits\":[\"nan\",1]}\n", "{\"logits\":[1,null]}\n"];
    let table = "cat,dog\n2.5,0.5\n0.25,1.5\n1.5,0.5\n";
    let inputs = faults.map(|bad| format!("{good}{bad}{good}"));
    let tables = ["1\n", "x,1\n", "nan,1\n"].map(|bad| format!("{table}{bad}1,2\n"));
    for input in inputs.into_iter().chain(tables) {
        let ran = folder.run_with("predict model.json -", input.as_bytes());
        assert_eq!(ran.code, 2, "{input}{}", ran.err);
        assert_eq!(ran.out.lines().count(), 3, "{input}{}", ran.out);
        assert!(ran.err.contains("row 3"), "{input}{}", ran.err);
        let message = folder.run_with("predict model.json - -o sets.csv", input.as_bytes()).error();
        assert!(message.contains("row 3") && !folder.file("sets.csv").exists(), "{input}{message}");
    }
}

#[test]
fn rows_before_one_that_is_no_probability_are_answered() {
    let folder = Folder::empty();
    folder.write("cal.csv", "cat,dog,label\n0.75,0.25,cat\n0.25,0.75,dog\n0.5,0.5,cat\n0.9,0.1,cat\n");
    folder.run("calibrate cal.csv --input probabilities --alpha 0.5 -o model.json").ok();
    let ran = folder.run_with("predict model.json -", b"cat,dog\n0.75,0.25\n0.5,0.5\n7,0.5\n0.5,0.5\n");
    assert_eq!((ran.code, ran.out.lines().count()), (2, 2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("row 2"), "{}", ran.err);
}

#[test]
fn standard_input_is_inspected_whatever_it_is() {
    let folder = with_model();
    let model = folder.run_with("inspect - --json", &folder.read("model.json")).ok();
    assert_eq!(model.json(), folder.run("inspect model.json --json").ok().json());
    let data = folder.run_with("inspect - --json", TABLE.as_bytes()).ok();
    assert_eq!(data.json(), folder.run("inspect cal.csv --json").ok().json());
}
