//! `Kernels`: the parts of the models that a backend may have a faster way for than one operation after the other.

mod flex;
#[cfg(feature = "tch")]
mod libtorch;

use burn::tensor::backend::Backend;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Bool, Tensor};

use super::cnn::{PADDING, Stage};
use super::encoder::EncoderLayer;

/// A backend that the models run on. What is not overridden is composed of Burn's operations.
pub trait Kernels: Backend {
    /// Twice convolution, batch norm and ReLU, then pooling and dropout.
    fn stage(stage: &Stage<Self>, x: Tensor<Self, 4>) -> Tensor<Self, 4> {
        stage.composed(x)
    }

    /// A convolution that keeps the size of its images.
    fn convolution(x: Tensor<Self, 4>, weight: Tensor<Self, 4>) -> Tensor<Self, 4> {
        conv2d(x, weight, None, ConvOptions::new([1, 1], [PADDING, PADDING], [1, 1], 1))
    }

    /// A transformer layer; `padding`, `[batch, tokens]`, is true where nobody may look.
    fn encoder_layer(
        layer: &EncoderLayer<Self>,
        x: Tensor<Self, 3>,
        padding: Option<&Tensor<Self, 2, Bool>>,
    ) -> Tensor<Self, 3> {
        layer.composed(x, padding)
    }
}
