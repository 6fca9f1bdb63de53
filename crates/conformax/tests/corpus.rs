//! Every row that fuzzing started from or found: the fast paths equal the plain definitions to the bit.
//!
//! A program without a harness, because the reference includes `math.rs`, whose unit tests belong to the library.

#[path = "../../../fuzz/src/limits.rs"]
mod limits;
#[path = "../src/kernel/math.rs"]
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the reference needs some of it, and its tests run with the library"
)]
mod math;
#[path = "../../../fuzz/src/plain.rs"]
mod plain;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/rows.rs"]
mod rows;

#[global_allocator]
static MEMORY: limits::Counting = limits::Counting;

fn main() {
    replay::replay("rows", rows::check);
}
