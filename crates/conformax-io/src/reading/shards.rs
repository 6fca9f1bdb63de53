//! The files that `Data` names, in order: folders become their shards, sorted by name.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::data::format::Format;
use crate::error::{Error, InFile, Problem, Result};
use crate::reading::open::File;
use crate::reading::source_options::Data;

/// The files to be read one after another.
pub(crate) fn shards(data: &Data) -> Result<Vec<File>> {
    match data {
        Data::Pair { logits, labels } => Ok(vec![File::new(logits, labels.as_deref())]),
        Data::InMemory { name, bytes } => Ok(vec![File::in_memory(name, bytes)]),
        Data::Files(paths) if paths.is_empty() => Err(Error::new("-", Problem::NoRows)),
        Data::Files(paths) => {
            let mut files = Vec::new();
            for path in paths {
                match path.is_dir() {
                    true => files.extend(in_folder(path)?),
                    false => files.push(File::new(path, None)),
                }
            }
            each_once(&files)?;
            Ok(files)
        }
    }
}

/// Refuses a file that is there twice, whatever its names: its rows would be twice as many as there are.
fn each_once(files: &[File]) -> Result<()> {
    let mut before = HashSet::new();
    match files.iter().find(|file| file.identity().is_some_and(|identity| !before.insert(identity))) {
        Some(twice) => Err(Error::new(twice.path(), Problem::FileTwice)),
        None => Ok(()),
    }
}

/// Data files of one format in a folder. Other files (`_SUCCESS`, notes) are left alone; a `labels-3.npy` belongs to
/// the `logits-3.npy` beside it.
fn in_folder(folder: &Path) -> Result<Vec<File>> {
    let mut by_format: BTreeMap<Format, Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).in_file(folder)? {
        let path = entry.in_file(folder)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let Some(format) = Format::of_name(&path).filter(|_| !hidden) else { continue };
        match path.metadata() {
            Ok(data) if data.is_file() => by_format.entry(format).or_default().push(path),
            Ok(_) => {}
            // A shard that cannot be read is a part of the data that would be missing.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.is_symlink() => {
                return Err(Error::new(path, Problem::DanglingLink));
            }
            Err(error) => return Err(Error::new(path, error)),
        }
    }
    if by_format.len() > 1 {
        let formats: Vec<_> = by_format.keys().map(Format::to_string).collect();
        return Err(Error::new(folder, Problem::MixedFolder(formats.join(", "))));
    }
    let mut paths = by_format.into_values().next().ok_or_else(|| Error::new(folder, Problem::EmptyFolder))?;
    paths.sort();
    Ok(pair_up(&paths))
}

fn pair_up(paths: &[PathBuf]) -> Vec<File> {
    let labels_of = |path: &Path| -> Option<&PathBuf> {
        let wanted = path.file_name()?.to_str()?.replace("logits", "labels");
        paths.iter().find(|other| *other != path && other.file_name().is_some_and(|name| *name == *wanted))
    };
    let taken: Vec<_> = paths.iter().filter_map(|path| labels_of(path)).collect();
    paths
        .iter()
        .filter(|path| !taken.contains(path))
        .map(|path| File::new(path, labels_of(path).map(PathBuf::as_path)))
        .collect()
}
