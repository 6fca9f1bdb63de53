//! `ZipSink`: where a zip archive goes, which tells the archive's writer nothing of a full disk.
//!
//! On its way out the zip crate's writer ends its archive, and where that fails it prints to standard error, which is
//! not a library's to write to. So a failure is kept here, everything after it is taken and thrown away, and whoever
//! owns the writer asks.

use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::writing::output::Output;

/// The first failure of a sink, shared with whoever has to ask for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    failed: bool,
    error: Option<io::Error>,
}

impl Failure {
    /// The error, the first time it is asked for.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.lock().error.take().map_or(Ok(()), Err)
    }

    fn set(&self, error: io::Error) {
        *self.lock() = State { failed: true, error: Some(error) };
    }

    fn is_set(&self) -> bool {
        self.lock().failed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct ZipSink {
    output: BufWriter<Output>,
    failure: Failure,
    /// Place and length, which must go on making sense after a failure.
    at: u64,
    len: u64,
}

impl ZipSink {
    pub(crate) fn new(output: Output) -> (Self, Failure) {
        let failure = Failure::default();
        let output = BufWriter::with_capacity(1 << 18, output);
        (Self { output, failure: failure.clone(), at: 0, len: 0 }, failure)
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> crate::Result<()> {
        let path = self.output.get_ref().path().to_owned();
        let output = self.output.into_inner().map_err(|error| crate::Error::new(path, error.into_error()))?;
        output.finish()
    }

    /// Does something to the file, unless it has failed before; `instead` is what is pretended then.
    fn attempt<T>(&mut self, instead: T, act: impl FnOnce(&mut BufWriter<Output>) -> io::Result<T>) -> T {
        if self.failure.is_set() {
            return instead;
        }
        act(&mut self.output).unwrap_or_else(|error| {
            self.failure.set(error);
            instead
        })
    }
}

impl Write for ZipSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt((), |output| output.write_all(bytes));
        self.at += bytes.len() as u64;
        self.len = self.len.max(self.at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), BufWriter::flush);
        Ok(())
    }
}

impl Seek for ZipSink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let wanted = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let wanted = wanted.ok_or(io::ErrorKind::InvalidInput)?;
        self.at = self.attempt(wanted, |output| output.seek(SeekFrom::Start(wanted)));
        Ok(self.at)
    }
}
