//! Integers on their way to being logits: each becomes the `f64` nearest to it, as it does in text formats.

use std::io::{self, Read};

use crate::arrays::decode::{signed, unsigned};
use crate::data::values::ByteOrder;

/// Integers are widened in pieces of this many.
const PIECE: usize = 1 << 12;

/// A stream of integers that reads as one of `f64` in the machine's own order.
pub(crate) struct Widened {
    pub(crate) inner: Box<dyn Read + Send>,
    pub(crate) size: usize,
    pub(crate) signed: bool,
    pub(crate) order: ByteOrder,
    /// Floats that wait to be taken, and how many of their bytes were.
    pub(crate) floats: Vec<u8>,
    pub(crate) taken: usize,
}

impl Widened {
    fn refill(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; PIECE * self.size];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.inner.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.floats.clear();
        self.taken = 0;
        for integer in bytes[..filled].chunks_exact(self.size) {
            let float = match self.signed {
                true => signed(integer, self.order) as f64,
                false => unsigned(integer, self.order) as f64,
            };
            self.floats.extend(float.to_ne_bytes());
        }
        Ok(())
    }
}

impl Read for Widened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.floats.len() {
            self.refill()?;
        }
        let read = (&self.floats[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}
