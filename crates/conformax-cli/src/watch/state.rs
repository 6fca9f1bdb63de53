//! `StateFile`: where a stream is left and taken up, whole or not at all.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use conformax::{ScoreSpec, Stream};
use conformax_io::{Error, Output, Overwrite};

use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::{labels, rows};

pub(super) struct StateFile {
    path: Option<PathBuf>,
    /// Rows and labels of the stream when it was last written: a pause in which nothing came changes nothing.
    written: Option<(u64, u64)>,
    /// Held as long as the run lives.
    _lock: Option<File>,
}

impl StateFile {
    /// Holds the file against other runs: what one answers, another would overwrite. The lock lies beside it, since the
    /// file itself is replaced.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let locked = |path: &Path| {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".lock");
            let file = File::create(&beside).map_err(|error| Error::new(path, error))?;
            match file.try_lock() {
                Ok(()) => Ok(file),
                Err(TryLockError::WouldBlock) => {
                    Err(Failure::of_file(path, "is in use by another run; give each a file of its own"))
                }
                Err(TryLockError::Error(error)) => Err(Error::new(path, error).into()),
            }
        };
        Ok(Self { path: path.map(Path::to_owned), written: None, _lock: path.map(locked).transpose()? })
    }

    /// The stream that was left there, or the fresh one.
    pub(super) fn read(
        &mut self,
        fresh: Stream<ScoreSpec>,
        console: &mut Console<'_>,
    ) -> Result<Stream<ScoreSpec>, Failure> {
        let Some(path) = &self.path else { return Ok(fresh) };
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(fresh),
            Err(error) => return Err(Error::new(path, error).into()),
        };
        let left = Stream::from_bytes(&bytes).map_err(|error| Failure::of_file(path, error))?;
        let differs = match () {
            () if left.calibration() != fresh.calibration() => Some("another model"),
            () if left.alpha() != fresh.alpha() => Some("another level"),
            () if left.options() != fresh.options() => Some("other stream options"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Failure::of_file(
                path,
                format_args!("is the state of a stream with {what}; give the same, or a file of its own"),
            ));
        }
        let status = left.status();
        self.written = Some((status.predicted, status.labelled));
        console.note(format_args!(
            "going on after {} and {}",
            rows(status.predicted),
            labels(status.labelled)
        ));
        Ok(left)
    }

    /// Leaves the stream as it is now.
    pub(super) fn write(&mut self, stream: &Stream<ScoreSpec>) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let status = stream.status();
        let now = Some((status.predicted, status.labelled));
        if self.written == now {
            return Ok(());
        }
        let mut output = Output::create(path, Overwrite::Replace)?;
        output.write_all(&stream.to_bytes()).map_err(|error| Error::new(path, error))?;
        output.finish()?;
        self.written = now;
        Ok(())
    }
}
