//! A model that is not being trained over all rows of a part.

use burn::tensor::backend::Backend;
use burn::tensor::{ElementConversion, Int, Tensor};

use super::progress::Sums;
use crate::data::{Batches, Plan};
use crate::error::Result;
use crate::loss::Loss;
use crate::model::{Classifier, Input, Kernels};

/// Calls `each` with logits `[batch, classes]`, labels, and labels on the device, batch after batch.
pub(crate) fn each_batch<B: Kernels>(
    model: &Classifier<B>,
    plan: Plan,
    device: &B::Device,
    mut each: impl FnMut(Tensor<B, 2>, Vec<u32>, Tensor<B, 1, Int>) -> Result<()>,
) -> Result<()> {
    let steps = 0..plan.steps_per_epoch();
    for batch in Batches::new(plan, steps, workers()) {
        let batch = batch?;
        let labels = batch.labels.clone();
        let (input, targets) = Input::from_batch(batch, device);
        each(model.forward(input), labels, targets)?;
    }
    Ok(())
}

/// Loss and hits over all rows of `plan`.
pub(crate) fn evaluate<B: Kernels>(
    model: &Classifier<B>,
    plan: Plan,
    loss: &Loss,
    device: &B::Device,
) -> Result<Sums> {
    let mut sums = Sums::default();
    each_batch(model, plan, device, |logits, labels, targets| {
        let correct = hits(logits.clone(), targets.clone()).into_scalar().elem();
        let mean = loss.forward(logits, targets).into_scalar().elem();
        sums.add(labels.len() as u64, mean, correct);
        Ok(())
    })?;
    Ok(sums)
}

/// How many rows have their label's logit on top, as a tensor `[1]`: it need not come to the host yet.
pub(super) fn hits<B: Backend>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1, Int> {
    logits.argmax(1).squeeze_dim::<1>(1).equal(targets).int().sum()
}

/// Threads that prepare batches: all but the one that trains, and no more than keep a GPU busy.
pub(super) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_sub(1).clamp(1, 12)
}
