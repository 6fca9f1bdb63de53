//! `Stream`: bytes that pass by once, from a file or from somebody who is still writing.
//!
//! A pipe is emptied by a thread of its own, so that a reader can tell whether there is more now or whether it would
//! have to wait: rows that have come are then given out instead of being held back for a full block.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use crate::reading::positioned::Section;

/// Bytes in order, and whether more of them are there.
pub(crate) trait Stream: BufRead + Send {
    /// Whether the next byte is yet to be written by somebody else.
    fn would_wait(&mut self) -> bool;
}

impl Stream for BufReader<Section> {
    fn would_wait(&mut self) -> bool {
        false
    }
}

/// Whether a reader waits for bytes that are not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It waits.
    Wait,
    /// It makes do with what is there.
    Now,
}

impl Patience {
    /// A block waits for its first row, and takes what more there is.
    pub(crate) fn after(rows: usize) -> Self {
        if rows == 0 { Self::Wait } else { Self::Now }
    }
}

/// What asking for a row comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// There is one.
    Row,
    /// There may be one later.
    NotYet,
    /// There is none.
    End,
}

/// Pipes hold no more than this at a time, unless somebody asked for larger ones.
const CHUNK: usize = 1 << 16;
/// Chunks read ahead.
const AHEAD: usize = 4;

/// A pipe that is being emptied.
pub(crate) struct Pipe {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    failed: Option<io::Error>,
    ended: bool,
}

impl Pipe {
    pub(crate) fn new(from: Box<dyn Read + Send>) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(AHEAD);
        thread::Builder::new().name("pipe".to_owned()).spawn(move || {
            // Nobody listens any more once the source is dropped.
            read_chunks(from, |chunk| sender.send(chunk).is_ok());
        })?;
        Ok(Self { chunks, chunk: Vec::new(), at: 0, failed: None, ended: false })
    }

    /// Waits until so many bytes are buffered, or all there are.
    pub(crate) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        while self.chunk.len() - self.at < len && !self.ended {
            match self.chunks.recv() {
                Ok(Ok(more)) => self.chunk.extend(more),
                Ok(Err(error)) => return Err(error),
                Err(_) => self.ended = true,
            }
        }
        Ok(&self.chunk[self.at..])
    }
}

fn read_chunks(mut from: Box<dyn Read + Send>, mut send: impl FnMut(io::Result<Vec<u8>>) -> bool) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = from.read(&mut chunk);
        let more = match read {
            Ok(0) => return,
            Ok(len) => {
                chunk.truncate(len);
                send(Ok(chunk))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => {
                send(Err(error));
                false
            }
        };
        if !more {
            return;
        }
    }
}

impl Stream for Pipe {
    fn would_wait(&mut self) -> bool {
        if self.at < self.chunk.len() || self.ended || self.failed.is_some() {
            return false;
        }
        match self.chunks.try_recv() {
            Ok(Ok(chunk)) => (self.chunk, self.at) = (chunk, 0),
            Ok(Err(error)) => self.failed = Some(error),
            Err(TryRecvError::Disconnected) => self.ended = true,
            Err(TryRecvError::Empty) => return true,
        }
        false
    }
}

impl BufRead for Pipe {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(error) = self.failed.take() {
            self.ended = true;
            return Err(error);
        }
        if self.at == self.chunk.len() && !self.ended {
            match self.chunks.recv() {
                Ok(chunk) => (self.chunk, self.at) = (chunk?, 0),
                Err(_) => self.ended = true,
            }
        }
        Ok(&self.chunk[self.at..])
    }

    fn consume(&mut self, len: usize) {
        self.at = self.chunk.len().min(self.at + len);
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_is_there_from_what_is_yet_to_come() {
        use std::io::Write;
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = Pipe::new(Box::new(reader)).unwrap();
        assert!(pipe.would_wait());
        writer.write_all(b"abc").unwrap();
        assert_eq!(pipe.fill_buf().unwrap(), b"abc");
        pipe.consume(2);
        assert!(!pipe.would_wait());
        pipe.consume(1);
        assert!(pipe.would_wait());
        drop(writer);
        assert_eq!(pipe.fill_buf().unwrap(), b"");
        assert!(!pipe.would_wait());
    }

    #[test]
    fn peeking_waits_for_enough() {
        use std::io::Write;
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = Pipe::new(Box::new(reader)).unwrap();
        writer.write_all(b"ab").unwrap();
        assert_eq!(pipe.peek(1).unwrap(), b"ab");
        writer.write_all(b"cd").unwrap();
        assert_eq!(pipe.peek(4).unwrap(), b"abcd");
        drop(writer);
        assert_eq!(pipe.peek(9).unwrap(), b"abcd");
        let mut all = String::new();
        pipe.read_to_string(&mut all).unwrap();
        assert_eq!(all, "abcd");
    }
}
