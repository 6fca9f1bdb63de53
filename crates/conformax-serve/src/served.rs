//! `Served`: one calibrated model in use: its stream, its journal, and what was predicted and learned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conformax::{
    Alpha, CoverageLaw, Feedback, Logit, Logits, PredictionSets, Predictor, Prior, ScoreSpec, Stream,
    StreamOptions, StreamStatus, Taxonomy, TracePoint,
};
use conformax_io::{ClassNames, GIVE_LOGITS, JsonRow, JsonRows, LIKE_PROBABILITIES, Model};

use crate::journal::{GivenRow, Journal, Record, Replayed};
use crate::{Error, Note};

/// Probability that coverage lies in the band where nothing changed.
pub(crate) const BAND: f64 = 0.95;

/// Bands remembered at most: those of every point of a trace, many times over.
const MOST_BANDS: usize = 1 << 13;

/// A journal is put together once it is so many times as long as what is written for it. With many classes the rows
/// that wait are more than any limit that suits few, and a snapshot of all of them for every few that came would be
/// most of the work there is.
const WORTH: u64 = 2;

/// A model in use.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) model: Model,
    pub(crate) rows: JsonRows,
    /// Tells this calibration, how its rows and labels are read, level and options from every other.
    pub(crate) fingerprint: String,
    live: Mutex<Live>,
    /// How many appends are known to be on the disk. Whoever holds it syncs for all that wait.
    synced: tokio::sync::Mutex<Result<u64, ()>>,
    bands: Mutex<BTreeMap<u64, (f64, f64)>>,
    /// Whether rows that look like probabilities were told of.
    has_warned: AtomicBool,
}

/// What requests change, one at a time.
#[derive(Debug)]
struct Live {
    stream: Stream<ScoreSpec>,
    journal: Option<Journal>,
    appended: u64,
}

/// Sets, and the names their rows wait under where they do.
#[derive(Debug)]
pub(crate) struct Predicted {
    pub(crate) level: f64,
    pub(crate) sets: PredictionSets,
    pub(crate) names: Vec<String>,
}

/// What the level was when a set was made, and what makes it.
pub(crate) struct Moment {
    pub(crate) level: f64,
    pub(crate) predictor: Arc<Predictor<ScoreSpec>>,
}

/// Where a stream stands, and how it went.
pub(crate) struct Standing {
    pub(crate) status: StreamStatus,
    pub(crate) options: StreamOptions,
    pub(crate) most_recent: u64,
    pub(crate) trace: Vec<TracePoint>,
}

impl Served {
    /// A model with its stream: as it was left in the folder, or fresh.
    pub(crate) fn open(
        model: Model,
        fresh: Stream<ScoreSpec>,
        folder: Option<&Path>,
    ) -> Result<(Self, Replayed), Error> {
        let fingerprint = fingerprint(&model, &fresh);
        let (stream, journal, replayed) = match folder {
            None => (fresh, None, Replayed::default()),
            Some(folder) => {
                let (journal, stream, replayed) = Journal::open(&folder.join(&fingerprint), fresh)?;
                (stream, Some(journal), replayed)
            }
        };
        let served = Self {
            rows: JsonRows::new(&model),
            model,
            fingerprint,
            live: Mutex::new(Live { stream, journal, appended: 0 }),
            synced: tokio::sync::Mutex::new(Ok(0)),
            bands: Mutex::new(BTreeMap::new()),
            has_warned: AtomicBool::new(false),
        };
        Ok((served, replayed))
    }

    /// A panic while the lock was held would have left a stream that is as it was: records come first.
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets nobody predict or learn until what comes out is dropped.
    #[cfg(test)]
    pub(crate) fn held(&self) -> impl Sized {
        self.live()
    }

    /// How often rows or labels were taken in.
    #[cfg(test)]
    pub(crate) fn appended(&self) -> u64 {
        self.live().appended
    }

    /// What predicts now.
    pub(crate) fn moment(&self) -> Moment {
        let live = self.live();
        Moment { level: live.stream.level(), predictor: live.stream.predictor() }
    }

