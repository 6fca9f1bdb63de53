//! The transformer layer that BERT and ViT share.
//!
//! Self-attention and a two-layer perceptron, each a branch beside a residual. The models differ in one thing: BERT
//! normalises after the branch is added, ViT before it is taken.

use burn::module::{Initializer, Module};
use burn::tensor::activation::gelu;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Tensor};
use burn_nn::{Dropout, DropoutConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};

use super::attention::Attention;
use super::kernels::Kernels;

/// Sizes and rates of a layer.
#[derive(Clone, Debug)]
pub(super) struct LayerConfig {
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) inner: usize,
    pub(super) norm_epsilon: f64,
    pub(super) hidden_dropout: f64,
    pub(super) attention_dropout: f64,
    pub(super) initializer_range: f64,
    /// ViT's order; BERT normalises after the branch is added.
    pub(super) norm_first: bool,
}

impl LayerConfig {
    /// Normal weights and no bias, as both papers start.
    pub(super) fn linear<B: Backend>(&self, input: usize, output: usize, device: &B::Device) -> Linear<B> {
        let mut linear = LinearConfig::new(input, output).with_initializer(self.normal()).init(device);
        linear.bias = Some(Initializer::Zeros.init([output], device));
        linear
    }

    pub(super) fn normal(&self) -> Initializer {
        Initializer::Normal { mean: 0.0, std: self.initializer_range }
    }

    pub(super) fn norm<B: Backend>(&self, device: &B::Device) -> LayerNorm<B> {
        LayerNormConfig::new(self.hidden).with_epsilon(self.norm_epsilon).init(device)
    }

    pub(super) fn dropout(&self) -> Dropout {
        DropoutConfig::new(self.hidden_dropout).init()
    }
}

/// A transformer layer.
#[derive(Module, Debug)]
pub struct EncoderLayer<B: Backend> {
    pub(super) attention: Attention<B>,
    pub(super) attention_norm: LayerNorm<B>,
    pub(super) inner: Linear<B>,
    pub(super) outer: Linear<B>,
    pub(super) outer_norm: LayerNorm<B>,
    pub(super) dropout: Dropout,
    pub(super) norm_epsilon: f64,
    pub(super) norm_first: bool,
    /// Whether matrix products may be in half precision.
    pub(super) half: bool,
}

impl<B: Kernels> EncoderLayer<B> {
    /// `[batch, tokens, hidden]` to the same; `padding`, `[batch, tokens]`, is true where nobody may look.
    pub(super) fn forward(&self, x: Tensor<B, 3>, padding: Option<&Tensor<B, 2, Bool>>) -> Tensor<B, 3> {
        B::encoder_layer(self, x, padding)
    }
}

impl<B: Backend> EncoderLayer<B> {
    pub(super) fn new(config: &LayerConfig, device: &B::Device) -> Self {
        Self {
            attention: Attention::new(config, device),
            attention_norm: config.norm(device),
            inner: config.linear(config.hidden, config.inner, device),
            outer: config.linear(config.inner, config.hidden, device),
            outer_norm: config.norm(device),
            dropout: config.dropout(),
            norm_epsilon: config.norm_epsilon,
            norm_first: config.norm_first,
            half: false,
        }
    }

    /// The layer in Burn's operations, one after the other.
    pub(super) fn composed(&self, x: Tensor<B, 3>, padding: Option<&Tensor<B, 2, Bool>>) -> Tensor<B, 3> {
        if self.norm_first {
            let attended = self.attention.forward(self.attention_norm.forward(x.clone()), padding);
            let x = x + self.dropout.forward(attended);
            let changed = self.perceptron(self.outer_norm.forward(x.clone()));
            x + self.dropout.forward(changed)
        } else {
            let attended = self.dropout.forward(self.attention.forward(x.clone(), padding));
            let x = self.attention_norm.forward(x + attended);
            let changed = self.dropout.forward(self.perceptron(x.clone()));
            self.outer_norm.forward(x + changed)
        }
    }

    fn perceptron(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        // The exact form, with erf: the tanh approximation is off by up to 5e-4.
        self.outer.forward(gelu(self.inner.forward(x)))
    }
}
