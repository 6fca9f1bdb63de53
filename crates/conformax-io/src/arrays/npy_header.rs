//! The header of a `.npy`: `{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }`, read and written.

use std::io::Read;
use std::path::Path;

use crate::Dtype;
use crate::arrays::array::Element;
use crate::data::values::ByteOrder;
use crate::error::{Error, InFile, Problem, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy itself refuses longer headers; those of plain arrays have about a hundred bytes.
const LONGEST: usize = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    /// The type as NumPy spells it.
    pub(crate) descr: String,
    /// `None` for types that are neither numbers nor text.
    pub(crate) element: Option<Element>,
    pub(crate) bytes: ByteOrder,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
    /// Bytes before the first value.
    pub(crate) len: u64,
}

impl Header {
    /// Reads a header; the stream is left at the first value.
    pub(crate) fn read(stream: &mut dyn Read, path: &Path) -> Result<Self> {
        let damaged =
            |what: &str| Error::new(path, Problem::Damaged { format: "an npy file", what: what.to_owned() });
        let mut start = [0; 8];
        fill(stream, &mut start, path)?;
        if start[..6] != *MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        let mut length = [0; 4];
        let width = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(damaged(&format!("format version {version} is unknown"))),
        };
        fill(stream, &mut length[..width], path)?;
        let text_len = u32::from_le_bytes(length) as usize;
        if text_len > LONGEST {
            return Err(damaged(&format!("its header has {text_len} bytes, {LONGEST} at most are allowed")));
        }
        let mut text = vec![0; text_len];
        fill(stream, &mut text, path)?;
        let text = String::from_utf8(text).map_err(|_| damaged("its header is not text"))?;
        let mut header =
            parse(&text).ok_or_else(|| damaged(&format!("its header reads {}", text.trim_end())))?;
        header.len = (8 + width + text_len) as u64;
        Ok(header)
    }

    /// Checks that the values fill exactly `found` bytes, before anything is allocated for them.
    pub(crate) fn check_len(&self, found: u64, path: &Path) -> Result<()> {
        let Some(element) = self.element else { return Ok(()) };
        let wanted = self.shape.iter().try_fold(element.size() as u64, |len, &side| len.checked_mul(side));
        match wanted {
            Some(wanted) if wanted == found => Ok(()),
            Some(wanted) if wanted < found => {
                let what = format!("{} bytes follow the last value", found - wanted);
                Err(Error::new(path, Problem::Damaged { format: "an npy file", what }))
            }
            wanted => Err(Error::new(path, Problem::Truncated { wanted: wanted.unwrap_or(u64::MAX), found })),
        }
    }

    /// The shape as Python writes it.
    pub(crate) fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }
}

fn fill(stream: &mut dyn Read, buffer: &mut [u8], path: &Path) -> Result<()> {
    stream
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Problem::Damaged { format: "an npy file", what: "it ends within its header".to_owned() }
            }
            _ => Problem::Io(error),
        })
        .in_file(path)
}

fn parse(text: &str) -> Option<Header> {
    let mut rest = text.trim().strip_prefix('{')?.trim_end().strip_suffix('}')?;
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    while !rest.trim_start().is_empty() {
        let (key, after) = quoted(rest)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        rest = match key {
            "descr" => take(quoted_or_list(value)?, &mut descr),
            "fortran_order" => take(boolean(value)?, &mut fortran),
            "shape" => take(tuple(value)?, &mut shape),
            _ => return None,
        };
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    let descr: String = descr?;
    let (element, bytes) = element(&descr);
    Some(Header { descr, element, bytes, fortran: fortran?, shape: shape?, len: 0 })
}

fn take<'a, T>((value, rest): (T, &'a str), slot: &mut Option<T>) -> &'a str {
    *slot = Some(value);
    rest
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|quote| ['\'', '"'].contains(quote))?;
    text[1..].split_once(quote)
}

/// A plain type is a string; a record type is a list, kept as text for the message that refuses it.
fn quoted_or_list(text: &str) -> Option<(String, &str)> {
    if !text.starts_with('[') {
        return quoted(text).map(|(value, rest)| (value.to_owned(), rest));
    }
    let end = text.find(']')? + 1;
    Some((text[..end].to_owned(), &text[end..]))
}

