//! A stream that refuses lines too long to be rows, so that a file without line ends cannot fill the memory.

use std::io::{self, BufRead, Read};

/// A row of 250,000 classes in full decimal takes 6 MB.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

pub(crate) struct LineLimit<R> {
    inner: R,
    /// Bytes since the last line end.
    line: usize,
}

impl<R> LineLimit<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, line: 0 }
    }
}

impl<R: BufRead> Read for LineLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match buffer[..read].iter().rposition(|&byte| byte == b'\n') {
            Some(end) => self.line = read - end - 1,
            None => self.line += read,
        }
        if self.line > LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a line is longer than {LONGEST_LINE} bytes"),
            ));
        }
        Ok(read)
    }
}
