//! `RunFolder`: one run's files, and the promise that they all belong to one config.
//!
//! ```text
//! config.toml          what was asked for          model.safetensors    best weights
//! progress.json        how far it is               test.npz             logits and labels of the test rows
//! checkpoint-N.mpk     weights and moments then    card.json, card.md   what came out
//! curve.csv, curve.svg loss and accuracy
//! ```

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use conformax_io::{Output, Overwrite};

use crate::config::Config;
use crate::error::{Error, Result};

/// The folder of a run; nobody else trains into it while this value lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

/// Whether there was a run in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// The folder was new or empty.
    No,
    /// It held a run of the same config.
    Yes,
}

const CONFIG: &str = "config.toml";
const VERSION: &str = "version";

impl RunFolder {
    /// Opens the folder, or makes it, for a run of `config`. A run of another config there is an error.
    pub fn open(path: &Path, config: &Config) -> Result<(Self, Resumed)> {
        std::fs::create_dir_all(path).map_err(|error| conformax_io::Error::new(path, error))?;
        let folder = Self { path: path.to_owned(), _lock: lock(path)? };
        let written = table(config);
        let resumed = match std::fs::read_to_string(folder.file(CONFIG)) {
            Ok(text) => folder.expect_same(&text, &written).map(|()| Resumed::Yes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                folder.write(CONFIG, saved(written).as_bytes())?;
                Resumed::No
            }
            Err(error) => return Err(conformax_io::Error::new(folder.file(CONFIG), error).into()),
        };
        Ok((folder, resumed))
    }

    /// Where the run is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Replaces a file in one step: a reader sees the old or the new one, whole.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name);
        let mut output = Output::create(&path, Overwrite::Replace)?;
        output.write_all(bytes).map_err(|error| conformax_io::Error::new(&path, error))?;
        Ok(output.finish()?)
    }

    /// A file's bytes, or `None` where there is no such file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(conformax_io::Error::new(path, error).into()),
        }
    }

    pub(crate) fn damaged(&self, name: &str, message: impl std::fmt::Display) -> Error {
        Error::Damaged { path: self.file(name), message: message.to_string() }
    }

    fn expect_same(&self, saved: &str, wanted: &toml::Table) -> Result<()> {
        let mut found: toml::Table =
            toml::from_str(saved).map_err(|error| self.damaged(CONFIG, error.message()))?;
        found.remove(VERSION);
        match difference("", &found, wanted) {
            None => Ok(()),
            Some(difference) => Err(Error::OtherRun { folder: self.path.clone(), difference }),
        }
    }
}

/// Two processes would overwrite each other's checkpoints. The system drops the lock with the process.
fn lock(path: &Path) -> Result<File> {
    let name = path.join(".lock");
    let file = File::create(&name).map_err(|error| conformax_io::Error::new(&name, error))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Busy { folder: path.to_owned() }),
        // Not every file system has locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

fn table(config: &Config) -> toml::Table {
    toml::Table::try_from(config).expect("a config is made of tables, numbers and text")
}

fn saved(mut table: toml::Table) -> String {
    table.insert(VERSION.to_owned(), env!("CARGO_PKG_VERSION").into());
    let text = toml::to_string(&table).expect("a config is made of tables, numbers and text");
    format!(
        "# The config of this run; relative paths start at the folder of the file that it was read from.\n{text}"
    )
}

/// The first key at which two tables differ, with both values.
fn difference(prefix: &str, found: &toml::Table, wanted: &toml::Table) -> Option<String> {
    let mut keys: Vec<&String> = found.keys().chain(wanted.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter().find_map(|key| {
        let shown = |value: Option<&toml::Value>| value.map_or("absent".to_owned(), toml::Value::to_string);
        match (found.get(key), wanted.get(key)) {
            (Some(toml::Value::Table(found)), Some(toml::Value::Table(wanted))) => {
                difference(&format!("{prefix}{key}."), found, wanted)
            }
            (found, wanted) if found == wanted => None,
            (found, wanted) => {
                Some(format!("{prefix}{key} is {} there and {} here", shown(found), shown(wanted)))
            }
        }
    })
}
