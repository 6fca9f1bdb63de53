//! JSON on standard output: one value, indented, with ±∞ as strings because JSON has no such numbers.

use serde::{Serialize, Serializer};

use crate::console::Console;
use crate::failure::Failure;

/// Prints a value.
pub(crate) fn print(value: &impl Serialize, console: &mut Console<'_>) -> Result<(), Failure> {
    serde_json::to_writer_pretty(console.out(), value)?;
    writeln!(console.out())?;
    Ok(())
}

/// A number that may be infinite.
pub(crate) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        f64::INFINITY => serializer.serialize_str("inf"),
        f64::NEG_INFINITY => serializer.serialize_str("-inf"),
        value => serializer.serialize_f64(value),
    }
}

/// A number that may be infinite or absent.
pub(crate) fn optional_number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, serializer),
        None => serializer.serialize_none(),
    }
}
