//! Inputs that somebody else writes to while they are read.

use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use crate::folder::{Folder, wait_until};
use crate::written::{Sample, Write};

/// What can happen to a file.
#[derive(Debug, Clone, Copy)]
enum Change {
    Shrink,
    Rewrite,
    Append,
    Replace,
    Remove,
}

impl Change {
    const ALL: [Self; 5] = [Self::Shrink, Self::Rewrite, Self::Append, Self::Replace, Self::Remove];

    fn make(self, path: &Path) {
        let open = || std::fs::OpenOptions::new().append(true).open(path).unwrap();
        let bytes = std::fs::read(path).unwrap();
        match self {
            Self::Shrink => open().set_len(bytes.len() as u64 * 9 / 10).unwrap(),
            Self::Rewrite => std::fs::write(path, &bytes).unwrap(),
            Self::Append => open().write_all(b"\n").unwrap(),
            Self::Replace => {
                let other = path.with_extension("other");
                std::fs::write(&other, &bytes).unwrap();
                std::fs::rename(&other, path).unwrap();
            }
            Self::Remove => std::fs::remove_file(path).unwrap(),
        }
    }
}

/// Makes a file old: written now and again within one tick of the file system's clock, it would look untouched.
fn age(path: &Path) {
    let file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
}

/// A run that has written some sets to a pipe nobody reads, and so waits in the middle of its data.
fn stopped_midway(folder: &Folder, name: &str) -> (Child, impl Read) {
    let mut child = folder.command(&format!("predict model.json {name} --p-values")).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    (child, out)
}

/// More rows than the three blocks of 1 MiB that are read before the sets of the first one are out.
const ROWS: usize = 13_000;
const CLASSES: usize = 64;

fn folder_with_model(write: Write, rows: usize) -> (Folder, String) {
    let folder = Folder::empty();
    let small = Write::CsvCounting.write(&Sample::new(40, CLASSES), folder.path());
    // Small sets of the score whose p-values are the least work, which are asked for because blocks are small then.
    folder.run("calibrate z.csv --score log_margin --alpha 0.97 -o model.json").ok();
    std::fs::remove_file(small).unwrap();
    let path = write.write(&Sample::new(rows, CLASSES), folder.path());
    (folder, path.file_name().unwrap().to_str().unwrap().to_owned())
}

fn says_so(write: Write, changes: &[Change]) {
    let (folder, name) = folder_with_model(write, ROWS);
    let bytes = folder.read(&name);
    for change in changes {
        folder.write(&name, &bytes);
        age(&folder.file(&name));
        let (child, mut out) = stopped_midway(&folder, &name);
        change.make(&folder.file(&name));
        std::io::copy(&mut out, &mut std::io::sink()).unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{write:?}, {change:?}: {err}");
        assert!(
            err.contains(&format!("error: {name}: changed while it was read")),
            "{write:?}, {change:?}: {err}"
        );
        assert!(err.contains("hint: run again") && !err.contains("panicked"), "{err}");
    }
}

#[test]
fn every_change_of_an_array_is_told() {
    says_so(Write::Npy, &Change::ALL);
}

#[test]
fn a_change_is_told_in_every_format() {
    for write in [
        Write::Npz,
        Write::Deflated,
        Write::Parquet,
        Write::Arrow,
        Write::CsvCounting,
        Write::JsonLines,
        Write::Safetensors,
    ] {
        says_so(write, &[Change::Shrink, Change::Rewrite]);
    }
}

/// The data set is what it was when it was opened, also where a file's turn comes later.
#[test]
fn a_later_file_that_changes_leaves_no_output() {
    for change in Change::ALL {
        let (folder, _) = folder_with_model(Write::CsvCounting, 40);
        age(&folder.file("z.csv"));
        let before = folder.names();
        let mut child =
            folder.command("predict model.json - z.csv -o sets.csv").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&folder.read("z.csv")).unwrap();
        wait_until(&mut [&mut child], || folder.names() != before);
        change.make(&folder.file("z.csv"));
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{change:?}: {err}");
        assert!(err.contains("error: z.csv: changed while it was read"), "{change:?}: {err}");
        assert!(!folder.names().iter().any(|name| name.contains("sets.csv")), "{change:?}");
    }
}
