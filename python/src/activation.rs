//! γ-entmax of every row: forward, backward, in γ, and the loss.

use conformax::{Entmax, Gamma, Mass};
use numpy::{Element, PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::array::{AnyView, Number, View, Width, with_view};
use crate::error::value_error;
use crate::score::one_per_row;
use crate::work::{Beside, Places, Rows, each_block, rows_per_block, run};

/// The probabilities of every row, row after row: `float64` for `float64` logits, `float32` for the others.
#[pyfunction]
#[pyo3(signature = (logits, gamma, *, n_threads=None))]
pub fn entmax<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyUntypedArray>,
    gamma: f64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let entmax = Entmax::new(Gamma::new(gamma).map_err(value_error)?);
    with_view!(AnyView::of(logits)?, view => forward(py, entmax, view, n_threads))
}

fn forward<'py, T: Width>(
    py: Python<'py>,
    entmax: Entmax,
    view: View<'_, T>,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let p = run(py, n_threads, |stop| {
        let mut out = vec![T::Out::default(); view.rows() * view.classes()];
        let rows = Rows { view, beside: Beside::default(), first_row: 0 };
        rows.fill(stop, (view.classes(), 1), &mut out, |_, logits, out| {
            entmax.forward_rows_into(logits, out)
        })?;
        Ok(out)
    })?;
    Ok(PyArray1::from_vec(py, p).into_any())
}

/// `Jᵀ·upstream` of every row, where `p` is what the forward pass gave.
#[pyfunction]
#[pyo3(signature = (p, upstream, gamma, *, n_threads=None))]
pub fn entmax_backward<'py>(
    py: Python<'py>,
    p: &Bound<'py, PyUntypedArray>,
    upstream: &Bound<'py, PyUntypedArray>,
    gamma: f64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let entmax = Entmax::new(Gamma::new(gamma).map_err(value_error)?);
    if p.shape() != upstream.shape() {
        return Err(PyValueError::new_err("probabilities and upstream gradient differ in shape"));
    }
    match (AnyView::of(p)?, AnyView::of(upstream)?) {
        (AnyView::F32(p), AnyView::F32(upstream)) => {
            products(py, p, Some(upstream), n_threads, |p, upstream, out| {
                entmax.backward_rows_into(p, upstream, out.1, out.0)
            })
        }
        (AnyView::F64(p), AnyView::F64(upstream)) => {
            products(py, p, Some(upstream), n_threads, |p, upstream, out| {
                entmax.backward_rows_into(p, upstream, out.1, out.0)
            })
        }
        _ => Err(single_or_double()),
    }
}

/// `∂p/∂γ` of every row, where `p` is what the forward pass gave.
#[pyfunction]
#[pyo3(signature = (p, gamma, *, n_threads=None))]
pub fn entmax_gamma_derivative<'py>(
    py: Python<'py>,
    p: &Bound<'py, PyUntypedArray>,
    gamma: f64,
    n_threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let entmax = Entmax::new(Gamma::new(gamma).map_err(value_error)?);
    match AnyView::of(p)? {
        AnyView::F32(p) => {
            products(py, p, None, n_threads, |p, _, out| entmax.gamma_derivative_rows_into(p, out.1, out.0))
        }
        AnyView::F64(p) => {
            products(py, p, None, n_threads, |p, _, out| entmax.gamma_derivative_rows_into(p, out.1, out.0))
        }
        _ => Err(single_or_double()),
    }
}

fn single_or_double() -> PyErr {
    PyTypeError::new_err("gradients are float32 or float64, like the probabilities")
}

/// Block by block: probabilities, the upstream gradient where there is one, and (out, classes).
fn products<'py, M: Mass + Number + Element + Default>(
    py: Python<'py>,
    p: View<'_, M>,
    upstream: Option<View<'_, M>>,
    n_threads: Option<usize>,
    work: impl Fn(&[M], &[M], (&mut [M], usize)) -> conformax::Result<()> + Send + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let (rows, classes) = (p.rows(), p.classes());
    let out = run(py, n_threads, |stop| {
        let mut out = vec![M::default(); rows * classes];
        let per_block = rows_per_block(classes);
        let places = Places::new(&mut out, per_block * classes);
        each_block(
            rows.div_ceil(per_block),
            stop,
            Default::default,
            |block, scratch: &mut (Vec<M>, Vec<M>)| {
                let first = block * per_block;
                let range = first..(first + per_block).min(rows);
                let p = p.rows_in(range.clone(), &mut scratch.0);
                let upstream = upstream.as_ref().map_or(&[][..], |view| view.rows_in(range, &mut scratch.1));
                places.with(block, |out| work(p, upstream, (out, classes)))
            },
        )?;
        Ok(out)
    })?;
    Ok(PyArray1::from_vec(py, out).into_any())
}

/// The loss of every row at its label, and its gradients in the logits, row after row.
#[pyfunction]
#[pyo3(signature = (logits, labels, gamma, *, n_threads=None))]
pub fn entmax_loss<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyUntypedArray>,
    labels: PyReadonlyArray1<'py, u32>,
    gamma: f64,
    n_threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyAny>)> {
    let entmax = Entmax::new(Gamma::new(gamma).map_err(value_error)?);
    let view = AnyView::of(logits)?;
    let labels = one_per_row(&view, labels, "labels")?;
    with_view!(view, view => loss(py, entmax, view, &labels, n_threads))
}

fn loss<'py, T: Width>(
    py: Python<'py>,
    entmax: Entmax,
    view: View<'_, T>,
    labels: &[u32],
    n_threads: Option<usize>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyAny>)> {
    let (losses, gradient) = run(py, n_threads, |stop| {
        let classes = view.classes();
        let mut gradient = vec![T::Out::default(); view.rows() * classes];
        let per_block = rows_per_block(classes);
        let places = Places::new(&mut gradient, per_block * classes);
        let losses = Rows { view, beside: Beside::default(), first_row: 0 }.map(
            stop,
            per_block,
            |first, logits| {
                let labels = &labels[first..first + logits.len()];
                places.with(first / per_block, |out| entmax.loss_gradient_rows_into(logits, labels, out))
            },
        )?;
        drop(places);
        Ok((losses.concat(), gradient))
    })?;
    Ok((PyArray1::from_vec(py, losses), PyArray1::from_vec(py, gradient).into_any()))
}
