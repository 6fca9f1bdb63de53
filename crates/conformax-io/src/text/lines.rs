//! Lines of a text as they come.

use std::io;

use super::LONGEST_ROW;
use crate::Problem;
use crate::data::utf8::without_mark;
use crate::reading::stream::{Next, Patience, Stream};

pub(crate) struct Lines {
    stream: Box<dyn Stream>,
    line: Vec<u8>,
    /// Whether the line ends here; one that does not goes on with what comes next.
    whole: bool,
    first: bool,
}

impl Lines {
    pub(crate) fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, line: Vec::new(), whole: true, first: true }
    }

    /// Goes to the next line.
    pub(crate) fn next(&mut self, patience: Patience) -> Result<Next, Problem> {
        if self.whole {
            self.line.clear();
            self.whole = false;
        }
        loop {
            if patience == Patience::Now && self.stream.would_wait() {
                return Ok(Next::NotYet);
            }
            let bytes = match self.stream.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if bytes.is_empty() {
                self.whole = true;
                return Ok(if self.line.is_empty() { Next::End } else { Next::Row });
            }
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            self.line.extend_from_slice(&bytes[..taken]);
            self.stream.consume(taken);
            if self.line.len() > LONGEST_ROW {
                return Err(Problem::RowTooLong(LONGEST_ROW));
            }
            if end.is_some() {
                self.whole = true;
                return Ok(Next::Row);
            }
        }
    }

    /// The line, without the byte-order mark that the first may begin with.
    pub(crate) fn line(&mut self) -> Result<&[u8], Problem> {
        match std::mem::replace(&mut self.first, false) {
            true => without_mark(&self.line),
            false => Ok(&self.line),
        }
    }
}
