//! What the command says about itself: help, completions, the manual; and what `inspect` says about files.

use crate::folder::{Folder, Rows};
use crate::written::{Sample, Write};

#[test]
fn help_shows_flags_and_examples() {
    let folder = Folder::empty();
    insta::assert_snapshot!("help", folder.run("--help").ok().out);
    let names = [
        "split",
        "calibrate",
        "tune",
        "predict",
        "evaluate",
        "watch",
        "serve",
        "plan",
        "inspect",
        "merge",
        "compare",
        "study",
        "weigh",
        "report",
        "completions",
        "man",
    ];
    for name in names {
        let ran = folder.run(&format!("{name} --help")).ok();
        assert!(ran.out.contains("Examples:"), "{name}");
        insta::assert_snapshot!(format!("help_{name}"), ran.out);
    }
}

#[test]
fn nothing_to_do_shows_the_help_and_ends_with_2() {
    let ran = Folder::empty().run("");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Usage: conformax"), "{}", ran.err);
}

#[test]
fn completions_and_manual_know_every_subcommand() {
    let folder = Folder::empty();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(&format!("completions {shell}")).ok().out;
        for name in ["calibrate", "predict", "report", "expect-coverage"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let page = folder.run("man").ok().out;
    assert!(page.starts_with(".ie") && page.contains("calibrate"), "{page}");
    let page = folder.run("man evaluate").ok().out;
    assert!(page.contains("conformax\\-evaluate") && page.contains("expect\\-coverage"), "{page}");
    let message = folder.run("man nothing").error();
    assert!(message.contains("nothing"), "{message}");
}

#[test]
fn inspect_tells_what_is_in_a_file() {
    let folder = Folder::with_model();
    insta::assert_snapshot!(folder.run("inspect model.json").seen());
    insta::assert_snapshot!(folder.run("inspect test.npz").seen());
    folder.run("tune cal.npz --over raps --grid 0.1:1 --seed 4 -o tuned.json").ok();
    insta::assert_snapshot!(folder.run("inspect tuned.json --json").seen());
    Write::Csv.write(&Sample::new(12, 7), folder.path());
    insta::assert_snapshot!(folder.run("inspect z.csv").seen());
}

#[test]
fn quiet_silences_notes_but_not_warnings() {
    let folder = Folder::empty();
    folder.write("cal.npz", Rows::new(5, 1).npz());
    let ran = folder.run("calibrate cal.npz -o a.json").ok();
    assert!(ran.err.contains("wrote a.json") && ran.err.contains("warning:"), "{}", ran.err);
    let ran = folder.run("calibrate cal.npz --quiet -o b.json").ok();
    assert!(!ran.err.contains("wrote") && ran.err.contains("warning:"), "{}", ran.err);
}

#[test]
fn nothing_is_coloured_that_is_no_terminal() {
    let folder = Folder::with_model();
    for words in ["predict model.json no.npz", "--help", "evaluate model.json test.npz", "frobnicate"] {
        let ran = folder.run(words);
        assert!(!ran.out.contains('\x1b') && !ran.err.contains('\x1b'), "{words}");
    }
}
