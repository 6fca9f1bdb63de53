//! The gradient of a convolution's weights on the portable backend.
//!
//! Burn convolves the input with the gradient, both with images and channels exchanged, and lays them out so value by
//! value: that takes longer than the convolution. Here they are copied a channel of an image at a time.

use burn::tensor::ops::{ConvOptions, FloatTensor, ModuleOps};
use burn::tensor::{Tensor, TensorData, TensorPrimitive};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::NoCheckpointing;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::{Flex, FlexTensor};

use super::Kernels;
use crate::model::cnn::PADDING;

impl Kernels for Flex {}

impl Kernels for Autodiff<Flex> {
    fn convolution(x: Tensor<Self, 4>, weight: Tensor<Self, 4>) -> Tensor<Self, 4> {
        let inputs = [x, weight].map(|tensor| tensor.into_primitive().tensor());
        let nodes = inputs.each_ref().map(|input| input.node.clone());
        let [x, weight] = inputs.map(|input| input.primitive);
        let output = Flex::conv2d(x.clone(), weight.clone(), None, options());
        let output: FloatTensor<Self> =
            match Convolution.prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
                OpsKind::Tracked(prepared) => prepared.finish((x, weight), output),
                OpsKind::UnTracked(prepared) => prepared.finish(output),
            };
        Tensor::from_primitive(TensorPrimitive::Float(output))
    }
}

fn options() -> ConvOptions<2> {
    ConvOptions::new([1, 1], [PADDING, PADDING], [1, 1], 1)
}

#[derive(Debug)]
struct Convolution;

impl Backward<Flex, 2> for Convolution {
    /// Input and weights.
    type State = (FlexTensor, FlexTensor);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let ([of_x, of_weight], (x, weight)) = (ops.parents, ops.state);
        if let Some(node) = of_x {
            let found = Flex::conv2d_x_backward(x.clone(), weight, gradient.clone(), options());
            grads.register::<Flex>(node.id, found);
        }
        if let Some(node) = of_weight {
            let found = Flex::conv2d(channels_first(&x), channels_first(&gradient), None, options());
            grads.register::<Flex>(node.id, found.transpose(0, 1));
        }
    }
}

/// `[images, channels, height, width]` as `[channels, images, height, width]`, laid out in that order.
fn channels_first(x: &FlexTensor) -> FlexTensor {
    let x = x.to_contiguous();
    let [images, channels, height, width] = x.layout().shape().dims();
    let (values, plane) = (x.storage::<f32>(), height * width);
    let mut out = Vec::with_capacity(values.len());
    for channel in 0..channels {
        for image in 0..images {
            out.extend_from_slice(&values[(image * channels + channel) * plane..][..plane]);
        }
    }
    FlexTensor::from_data(TensorData::new(out, [channels, images, height, width]))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Distribution;
    use burn::tensor::backend::Backend;

    use super::*;

    type Traced = Autodiff<Flex>;

    #[test]
    fn a_convolution_and_its_gradients_are_burns_to_the_bit() {
        let device = Default::default();
        Traced::seed(&device, 1);
        let random = |shape: [usize; 4]| {
            Tensor::<Traced, 4>::random(shape, Distribution::Normal(0.0, 1.0), &device).require_grad()
        };
        let (x, weight, scale) = (random([3, 2, 7, 6]), random([4, 2, 5, 5]), random([3, 4, 7, 6]));
        let of_burn = burn::tensor::module::conv2d(x.clone(), weight.clone(), None, options());
        let found = [of_burn, Traced::convolution(x.clone(), weight.clone())].map(|output| {
            let gradients = (output.clone() * scale.clone()).sum().backward();
            let of = |tensor: &Tensor<Traced, 4>| tensor.grad(&gradients).unwrap().into_data();
            [output.into_data(), of(&x), of(&weight)].map(|data| data.to_vec::<f32>().unwrap())
        });
        assert_eq!(found[0], found[1]);
        assert!(found[0].iter().flatten().any(|value| *value != 0.0));
    }
}
