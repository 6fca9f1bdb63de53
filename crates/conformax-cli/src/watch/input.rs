//! `Input`: lines as they come, told apart from the end and from a pause.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use conformax_io::{Error, Problem, RowFault, expect_json_lines, without_mark};

use crate::failure::Failure;
use crate::interrupt;

/// Lines read ahead at most.
const AHEAD: usize = 64;
/// A longer line is none, so that a file without line ends cannot fill the memory.
const LONGEST_LINE: u64 = 64 << 20;
/// How long Ctrl-C may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// What comes next.
pub(super) enum Line {
    /// A line that is not blank, and which one it is.
    Text { row: u64, bytes: Vec<u8> },
    /// There are no more.
    End,
}

/// Reads on a thread that nobody waits for: one that hangs on a silent pipe must not hold up Ctrl-C.
pub(super) struct Input {
    path: PathBuf,
    lines: Receiver<std::io::Result<Vec<u8>>>,
    next_row: u64,
}

impl Input {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let raw: Box<dyn Read + Send> = match path == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(std::fs::File::open(path).map_err(|error| Error::new(path, error))?),
        };
        let (sender, lines) = sync_channel(AHEAD);
        let reader = thread::Builder::new().name("reader".to_owned());
        reader.spawn(move || read_lines(BufReader::new(raw), &sender)).map_err(Failure::error)?;
        Ok(Self { path: path.to_owned(), lines, next_row: 0 })
    }

    /// The next line. `pause` is called before waiting for one.
    pub(super) fn next(&mut self, pause: impl FnOnce() -> Result<(), Failure>) -> Result<Line, Failure> {
        let mut line = match self.lines.try_recv() {
            Ok(line) => Some(line),
            Err(TryRecvError::Disconnected) => return Ok(Line::End),
            Err(TryRecvError::Empty) => {
                pause()?;
                None
            }
        };
        loop {
            interrupt::check()?;
            match line.take() {
                Some(Ok(bytes)) if bytes.trim_ascii().is_empty() => self.next_row += 1,
                Some(Ok(bytes)) => {
                    let row = self.next_row;
                    self.next_row += 1;
                    let bytes = match row {
                        0 => first(&bytes).map_err(|problem| Error::new(&self.path, problem))?.to_vec(),
                        _ => bytes,
                    };
                    return Ok(Line::Text { row, bytes });
                }
                Some(Err(error)) => return Err(Error::new(&self.path, error).in_row(self.next_row).into()),
                None => {}
            }
            match self.lines.recv_timeout(PATIENCE) {
                Ok(next) => line = Some(next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Line::End),
            }
        }
    }

    /// What is wrong with a line, and where it is.
    pub(super) fn failure(&self, row: u64, RowFault { problem, class }: RowFault) -> Failure {
        let error = Error::new(&self.path, problem).in_row(row);
        match class {
            Some(class) => error.in_class(class).into(),
            None => error.into(),
        }
    }
}

/// The first line, which tells a file of another kind. Some editors put a mark before text; it is none of the text.
fn first(line: &[u8]) -> Result<&[u8], Problem> {
    let line = without_mark(line)?;
    expect_json_lines(line)?;
    Ok(line)
}

fn read_lines(mut from: impl BufRead, to: &SyncSender<std::io::Result<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let read = match from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 == LONGEST_LINE => {
                Err(std::io::Error::other(Problem::RowTooLong(LONGEST_LINE as usize).to_string()))
            }
            Ok(_) => Ok(line),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let over = read.is_err();
        if to.send(read).is_err() || over {
            return;
        }
    }
}