fn boolean(text: &str) -> Option<(bool, &str)> {
    let yes = text.strip_prefix("True").map(|rest| (true, rest));
    yes.or_else(|| text.strip_prefix("False").map(|rest| (false, rest)))
}

fn tuple(text: &str) -> Option<(Vec<u64>, &str)> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(')')?;
    let sides = inside.split(',').map(str::trim).filter(|side| !side.is_empty());
    // Python 2 wrote long integers with an `L`.
    let sides: Option<Vec<u64>> = sides.map(|side| side.trim_end_matches('L').parse().ok()).collect();
    Some((sides?, rest))
}

/// `<f4` and its like. `V2`, two bytes of anything, is how bfloat16 arrives from Python.
fn element(descr: &str) -> (Option<Element>, ByteOrder) {
    let bytes = match descr.as_bytes().first() {
        Some(b'>') => ByteOrder::Big,
        Some(b'=') => ByteOrder::NATIVE,
        _ => ByteOrder::Little,
    };
    let name = descr.trim_start_matches(['<', '>', '|', '=']);
    let plain = match name {
        "?" | "b1" => Some(Element::Bool),
        "f2" => Some(Element::Float(Dtype::F16)),
        "V2" | "bfloat16" => Some(Element::Float(Dtype::Bf16)),
        "f4" => Some(Element::Float(Dtype::F32)),
        "f8" => Some(Element::Float(Dtype::F64)),
        _ => None,
    };
    (plain.or_else(|| sized_element(name)), bytes)
}

fn sized_element(name: &str) -> Option<Element> {
    let kind = name.chars().next()?;
    let size: usize = name.get(1..)?.parse().ok()?;
    match (kind, size) {
        // Text of no width would make rows without bytes, as many as a header cares to claim.
        (_, 0) => None,
        ('i', 1 | 2 | 4 | 8) => Some(Element::Int { size, signed: true }),
        ('u', 1 | 2 | 4 | 8) => Some(Element::Int { size, signed: false }),
        ('U', _) => Some(Element::Unicode(size)),
        ('S', _) => Some(Element::Bytes(size)),
        _ => None,
    }
}

fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The bytes that precede row-major values of a type and shape; their number is a multiple of 64.
pub(crate) fn header_bytes(descr: &str, shape: &[u64]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {}, }}", shape_text(shape));
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = [MAGIC.as_slice(), &[1, 0], &(padded as u16).to_le_bytes()].concat();
    bytes.extend(text.as_bytes());
    bytes.resize(10 + padded - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        Header::read(&mut bytes.as_slice(), Path::new("z.npy"))
    }

    #[test]
    fn reads_what_it_writes() {
        let bytes = header_bytes("<f4", &[5, 3]);
        assert_eq!(bytes.len() % 64, 0);
        let header = Header::read(&mut bytes.as_slice(), Path::new("z.npy")).unwrap();
        assert_eq!(
            (header.shape.as_slice(), header.fortran, header.len),
            (&[5, 3][..], false, bytes.len() as u64)
        );
        assert_eq!(header.element, Some(Element::Float(Dtype::F32)));
    }

    #[test]
    fn keys_come_in_any_order_and_quotes_of_both_kinds() {
        let header = read("{\"shape\": (7L,), 'fortran_order':True,'descr':'>i2'}\n").unwrap();
        assert_eq!((header.shape, header.fortran, header.bytes), (vec![7], true, ByteOrder::Big));
    }

    #[test]
    fn nonsense_is_an_error_and_never_a_panic() {
        let nonsense = [
            "",
            "{",
            "{}",
            "{'descr'}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (-1,)}",
            "{'é': 1}",
            "{'shape': (1,",
            "{'descr': [(((",
            "{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999999999999,)}",
        ];
        for text in nonsense {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shape_that_overflows_is_refused_without_allocating() {
        let header =
            read("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}").unwrap();
        let error = header.check_len(100, Path::new("z.npy")).unwrap_err();
        assert!(matches!(error.problem(), Problem::Truncated { wanted: u64::MAX, found: 100 }));
    }

    #[test]
    fn types_that_are_no_numbers_have_no_element() {
        for descr in ["|O", "<c8", "<M8[ns]", "<f16", "<i3", "<U0", ""] {
            assert_eq!(element(descr).0, None, "{descr}");
        }
    }
}
