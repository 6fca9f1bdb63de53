//! `Output`: a file that appears under its name only when it is whole.
//!
//! Bytes go to `.NAME.conformax-PID-RANDOM.tmp` in the same folder, which is locked while its writer lives; `finish`
//! syncs it and gives it its name. A writer that is dropped removes it. One that was killed cannot, so the next writer
//! of the same name does, even one that then finds the name taken: it removes every such file that nobody has locked.
//!
//! What is no plain file has nothing to be replaced and nothing to protect: a pipe or a device is written to as it is,
//! and `-` is standard output.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

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
    target: Target,
    path: PathBuf,
    overwrite: Overwrite,
    follows_dead_writer: bool,
    _listed: Option<Listed>,
}

/// The temporary files that this process is writing.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A temporary file that is among the unfinished as long as this is there.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

/// Removes every temporary file of this process and lets nobody begin another, for a process that ends at once.
///
/// ```no_run
/// conformax_io::abandon_outputs();
/// std::process::exit(2);
/// ```
pub fn abandon_outputs() {
    let unfinished = unfinished();
    for path in &*unfinished {
        // One that has got its name meanwhile is none any more.
        let _ = fs::remove_file(path);
    }
    // Never let go: whoever is about to begin a file waits for the end instead.
    std::mem::forget(unfinished);
}

#[derive(Debug)]
enum Target {
    /// A plain file under a temporary name, removed when dropped.
    Temporary(NamedTempFile),
    /// A pipe or a device.
    Special(File),
    StandardOutput(io::Stdout),
}

