//! Long work without the interpreter: threads, blocks of rows, and Ctrl-C.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformax::{Logit, Logits};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::array::{Number, View};
use crate::error::{Fault, value_error};
use crate::floats;

/// Logits in a block: a fraction of a millisecond's work, and little to hold where a block must be copied.
const SHARE: usize = 1 << 18;

/// Logits that the core is handed at a time, which spreads them over the threads itself: some milliseconds' work
/// between two looks for a signal, and little to hold where rows must be copied together.
pub const BLOCK: usize = 1 << 21;

/// How long a signal may wait.
const TICK: Duration = Duration::from_millis(50);

/// Whether the result is still wanted.
#[derive(Default)]
pub struct Stop(AtomicBool);

impl Stop {
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does `work` on `n_threads` threads (`None`: one per core) with the interpreter released, looking for signals
/// meanwhile.
pub fn run<R: Send>(
    py: Python<'_>,
    n_threads: Option<usize>,
    work: impl FnOnce(&Stop) -> Result<R, Fault> + Send,
) -> PyResult<R> {
    // Left to itself the pool would have as many threads as the environment says.
    let per_core = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let pool = pool(n_threads.unwrap_or_else(per_core))?;
    let stop = Stop::default();
    let (outcome, signal) = py.detach(|| watch(&pool, &stop, work));
    match (signal, outcome) {
        (Some(signal), _) => Err(signal),
        (None, Some(Ok(result))) => Ok(result),
        (None, Some(Err(Fault::Core(error)))) => Err(value_error(error)),
        // Our own invariants hold for rows that hold still; see `array`.
        (None, Some(Err(Fault::Stopped)) | None) => Err(PyRuntimeError::new_err(
            "the work could not be finished: did an input array change during the call?",
        )),
    }
}

fn watch<R: Send>(
    pool: &ThreadPool,
    stop: &Stop,
    work: impl FnOnce(&Stop) -> Result<R, Fault> + Send,
) -> (Option<Result<R, Fault>>, Option<PyErr>) {
    let (send, receive) = mpsc::sync_channel(1);
    let mut signal = None;
    let outcome = pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            // A panic drops the sender, which the watcher sees; it must not cross into Python as one.
            if let Ok(outcome) = panic::catch_unwind(AssertUnwindSafe(|| work(stop))) {
                // The watcher waits as long as there is a sender.
                let _ = send.send(outcome);
            }
        });
        loop {
            match receive.recv_timeout(TICK) {
                Ok(outcome) => return Some(outcome),
                // The work panicked.
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
                        stop.request();
                        signal = Some(error);
                    }
                }
            }
        }
    });
    (outcome, signal)
}

/// The pools of this process, by number of threads. Threads do not survive a fork, so a child makes its own; this is
/// why rayon's global pool is never used.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

struct Pools {
    process: u32,
    by_threads: BTreeMap<usize, Arc<ThreadPool>>,
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if pools.as_ref().is_some_and(|pools| pools.process != process) {
        // The parent's threads are not here to be told to end.
        std::mem::forget(pools.take());
    }
    let pools = pools.get_or_insert_with(|| Pools { process, by_threads: BTreeMap::new() });
    if let Some(pool) = pools.by_threads.get(&threads) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("conformax-{index}"))
        // Threads begin with the settings of the one that starts them.
        .start_handler(|_| floats::set_default())
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("starting {threads} threads: {error}")))?;
    let pool = Arc::new(pool);
    pools.by_threads.insert(threads, Arc::clone(&pool));
    Ok(pool)
}

/// Rows that belong to one call, and the place of the first of them in the caller's data, for messages.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    pub view: View<'a, T>,
    pub beside: Beside<'a>,
    pub first_row: usize,
}

/// What comes with rows: uniform draws, groups, weights.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    pub u: Option<&'a [f64]>,
    pub groups: Option<&'a [u32]>,
    pub weights: Option<&'a [f64]>,
}

impl<'a> Beside<'a> {
    /// These rows of a view with what comes with them.
    fn with<'b, T: Logit>(
        &self,
        logits: Logits<'b, T>,
        range: std::ops::Range<usize>,
    ) -> conformax::Result<Logits<'b, T>>
    where
        'a: 'b,
    {
        let logits = match self.u {
            Some(u) => logits.with_u(&u[range.clone()])?,
            None => logits,
        };
        let logits = match self.groups {
            Some(groups) => logits.with_groups(&groups[range.clone()])?,
            None => logits,
        };
        match self.weights {
            Some(weights) => logits.with_weights(&weights[range]),
            None => Ok(logits),
        }
    }
}

