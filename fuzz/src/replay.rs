//! The committed corpus as an ordinary test: every seed through the very function the fuzzer calls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;

use crate::limits::within_limits;

/// One seed at a time, in whatever order the tests run: the memory of two would be counted as one's.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `target` on every seed of its folder, and names those that panic, take too long or ask for too much memory.
pub fn replay(name: &str, target: impl Fn(&[u8])) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let seeds = std::fs::read_dir(&folder).expect("each target has a folder of seeds");
    let mut paths: Vec<_> = seeds.map(|seed| seed.expect("a folder that can be listed").path()).collect();
    assert!(!paths.is_empty(), "no seeds in {}", folder.display());
    paths.sort();
    let mut failed = Vec::new();
    for path in paths {
        let seed = std::fs::read(&path).expect("a seed that can be read");
        if catch_unwind(AssertUnwindSafe(|| within_limits(&target, &seed))).is_err() {
            failed.push(path);
        }
    }
    assert!(failed.is_empty(), "these seeds fail, each for the reason printed above: {failed:?}");
}
