//! `Journal`: what a stream has been told, in a file that a killed process loses nothing of.
//!
//! A folder holds `journal-N.log` and, from the first compaction on, `snapshot-N.bin`, the stream as it was when
//! journal N began. A record is a marker, a length, a checksum and its contents. Predictions are handed to the system
//! before they are answered, which a killed process survives; labels are on the disk before they are answered, which a
//! machine without power survives. The labels that wait for the disk at the same time share one `fsync`.
//!
//! What was being written when everything ended may be there in part: records that cannot be read at the end are cut
//! off. Damage before a label is none of that, since everything before it was on the disk, and is an error.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformax::{Logits, PredictionSets, ScoreSpec, Stream};
use conformax_io::{Output, Overwrite};

use crate::Error;

const HEADER: &[u8; 16] = b"conformax jrnl 1";
const MARKER: [u8; 4] = [0xc5, b'r', b'e', b'c'];
/// Marker, length and checksum.
const FRAME: usize = 12;
/// A longer record is none: rows are limited long before.
const LONGEST_RECORD: usize = 1 << 30;

/// Something a stream was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    /// A row was given a set of this size at this level.
    Row { id: String, level: f64, group: Option<u32>, size: u32, logits: Vec<f64> },
    /// A row has this label.
    Label { id: String, label: u32 },
}

impl Record {
    fn write(&self, to: &mut Vec<u8>) {
        let text = |to: &mut Vec<u8>, text: &str| {
            to.extend((text.len() as u32).to_le_bytes());
            to.extend(text.as_bytes());
        };
        let start = to.len();
        to.extend([0; FRAME]);
        match self {
            Self::Row { id, level, group, size, logits } => {
                to.push(1);
                text(to, id);
                to.extend(level.to_le_bytes());
                to.push(u8::from(group.is_some()));
                to.extend(group.unwrap_or_default().to_le_bytes());
                to.extend(size.to_le_bytes());
                to.extend(logits.iter().flat_map(|logit| logit.to_le_bytes()));
            }
            Self::Label { id, label } => {
                to.push(2);
                text(to, id);
                to.extend(label.to_le_bytes());
            }
        }
        let (len, sum) = ((to.len() - start - FRAME) as u32, crc32fast::hash(&to[start + FRAME..]));
        to[start..start + 4].copy_from_slice(&MARKER);
        to[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
        to[start + 8..start + 12].copy_from_slice(&sum.to_le_bytes());
    }

    /// The record at the beginning of these bytes and how many it takes; `None` where none can be read.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (frame, rest) = bytes.split_first_chunk::<FRAME>()?;
        let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let len = word(4) as usize;
        let body = rest.get(..len).filter(|_| frame[..4] == MARKER && len <= LONGEST_RECORD)?;
        if crc32fast::hash(body) != word(8) {
            return None;
        }
        let mut from = Fields(body);
        let record = match from.take::<1>()?[0] {
            1 => {
                let (id, level) = (from.text()?, f64::from_le_bytes(from.take()?));
                let (has, group) = (from.take::<1>()?[0], u32::from_le_bytes(from.take()?));
                let size = u32::from_le_bytes(from.take()?);
                let (logits, []) = from.0.as_chunks::<8>() else { return None };
                let logits = logits.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                Self::Row { id, level, group: (has == 1).then_some(group), size, logits }
            }
            2 => {
                let (id, label) = (from.text()?, u32::from_le_bytes(from.take()?));
                from.0.is_empty().then_some(Self::Label { id, label })?
            }
            _ => return None,
        };
        Some((record, FRAME + len))
    }

