//! Text in files: UTF-8, with or without a byte-order mark before it.

use crate::Problem;

/// What some editors put before UTF-8 text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The beginning of a text without its byte-order mark, the same in every format.
pub fn without_mark(start: &[u8]) -> Result<&[u8], Problem> {
    match start {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(Problem::Utf16),
        _ => Ok(start.strip_prefix(MARK).unwrap_or(start)),
    }
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|_| Problem::NotUtf8)
}
