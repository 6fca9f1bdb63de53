//! `AdamW` over all parameters as one vector, with gradients clipped by their common norm.
//!
//! Burn's own goes parameter by parameter: some fifteen kernels for each, which on a GPU take longer than the rest of a
//! small model's step. Here parameters and gradients are laid end to end, and a step is some fifteen kernels in all.
//! Matrices come first, so that weight decay, which spares norms and biases, is a matter of one boundary.

use std::ops::Range;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::record::Record;
use burn::tensor::Tensor;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn_optim::GradientsParams;
use serde::{Deserialize, Serialize};

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
/// PyTorch's.
const EPSILON: f64 = 1e-8;

/// What weight decay makes smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decayed {
    /// Matrices, kernels and embeddings: what has two dimensions or more. Norms and biases are left alone.
    #[default]
    Weights,
    /// Every parameter.
    All,
}

/// What a step of AdamW depends on beside gradients and moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamW {
    /// Decoupled from the gradients.
    pub(crate) weight_decay: f64,
    /// What it is for.
    pub(crate) decayed: Decayed,
    /// Largest norm of all gradients together; larger ones are scaled down.
    pub(crate) clip_norm: Option<f32>,
}

/// Running means of gradients and of their squares, in the order in which the vector is laid out.
#[derive(Record, Clone, Debug)]
pub(super) struct Moments<B: Backend> {
    first: Tensor<B, 1>,
    second: Tensor<B, 1>,
    steps: u32,
}

impl<B: AutodiffBackend> Moments<B> {
    /// As a record of the backend that the model is recorded with.
    pub(super) fn from_inner(inner: Moments<B::InnerBackend>) -> Self {
        let (first, second) = (Tensor::from_inner(inner.first), Tensor::from_inner(inner.second));
        Self { first, second, steps: inner.steps }
    }

    pub(super) fn inner(self) -> Moments<B::InnerBackend> {
        Moments { first: self.first.inner(), second: self.second.inner(), steps: self.steps }
    }
}

impl AdamW {
    /// The model after a step of this size. Parameters that are not trained stay as they are.
    pub(super) fn step<B: AutodiffBackend, M: Module<B>>(
        &self,
        rate: f64,
        model: M,
        gradients: &mut GradientsParams,
        moments: &mut Option<Moments<B::InnerBackend>>,
    ) -> M {
        let mut gathered = Gather::<B> { gradients, decayed: self.decayed, lists: Default::default() };
        model.visit(&mut gathered);
        let [heavy, spared] = gathered.lists;
        let boundary = heavy.length;
        let gradient = self.clipped(joined([heavy.gradients, spared.gradients].concat()));
        let (mut first, mut second, steps) = match moments.take() {
            Some(moments) => (moments.first, moments.second, moments.steps + 1),
            None => (gradient.zeros_like(), gradient.zeros_like(), 1),
        };
        first = first * BETA_1 + gradient.clone() * (1.0 - BETA_1);
        second = second * BETA_2 + gradient.square() * (1.0 - BETA_2);
        // The bias corrections 1 − βᵗ as factors, so that no kernel is spent on them alone.
        let corrections = [BETA_1, BETA_2].map(|beta| 1.0 - beta.powf(f64::from(steps)));
        let spread = (second.clone() * (1.0 / corrections[1])).sqrt() + EPSILON;
        let change = first.clone() / spread * (rate / corrections[0]);
        let mut values = Vec::from_iter([heavy.values, spared.values].into_iter().filter_map(optional_join));
        if boundary > 0 {
            values[0] = values[0].clone() * (1.0 - rate * self.weight_decay);
        }
        let values = joined(values) - change;
        *moments = Some(Moments { first, second, steps });
        model.map(&mut Scatter::<B> { values, decayed: self.decayed, starts: [0, boundary] })
    }

    /// By one factor for all, found without a copy to the host.
    fn clipped<B: Backend>(&self, gradient: Tensor<B, 1>) -> Tensor<B, 1> {
        let Some(most) = self.clip_norm else { return gradient };
        // A norm of zero would divide by zero; any positive floor up to `most` leaves the factor at one.
        let factor = gradient.clone().square().sum().sqrt().clamp_min(most).recip().mul_scalar(most);
        gradient * factor
    }
}

impl Decayed {
    /// 0 for what decays, 1 for what does not: its place in the vector.
    fn group<const D: usize>(self) -> usize {
        usize::from(self == Self::Weights && D < 2)
    }
}

fn joined<B: Backend>(parts: Vec<Tensor<B, 1>>) -> Tensor<B, 1> {
    Tensor::cat(parts, 0)
}

fn optional_join<B: Backend>(parts: Vec<Tensor<B, 1>>) -> Option<Tensor<B, 1>> {
    (!parts.is_empty()).then(|| joined(parts))
}

/// The trained parameters of one group and their gradients, each as a vector.
struct List<B: Backend> {
    values: Vec<Tensor<B, 1>>,
    gradients: Vec<Tensor<B, 1>>,
    length: usize,
}

