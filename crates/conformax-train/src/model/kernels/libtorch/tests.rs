//! The fused layers against the composed ones, values and gradients, on LibTorch's CPU.

use super::*;
use crate::model::encoder::LayerConfig;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Distribution;
use burn::tensor::backend::AutodiffBackend;

type Training = Autodiff<LibTorch>;

fn config(norm_first: bool) -> LayerConfig {
    LayerConfig {
        hidden: 16,
        heads: 4,
        inner: 24,
        norm_epsilon: 1e-6,
        hidden_dropout: 0.0,
        attention_dropout: 0.0,
        initializer_range: 0.3,
        norm_first,
    }
}

/// The gradient of every parameter, one after the other.
struct Slopes<'a> {
    gradients: &'a <Training as AutodiffBackend>::Gradients,
    found: Vec<f32>,
}

impl ModuleVisitor<Training> for Slopes<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<Training, D>>) {
        // Running statistics have none.
        if !param.val().is_require_grad() {
            return;
        }
        let gradient = param.val().grad(self.gradients).expect("every parameter is used");
        self.found.extend(gradient.into_data().iter::<f32>());
    }
}

/// Values, gradients of the input and gradients of the parameters; every output weighs differently.
fn differentiated<M: Module<Training>, const D: usize>(
    module: &M,
    x: &Tensor<Training, D>,
    forward: impl Fn(&M, Tensor<Training, D>) -> Tensor<Training, D>,
) -> [Vec<f32>; 3] {
    let x = x.clone().detach().require_grad();
    let y = forward(module, x.clone());
    let count = y.shape().num_elements() as i64;
    let weights = Tensor::<Training, 1, burn::tensor::Int>::arange(0..count, &x.device()).float();
    let weights = (weights * 0.37).sin().reshape(y.shape());
    let gradients = (y.clone() * weights).sum().backward();
    let mut slopes = Slopes { gradients: &gradients, found: Vec::new() };
    module.visit(&mut slopes);
    let numbers = |data: burn::tensor::TensorData| data.iter::<f32>().collect();
    let input = x.grad(&gradients).expect("the input is used");
    [numbers(y.into_data()), numbers(input.into_data()), slopes.found]
}

fn assert_close(fused: &[Vec<f32>; 3], composed: &[Vec<f32>; 3], most: f32) {
    for (part, (fused, composed)) in fused.iter().zip(composed).enumerate() {
        assert_eq!(fused.len(), composed.len());
        let scale = composed.iter().fold(1.0_f32, |most, value| most.max(value.abs()));
        for (at, (fused, composed)) in fused.iter().zip(composed).enumerate() {
            assert!(
                (fused - composed).abs() <= most * scale,
                "part {part}, number {at}: {fused}, {composed}"
            );
        }
    }
}

#[test]
fn transformer_layers_are_those_composed_of_single_operations() {
    let device = Default::default();
    for norm_first in [false, true] {
        let mut layer = EncoderLayer::<Training>::new(&config(norm_first), &device);
        let x = Tensor::<Training, 3>::random([3, 5, 16], Distribution::Normal(0.0, 1.0), &device);
        let padding = Tensor::<Training, 2>::from_floats(
            [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0], [0.0; 5]],
            &device,
        )
        .greater_elem(0.5);
        for padding in [None, Some(&padding)] {
            let composed = differentiated(&layer, &x, |layer, x| layer.composed(x, padding));
            let fused = differentiated(&layer, &x, |layer, x| Training::encoder_layer(layer, x, padding));
            assert_close(&fused, &composed, 2e-5);
            layer.half = true;
            let half = differentiated(&layer, &x, |layer, x| Training::encoder_layer(layer, x, padding));
            assert_close(&half, &composed, 5e-2);
            layer.half = false;
        }
    }
}

#[test]
fn stages_are_those_composed_of_single_operations() {
    let device = Default::default();
    let x = Tensor::<Training, 4>::random([4, 3, 8, 8], Distribution::Normal(0.0, 1.0), &device);
    let [one, other] = [(); 2].map(|()| Stage::<Training>::init(3, 6, 0.0, &device));
    // Weights are drawn when they are first looked at, and by each copy for itself.
    for block in [&one.first, &one.second] {
        let _ = block.conv.weight.val();
    }
    // A copy would share the running statistics.
    let mut other = other.load_record(one.clone().into_record());
    let composed = differentiated(&one, &x, |stage, x| stage.composed(x));
    let fused = differentiated(&other, &x, |stage, x| Training::stage(stage, x));
    assert_close(&fused, &composed, 2e-5);
    for block in
        [|stage: &Stage<Training>| stage.first.clone(), |stage: &Stage<Training>| stage.second.clone()]
    {
        let mean = |stage: &Stage<Training>| block(stage).norm.running_mean.value_sync().into_data();
        for (fused, composed) in mean(&other).iter::<f32>().zip(mean(&one).iter::<f32>()) {
            assert!((fused - composed).abs() < 1e-6, "{fused}, {composed}");
        }
    }
    let evaluated = |stage: &Stage<Training>, fused: bool| {
        let (stage, x) = (burn::module::AutodiffModule::valid(stage), x.clone().inner());
        let y = if fused { LibTorch::stage(&stage, x) } else { stage.composed(x) };
        y.into_data().iter::<f32>().collect::<Vec<_>>()
    };
    let single = evaluated(&one, false);
    for (fused, composed) in evaluated(&one, true).iter().zip(&single) {
        assert!((fused - composed).abs() < 1e-4, "{fused}, {composed}");
    }
    other.half = true;
    for (half, composed) in evaluated(&other, true).iter().zip(&single) {
        assert!((half - composed).abs() < 0.05 * (1.0 + composed.abs()), "{half}, {composed}");
    }
}
