//! `Journal`: what a stream has been told, in a file that a killed process loses nothing of.
//!
//! A folder holds `journal-N.log` and, from the first compaction on, `snapshot-N.bin`, the stream as it was when
//! journal N began. A compaction begins journal N + 1 first and writes snapshot N + 1 while records go there: until it
//! has its name, both journals are replayed after the snapshot before. A record is a marker, a length, a checksum and
//! its contents. Predictions are handed to the system before they are answered, which a killed process survives; labels
//! are on the disk before they are answered, which a machine without power survives. The labels that wait for the disk
//! at the same time share one `fsync`.
//!
//! What was being written when everything ended may be there in part: records that cannot be read at the end are cut
//! off. Damage before a label is none of that, since everything before it was on the disk, and is an error.

mod record;
mod replay;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformax::{ScoreSpec, Stream};
use conformax_io::{Output, Overwrite};

use self::replay::{Generations, journal_path, remove_before, remove_unfinished, replay_all, snapshot_path};
use crate::Error;

pub(crate) use self::record::{GivenRow, Record, Recorded};
pub(crate) use self::replay::Replayed;

const HEADER: &[u8; 16] = b"conformax jrnl 1";
/// An open journal. Whoever appends holds the lock of the stream that it is of.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    generation: u64,
    file: Arc<File>,
    len: u64,
    /// Bytes of journals before this one that no snapshot holds, as they were found on opening.
    earlier: u64,
    /// What could not be written may have left a part of it that could not be removed either.
    broken: bool,
    /// Bytes that the disk has to take before it is said to have room: it refused as many, or was not asked yet.
    untried: usize,
    buffer: Vec<u8>,
}

/// Bytes that the buffer keeps from one call to the next.
const MOST_BUFFER: usize = 1 << 20;

/// What is tried where nothing has been written yet: a block of most file systems.
const FIRST_TRY: usize = 4096;

impl Journal {
    /// Opens the folder of a stream, and the stream as it was told there.
    pub(crate) fn open(
        folder: &Path,
        fresh: Stream<ScoreSpec>,
    ) -> Result<(Self, Stream<ScoreSpec>, Replayed), Error> {
        fs::create_dir_all(folder).map_err(|error| Error::file(folder, error))?;
        let found = Generations::of(folder).map_err(|error| Error::file(folder, error))?;
        let mut stream = match found.snapshot {
            0 => fresh,
            generation => {
                let path = snapshot_path(folder, generation);
                let bytes = fs::read(&path).map_err(|error| Error::file(&path, error))?;
                Stream::from_bytes(&bytes).map_err(|error| Error::damaged(&path, error))?
            }
        };
        let (generation, replayed) = match found.snapshot == 0 && found.journals.is_empty() {
            true => {
                drop(created(folder, 0)?);
                // The names of the folders that were made for it too.
                for folder in folder.ancestors().skip(1).take(2).filter(|folder| folder.is_dir()) {
                    let synced = File::open(folder).and_then(|folder| folder.sync_all());
                    synced.map_err(|error| Error::file(folder, error))?;
                }
                (0, Replayed::default())
            }
            false => replay_all(folder, &found, &mut stream)?,
        };
        let path = journal_path(folder, generation);
        let at = |error| Error::file(&path, error);
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(at)?;
        let len = file.metadata().map_err(at)?.len();
        let journal = Self {
            folder: folder.to_owned(),
            generation,
            file: Arc::new(file),
            len,
            earlier: replayed.bytes.saturating_sub(len),
            broken: false,
            untried: FIRST_TRY,
            buffer: Vec::new(),
        };
        remove_before(folder, found.snapshot);
        remove_unfinished(folder);
        Ok((journal, stream, replayed))
    }

