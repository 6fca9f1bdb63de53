//! `Device`: which processor a run uses, and with it which of Burn's backends.

use std::fmt;
use std::str::FromStr;

use burn::tensor::backend::AutodiffBackend;
use burn_autodiff::Autodiff;

use crate::Error;
use crate::model::Kernels;

/// A backend that trains, and whose models can be run without training.
pub(crate) trait TrainingBackend: AutodiffBackend<InnerBackend: Kernels> + Kernels {}

impl<B: AutodiffBackend<InnerBackend: Kernels> + Kernels> TrainingBackend for B {}

/// Portable and deterministic: the backend of the tests.
pub(crate) type Cpu = Autodiff<burn_flex::Flex>;

/// LibTorch, for GPUs.
#[cfg(feature = "tch")]
pub(crate) type Cuda = Autodiff<burn_tch::LibTorch>;

/// The GPU of this number, if LibTorch has it.
#[cfg(feature = "tch")]
pub(crate) fn gpu(number: usize) -> Result<burn_tch::LibTorchDevice, Error> {
    let found = tch::Cuda::device_count().max(0) as usize;
    if number < found {
        return Ok(burn_tch::LibTorchDevice::Cuda(number));
    }
    let hint = "is libtorch_cuda loaded? see docs/training.md";
    Err(Error::Device(format!("there is no device cuda:{number}; LibTorch finds {found} GPUs; {hint}")))
}

#[cfg(not(feature = "tch"))]
pub(crate) fn no_gpu(number: usize) -> Error {
    let how = "build with the feature `tch`, see docs/training.md";
    Error::Device(format!("cuda:{number} is not part of this build; {how}"))
}

/// Where a run computes: `cpu`, `cuda` or `cuda:1`.
///
/// ```
/// use conformax_train::Device;
/// assert_eq!("cpu".parse::<Device>()?, Device::Cpu);
/// assert_eq!("cuda:1".parse::<Device>()?, Device::Cuda(1));
/// # Ok::<(), conformax_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Device {
    /// The processor, with the portable backend.
    #[default]
    Cpu,
    /// A GPU by its number, with LibTorch.
    Cuda(usize),
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Device(format!("a device is cpu, cuda or cuda:N, got {text:?}"));
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            Some(("cuda", number)) => number.parse().map(Self::Cuda).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => write!(f, "cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_shows() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        for text in ["gpu", "cuda:", "cuda:x", "cpu:0", ""] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }
}
