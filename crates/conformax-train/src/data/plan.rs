//! `Plan`: which rows make the batch of each step, and how they are changed at random.
//!
//! Everything random is a function of the seed, the epoch and the row. A batch can therefore be made at any time, by
//! any thread, and again after a run was interrupted.

use std::sync::{Arc, Mutex, PoisonError};

use conformax::Generator;

use super::augment::Placement;
use super::{Augment, Batch, Error, Examples, Part, Result};

/// The batches of one part of the data, by step.
#[derive(Clone, Debug)]
pub struct Plan {
    examples: Arc<Examples>,
    rows: Arc<[usize]>,
    batch_size: usize,
    /// What is left for the last step of an epoch joins the step before if it is fewer than this.
    fewest: usize,
    random: Option<Random>,
    /// The order of the epoch asked for last: the steps of one epoch come together.
    latest: Arc<Mutex<Option<EpochOrder>>>,
}

#[derive(Clone, Debug)]
struct Random {
    shuffle: Generator,
    changes: Generator,
    augment: Augment,
}

#[derive(Clone, Debug)]
struct EpochOrder {
    epoch: u64,
    rows: Arc<[usize]>,
}

impl Plan {
    /// The training part, in another order each epoch. A last batch of a single row joins the one before: batch
    /// normalisation has no variance there.
    pub fn training(examples: Arc<Examples>, batch_size: usize, augment: Augment, seed: u64) -> Result<Self> {
        let shuffle = Generator::new(seed, "epoch order");
        let random = Random { shuffle, changes: Generator::new(seed, "augment"), augment };
        Self::new(examples, Part::Train, batch_size, 2, Some(random))
    }

    /// A part in its own order, with nothing random.
    pub fn evaluation(examples: Arc<Examples>, part: Part, batch_size: usize) -> Result<Self> {
        Self::new(examples, part, batch_size, 1, None)
    }

    fn new(
        examples: Arc<Examples>,
        part: Part,
        batch_size: usize,
        fewest: usize,
        random: Option<Random>,
    ) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::Options("a batch must have at least one row".to_owned()));
        }
        let rows = examples.parts.some_rows(part)?.into();
        Ok(Self { examples, rows, batch_size, fewest, random, latest: Arc::default() })
    }

    /// Rows of the part.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Steps in which every row is seen once; the last batch may be smaller, or by one row larger.
    pub fn steps_per_epoch(&self) -> u64 {
        let (whole, left) = (self.rows() / self.batch_size, self.rows() % self.batch_size);
        (whole + usize::from(left >= self.fewest)).max(1) as u64
    }

    /// The batch of a step; steps count on from one epoch to the next.
    pub fn batch(&self, step: u64) -> Result<Batch> {
        let per_epoch = self.steps_per_epoch();
        let (epoch, place) = (step / per_epoch, step % per_epoch);
        let order = self.order(epoch);
        let start = place as usize * self.batch_size;
        let end = if place + 1 == per_epoch { order.len() } else { start + self.batch_size };
        let rows = &order[start..end];
        let inputs = self.examples.inputs(rows, |row| self.placement(epoch, row))?;
        Ok(Batch { step, inputs, labels: rows.iter().map(|row| self.examples.labels[*row]).collect() })
    }

    fn order(&self, epoch: u64) -> Arc<[usize]> {
        let Some(random) = &self.random else { return self.rows.clone() };
        // A thread that panicked here left the value whole: it is assigned in one go.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(order) = latest.as_ref().filter(|order| order.epoch == epoch) {
            return order.rows.clone();
        }
        let mut rows = self.rows.to_vec();
        let mut draws = random.shuffle.stream(epoch);
        draws.shuffle(&mut rows);
        self.by_length(&mut rows, &mut draws);
        let rows: Arc<[usize]> = rows.into();
        *latest = Some(EpochOrder { epoch, rows: rows.clone() });
        rows
    }

    /// Brings rows of like length together, since a batch is padded to its longest row: inside each of a few stretches
    /// of the epoch rows are sorted, and then its batches are put into a random order. The last batch, which may be of
    /// another size, keeps its rows and its place.
    fn by_length(&self, rows: &mut [usize], draws: &mut Generator) {
        /// Batches of a stretch: enough of them to find likes, few enough that an epoch stays mixed.
        const STRETCH: usize = 32;
        if self.examples.length(rows[0]).is_none() {
            return;
        }
        let whole = (self.steps_per_epoch() as usize - 1) * self.batch_size;
        for stretch in rows[..whole].chunks_mut(STRETCH * self.batch_size) {
            // Equal lengths stay in their random order.
            stretch.sort_by_key(|row| self.examples.length(*row));
        }
        let mut batches: Vec<&[usize]> = rows[..whole].chunks_exact(self.batch_size).collect();
        draws.shuffle(&mut batches);
        let mixed = batches.concat();
        rows[..whole].copy_from_slice(&mixed);
    }

    fn placement(&self, epoch: u64, row: usize) -> Placement {
        let draw = |random: &Random| random.augment.place(random.changes.stream(epoch).stream(row as u64));
        self.random.as_ref().map_or_else(Placement::default, draw)
    }
}
