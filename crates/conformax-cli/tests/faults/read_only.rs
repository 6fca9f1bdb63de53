//! Folders that may be read and not written.

use std::os::unix::fs::PermissionsExt;

use crate::disk::refusal;
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

#[test]
fn a_folder_without_permission_is_named_before_the_work() {
    let folder = folder_for_writers();
    let before = files_below(folder.path());
    let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
    mode(0o555);
    if std::fs::write(folder.file("probe"), "").is_ok() {
        eprintln!("skipped: permissions do not bind this user");
        return;
    }
    for words in WRITERS {
        let message = refusal(&folder.command(words).output().unwrap());
        assert!(message.contains("Permission denied") && message.contains("hint: choose"), "{message}");
    }
    mode(0o755);
    assert_eq!(files_below(folder.path()), before);
}