    /// Tells a stream what it was told before; what it refused then it refuses now.
    fn replay(self, stream: &mut Stream<ScoreSpec>) {
        // Both calls are the ones that were made before the record was answered, with the same outcome.
        let _ = match self {
            Self::Label { id, label } => stream.update(&id, label).map(|_| ()),
            Self::Row { id, level, group, size, logits } => {
                let groups = group.map(|group| [group]);
                let classes = logits.len();
                // The stream counts the labels of a set, not which they are.
                let labels: Vec<u32> = (0..size).collect();
                let sets = PredictionSets::from_parts(classes, vec![0, labels.len()], labels);
                Logits::new(&logits, classes).and_then(|rows| {
                    let rows = match &groups {
                        Some(groups) => rows.with_groups(groups)?,
                        None => rows,
                    };
                    stream.remember(rows, &[&id], level, &sets?)
                })
            }
        };
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn text(&mut self) -> Option<String> {
        let len = u32::from_le_bytes(self.take()?) as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

/// An open journal. Whoever appends holds the lock of the stream that it is of.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    generation: u64,
    file: Arc<File>,
    len: u64,
    /// What could not be written may have left a part of it that could not be removed either.
    broken: bool,
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the folder of a stream, and the stream as it was told there.
    pub(crate) fn open(
        folder: &Path,
        fresh: Stream<ScoreSpec>,
    ) -> Result<(Self, Stream<ScoreSpec>, Replayed), Error> {
        let at = |error| Error::file(folder, error);
        fs::create_dir_all(folder).map_err(at)?;
        let generation = latest_snapshot(folder).map_err(at)?;
        let mut stream = match generation {
            0 => fresh,
            generation => {
                let path = snapshot_path(folder, generation);
                let bytes = fs::read(&path).map_err(|error| Error::file(&path, error))?;
                Stream::from_bytes(&bytes).map_err(|error| Error::damaged(&path, error))?
            }
        };
        let path = journal_path(folder, generation);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(at)?;
        let (len, replayed) = replay(&path, &mut file, &mut stream)?;
        remove_others(folder, generation);
        let file = Arc::new(file);
        let journal =
            Self { folder: folder.to_owned(), generation, file, len, broken: false, buffer: Vec::new() };
        Ok((journal, stream, replayed))
    }

    /// Hands records to the system, all of them or none.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        let path = journal_path(&self.folder, self.generation);
        if self.broken {
            self.cut(self.len).map_err(|error| Error::file(&path, error))?;
        }
        self.buffer.clear();
        records.iter().for_each(|record| record.write(&mut self.buffer));
        match (&*self.file).write_all(&self.buffer) {
            Ok(()) => {
                self.len += self.buffer.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = true;
                // What is left of it would be cut off on replay; without room for that either, the next call tries
                // again.
                let _ = self.cut(self.len);
                Err(Error::file(&path, error))
            }
        }
    }

    fn cut(&mut self, len: u64) -> std::io::Result<()> {
        self.file.set_len(len)?;
        self.broken = false;
        Ok(())
    }

    /// What to sync so that everything appended so far is on the disk.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Bytes of records since the last snapshot.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Leaves the stream as it is in a snapshot and begins an empty journal after it.
    pub(crate) fn compact(&mut self, stream: &Stream<ScoreSpec>) -> Result<(), Error> {
        let next = self.generation + 1;
        let (journal, snapshot) = (journal_path(&self.folder, next), snapshot_path(&self.folder, next));
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| Error::file(&path, error)
        };
        // Truncated: an earlier attempt may have come this far.
        let mut options = OpenOptions::new();
        fs::write(&journal, HEADER).map_err(at(&journal))?;
        let file = options.read(true).append(true).open(&journal).map_err(at(&journal))?;
        file.sync_all().map_err(at(&journal))?;
        // The name of the snapshot is the moment: before it the old pair counts, after it the new one.
        let mut output = Output::create(&snapshot, Overwrite::Replace)?;
        output.write_all(&stream.to_bytes()).map_err(at(&snapshot))?;
        let finished = output.finish().map_err(Error::from);
        // A snapshot whose folder could not be synced may have its name all the same, and would be what is opened next:
        // it goes, or else what follows goes to the journal after it.
        if finished.is_err() && gone(fs::remove_file(&snapshot)) {
            return finished;
        }
        (self.generation, self.file, self.len, self.broken) =
            (next, Arc::new(file), HEADER.len() as u64, false);
        if finished.is_ok() {
            remove_others(&self.folder, next);
        }
        finished
    }
}

/// Whether a file that was to be removed is no longer there.
fn gone(removed: std::io::Result<()>) -> bool {
    removed.map_or_else(|error| error.kind() == std::io::ErrorKind::NotFound, |()| true)
}

/// What was found on opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) records: u64,
    /// Bytes at the end that were no record.
    pub(crate) cut: u64,
}

fn replay(path: &Path, file: &mut File, stream: &mut Stream<ScoreSpec>) -> Result<(u64, Replayed), Error> {
    let at = |error| Error::file(path, error);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(at)?;
    if bytes.len() < HEADER.len() && HEADER.starts_with(&bytes) {
        // New, or killed while it was made.
        file.set_len(0).map_err(at)?;
        file.write_all(HEADER).map_err(at)?;
        file.sync_all().map_err(at)?;
        // Its name too, and those of the folders that were made for it.
        for folder in path.ancestors().skip(1).take(3).filter(|folder| folder.is_dir()) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(at)?;
        }
        return Ok((HEADER.len() as u64, Replayed { records: 0, cut: bytes.len() as u64 }));
    }
    let Some(mut rest) = bytes.strip_prefix(HEADER) else {
        return Err(Error::NoJournal { path: path.to_owned() });
    };
    let mut replayed = Replayed::default();
    while let Some((record, taken)) = Record::read(rest) {
        record.replay(stream);
        replayed.records += 1;
        rest = &rest[taken..];
    }
    let len = (bytes.len() - rest.len()) as u64;
    if let Some(labels) = labels_in(rest) {
        return Err(Error::Damaged { path: path.to_owned(), at: len, labels });
    }
    replayed.cut = rest.len() as u64;
    file.set_len(len).map_err(at)?;
    file.seek(SeekFrom::End(0)).map_err(at)?;
    Ok((len, replayed))
}

/// How many labels can be read beyond a place that cannot.
fn labels_in(bytes: &[u8]) -> Option<u64> {
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
    (labels > 0).then_some(labels)
}

fn journal_path(folder: &Path, generation: u64) -> PathBuf {
    folder.join(format!("journal-{generation}.log"))
}

