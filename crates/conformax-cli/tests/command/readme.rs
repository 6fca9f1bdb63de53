//! The shell example of the README, line by line, on data made for it.

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
