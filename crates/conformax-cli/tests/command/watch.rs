//! `conformax watch`: rows and labels in, an answer to each, the same wherever a run is divided.

use std::io::{BufRead, BufReader, Write};
#[cfg(target_os = "linux")]
use std::process::Command;
use std::process::Stdio;

use conformax::Stream;

#[cfg(target_os = "linux")]
use crate::folder::skipped;
use crate::folder::{CLASSES, Folder, Rows, lines, wait_until};

/// Rows of which some have their label at once, some later, some never, some twice, and some no id.
fn events(rows: &Rows) -> Vec<String> {
    let mut events = Vec::new();
    for (row, label) in rows.labels.iter().enumerate() {
        let logits = format!("{:?}", &rows.logits[row * CLASSES..][..CLASSES]);
        match row % 5 {
            0 => events.push(format!("{{\"logits\":{logits},\"label\":{label}}}")),
            1 => events.push(format!("{{\"id\":\"a{row}\",\"logits\":{logits}}}")),
            2 => events.extend([
                format!("{{\"id\":{row},\"logits\":{logits},\"label\":{label}}}"),
                format!("{{\"id\":{row},\"label\":{label}}}"),
            ]),
            3 => events.extend([
                format!("{{\"logits\":{logits}}}"),
                format!("{{\"id\":\"a{}\",\"label\":{}}}", row - 2, rows.labels[row - 2]),
            ]),
            _ => events.extend([
                format!("{{\"logits\":{logits},\"time\":\"now\"}}"),
                format!("{{\"id\":\"nobody\",\"label\":{label}}}"),
            ]),
        }
    }
    events
}

#[test]
fn every_line_is_answered_with_a_line() {
    let folder = Folder::with_model();
    let events = events(&Rows::new(10, 3)).join("\n");
    insta::assert_snapshot!(folder.run_with("watch model.json", events.as_bytes()).seen());
    insta::assert_snapshot!(folder.run_with("watch model.json - --fixed --quiet", events.as_bytes()).seen());
}

#[test]
fn input_divided_anywhere_gives_the_same_answers() {
    let folder = Folder::with_model();
    let events = events(&Rows::new(60, 4));
    for options in ["", "--step 0.05 --window 10", "--fixed"] {
        let whole =
            folder.run_with(&format!("watch model.json - {options}"), events.join("\n").as_bytes()).ok();
        for cut in [0, 1, 17, events.len() / 2, events.len() - 1, events.len()] {
            let words = format!("watch model.json - --state at-{cut} {options}");
            let _ = std::fs::remove_file(folder.file(&format!("at-{cut}")));
            let first = folder.run_with(&words, events[..cut].join("\n").as_bytes()).ok();
            let second = folder.run_with(&words, events[cut..].join("\n").as_bytes()).ok();
            assert_eq!(format!("{}{}", first.out, second.out), whole.out, "{options} at {cut}");
        }
    }
}

