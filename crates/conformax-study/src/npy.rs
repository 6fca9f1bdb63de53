//! Minimal .npy reading.
use half::f16;

pub(crate) enum Array { F32(Vec<f32>), F64(Vec<f64>) }

pub(crate) struct Npy<'a> { pub descr: String, pub shape: Vec<usize>, pub data: &'a [u8] }

pub(crate) fn parse(bytes: &[u8]) -> Option<Npy<'_>> {
    let len = u16::from_le_bytes([*bytes.get(8)?, *bytes.get(9)?]) as usize;
    let header = std::str::from_utf8(bytes.get(10..10 + len)?).ok()?;
    let descr = header.split("'descr': '").nth(1)?.split('\'').next()?.to_owned();
    let shape = header.split("'shape': (").nth(1)?.split(')').next()?;
    let shape = shape.split(',').filter_map(|s| s.trim().parse().ok()).collect();
    Some(Npy { descr, shape, data: bytes.get(10 + len..)? })
}

pub(crate) fn logits(npy: &Npy<'_>) -> Option<(Array, &'static str)> {
    Some(match npy.descr.as_str() {
        "<f2" => (Array::F32(npy.data.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()), "f16"),
        "<f4" => (Array::F32(npy.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()), "f32"),
        "<f8" => (Array::F64(npy.data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight"))).collect()), "f64"),
        _ => return None,
    })
}

pub(crate) fn labels(npy: &Npy<'_>) -> Option<Vec<u32>> {
    (npy.descr == "<u2").then(|| npy.data.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))).collect())
}
