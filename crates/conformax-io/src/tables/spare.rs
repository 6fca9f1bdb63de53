//! `Spare`: memory that pages are read into, again and again: fresh memory costs as much as what is read into it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::error::Result;

/// Buffers that nobody uses; at most [`KEPT`] of them, so that a file of many columns does not keep one for each.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

const KEPT: usize = 2;

impl Spare {
    /// Bytes of this length, filled by `fill`.
    pub(crate) fn filled(&self, len: usize, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Bytes> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        bytes.resize(len, 0);
        fill(&mut bytes)?;
        Ok(Bytes::from_owner(Lent { bytes, to: self.clone() }))
    }
}

/// A buffer that goes back when it is dropped.
struct Lent {
    bytes: Vec<u8>,
    to: Spare,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut spare = self.to.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < KEPT {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_again_with_other_bytes() {
        let spare = Spare::default();
        let fill = |with: u8| {
            move |bytes: &mut [u8]| -> Result<()> {
                bytes.fill(with);
                Ok(())
            }
        };
        let first = spare.filled(5, fill(1)).unwrap();
        let place = first.as_ptr();
        let part = first.slice(1..3);
        drop(first);
        assert_ne!(spare.filled(3, fill(2)).unwrap().as_ptr(), place, "a part of it is still in use");
        assert_eq!(part[..], [1, 1]);
        drop(part);
        let again = spare.filled(4, fill(3)).unwrap();
        assert_eq!((again.as_ptr(), &again[..]), (place, &[3; 4][..]));
    }
}
