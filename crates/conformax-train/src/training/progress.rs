//! `Progress`: how far a run is. `progress.json` names the checkpoint that goes with it, so that the two cannot
//! disagree.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, EpochRecord};
use crate::error::Result;
use crate::run_folder::RunFolder;

const FILE: &str = "progress.json";

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    /// Steps done.
    pub(crate) step: u64,
    /// Loss and hits of the epoch that is under way.
    pub(crate) epoch: Sums,
    /// Epochs that are done.
    pub(crate) curve: Curve,
    /// The epoch whose weights are kept.
    pub(crate) best: Option<Best>,
    /// Time spent on training steps, over all commands.
    pub(crate) seconds: f64,
    /// Why there is nothing left to train; `None` before.
    pub(crate) ending: Option<Ending>,
    /// The file with weights and moments after `step` steps.
    pub(crate) checkpoint: String,
}

/// The epoch whose weights are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch, from 1.
    pub epoch: u64,
    /// Its validation loss; `None` without validation rows, where the last epoch is kept.
    pub validation_loss: Option<f64>,
    /// Its validation accuracy.
    pub validation_accuracy: Option<f64>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Every epoch was done.
    AllEpochs,
    /// The validation loss had stopped falling.
    Early,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllEpochs => "with the last epoch",
            Self::Early => "early, since the validation loss no longer fell,",
        })
    }
}

/// Sums over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sums {
    /// Rows so far.
    pub(crate) rows: u64,
    /// Their losses.
    pub(crate) loss: f64,
    /// How many were right.
    pub(crate) correct: u64,
}

impl Sums {
    /// Adds a batch of `rows` with a mean loss.
    pub(crate) fn add(&mut self, rows: u64, mean_loss: f32, correct: u64) {
        self.rows += rows;
        self.loss += f64::from(mean_loss) * rows as f64;
        self.correct += correct;
    }

    pub(crate) fn mean_loss(&self) -> f64 {
        self.loss / self.rows as f64
    }

    pub(crate) fn accuracy(&self) -> f64 {
        self.correct as f64 / self.rows as f64
    }
}

impl Progress {
    /// What the folder says; `None` before the first checkpoint.
    pub(crate) fn read(folder: &RunFolder) -> Result<Option<Self>> {
        let Some(bytes) = folder.read(FILE)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| folder.damaged(FILE, error))
    }

    pub(crate) fn write(&self, folder: &RunFolder) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).expect("progress holds numbers, text and lists");
        folder.write(FILE, &bytes)
    }

    /// Takes in an epoch that ended, and says whether its weights are the best so far.
    pub(crate) fn end_epoch(&mut self, record: EpochRecord) -> bool {
        self.epoch = Sums::default();
        self.curve.epochs.push(record);
        let lower = match (self.best.and_then(|best| best.validation_loss), record.validation_loss) {
            (Some(best), Some(loss)) => loss < best,
            // The first epoch, or no validation rows: the latest weights are all there is to go by.
            (None, _) | (_, None) => true,
        };
        if lower {
            let (validation_loss, validation_accuracy) = (record.validation_loss, record.validation_accuracy);
            self.best = Some(Best { epoch: record.epoch, validation_loss, validation_accuracy });
        }
        lower
    }

    /// Why the run is over, if it is: the epochs are used up, or the best is `patience` epochs old.
    pub(crate) fn verdict(&self, epochs: u64, patience: Option<u64>) -> Option<Ending> {
        let done = self.curve.epochs.len() as u64;
        let age = done - self.best.map_or(0, |best| best.epoch);
        if done >= epochs {
            Some(Ending::AllEpochs)
        } else {
            patience.filter(|patience| age >= *patience).map(|_| Ending::Early)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(losses: &[f64]) -> Progress {
        let mut progress = Progress::default();
        for (i, &loss) in losses.iter().enumerate() {
            progress.end_epoch(EpochRecord {
                epoch: i as u64 + 1,
                step: i as u64 + 1,
                learning_rate: 0.1,
                train_loss: 1.0,
                train_accuracy: 0.5,
                validation_loss: loss.is_finite().then_some(loss),
                validation_accuracy: loss.is_finite().then_some(0.5),
            });
        }
        progress
    }

    #[test]
    fn keeps_the_lowest_validation_loss_and_the_first_of_equals() {
        assert_eq!(after(&[3.0, 1.0, 2.0, 1.0]).best.unwrap().epoch, 2);
        assert_eq!(
            after(&[f64::NAN, f64::NAN]).best.unwrap().epoch,
            2,
            "without validation the last is kept"
        );
    }

    #[test]
    fn stops_when_patience_is_used_up() {
        let verdict = |losses: &[f64]| after(losses).verdict(10, Some(2));
        assert_eq!(verdict(&[3.0, 1.0, 2.0]), None);
        assert_eq!(verdict(&[3.0, 1.0, 2.0, 1.5]), Some(Ending::Early));
        assert_eq!(verdict(&[3.0, 1.0, 2.0, 0.5]), None);
        assert_eq!(after(&[1.0, 2.0, 3.0]).verdict(10, None), None);
        assert_eq!(after(&[1.0, 2.0, 3.0]).verdict(3, Some(1)), Some(Ending::AllEpochs));
    }
}
