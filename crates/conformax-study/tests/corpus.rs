//! Every study that fuzzing started from or found: read or refused, in bounded time and memory.

#[path = "../../../fuzz/src/limits.rs"]
mod limits;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../fuzz/src/study_file.rs"]
mod study_file;

#[global_allocator]
static MEMORY: limits::Counting = limits::Counting;

#[test]
fn study() {
    replay::replay("study", study_file::read_study);
}
