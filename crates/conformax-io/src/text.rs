//! Files of lines: CSV and JSON Lines.

#[cfg(feature = "csv")]
pub(crate) mod csv;
#[cfg(feature = "jsonl")]
pub(crate) mod json_lines;
pub(crate) mod row_limit;
