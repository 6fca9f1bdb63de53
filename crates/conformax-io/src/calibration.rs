//! What calibration found, as files keep it: the model, and parts of one that are to be put together.

pub(crate) mod calibrating;
pub(crate) mod kind;
pub(crate) mod model;
pub(crate) mod part;
