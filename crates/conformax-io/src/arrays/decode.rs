//! Bytes of a vector turned into cells.

use half::{bf16, f16};

use crate::arrays::array::Element;
use crate::data::values::ByteOrder;
use crate::{CellType, Cells, Dtype};

/// The type of cell an element becomes.
pub(crate) fn cell_type(element: Element) -> CellType {
    match element {
        Element::Bool => CellType::Bool,
        Element::Int { signed: true, .. } => CellType::Int,
        Element::Int { signed: false, .. } => CellType::UInt,
        Element::Float(_) => CellType::Float,
        Element::Unicode(_) | Element::Bytes(_) => CellType::Text,
    }
}

pub(crate) fn empty(element: Element) -> Cells {
    Cells::new(cell_type(element))
}

/// Appends `count` elements; the error is the number of the first that is not text.
pub(crate) fn extend(
    cells: &mut Cells,
    bytes: &[u8],
    count: usize,
    element: Element,
    order: ByteOrder,
) -> Result<(), usize> {
    let size = element.size();
    for index in 0..count {
        let bytes = &bytes[index * size..][..size];
        match (&mut *cells, element) {
            (Cells::Bool(v), _) => v.push(Some(bytes != [0])),
            (Cells::Int(v), _) => v.push(Some(signed(bytes, order))),
            (Cells::UInt(v), _) => v.push(Some(unsigned(bytes, order))),
            (Cells::Float(v), Element::Float(dtype)) => v.push(Some(float(bytes, dtype, order))),
            (Cells::Text(v), Element::Unicode(_)) => v.push(Some(utf32(bytes, order).ok_or(index)?)),
            (Cells::Text(v), _) => v.push(Some(utf8(bytes).ok_or(index)?)),
            (Cells::Float(_), _) => unreachable!("cells were made for this element"),
        }
    }
    Ok(())
}

pub(crate) fn unsigned(bytes: &[u8], order: ByteOrder) -> u64 {
    let join = |high: u64, &byte: &u8| high << 8 | u64::from(byte);
    match order {
        ByteOrder::Big => bytes.iter().fold(0, join),
        ByteOrder::Little => bytes.iter().rev().fold(0, join),
    }
}

pub(crate) fn signed(bytes: &[u8], order: ByteOrder) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes, order) << unused).cast_signed() >> unused
}

fn float(bytes: &[u8], dtype: Dtype, order: ByteOrder) -> f64 {
    let bits = unsigned(bytes, order);
    match dtype {
        Dtype::F16 => f16::from_bits(bits as u16).to_f64(),
        Dtype::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        Dtype::F32 => f32::from_bits(bits as u32).into(),
        Dtype::F64 => f64::from_bits(bits),
    }
}

fn utf32(bytes: &[u8], order: ByteOrder) -> Option<String> {
    let text: Option<String> =
        bytes.chunks_exact(4).map(|code| char::from_u32(unsigned(code, order) as u32)).collect();
    text.map(|text| text.trim_end_matches('\0').to_owned())
}

fn utf8(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_and_order() {
        assert_eq!(signed(&[0xfe], ByteOrder::Little), -2);
        assert_eq!(signed(&[0xff, 0xfe], ByteOrder::Big), -2);
        assert_eq!(signed(&[0xfe, 0xff, 0xff, 0xff], ByteOrder::Little), -2);
        assert_eq!(signed(&i64::MIN.to_be_bytes(), ByteOrder::Big), i64::MIN);
        assert_eq!(unsigned(&[1, 2], ByteOrder::Little), 0x201);
        assert_eq!(unsigned(&u64::MAX.to_le_bytes(), ByteOrder::Little), u64::MAX);
    }

    #[test]
    fn text_that_is_no_text_is_refused() {
        assert_eq!(utf8(b"dog\0\0").as_deref(), Some("dog"));
        assert_eq!(utf8(b"\xff"), None);
        assert_eq!(utf32(&0xd800_u32.to_le_bytes(), ByteOrder::Little), None);
        assert_eq!(utf32(&[0, 0, 0, b'a', 0, 0, 0, 0], ByteOrder::Big).as_deref(), Some("a"));
    }
}
