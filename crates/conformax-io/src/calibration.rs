//! Calibration files, and the fingerprints by which they know the rows they were made from.

pub(crate) mod fingerprint;
pub(crate) mod model;
