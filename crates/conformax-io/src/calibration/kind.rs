//! What kind of file this is, so that one in the place of another is called what it is.

use std::io::Read;
use std::path::Path;

use crate::Format;
use crate::data::utf8::without_mark;
use crate::error::{InFile, Problem, Result};

/// Whether bytes are the beginning of a calibration file.
///
/// ```
/// assert!(conformax_io::is_calibration(b"{\n  \"format\": \"conformax-calibration\","));
/// assert!(!conformax_io::is_calibration(b"{\"logits\": [0.5, 2.5]}"));
/// ```
pub fn is_calibration(start: &[u8]) -> bool {
    Kind::of_bytes(start) == Some(Kind::Model)
}

/// A file that is read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Part,
}

impl Kind {
    /// What the first bytes say; both formats name themselves before anything else.
    pub(crate) fn of_bytes(start: &[u8]) -> Option<Self> {
        let start = without_mark(start).ok()?;
        let packed = start.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        let start: Vec<u8> = packed.take(64).collect();
        let says = |format: &str| start.starts_with(format!("{{\"format\":\"{format}\"").as_bytes());
        match () {
            () if says("conformax-calibration") => Some(Self::Model),
            () if says("conformax-part") => Some(Self::Part),
            () => None,
        }
    }

    /// Whether bytes of which more may follow could still turn out to be of a kind.
    pub(crate) fn may_begin(start: &[u8]) -> bool {
        let Ok(start) = without_mark(start) else { return false };
        let packed: Vec<u8> = start.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let so_far = |format: &str| format!("{{\"format\":\"{format}\"").as_bytes().starts_with(&packed);
        so_far("conformax-calibration") || so_far("conformax-part")
    }

    /// The kind as a noun phrase.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Model => "a calibration file",
            Self::Part => "a part that `merge` puts together",
        }
    }

    /// Refuses what is clearly another kind of file; what may be a damaged one of this kind is for its reader to judge.
    pub(crate) fn expect(self, bytes: &[u8]) -> std::result::Result<(), Problem> {
        match described(bytes) {
            Some(found) if Self::of_bytes(bytes) != Some(self) => {
                Err(Problem::OtherKind { found, wanted: self.name() })
            }
            _ => Ok(()),
        }
    }
}

/// Refuses a first line that is clearly of another kind of file than JSON Lines, as `Kind::expect` does.
///
/// ```
/// assert!(conformax_io::expect_json_lines(b"{\"id\": 7, \"label\": 2}").is_ok());
/// let message = conformax_io::expect_json_lines(b"cat,dog,label\n").unwrap_err().to_string();
/// assert_eq!(message, "is data (CSV), not JSON Lines");
/// ```
pub fn expect_json_lines(line: &[u8]) -> std::result::Result<(), Problem> {
    let is_other = Kind::of_bytes(line).is_some() || Format::of_bytes(line) != Some(Format::JsonLines);
    match described(line) {
        Some(found) if is_other => Err(Problem::OtherKind { found, wanted: "JSON Lines" }),
        _ => Ok(()),
    }
}

/// What bytes are clearly the beginning of.
fn described(bytes: &[u8]) -> Option<String> {
    if let Some(kind) = Kind::of_bytes(bytes) {
        return Some(kind.name().to_owned());
    }
    match Format::of_bytes(bytes)? {
        Format::JsonLines if !is_row(bytes) => None,
        Format::Csv if !is_table(bytes) => None,
        format => Some(format!("data ({format})")),
    }
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// Whether JSON begins with a row of data; other JSON may be a file of ours with something missing.
fn is_row(bytes: &[u8]) -> bool {
    serde_json::from_slice(first_line(bytes)).is_ok_and(|row: serde_json::Value| row.get("logits").is_some())
}

/// Whether text begins with the names of columns.
fn is_table(bytes: &[u8]) -> bool {
    first_line(bytes).iter().any(|byte| b",;\t".contains(byte))
}

/// All bytes of a file; `-` is standard input.
pub(crate) fn read_whole(path: &Path) -> Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path).in_file(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).in_file(path)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_another_is_called_what_it_is() {
        let said = |kind: Kind, bytes: &[u8]| kind.expect(bytes).map_err(|problem| problem.to_string());
        let (model, part) =
            (b"{\n  \"format\": \"conformax-calibration\",", b"{\"format\":\"conformax-part\",");
        assert_eq!(said(Kind::Model, model), Ok(()));
        assert_eq!(said(Kind::Part, part), Ok(()));
        assert_eq!(
            said(Kind::Part, model).unwrap_err(),
            "is a calibration file, not a part that `merge` puts together"
        );
        assert_eq!(
            said(Kind::Model, part).unwrap_err(),
            "is a part that `merge` puts together, not a calibration file"
        );
        assert_eq!(said(Kind::Model, b"PK\x03\x04").unwrap_err(), "is data (npz), not a calibration file");
        assert_eq!(
            said(Kind::Model, b"cat,dog\n1,2\n").unwrap_err(),
            "is data (CSV), not a calibration file"
        );
        let rows = b"{\"logits\": [1, 2]}\n{\"logits\": [2, 1]}\n";
        assert_eq!(said(Kind::Model, rows).unwrap_err(), "is data (JSON Lines), not a calibration file");
        assert_eq!(said(Kind::Model, b"{\"a\": 1}"), Ok(()));
        assert_eq!(said(Kind::Model, b"no file of ours\n"), Ok(()));
    }

    #[test]
    fn a_pipe_is_waited_for_only_while_it_may_hold_a_file_of_ours() {
        for start in ["", "{\n", "{\n  \"format\": \"conf", "{\"format\":\"conformax-p"] {
            assert!(Kind::may_begin(start.as_bytes()), "{start}");
        }
        for start in ["{\"l", "{\"format\":1", "cat,dog\n", "{\"format\":\"conformax-x"] {
            assert!(!Kind::may_begin(start.as_bytes()), "{start}");
        }
    }
}
