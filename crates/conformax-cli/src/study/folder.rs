//! `StudyFolder`: the files of a study, which stay together: `results.json` comes last and says that all are there.

use std::io::Write;
use std::path::{Path, PathBuf};

use conformax_io::{Error, Output, Overwrite, Problem};

use crate::args::overwrite;
use crate::failure::Failure;

/// The table of all records.
pub(super) const RESULTS_CSV: &str = "results.csv";

/// A folder being filled. Unless it is finished, what was written into it is removed again, so that the same command
/// can be given once more; where files were to be replaced, there may be nothing to go back to and they stay.
pub(crate) struct StudyFolder {
    path: PathBuf,
    /// Opened before the work, so that a folder that cannot be written to is found out now and not after it.
    json: Option<Output>,
    overwrite: Overwrite,
    /// Whether the folder was made for this.
    is_new: bool,
    written: Vec<PathBuf>,
}

impl StudyFolder {
    /// A folder of its own: one that holds something else is refused, unless that is what a killed run has left.
    pub(crate) fn open_empty(path: &Path, force: bool) -> Result<Self, Failure> {
        let occupied = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        let folder = Self::open(path, force)?;
        match occupied && folder.overwrite == Overwrite::Refuse {
            true => Err(Error::new(path, Problem::Exists).into()),
            false => Ok(folder),
        }
    }

    pub(crate) fn open(path: &Path, force: bool) -> Result<Self, Failure> {
        let is_new = !path.exists();
        create(path)?;
        let json = Output::create(&path.join("results.json"), overwrite(force))?;
        // A study that was killed while it wrote has left files that belong to no results.
        let replace = force || json.follows_dead_writer();
        // The first file to be written: in the way of all the others, and known before the work.
        drop(Output::create(&path.join(RESULTS_CSV), overwrite(replace))?);
        Ok(Self {
            path: path.to_owned(),
            json: Some(json),
            overwrite: overwrite(replace),
            is_new,
            written: Vec::new(),
        })
    }

    /// Writes a file, whose name may have folders in it.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            create(folder)?;
        }
        fill(Output::create(&path, self.overwrite)?, bytes)?;
        self.written.push(path);
        Ok(())
    }

    /// Writes `results.json`, after which everything stays.
    pub(crate) fn finish(mut self, results: &[u8]) -> Result<(), Failure> {
        fill(self.json.take().expect("results.json is open until it is written"), results)?;
        self.written.clear();
        Ok(())
    }
}

impl Drop for StudyFolder {
    fn drop(&mut self) {
        if self.overwrite == Overwrite::Refuse {
            for path in &self.written {
                // One that cannot be removed will be named by the next run.
                let _ = std::fs::remove_file(path);
            }
        }
        if self.is_new && self.json.take().is_some() {
            // Taken away unless something is in it.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn create(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::of_file(folder, "is a file, and a folder is wanted"),
        _ => Error::new(folder, error).into(),
    })
}

fn fill(mut output: Output, bytes: &[u8]) -> Result<(), Failure> {
    let path = output.path().to_owned();
    output.write_all(bytes).map_err(|error| Error::new(&path, error))?;
    Ok(output.finish()?)
}