/// Killed while it waits for more: what it has answered by then is in its state.
#[test]
fn a_killed_run_has_left_what_it_answered() {
    let folder = Folder::with_model();
    let events = events(&Rows::new(20, 5));
    let whole = folder.run_with("watch model.json -", events.join("\n").as_bytes()).ok();
    let wanted: Vec<&str> = whole.out.lines().collect();
    let mut answered = 0;
    while answered < events.len() {
        let mut child = folder.command("watch model.json - --state s").stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..7.min(events.len() - answered) {
            writeln!(input, "{}", events[answered]).unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), wanted[answered]);
            answered += 1;
        }
        let count = |what: &str| wanted[..answered].iter().filter(|line| line.contains(what)).count() as u64;
        wait_until(&mut [&mut child], || {
            let left = std::fs::read(folder.file("s")).ok().and_then(|s| Stream::from_bytes(&s).ok());
            let left = left.map(|stream| (stream.status().predicted, stream.status().labelled));
            left == Some((count("\"row\""), count("\"covered\"")))
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_fixed_level_gives_the_sets_of_predict() {
    let folder = Folder::with_model();
    let rows = Rows::new(50, 6);
    folder.write("rows.npz", rows.npz());
    let wanted = lines(&folder.run("predict model.json rows.npz").ok().out);
    // As predict reads single precision, so must these numbers be written.
    let logits = |row: usize| -> Vec<f64> {
        rows.logits[row * CLASSES..][..CLASSES].iter().map(|value| f64::from(*value)).collect()
    };
    let text: String = (0..50)
        .map(|row| format!("{{\"logits\":{:?},\"label\":{}}}\n", logits(row), rows.labels[row]))
        .collect();
    let got = lines(&folder.run_with("watch model.json - --fixed", text.as_bytes()).ok().out);
    for (got, wanted) in got.iter().zip(&wanted) {
        assert_eq!(
            (&got["row"], &got["labels"], &got["size"]),
            (&wanted["row"], &wanted["labels"], &wanted["size"])
        );
        let label = &rows.labels[got["row"].as_u64().unwrap() as usize];
        let covered = wanted["labels"].as_array().unwrap().iter().any(|in_set| in_set == label);
        assert_eq!(got["covered"], covered);
    }
    assert_eq!(got.len(), 50);
}

/// Rows of which whatever has the smallest logit is said to be the label.
fn strange() -> String {
    let rows = Rows::new(200, 7);
    let line = |row: usize| {
        let logits = &rows.logits[row * CLASSES..][..CLASSES];
        let label = (0..CLASSES).min_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        format!("{{\"logits\":{logits:?},\"label\":{label}}}\n")
    };
    (0..200).map(line).collect()
}

#[test]
fn an_alarm_is_told_of_and_may_end_the_run() {
    let folder = Folder::with_model();
    let strange = strange();
    let ran = folder.run_with("watch model.json - --quiet", strange.as_bytes()).ok();
    assert_eq!(ran.err.matches("the alarm rose").count(), 1, "{}", ran.err);
    let stopped = folder.run_with("watch model.json - --stop-on-alarm --state s", strange.as_bytes());
    assert_eq!(stopped.code, 1, "{}", stopped.err);
    let rows = stopped.out.lines().count();
    assert!((10..100).contains(&rows) && ran.out.starts_with(&stopped.out), "{rows}");
    assert!(stopped.err.contains(&format!("the alarm rose after {rows} labels")), "{}", stopped.err);
    // The run after it goes on from there, and the alarm has risen once.
    let rest: String = strange.lines().skip(rows).map(|line| format!("{line}\n")).collect();
    let second = folder.run_with("watch model.json - --stop-on-alarm --state s", rest.as_bytes()).ok();
    assert_eq!(format!("{}{}", stopped.out, second.out), ran.out);
}

/// A run whose answers nobody reads ends as `predict` does, its state left; one that waits for the alarm goes on for
/// it.
#[test]
fn answers_that_nobody_reads_change_neither_the_state_nor_the_verdict() {
    let folder = Folder::with_model();
    folder.write("rows.jsonl", strange());
    let left = |name: &str| Stream::from_bytes(&folder.read(name)).unwrap().status();
    assert_eq!(folder.run_unread("watch model.json rows.jsonl --state s >&3 2>&3"), 0);
    assert_eq!((left("s").predicted, left("s").labelled), (1, 1));
    assert_eq!(folder.run_unread("watch model.json rows.jsonl --stop-on-alarm --state t >&3 2>&3"), 1);
    folder.run("watch model.json rows.jsonl --stop-on-alarm --state read");
    assert!(folder.read("t") == folder.read("read"));
}

#[test]
fn what_is_wrong_with_a_line_is_told_with_its_place() {
    let folder = Folder::with_model();
    let good = "{\"logits\":[0,1,2,3,4,5]}\n";
    for (bad, wanted) in [
        ("{\"logits\":[0,1,2]}", "standard input: row 1: has 3 logits where 6 were expected"),
        ("{\"logits\":[0,1,2,3,\"x\",5]}", "standard input: row 1, class 4: `x` is not a number"),
        ("{\"logits\":[0,1,2,3,4,\"nan\"]}", "standard input: row 1, class 5"),
        ("{\"logits\":[0,1,2,3,4,5],\"label\":6}", "standard input: row 1: label 6 is outside 0..6"),
        ("{\"label\":1}", "standard input: row 1: "),
        ("[1]", "standard input: row 1: "),
        ("{\"logits\":", "standard input: row 1: "),
    ] {
        let ran = folder.run_with("watch model.json -", format!("{good}{bad}\n{good}").as_bytes());
        assert_eq!(ran.out.lines().count(), 1, "{bad}");
        let message = ran.error();
        assert!(message.contains(wanted), "{bad}: {message}");
    }
}

#[test]
fn models_that_cannot_stream_are_refused_with_the_reason() {
    let folder = Folder::with_model();
    folder.run("calibrate cal.npz --thresholds-only -o bare.json").ok();
    let message = folder.run("watch bare.json").error();
    assert!(message.contains("cannot be streamed: it was saved without scores"), "{message}");
    folder.run("calibrate cal.npz --pac 0.1 -o pac.json").ok();
    let message = folder.run("watch pac.json").error();
    assert!(message.contains("a probability over calibration rows"), "{message}");
    folder.run("tune cal.npz --rows all -o selected.json").ok();
    let message = folder.run("watch selected.json").error();
    assert!(
        message.contains("cannot be streamed: its score was chosen by all rows at one level"),
        "{message}"
    );
}

#[test]
fn a_state_goes_with_its_model_level_and_options() {
    let folder = Folder::with_model();
    folder.run_with("watch model.json - --state s", b"{\"logits\":[0,1,2,3,4,5]}").ok();
    folder.run("calibrate test.npz -o other.json").ok();
    for (words, what) in [
        ("watch other.json - --state s", "another model"),
        ("watch model.json - --state s --alpha 0.2", "another level"),
        ("watch model.json - --state s --fixed", "other stream options"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(what), "{words}: {message}");
    }
    folder.write("s", "something else");
    let message = folder.run("watch model.json - --state s").error();
    assert!(message.contains("s: these bytes are not those of a stream"), "{message}");
}

/// What a consumer of the answers sees, and how far the state is behind it.
struct Answers {
    state: std::path::PathBuf,
    lines: u64,
    furthest: u64,
}

impl Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let left = std::fs::read(&self.state).ok().map(|bytes| Stream::from_bytes(&bytes).unwrap());
        let rows = left.map_or(0, |stream| stream.status().predicted);
        assert!(rows <= self.lines, "the state is ahead: {rows} of {}", self.lines);
        self.furthest = self.furthest.max(self.lines - rows);
        Ok(())
    }
}

