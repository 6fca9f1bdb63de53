//! `Format`: the kinds of data file, told by name or by first bytes.

use std::fmt;
use std::path::Path;

/// A kind of data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// One NumPy array.
    Npy,
    /// A zip of NumPy arrays.
    Npz,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, the file or the stream form (Feather v2 is the file form).
    Arrow,
    /// Text separated by commas, semicolons or tabs.
    Csv,
    /// Tensors with a JSON header.
    Safetensors,
    /// One JSON object a line.
    JsonLines,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
            Self::Csv => "CSV",
            Self::Safetensors => "safetensors",
            Self::JsonLines => "JSON Lines",
        })
    }
}

impl Format {
    /// The format a file's name stands for.
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Self::Arrow,
            "csv" | "tsv" => Self::Csv,
            "safetensors" => Self::Safetensors,
            "jsonl" | "ndjson" => Self::JsonLines,
            _ => return None,
        })
    }

    /// The feature of this crate that reads and writes it.
    pub(crate) fn feature(self) -> &'static str {
        match self {
            Self::Npy | Self::Npz => "npy",
            Self::Parquet | Self::Arrow => "parquet",
            Self::Csv => "csv",
            Self::Safetensors => "safetensors",
            Self::JsonLines => "jsonl",
        }
    }

    /// The format a file's first bytes stand for; text that is not JSON is taken for CSV. An array of JSON is none:
    /// rows are objects.
    pub fn of_bytes(start: &[u8]) -> Option<Self> {
        let magics: [(&[u8], Self); 5] = [
            (b"\x93NUMPY", Self::Npy),
            (b"PK\x03\x04", Self::Npz),
            (b"PAR1", Self::Parquet),
            (b"ARROW1", Self::Arrow),
            (b"\xff\xff\xff\xff", Self::Arrow),
        ];
        if let Some((_, format)) = magics.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Some(*format);
        }
        // Eight bytes of length, then the JSON of the header.
        if start.get(8) == Some(&b'{') && start.get(6..8) == Some(&[0, 0]) {
            return Some(Self::Safetensors);
        }
        let text =
            start.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte))?;
        match *text {
            b'{' => Some(Self::JsonLines),
            0..=8 | 127 | b'[' => None,
            _ => Some(Self::Csv),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_formats_by_their_first_bytes() {
        assert_eq!(Format::of_bytes(b"\x93NUMPY\x01\x00"), Some(Format::Npy));
        assert_eq!(Format::of_bytes(b"\n {\"logits\": [1]}"), Some(Format::JsonLines));
        assert_eq!(Format::of_bytes(b"cat,dog,label\n"), Some(Format::Csv));
        assert_eq!(Format::of_bytes(b"\x40\0\0\0\0\0\0\0{\"logits\""), Some(Format::Safetensors));
        assert_eq!(Format::of_bytes(b"\n[{\"logits\": [1]}]"), None);
        assert_eq!(Format::of_bytes(b""), None);
        assert_eq!(Format::of_bytes(b"\0\0\0"), None);
    }
}
