//! An allocator that tells how much memory was held at most.
#![allow(unsafe_code, reason = "an allocator hands out memory")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator with a count. A block that grows or shrinks counts as one block before and after: the system
/// hands a large one its further pages, and copies nothing.
pub struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count(more: usize, less: usize) {
    let held = HELD.fetch_add(more, SeqCst) + more;
    MOST.fetch_max(held - less, SeqCst);
    HELD.fetch_sub(less, SeqCst);
}

// SAFETY: the system's allocator does it all; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// The bytes held at most at any time while `work` ran, beyond those before it.
pub fn most_held<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.load(SeqCst);
    MOST.store(before, SeqCst);
    let result = work();
    (result, MOST.load(SeqCst) - before)
}