    /// Takes in rows that were given these sets, each under its name or one that is made, to wait for their labels. No
    /// name that is made is among those that are taken by other rows of the request.
    pub(crate) fn remember<T: Logit>(
        &self,
        level: f64,
        logits: Logits<'_, T>,
        groups: Option<&[u32]>,
        given: Vec<Option<String>>,
        taken: &BTreeSet<String>,
        sets: PredictionSets,
    ) -> Result<Predicted, Error> {
        let mut live = self.live();
        let Live { stream, journal, appended } = &mut *live;
        let names = named(stream, given, taken);
        if let Some(journal) = journal {
            let rows = logits.as_slice().chunks_exact(logits.classes()).zip(sets.iter());
            let rows = names.iter().enumerate().zip(rows).map(|((index, id), (logits, set))| {
                let group = groups.map(|groups| groups[index]);
                GivenRow { id, level, group, size: set.len() as u32, logits }
            });
            journal.append(rows)?;
            *appended += 1;
        }
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        // Its rows were checked when they got their sets.
        let _ = stream.remember(logits, &borrowed, level, &sets);
        Ok(Predicted { level, sets, names })
    }

    /// What whoever sent the rows of a request is told, where all of them look like probabilities; whoever runs the
    /// service is told of the first such request.
    pub(crate) fn warning(&self, doubtful: bool, name: &str, note: &Note) -> Option<String> {
        let warning = doubtful.then(|| format!("these rows {LIKE_PROBABILITIES}; {GIVE_LOGITS}"))?;
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            note(&format!("{name}: warning: {warning}"));
        }
        Some(warning)
    }

    /// Whether a row of this name waits for its label, or had it lately.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.live().stream.knows(name)
    }

    /// Takes in labels, all of them or none; to be kept for good once [`settle`](Self::settle) has returned.
    pub(crate) fn learn(&self, labels: &[(&str, u32)]) -> Result<Vec<Feedback>, Error> {
        let mut live = self.live();
        let Live { stream, journal, appended } = &mut *live;
        if let Some(journal) = journal {
            let waiting = labels.iter().filter(|(name, _)| stream.waits(name));
            let records: Vec<Record> = waiting
                .map(|(name, label)| Record::Label { id: (*name).to_owned(), label: *label })
                .collect();
            if !records.is_empty() {
                journal.append(&records)?;
                *appended += 1;
            }
        }
        // The labels are some of the classes, and the rows were checked.
        Ok(labels
            .iter()
            .map(|(name, label)| stream.update(name, *label).unwrap_or(Feedback::Unknown))
            .collect())
    }

    /// Returns when everything that was taken in before the call is on the disk.
    pub(crate) async fn settle(self: &Arc<Self>) -> Result<(), Error> {
        let wanted = self.live().appended;
        // In a task of its own: a request that is given up in the middle must not take what its sync found along.
        let served = Arc::clone(self);
        tokio::spawn(async move { served.sync(wanted).await }).await.map_err(|_| Error::NotSynced)?
    }

    async fn sync(&self, wanted: u64) -> Result<(), Error> {
        let mut synced = self.synced.lock().await;
        if synced.map_err(|()| Error::NotSynced)? >= wanted {
            return Ok(());
        }
        let (file, covered) = {
            let live = self.live();
            match &live.journal {
                None => return Ok(()),
                Some(journal) => (journal.file(), live.appended),
            }
        };
        *synced = sync_file(file).await.map(|()| covered);
        synced.map(|_| ()).map_err(|()| Error::NotSynced)
    }

    /// Puts a journal together that is longer than so many bytes, and worth its snapshot.
    pub(crate) async fn compact_if_longer(self: &Arc<Self>, bytes: u64) -> Result<(), Error> {
        {
            let live = self.live();
            let wanted = bytes.max(WORTH * self.waiting_bytes(&live.stream));
            if live.journal.as_ref().is_none_or(|journal| journal.len() < wanted) {
                return Ok(());
            }
        }
        // In a task of its own: given up in the middle, a file could be left that nobody syncs.
        let served = Arc::clone(self);
        tokio::spawn(async move { served.compact().await }).await.map_err(|_| Error::NotSynced)?
    }

    /// The logits of the rows that wait, which are most of a snapshot.
    fn waiting_bytes(&self, stream: &Stream<ScoreSpec>) -> u64 {
        stream.status().waiting * self.model.classes as u64 * size_of::<f64>() as u64
    }

    /// Puts the journal together into a snapshot. Requests go on meanwhile: they wait for a copy of the stream in
    /// memory and for one sync, not for what is written.
    async fn compact(&self) -> Result<(), Error> {
        let Some(next) = self.live().journal.as_ref().map(Journal::next) else { return Ok(()) };
        let place = next.clone();
        let file = blocking(move || place.create()).await?;
        let compaction = {
            // Nobody syncs the new file meanwhile and takes that for both.
            let mut synced = self.synced.lock().await;
            let (compaction, covered) = {
                let mut live = self.live();
                let Live { stream, journal: Some(journal), appended } = &mut *live else { return Ok(()) };
                (journal.turn(&next, file, stream)?, *appended)
            };
            if synced.is_ok() {
                *synced = sync_file(Arc::clone(&compaction.before)).await.map(|()| covered);
            }
            synced.map_err(|()| Error::NotSynced)?;
            compaction
        };
        blocking(move || compaction.write()).await
    }

    /// Why what it is told cannot be kept, where it cannot.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        if self.synced.try_lock().is_ok_and(|synced| synced.is_err()) {
            return Some("the journal could not be synced to the disk");
        }
        let has_room = self.live().journal.as_mut().is_none_or(Journal::has_room);
        (!has_room).then_some("the disk is full: rows and labels cannot be taken in")
    }

    /// Where the stream stands, and how it went.
    pub(crate) fn standing(&self) -> Standing {
        let Live { stream, .. } = &*self.live();
        Standing {
            status: stream.status(),
            options: stream.options(),
            most_recent: stream.most_recent(),
            trace: stream.trace().to_vec(),
        }
    }

    /// Where coverage over so many labels lies with probability 0.95 as long as nothing changes and the level stays:
    /// the exact law, where all rows share a threshold.
    pub(crate) fn band(&self, labels: u64) -> Option<(f64, f64)> {
        if !matches!(self.model.scheme, conformax::Scheme::Groups(Taxonomy::All)) || labels == 0 {
            return None;
        }
        let alpha = self.live().stream.alpha();
        let mut bands = self.bands.lock().unwrap_or_else(PoisonError::into_inner);
        match bands.get(&labels) {
            Some(known) => Some(*known),
            None => {
                let found = CoverageLaw::at_level(self.model.n, alpha).interval_of_rows(BAND, labels).ok()?;
                if bands.len() >= MOST_BANDS {
                    bands.clear();
                }
                bands.insert(labels, found);
                Some(found)
            }
        }
    }
}

