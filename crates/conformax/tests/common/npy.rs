//! The little of the `.npy` format that the fixtures use: version 1, little-endian, C order.

use std::path::Path;

/// Where the fixtures are, from any working directory.
pub fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/golden").join(name);
    path.to_str().unwrap().to_owned()
}

/// The bytes after the header of a file that must hold this type.
fn payload(name: &str, descr: &str) -> Vec<u8> {
    let bytes = std::fs::read(golden(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(bytes[..8], *b"\x93NUMPY\x01\x00", "{name}");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).unwrap();
    assert!(header.contains(&format!("'descr': '{descr}'")), "{name}: {header}");
    assert!(header.contains("'fortran_order': False"), "{name}: {header}");
    bytes[end..].to_vec()
}

/// The numbers of a file of `<f4`.
pub fn read_f32(name: &str) -> Vec<f32> {
    payload(name, "<f4").as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// The numbers of a file of `<f8`.
pub fn read_f64(name: &str) -> Vec<f64> {
    payload(name, "<f8").as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// The numbers of a file of `<i8`.
pub fn read_i64(name: &str) -> Vec<i64> {
    payload(name, "<i8").as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}
