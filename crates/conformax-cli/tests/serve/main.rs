//! The service over real sockets: what it answers, and what the world does to it.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod answers;
mod clients;
mod clock;
mod kept;
mod replaced;
mod service;
mod synced;
mod tables;

#[allow(dead_code, reason = "shared with the tests of the command, which use more of it")]
#[path = "../command/folder.rs"]
mod folder;
#[path = "../../../conformax-io/tests/written/mod.rs"]
mod written;
