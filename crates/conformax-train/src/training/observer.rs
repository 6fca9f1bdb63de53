//! `Observer`: who hears how a run goes, and may stop it.

use crate::curve::EpochRecord;

/// A part of a training step, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StepPart {
    /// Waiting for the batch, which other threads prepare.
    Waiting,
    /// The batch's way to the device.
    Input,
    /// Logits and loss.
    Forward,
    /// Gradients.
    Backward,
    /// Clipping, and AdamW.
    Optimiser,
}

impl StepPart {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting for the batch",
            Self::Input => "batch to the device",
            Self::Forward => "forward pass and loss",
            Self::Backward => "backward pass",
            Self::Optimiser => "clipping and AdamW",
        }
    }
}

/// Hears how a run goes. Every method may be left as it is.
pub trait Observer {
    /// Training begins: so many steps are done of so many.
    fn begin(&mut self, done: u64, steps: u64) {
        let _ = (done, steps);
    }

    /// Told once, when the speed of steps is known: seconds each takes, and how many are left.
    fn pace(&mut self, seconds: f64, left: u64) {
        let _ = (seconds, left);
    }

    /// So many rows have logits, of so many.
    fn scored(&mut self, done: usize, rows: usize) {
        let _ = (done, rows);
    }

    /// Whether it wants to hear what the parts of a step take. The run then waits for the device after each of them, so
    /// a step takes longer than it would.
    fn wants_parts(&self) -> bool {
        false
    }

    /// A part of a step took so many seconds.
    fn part(&mut self, part: StepPart, seconds: f64) {
        let _ = (part, seconds);
    }

    /// Steps were done; loss and accuracy are those of the epoch so far.
    fn steps(&mut self, done: u64, loss: f64, accuracy: f64) {
        let _ = (done, loss, accuracy);
    }

    /// An epoch ended.
    fn epoch(&mut self, record: &EpochRecord) {
        let _ = record;
    }

    /// Asked after every step and every batch of logits: whether to write a checkpoint and stop.
    fn stop(&mut self) -> bool {
        false
    }
}

/// Nobody listens, and nobody stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
