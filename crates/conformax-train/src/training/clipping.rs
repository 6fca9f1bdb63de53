//! Gradient clipping by the norm of all gradients together, without a copy to the host.
//!
//! Burn clips each parameter by itself, which changes the direction of the step; scaling all by one factor does not.

use burn::module::{AutodiffModule, ModuleVisitor, Param};
use burn::tensor::Tensor;
use burn::tensor::backend::AutodiffBackend;
use burn_optim::GradientsParams;

/// Scales all gradients of `module` so that their common norm is at most `most`.
pub(crate) fn clip<B: AutodiffBackend, M: AutodiffModule<B>>(
    mut gradients: GradientsParams,
    module: &M,
    most: f32,
) -> GradientsParams {
    let mut squares = SquareSum::<B> { gradients: &gradients, sum: None };
    module.visit(&mut squares);
    let Some(sum) = squares.sum else { return gradients };
    // A norm of zero would divide by zero; any positive floor below `most` leaves the factor at one.
    let factor = sum.sqrt().clamp_min(most).recip().mul_scalar(most);
    module.visit(&mut Scale::<B> { gradients: &mut gradients, factor });
    gradients
}

struct SquareSum<'a, B: AutodiffBackend> {
    gradients: &'a GradientsParams,
    sum: Option<Tensor<B::InnerBackend, 1>>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for SquareSum<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if let Some(gradient) = self.gradients.get::<B::InnerBackend, D>(param.id) {
            let square = gradient.square().sum();
            self.sum = Some(match self.sum.take() {
                None => square,
                Some(sum) => sum.add(square),
            });
        }
    }
}

struct Scale<'a, B: AutodiffBackend> {
    gradients: &'a mut GradientsParams,
    factor: Tensor<B::InnerBackend, 1>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Scale<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if let Some(gradient) = self.gradients.remove::<B::InnerBackend, D>(param.id) {
            let factor = self.factor.clone().reshape([1; D]);
            self.gradients.register::<B::InnerBackend, D>(param.id, gradient.mul(factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Cpu;
    use burn_nn::{Linear, LinearConfig};

    type Inner = <Cpu as AutodiffBackend>::InnerBackend;

    fn norm_after(most: f32) -> (f32, f32) {
        let device = Default::default();
        let linear: Linear<Cpu> = LinearConfig::new(3, 2).init(&device);
        let x = Tensor::<Cpu, 2>::from_floats([[3.0, 4.0, 0.0]], &device);
        let gradients = GradientsParams::from_grads(linear.forward(x).sum().backward(), &linear);
        let gradients = clip::<Cpu, _>(gradients, &linear, most);
        let weight: Tensor<Inner, 2> = gradients.get(linear.weight.id).unwrap();
        let bias: Tensor<Inner, 1> = gradients.get(linear.bias.as_ref().unwrap().id).unwrap();
        (weight.square().sum().into_scalar(), bias.square().sum().into_scalar())
    }

    #[test]
    fn scales_everything_by_one_factor_and_only_what_is_too_long() {
        // Weight gradients are the inputs, twice; bias gradients are ones: 50 + 2 is the squared norm.
        assert_eq!(norm_after(100.0), (50.0, 2.0));
        let (weight, bias) = norm_after(1.0);
        assert!((weight + bias - 1.0).abs() < 1e-5, "{weight} {bias}");
        assert!((weight / bias - 25.0).abs() < 1e-3);
    }
}
