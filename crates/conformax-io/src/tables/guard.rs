//! `Guarded`: a reader whose panics are errors.
//!
//! The Parquet and Arrow crates check most of what they read and assert the rest, so that some damaged files make them
//! panic. To the user that is a damaged file like any other. Of release 59.3.2 these are known: `arrow-ipc` slices a
//! buffer at the offset a message gives (`Buffer::slice_with_length` asserts), makes a bitmap of a buffer that is too
//! short (`BooleanBuffer::new` asserts) and meets a type in a schema that it has no word for (`get_data_type` in
//! `convert.rs`). `cargo test -p conformax-io --test bad_input damaged -- --nocapture` prints them all: where it prints
//! none with a later release, the guard can go.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Problem, Result};
use crate::reading::reader::{Layout, Reader, Rows};

pub(crate) struct Guarded<R> {
    reader: R,
    path: PathBuf,
}

impl<R: Reader> Guarded<R> {
    pub(crate) fn open(path: &Path, open: impl FnOnce() -> Result<R>) -> Result<Self> {
        Ok(Self { reader: guarded(path, open)?, path: path.to_owned() })
    }
}

impl<R: Reader> Reader for Guarded<R> {
    fn layout(&self) -> &Layout {
        self.reader.layout()
    }

    fn read(&mut self, most: usize, into: &mut Rows) -> Result<()> {
        guarded(&self.path, || self.reader.read(most, into))
    }
}

thread_local! {
    /// Whether a panic on this thread would be turned into an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Keeps quiet about panics that become errors anyway; all others are reported as before.
///
/// For a program's `main`, once: by default a panic prints a line even where it is caught, and what is printed is a
/// setting of the whole process, which a library leaves alone.
///
/// ```
/// conformax_io::hush_caught_panics();
/// ```
pub fn hush_caught_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !GUARDED.get() {
            report(info);
        }
    }));
}

/// What `read` was using must not be used again after an error; a source that failed never is.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let what = text.unwrap_or_else(|| "its parts contradict each other".to_owned());
        Err(Error::new(path, Problem::Damaged { format: "a table", what }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        let error = guarded::<()>(Path::new("z.parquet"), || panic!("negative length")).unwrap_err();
        assert_eq!(error.to_string(), "z.parquet: damaged or not a table: negative length");
    }
}