    /// Hands records to the system, all of them or none.
    pub(crate) fn append(&mut self, records: impl IntoIterator<Item = impl Recorded>) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        records.into_iter().for_each(|record| record.write(&mut buffer));
        let written = self.write(&buffer);
        match &written {
            Ok(()) => (self.len, self.untried) = (self.len + buffer.len() as u64, 0),
            Err(_) => self.untried = buffer.len(),
        }
        buffer.clear();
        buffer.shrink_to(MOST_BUFFER);
        self.buffer = buffer;
        written.map_err(|error| Error::file(&journal_path(&self.folder, self.generation), error))
    }

    /// Writes bytes after those there are; where that fails they are taken back.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.mend()?;
        let written = (&*self.file).write_all(bytes);
        if written.is_err() {
            self.broken = true;
            // What is left of it would be cut off on replay; without room for that either, the next call tries again.
            let _ = self.mend();
        }
        written
    }

    /// Cuts off what a write that failed has left.
    fn mend(&mut self) -> std::io::Result<()> {
        if self.broken {
            self.file.set_len(self.len)?;
            self.broken = false;
        }
        Ok(())
    }

    /// Whether the disk takes more. Where it refused, or was not asked yet, as much is written and taken back.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.untried > 0 && self.write(&vec![0; self.untried]).is_ok() {
            (self.untried, self.broken) = (0, true);
            let _ = self.mend();
        }
        self.untried == 0
    }

    /// What to sync so that everything appended so far is on the disk.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Bytes of records since the last snapshot, or since the last one was begun.
    pub(crate) fn len(&self) -> u64 {
        self.earlier + self.len
    }

    /// Where the journal after this one goes, to be made without holding up anybody.
    pub(crate) fn next(&self) -> NextJournal {
        NextJournal { folder: self.folder.clone(), generation: self.generation + 1 }
    }

    /// From here on everything goes to the next journal; out comes the stream as it was between the two. To be synced
    /// before anybody takes what is in the next one for all there is: the file before it.
    pub(crate) fn turn(
        &mut self,
        next: &NextJournal,
        file: File,
        stream: &Stream<ScoreSpec>,
    ) -> Result<Compaction, Error> {
        self.mend().map_err(|error| Error::file(&journal_path(&self.folder, self.generation), error))?;
        let before = std::mem::replace(&mut self.file, Arc::new(file));
        (self.generation, self.len, self.earlier) = (next.generation, HEADER.len() as u64, 0);
        Ok(Compaction { next: next.clone(), before, stream: stream.clone() })
    }
}

/// The place of a journal that comes after another.
#[derive(Debug, Clone)]
pub(crate) struct NextJournal {
    folder: PathBuf,
    generation: u64,
}

impl NextJournal {
    /// Makes it, empty. As long as nothing turns to it, it changes nothing.
    pub(crate) fn create(&self) -> Result<File, Error> {
        created(&self.folder, self.generation)
    }
}

/// A stream as it was when its journal was changed for the next, on its way into a snapshot. Whether that is written
/// makes no difference: without it both journals are replayed.
#[derive(Debug)]
pub(crate) struct Compaction {
    next: NextJournal,
    pub(crate) before: Arc<File>,
    stream: Stream<ScoreSpec>,
}

impl Compaction {
    /// Writes the snapshot, and removes what it stands for.
    pub(crate) fn write(self) -> Result<(), Error> {
        let NextJournal { folder, generation } = &self.next;
        let path = snapshot_path(folder, *generation);
        let mut output = Output::create(&path, Overwrite::Replace)?;
        output.write_all(&self.stream.to_bytes()).map_err(|error| Error::file(&path, error))?;
        output.finish()?;
        remove_before(folder, *generation);
        Ok(())
    }
}

