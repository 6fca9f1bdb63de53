//! `Values`: a buffer of logits in the type they were stored in.

use half::{bf16, f16};

/// The float types logits come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Dtype {
    /// Bytes of one value.
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// Logits row after row, in the type the file has them in: converting is left to the arithmetic that reads them.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// IEEE half precision.
    F16(Vec<f16>),
    /// The upper half of an `f32`.
    Bf16(Vec<bf16>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

/// The same number as an `f64`, whichever type it has: a closure over all four cannot say `f64::from` for `f64` itself.
pub(crate) fn wide<T: Into<f64>>(value: T) -> f64 {
    value.into()
}

/// Runs one expression for whichever vector is inside.
macro_rules! each_dtype {
    ($values:expr, $vector:ident => $body:expr) => {
        match $values {
            $crate::data::values::Values::F16($vector) => $body,
            $crate::data::values::Values::Bf16($vector) => $body,
            $crate::data::values::Values::F32($vector) => $body,
            $crate::data::values::Values::F64($vector) => $body,
        }
    };
}
pub(crate) use each_dtype;

macro_rules! from_vec {
    ($($variant:ident($type:ty)),+) => {
        $(impl From<Vec<$type>> for Values {
            fn from(values: Vec<$type>) -> Self {
                Self::$variant(values)
            }
        })+
    };
}
from_vec!(F16(f16), Bf16(bf16), F32(f32), F64(f64));

impl Values {
    /// An empty buffer of a type.
    pub fn new(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F16 => Self::F16(Vec::new()),
            Dtype::Bf16 => Self::Bf16(Vec::new()),
            Dtype::F32 => Self::F32(Vec::new()),
            Dtype::F64 => Self::F64(Vec::new()),
        }
    }

    /// The type of the values.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::F16(_) => Dtype::F16,
            Self::Bf16(_) => Dtype::Bf16,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        each_dtype!(self, v => v.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at an index, widened.
    pub fn get(&self, index: usize) -> Option<f64> {
        each_dtype!(self, v => v.get(index).map(|&value| wide(value)))
    }

    /// The values as they lie in memory, in the machine's byte order.
    pub fn as_bytes(&self) -> &[u8] {
        each_dtype!(self, v => bytemuck::cast_slice(v))
    }

    /// Empties the buffer, keeping its memory, and makes sure it holds this type.
    pub(crate) fn reset(&mut self, dtype: Dtype) {
        if self.dtype() == dtype {
            each_dtype!(self, v => v.clear());
        } else {
            *self = Self::new(dtype);
        }
    }

    /// At most `len` values of this type, whatever they are, to be written over: filling memory with zeros first would
    /// take as long as what is then read into it.
    pub(crate) fn reuse(&mut self, dtype: Dtype, len: usize) {
        if self.dtype() != dtype {
            *self = Self::new(dtype);
        }
        each_dtype!(self, v => v.truncate(len));
    }

    pub(crate) fn resize(&mut self, len: usize) {
        match self {
            Self::F16(v) => v.resize(len, f16::ZERO),
            Self::Bf16(v) => v.resize(len, bf16::ZERO),
            Self::F32(v) => v.resize(len, 0.0),
            Self::F64(v) => v.resize(len, 0.0),
        }
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        each_dtype!(self, v => bytemuck::cast_slice_mut(v))
    }

    /// Turns values just read as bytes of the given order into the machine's own.
    pub(crate) fn swap_from(&mut self, order: ByteOrder) {
        if order == ByteOrder::NATIVE {
            return;
        }
        match self {
            Self::F16(v) => v.iter_mut().for_each(|x| *x = f16::from_bits(x.to_bits().swap_bytes())),
            Self::Bf16(v) => v.iter_mut().for_each(|x| *x = bf16::from_bits(x.to_bits().swap_bytes())),
            Self::F32(v) => v.iter_mut().for_each(|x| *x = f32::from_bits(x.to_bits().swap_bytes())),
            Self::F64(v) => v.iter_mut().for_each(|x| *x = f64::from_bits(x.to_bits().swap_bytes())),
        }
    }

    /// Appends rows `rows` of `from` (a matrix of `classes` columns) to this buffer.
    pub fn extend_rows(&mut self, from: &Self, classes: usize, rows: std::ops::Range<usize>) {
        let range = rows.start * classes..rows.end * classes;
        match (self, from) {
            (Self::F16(to), Self::F16(from)) => to.extend_from_slice(&from[range]),
            (Self::Bf16(to), Self::Bf16(from)) => to.extend_from_slice(&from[range]),
            (Self::F32(to), Self::F32(from)) => to.extend_from_slice(&from[range]),
            (Self::F64(to), Self::F64(from)) => to.extend_from_slice(&from[range]),
            (to, from) => {
                assert!(to.is_empty(), "rows are appended to values of their own type");
                *to = Self::new(from.dtype());
                to.extend_rows(from, classes, rows);
            }
        }
    }
}

/// How the bytes of a number are ordered in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(crate) const NATIVE: Self = if cfg!(target_endian = "little") { Self::Little } else { Self::Big };
}