impl Output {
    /// Opens the temporary file, or what is no plain file; the folder must exist.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        let open = |target| Self {
            target,
            path: path.to_owned(),
            overwrite,
            follows_dead_writer: false,
            _listed: None,
        };
        if path.is_dir() {
            return Err(Error::new(path, io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if is_standard_output(path) {
            let path = PathBuf::from("standard output");
            return Ok(Self { path, ..open(Target::StandardOutput(io::stdout())) });
        }
        if Self::is_special(path) {
            // What a shell has opened is added to, where it is a file after all.
            let file = OpenOptions::new().append(true).open(path).in_file(path)?;
            return Ok(open(Target::Special(file)));
        }
        if overwrite == Overwrite::Refuse && path.try_exists().in_file(path)? {
            remove_leftovers(path);
            return Err(Error::new(path, Problem::Exists));
        }
        let (temporary, listed) = create_listed(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(path, Problem::NoFolder),
            _ => Error::new(path, error),
        })?;
        hold_where_asked("created", path);
        // Only now: were this writer killed between the two, a leftover would still tell of the one before it.
        let follows_dead_writer = remove_leftovers(path);
        hold_where_asked("cleared", path);
        Ok(Self { follows_dead_writer, _listed: Some(listed), ..open(Target::Temporary(temporary)) })
    }

    /// Whether a path stands for something that is written to as it is: standard output, a pipe or a device.
    pub fn is_special(path: &Path) -> bool {
        let special = |data: fs::Metadata| !data.is_file() && !data.is_dir();
        is_standard_output(path) || is_descriptor(path) || fs::metadata(path).is_ok_and(special)
    }

    /// Whether an earlier writer of this name was killed: what it had finished elsewhere is then half of something.
    pub fn follows_dead_writer(&self) -> bool {
        self.follows_dead_writer
    }

    /// Whether it is standard output, which then has room for nothing else.
    pub fn is_standard(&self) -> bool {
        matches!(self.target, Target::StandardOutput(_))
    }

    /// The name the file will have, or what standard output is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the file and gives it its name.
    pub fn finish(self) -> Result<()> {
        let Self { target, path, overwrite, .. } = self;
        let finished = match target {
            Target::Temporary(temporary) => commit(temporary, &path, overwrite),
            Target::Special(mut file) => file.flush(),
            Target::StandardOutput(mut out) => out.flush(),
        };
        finished.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(&path, Problem::Exists),
            _ => Error::new(&path, error),
        })
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.target {
            Target::Temporary(temporary) => temporary.as_file_mut(),
            Target::Special(file) => file,
            Target::StandardOutput(out) => out,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer().write(bytes)?;
        hold_where_asked("written", &self.path);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Seek for Output {
    /// Only a plain file has places: a device may take the call and stay where it is.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.target {
            Target::Temporary(temporary) => temporary.as_file_mut().seek(to),
            Target::Special(_) | Target::StandardOutput(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }
}

/// `-`, and the names that systems have for standard output.
fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// What a shell has opened, under the name that a program knows it by; behind it may be anything.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

fn commit(temporary: NamedTempFile, path: &Path, overwrite: Overwrite) -> io::Result<()> {
    temporary.as_file().sync_all()?;
    hold_where_asked("synced", path);
    match overwrite {
        Overwrite::Replace => drop(temporary.persist(path)?),
        Overwrite::Refuse => persist_new(temporary, path)?,
    }
    hold_where_asked("named", path);
    sync_folder(path)
}

/// Gives the file its name without replacing another.
fn persist_new(temporary: NamedTempFile, path: &Path) -> io::Result<()> {
    match temporary.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Err(failed.error),
        // File systems that know neither links nor a rename that does not replace: look, then rename.
        Err(_) if path.try_exists()? => Err(io::ErrorKind::AlreadyExists.into()),
        Err(failed) => {
            failed.file.persist(path)?;
            Ok(())
        }
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

/// A temporary file that is listed from the moment it is there.
fn create_listed(path: &Path) -> io::Result<(NamedTempFile, Listed)> {
    let mut unfinished = unfinished();
    let temporary = create_locked(path)?;
    unfinished.insert(temporary.path().to_owned());
    let listed = Listed(temporary.path().to_owned());
    Ok((temporary, listed))
}

fn create_locked(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = format!("{}{}-", temporary_prefix(path), std::process::id());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp").rand_bytes(8);
    // Temporary files are for their owner alone; this one becomes a file like any other.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let temporary = builder.tempfile_in(folder_of(path)).map_err(without_path)?;
        // Between its creation and its lock another run may take it for a leftover: that one then holds the lock, or
        // has removed the file. Without locks in the file system nobody removes anything.
        let taken = matches!(temporary.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !taken && temporary.path().try_exists()? {
            return Ok(temporary);
        }
    }
}

/// The error of the system alone: the name of a temporary file means nothing to whoever named the output.
fn without_path(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|error| error.source()).and_then(|cause| cause.downcast_ref());
    let code = cause.and_then(io::Error::raw_os_error);
    code.map_or(error, io::Error::from_raw_os_error)
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
                        let Target::Temporary(temporary) = output.target else { panic!("a plain file") };
                        assert!(temporary.path().exists());
                        temporary.persist(path).unwrap();
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
        assert!(matches!(error.problem(), Problem::NoFolder));
    }

    #[cfg(unix)]
    #[test]
    fn everybody_may_read_what_everybody_may_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, plain) = (folder.path().join("sets.csv"), folder.path().join("plain"));
        Output::create(&path, Overwrite::Refuse).unwrap().finish().unwrap();
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_or_a_pipe_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        for overwrite in [Overwrite::Refuse, Overwrite::Replace] {
            let mut output = Output::create(Path::new("/dev/null"), overwrite).unwrap();
            output.write_all(b"nothing").unwrap();
            assert!(output.seek(SeekFrom::Start(0)).is_err());
            output.finish().unwrap();
            assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        let mut output = Output::create(&path, Overwrite::Replace).unwrap();
        output.write_all(b"rows").unwrap();
        output.finish().unwrap();
        assert_eq!(reader.join().unwrap(), b"rows");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    fn a_dash_is_standard_output() {
        for name in ["-", "/dev/stdout", "/proc/self/fd/1"] {
            let output = Output::create(Path::new(name), Overwrite::Refuse).unwrap();
            assert!(matches!(output.target, Target::StandardOutput(_)), "{name}");
        }
        assert!(!Path::new("-").exists());
    }
}