/// Rows that come without a pause: killed at any moment, a run has left what it answered but the last 1,000 lines.
#[test]
fn the_state_is_never_far_behind_the_answers() {
    let folder = Folder::with_model();
    let rows = Rows::new(2_500, 8);
    let text: String = (0..2_500)
        .map(|row| {
            let logits = &rows.logits[row * CLASSES..][..CLASSES];
            format!("{{\"logits\":{logits:?},\"label\":{}}}\n", rows.labels[row])
        })
        .collect();
    folder.write("rows.jsonl", text);
    let path = |name: &str| folder.file(name).to_str().unwrap().to_owned();
    let mut answers = Answers { state: folder.file("s"), lines: 0, furthest: 0 };
    let words = ["conformax", "watch", &path("model.json"), &path("rows.jsonl"), "--state", &path("s")];
    let code = conformax_cli::run(words, &mut answers, &mut Vec::new());
    assert_eq!((code.code(), answers.lines), (0, 2_500));
    assert!(answers.furthest <= 1_000, "{}", answers.furthest);
}

/// Killed while it was about to leave its state: that is behind the answers, and the lines from there on, given again,
/// are answered with the same bytes.
#[cfg(debug_assertions)]
#[test]
fn lines_given_again_after_a_kill_are_answered_with_the_same_bytes() {
    let folder = Folder::with_model();
    let events = events(&Rows::new(60, 9));
    let whole = folder.run_with("watch model.json -", events.join("\n").as_bytes()).ok();
    let wanted: Vec<&str> = whole.out.lines().collect();
    let before = 17;
    folder.run_with("watch model.json - --state s", events[..before].join("\n").as_bytes()).ok();
    let left = folder.read("s");
    let mut command = folder.command("watch model.json - --state s");
    // Held with the new state written and not yet in its place.
    let mut child = command.stdin(Stdio::piped()).env("CONFORMAX_HOLD", "synced s").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    input.write_all((events[before..].join("\n") + "\n").as_bytes()).unwrap();
    assert!(told.any(|line| line.unwrap() == "held: synced s"));
    child.kill().unwrap();
    let answered = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let answered: Vec<&str> = answered.lines().collect();
    assert!(!answered.is_empty(), "it has answered what its state does not know");
    assert_eq!(answered, wanted[before..before + answered.len()]);
    assert!(folder.read("s") == left);
    let again = folder.run_with("watch model.json - --state s", events[before..].join("\n").as_bytes()).ok();
    let count = |what: &str| wanted[..before].iter().filter(|line| line.contains(what)).count();
    let note = format!("going on after {} rows and {} labels", count("\"row\""), count("\"covered\""));
    assert!(again.err.contains(&note), "{}", again.err);
    assert_eq!(again.out.lines().collect::<Vec<_>>(), wanted[before..]);
}

