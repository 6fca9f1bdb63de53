//! No room: a limit on file sizes, a file system that is full, a standard output that takes nothing.

use std::process::{Command, Output, Stdio};
#[cfg(target_os = "linux")]
use std::sync::LazyLock;

use crate::folder::Folder;
#[cfg(target_os = "linux")]
use crate::folder::skipped;
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

/// How `unshare` gives a shell in which mounts can be made that nobody else sees and that are gone with it: as any user
/// where the system lets users have name spaces of their own, else as root.
#[cfg(target_os = "linux")]
static OWN_MOUNTS: LazyLock<Option<&[&str]>> = LazyLock::new(|| {
    let ways: [&[&str]; 2] = [&["--map-root-user", "--mount"], &["--mount"]];
    let works = |way: &&[&str]| {
        let mut command = Command::new("unshare");
        command.args(*way).args(["mount", "-t", "tmpfs", "none"]).arg(std::env::temp_dir());
        command.output().is_ok_and(|output| output.status.success())
    };
    ways.into_iter().find(works)
});

/// Runs a script that makes mounts; `$1` is the command.
#[cfg(target_os = "linux")]
pub(crate) fn with_own_mounts(script: &str, folder: &Folder) -> Option<Output> {
    let Some(way) = *OWN_MOUNTS else {
        skipped("this system lets no test make a mount of its own (in a container: give it CAP_SYS_ADMIN)");
        return None;
    };
    let mut command = Command::new("unshare");
    command.args(way).args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_conformax")]);
    Some(command.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_file_system_is_an_error_and_leaves_nothing() {
    let folder = folder_for_writers();
    for words in WRITERS {
        let script = format!(
            "mkdir -p small && mount -t tmpfs -o size=4m none small || exit 3
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
    for words in ["predict model.json test.npz", "inspect test.npz --json", "calibrate cal.npz -o other.json"]
    {
        let message = refusal(&after(&folder, "exec > /dev/full;", words).output().unwrap());
        assert!(
            message.contains("standard output") && message.contains("No space left"),
            "{words}: {message}"
        );
        if !words.contains("-o") {
            assert_eq!(files_below(folder.path()), before, "{words}");
        }
    }
    // The file does not depend on what becomes of the table.
    folder.run("inspect other.json").ok();
}
