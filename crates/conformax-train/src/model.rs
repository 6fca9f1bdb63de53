//! `Classifier`: any of the paper's models behind one `forward`, and the `Input` they take.

mod attention;
pub mod bert;
pub mod cnn;
mod encoder;
mod kernels;
mod positions;
pub mod vit;

use burn::module::Module;
use burn::tensor::backend::Backend;
use burn::tensor::{Bool, Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::data::{Batch, BatchInputs, Enlarging, Matrix};

use self::bert::Bert;
use self::cnn::Cnn;
pub use self::kernels::Kernels;
use self::vit::Vit;

/// In what numbers matrix products and convolutions are computed; weights and everything else are f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As stored. On a GPU, LibTorch lets convolutions use tf32.
    #[default]
    F32,
    /// bfloat16 on a GPU, as PyTorch's autocast does it; f32 on the CPU.
    Bf16,
}

/// What a batch looks like on the device.
#[derive(Clone, Debug)]
pub enum Input<B: Backend> {
    /// Images `[batch, channels, height, width]`.
    Images(Tensor<B, 4>),
    /// Texts, each `[batch, tokens]`.
    Tokens {
        /// Numbers of the tokens.
        ids: Tensor<B, 2, Int>,
        /// True for a token, false for padding.
        mask: Tensor<B, 2, Bool>,
        /// Which of two texts a token belongs to.
        types: Tensor<B, 2, Int>,
    },
}

impl<B: Backend> Input<B> {
    /// Copies a batch to the device, with its labels `[batch]`.
    pub fn from_batch(batch: Batch, device: &B::Device) -> (Self, Tensor<B, 1, Int>) {
        let labels: Vec<i64> = batch.labels.iter().map(|label| i64::from(*label)).collect();
        let rows = labels.len();
        let input = match batch.inputs {
            BatchInputs::Images { values, shape, enlarging } => {
                let images = Tensor::from_data(TensorData::new(values, shape), device);
                Self::Images(match enlarging {
                    Some(enlarging) => enlarged(images, &enlarging),
                    None => images,
                })
            }
            BatchInputs::Tokens { ids, mask, types, shape } => Self::Tokens {
                ids: integers(ids, shape, device),
                mask: integers(mask, shape, device).greater_elem(0),
                types: integers(types, shape, device),
            },
        };
        (input, Tensor::from_data(TensorData::new(labels, [rows]), device))
    }
}

impl<B: Backend> Input<B> {
    /// Each image mixed with the one at the same place from the end of the batch, of which it takes `1 − kept`.
    pub(crate) fn mixed(self, kept: f64) -> Self {
        match self {
            Self::Images(images) => Self::Images(images.clone() * kept + images.flip([0]) * (1.0 - kept)),
            Self::Tokens { .. } => unreachable!("the config mixes images alone"),
        }
    }
}

/// Columns, then rows, each as one product of matrices: the result is that of `data/resample.rs`.
fn enlarged<B: Backend>(images: Tensor<B, 4>, enlarging: &Enlarging) -> Tensor<B, 4> {
    let along = |x: Tensor<B, 4>, axis: &Matrix| {
        let [batch, channels, lines, pixels] = x.dims();
        let weights =
            Tensor::<B, 2>::from_data(TensorData::new(axis.values.clone(), axis.shape), &x.device());
        let lengthened = x.reshape([batch * channels * lines, pixels]).matmul(weights.transpose());
        lengthened.reshape([batch, channels, lines, axis.shape[0]])
    };
    let wide = along(images, &enlarging.horizontal).swap_dims(2, 3);
    along(wide, &enlarging.vertical).swap_dims(2, 3)
}

fn integers<B: Backend>(values: Vec<i64>, shape: [usize; 2], device: &B::Device) -> Tensor<B, 2, Int> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// One of the paper's models.
#[derive(Module, Debug)]
pub enum Classifier<B: Backend> {
    /// For small images, from random weights.
    Cnn(Cnn<B>),
    /// For texts.
    Bert(Bert<B>),
    /// For images.
    Vit(Vit<B>),
}