/// A new journal without records, open to append. It has its name only with its header: a shorter file was damaged.
fn created(folder: &Path, generation: u64) -> Result<File, Error> {
    let path = journal_path(folder, generation);
    let at = |error| Error::file(&path, error);
    let mut output = Output::create(&path, Overwrite::Replace)?;
    output.write_all(HEADER).map_err(at)?;
    output.finish()?;
    OpenOptions::new().read(true).append(true).open(&path).map_err(at)
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
    fn a_journal_cut_anywhere_gives_the_stream_of_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let (_, ends) = written(folder.path(), 6);
        let whole = fs::read(journal_path(folder.path(), 0)).unwrap();
        for cut in HEADER.len()..=whole.len() {
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

    /// A journal gets its name with its header: without it, or without the file, something took it away.
    #[test]
    fn an_emptied_journal_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal_path(folder.path(), 0);
        let (told, _) = written(folder.path(), 6);
        let whole = fs::read(&path).unwrap();
        for len in [0, 1, HEADER.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let error = Journal::open(folder.path(), stream()).unwrap_err().to_string();
            assert!(error.contains("emptied") && error.contains("restore"), "{error}");
            assert_eq!(fs::read(&path).unwrap().len(), len, "nothing is changed");
        }
        fs::write(&path, &whole).unwrap();
        let (mut journal, _, _) = Journal::open(folder.path(), stream()).unwrap();
        compact(&mut journal, &told);
        drop(journal);
        fs::remove_file(journal_path(folder.path(), 1)).unwrap();
        let error = Journal::open(folder.path(), stream()).unwrap_err().to_string();
        assert!(error.contains("journal-1.log") && error.contains("restore"), "{error}");
    }

    fn turned(journal: &mut Journal, told: &Stream<ScoreSpec>) -> Compaction {
        let next = journal.next();
        let file = next.create().unwrap();
        journal.turn(&next, file, told).unwrap()
    }

    fn compact(journal: &mut Journal, told: &Stream<ScoreSpec>) {
        turned(journal, told).write().unwrap();
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
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
                compact(&mut journal, &told);
            }
            let (_, found, _) = Journal::open(folder.path(), stream()).unwrap();
            assert_eq!(found.to_bytes(), told.to_bytes(), "after {id}");
        }
        assert_eq!(names(folder.path()), ["journal-3.log", "snapshot-3.bin"]);
        // Killed after the new journal and before anything turned to it.
        fs::write(journal_path(folder.path(), 4), HEADER).unwrap();
        let (_, found, _) = Journal::open(folder.path(), stream()).unwrap();
        assert_eq!(found.to_bytes(), told.to_bytes());
    }

    /// Whatever comes while a snapshot is on its way is there, whether it arrives, fails or is killed with the process.
    #[test]
    fn what_comes_during_a_compaction_is_kept_however_it_ends() {
        for ends in ["written", "killed", "killed twice"] {
            let folder = tempfile::tempdir().unwrap();
            let (mut journal, mut told, _) = Journal::open(folder.path(), stream()).unwrap();
            let tell = |journal: &mut Journal, told: &mut Stream<ScoreSpec>, ids: std::ops::Range<u32>| {
                for record in ids.flat_map(|id| [row(id), label(id)]) {
                    journal.append(std::slice::from_ref(&record)).unwrap();
                    record.replay(told);
                }
            };
            tell(&mut journal, &mut told, 0..5);
            let compaction = turned(&mut journal, &told);
            tell(&mut journal, &mut told, 5..9);
            match ends {
                "written" => compaction.write().unwrap(),
                "killed" => drop(compaction),
                _ => {
                    drop((compaction, turned(&mut journal, &told)));
                    tell(&mut journal, &mut told, 9..12);
                }
            }
            let len = journal.len();
            drop(journal);
            let (mut journal, mut found, _) = Journal::open(folder.path(), stream()).unwrap();
            assert_eq!(found.to_bytes(), told.to_bytes(), "{ends}");
            // What no snapshot holds counts towards the next one.
            assert_eq!(journal.len() > len, ends != "written", "{ends}");
            tell(&mut journal, &mut found, 20..22);
            compact(&mut journal, &found);
            let (_, again, _) = Journal::open(folder.path(), stream()).unwrap();
            assert_eq!(again.to_bytes(), found.to_bytes(), "{ends}");
            assert_eq!(names(folder.path()).len(), 2, "{ends}");
        }
    }

    /// Damage at the end of a journal that another follows is damage in the middle.
    #[test]
    fn damage_before_the_labels_of_the_next_journal_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, mut told, _) = Journal::open(folder.path(), stream()).unwrap();
        journal.append(&[row(0), label(0)]).unwrap();
        [row(0), label(0)].into_iter().for_each(|record| record.replay(&mut told));
        drop(turned(&mut journal, &told));
        journal.append(&[row(1)]).unwrap();
        let (first, second) = (journal_path(folder.path(), 0), journal_path(folder.path(), 1));
        let whole = fs::read(&first).unwrap();
        journal.append(&[label(1)]).unwrap();
        fs::write(&first, &whole[..whole.len() - 3]).unwrap();
        let error = Journal::open(folder.path(), stream()).unwrap_err().to_string();
        assert!(error.contains("damaged at byte") && error.contains("1 label after it"), "{error}");
        // Without a label nothing was promised.
        let len = fs::read(&second).unwrap().len();
        let mut bytes = Vec::new();
        label(1).write(&mut bytes);
        fs::write(&second, &fs::read(&second).unwrap()[..len - bytes.len()]).unwrap();
        let (_, _, replayed) = Journal::open(folder.path(), stream()).unwrap();
        assert_eq!(replayed.records, 1);
        assert_eq!(names(folder.path()), ["journal-0.log"]);
    }
}