/// The names of rows, given or made; what is made is the name of no other row that waits or is about to.
fn named(stream: &Stream<ScoreSpec>, given: Vec<Option<String>>, taken: &BTreeSet<String>) -> Vec<String> {
    let is_free = |name: &String| !taken.contains(name) && !stream.waits(name);
    let made = |row: u64| {
        let first = format!("row-{row}");
        let others = (2_u64..).map(|again| format!("row-{row}-{again}"));
        std::iter::once(first).chain(others).find(&is_free).expect("there is no end of names")
    };
    let rows = stream.status().predicted..;
    rows.zip(given).map(|(row, given)| given.unwrap_or_else(|| made(row))).collect()
}

/// The rows of a request as one matrix, with their names and groups.
pub(crate) struct Rows {
    pub(crate) logits: Vec<f64>,
    pub(crate) names: Vec<Option<String>>,
    pub(crate) groups: Option<Vec<u32>>,
    /// Whether all of them look like probabilities.
    pub(crate) doubtful: bool,
}

impl Rows {
    /// Of objects that all have logits; the error is the first that has none.
    pub(crate) fn of(objects: Vec<JsonRow>) -> Result<Self, usize> {
        let doubtful = !objects.is_empty() && objects.iter().all(|object| object.doubtful);
        let mut rows = Self { logits: Vec::new(), names: Vec::new(), groups: None, doubtful };
        for (index, object) in objects.into_iter().enumerate() {
            rows.names.push(object.name());
            let logits = object.logits.ok_or(index)?;
            // Most requests bring one row, which stays where it was read to.
            match index {
                0 => rows.logits = logits,
                _ => rows.logits.extend_from_slice(&logits),
            }
            if let Some(group) = object.group {
                rows.groups.get_or_insert_default().push(group);
            }
        }
        Ok(rows)
    }
}

