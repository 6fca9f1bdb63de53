//! The sizes in the header of a Parquet page, held against each other before memory is set aside for them.
//!
//! Needed by `parquet` 59.3.2: its `decode_page` sets memory aside for whatever size a page claims to inflate to, up to
//! 2 GB, before it inflates a byte. A header is a Thrift structure in the compact encoding: kind of page, size inflated
//! and size in the file come first, each as a tag byte and a variable-length integer. Once the crate lets the buffer
//! grow with what is inflated, this file can go.

use std::io::{self, BufRead, Read};

use crate::tables::thrift::impossible_list;

/// No packing that Parquet knows is tighter: zstd needs four bytes for a block of 128 kB.
pub(crate) const TIGHTEST: u64 = 1 << 15;

/// A stream that begins with the header of a page, if anybody reads it.
pub(crate) struct PageHeader<R> {
    inner: R,
    sizes: Sizes,
    begun: bool,
}

impl<R> PageHeader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, sizes: Sizes::default(), begun: false }
    }
}

impl<R: BufRead> Read for PageHeader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.begun, true) {
            // No header has lists, so what is buffered is enough to see one that is too long.
            if let Some(len) = impossible_list(self.inner.fill_buf()?) {
                return Err(refused(format!("a page's header has a list of {len} elements")));
            }
        }
        let read = self.inner.read(buffer)?;
        for &byte in &buffer[..read] {
            self.sizes.take(byte).map_err(refused)?;
        }
        Ok(read)
    }
}

fn refused(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Fields of a header as their bytes pass by.
#[derive(Default)]
struct Sizes {
    /// Kind, size inflated, size in the file.
    fields: [u64; 3],
    field: usize,
    /// Bits of the current field that came; `None` before its tag.
    bits: Option<u32>,
}

/// "The field after the last one, a 32-bit integer."
const NEXT_INTEGER: u8 = 0x15;

impl Sizes {
    fn take(&mut self, byte: u8) -> Result<(), String> {
        if self.field == self.fields.len() {
            return Ok(());
        }
        match &mut self.bits {
            None if byte == NEXT_INTEGER => self.bits = Some(0),
            None => return Err("a page has no header with its sizes".to_owned()),
            Some(28..) if byte > 0x0f => return Err("a page has a size beyond 32 bits".to_owned()),
            Some(bits) => {
                self.fields[self.field] |= u64::from(byte & 0x7f) << *bits;
                *bits += 7;
                if byte < 0x80 {
                    (self.field, self.bits) = (self.field + 1, None);
                }
            }
        }
        if self.field == self.fields.len() { self.check() } else { Ok(()) }
    }

    fn check(&self) -> Result<(), String> {
        // The lowest bit is the sign.
        let [_, inflated, stored] = self.fields.map(|field| field >> 1);
        match inflated > stored.saturating_mul(TIGHTEST) {
            true => Err(format!("a page of {stored} bytes claims to inflate to {inflated}")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        PageHeader::new(header).read_to_end(&mut all).map(|_| all)
    }

    #[test]
    fn plausible_sizes_pass_and_so_does_what_follows() {
        // A data page of 40 bytes that inflates to 300.
        let header = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 80, 0x2c, 0xff, 0xff];
        assert_eq!(read(&header).unwrap(), header);
        assert_eq!(read(&header[..4]).unwrap(), header[..4]);
    }

    #[test]
    fn a_claim_that_no_packing_could_meet_is_refused() {
        let error = read(&[0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 80]).unwrap_err();
        assert_eq!(error.to_string(), "a page of 40 bytes claims to inflate to 2147483647");
        assert!(read(&[0x15, 0, 0x15, 2, 0x15, 0]).is_err());
    }

    #[test]
    fn a_list_without_end_is_refused() {
        let error =
            read(&[0x15, 0, 0x15, 80, 0x15, 80, 0x69, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a page's header has a list of 2147483647 elements");
    }

    #[test]
    fn other_encodings_of_a_header_are_refused() {
        assert!(read(&[0x16, 0]).is_err());
        assert!(read(&[0x15, 0, 0x15, 0xff, 0xff, 0xff, 0xff, 0x10]).is_err());
    }
}
