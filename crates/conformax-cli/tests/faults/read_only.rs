//! Folders that may be read and not written.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::disk::refusal;
use crate::folder::Folder;
use crate::{WRITERS, files_below, folder_for_writers};

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system_is_named_before_the_work() {
    use crate::disk::with_own_mounts;
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    for words in WRITERS {
        let script = format!(
            "mount --bind . . && mount -o remount,bind,ro . || exit 3
             cd \"$PWD\" && exec \"$1\" {words}"
        );
        let Some(output) = with_own_mounts(&script, &folder) else { return };
        let message = refusal(&output);
        assert!(message.contains("Read-only file system") && message.contains("hint: choose"), "{message}");
        assert_eq!(files_below(folder.path()), before, "{words}");
    }
}

/// Whom permissions do not bind.
const ROOT: u32 = 0;
/// Whom root becomes to be bound by them.
const NOBODY: u32 = 65534;

/// The command as a user whom permissions bind.
fn bound_by_permissions(folder: &Folder, words: &str) -> Output {
    let mut command = Command::new(folder.file("conformax"));
    command.args(words.split_whitespace()).current_dir(folder.path()).stdin(Stdio::null());
    if std::fs::metadata(folder.path()).unwrap().uid() == ROOT {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap()
}

#[test]
fn a_folder_without_permission_is_named_before_the_work() {
    let folder = folder_for_writers();
    // Nobody may not look into every folder in which a project is built.
    std::fs::copy(env!("CARGO_BIN_EXE_conformax"), folder.file("conformax")).unwrap();
    let before = files_below(folder.path());
    let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o555);
    for words in WRITERS {
        let message = refusal(&bound_by_permissions(&folder, words));
        assert!(message.contains("Permission denied") && message.contains("hint: choose"), "{message}");
    }
    mode(0o755);
    assert_eq!(files_below(folder.path()), before);
}
