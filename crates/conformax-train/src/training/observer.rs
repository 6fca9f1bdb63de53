//! `Observer`: who hears how a run goes, and may stop it.

use crate::curve::EpochRecord;

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
