//! The activations on many rows: in parallel, with scratch per block of rows and none per row.

use super::Entmax;
use crate::rows::{fill_blocks, visit_rows};
use crate::{Error, Logit, Logits, Result};

/// A float type that probabilities and gradients may be written in: `f32` or `f64`.
///
/// Everything is computed in `f64` and rounded once.
///
/// ```
/// fn zeros<M: conformax::Mass>(len: usize) -> Vec<M> {
///     vec![M::from_f64(0.0); len]
/// }
/// assert_eq!(zeros::<f32>(2), [0.0, 0.0]);
/// ```
pub trait Mass: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// Exact.
    fn into_f64(self) -> f64;
}

impl Mass for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn into_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Mass for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn into_f64(self) -> f64 {
        self
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Entmax {
    /// The probabilities of every row, row after row.
    pub fn forward_rows<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<f64>> {
        let mut out = vec![0.0; logits.as_slice().len()];
        self.forward_rows_into(logits, &mut out)?;
        Ok(out)
    }

    /// [`forward_rows`](Self::forward_rows) into a buffer of the caller's, whose contents are unspecified after
    /// an error.
    pub fn forward_rows_into<T: Logit, M: Mass>(&self, logits: Logits<'_, T>, out: &mut [M]) -> Result<()> {
        let classes = logits.classes();
        check_len(out.len(), logits.len(), classes, "rows of output")?;
        fill_blocks(out, rows_per_block(classes), classes, |first, out| {
            let (mut p, mut pool) = (vec![0.0; classes], Vec::new());
            let block = logits.rows(first..first + out.len() / classes);
            visit_rows(first, block, |index, row| {
                self.forward_with(row, &mut p, &mut pool);
                store(&p, &mut out[index * classes..][..classes]);
                Ok(())
            })
        })?;
        Ok(())
    }

    /// The backward product of every row, where `p` is what the forward pass gave.
    pub fn backward_rows_into<M: Mass>(
        &self,
        p: &[M],
        upstream: &[M],
        classes: usize,
        out: &mut [M],
    ) -> Result<()> {
        let rows = check_rows(p.len(), classes)?;
        check_len(upstream.len(), rows, classes, "rows of upstream gradient")?;
        check_len(out.len(), rows, classes, "rows of output")?;
        fill_blocks(out, rows_per_block(classes), classes, |first, out| {
            let mut wide = [vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]];
            for (row, out) in (first..).zip(out.chunks_exact_mut(classes)) {
                let [p_row, upstream_row, product] = &mut wide;
                load(&p[row * classes..][..classes], p_row);
                load(&upstream[row * classes..][..classes], upstream_row);
                self.backward(p_row, upstream_row, product);
                store(product, out);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// `∂p/∂γ` of every row, where `p` is what the forward pass gave.
    pub fn gamma_derivative_rows_into<M: Mass>(&self, p: &[M], classes: usize, out: &mut [M]) -> Result<()> {
        let rows = check_rows(p.len(), classes)?;
        check_len(out.len(), rows, classes, "rows of output")?;
        fill_blocks(out, rows_per_block(classes), classes, |first, out| {
            let mut wide = [vec![0.0; classes], vec![0.0; classes]];
            for (row, out) in (first..).zip(out.chunks_exact_mut(classes)) {
                let [p_row, slope] = &mut wide;
                load(&p[row * classes..][..classes], p_row);
                self.gamma_derivative(p_row, slope);
                store(slope, out);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The loss of every row at its label.
    pub fn loss_rows<T: Logit>(&self, logits: Logits<'_, T>, labels: &[u32]) -> Result<Vec<f64>> {
        logits.labelled(labels)?;
        let classes = logits.classes();
        let mut losses = vec![0.0; labels.len()];
        fill_blocks(&mut losses, rows_per_block(classes), 1, |first, out| {
            let (mut p, mut pool) = (vec![0.0; classes], Vec::new());
            visit_rows(first, logits.rows(first..first + out.len()), |index, row| {
                out[index] = self.loss_with(row, labels[first + index], &mut p, &mut pool);
                Ok(())
            })
        })?;
        Ok(losses)
    }

    /// The loss of every row, with the gradients in the logits, `β(p − e_y)`, written to `gradient`.
    ///
    /// They are the gradients of the sum; divide by the number of rows for those of the mean.
    pub fn loss_gradient_rows_into<T: Logit, M: Mass>(
        &self,
        logits: Logits<'_, T>,
        labels: &[u32],
        gradient: &mut [M],
    ) -> Result<Vec<f64>> {
        logits.labelled(labels)?;
        let classes = logits.classes();
        check_len(gradient.len(), logits.len(), classes, "rows of output")?;
        let losses = fill_blocks(gradient, rows_per_block(classes), classes, |first, out| {
            let (mut slopes, mut pool) = (vec![0.0; classes], Vec::new());
            let mut losses = Vec::with_capacity(out.len() / classes);
            let block = logits.rows(first..first + out.len() / classes);
            visit_rows(first, block, |index, row| {
                let label = labels[first + index];
                losses.push(self.loss_gradient_with(row, label, &mut slopes, &mut pool));
                store(&slopes, &mut out[index * classes..][..classes]);
                Ok(())
            })?;
            Ok(losses)
        })?;
        Ok(losses.concat())
    }
}

fn check_rows(len: usize, classes: usize) -> Result<usize> {
    if classes == 0 {
        return Err(Error::Classes(classes));
    }
    if !len.is_multiple_of(classes) {
        return Err(Error::Shape { len, classes });
    }
    Ok(len / classes)
}

fn check_len(len: usize, rows: usize, classes: usize, what: &'static str) -> Result<()> {
    match check_rows(len, classes)? {
        got if got == rows => Ok(()),
        got => Err(Error::Rows { what, wanted: rows, got }),
    }
}

fn load<M: Mass>(from: &[M], to: &mut [f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.into_f64();
    }
}

fn store<M: Mass>(from: &[f64], to: &mut [M]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = M::from_f64(*from);
    }
}

/// Rows in a block: enough that its scratch and bookkeeping vanish, few enough to share out evenly.
fn rows_per_block(classes: usize) -> usize {
    const BLOCK: usize = 1 << 16;
    (BLOCK / classes).max(1)
}
