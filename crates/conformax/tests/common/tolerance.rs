//! Every tolerance of the tests, by name. Loosening one is a change to explain.

/// Relative: two ways in `f64` to the same number.
pub const ROUNDING: f64 = 1e-12;

/// Absolute: a probability against one from 60 digits or from an unrelated algorithm.
pub const PROBABILITY: f64 = 1e-10;

/// Relative: how near its threshold a score must be for an unrelated algorithm in `f64` to decide it otherwise.
pub const BOUNDARY: f64 = 1e-9;

/// Whether two numbers agree to `tolerance`, relative to the larger; infinities and zeros only with themselves.
pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

/// Whether two numbers agree to `tolerance` times `scale`, the size of what they were computed from.
pub fn close_at_scale(a: f64, b: f64, tolerance: f64, scale: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * scale
}
