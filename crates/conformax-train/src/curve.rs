//! `Curve`: loss and accuracy over the epochs of a run, as a table and as a picture.

mod picture;

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
        const HEADER: [&str; 7] = [
            "epoch",
            "step",
            "learning_rate",
            "train_loss",
            "train_accuracy",
            "validation_loss",
            "validation_accuracy",
        ];
        let cell = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let row = |e: &EpochRecord| {
            let counts = [e.epoch.to_string(), e.step.to_string()];
            let numbers = [Some(e.learning_rate), Some(e.train_loss), Some(e.train_accuracy)];
            let cells = numbers.into_iter().chain([e.validation_loss, e.validation_accuracy]).map(cell);
            counts.into_iter().chain(cells).collect::<Vec<String>>()
        };
        let mut csv = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(HEADER.map(str::to_owned).to_vec()).chain(self.epochs.iter().map(row)) {
            csv.write_record(row).expect("memory takes all that is written");
        }
        let bytes = csv.into_inner().expect("memory takes all that is written");
        String::from_utf8(bytes).expect("numbers are text")
    }

    /// Loss and accuracy side by side, as SVG; training rows and validation rows have a line each.
    pub fn svg(&self) -> String {
        picture::draw(&self.epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_line_for_each_epoch_with_empty_cells_for_what_is_not_known() {
        let first = EpochRecord {
            epoch: 1,
            step: 20,
            learning_rate: 0.00001,
            train_loss: 1.0,
            train_accuracy: 0.1,
            validation_loss: None,
            validation_accuracy: None,
        };
        let second =
            EpochRecord { epoch: 2, validation_loss: Some(0.5), validation_accuracy: Some(1.0), ..first };
        assert_eq!(
            Curve { epochs: vec![first, second] }.csv(),
            "epoch,step,learning_rate,train_loss,train_accuracy,validation_loss,validation_accuracy\n\
             1,20,0.00001,1,0.1,,\n2,20,0.00001,1,0.1,0.5,1\n"
        );
    }
}
