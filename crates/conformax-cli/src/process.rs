//! Settings of the whole process, which only a program of its own may make.

/// Prepares a process that is nothing but this command: Ctrl-C stops the work in hand, a write beyond the limit on file
/// sizes is an error and not the end, and damaged files print a message and no panic.
///
/// ```no_run
/// conformax_cli::prepare_process();
/// ```
pub fn prepare_process() {
    crate::stop_on_interrupt();
    survive_size_limit();
    conformax_io::hush_caught_panics();
}

/// Catches the signal that `ulimit -f` sends, so that the write itself fails: with a message, and without leaving a
/// half-written file behind. Nobody reads the flag; a handler has to do something.
#[cfg(unix)]
fn survive_size_limit() {
    // Without a handler the signal ends the process; the next writer removes what it leaves.
    let _ = signal_hook::flag::register(libc::SIGXFSZ, Default::default());
}

#[cfg(not(unix))]
fn survive_size_limit() {}
