//! Runs that are killed at a named moment, which no busy machine can move.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Starts a command that holds still at a moment in the life of an output (see `conformax_io::Output`), and kills it
/// there with `kill -9`.
#[track_caller]
pub(crate) fn kill_at(moment: &str, output: &str, command: &mut Command) {
    let name = output.rsplit('/').next().unwrap_or(output);
    command.env("CONFORMAX_HOLD", format!("{moment} {name}")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let held = lines.any(|line| line.unwrap() == format!("held: {moment} {name}"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(held, "{command:?} never came to the moment when {name} is {moment}");
}
