//! `Output`: a file that appears under its name only when it is whole.
//!
//! Bytes go to `.NAME.conformax-PID-RANDOM.tmp` in the same folder, which is locked while its writer lives; `finish`
//! syncs it and gives it its name. A writer that is dropped removes it. One that was killed cannot, so the next writer of
//! the same name does, even one that then finds the name taken: it removes every such file that nobody has locked.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::error::{Error, InFile, Problem, Result};

/// What to do where the output is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// An error, on opening and again on finishing.
    #[default]
    Refuse,
    /// The new file takes its place, in one step.
    Replace,
}

/// A file being written.
#[derive(Debug)]
pub struct Output {
    file: File,
    path: PathBuf,
    temporary: PathBuf,
    overwrite: Overwrite,
    follows_dead_writer: bool,
    finished: bool,
}

impl Output {
    /// Opens the temporary file; the folder must exist.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::new(path, io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if overwrite == Overwrite::Refuse && path.try_exists().in_file(path)? {
            remove_leftovers(path);
            return Err(Error::new(path, Problem::Exists));
        }
        let (file, temporary) = create_locked(path).in_file(path)?;
        hold_where_asked("created", path);
        // Only now: were this writer killed between the two, a leftover would still tell of the one before it.
        let follows_dead_writer = remove_leftovers(path);
        hold_where_asked("cleared", path);
        Ok(Self { file, path: path.to_owned(), temporary, overwrite, follows_dead_writer, finished: false })
    }

    /// Whether an earlier writer of this name was killed: what it had finished elsewhere is then half of something.
    pub fn follows_dead_writer(&self) -> bool {
        self.follows_dead_writer
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and gives it its name.
    pub fn finish(mut self) -> Result<()> {
        self.commit().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(&self.path, Problem::Exists),
            _ => Error::new(&self.path, error),
        })?;
        self.finished = true;
        Ok(())
    }

    fn commit(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.sync_all()?;
        hold_where_asked("synced", &self.path);
        match self.overwrite {
            Overwrite::Replace => fs::rename(&self.temporary, &self.path)?,
            Overwrite::Refuse => link(&self.temporary, &self.path)?,
        }
        hold_where_asked("named", &self.path);
        sync_folder(&self.path)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be done about a failure here, and the next run tries again.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        hold_where_asked("written", &self.path);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the temporary names for `path` begin with.
fn temporary_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.conformax-")
}

fn create_locked(path: &Path) -> io::Result<(File, PathBuf)> {
    loop {
        let random = RandomState::new().hash_one(path) as u32;
        let name = format!("{}{}-{random:08x}.tmp", temporary_prefix(path), std::process::id());
        let temporary = folder_of(path).join(name);
        match OpenOptions::new().read(true).write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(file) => {
                // Between its creation and its lock another run may take it for a leftover: that one then holds the
                // lock, or has removed the file. Without locks in the file system nobody removes anything.
                let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
                if !taken && temporary.try_exists()? {
                    return Ok((file, temporary));
                }
            }
        }
    }
}

/// Removes the temporary files of writers that died, and says whether there were any. Failing to is no reason not to
/// write.
fn remove_leftovers(path: &Path) -> bool {
    let prefix = temporary_prefix(path);
    let Ok(entries) = fs::read_dir(folder_of(path)) else { return false };
    let ours = |name: &str| name.starts_with(&prefix) && name.ends_with(".tmp");
    let leftovers = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(ours));
    leftovers.filter(|entry| remove_unlocked(&entry.path())).count() > 0
}

/// Holds the lock until the file is gone: let go earlier, its writer could lock it in between and lose it.
fn remove_unlocked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    file.try_lock().is_ok() && fs::remove_file(path).is_ok()
}

/// Renames without replacing: a link fails where the name is taken, which a rename does not.
fn link(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Ok(()) => {
            hold_where_asked("linked", path);
            fs::remove_file(temporary)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // File systems without links: look, then rename.
        Err(_) if path.try_exists()? => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(temporary, path),
    }
}

/// A new name survives a crash only once its folder is on disk too.
fn sync_folder(path: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder_of(path))?.sync_all(),
        false => Ok(()),
    }
}

/// Lets a test kill a run at a named moment in the life of an output, however fast or busy the machine is: where
/// `CONFORMAX_HOLD` is `MOMENT NAME`, the run says so and goes no further. Nothing of it is in a release.
fn hold_where_asked(moment: &str, path: &Path) {
    if cfg!(debug_assertions) {
        static ASKED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("CONFORMAX_HOLD").ok());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ASKED.as_ref().is_some_and(|asked| *asked == format!("{moment} {name}")) {
            eprintln!("held: {moment} {name}");
            loop {
                std::thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.csv");
        let mut output = Output::create(&path, Overwrite::Refuse).unwrap();
        output.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(output);
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let mut output = Output::create(&path, Overwrite::Refuse).unwrap();
        output.write_all(b"whole").unwrap();
        output.finish().unwrap();
        assert_eq!(names(folder.path()), ["sets.csv"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn refuses_what_exists_even_if_it_came_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.csv");
        let output = Output::create(&path, Overwrite::Refuse).unwrap();
        fs::write(&path, "other").unwrap();
        assert!(matches!(output.finish().unwrap_err().problem(), Problem::Exists));
        assert!(matches!(Output::create(&path, Overwrite::Refuse).unwrap_err().problem(), Problem::Exists));
        assert_eq!(fs::read(&path).unwrap(), b"other");
        assert_eq!(names(folder.path()), ["sets.csv"]);
        Output::create(&path, Overwrite::Replace).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn removes_what_dead_writers_left_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.csv");
        fs::write(folder.path().join(".sets.csv.conformax-1-00000000.tmp"), "left").unwrap();
        fs::write(folder.path().join(".other.csv.conformax-1-00000000.tmp"), "left").unwrap();
        let alive = Output::create(&path, Overwrite::Refuse).unwrap();
        let second = Output::create(&path, Overwrite::Refuse).unwrap();
        assert!(alive.follows_dead_writer() && !second.follows_dead_writer());
        let mut found = names(folder.path());
        found.sort();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|name| name != ".sets.csv.conformax-1-00000000.tmp"));
        drop((alive, second));
        assert_eq!(names(folder.path()).len(), 1);
    }

    /// A writer killed between giving the file its name and removing the other one.
    #[test]
    fn removes_leftovers_even_where_the_name_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.csv");
        fs::write(&path, "whole").unwrap();
        fs::hard_link(&path, folder.path().join(".sets.csv.conformax-1-00000000.tmp")).unwrap();
        assert!(matches!(Output::create(&path, Overwrite::Refuse).unwrap_err().problem(), Problem::Exists));
        assert_eq!(names(folder.path()), ["sets.csv"]);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    /// Each writer of the crowd meets files of the others that are created but not locked yet.
    #[test]
    fn writers_of_one_name_never_take_each_other_for_dead() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.csv");
        std::thread::scope(|scope| {
            for writer in 0..4u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let mut output = Output::create(path, Overwrite::Replace).unwrap();
                        output.write_all(&[writer; 100]).unwrap();
                        assert!(output.temporary.exists());
                        fs::rename(&output.temporary, &output.path).unwrap();
                        output.finished = true;
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["sets.csv"]);
        assert_eq!(fs::read(&path).unwrap().len(), 100);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = Output::create(Path::new("/no/such/folder/sets.csv"), Overwrite::Refuse).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/folder/sets.csv: "), "{error}");
    }
}
