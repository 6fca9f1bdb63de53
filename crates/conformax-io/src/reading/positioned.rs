//! A file read at positions, and slices of it that read like streams.
//!
//! Files are read, not mapped: when one shrinks under a map the process gets a signal, when it shrinks under a read the
//! user gets a message. Reads carry their own position, so several arrays of one file can be streamed side by side.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, InFile, Problem, Result};

/// An open file of known length.
#[derive(Debug, Clone)]
pub(crate) struct PositionedFile {
    bytes: Bytes,
    path: Arc<Path>,
    len: u64,
}

/// Where the bytes are.
#[derive(Debug, Clone)]
enum Bytes {
    File(Arc<File>),
    Memory(Arc<Vec<u8>>),
}

impl Bytes {
    /// Some of the bytes from `offset` on; none at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => read_at(file, buffer, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[start..]).read(buffer)
            }
        }
    }
}

impl PositionedFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::from_file(File::open(path).in_file(path)?, path)
    }

    /// Takes over an open file; `path` is the name errors will use.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Self> {
        let len = file.metadata().in_file(path)?.len();
        Ok(Self { bytes: Bytes::File(Arc::new(file)), path: path.into(), len })
    }

    /// What is in memory already, as if it were a file of this name.
    pub(crate) fn in_memory(bytes: &Arc<Vec<u8>>, path: &Path) -> Self {
        Self { len: bytes.len() as u64, bytes: Bytes::Memory(Arc::clone(bytes)), path: path.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buffer` from `offset`; a file too short is an error that says by how much.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.read_piece(buffer, offset, offset + buffer.len() as u64)
    }

    /// The same for a piece of what goes on up to `wanted`.
    fn read_piece(&self, buffer: &mut [u8], offset: u64, wanted: u64) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.bytes.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => {
                    let found = offset + filled as u64;
                    return Err(Error::new(&*self.path, Problem::Truncated { wanted, found }));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new(&*self.path, error)),
            }
        }
        Ok(())
    }

    /// The same by several threads of the pool that the caller is in, a piece each; the error is that of the first
    /// piece that has one.
    pub(crate) fn read_side_by_side(&self, buffer: &mut [u8], offset: u64, threads: usize) -> Result<()> {
        let (share, wanted) = (buffer.len().div_ceil(threads.max(1)), offset + buffer.len() as u64);
        let share = share.max(LEAST_SHARE).next_multiple_of(PAGE);
        let pieces = (offset..).step_by(share).zip(buffer.chunks_mut(share));
        each_of(pieces.collect(), threads, |(offset, piece)| self.read_piece(piece, offset, wanted))
    }

    /// The bytes `start..start + len` as a stream; asking for bytes beyond the end is an error now, not later.
    pub(crate) fn section(&self, start: u64, len: u64) -> Result<Section> {
        match start.checked_add(len) {
            Some(end) if end <= self.len => Ok(Section { file: self.clone(), start, len, at: 0 }),
            end => {
                let wanted = end.unwrap_or(u64::MAX);
                Err(Error::new(&*self.path, Problem::Truncated { wanted, found: self.len }))
            }
        }
    }

    /// The whole file as a stream.
    pub(crate) fn whole(&self) -> Section {
        Section { file: self.clone(), start: 0, len: self.len, at: 0 }
    }
}

/// Bytes that are worth waking another thread for, and what the system keeps of files together.
const LEAST_SHARE: usize = 1 << 16;
const PAGE: usize = 4096;

/// Calls `work` with each item, several at a time where there are several threads; the error is that of the first item
/// that has one.
pub(crate) fn each_of<I: Send>(
    items: Vec<I>,
    threads: usize,
    work: impl Fn(I) -> Result<()> + Sync + Send,
) -> Result<()> {
    if threads <= 1 || items.len() <= 1 {
        return items.into_iter().try_for_each(work);
    }
    let outcomes: Vec<Result<()>> = items.into_par_iter().map(work).collect();
    outcomes.into_iter().collect()
}

/// A slice of a file, read from its beginning on.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    file: PositionedFile,
    start: u64,
    len: u64,
    at: u64,
}

impl Section {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buffer, self.start + offset)
    }

    pub(crate) fn read_side_by_side(&self, buffer: &mut [u8], offset: u64, threads: usize) -> Result<()> {
        self.file.read_side_by_side(buffer, self.start + offset, threads)
    }

    /// What is left after the first `bytes` of this slice.
    pub(crate) fn after(&self, bytes: u64) -> Result<Self> {
        let left = self
            .len
            .checked_sub(bytes)
            .ok_or_else(|| Error::new(self.path(), Problem::Truncated { wanted: bytes, found: self.len }))?;
        Ok(Self { file: self.file.clone(), start: self.start + bytes, len: left, at: 0 })
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.file.bytes.read_at(&mut buffer[..wanted], self.start + self.at)?;
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at
            .filter(|&at| at <= self.len)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek outside the file"))?;
        Ok(self.at)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_is_an_error_with_its_lengths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("z.bin");
        std::fs::write(&path, [7u8; 100]).unwrap();
        let file = PositionedFile::open(&path).unwrap();
        std::fs::write(&path, [7u8; 10]).unwrap();
        let error = file.read_exact_at(&mut [0; 50], 0).unwrap_err();
        assert!(matches!(error.problem(), Problem::Truncated { wanted: 50, found: 10 }), "{error}");
        let mut whole = Vec::new();
        let error = file.whole().read_to_end(&mut whole).unwrap_err();
        assert!(error.to_string().contains("shorter"));
    }

    #[test]
    fn pieces_read_side_by_side_are_those_of_one_read_and_so_is_the_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("z.bin");
        let bytes: Vec<u8> = (0..500_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = PositionedFile::open(&path).unwrap();
        for threads in [0, 1, 2, 3, 100] {
            let mut read = vec![0; 499_990];
            file.read_side_by_side(&mut read, 7, threads).unwrap();
            assert_eq!(read, bytes[7..499_997], "{threads} threads");
        }
        // The second and every later piece of several begins beyond the end.
        std::fs::write(&path, &bytes[..1000]).unwrap();
        for threads in [1, 2, 100] {
            let error = file.read_side_by_side(&mut vec![0; 499_990], 7, threads).unwrap_err();
            assert!(
                matches!(error.problem(), Problem::Truncated { wanted: 499_997, found: 1000 }),
                "{error}"
            );
        }
    }

    #[test]
    fn a_section_beyond_the_end_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("z.bin");
        std::fs::write(&path, [7u8; 100]).unwrap();
        let file = PositionedFile::open(&path).unwrap();
        assert!(file.section(90, 11).is_err());
        assert!(file.section(u64::MAX, 2).is_err());
        assert_eq!(file.section(90, 10).unwrap().len(), 10);
    }
}
