//! `Classifier`: any of the paper's models behind one `forward`, and the `Input` they take.

mod attention;
pub mod bert;
pub mod cnn;
mod encoder;
pub mod vit;

use burn::module::Module;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Int, Tensor, TensorData};

use crate::data::{Batch, BatchInputs};

use self::bert::Bert;
use self::cnn::Cnn;
use self::vit::Vit;

/// What a batch looks like on the device.
#[derive(Clone, Debug)]
pub enum Input<B: Backend> {
    /// Images `[batch, channels, height, width]`.
    Images(Tensor<B, 4>),
    /// Texts, each `[batch, tokens]`.
    Tokens {
        /// Numbers of the tokens.
        ids: Tensor<B, 2, Int>,
        /// True for a token, false for padding.
        mask: Tensor<B, 2, Bool>,
        /// Which of two texts a token belongs to.
        types: Tensor<B, 2, Int>,
    },
}

impl<B: Backend> Input<B> {
    /// Copies a batch to the device, with its labels `[batch]`.
    pub fn from_batch(batch: Batch, device: &B::Device) -> (Self, Tensor<B, 1, Int>) {
        let labels: Vec<i64> = batch.labels.iter().map(|label| i64::from(*label)).collect();
        let rows = labels.len();
        let input = match batch.inputs {
            BatchInputs::Images { values, shape } => {
                Self::Images(Tensor::from_data(TensorData::new(values, shape), device))
            }
            BatchInputs::Tokens { ids, mask, types, shape } => Self::Tokens {
                ids: integers(ids, shape, device),
                mask: integers(mask, shape, device).greater_elem(0),
                types: integers(types, shape, device),
            },
        };
        (input, Tensor::from_data(TensorData::new(labels, [rows]), device))
    }
}

fn integers<B: Backend>(values: Vec<i64>, shape: [usize; 2], device: &B::Device) -> Tensor<B, 2, Int> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// One of the paper's models.
#[derive(Module, Debug)]
pub enum Classifier<B: Backend> {
    /// For small images, from random weights.
    Cnn(Cnn<B>),
    /// For texts.
    Bert(Bert<B>),
    /// For images.
    Vit(Vit<B>),
}

impl<B: Backend> Classifier<B> {
    /// Logits `[batch, classes]`.
    pub fn forward(&self, input: Input<B>) -> Tensor<B, 2> {
        match (self, input) {
            (Self::Cnn(cnn), Input::Images(images)) => cnn.forward(images),
            (Self::Vit(vit), Input::Images(images)) => vit.forward(images),
            (Self::Bert(bert), Input::Tokens { ids, mask, types }) => bert.forward(ids, mask, types),
            (Self::Cnn(_) | Self::Vit(_), Input::Tokens { .. }) | (Self::Bert(_), Input::Images(_)) => {
                unreachable!("rows are prepared for the model that the config names")
            }
        }
    }
}
