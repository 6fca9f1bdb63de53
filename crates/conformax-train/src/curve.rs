//! `Curve`: loss and accuracy over the epochs of a run, as a table and as a picture.

mod picture;

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// What an epoch came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The epoch, from 1.
    pub epoch: u64,
    /// Steps done at its end.
    pub step: u64,
    /// Step size of its last step.
    pub learning_rate: f64,
    /// Mean loss over training rows, each as it was when its batch came, dropout included.
    pub train_loss: f64,
    /// Share of training rows that were right, in the same sense.
    pub train_accuracy: f64,
    /// Mean loss over validation rows at the end, where there are any.
    pub validation_loss: Option<f64>,
    /// Share of validation rows that are right.
    pub validation_accuracy: Option<f64>,
}

/// The epochs of a run so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve {
    /// In order.
    pub epochs: Vec<EpochRecord>,
}

impl Curve {
    /// One line per epoch; cells without a value are empty.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "epoch,step,learning_rate,train_loss,train_accuracy,validation_loss,validation_accuracy\n",
        );
        let cell = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        for e in &self.epochs {
            let (loss, accuracy) = (cell(e.validation_loss), cell(e.validation_accuracy));
            writeln!(
                text,
                "{},{},{},{},{},{loss},{accuracy}",
                e.epoch, e.step, e.learning_rate, e.train_loss, e.train_accuracy
            )
            .expect("a string takes all that is written");
        }
        text
    }

    /// Loss and accuracy side by side, as SVG; training rows and validation rows have a line each.
    pub fn svg(&self) -> String {
        picture::draw(&self.epochs)
    }
}