impl<B: Kernels> Classifier<B> {
    /// The same in another precision, where the backend has it.
    pub(crate) fn with_precision(self, precision: Precision) -> Self {
        match self {
            Self::Cnn(cnn) => Self::Cnn(cnn.with_precision(precision)),
            Self::Bert(bert) => Self::Bert(bert.with_precision(precision)),
            Self::Vit(vit) => Self::Vit(vit.with_precision(precision)),
        }
    }

    /// Logits `[batch, classes]`.
    pub fn forward(&self, input: Input<B>) -> Tensor<B, 2> {
        match (self, input) {
            (Self::Cnn(cnn), Input::Images(images)) => cnn.forward(images),
            (Self::Vit(vit), Input::Images(images)) => vit.forward(images),
            (Self::Bert(bert), Input::Tokens { ids, mask, types }) => bert.forward(ids, mask, types),
            (Self::Cnn(_) | Self::Vit(_), Input::Tokens { .. }) | (Self::Bert(_), Input::Images(_)) => {
                unreachable!("rows are prepared for the model that the config names")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{
        Dataset, ImageTransform, Images, Inputs, Part, Parts, Pixels, Plan, Preparation, Resize,
    };
    use burn_flex::Flex;

    /// Two images of 3 × 5 pixels, resized, normalised and on the device.
    fn prepared(resize: Resize, images: Images) -> (Vec<f32>, [usize; 4], Option<[usize; 3]>) {
        let dataset = Dataset {
            inputs: Inputs::Images(images),
            labels: vec![0, 1],
            class_names: vec!["a".into(), "b".into()],
            parts: Parts { test: vec![0, 1], ..Parts::default() },
        };
        let transform = ImageTransform { resize, mean: vec![0.5; 3], std: vec![0.25; 3] };
        let examples = std::sync::Arc::new(dataset.prepare(&Preparation::Images(transform)).unwrap());
        let batch = Plan::evaluation(examples.clone(), Part::Test, 2).unwrap().batch(0).unwrap();
        let (Input::Images(images), _) = Input::<Flex>::from_batch(batch, &Default::default()) else {
            panic!("images became texts");
        };
        (images.to_data().to_vec().unwrap(), images.dims(), examples.input_shape())
    }

    #[test]
    fn images_are_enlarged_on_the_device_as_they_would_be_on_the_cpu() {
        let bytes: Vec<u8> = (0..90).map(|at| (at * 89 % 256) as u8).collect();
        let folder = tempfile::tempdir().unwrap();
        // The same images as files, which the CPU resizes.
        let files = [0, 1].map(|row| {
            let path = folder.path().join(format!("{row}.png"));
            let planes = &bytes[row * 45..][..45];
            let pixel = |x: u32, y: u32| [0, 1, 2].map(|channel| planes[channel * 15 + (y * 5 + x) as usize]);
            image::RgbImage::from_fn(5, 3, |x, y| image::Rgb(pixel(x, y))).save(&path).unwrap();
            path
        });
        for resize in [Resize::To { height: 7, width: 11 }, Resize::ShortSide { size: 9, crop: 8 }] {
            let in_memory = Images::Memory(Pixels::new(bytes.clone(), [3, 3, 5]));
            let (device, shape, told) = prepared(resize, in_memory);
            let (cpu, wanted, _) = prepared(resize, Images::Files(files.to_vec()));
            assert_eq!((shape, told), (wanted, Some([3, wanted[2], wanted[3]])));
            for (device, cpu) in device.iter().zip(cpu) {
                assert!((device - cpu).abs() < 1e-5, "{device}, {cpu}");
            }
        }
    }

    #[test]
    fn images_are_mixed_with_their_opposites() {
        let images =
            Tensor::<Flex, 1>::from_floats([0.0, 1.0, 4.0], &Default::default()).reshape([3, 1, 1, 1]);
        let Input::Images(mixed) = Input::Images(images).mixed(0.75) else { panic!("images became texts") };
        assert_eq!(mixed.into_data().to_vec::<f32>().unwrap(), [1.0, 1.0, 3.0]);
    }
}
