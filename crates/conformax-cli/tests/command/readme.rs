//! The shell example of the README, line by line, on data made for it. Its Rust examples run in `conformax-io`
//! (`tests/readme.rs`), and those in Python with the package (`python/tests/test_examples.py`).

use std::process::Command;

use crate::folder::{Folder, Rows};

/// The lines of the fenced block after the marker.
fn example() -> String {
    let readme = include_str!("../../../../README.md");
    let block = readme.split("<!-- shell example -->").nth(1).expect("the README has a shell example");
    let block = block.split("```").nth(1).expect("the example is a fenced block");
    block.split_once('\n').expect("the fence names its language").1.to_owned()
}

#[test]
fn readme_example() {
    let folder = Folder::empty();
    folder.write("data.npz", Rows::new(1000, 1).npz());
    folder.write("new.npz", Rows::new(50, 2).npz());
    let command = std::path::Path::new(env!("CARGO_BIN_EXE_conformax"));
    let path = format!("{}:{}", command.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &example()]).current_dir(folder.path()).env("PATH", path);
    let output = shell.output().unwrap();
    let seen =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{seen}");
    assert!(seen.contains("coverage"), "{seen}");
    assert!(folder.file("sets.parquet").exists(), "{seen}");
}

/// What is shown without an example's marker is known here, so that no other snippet goes untested.
#[test]
fn every_snippet_of_the_readme_is_tested_somewhere() {
    let readme = include_str!("../../../../README.md");
    let fences: Vec<&str> = readme.split("```").skip(1).step_by(2).collect();
    let begins: Vec<&str> = fences.iter().map(|fence| fence.lines().nth(1).unwrap()).collect();
    let wanted = [
        // `scripts/check` runs the study.
        "cargo run --release -- study ",
        "scripts/check",
        "conformax plan --alpha 0.1 ",
        "pip install ./python",
        "from conformax import SplitConformalClassifier",
        "use conformax::",
        "let model = conformax_io::Model::read",
    ];
    assert_eq!(begins.len(), wanted.len(), "{begins:?}");
    for (begin, wanted) in begins.iter().zip(wanted) {
        assert!(begin.starts_with(wanted), "{begin}");
    }
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    assert!(root.join("scripts/check").is_file() && root.join("python/pyproject.toml").is_file());
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    assert!(workspace.contains("default-members = [\"crates/conformax-cli\"]"), "what `cargo run` runs");
}
