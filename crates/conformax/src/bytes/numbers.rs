//! Numbers, texts, lists and choices in bytes.

use crate::{Error, Result};

/// Bytes that grow.
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    pub fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    pub fn list<V>(&mut self, values: &[V], each: impl Fn(&mut Self, &V)) {
        self.u64(values.len() as u64);
        values.iter().for_each(|value| each(self, value));
    }

    /// As [`list`](Self::list) of them, in one go.
    pub fn f64s(&mut self, values: &[f64]) {
        self.u64(values.len() as u64);
        let start = self.0.len();
        self.0.resize(start + 8 * values.len(), 0);
        for (place, value) in self.0[start..].as_chunks_mut::<8>().0.iter_mut().zip(values) {
            *place = value.to_le_bytes();
        }
    }

    pub fn option<V>(&mut self, value: Option<V>, each: impl FnOnce(&mut Self, V)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            each(self, value);
        }
    }

    pub fn scores(&mut self, scores: &[f64]) {
        let mut sorted = scores.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        self.f64s(&sorted);
    }
}

/// Bytes that are left to read, and what they should hold, for messages.
pub(super) struct Reader<'a> {
    pub bytes: &'a [u8],
    pub wanted: &'static str,
}

impl<'a> Reader<'a> {
    pub fn fault(&self, what: &'static str) -> Error {
        Error::Bytes { wanted: self.wanted, what }
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(self.fault("they end too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.fault("they end too early"))
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn usize(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(|_| self.fault("a number is too large"))
    }

    pub fn f64(&mut self) -> Result<f64> {
        self.u64().map(f64::from_bits)
    }

    pub fn text(&mut self) -> Result<&'a str> {
        let len = self.usize()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| self.fault("a name is no text"))
    }

    /// A list whose entries take at least a byte each, so that no length can ask for more memory than there are bytes.
    pub fn list<V>(&mut self, mut each: impl FnMut(&mut Self) -> Result<V>) -> Result<Vec<V>> {
        let len = self.usize()?;
        if len > self.bytes.len() {
            return Err(self.fault("a list is longer than they are"));
        }
        (0..len).map(|_| each(self)).collect()
    }

    pub fn option<V>(&mut self, each: impl FnOnce(&mut Self) -> Result<V>) -> Result<Option<V>> {
        match self.u8()? {
            0 => Ok(None),
            1 => each(self).map(Some),
            _ => Err(self.fault("a mark is neither yes nor no")),
        }
    }

    pub fn choice<V>(&mut self, of: &[V]) -> Result<V>
    where
        V: Copy,
    {
        let index = usize::from(self.u8()?);
        of.get(index).copied().ok_or(self.fault("a choice is not one of those there are"))
    }

    pub fn scores(&mut self) -> Result<Vec<f64>> {
        let scores = self.list(Self::f64)?;
        match scores.iter().any(|score| score.is_nan()) {
            true => Err(self.fault("a score is not a number")),
            false => Ok(scores),
        }
    }
}