/// Work that may take its time, beside the threads that answer.
async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::NotSynced)?
}

/// A sync that failed may have dropped what it could not write, and the next one would not tell.
async fn sync_file(file: Arc<File>) -> Result<(), ()> {
    let done = tokio::task::spawn_blocking(move || file.sync_data()).await;
    if matches!(done, Ok(Ok(()))) { Ok(()) } else { Err(()) }
}

/// The checksum of a stream that has been told nothing (of its calibration, level and options) and of how rows and
/// labels are read: what a label was called when its row was predicted is what it is called when it comes.
pub(crate) fn fingerprint(model: &Model, fresh: &Stream<ScoreSpec>) -> String {
    let bytes = fresh.to_bytes();
    let names = model.names.as_ref().map(ClassNames::as_slice);
    let prior = model.prior.as_ref().map(Prior::as_slice);
    let read = (names, model.input.name(), prior, &model.beside.column, &model.beside.groups);
    let read = serde_json::to_vec(&read).expect("names and finite numbers have a form in JSON");
    // FNV-1a: folders bear it, so it must stay what it is.
    let sum = bytes.last_chunk::<8>().into_iter().flatten().chain(&read);
    let sum = sum.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{sum:016x}")
}

/// How a stream of a model begins.
pub(crate) fn fresh_stream(
    model: &Model,
    alpha: Option<Alpha>,
    options: StreamOptions,
    path: &Path,
) -> Result<Stream<ScoreSpec>, Error> {
    model.stream(alpha, options).map_err(|problem| conformax_io::Error::new(path, problem).into())
}

#[cfg(test)]
mod tests {
    use conformax::{Calibration, SortedScores};

    use super::*;

    /// With a thousand classes a row of the journal is a row of the snapshot too, as long as it waits.
    #[tokio::test]
    async fn a_snapshot_is_worth_its_journal() {
        let (folder, classes) = (tempfile::tempdir().unwrap(), 1_000);
        let scores = SortedScores::new((0..50).map(f64::from).collect()).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), classes, scores).unwrap();
        let model = Model::new(&calibration, &[Alpha::new(0.1).unwrap()], None);
        let stream = model.stream(None, StreamOptions::default()).unwrap();
        let (served, _) = Served::open(model, stream, Some(folder.path())).unwrap();
        let (served, row) = (Arc::new(served), vec![0.5; classes]);
        let tell = |id: &str| {
            let (rows, moment) = (Logits::new(&row, classes).unwrap(), served.moment());
            let sets = moment.predictor.predict(rows).unwrap();
            served
                .remember(moment.level, rows, None, vec![Some(id.to_owned())], &BTreeSet::new(), sets)
                .unwrap();
        };
        let len = || served.live().journal.as_ref().unwrap().len();
        for (id, compacted) in [("a", false), ("b", false), ("a", false), ("b", true), ("c", false)] {
            tell(id);
            let before = len();
            served.compact_if_longer(1).await.unwrap();
            assert_eq!(len() < before, compacted, "{id}");
        }
        // Whatever they are worth, those below the limit stay.
        tell("c");
        tell("c");
        let before = len();
        served.compact_if_longer(1 << 20).await.unwrap();
        assert_eq!(len(), before);
        let fresh = fresh_stream(&served.model, None, StreamOptions::default(), folder.path()).unwrap();
        let found = Journal::open(&folder.path().join(&served.fingerprint), fresh).unwrap().1;
        assert_eq!(found.to_bytes(), served.live().stream.to_bytes());
    }
}
