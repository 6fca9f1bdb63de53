//! Vision transformer for image classification, as `google/vit-base-patch16-224` defines it.
//!
//! An image is cut into square patches, each a token; a learned token goes first, and its last state, normalised, is
//! what the head sees.

use burn::module::{Initializer, Module, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_nn::conv::{Conv2d, Conv2dConfig};
use burn_nn::{Dropout, LayerNorm, Linear};
use serde::{Deserialize, Serialize};

use super::Precision;
use super::encoder::{EncoderLayer, LayerConfig};
use super::kernels::Kernels;
use super::positions;

/// Sizes and rates, under the names they have in a checkpoint's `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VitConfig {
    /// Height and width of an image.
    pub image_size: usize,
    /// Height and width of a patch.
    pub patch_size: usize,
    /// Colours of an image.
    #[serde(default = "three")]
    pub num_channels: usize,
    /// Features of a patch.
    pub hidden_size: usize,
    /// Layers of the encoder.
    pub num_hidden_layers: usize,
    /// Heads of each attention; they share the features equally.
    pub num_attention_heads: usize,
    /// Features inside each perceptron.
    pub intermediate_size: usize,
    /// Added to a variance before its root is taken.
    #[serde(default = "tiny")]
    pub layer_norm_eps: f64,
    /// Rate at which features are dropped.
    #[serde(default)]
    pub hidden_dropout_prob: f64,
    /// Rate at which attention weights are dropped.
    #[serde(default)]
    pub attention_probs_dropout_prob: f64,
    /// Standard deviation of new weights.
    #[serde(default = "fiftieth")]
    pub initializer_range: f64,
}

// What `transformers` takes where an older config.json leaves a key out.
fn three() -> usize {
    3
}
fn tiny() -> f64 {
    1e-12
}
fn fiftieth() -> f64 {
    0.02
}

impl VitConfig {
    /// A model of random weights with a head for `classes` classes.
    pub fn init<B: Backend>(&self, classes: usize, device: &B::Device) -> Vit<B> {
        let layer = self.layer();
        Vit {
            embeddings: self.embeddings(&layer, device),
            layers: (0..self.num_hidden_layers).map(|_| EncoderLayer::new(&layer, device)).collect(),
            norm: layer.norm(device),
            head: layer.linear(self.hidden_size, classes, device),
        }
    }

    fn embeddings<B: Backend>(&self, layer: &LayerConfig, device: &B::Device) -> VitEmbeddings<B> {
        let side = self.patch_size;
        let mut patches = Conv2dConfig::new([self.num_channels, self.hidden_size], [side, side])
            .with_stride([side, side])
            .with_initializer(layer.normal())
            .init(device);
        patches.bias = Some(Initializer::Zeros.init([self.hidden_size], device));
        let tokens = (self.image_size / side).pow(2) + 1;
        VitEmbeddings {
            patches,
            cls_token: layer.normal().init([1, 1, self.hidden_size], device),
            position_embeddings: layer.normal().init([1, tokens, self.hidden_size], device),
            dropout: layer.dropout(),
        }
    }

    pub(crate) fn sizes(&self) -> [(&'static str, usize); 7] {
        [
            ("image_size", self.image_size),
            ("patch_size", self.patch_size),
            ("num_channels", self.num_channels),
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
        ]
    }

    pub(crate) fn rates(&self) -> [(&'static str, f64); 2] {
        [
            ("hidden_dropout_prob", self.hidden_dropout_prob),
            ("attention_probs_dropout_prob", self.attention_probs_dropout_prob),
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
            norm_first: true,
        }
    }
}

/// A vision transformer with a head; made by [`VitConfig::init`] or loaded from a checkpoint.
#[derive(Module, Debug)]
pub struct Vit<B: Backend> {
    embeddings: VitEmbeddings<B>,
    layers: Vec<EncoderLayer<B>>,
    norm: LayerNorm<B>,
    /// From the first token's state to the logits.
    pub head: Linear<B>,
}

impl<B: Kernels> Vit<B> {
    /// Logits `[batch, classes]` of images `[batch, channels, height, width]`.
    pub fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let embedded = self.embeddings.forward(images);
        let states = self.layers.iter().fold(embedded, |x, layer| layer.forward(x, None));
        let first = states.narrow(1, 0, 1).squeeze_dim::<2>(1);
        self.head.forward(self.norm.forward(first))
    }

    /// The same for images of another height and width: positions learnt for one grid of patches are interpolated to
    /// the other.
    pub fn for_images(mut self, [height, width]: [usize; 2]) -> Self {
        let embeddings = &mut self.embeddings;
        let side = embeddings.patches.weight.dims()[2];
        let positions = embeddings.position_embeddings.val();
        let grid = [height / side, width / side];
        if positions.dims()[1] != grid[0] * grid[1] + 1 || grid[0] != grid[1] {
            let moved = positions::interpolated(positions, grid);
            let id = embeddings.position_embeddings.id;
            embeddings.position_embeddings = Param::initialized(id, moved);
        }
        self
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
            norm: self.norm.no_grad(),
            ..self
        }
    }
}

#[derive(Module, Debug)]
struct VitEmbeddings<B: Backend> {
    patches: Conv2d<B>,
    cls_token: Param<Tensor<B, 3>>,
    position_embeddings: Param<Tensor<B, 3>>,
    dropout: Dropout,
}

impl<B: Backend> VitEmbeddings<B> {
    /// Each patch times the kernel, as one product of matrices: as a convolution that strides by its whole kernel, its
    /// gradient would be a convolution with holes.
    fn project(&self, images: Tensor<B, 4>) -> Tensor<B, 3> {
        let [batch, channels, height, width] = images.dims();
        let kernel = self.patches.weight.val();
        let [hidden, _, side, _] = kernel.dims();
        let (rows, columns) = (height / side, width / side);
        let values = channels * side * side;
        let patches = images
            .reshape([batch, channels, rows, side, columns, side])
            .permute([0, 2, 4, 1, 3, 5])
            .reshape([batch * rows * columns, values]);
        let projected = patches.matmul(kernel.reshape([hidden, values]).transpose());
        let bias = self.patches.bias.as_ref().map(|bias| bias.val().unsqueeze::<2>());
        let projected = match bias {
            Some(bias) => projected + bias,
            None => projected,
        };
        projected.reshape([batch, rows * columns, hidden])
    }

    fn forward(&self, images: Tensor<B, 4>) -> Tensor<B, 3> {
        let patches = self.project(images);
        let [batch, _, hidden] = patches.dims();
        let first = self.cls_token.val().expand([batch, 1, hidden]);
        self.dropout.forward(Tensor::cat(vec![first, patches], 1) + self.position_embeddings.val())
    }
}
