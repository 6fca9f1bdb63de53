//! Ctrl-C: long work notices between blocks and gives up, so that half-written files are removed on the way out.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C and a request to terminate stop the work in hand; a second one ends the process at once.
///
/// For a program's `main`: it replaces whatever the process did with these signals.
///
/// ```no_run
/// conformax_cli::stop_on_interrupt();
/// ```
pub fn stop_on_interrupt() {
    // Without a handler Ctrl-C still ends the process; the next writer removes what it leaves.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(2);
        }
    });
}

/// Stops the work in hand, for programs with a signal handler of their own.
///
/// ```no_run
/// conformax_cli::interrupt();
/// ```
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// An error once someone pressed Ctrl-C.
pub(crate) fn check() -> Result<(), Failure> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}
