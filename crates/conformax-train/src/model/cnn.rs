//! The paper's convolutional network for small images.
//!
//! Three stages; each is twice (5×5 convolution, batch norm, ReLU), then 2×2 max pooling and dropout. One hidden layer
//! and the class scores follow.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn_nn::conv::{Conv2d, Conv2dConfig};
use burn_nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn_nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig, PaddingConfig2d};
use serde::{Deserialize, Serialize};

use super::Precision;
use super::kernels::Kernels;

/// Sizes of a [`Cnn`]; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CnnConfig {
    /// Channels of the stages, from the first.
    pub channels: Vec<usize>,
    /// Width of the hidden layer.
    pub hidden: usize,
    /// Share of values that dropout sets to zero, after each stage and after the hidden layer.
    pub dropout: f64,
}

impl Default for CnnConfig {
    fn default() -> Self {
        Self { channels: vec![256, 512, 512], hidden: 1024, dropout: 0.2 }
    }
}

impl CnnConfig {
    /// A network with random weights for images of the shape `[channels, height, width]`.
    pub fn init<B: Backend>(&self, image: [usize; 3], classes: usize, device: &B::Device) -> Cnn<B> {
        let [depth, height, width] = image;
        let inputs = std::iter::once(depth).chain(self.channels.iter().copied());
        let stages = inputs
            .zip(&self.channels)
            .map(|(input, &output)| Stage::init(input, output, self.dropout, device))
            .collect();
        let halved = |side: usize| side >> self.channels.len();
        let features = self.channels.last().unwrap_or(&depth) * halved(height) * halved(width);
        Cnn {
            stages,
            hidden: LinearConfig::new(features, self.hidden).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
            head: LinearConfig::new(self.hidden, classes).init(device),
        }
    }

    /// The smallest side an image may have: every stage halves it.
    pub fn smallest_side(&self) -> usize {
        1 << self.channels.len()
    }
}

/// The network; see [`CnnConfig`].
#[derive(Module, Debug)]
pub struct Cnn<B: Backend> {
    stages: Vec<Stage<B>>,
    hidden: Linear<B>,
    dropout: Dropout,
    head: Linear<B>,
}

impl<B: Kernels> Cnn<B> {
    /// Images `[batch, channels, height, width]` to logits `[batch, classes]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let features = self.stages.iter().fold(images, |x, stage| B::stage(stage, x));
        let hidden = relu(self.hidden.forward(features.flatten(1, 3)));
        self.head.forward(self.dropout.forward(hidden))
    }
}

impl<B: Backend> Cnn<B> {
    /// The same with convolutions in this precision, where the backend has it.
    pub(crate) fn with_precision(mut self, precision: Precision) -> Self {
        for stage in &mut self.stages {
            stage.half = precision == Precision::Bf16;
        }
        self
    }
}

/// Zeros around an image, so that a convolution gives as many values as it gets.
pub(super) const PADDING: usize = 2;

/// Two convolutions at one resolution.
#[derive(Module, Debug)]
pub struct Stage<B: Backend> {
    pub(super) first: Convolution<B>,
    pub(super) second: Convolution<B>,
    pool: MaxPool2d,
    pub(super) dropout: Dropout,
    /// Whether the stage may be in half precision.
    pub(super) half: bool,
}

impl<B: Backend> Stage<B> {
    pub(super) fn init(input: usize, output: usize, dropout: f64, device: &B::Device) -> Self {
        Self {
            first: Convolution::init(input, output, device),
            second: Convolution::init(output, output, device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            dropout: DropoutConfig::new(dropout).init(),
            half: false,
        }
    }
}

impl<B: Kernels> Stage<B> {
    /// The stage in Burn's operations, one after the other.
    pub(super) fn composed(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        self.dropout.forward(self.pool.forward(self.second.forward(self.first.forward(x))))
    }
}

/// Convolution, batch norm, ReLU.
#[derive(Module, Debug)]
pub struct Convolution<B: Backend> {
    pub(super) conv: Conv2d<B>,
    pub(super) norm: BatchNorm<B>,
}

impl<B: Backend> Convolution<B> {
    fn init(input: usize, output: usize, device: &B::Device) -> Self {
        // Batch norm takes any constant away again, so a bias would be weights without effect.
        let conv = Conv2dConfig::new([input, output], [5, 5])
            .with_padding(PaddingConfig2d::Explicit(PADDING, PADDING, PADDING, PADDING))
            .with_bias(false);
        Self { conv: conv.init(device), norm: BatchNormConfig::new(output).init(device) }
    }
}

impl<B: Kernels> Convolution<B> {
    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 4> {
        relu(batch_norm(&self.norm, B::convolution(x, self.conv.weight.val())))
    }
}

/// What Burn's own forward pass gives, in rows of one channel of one image each: it exchanges images and channels for
/// every mean, and the portable backend then takes longer to walk over the values than to convolve them.
fn batch_norm<B: Backend>(norm: &BatchNorm<B>, x: Tensor<B, 4>) -> Tensor<B, 4> {
    if !B::ad_enabled(&x.device()) {
        return norm.forward(x);
    }
    let [batch, channels, height, width] = x.dims();
    let rows = batch * channels;
    let mean = |x: Tensor<B, 2>| x.mean_dim(1).reshape([batch, channels]).mean_dim(0);
    let by_row = |of_channels: Tensor<B, 2>| of_channels.expand([batch, channels]).reshape([rows, 1]);
    let x = x.reshape([rows, height * width]);
    let means = mean(x.clone());
    let centred = x - by_row(means.clone());
    let variances = mean(centred.clone() * centred.clone());
    for (running, new) in [(&norm.running_mean, &means), (&norm.running_var, &variances)] {
        let new = new.clone().detach().reshape([channels]) * norm.momentum;
        running.update((running.value_sync() * (1.0 - norm.momentum) + new).detach());
    }
    let scale = norm.gamma.val().unsqueeze() / (variances + norm.epsilon).sqrt();
    let scaled = centred * by_row(scale) + by_row(norm.beta.val().unsqueeze());
    scaled.reshape([batch, channels, height, width])
}