impl<T: Logit + Number> Rows<'_, T> {
    /// Calls `work` with the first row of each block of so many rows and the block; results are in row order.
    pub fn map<R: Send>(
        &self,
        stop: &Stop,
        per_block: usize,
        work: impl Fn(usize, Logits<'_, T>) -> conformax::Result<R> + Sync,
    ) -> Result<Vec<R>, Fault> {
        each_block(self.view.rows().div_ceil(per_block), stop, Vec::new, |block, scratch| {
            let first = block * per_block;
            let range = first..(first + per_block).min(self.view.rows());
            let logits = Logits::new(self.view.rows_in(range.clone(), scratch), self.view.classes());
            logits
                .and_then(|logits| self.beside.with(logits, range))
                .and_then(|logits| work(first, logits))
                .map_err(|error| error.offset_rows((self.first_row + first) as u64))
        })
    }

    /// Calls `work` with block after block, each for all threads; `first` is its first row.
    pub fn each(
        &self,
        stop: &Stop,
        mut work: impl FnMut(usize, Logits<'_, T>) -> conformax::Result<()>,
    ) -> Result<(), Fault> {
        let classes = self.view.classes();
        let (per_block, mut scratch) = ((BLOCK / classes.max(1)).max(1), Vec::new());
        for first in (0..self.view.rows()).step_by(per_block) {
            if stop.requested() {
                return Err(Fault::Stopped);
            }
            let range = first..(first + per_block).min(self.view.rows());
            let logits = Logits::new(self.view.rows_in(range.clone(), &mut scratch), classes)?;
            let logits = self
                .beside
                .with(logits, range)
                .map_err(|error| error.offset_rows((self.first_row + first) as u64))?;
            work(first, logits)?;
        }
        Ok(())
    }

    /// The same with `width` numbers per row written to their place in `out`; a number may take up to `passes` passes
    /// over its row.
    pub fn fill<M: Send>(
        &self,
        stop: &Stop,
        (width, passes): (usize, usize),
        out: &mut [M],
        work: impl Fn(usize, Logits<'_, T>, &mut [M]) -> conformax::Result<()> + Sync,
    ) -> Result<(), Fault> {
        let per_block = rows_per_block(self.view.classes().saturating_mul(passes));
        let places = Places::new(out, per_block * width);
        self.map(stop, per_block, |first, logits| {
            places.with(first / per_block, |out| work(first, logits, out))
        })?;
        Ok(())
    }
}

/// Rows of a share: as many as `SHARE` numbers hold.
pub fn rows_per_block(classes: usize) -> usize {
    (SHARE / classes.max(1)).max(1)
}

/// Disjoint pieces of an output, each of which one thread writes.
pub struct Places<'a, M>(Vec<Mutex<&'a mut [M]>>);

impl<'a, M> Places<'a, M> {
    pub fn new(out: &'a mut [M], piece: usize) -> Self {
        Self(out.chunks_mut(piece.max(1)).map(Mutex::new).collect())
    }

    pub fn with<R>(&self, index: usize, write: impl FnOnce(&mut [M]) -> R) -> R {
        let mut piece = self.0[index].lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut piece)
    }
}

/// Calls `work` for each of `count` blocks on the threads of the current pool, each with scratch of its own.
///
/// Blocks are taken in order, so when one fails all before it are done or under way, and the first failure by row
/// is the same however many threads there are.
pub fn each_block<S, R: Send>(
    count: usize,
    stop: &Stop,
    scratch: impl Fn() -> S + Sync,
    work: impl Fn(usize, &mut S) -> conformax::Result<R> + Sync,
) -> Result<Vec<R>, Fault> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take_blocks = || {
        let (mut scratch, mut done) = (scratch(), Vec::new());
        while !stop.requested() && !failed.load(Ordering::Relaxed) {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= count {
                break;
            }
            let result = work(block, &mut scratch);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((block, result));
        }
        done
    };
    let mut done: Vec<_> = match count {
        0 | 1 => take_blocks(),
        _ => rayon::broadcast(|_| take_blocks()).into_iter().flatten().collect(),
    };
    if stop.requested() {
        return Err(Fault::Stopped);
    }
    done.sort_unstable_by_key(|(block, _)| *block);
    Ok(done.into_iter().map(|(_, result)| result).collect::<conformax::Result<Vec<R>>>()?)
}
