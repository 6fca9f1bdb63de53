//! BERT for sequence classification, as `bert-base-uncased` and its relatives define it.
//!
//! The first token's last state goes through the pooler (a linear layer and tanh) and dropout to the head.

use burn::module::Module;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Int, Tensor};
use burn_nn::{Dropout, DropoutConfig, Embedding, EmbeddingConfig, LayerNorm, Linear};
use serde::{Deserialize, Serialize};

use super::Precision;
use super::encoder::{EncoderLayer, LayerConfig};
use super::kernels::Kernels;

/// Sizes and rates, under the names they have in a checkpoint's `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BertConfig {
    /// Tokens the model knows.
    pub vocab_size: usize,
    /// Features of a token.
    pub hidden_size: usize,
    /// Layers of the encoder.
    pub num_hidden_layers: usize,
    /// Heads of each attention; they share the features equally.
    pub num_attention_heads: usize,
    /// Features inside each perceptron.
    pub intermediate_size: usize,
    /// The most tokens a text may have.
    pub max_position_embeddings: usize,
    /// Texts a sequence may be made of.
    #[serde(default = "two")]
    pub type_vocab_size: usize,
    /// Added to a variance before its root is taken.
    #[serde(default = "tiny")]
    pub layer_norm_eps: f64,
    /// Rate at which features are dropped.
    #[serde(default = "tenth")]
    pub hidden_dropout_prob: f64,
    /// Rate at which attention weights are dropped.
    #[serde(default = "tenth")]
    pub attention_probs_dropout_prob: f64,
    /// Rate before the head; that of features where it is not given.
    #[serde(default)]
    pub classifier_dropout: Option<f64>,
    /// Standard deviation of new weights.
    #[serde(default = "fiftieth")]
    pub initializer_range: f64,
}

// What `transformers` takes where an older config.json leaves a key out.
fn two() -> usize {
    2
}
fn tiny() -> f64 {
    1e-12
}
fn tenth() -> f64 {
    0.1
}
fn fiftieth() -> f64 {
    0.02
}

impl BertConfig {
    /// A model of random weights with a head for `classes` classes.
    pub fn init<B: Backend>(&self, classes: usize, device: &B::Device) -> Bert<B> {
        let layer = self.layer();
        let embedding = |count| {
            EmbeddingConfig::new(count, self.hidden_size).with_initializer(layer.normal()).init(device)
        };
        let embeddings = BertEmbeddings {
            word: embedding(self.vocab_size),
            position: embedding(self.max_position_embeddings),
            token_type: embedding(self.type_vocab_size),
            norm: layer.norm(device),
            dropout: layer.dropout(),
        };
        Bert {
            embeddings,
            layers: (0..self.num_hidden_layers).map(|_| EncoderLayer::new(&layer, device)).collect(),
            pooler: layer.linear(self.hidden_size, self.hidden_size, device),
            dropout: DropoutConfig::new(self.classifier_dropout.unwrap_or(self.hidden_dropout_prob)).init(),
            head: layer.linear(self.hidden_size, classes, device),
        }
    }

    pub(crate) fn sizes(&self) -> [(&'static str, usize); 7] {
        [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ]
    }

    pub(crate) fn rates(&self) -> [(&'static str, f64); 3] {
        [
            ("hidden_dropout_prob", self.hidden_dropout_prob),
            ("attention_probs_dropout_prob", self.attention_probs_dropout_prob),
            ("classifier_dropout", self.classifier_dropout.unwrap_or(0.0)),
        ]
    }

    fn layer(&self) -> LayerConfig {
        LayerConfig {
            hidden: self.hidden_size,
            heads: self.num_attention_heads,
            inner: self.intermediate_size,
            norm_epsilon: self.layer_norm_eps,
            hidden_dropout: self.hidden_dropout_prob,
            attention_dropout: self.attention_probs_dropout_prob,
            initializer_range: self.initializer_range,
            norm_first: false,
        }
    }
}

/// A BERT encoder with a head; made by [`BertConfig::init`] or loaded from a checkpoint.
#[derive(Module, Debug)]
pub struct Bert<B: Backend> {
    embeddings: BertEmbeddings<B>,
    layers: Vec<EncoderLayer<B>>,
    pooler: Linear<B>,
    dropout: Dropout,
    /// From the pooled state to the logits.
    pub head: Linear<B>,
}

impl<B: Kernels> Bert<B> {
    /// Logits `[batch, classes]` of texts `[batch, tokens]`: the tokens' numbers, true where there is a token and not
    /// padding, and which of the texts a token belongs to.
    pub fn forward(
        &self,
        ids: Tensor<B, 2, Int>,
        mask: Tensor<B, 2, Bool>,
        types: Tensor<B, 2, Int>,
    ) -> Tensor<B, 2> {
        self.head.forward(self.dropout.forward(self.pooled(ids, mask, types)))
    }

    /// What the head sees, `[batch, hidden]`.
    pub fn pooled(
        &self,
        ids: Tensor<B, 2, Int>,
        mask: Tensor<B, 2, Bool>,
        types: Tensor<B, 2, Int>,
    ) -> Tensor<B, 2> {
        let padding = mask.bool_not();
        let embedded = self.embeddings.forward(ids, types);
        let states = self.layers.iter().fold(embedded, |x, layer| layer.forward(x, Some(&padding)));
        let first = states.narrow(1, 0, 1).squeeze_dim(1);
        self.pooler.forward::<2>(first).tanh()
    }

    /// The same with matrix products of its layers in this precision, where the backend has it.
    pub(crate) fn with_precision(mut self, precision: Precision) -> Self {
        self.layers.iter_mut().for_each(|layer| layer.half = precision == Precision::Bf16);
        self
    }

    /// Lets training change the head alone: no gradient is computed for anything before it.
    pub fn freeze_backbone(self) -> Self {
        Self {
            embeddings: self.embeddings.no_grad(),
            layers: self.layers.no_grad(),
            pooler: self.pooler.no_grad(),
            ..self
        }
    }
}

#[derive(Module, Debug)]
struct BertEmbeddings<B: Backend> {
    word: Embedding<B>,
    position: Embedding<B>,
    token_type: Embedding<B>,
    norm: LayerNorm<B>,
    dropout: Dropout,
}

impl<B: Backend> BertEmbeddings<B> {
    fn forward(&self, ids: Tensor<B, 2, Int>, types: Tensor<B, 2, Int>) -> Tensor<B, 3> {
        let tokens = ids.dims()[1] as i64;
        let positions = Tensor::<B, 1, Int>::arange(0..tokens, &ids.device()).unsqueeze();
        let sum = self.word.forward(ids) + self.token_type.forward(types) + self.position.forward(positions);
        self.dropout.forward(self.norm.forward(sum))
    }
}
