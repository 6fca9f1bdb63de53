//! What every format comes to: rows of values, cells beside them, names of classes.

pub(crate) mod block;
pub(crate) mod cells;
pub(crate) mod class_names;
pub(crate) mod format;
pub(crate) mod input;
pub(crate) mod json_pairs;
pub(crate) mod per_class;
pub(crate) mod utf8;
pub(crate) mod values;
