//! LibTorch's own layers behind Burn's modules: fused layer norm, GELU, attention, batch norm, and their gradients.
//!
//! Burn differentiates one operation at a time, and for several of these it knows neither the fused forward nor the
//! fused backward kernel. So a whole layer is one operation to Burn: LibTorch computes it with its own record of
//! gradients, and when Burn asks for the gradients of the layer, it follows that record. In half precision matrix
//! products and convolutions are in bfloat16, as PyTorch's autocast does it, and so is what follows a convolution in
//! its stage; sums, other norms and everything between layers stay in f32.

use std::sync::{Arc, Mutex, PoisonError};

use burn::module::RunningState;
use burn::tensor::backend::Backend;
use burn::tensor::ops::FloatTensor;
use burn::tensor::{Bool, Tensor, TensorPrimitive};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_tch::{LibTorch, TchTensor};
use tch::{Kind, Tensor as Torch};

use super::Kernels;
use crate::model::cnn::{Convolution, PADDING, Stage};
use crate::model::encoder::EncoderLayer;

type Tracked = FloatTensor<Autodiff<LibTorch>>;

impl Kernels for LibTorch {
    fn stage(stage: &Stage<Self>, x: Tensor<Self, 4>) -> Tensor<Self, 4> {
        let inputs = stage_inputs(stage, x).map(|input| input.tensor);
        let norms = [&stage.first, &stage.second].map(|block| BatchNorm::of(block, |held| held.tensor));
        let sizes = StageSizes { training: false, ..StageSizes::of(stage) };
        from_primitive(TchTensor::new(compute_stage(&inputs, &norms, &sizes)))
    }

    fn encoder_layer(
        layer: &EncoderLayer<Self>,
        x: Tensor<Self, 3>,
        padding: Option<&Tensor<Self, 2, Bool>>,
    ) -> Tensor<Self, 3> {
        let inputs = layer_inputs(layer, x).map(|input| input.tensor);
        let padding = padding.map(|padding| padding.clone().into_primitive().tensor);
        let sizes = LayerSizes { training: false, ..LayerSizes::of(layer) };
        from_primitive(TchTensor::new(encoder_layer(&inputs, padding.as_ref(), &sizes)))
    }
}

impl Kernels for Autodiff<LibTorch> {
    fn stage(stage: &Stage<Self>, x: Tensor<Self, 4>) -> Tensor<Self, 4> {
        let blocks = [&stage.first, &stage.second];
        // LibTorch changes these in place, and others may hold them.
        let norms = blocks.map(|block| BatchNorm::of(block, |held: Tracked| held.primitive.tensor.copy()));
        let sizes = StageSizes::of(stage);
        let output = record(stage_inputs(stage, x), |inputs| compute_stage(inputs, &norms, &sizes));
        let back = |tensor| Tensor::from_inner(from_primitive(TchTensor::new(tensor)));
        for (block, BatchNorm { mean, variance, .. }) in blocks.into_iter().zip(norms) {
            block.norm.running_mean.update(back(mean));
            block.norm.running_var.update(back(variance));
        }
        from_primitive(output)
    }

    fn encoder_layer(
        layer: &EncoderLayer<Self>,
        x: Tensor<Self, 3>,
        padding: Option<&Tensor<Self, 2, Bool>>,
    ) -> Tensor<Self, 3> {
        let padding = padding.map(|padding| padding.clone().into_primitive().tensor);
        let sizes = LayerSizes::of(layer);
        let compute = |inputs: &[Torch; 17]| encoder_layer(inputs, padding.as_ref(), &sizes);
        from_primitive(record(layer_inputs(layer, x), compute))
    }
}

fn primitive<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> FloatTensor<B> {
    tensor.into_primitive().tensor()
}

fn from_primitive<B: Backend, const D: usize>(tensor: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(tensor))
}

/// Input, then kernel, and scale and offset of the norm, of each convolution.
fn stage_inputs<B: Backend>(stage: &Stage<B>, x: Tensor<B, 4>) -> [FloatTensor<B>; 7] {
    let Stage { first, second, .. } = stage;
    [
        primitive(x),
        primitive(first.conv.weight.val()),
        primitive(first.norm.gamma.val()),
        primitive(first.norm.beta.val()),
        primitive(second.conv.weight.val()),
        primitive(second.norm.gamma.val()),
        primitive(second.norm.beta.val()),
    ]
}

