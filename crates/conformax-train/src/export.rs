//! `test.npz`: logits and labels of the test rows, as `conformax calibrate` and `conformax study` take them.

use std::path::Path;

use conformax_io::{ArrayShape, Block, ClassNames, Dtype, NpzWriter, Overwrite, Values};

use crate::data::Plan;
use crate::error::{Error, Result};
use crate::model::{Classifier, Kernels};
use crate::training::{Observer, each_batch};

/// Runs the model over every row of `plan`, in order, and writes what it says. Returns how many rows it has right:
/// those whose largest logit, the first of equals, is the label's.
pub(crate) fn export<B: Kernels>(
    model: &Classifier<B>,
    plan: Plan,
    class_names: &[String],
    (path, overwrite): (&Path, Overwrite),
    device: &B::Device,
    observer: &mut dyn Observer,
) -> Result<u64> {
    let classes = class_names.len();
    let names =
        ClassNames::new(class_names.to_vec()).map_err(|problem| conformax_io::Error::new(path, problem))?;
    let shape = ArrayShape { rows: plan.rows() as u64, classes, dtype: Dtype::F32 };
    let mut writer = NpzWriter::create(path, overwrite, shape, Some(names))?;
    let (mut row, mut correct, rows) = (0, 0, plan.rows());
    each_batch(model, plan, device, |logits, labels, _| {
        let values: Vec<f32> = logits.into_data().iter::<f32>().collect();
        if let Some(at) = values.iter().position(|logit| !logit.is_finite()) {
            return Err(Error::Logit { row: row + at / classes, class: at % classes });
        }
        correct += values
            .chunks_exact(classes)
            .zip(&labels)
            .filter(|(logits, label)| top(logits) == **label)
            .count() as u64;
        row += labels.len();
        write(&mut writer, values, labels, classes)?;
        observer.scored(row, rows);
        if observer.stop() { Err(Error::Unfinished { rows: row }) } else { Ok(()) }
    })?;
    writer.finish()?;
    Ok(correct)
}

fn write(writer: &mut NpzWriter, values: Vec<f32>, labels: Vec<u32>, classes: usize) -> Result<()> {
    let rows: Vec<usize> = (0..labels.len()).collect();
    let block = Block { classes, logits: Values::F32(values), labels: Some(labels), ..Block::default() };
    Ok(writer.write(&block, &rows)?)
}

fn top(logits: &[f32]) -> u32 {
    let best = (1..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best });
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_logits_is_on_top() {
        assert_eq!(top(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(top(&[-1.0]), 0);
    }
}
