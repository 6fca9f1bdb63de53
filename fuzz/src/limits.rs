//! What one input may cost: 256 MB at once and ten seconds, under the fuzzer and in the replay alike.
//!
//! Memory is counted as it is asked for, not as it is touched: a length taken from a header without a check shows even
//! where the system would never have backed it with pages.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes an input may hold at once.
const MOST_BYTES: usize = 256 << 20;
/// Requests beyond this are refused, so that a finding does not take the machine with it.
const REFUSED_BYTES: usize = 4 << 30;
/// Time an input may take.
const MOST_TIME: Duration = Duration::from_secs(10);

/// The system's allocator with a count of what it has given out.
pub struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Counts a request; `false` where it is refused.
fn count(size: usize) -> bool {
    let now = NOW.fetch_add(size, Ordering::Relaxed).saturating_add(size);
    PEAK.fetch_max(now, Ordering::Relaxed);
    let granted = now < REFUSED_BYTES;
    if !granted {
        NOW.fetch_sub(size, Ordering::Relaxed);
    }
    granted
}

// SAFETY: every call is handed to the system's allocator with the layout it came with; a null pointer is how a request
// is refused.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's layout, as it came.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from the same allocator under this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As many bytes more as a growing vector may ask for: the old ones are still there while they are copied.
        if !count(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the pointer came from the same allocator under this layout.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        NOW.fetch_sub(if moved.is_null() { size } else { layout.size() }, Ordering::Relaxed);
        moved
    }
}

/// Runs `target` on an input and panics where it cost more than it may.
pub fn within_limits(target: impl FnOnce(&[u8]), input: &[u8]) {
    let (before, start) = (NOW.load(Ordering::Relaxed), Instant::now());
    PEAK.store(before, Ordering::Relaxed);
    target(input);
    let bytes = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    assert!(bytes <= MOST_BYTES, "{bytes} bytes were asked for, {MOST_BYTES} at most are allowed");
    let took = start.elapsed();
    assert!(took <= MOST_TIME, "it took {took:?}, {MOST_TIME:?} at most are allowed");
}