/// Input, then weight and bias of each part, in the order in which [`encoder_layer`] takes them.
fn layer_inputs<B: Backend>(layer: &EncoderLayer<B>, x: Tensor<B, 3>) -> [FloatTensor<B>; 17] {
    let attention = &layer.attention;
    let linears =
        [&attention.query, &attention.key, &attention.value, &attention.output, &layer.inner, &layer.outer];
    let mut inputs = vec![primitive(x)];
    for linear in linears {
        inputs.push(primitive(linear.weight.val()));
        inputs.extend(linear.bias.iter().map(|bias| primitive(bias.val())));
    }
    for norm in [&layer.attention_norm, &layer.outer_norm] {
        inputs.push(primitive(norm.gamma.val()));
        inputs.extend(norm.beta.iter().map(|beta| primitive(beta.val())));
    }
    let found = inputs.len();
    inputs.try_into().unwrap_or_else(|_| unreachable!("every part has a weight and a bias, {found} came"))
}

/// The running statistics of a batch norm and how they move.
struct BatchNorm {
    mean: Torch,
    variance: Torch,
    momentum: f64,
    epsilon: f64,
}

impl BatchNorm {
    fn of<B: Backend>(block: &Convolution<B>, held: impl Fn(FloatTensor<B>) -> Torch) -> Self {
        let norm = &block.norm;
        let statistics = |state: &RunningState<Tensor<B, 1>>| held(primitive(state.value_sync()));
        Self {
            mean: statistics(&norm.running_mean),
            variance: statistics(&norm.running_var),
            momentum: norm.momentum,
            epsilon: norm.epsilon,
        }
    }
}

/// What a stage depends on beside its inputs and its norms.
struct StageSizes {
    dropout: f64,
    training: bool,
    half: bool,
}

impl StageSizes {
    fn of<B: Backend>(stage: &Stage<B>) -> Self {
        Self { dropout: stage.dropout.prob, training: true, half: stage.half }
    }
}

fn compute_stage(inputs: &[Torch; 7], norms: &[BatchNorm; 2], sizes: &StageSizes) -> Torch {
    const AROUND: [i64; 2] = [PADDING as i64; 2];
    let narrow = |tensor: &Torch| tensor.to_kind(if sizes.half { Kind::BFloat16 } else { Kind::Float });
    let (x, weights) = (&inputs[0], inputs[1..].as_chunks::<3>().0);
    let x = weights.iter().zip(norms).fold(narrow(x), |x, ([kernel, gamma, beta], norm)| {
        let x = x.conv2d(&narrow(kernel), None::<&Torch>, [1, 1], AROUND, [1, 1], 1);
        let BatchNorm { mean, variance, momentum, epsilon } = norm;
        let (mean, variance, training) = (Some(mean), Some(variance), sizes.training);
        x.batch_norm(Some(gamma), Some(beta), mean, variance, training, *momentum, *epsilon, true).relu()
    });
    let pooled = x.max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], false);
    pooled.dropout(sizes.dropout, sizes.training).to_kind(Kind::Float)
}

/// What a transformer layer depends on beside its inputs.
struct LayerSizes {
    heads: i64,
    epsilon: f64,
    hidden_dropout: f64,
    attention_dropout: f64,
    norm_first: bool,
    training: bool,
    half: bool,
}

impl LayerSizes {
    fn of<B: Backend>(layer: &EncoderLayer<B>) -> Self {
        Self {
            heads: layer.attention.heads as i64,
            epsilon: layer.norm_epsilon,
            hidden_dropout: layer.dropout.prob,
            attention_dropout: layer.attention.dropout.prob,
            norm_first: layer.norm_first,
            training: true,
            half: layer.half,
        }
    }

    fn narrow(&self, x: &Torch) -> Torch {
        x.to_kind(if self.half { Kind::BFloat16 } else { Kind::Float })
    }

    /// Burn keeps a weight as `[input, output]`.
    fn linear(&self, x: &Torch, weight: &Torch, bias: &Torch) -> Torch {
        x.linear(&self.narrow(weight).tr(), Some(&self.narrow(bias)))
    }

    fn norm(&self, x: &Torch, gamma: &Torch, beta: &Torch) -> Torch {
        x.layer_norm([gamma.size()[0]], Some(gamma), Some(beta), self.epsilon, true)
    }

    fn dropout(&self, x: &Torch) -> Torch {
        x.to_kind(Kind::Float).dropout(self.hidden_dropout, self.training)
    }

