//! Ctrl-C: the work stops and nothing half-written stays.
#![cfg(unix)]

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::folder::{Folder, wait_until};

/// Makes runs start with both signals as a terminal has them. What is started in the background of a script inherits an
/// ignored Ctrl-C; a signal that is handled here is at its default in whatever is run.
fn set_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, always).unwrap();
    }
}

/// Starts a run that waits for more on standard input, and waits until its temporary file is there.
fn started(folder: &Folder, words: &str) -> (Child, ChildStdin) {
    set_signals();
    let before = folder.names().len();
    let mut child = folder.command(words).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"logits\":[0,1,2,3,4,5],\"label\":1}\n").unwrap();
    wait_until(&mut [&mut child], || folder.names().len() > before);
    (child, stdin)
}

fn stop(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn leaves_no_half_written_file() {
    let folder = Folder::with_model();
    let before = folder.names();
    for (words, signal) in [
        ("predict model.json - -o sets.parquet", "-INT"),
        ("predict model.json - -o sets.csv", "-TERM"),
        ("calibrate - -o other.json", "-INT"),
    ] {
        let (child, stdin) = started(&folder, words);
        stop(&child, signal);
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {err}");
        assert!(err.contains("interrupted; no output was written"), "{err}");
        assert_eq!(folder.names(), before, "{words}");
    }
}

/// Whoever writes into the pipe may take their time for the first row.
#[test]
fn ends_before_a_silent_pipe_says_anything() {
    set_signals();
    let folder = Folder::with_model();
    let before = folder.names();
    for words in
        ["calibrate - -o other.json", "evaluate model.json - --partial -o part", "merge - -o other.json"]
    {
        let mut child = folder.command(words).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        wait_until(&mut [&mut child], || folder.names().len() > before.len());
        stop(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {err}");
        assert!(err.contains("interrupted; no output was written"), "{words}: {err}");
        assert_eq!(folder.names(), before, "{words}");
    }
}

#[test]
fn ends_a_comparison_that_is_still_reading() {
    set_signals();
    let folder = Folder::empty();
    let mut child = folder.command("compare -").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe and the readers' buffers hold: once it is written, the command is known to be reading.
    let row = b"{\"logits\":[0,1,2,3,4,5],\"label\":1}\n";
    stdin.write_all(&row.repeat(400_000)).unwrap();
    stop(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("interrupted; no output was written"), "{err}");
}

#[test]
fn what_a_killed_run_leaves_the_next_one_removes() {
    let folder = Folder::with_model();
    let before = folder.names();
    let (mut child, stdin) = started(&folder, "predict model.json - -o sets.csv");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert_eq!(folder.names().len(), before.len() + 1);
    folder.run("predict model.json test.npz -o sets.csv").ok();
    assert_eq!(folder.names(), ["cal.npz", "model.json", "sets.csv", "test.npz"]);
}

/// Watching ends as the other work does: with 2, since more may have been to come, and with its state left.
#[test]
fn ends_watching_with_the_state_of_what_was_answered() {
    use std::io::{BufRead, BufReader};
    set_signals();
    let folder = Folder::with_model();
    let mut child = folder.command("watch model.json - --state s").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"logits\":[0,1,2,3,4,5],\"label\":1}\n").unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    stop(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("interrupted after 1 row") && !err.contains("no output was written"), "{err}");
    let again = folder.run_with("watch model.json - --state s", b"").ok();
    assert!(again.err.contains("going on after 1 row and 1 label"), "{}", again.err);
}

/// The second signal waits for nothing, and still leaves no temporary file.
#[test]
fn ends_at_once_when_asked_twice_and_leaves_nothing() {
    use std::io::{BufRead, BufReader};
    set_signals();
    let folder = Folder::with_model();
    let before = folder.names();
    let mut command = folder.command("predict model.json test.npz -o sets.csv");
    // It holds still with its temporary file there, and would for ever.
    let mut child = command.env("CONFORMAX_HOLD", "written sets.csv").spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap() == "held: written sets.csv"));
    assert_eq!(folder.names().len(), before.len() + 1);
    stop(&child, "-INT");
    stop(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert_eq!(folder.names(), before);
}
