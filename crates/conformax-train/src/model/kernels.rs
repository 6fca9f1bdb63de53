//! `Kernels`: the parts of the models that a backend may have a faster way for than one operation after the other.

#[cfg(feature = "tch")]
mod libtorch;

use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Tensor};
use burn_autodiff::Autodiff;
use burn_flex::Flex;

use super::cnn::Stage;
use super::encoder::EncoderLayer;

/// A backend that the models run on. What is not overridden is composed of Burn's operations.
pub trait Kernels: Backend {
    /// Twice convolution, batch norm and ReLU, then pooling and dropout.
    fn stage(stage: &Stage<Self>, x: Tensor<Self, 4>) -> Tensor<Self, 4> {
        stage.composed(x)
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

impl Kernels for Flex {}
impl Kernels for Autodiff<Flex> {}