/// On a terminal a line says where the stream stands; it is gone in the end, and the answers are whole.
#[cfg(target_os = "linux")]
#[test]
fn a_line_on_a_terminal_says_where_the_stream_stands() {
    let folder = Folder::with_model();
    folder.write("rows.jsonl", strange());
    let run = format!("'{}' watch model.json rows.jsonl > answers.jsonl", env!("CARGO_BIN_EXE_conformax"));
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &format!("stty cols 120; {run}"), "/dev/null"]);
    terminal.current_dir(folder.path()).env("TERM", "xterm").stdin(Stdio::null());
    let Ok(shown) = terminal.output() else { return skipped("there is no `script`, which is a terminal") };
    let shown = String::from_utf8(shown.stdout).unwrap();
    let wanted = folder.run("watch model.json rows.jsonl").ok();
    assert_eq!(folder.text("answers.jsonl"), wanted.out);
    // Each is drawn over the one before, after a return.
    let lines: Vec<&str> =
        shown.split(['\r', '\n']).filter(|line| line.contains(" rows, coverage ")).collect();
    let before = lines.iter().find(|line| line.contains(", no alarm (log capital ")).expect(&shown);
    assert!(before.contains(" labels, level "), "{before}");
    assert!(lines.iter().any(|line| line.contains("alarm rose at label ")), "{shown}");
    assert!(shown.contains("the alarm rose after "), "{shown}");
    let last = wanted.err.lines().last().unwrap();
    assert!(shown.trim_end().ends_with(last), "{shown}");
    // Where standard error is no terminal there is none.
    assert_eq!(wanted.err.matches(" rows, coverage ").count(), 1);
}

#[test]
fn a_mark_before_the_text_is_none_of_it() {
    let folder = Folder::with_model();
    let line = "{\"logits\":[0,1,2,3,4,5]}\n";
    let plain = folder.run_with("watch model.json", line.as_bytes()).ok();
    let marked = folder.run_with("watch model.json", format!("\u{feff}{line}").as_bytes()).ok();
    assert_eq!(marked.out, plain.out);
    let message = folder.run_with("watch model.json", format!("{line}\u{feff}{line}").as_bytes()).error();
    assert!(message.contains("row 1"), "{message}");
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = folder.run_with("watch model.json", &utf16).error();
    assert!(message.contains("UTF-16"), "{message}");
}

#[test]
fn standard_input_is_one_thing() {
    let folder = Folder::with_model();
    let message = folder.run_with("watch - -", &folder.read("model.json")).error();
    assert!(message.contains("standard input cannot be both"), "{message}");
    folder.write("rows.jsonl", "{\"logits\":[0,1,2,3,4,5]}\n");
    folder.run_with("watch - rows.jsonl", &folder.read("model.json")).ok();
}

#[test]
fn one_label_is_one_label() {
    let folder = Folder::with_model();
    let ran = folder.run_with("watch model.json - --state s", b"{\"logits\":[0,1,2,3,4,5],\"label\":5}").ok();
    assert!(ran.err.contains("over 1 label,"), "{}", ran.err);
    let ran = folder.run_with("watch model.json - --state s", b"").ok();
    assert!(ran.err.contains("after 1 row and 1 label\n"), "{}", ran.err);
}

/// What is wrong with an option is no fault of the model, and hints keep to what `watch` takes.
#[test]
fn faults_are_told_of_what_they_are_in() {
    let folder = Folder::with_model();
    for (words, wanted) in [
        ("watch model.json - --decay 2", "--decay <D>': it must be above 0 and at most 1"),
        ("watch model.json - --step=-1", "--step <S>': it must be a finite number of at least 0"),
        ("watch model.json - --step nan", "--step <S>': it must be a finite number of at least 0"),
    ] {
        let message = folder.run(words).error();
        assert!(message.contains(wanted) && !message.contains("model.json:"), "{message}");
    }
    let line = b"{\"logits\":[0,1,2,3,4,5],\"label\":9}";
    let message = folder.run_with("watch model.json", line).error();
    assert!(message.contains("hint: labels count from 0") && !message.contains("--"), "{message}");
}
