//! Fingerprints: a 64-bit name for a row's values, so that files can tell whether they share rows.
//!
//! The hash `conformax-row-1` is fixed for ever, since calibration files carry its results. A row of K logits is a list
//! of `f64` bit patterns, −0 counted as +0, filled up with +0 to a multiple of eight. With `mix(a, b)` the two halves of
//! the 128-bit product of a and b, xor-ed, and `C₀…C₇` the first 64 fractional bits of √2, √3, √5, √7, √11, √13, √17, √19:
//! four lanes start at `C₀…C₃`; for every eight values `v₀…v₇`, lane `i` becomes `mix(laneᵢ ^ v₂ᵢ, v₂ᵢ₊₁ ^ Cᵢ₊₄)`; and
//! the hash starts at K and becomes `mix(hash ^ laneᵢ, Cᵢ)` for each lane in turn. Types play no part, so the same
//! values have the same fingerprint from any format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::{Block, Values};

const C: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// Name of the row hash, as calibration files spell it.
pub const ROW_HASH: &str = "conformax-row-1";

/// The fingerprints of a block's rows, in order, into `out` (cleared first).
pub fn row_fingerprints(block: &Block, out: &mut Vec<u64>) {
    out.clear();
    let classes = block.classes;
    match &block.logits {
        Values::F32(v) => out.extend(v.chunks_exact(classes).map(hash_row)),
        Values::F64(v) => out.extend(v.chunks_exact(classes).map(hash_row)),
        halves @ (Values::F16(_) | Values::Bf16(_)) => {
            // Widening whole rows lets the conversion use the processor's own instruction where it has one.
            let mut row = vec![0.0; classes];
            out.extend((0..block.rows()).map(|index| {
                halves.widen(index * classes, &mut row);
                hash_row(&row)
            }));
        }
    }
}

fn hash_row<T: Copy + Into<f64>>(row: &[T]) -> u64 {
    let mut lanes = [C[0], C[1], C[2], C[3]];
    let (chunks, rest) = row.as_chunks::<8>();
    for chunk in chunks {
        absorb(&mut lanes, chunk.map(bits));
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, &from)| *to = bits(from));
        absorb(&mut lanes, last);
    }
    (0..4).fold(row.len() as u64, |hash, lane| mix(hash ^ lanes[lane], C[lane]))
}

/// Adding +0 turns −0 into +0 and nothing else into anything else.
#[inline]
fn bits<T: Into<f64>>(value: T) -> u64 {
    (value.into() + 0.0).to_bits()
}

#[inline]
fn absorb(lanes: &mut [u64; 4], values: [u64; 8]) {
    for lane in 0..4 {
        lanes[lane] = mix(lanes[lane] ^ values[2 * lane], values[2 * lane + 1] ^ C[lane + 4]);
    }
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The fingerprint of a whole data set: its rows' fingerprints, in order.
///
/// It starts at 0, becomes `mix(state ^ row, C₀)` for each row, and ends as `mix(state ^ rows, C₁)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataFingerprint {
    state: u64,
    rows: u64,
}

impl DataFingerprint {
    /// Takes the next rows' fingerprints.
    pub fn extend(&mut self, rows: &[u64]) {
        self.state = rows.iter().fold(self.state, |state, &row| mix(state ^ row, C[0]));
        self.rows += rows.len() as u64;
    }

    /// The fingerprint of the rows taken so far.
    pub fn value(&self) -> u64 {
        mix(self.state ^ self.rows, C[1])
    }
}

impl std::fmt::Display for DataFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

/// A set of row fingerprints: which rows calibrated or tuned a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowSet(Vec<u64>);

impl RowSet {
    /// Makes a set; order and repetitions do not matter.
    pub fn new(mut rows: Vec<u64>) -> Self {
        rows.sort_unstable();
        rows.dedup();
        Self(rows)
    }

    /// Whether a row is in the set.
    pub fn contains(&self, row: u64) -> bool {
        self.0.binary_search(&row).is_ok()
    }

    /// How many different rows there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Base64 of the ascending fingerprints as little-endian 64-bit numbers.
    pub fn to_base64(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().flat_map(|row| row.to_le_bytes()).collect();
        STANDARD.encode(bytes)
    }

    /// Reads what [`Self::to_base64`] wrote; `None` where it is damaged or out of order.
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let (rows, rest) = bytes.as_chunks::<8>();
        let rows: Vec<u64> = rows.iter().map(|row| u64::from_le_bytes(*row)).collect();
        (rest.is_empty() && rows.is_sorted_by(|a, b| a < b)).then_some(Self(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    fn block(logits: Values, classes: usize) -> Block {
        Block { classes, logits, ..Block::default() }
    }

    fn hashes(logits: Values, classes: usize) -> Vec<u64> {
        let mut out = Vec::new();
        row_fingerprints(&block(logits, classes), &mut out);
        out
    }

    /// Fixed for ever: calibration files in the world carry these numbers.
    #[test]
    fn bits_never_change() {
        assert_eq!(hashes(Values::F64(vec![1.0, 2.0, 3.0]), 3), [FIXED[0]]);
        let long: Vec<f64> = (0..20).map(|value| f64::from(value) / 4.0 - 2.0).collect();
        assert_eq!(hashes(Values::F64(long.clone()), 10), [FIXED[1], FIXED[2]]);
        let mut data = DataFingerprint::default();
        data.extend(&hashes(Values::F64(long), 10));
        assert_eq!(data.value(), FIXED[3]);
    }

    /// From the definition in the module's documentation, followed by hand in Python.
    const FIXED: [u64; 4] =
        [0x17d0_cfcf_b41a_4dfb, 0xd5cd_e2d3_1e67_b2df, 0xfce6_1cc3_70c3_ef41, 0xdd70_1ced_2413_d222];

    #[test]
    fn depends_on_values_and_not_on_types() {
        let wide: Vec<f64> = (0..90).map(|value| f64::from(value) / 8.0 - 3.0).collect();
        let single = wide.iter().map(|&value| value as f32).collect();
        let half = wide.iter().map(|&value| f16::from_f64(value)).collect();
        let expected = hashes(Values::F64(wide), 9);
        assert_eq!(hashes(Values::F32(single), 9), expected);
        assert_eq!(hashes(Values::F16(half), 9), expected);
    }

    #[test]
    fn minus_zero_is_zero_and_minus_infinity_is_not() {
        let zero = hashes(Values::F32(vec![0.0, 1.0]), 2);
        assert_eq!(hashes(Values::F32(vec![-0.0, 1.0]), 2), zero);
        assert_ne!(hashes(Values::F32(vec![f32::NEG_INFINITY, 1.0]), 2), zero);
    }

    #[test]
    fn small_changes_and_lengths_matter() {
        let rows: Vec<Vec<f64>> = vec![vec![0.0], vec![0.0; 2], vec![0.0; 8], vec![1.0, 0.0], vec![0.0, 1.0]];
        let mut all: Vec<u64> = rows
            .into_iter()
            .flat_map(|row| {
                let k = row.len();
                hashes(Values::F64(row), k)
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn a_row_set_survives_its_text() {
        let set = RowSet::new(vec![7, u64::MAX, 7, 0]);
        assert_eq!(set.len(), 3);
        assert!(set.contains(7) && !set.contains(8));
        assert_eq!(RowSet::from_base64(&set.to_base64()), Some(set));
        assert_eq!(RowSet::from_base64("AAAA"), None);
        let unsorted = STANDARD.encode([2u64.to_le_bytes(), 1u64.to_le_bytes()].concat());
        assert_eq!(RowSet::from_base64(&unsorted), None);
    }
}