    fn attend(&self, x: &Torch, weights: &[Torch], padding: Option<&Torch>) -> Torch {
        let size = x.size();
        let (batch, tokens, features) = (size[0], size[1], size[2]);
        let x = self.narrow(x);
        let heads = |weight: &Torch, bias: &Torch| {
            let heads = [batch, tokens, self.heads, features / self.heads];
            self.linear(&x, weight, bias).view(heads.as_slice()).transpose(1, 2)
        };
        let [query, key, value] = [0, 2, 4].map(|at| heads(&weights[at], &weights[at + 1]));
        // True where one may look.
        let mask = padding.map(|padding| padding.logical_not().view([batch, 1, 1, tokens]));
        let dropout = if self.training { self.attention_dropout } else { 0.0 };
        let seen = Torch::scaled_dot_product_attention(
            &query,
            &key,
            &value,
            mask.as_ref(),
            dropout,
            false,
            None,
            false,
        );
        let joined = seen.transpose(1, 2).reshape([batch, tokens, features]);
        self.linear(&joined, &weights[6], &weights[7])
    }

    fn perceptron(&self, x: &Torch, weights: &[Torch]) -> Torch {
        let inner = self.linear(&self.narrow(x), &weights[0], &weights[1]);
        // The exact form, with erf, as in `encoder.rs`.
        self.linear(&inner.gelu("none"), &weights[2], &weights[3])
    }
}

fn encoder_layer(inputs: &[Torch; 17], padding: Option<&Torch>, sizes: &LayerSizes) -> Torch {
    let [x, weights @ ..] = inputs;
    let (attention, rest) = weights.split_at(8);
    let (perceptron, norms) = rest.split_at(4);
    let norm = |at: usize, x: &Torch| sizes.norm(x, &norms[at], &norms[at + 1]);
    if sizes.norm_first {
        let x = x + sizes.dropout(&sizes.attend(&norm(0, x), attention, padding));
        &x + sizes.dropout(&sizes.perceptron(&norm(2, &x), perceptron))
    } else {
        let x = norm(0, &(x + sizes.dropout(&sizes.attend(x, attention, padding))));
        norm(2, &(&x + sizes.dropout(&sizes.perceptron(&x, perceptron))))
    }
}

/// What LibTorch recorded for one operation of Burn's.
#[derive(Clone, Debug)]
struct Recorded<const N: usize>(Arc<Mutex<Recording<N>>>);

#[derive(Debug)]
struct Recording<const N: usize> {
    leaves: [Torch; N],
    output: Torch,
    /// Burn changes a tensor in place when nobody else holds it, and LibTorch's record is nobody to it.
    _held: Vec<TchTensor>,
}

/// Computes with LibTorch's record of gradients on where Burn wants gradients.
fn record<const N: usize>(inputs: [Tracked; N], compute: impl Fn(&[Torch; N]) -> Torch) -> Tracked {
    let nodes = inputs.each_ref().map(|input| input.node.clone());
    match Replay::<N>.prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let leaves =
                inputs.each_ref().map(|input| input.primitive.tensor.detach().set_requires_grad(true));
            let output = compute(&leaves);
            let shown = TchTensor::new(output.detach());
            let mut held = vec![shown.clone()];
            held.extend(inputs.map(|input| input.primitive));
            let recording = Recording { leaves, output, _held: held };
            prepared.finish(Recorded(Arc::new(Mutex::new(recording))), shown)
        }
        OpsKind::UnTracked(prepared) => {
            let inputs = inputs.map(|input| input.primitive.tensor);
            prepared.finish(TchTensor::new(compute(&inputs)))
        }
    }
}

/// Follows the record of one operation back.
#[derive(Debug)]
struct Replay<const N: usize>;

impl<const N: usize> Backward<LibTorch, N> for Replay<N> {
    type State = Recorded<N>;

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<LibTorch>(&ops.node);
        let recording = ops.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The binding starts from a number, whose gradient is the one that came.
        let start = (&recording.output * &gradient.tensor).sum(Kind::Float);
        let wanted = ops.parents.iter().zip(&recording.leaves).filter(|(parent, _)| parent.is_some());
        let wanted: Vec<&Torch> = wanted.map(|(_, leaf)| leaf).collect();
        let found = Torch::run_backward(&[start], &wanted, false, false);
        for (parent, gradient) in ops.parents.iter().flatten().zip(found) {
            grads.register::<LibTorch>(parent.id, TchTensor::new(gradient));
        }
    }
}

#[cfg(test)]
mod tests;
