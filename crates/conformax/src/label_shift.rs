//! Weights of labels, estimated from unlabelled logits of where the model is going: the shares of the labels have
//! changed, what a label looks like has not.
//!
//! EM (Saerens, Latinne, Decaestecker 2002) turns softmax by the shares it believes in until they agree with its mean;
//! BBSE (Lipton, Wang, Smola 2018) solves `C·w = μ`, with the joint shares of predicted and true labels where the model
//! comes from and the shares of predicted labels where it goes, and clips at 0. Weights that are estimated make the
//! guarantee approximate.

use crate::kernel::math::exp_nonpositive;
use crate::rows::{map_chunks, visit_rows};
use crate::{Error, Labelled, Logit, Logits, Result};

/// How the weights of labels are estimated.
///
/// ```
/// assert_eq!(conformax::LabelShift::default(), conformax::LabelShift::Em); // `label_weights` takes either
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelShift {
    /// By expectation and maximisation on softmax: exact where softmax is calibrated.
    #[default]
    Em,
    /// By the confusion matrix of the top labels: needs no calibrated softmax, but more rows.
    Bbse,
}

/// Steps of EM at most; it ends where no share moves by more than a part in 10¹⁴.
///
/// Stopping here is no error. After so many steps the mean logarithm of the rows' likelihood is within a 100,000th of
/// the divergence of the best shares from the first (Csiszár and Tusnády 1984) of the largest there is: that is less
/// than the rows tell apart, and the weights are approximate anyway.
const STEPS: usize = 100_000;

/// The weight of each label: its share among the target rows over its share among the labelled ones.
///
/// The softmax of all target rows is held in memory. A label that no row has where the model comes from has no weight,
/// and is an error.
///
/// ```
/// use conformax::{LabelShift, Logits, label_weights};
/// let source = Logits::new(&[9.0_f32, 0.0, 0.0, 9.0], 2)?.labelled(&[0, 1])?;
/// let target = Logits::new(&[9.0_f32, 0.0, 9.0, 0.0, 9.0, 0.0, 0.0, 9.0], 2)?;
/// let weights = label_weights(source, target, LabelShift::Bbse)?;
/// assert_eq!(weights, [1.5, 0.5]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn label_weights<T: Logit>(
    source: Labelled<'_, T>,
    target: Logits<'_, T>,
    method: LabelShift,
) -> Result<Vec<f64>> {
    let classes = source.logits().classes();
    if target.classes() != classes {
        return Err(Error::ClassCount { wanted: classes, got: target.classes() });
    }
    if source.is_empty() {
        return Err(Error::NoCalibrationRows);
    }
    if target.is_empty() {
        return Err(Error::NoTestRows);
    }
    let mut counts = vec![0_u64; classes];
    source.labels().iter().for_each(|label| counts[*label as usize] += 1);
    if let Some(label) = counts.iter().position(|count| *count == 0) {
        let (what, wanted) = ("number of labelled rows", "at least 1, or its weight cannot be told");
        return Err(Error::LabelValue { what, wanted, label: label as u32, value: 0.0 });
    }
    let shares: Vec<f64> = counts.iter().map(|count| *count as f64 / source.len() as f64).collect();
    match method {
        LabelShift::Em => by_em(&shares, target),
        LabelShift::Bbse => by_bbse(source, target),
    }
}

fn by_em<T: Logit>(shares: &[f64], target: Logits<'_, T>) -> Result<Vec<f64>> {
    let classes = shares.len();
    let chunks = map_chunks(target, |first, chunk| {
        let mut softmax = Vec::with_capacity(chunk.as_slice().len());
        visit_rows(first, chunk, |_, row| {
            let start = softmax.len();
            softmax.extend(row.logits().iter().map(|logit| exp_nonpositive(logit.to_f64() - row.max())));
            let sum: f64 = softmax[start..].iter().sum();
            softmax[start..].iter_mut().for_each(|p| *p /= sum);
            Ok(())
        })?;
        Ok(softmax)
    })?;
    let softmax = chunks.concat();
    let mut believed = shares.to_vec();
    let mut turned = vec![0.0; classes];
    for _ in 0..STEPS {
        let ratio: Vec<f64> = believed.iter().zip(shares).map(|(new, old)| new / old).collect();
        let mut mean = vec![0.0; classes];
        for row in softmax.chunks_exact(classes) {
            let mut sum = 0.0;
            for ((turned, p), ratio) in turned.iter_mut().zip(row).zip(&ratio) {
                *turned = p * ratio;
                sum += *turned;
            }
            mean.iter_mut().zip(&turned).for_each(|(mean, turned)| *mean += turned / sum);
        }
        mean.iter_mut().for_each(|mean| *mean /= target.len() as f64);
        let moved = mean.iter().zip(&believed).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        believed = mean;
        if moved <= 1e-14 {
            break;
        }
    }
    Ok(believed.iter().zip(shares).map(|(new, old)| new / old).collect())
}

/// The top label of each row; of ties the first.
fn top_labels<T: Logit>(logits: Logits<'_, T>) -> Result<Vec<usize>> {
    let chunks = map_chunks(logits, |first, chunk| {
        let mut tops = Vec::with_capacity(chunk.len());
        visit_rows(first, chunk, |_, row| {
            tops.push(row.logits().iter().position(|logit| logit.to_f64() == row.max()).unwrap_or(0));
            Ok(())
        })?;
        Ok(tops)
    })?;
    Ok(chunks.concat())
}

fn by_bbse<T: Logit>(source: Labelled<'_, T>, target: Logits<'_, T>) -> Result<Vec<f64>> {
    let classes = target.classes();
    let mut confusion = vec![0.0; classes * classes];
    for (top, label) in top_labels(source.logits())?.into_iter().zip(source.labels()) {
        confusion[top * classes + *label as usize] += 1.0;
    }
    confusion.iter_mut().for_each(|count| *count /= source.len() as f64);
    let mut shares = vec![0.0; classes];
    top_labels(target)?.into_iter().for_each(|top| shares[top] += 1.0);
    shares.iter_mut().for_each(|count| *count /= target.len() as f64);
    let weights = solved(confusion, shares).ok_or(Error::Singular)?;
    Ok(weights.into_iter().map(|weight| weight.max(0.0)).collect())
}

/// Solves a linear system by elimination with the largest pivot of each column; `None` where there is no one solution.
fn solved(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for column in 0..n {
        let larger = |best: usize, next: usize| {
            if matrix[next * n + column].abs() > matrix[best * n + column].abs() { next } else { best }
        };
        let pivot = (column..n).reduce(larger)?;
        if matrix[pivot * n + column].abs() < 1e-12 {
            return None;
        }
        if pivot != column {
            (0..n).for_each(|place| matrix.swap(pivot * n + place, column * n + place));
            right.swap(pivot, column);
        }
        let (above, below) = matrix.split_at_mut((column + 1) * n);
        let row = &above[column * n..];
        for (number, other) in below.chunks_exact_mut(n).enumerate() {
            let factor = other[column] / row[column];
            if factor != 0.0 {
                other[column..]
                    .iter_mut()
                    .zip(&row[column..])
                    .for_each(|(other, row)| *other -= factor * row);
                right[column + 1 + number] -= factor * right[column];
            }
        }
    }
    for column in (0..n).rev() {
        let known: f64 = (column + 1..n).map(|place| matrix[column * n + place] * right[place]).sum();
        right[column] = (right[column] - known) / matrix[column * n + column];
    }
    Some(right)
}
