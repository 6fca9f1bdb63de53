//! Folders that may be read and not written.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::disk::refusal;
use crate::folder::Folder;
use crate::{WRITERS, files_below, folder_for_writers};

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system_is_named_before_the_work() {
    use crate::disk::{CANNOT_MOUNT, with_own_mounts};
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    for words in WRITERS {
        let script = format!(
            "mount --bind . . && mount -o remount,bind,ro . || exit {CANNOT_MOUNT}
             cd \"$PWD\" && exec \"$1\" {words}"
        );
        let Some(output) = with_own_mounts(&script, &folder) else { return };
        let message = refusal(&output);
        assert!(message.contains("Read-only file system") && message.contains("hint: choose"), "{message}");
        assert_eq!(files_below(folder.path()), before, "{words}");
    }
}

/// The command as a user whom permissions bind: they do not bind root, who then becomes nobody.
fn bound_by_permissions(folder: &Folder, words: &str) -> Option<Output> {
    let run = |words: &str| match std::fs::write(folder.file("probe"), "") {
        Err(_) => folder.command(words).output(),
        Ok(()) => {
            let _ = std::fs::remove_file(folder.file("probe"));
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                env!("CARGO_BIN_EXE_conformax"),
            ]);
            command.args(words.split_whitespace()).current_dir(folder.path()).stdin(Stdio::null()).output()
        }
    };
    let able = run("--version").is_ok_and(|output| output.status.success());
    if !able {
        eprintln!("skipped: permissions do not bind this user, who cannot become another");
    }
    able.then(|| run(words).unwrap())
}

#[test]
fn a_folder_without_permission_is_named_before_the_work() {
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o555);
    for words in WRITERS {
        let Some(output) = bound_by_permissions(&folder, words) else { break };
        let message = refusal(&output);
        assert!(message.contains("Permission denied") && message.contains("hint: choose"), "{message}");
    }
    mode(0o755);
    assert_eq!(files_below(folder.path()), before);
}
