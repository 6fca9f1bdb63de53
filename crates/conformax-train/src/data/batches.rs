//! `Batches`: the batches of a plan, made ahead on other threads.
//!
//! Worker `w` of `n` makes steps `w`, `w + n`, `w + 2n`, … and waits when a few of its batches are not yet taken. The
//! consumer takes from the workers in turn, so the order is that of the steps whatever the threads do.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Batch, Plan, Result};

/// Batches that a worker may have ready before it waits.
const AHEAD: usize = 2;

/// An iterator over the batches of consecutive steps. After an error it ends.
pub struct Batches {
    workers: Vec<Worker>,
    steps: Range<u64>,
    first: u64,
}

struct Worker {
    ready: Receiver<Result<Batch>>,
    thread: JoinHandle<()>,
}

impl Batches {
    /// Starts `workers` threads, at least one, on these steps of the plan. A run that goes on after `k` steps starts
    /// at `k`, and sees what it would have seen.
    pub fn new(plan: Plan, steps: Range<u64>, workers: usize) -> Self {
        let wanted = (workers.max(1) as u64).min(steps.end.saturating_sub(steps.start));
        let start = |offset| Worker::start(plan.clone(), steps.start + offset..steps.end, wanted);
        Self { workers: (0..wanted).map(start).collect(), first: steps.start, steps }
    }

    fn stop(&mut self) {
        self.steps.start = self.steps.end;
        // Without its receiver a worker's next batch has nowhere to go, and it ends.
        let threads: Vec<_> = self.workers.drain(..).map(|worker| worker.thread).collect();
        for thread in threads {
            // A panic has been passed on by `next`, or the caller gave up before meeting it.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn start(plan: Plan, steps: Range<u64>, stride: u64) -> Self {
        let (sender, ready) = sync_channel(AHEAD);
        Self { ready, thread: thread::spawn(move || work(&plan, steps, stride, &sender)) }
    }
}

fn work(plan: &Plan, steps: Range<u64>, stride: u64, sender: &SyncSender<Result<Batch>>) {
    for step in steps.step_by(stride as usize) {
        let batch = plan.batch(step);
        let failed = batch.is_err();
        if sender.send(batch).is_err() || failed {
            return;
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.steps.next()?;
        let worker = ((step - self.first) % self.workers.len() as u64) as usize;
        match self.workers[worker].ready.recv() {
            Ok(Ok(batch)) => Some(Ok(batch)),
            Ok(Err(error)) => {
                self.stop();
                Some(Err(error))
            }
            Err(_) => {
                let thread = self.workers.swap_remove(worker).thread;
                let panic =
                    thread.join().expect_err("a worker leaves early only after an error or by a panic");
                self.stop();
                resume_unwind(panic)
            }
        }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.stop();
    }
}
