//! A stream that refuses rows too long to be any, so that a file without line ends, or with a quote that is never closed, cannot
//! fill the memory.

use std::io::{self, Read};

/// A row of 250,000 classes in full decimal takes 6 MB.
pub(crate) const LONGEST_ROW: usize = 64 << 20;

pub(crate) struct RowLimit<R> {
    inner: R,
    /// Bytes since the last row was taken.
    since: usize,
}

impl<R> RowLimit<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, since: 0 }
    }

    /// Whoever reads has a whole row, and begins another.
    pub(crate) fn row_taken(&mut self) {
        self.since = 0;
    }
}

impl<R: Read> Read for RowLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.since += read;
        if self.since > LONGEST_ROW + buffer.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a row is longer than {LONGEST_ROW} bytes"),
            ));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_last_row() {
        let mut endless = RowLimit::new(io::repeat(b'1'));
        let mut buffer = vec![0; 1 << 20];
        for _ in 0..200 {
            assert_eq!(endless.read(&mut buffer).unwrap(), buffer.len());
            endless.row_taken();
        }
        let reads = (0..).map_while(|_| endless.read(&mut buffer).ok()).count();
        assert_eq!(reads, LONGEST_ROW / buffer.len() + 1);
        assert_eq!(endless.read(&mut buffer).unwrap_err().to_string(), "a row is longer than 67108864 bytes");
    }
}