impl<B: Backend> Default for List<B> {
    fn default() -> Self {
        Self { values: Vec::new(), gradients: Vec::new(), length: 0 }
    }
}

struct Gather<'a, B: AutodiffBackend> {
    gradients: &'a mut GradientsParams,
    decayed: Decayed,
    lists: [List<B::InnerBackend>; 2],
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Gather<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if !param.is_require_grad() {
            return;
        }
        let value = param.val().inner();
        let gradient = self.gradients.remove(param.id).unwrap_or_else(|| value.zeros_like());
        let length = value.shape().num_elements();
        let list = &mut self.lists[self.decayed.group::<D>()];
        list.values.push(value.reshape([length]));
        list.gradients.push(gradient.reshape([length]));
        list.length += length;
    }
}

struct Scatter<B: AutodiffBackend> {
    values: Tensor<B::InnerBackend, 1>,
    decayed: Decayed,
    /// Where the next parameter of each group starts.
    starts: [usize; 2],
}

impl<B: AutodiffBackend> ModuleMapper<B> for Scatter<B> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        if !param.is_require_grad() {
            return param;
        }
        let (id, value, mapper) = param.consume();
        let shape = value.shape();
        let start = &mut self.starts[self.decayed.group::<D>()];
        let place: Range<usize> = *start..*start + shape.num_elements();
        *start = place.end;
        let value = self.values.clone().slice([place]).reshape(shape);
        Param::from_mapped_value(id, Tensor::from_inner(value).require_grad(), mapper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use burn_nn::{Linear, LinearConfig};

    fn numbers<const D: usize>(tensor: Tensor<Cpu, D>) -> Vec<f32> {
        tensor.into_data().to_vec().unwrap()
    }

    /// A layer of two weights and a bias, stepped once for each input; its gradients are the input and 1.
    fn after(adamw: AdamW, frozen: bool, inputs: &[[f32; 2]]) -> (Vec<f32>, Vec<f32>) {
        let device = Default::default();
        let mut linear: Linear<Cpu> = LinearConfig::new(2, 1).init(&device);
        linear.weight = Param::from_data([[1.0], [-2.0]], &device);
        linear.bias = Some(Param::from_data([0.5], &device));
        if frozen {
            linear.weight = linear.weight.no_grad();
        }
        let mut moments = None;
        for input in inputs {
            let loss = linear.forward(Tensor::<Cpu, 2>::from_floats([*input], &device)).sum();
            let mut gradients = GradientsParams::from_grads(loss.backward(), &linear);
            linear = adamw.step::<Cpu, _>(0.1, linear, &mut gradients, &mut moments);
        }
        (numbers(linear.weight.val()), numbers(linear.bias.unwrap().val()))
    }

    fn close(found: &[f32], wanted: &[f32]) {
        let near = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 2e-6);
        assert!(near, "{found:?}, wanted {wanted:?}");
    }

    const PLAIN: AdamW = AdamW { weight_decay: 0.0, decayed: Decayed::Weights, clip_norm: None };

    #[test]
    fn does_what_pytorch_does() {
        // torch.optim.AdamW(lr=0.1, weight_decay=0.5 for the weight and 0 for the bias), two steps.
        let adamw = AdamW { weight_decay: 0.5, ..PLAIN };
        let (weight, bias) = after(adamw, false, &[[3.0, 4.0], [-1.0, 2.0]]);
        close(&weight, &[0.767_478_17, -1.993_218]);
        close(&bias, &[0.3]);
    }

    #[test]
    fn decay_of_all_reaches_the_bias() {
        let adamw = AdamW { weight_decay: 0.5, decayed: Decayed::All, ..PLAIN };
        let (weight, bias) = after(adamw, false, &[[3.0, 4.0]]);
        close(&weight, &[0.95 - 0.1, -1.9 - 0.1]);
        close(&bias, &[0.475 - 0.1]);
    }

    #[test]
    fn what_is_frozen_stays_and_the_rest_moves() {
        let (weight, bias) = after(AdamW { weight_decay: 0.5, ..PLAIN }, true, &[[3.0, 4.0]]);
        close(&weight, &[1.0, -2.0]);
        close(&bias, &[0.4]);
    }

    #[test]
    fn clipping_scales_everything_by_one_factor_and_only_what_is_too_long() {
        let clipped = |most: f32, gradient: [f32; 3]| {
            let adamw = AdamW { clip_norm: Some(most), ..PLAIN };
            numbers(adamw.clipped(Tensor::<Cpu, 1>::from_floats(gradient, &Default::default())))
        };
        close(&clipped(10.0, [3.0, 4.0, 0.0]), &[3.0, 4.0, 0.0]);
        close(&clipped(1.0, [3.0, 4.0, 0.0]), &[0.6, 0.8, 0.0]);
        close(&clipped(1.0, [0.0; 3]), &[0.0; 3]);
    }
}