fn snapshot_path(folder: &Path, generation: u64) -> PathBuf {
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

fn latest_snapshot(folder: &Path) -> std::io::Result<u64> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<std::io::Result<_>>()?;
    let snapshots = names.iter().filter_map(|name| generation_of(name.to_str()?)).filter(|(_, is)| *is);
    Ok(snapshots.map(|(generation, _)| generation).max().unwrap_or(0))
}

/// Removes what another generation left. Failing to is no reason not to go on.
fn remove_others(folder: &Path, generation: u64) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let other =
            entry.file_name().to_str().and_then(generation_of).is_some_and(|(of, _)| of != generation);
        if other {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use conformax::{Alpha, Calibration, SortedScores, StreamOptions};

    use super::*;

    fn stream() -> Stream<ScoreSpec> {
        let scores = SortedScores::new((0..50).map(f64::from).collect()).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), 3, scores).unwrap();
        Stream::new(calibration, Alpha::new(0.1).unwrap(), StreamOptions::default()).unwrap()
    }

    fn row(id: u32) -> Record {
        let logits = vec![f64::from(id), 1.0, f64::NEG_INFINITY];
        Record::Row { id: id.to_string(), level: 0.1, group: None, size: 2, logits }
    }

    fn label(id: u32) -> Record {
        Record::Label { id: id.to_string(), label: id % 3 }
    }

    /// A journal of rows that each get their label, and where each record ends.
    fn written(folder: &Path, rows: u32) -> (Stream<ScoreSpec>, Vec<u64>) {
        let (mut journal, mut stream, _) = Journal::open(folder, stream()).unwrap();
        let mut ends = vec![journal.len()];
        for record in (0..rows).flat_map(|id| [row(id), label(id)]) {
            journal.append(std::slice::from_ref(&record)).unwrap();
            record.replay(&mut stream);
            ends.push(journal.len());
        }
        (stream, ends)
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for record in [
            row(3),
            label(4),
            Record::Row { id: "ü".into(), level: -1.5, group: Some(2), size: 0, logits: vec![] },
        ] {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(Record::read(&bytes), Some((record.clone(), bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(Record::read(&bytes[..cut]), None);
            }
            for place in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[place] ^= 1;
                assert_eq!(Record::read(&damaged), None, "byte {place}");
            }
        }
    }

    #[test]
    fn a_journal_cut_anywhere_gives_the_stream_of_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let (_, ends) = written(folder.path(), 6);
        let whole = fs::read(journal_path(folder.path(), 0)).unwrap();
        for cut in 0..=whole.len() {
            fs::write(journal_path(folder.path(), 0), &whole[..cut]).unwrap();
            let (journal, found, replayed) = Journal::open(folder.path(), stream()).unwrap();
            let records = ends.iter().filter(|end| **end <= cut as u64).count().saturating_sub(1);
            assert_eq!(replayed.records, records as u64, "cut at {cut}");
            let mut wanted = stream();
            (0..6)
                .flat_map(|id| [row(id), label(id)])
                .take(records)
                .for_each(|record| record.replay(&mut wanted));
            assert_eq!(found.to_bytes(), wanted.to_bytes(), "cut at {cut}");
            assert_eq!(journal.len(), ends[records]);
        }
    }

    #[test]
    fn damage_before_a_label_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let (_, ends) = written(folder.path(), 6);
        let path = journal_path(folder.path(), 0);
        let whole = fs::read(&path).unwrap();
        for place in (16..ends[11]).step_by(5) {
            let mut damaged = whole.clone();
            damaged[place as usize] ^= 0x40;
            fs::write(&path, &damaged).unwrap();
            let error = Journal::open(folder.path(), stream()).unwrap_err().to_string();
            assert!(error.contains("damaged at byte") && error.contains("truncate -s"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), damaged, "nothing is changed");
        }
        // Beyond the last label nothing was promised.
        let mut damaged = whole.clone();
        damaged[ends[11] as usize + 3] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(Journal::open(folder.path(), stream()).is_ok());
        fs::write(&path, "something else altogether").unwrap();
        let error = Journal::open(folder.path(), stream()).unwrap_err().to_string();
        assert!(error.contains("is not a journal"), "{error}");
    }

    #[test]
    fn compaction_changes_nothing_but_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, mut told, _) = Journal::open(folder.path(), stream()).unwrap();
        for id in 0..20 {
            for record in [row(id), label(id)] {
                journal.append(std::slice::from_ref(&record)).unwrap();
                record.replay(&mut told);
            }
            if id % 7 == 3 {
                journal.compact(&told).unwrap();
            }
            let (_, found, _) = Journal::open(folder.path(), stream()).unwrap();
            assert_eq!(found.to_bytes(), told.to_bytes(), "after {id}");
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["journal-3.log", "snapshot-3.bin"]);
        // Killed after the new journal and before its snapshot: the old pair counts.
        fs::write(journal_path(folder.path(), 4), HEADER).unwrap();
        let (_, found, _) = Journal::open(folder.path(), stream()).unwrap();
        assert_eq!(found.to_bytes(), told.to_bytes());
    }
}
