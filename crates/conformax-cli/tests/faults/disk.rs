//! No room: a limit on file sizes, a file system that is full, a standard output that takes nothing.

use std::process::{Command, Output, Stdio};

use crate::folder::Folder;
use crate::{WRITERS, files_below, folder_for_writers};

/// Runs the command from a shell that has first done something to its surroundings.
pub(crate) fn after(folder: &Folder, preparation: &str, words: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{preparation} exec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_conformax"));
    shell.args(words.split_whitespace()).current_dir(folder.path());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// The message of a run that must have ended with 2.
#[track_caller]
pub(crate) fn refusal(output: &Output) -> String {
    let err = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{:?} {err}", output.status);
    assert!(err.starts_with("error: ") && !err.contains("panicked"), "{err}");
    err
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_nothing() {
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    for words in WRITERS {
        let message = refusal(&after(&folder, "ulimit -f 1;", words).output().unwrap());
        assert!(message.contains("File too large"), "{words}: {message}");
        assert!(message.contains("hint: ") && message.contains("ulimit -f"), "{words}: {message}");
        assert_eq!(files_below(folder.path()), before, "{words}");
        // Nothing of the failed run is in the way of the next one.
        folder.run(words).ok();
        for path in files_below(folder.path()) {
            if !before.contains(&path) {
                std::fs::remove_file(folder.file(&path)).unwrap();
            }
        }
    }
}

/// A shell in which mounts can be made that nobody else sees and that are gone with it.
#[cfg(target_os = "linux")]
pub(crate) fn with_own_mounts(script: &str, folder: &Folder) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c"]).arg(format!("{script}\n")).arg("sh");
    command.arg(env!("CARGO_BIN_EXE_conformax")).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.output().ok();
    let allowed = output.filter(|output| output.status.code() != Some(CANNOT_MOUNT));
    if allowed.is_none() {
        eprintln!("skipped: this system lets no test make a mount of its own");
    }
    allowed
}

/// What scripts end with where mounting is not allowed; `unshare` itself ends with 1.
#[cfg(target_os = "linux")]
pub(crate) const CANNOT_MOUNT: i32 = 1;

#[cfg(target_os = "linux")]
#[test]
fn a_full_file_system_is_an_error_and_leaves_nothing() {
    let folder = folder_for_writers();
    for words in WRITERS {
        let script = format!(
            "mkdir -p small && mount -t tmpfs -o size=4m none small || exit {CANNOT_MOUNT}
             cp *.json *.npz *.toml small && cd small || exit 3
             head -c 100m /dev/zero > filling 2> /dev/null
             find . -type f | sort > ../before
             \"$1\" {words}; code=$?
             find . -type f | sort > ../after
             cmp ../before ../after > /dev/null || exit 4
             exit $code"
        );
        let Some(output) = with_own_mounts(&script, &folder) else { return };
        let message = refusal(&output);
        assert!(message.contains("No space left on device"), "{words}: {message}");
        assert!(message.contains("hint: make room"), "{words}: {message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_is_full_is_an_error() {
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    for words in ["predict model.json test.npz", "calibrate cal.npz -o other.json", "inspect test.npz --json"]
    {
        let message = refusal(&after(&folder, "exec > /dev/full;", words).output().unwrap());
        assert!(
            message.contains("standard output") && message.contains("No space left"),
            "{words}: {message}"
        );
        assert_eq!(files_below(folder.path()), before, "{words}");
    }
}
