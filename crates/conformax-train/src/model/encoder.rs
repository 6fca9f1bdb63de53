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

#[derive(Module, Debug)]
pub(super) struct EncoderLayer<B: Backend> {
    attention: Attention<B>,
    attention_norm: LayerNorm<B>,
    inner: Linear<B>,
    outer: Linear<B>,
    outer_norm: LayerNorm<B>,
    dropout: Dropout,
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
        }
    }

    /// BERT's order.
    pub(super) fn normalize_after(&self, x: Tensor<B, 3>, padding: &Tensor<B, 2, Bool>) -> Tensor<B, 3> {
        let attended = self.dropout.forward(self.attention.forward(x.clone(), Some(padding)));
        let x = self.attention_norm.forward(x + attended);
        let changed = self.dropout.forward(self.perceptron(x.clone()));
        self.outer_norm.forward(x + changed)
    }

    /// ViT's order.
    pub(super) fn normalize_before(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let attended = self.attention.forward(self.attention_norm.forward(x.clone()), None);
        let x = x + self.dropout.forward(attended);
        let changed = self.perceptron(self.outer_norm.forward(x.clone()));
        x + self.dropout.forward(changed)
    }

    fn perceptron(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        // The exact form, with erf: the tanh approximation is off by up to 5e-4.
        self.outer.forward(gelu(self.inner.forward(x)))
    }
}
