//! Files of lines: CSV and JSON Lines.

#[cfg(feature = "csv")]
pub(crate) mod csv;
#[cfg(feature = "csv")]
pub(crate) mod csv_records;
#[cfg(feature = "csv")]
mod decimal;
#[cfg(feature = "jsonl")]
pub(crate) mod json_lines;
#[cfg(feature = "jsonl")]
mod json_numbers;
#[cfg(feature = "jsonl")]
pub(crate) mod json_request;
#[cfg(feature = "jsonl")]
pub(crate) mod json_row;
#[cfg(feature = "jsonl")]
pub(crate) mod lines;

/// A longer row is none, so that a file without line ends, or with a quote that is never closed, cannot fill the
/// memory. A row of 250,000 classes in full decimal takes 6 MB.
const LONGEST_ROW: usize = 64 << 20;
