//! The report of made-up results: what is drawn, tabled and written equals the records it was made from.

// What the tests share is not itself a test, which is where the lint would allow these.
#![allow(clippy::unwrap_used, clippy::panic)]

mod conditional;
mod figures;
mod page;
mod rendered;
mod synthetic;
mod tables;
mod try_it;
