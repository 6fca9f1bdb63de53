//! Runs the command in temporary folders, as a user does, and looks at what it says and writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod calibrate;
mod conditional;
mod errors;
mod evaluate;
mod faces;
mod folder;
mod formats;
mod interrupt;
mod misuse;
mod plan;
mod predict;
mod readme;
mod report;
mod split;
mod streams;
mod study;
mod tune;
mod watch;
// One small data set in every format, written by code that shares nothing with the readers.
#[path = "../../../conformax-io/tests/written/mod.rs"]
mod written;
