//! Asking for memory before it is needed.
#![allow(unsafe_code)]

/// Starts loading a row into the cache. A set takes about as long to make as the next row takes to arrive, and the
/// hardware's own prefetching stops at the end of a page, so without this the two times add up.
#[inline(always)]
pub(crate) fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for offset in lines(size_of_val(row)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults at no address; this one is inside the slice anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().cast::<i8>().wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Where in so many bytes to ask, once for each 64 of them, which is what a cache loads at a time.
#[cfg(any(test, target_arch = "x86_64"))]
#[inline(always)]
fn lines(bytes: usize) -> impl Iterator<Item = usize> {
    (0..bytes).step_by(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_every_byte_of_a_row_once_and_for_none_beyond() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let row = vec![1.5_f32; len];
            prefetch(&row);
            assert_eq!(row, vec![1.5; len]);
            let asked: Vec<usize> = lines(size_of_val(&*row)).collect();
            assert_eq!(asked.len(), (4 * len).div_ceil(64));
            assert!(asked.iter().enumerate().all(|(line, offset)| *offset == 64 * line && *offset < 4 * len));
        }
    }
}
