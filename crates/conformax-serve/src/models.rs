//! `Models`: the models by name, each from its file and picked up again when the file is replaced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use conformax::{Alpha, ScoreSpec, Stream, StreamOptions};
use conformax_io::Model;

use crate::served::{Served, fresh_stream};
use crate::{Error, Note};

/// Models that a file held before and whose rows may still get their labels: beyond so many the oldest is let go.
const MOST_EARLIER: usize = 8;

/// Every model, and the folder they are kept in.
#[derive(Debug)]
pub(crate) struct Models {
    slots: BTreeMap<String, Slot>,
    first: String,
    alpha: Option<Alpha>,
    options: StreamOptions,
    state: Option<PathBuf>,
    /// Held as long as the process lives.
    _lock: Option<File>,
    pub(crate) reload_failures: AtomicU64,
}

/// A name, its file, and what was read from it.
#[derive(Debug)]
struct Slot {
    path: PathBuf,
    state: RwLock<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    stamp: Option<Stamp>,
    current: Arc<Served>,
    /// Models that the file held before, whose rows may still get their labels; one of them may come back.
    earlier: Vec<Arc<Served>>,
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, PartialEq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    identity: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let identity = std::os::unix::fs::MetadataExt::ino(&data);
        #[cfg(not(unix))]
        let identity = 0;
        Some(Self { len: data.len(), modified: data.modified().ok(), identity })
    }
}

impl Models {
    /// Reads every model, and takes their streams up from the folder.
    pub(crate) fn open(
        named: &[(String, PathBuf)],
        alpha: Option<Alpha>,
        options: StreamOptions,
        state: Option<&Path>,
        note: &Note,
    ) -> Result<Self, Error> {
        let first = named.first().ok_or(Error::NoModel)?.0.clone();
        let lock = state.map(locked).transpose()?;
        let mut models = Self {
            slots: BTreeMap::new(),
            first,
            alpha,
            options,
            state: state.map(Path::to_owned),
            _lock: lock,
            reload_failures: AtomicU64::new(0),
        };
        for (name, path) in named {
            check_name(name)?;
            let stamp = Stamp::of(path);
            let model = Model::read(path)?;
            let fresh = fresh_stream(&model, alpha, options, path)?;
            let current = Arc::new(models.open_stream(name, model, fresh, note)?);
            let state = RwLock::new(SlotState { stamp, current, earlier: Vec::new() });
            if models.slots.insert(name.clone(), Slot { path: path.clone(), state }).is_some() {
                return Err(Error::NameTwice(name.clone()));
            }
        }
        Ok(models)
    }

    /// Takes the stream of a model up from its folder.
    fn open_stream(
        &self,
        name: &str,
        model: Model,
        fresh: Stream<ScoreSpec>,
        note: &Note,
    ) -> Result<Served, Error> {
        let folder = self.state.as_ref().map(|state| state.join(name));
        let (served, replayed) = Served::open(model, fresh, folder.as_deref())?;
        if replayed.cut > 0 {
            note(&format!(
                "{name}: cut off what was half written at the end of the journal: {} B",
                replayed.cut
            ));
        }
        Ok(served)
    }

    /// The model of a name; the first where none is given.
    pub(crate) fn get(&self, name: Option<&str>) -> Option<Arc<Served>> {
        let slot = self.slots.get(name.unwrap_or(&self.first))?;
        Some(Arc::clone(&slot.state.read().unwrap_or_else(PoisonError::into_inner).current))
    }

    /// The model of a name and those that its file held before, the latest first.
    pub(crate) fn lineage(&self, name: Option<&str>) -> Option<Vec<Arc<Served>>> {
        let slot = self.slots.get(name.unwrap_or(&self.first))?;
        let state = slot.state.read().unwrap_or_else(PoisonError::into_inner);
        Some(std::iter::once(&state.current).chain(state.earlier.iter().rev()).cloned().collect())
    }

    /// The name that stands for a request without one.
    pub(crate) fn name<'a>(&'a self, name: Option<&'a str>) -> &'a str {
        name.unwrap_or(&self.first)
    }

    /// Every model with its name, in order.
    pub(crate) fn all(&self) -> Vec<(&str, Arc<Served>)> {
        self.slots.keys().filter_map(|name| Some((name.as_str(), self.get(Some(name))?))).collect()
    }

    /// Reads the files that have changed. One that cannot be used is told of, and the old model stays.
    pub(crate) fn reload(&self, note: &Note) {
        for (name, slot) in &self.slots {
            let stamp = Stamp::of(&slot.path);
            let known = slot.state.read().unwrap_or_else(PoisonError::into_inner).stamp.clone();
            if stamp.is_none() || stamp == known {
                continue;
            }
            let told = match self.replace(name, slot, stamp, note) {
                Ok(true) => format!("{name}: picked up {}", slot.path.display()),
                Ok(false) => continue,
                Err(error) => {
                    self.reload_failures.fetch_add(1, Ordering::Relaxed);
                    format!("{name}: the old model stays: {error}")
                }
            };
            note(&told);
        }
    }

    /// Whether another model took the place of the one there was.
    fn replace(&self, name: &str, slot: &Slot, stamp: Option<Stamp>, note: &Note) -> Result<bool, Error> {
        let found = Model::read(&slot.path).map_err(Error::from).and_then(|model| {
            let fresh = fresh_stream(&model, self.alpha, self.options, &slot.path)?;
            // What is open must not be opened again: two would write to one journal.
            let known = self.lineage(Some(name)).unwrap_or_default();
            let sum = crate::served::fingerprint(&model, &fresh);
            match known.into_iter().find(|served| served.fingerprint == sum) {
                Some(served) => Ok(served),
                None => self.open_stream(name, model, fresh, note).map(Arc::new),
            }
        });
        let mut state = slot.state.write().unwrap_or_else(PoisonError::into_inner);
        // A file that cannot be used is not looked at again until it changes.
        state.stamp = stamp;
        let found = found?;
        if Arc::ptr_eq(&found, &state.current) {
            return Ok(false);
        }
        state.earlier.retain(|served| !Arc::ptr_eq(served, &found));
        let before = std::mem::replace(&mut state.current, found);
        state.earlier.push(before);
        let beyond = state.earlier.len().saturating_sub(MOST_EARLIER);
        state.earlier.drain(..beyond);
        Ok(true)
    }
}

/// The file of a state folder that is held; no model may have its name.
const LOCK: &str = "lock";

/// Holds a state folder against other processes.
fn locked(state: &Path) -> Result<File, Error> {
    fs::create_dir_all(state).map_err(|error| Error::file(state, error))?;
    let path = state.join(LOCK);
    let file = File::create(&path).map_err(|error| Error::file(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(Error::Locked { path: state.to_owned() }),
        Err(fs::TryLockError::Error(error)) => Err(Error::file(&path, error)),
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    match (1..=64).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.') && name != LOCK
    {
        true => Ok(()),
        false => Err(Error::Name(name.to_owned())),
    }
}
