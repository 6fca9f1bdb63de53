//! NumPy arrays as the core's slices, a block of rows at a time.
//!
//! Rows that lie end to end are borrowed where they are; other layouts are copied into a small buffer block by block,
//! so that no whole copy is ever made.
//!
//! A borrowed slice promises that nobody writes while the core reads. Python cannot promise that: another thread may
//! change the array while the interpreter is released, as it may during any NumPy operation that releases it. Copying
//! every block first was tried and cost 40 % at 20,000 × 1,000, because the copy waits for memory and the arithmetic
//! then waits for the copy. What a write can do is bounded instead: the core contains no unchecked indexing and no
//! `unsafe` that depends on values, indices come from positions and never from logits, and a row that changes between
//! two reads gives another score, another order, or a panic that `work::run` turns into an exception. So results may
//! change; memory stays safe. `tests/test_threads.py` writes while it reads.
#![allow(unsafe_code)]

use std::ops::Range;

use conformax::{Logit, Mass};
use half::{bf16, f16};
use numpy::{Element, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A type of which every bit pattern is a value.
///
/// # Safety
/// Implement it for plain numbers only: memory that somebody else writes is read as this type.
pub unsafe trait Number: Copy + Send + Sync {}
// SAFETY: every bit pattern is a float or an integer.
unsafe impl Number for f16 {}
// SAFETY: as above.
unsafe impl Number for bf16 {}
// SAFETY: as above.
unsafe impl Number for f32 {}
// SAFETY: as above.
unsafe impl Number for f64 {}

/// A width of logits, and the width in which NumPy gets probabilities and copies of them.
pub trait Width: Logit + Number {
    type Out: Mass + Element + Default;
}
impl Width for f16 {
    type Out = f32;
}
impl Width for bf16 {
    type Out = f32;
}
impl Width for f32 {
    type Out = f32;
}
impl Width for f64 {
    type Out = f64;
}

/// The memory of a matrix that Python owns. It may change at any time; it stays allocated while the array that is
/// borrowed for `'a` lives.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    data: *const u8,
    rows: usize,
    classes: usize,
    /// Bytes from one row to the next, and from one class to the next.
    strides: [isize; 2],
    owner: std::marker::PhantomData<&'a T>,
}

// SAFETY: the pointer is only read, through copies of `Number`s, while the owner is borrowed.
unsafe impl<T: Number> Send for View<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Number> Sync for View<'_, T> {}

impl<'a, T: Number> View<'a, T> {
    /// The array must have two dimensions and items of `T`'s size, in native byte order.
    fn of(array: &'a Bound<'_, PyUntypedArray>) -> Self {
        // SAFETY: the object is an array, as its type says.
        let data = unsafe { (*array.as_array_ptr()).fields.data.cast::<u8>().cast_const() };
        let (shape, strides) = (array.shape(), array.strides());
        Self {
            data,
            rows: shape[0],
            classes: shape[1],
            strides: [strides[0], strides[1]],
            owner: std::marker::PhantomData,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The rows of `range`, row after row: borrowed where they lie so, else copied to `scratch`.
    pub fn rows_in<'s>(&'s self, range: Range<usize>, scratch: &'s mut Vec<T>) -> &'s [T] {
        assert!(range.start <= range.end && range.end <= self.rows, "rows of the view");
        let len = range.len() * self.classes;
        if len == 0 {
            return &[];
        }
        let width = size_of::<T>() as isize;
        let [down, across] = self.strides;
        // SAFETY: the range lies inside the shape, which NumPy's strides keep inside the allocation.
        let first = unsafe { self.data.offset(range.start as isize * down) };
        if across == width && down == width * self.classes as isize && first.cast::<T>().is_aligned() {
            // SAFETY: aligned, inside the allocation, every bit pattern a value, alive while the owner is borrowed.
            // That nobody writes cannot be promised; the head of this file says why that is survivable.
            return unsafe { std::slice::from_raw_parts(first.cast::<T>(), len) };
        }
        self.copy_rows(range, scratch);
        scratch
    }

    /// Replaces what `out` holds by the rows of `range`, row after row.
    fn copy_rows(&self, range: Range<usize>, out: &mut Vec<T>) {
        let (rows, width) = (range.len(), size_of::<T>());
        out.clear();
        out.reserve(rows * self.classes);
        let to = out.as_mut_ptr().cast::<u8>();
        let [down, across] = self.strides;
        let row_bytes = self.classes * width;
        // SAFETY: NumPy's strides reach every element of the shape, `range` lies inside it, and `to` has room for
        // `rows · classes` elements, all of which are written before the length says so. Bytes are copied without a
        // claim of alignment.
        unsafe {
            let from = self.data.offset(range.start as isize * down);
            if across == width as isize {
                for row in 0..rows {
                    let from = from.offset(row as isize * down);
                    from.copy_to_nonoverlapping(to.add(row * row_bytes), row_bytes);
                }
            } else {
                // Columns on the outside: in Fortran order that reads memory in its own order.
                for class in 0..self.classes {
                    let from = from.offset(class as isize * across);
                    for row in 0..rows {
                        let value = from.offset(row as isize * down).cast::<T>().read_unaligned();
                        to.cast::<T>().add(row * self.classes + class).write(value);
                    }
                }
            }
            out.set_len(rows * self.classes);
        }
    }
}

/// A matrix of logits of any width.
pub enum AnyView<'a> {
    F16(View<'a, f16>),
    Bf16(View<'a, bf16>),
    F32(View<'a, f32>),
    F64(View<'a, f64>),
}

impl<'a> AnyView<'a> {
    /// `float16`, `float32` and `float64` are themselves; `uint16` holds the bits of bfloat16, which NumPy has no
    /// type for.
    pub fn of(array: &'a Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        if array.ndim() != 2 {
            let message = format!("logits must have two dimensions, got {}", array.ndim());
            return Err(PyValueError::new_err(message));
        }
        let (py, kind) = (array.py(), array.dtype());
        if kind.is_equiv_to(&dtype::<f32>(py)) {
            Ok(Self::F32(View::of(array)))
        } else if kind.is_equiv_to(&dtype::<f64>(py)) {
            Ok(Self::F64(View::of(array)))
        } else if kind.is_equiv_to(&dtype::<f16>(py)) {
            Ok(Self::F16(View::of(array)))
        } else if kind.is_equiv_to(&dtype::<u16>(py)) {
            Ok(Self::Bf16(View::of(array)))
        } else {
            Err(PyTypeError::new_err(format!("logits must be floats of the native byte order, got {kind}")))
        }
    }

    pub fn rows(&self) -> usize {
        with_view!(self, view => view.rows())
    }
}

/// Evaluates an expression for whichever width it is.
macro_rules! with_view {
    ($any:expr, $view:ident => $body:expr) => {
        match $any {
            $crate::array::AnyView::F16($view) => $body,
            $crate::array::AnyView::Bf16($view) => $body,
            $crate::array::AnyView::F32($view) => $body,
            $crate::array::AnyView::F64($view) => $body,
        }
    };
}
pub(crate) use with_view;
