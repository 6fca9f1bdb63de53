//! The `conformax` command, for the wheel's console script.

use std::ffi::OsString;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How long a signal may wait.
const TICK: Duration = Duration::from_millis(50);

/// Runs the command on the process's own streams and returns its exit code; `arguments` start with its name.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    py.detach(|| {
        let (send, receive) = mpsc::sync_channel(1);
        thread::scope(|scope| {
            scope.spawn(move || {
                crate::floats::set_default();
                let code = conformax_cli::run(arguments, &mut std::io::stdout(), &mut std::io::stderr());
                // The watcher waits as long as there is a sender.
                let _ = send.send(code.code());
            });
            let mut interrupted = false;
            loop {
                match receive.recv_timeout(TICK) {
                    Ok(code) => return Ok(code),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(PyRuntimeError::new_err("the command ended without a code"));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        // The command ends by itself once told, and removes what it has half written; whoever asks
                        // again does not want to wait for that.
                        if let Some(Err(_)) = Python::try_attach(|py| py.check_signals()) {
                            if interrupted {
                                std::process::exit(2);
                            }
                            interrupted = true;
                            conformax_cli::interrupt();
                        }
                    }
                }
            }
        })
    })
}
