//! Multi-head self-attention as BERT and ViT use it.
//!
//! Burn's own drops attention scores before the softmax; these models drop weights after it, and a checkpoint
//! fine-tunes differently when that is changed.

use burn::module::Module;
use burn::tensor::activation::softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Tensor};
use burn_nn::{Dropout, DropoutConfig, Linear};

use super::encoder::LayerConfig;

/// Scores of padding: far below any real one, and finite, so that a row of padding alone stays a number.
const PADDING_SCORE: f32 = -1e9;

/// Self-attention with its four linear layers.
#[derive(Module, Debug)]
pub struct Attention<B: Backend> {
    pub(super) query: Linear<B>,
    pub(super) key: Linear<B>,
    pub(super) value: Linear<B>,
    pub(super) output: Linear<B>,
    pub(super) dropout: Dropout,
    pub(super) heads: usize,
}

impl<B: Backend> Attention<B> {
    pub(super) fn new(config: &LayerConfig, device: &B::Device) -> Self {
        let linear = || config.linear(config.hidden, config.hidden, device);
        Self {
            query: linear(),
            key: linear(),
            value: linear(),
            output: linear(),
            dropout: DropoutConfig::new(config.attention_dropout).init(),
            heads: config.heads,
        }
    }

    /// `[batch, tokens, hidden]` to the same; `padding`, `[batch, tokens]`, is true where nobody may look.
    pub(super) fn forward(&self, x: Tensor<B, 3>, padding: Option<&Tensor<B, 2, Bool>>) -> Tensor<B, 3> {
        let [batch, tokens, hidden] = x.dims();
        let query = self.split_heads(self.query.forward(x.clone()));
        let key = self.split_heads(self.key.forward(x.clone()));
        let value = self.split_heads(self.value.forward(x));
        // Scaling the query is cheaper than scaling the scores wherever there are more tokens than features in a head.
        let scale = ((hidden / self.heads) as f64).sqrt().recip();
        let mut scores = (query * scale).matmul(key.transpose());
        if let Some(padding) = padding {
            let padding = padding.clone().reshape([batch, 1, 1, tokens]).expand(scores.shape());
            scores = scores.mask_fill(padding, PADDING_SCORE);
        }
        let weights = self.dropout.forward(softmax(scores, 3));
        self.output.forward(weights.matmul(value).swap_dims(1, 2).reshape([batch, tokens, hidden]))
    }

    /// `[batch, heads, tokens, features of a head]`.
    fn split_heads(&self, x: Tensor<B, 3>) -> Tensor<B, 4> {
        let [batch, tokens, hidden] = x.dims();
        x.reshape([batch, tokens, self.heads, hidden / self.heads]).swap_dims(1, 2)
    }
}
