//! Memory for results that Python will own.

/// Room for so many values, in large pages where there are many, as NumPy asks for with its own arrays: to get a page
/// that is new takes longer than to write to it, and of large ones there are few.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "a hint to the system, which no crate in use gives")]
pub fn in_large_pages<T>(capacity: usize) -> Vec<T> {
    const PAGE: usize = 4096;
    const MANY_BYTES: usize = 1 << 22;
    let room = Vec::<T>::with_capacity(capacity);
    let (start, bytes) = (room.as_ptr() as usize, room.capacity() * size_of::<T>());
    if bytes >= MANY_BYTES {
        let before = start.next_multiple_of(PAGE) - start;
        let first = room.as_ptr().cast::<u8>().wrapping_add(before).cast_mut();
        // SAFETY: from the first page that begins in this allocation to its end, and the hint changes nothing of what
        // is in these pages. It buys what docs/performance.md says of Python's sets of ten classes.
        unsafe { libc::madvise(first.cast(), bytes - before, libc::MADV_HUGEPAGE) };
    }
    room
}

#[cfg(not(target_os = "linux"))]
pub fn in_large_pages<T>(capacity: usize) -> Vec<T> {
    Vec::with_capacity(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_room_however_large() {
        for capacity in [0, 1, 1000, 3 << 20] {
            let mut room = in_large_pages::<u32>(capacity);
            assert!(room.is_empty() && room.capacity() >= capacity);
            room.extend((0..capacity as u32).chain([7]));
            assert_eq!((room.len(), room.last()), (capacity + 1, Some(&7)));
        }
    }
}
