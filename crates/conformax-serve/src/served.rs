//! `Served`: one calibrated model in use: its stream, its journal, and what was predicted and learned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use conformax::{
    Alpha, CoverageLaw, Feedback, Logit, Logits, PredictionSets, Predictor, ScoreSpec, Stream, StreamOptions,
    StreamStatus, Taxonomy, TracePoint,
};
use conformax_io::{JsonRow, JsonRows, Model};

use crate::Error;
use crate::journal::{Journal, Record, Replayed};

/// A journal longer than this is put together into a snapshot.
const COMPACT_AT: u64 = 64 << 20;
/// Probability that coverage lies in the band where nothing changed.
pub(crate) const BAND: f64 = 0.95;

/// Bands remembered at most: those of every point of a trace, many times over.
const MOST_BANDS: usize = 1 << 13;

/// A model in use.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) model: Model,
    pub(crate) rows: JsonRows,
    /// Tells this calibration, level and these options from every other.
    pub(crate) fingerprint: String,
    live: Mutex<Live>,
    /// How many appends are known to be on the disk. Whoever holds it syncs for all that wait.
    synced: tokio::sync::Mutex<Result<u64, ()>>,
    bands: Mutex<BTreeMap<u64, (f64, f64)>>,
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
        let fingerprint = fingerprint(&fresh);
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
        };
        Ok((served, replayed))
    }

    /// A panic while the lock was held would have left a stream that is as it was: records come first.
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What predicts now.
    pub(crate) fn moment(&self) -> Moment {
        let live = self.live();
        Moment { level: live.stream.level(), predictor: live.stream.predictor() }
    }

    /// Takes in rows that were given these sets, each under its name or one that is made, to wait for their labels.
    pub(crate) fn remember<T: Logit>(
        &self,
        level: f64,
        logits: Logits<'_, T>,
        groups: Option<&[u32]>,
        given: Vec<Option<String>>,
        sets: PredictionSets,
    ) -> Result<Predicted, Error> {
        let mut live = self.live();
        let Live { stream, journal, appended } = &mut *live;
        let names = named(stream, given);
        if let Some(journal) = journal {
            let row = |index: usize| {
                let row = &logits.as_slice()[index * logits.classes()..][..logits.classes()];
                Record::Row {
                    id: names[index].clone(),
                    level,
                    group: groups.map(|groups| groups[index]),
                    size: sets.get(index).map_or(0, <[u32]>::len) as u32,
                    logits: row.iter().map(|logit| logit.to_f64()).collect(),
                }
            };
            journal.append(&(0..logits.len()).map(row).collect::<Vec<_>>())?;
            *appended += 1;
        }
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        // Its rows were checked when they got their sets.
        let _ = stream.remember(logits, &borrowed, level, &sets);
        Ok(Predicted { level, sets, names })
    }

    /// Takes in a label; to be kept for good once [`settle`](Self::settle) has returned.
    pub(crate) fn learn(&self, name: &str, label: u32) -> Result<Feedback, Error> {
        let mut live = self.live();
        let Live { stream, journal, appended } = &mut *live;
        if let (Some(journal), true) = (journal, stream.waits(name)) {
            journal.append(&[Record::Label { id: name.to_owned(), label }])?;
            *appended += 1;
        }
        // The label is one of the classes, and the row was checked.
        Ok(stream.update(name, label).unwrap_or(Feedback::Unknown))
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
        let done = tokio::task::spawn_blocking(move || file.sync_data()).await;
        // A sync that failed may have dropped what it could not write: the next one would not tell.
        *synced = if matches!(done, Ok(Ok(()))) { Ok(covered) } else { Err(()) };
        synced.map(|_| ()).map_err(|()| Error::NotSynced)
    }

    /// Puts a long journal together.
    pub(crate) async fn compact_if_long(self: &Arc<Self>) -> Result<(), Error> {
        if self.live().journal.as_ref().is_none_or(|journal| journal.len() < COMPACT_AT) {
            return Ok(());
        }
        self.compact().await
    }

    /// Puts the journal together into a snapshot.
    pub(crate) async fn compact(self: &Arc<Self>) -> Result<(), Error> {
        // Nobody syncs the old file meanwhile and takes that for the new one.
        let mut synced = self.synced.lock().await;
        let served = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let mut live = served.live();
            let Live { stream, journal, appended } = &mut *live;
            journal.as_mut().map_or(Ok(()), |journal| journal.compact(stream)).map(|()| *appended)
        });
        let appended = done.await.map_err(|_| Error::NotSynced)??;
        if let Ok(synced) = &mut *synced {
            *synced = appended;
        }
        Ok(())
    }

    /// Whether what it is told can be kept.
    pub(crate) fn is_sound(&self) -> bool {
        self.synced.try_lock().map_or(true, |synced| synced.is_ok())
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
fn named(stream: &Stream<ScoreSpec>, given: Vec<Option<String>>) -> Vec<String> {
    let taken: BTreeSet<String> = given.iter().flatten().cloned().collect();
    let is_free = |name: &String| !taken.contains(name) && !stream.waits(name);
    let made = |row: u64| {
        let first = format!("row-{row}");
        let others = (2_u64..).map(|again| format!("row-{row}-{again}"));
        std::iter::once(first).chain(others).find(&is_free).expect("there is no end of names")
    };
    let rows = stream.status().predicted..;
    rows.zip(given).map(|(row, given)| given.unwrap_or_else(|| made(row))).collect()
}

/// The first id that another row of the request has too.
pub(crate) fn repeated<'a>(ids: impl Iterator<Item = &'a Option<String>>) -> Option<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    let given = ids.enumerate().filter_map(|(row, id)| Some((row, id.as_deref()?)));
    given.into_iter().find(|(_, id)| !seen.insert(*id))
}

/// The rows of a request as one matrix, with their names and groups.
pub(crate) struct Rows {
    pub(crate) logits: Vec<f64>,
    pub(crate) names: Vec<Option<String>>,
    pub(crate) groups: Option<Vec<u32>>,
}

impl Rows {
    /// Of objects that all have logits; the error is the first that has none.
    pub(crate) fn of(objects: Vec<JsonRow>) -> Result<Self, usize> {
        let mut rows = Self { logits: Vec::new(), names: Vec::new(), groups: None };
        for (index, object) in objects.into_iter().enumerate() {
            rows.names.push(object.name());
            rows.logits.extend_from_slice(&object.logits.ok_or(index)?);
            if let Some(group) = object.group {
                rows.groups.get_or_insert_default().push(group);
            }
        }
        Ok(rows)
    }
}

/// The checksum of a stream that has been told nothing: of its calibration, level and options.
pub(crate) fn fingerprint(fresh: &Stream<ScoreSpec>) -> String {
    let bytes = fresh.to_bytes();
    let sum = bytes.last_chunk::<8>().copied().unwrap_or_default();
    format!("{:016x}", u64::from_le_bytes(sum))
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
