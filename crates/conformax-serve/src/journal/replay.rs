//! What a folder holds of a stream: which files there are, and what they say when they are read again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use conformax::{ScoreSpec, Stream};

use super::HEADER;
use super::record::{MARKER, Record};
use crate::Error;

/// What was found on opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) records: u64,
    /// Bytes at the end that were no record.
    pub(crate) cut: u64,
    /// Bytes of all journals that were replayed.
    pub(super) bytes: u64,
}

/// The files of a stream's folder.
#[derive(Debug, Default)]
pub(super) struct Generations {
    /// The latest snapshot; 0 where there is none.
    pub(super) snapshot: u64,
    /// The journals from there on.
    pub(super) journals: BTreeSet<u64>,
}

impl Generations {
    pub(super) fn of(folder: &Path) -> std::io::Result<Self> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
        let names = names.collect::<std::io::Result<Vec<_>>>()?;
        let all: Vec<_> = names.iter().filter_map(|name| generation_of(name.to_str()?)).collect();
        let of =
            |kind: bool| all.iter().filter(move |(_, is)| *is == kind).map(|(generation, _)| *generation);
        let snapshot = of(true).max().unwrap_or(0);
        Ok(Self { snapshot, journals: of(false).filter(|journal| *journal >= snapshot).collect() })
    }
}

/// Tells a stream what its journals hold; the last one, to go on with.
pub(super) fn replay_all(
    folder: &Path,
    found: &Generations,
    stream: &mut Stream<ScoreSpec>,
) -> Result<(u64, Replayed), Error> {
    let (mut replayed, last) =
        (Replayed::default(), found.journals.last().copied().unwrap_or(found.snapshot));
    for generation in found.snapshot..=last {
        let path = journal_path(folder, generation);
        let bytes = read_journal(&path)?;
        let Some(mut rest) = bytes.strip_prefix(HEADER) else {
            return Err(match HEADER.starts_with(&bytes) {
                true => Error::Emptied { path },
                false => Error::NoJournal { path },
            });
        };
        while let Some((record, taken)) = Record::read(rest) {
            record.replay(stream);
            replayed.records += 1;
            rest = &rest[taken..];
        }
        let len = (bytes.len() - rest.len()) as u64;
        replayed.bytes += len;
        if rest.is_empty() {
            continue;
        }
        let mut labels = labels_in(rest);
        for later in generation + 1..=last {
            labels += labels_in(&read_journal(&journal_path(folder, later))?);
        }
        if labels > 0 {
            return Err(Error::Damaged { path, at: len, labels });
        }
        // Half written when everything ended: cut off, with what was after it and as little promised.
        replayed.cut = rest.len() as u64;
        let cut = OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(len));
        cut.map_err(|error| Error::file(&path, error))?;
        for later in generation + 1..=last {
            let path = journal_path(folder, later);
            fs::remove_file(&path).map_err(|error| Error::file(&path, error))?;
        }
        return Ok((generation, replayed));
    }
    Ok((last, replayed))
}

/// The bytes of a journal that must be there: those before it or a snapshot say so.
fn read_journal(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Emptied { path: path.to_owned() },
        _ => Error::file(path, error),
    })
}

/// How many labels can be read beyond a place that cannot.
fn labels_in(bytes: &[u8]) -> u64 {
    let (mut labels, mut at) = (0, 0);
    while let Some(next) = bytes[at..].windows(4).position(|window| window == MARKER) {
        at += next;
        match Record::read(&bytes[at..]) {
            Some((record, taken)) => {
                labels += u64::from(matches!(record, Record::Label { .. }));
                at += taken;
            }
            None => at += 1,
        }
    }
    labels
}

pub(super) fn journal_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("journal-{generation}.log"))
}

pub(super) fn snapshot_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("snapshot-{generation}.bin"))
}

/// The generation of a file of ours, and whether it is a snapshot.
fn generation_of(name: &str) -> Option<(u64, bool)> {
    let number = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok();
    match number("snapshot-", ".bin") {
        Some(generation) => Some((generation, true)),
        None => number("journal-", ".log").map(|generation| (generation, false)),
    }
}

/// Removes what a process that was killed had not finished writing: nobody else writes here.
pub(super) fn remove_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".tmp")) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes what a snapshot stands for. Failing to is no reason not to go on.
pub(super) fn remove_before(folder: &Path, snapshot: u64) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let before = entry.file_name().to_str().and_then(generation_of).is_some_and(|(of, _)| of < snapshot);
        if before {
            let _ = fs::remove_file(entry.path());
        }
    }
}
