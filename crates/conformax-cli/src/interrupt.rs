//! Ctrl-C: long work notices between blocks and gives up, so that half-written files are removed on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How long Ctrl-C may go unnoticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Makes Ctrl-C, a request to terminate and the end of the terminal stop the work in hand; a second one ends the
/// process at once, without its temporary files. On Linux a signal that whoever started the process had it ignore stays
/// ignored, as with `nohup` and in the background of a script.
///
/// For a program's `main`: it replaces whatever else the process did with these signals.
///
/// ```no_run
/// conformax_cli::stop_on_interrupt();
/// ```
pub fn stop_on_interrupt() {
    listen(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            conformax_io::abandon_outputs();
            std::process::exit(2);
        }
    });
}

/// Calls a function on a thread of its own for every signal. Without a handler Ctrl-C still ends the process; the next
/// writer removes what it leaves.
#[cfg(unix)]
fn listen(mut told: impl FnMut() + Send + 'static) {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    let Ok((mut signals, write)) = UnixStream::pair() else { return };
    let thread = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // One at a time: two that came together are two.
        while signals.read_exact(&mut [0]).is_ok() {
            told();
        }
    });
    if thread.is_err() {
        return;
    }
    let ignored = ignored_signals();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if ignored & (1 << (signal - 1)) == 0
            && let Ok(write) = write.try_clone()
        {
            let _ = signal_hook::low_level::pipe::register(signal, write);
        }
    }
}

#[cfg(not(unix))]
fn listen(told: impl FnMut() + Send + 'static) {
    let _ = ctrlc::set_handler(told);
}

/// The signals that this process was started to ignore, a bit for each, where the system tells.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
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

/// What comes next, or nothing once nobody sends any more.
pub(crate) fn next<T>(from: &Receiver<T>) -> Result<Option<T>, Failure> {
    loop {
        check()?;
        match from.recv_timeout(PATIENCE) {
            Ok(piece) => return Ok(Some(piece)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// What `work` comes to, which may be the first to read from a pipe that says nothing: nobody waits for its thread once
/// Ctrl-C was pressed.
pub(crate) fn opening<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (sender, opened) = sync_channel(1);
    let opener = thread::Builder::new().name("opener".to_owned());
    // After Ctrl-C nobody listens.
    opener.spawn(move || drop(sender.send(work()))).map_err(Failure::error)?;
    next(&opened)?.ok_or_else(|| Failure::error("the thread that opens the data panicked"))
}
