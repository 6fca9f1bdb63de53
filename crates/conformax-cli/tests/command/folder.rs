//! A temporary folder with data in it, and the command to run there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use conformax::{Logits, split};

/// A study that is over soon, of the rows in `data.npz`.
pub(crate) const SMALL_STUDY: &str = r#"
name = "small"
splits = 2
calibration = 0.4
levels = [0.1, 0.2]

[[benchmarks]]
name = "mine"
path = "data.npz"

[[procedures]]
name = "InvProb"
score = "inv_prob"

[[procedures]]
name = "opt-entmax"
score = "entmax"
tune = { gamma = [1.2, 1.8] }
"#;

/// A folder that is gone when the test is over.
pub(crate) struct Folder(tempfile::TempDir);

/// What a run left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// The run, which must have gone well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// The message of a run that must have failed with 2.
    #[track_caller]
    pub(crate) fn error(self) -> String {
        assert_eq!(self.code, 2, "{}{}", self.out, self.err);
        self.err
    }

    /// Everything a user sees, for snapshots.
    pub(crate) fn seen(&self) -> String {
        format!("exit code {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.err)
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) const CLASSES: usize = 6;

/// Rows of logits and labels that a classifier of about 70 % accuracy might give.
pub(crate) struct Rows {
    pub(crate) logits: Vec<f32>,
    pub(crate) labels: Vec<u32>,
}

impl Rows {
    /// `n` rows from a small generator of its own; other seeds give other rows.
    pub(crate) fn new(n: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        let (mut logits, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let label = (next() * CLASSES as f32) as u32 % CLASSES as u32;
            let row: Vec<f32> = (0..CLASSES as u32)
                .map(|class| next() * 4.0 + if class == label { next() * 4.0 } else { 0.0 })
                .collect();
            logits.extend(row);
            labels.push(label);
        }
        Self { logits, labels }
    }

    pub(crate) fn as_logits(&self) -> Logits<'_, f32> {
        Logits::new(&self.logits, CLASSES).unwrap()
    }

    pub(crate) fn npz(&self) -> Vec<u8> {
        let logits: Vec<u8> = self.logits.iter().flat_map(|value| value.to_le_bytes()).collect();
        let labels: Vec<u8> = self.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        let rows = self.labels.len();
        crate::written::zip(
            &[
                ("logits.npy", crate::written::npy("<f4", false, &[rows, CLASSES], &logits)),
                ("labels.npy", crate::written::npy("<u4", false, &[rows], &labels)),
            ],
            false,
            false,
        )
    }

    /// The rows at these places.
    pub(crate) fn take(&self, rows: &[usize]) -> Self {
        Self {
            logits: rows.iter().flat_map(|row| self.logits[row * CLASSES..][..CLASSES].to_vec()).collect(),
            labels: rows.iter().map(|row| self.labels[*row]).collect(),
        }
    }
}

impl Folder {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// `cal.npz` with 200 rows, `test.npz` with 300.
    pub(crate) fn with_data() -> Self {
        let folder = Self::empty();
        folder.write("cal.npz", Rows::new(200, 1).npz());
        folder.write("test.npz", Rows::new(300, 2).npz());
        folder
    }

    /// As above, with `model.json` at alpha 0.1.
    pub(crate) fn with_model() -> Self {
        let folder = Self::with_data();
        folder.run("calibrate cal.npz -o model.json").ok();
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Names of all files, hidden ones too, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The command with these words, not yet running.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conformax"));
        command.args(words.split_whitespace()).current_dir(self.path());
        command.env_remove("NO_COLOR").env("COLUMNS", "100").env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, words: &str) -> Ran {
        Ran::new(&self.command(words).output().unwrap())
    }

    /// Runs with these bytes on standard input.
    pub(crate) fn run_with(&self, words: &str, input: &[u8]) -> Ran {
        use std::io::Write;
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A command that stops early closes its end; that is its business.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::new(&output)
    }

    /// The exit code of a run with the pipe 3, whose reader is gone before the first word is written.
    pub(crate) fn run_unread(&self, words: &str) -> i32 {
        let script = format!("exec 3> >(:); wait $!; '{}' {words}", env!("CARGO_BIN_EXE_conformax"));
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(self.path()).stdin(Stdio::null());
        shell.output().unwrap().status.code().unwrap()
    }

    /// The rows of a split, as the library gives them.
    pub(crate) fn halves(rows: &Rows, seed: u64) -> (Rows, Rows) {
        let parts = split(rows.labels.len(), &[0.4, 0.6], seed).unwrap();
        (rows.take(&parts[0]), rows.take(&parts[1]))
    }
}

/// Waits for what running commands will do, however long that takes on this machine; one that ends never will.
#[track_caller]
pub(crate) fn wait_until(running: &mut [&mut Child], mut done: impl FnMut() -> bool) {
    while !done() {
        let ended = running.iter_mut().find_map(|child| child.try_wait().unwrap());
        assert!(ended.is_none() || done(), "a run ended before that: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Says that this machine cannot show something; in CI that is a failure. Not by `eprintln!`, which the harness keeps
/// to itself where a test passes.
#[cfg(target_os = "linux")]
pub(crate) fn skipped(why: &str) {
    use std::io::Write as _;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}; CI skips nothing");
    std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes()).unwrap();
}

/// The values of JSON Lines.
pub(crate) fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
