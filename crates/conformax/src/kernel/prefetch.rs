//! Asking for memory before it is needed.
#![allow(unsafe_code)]

/// Starts loading a row into the cache. A set takes about as long to make as the next row takes to arrive, and the
/// hardware's own prefetching stops at the end of a page, so without this the two times add up.
#[inline(always)]
pub(crate) fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(row)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and faults at no address; this one is inside the slice anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().cast::<i8>().wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing to see in a result: for whoever follows the addresses.
    #[test]
    fn takes_rows_of_any_length() {
        for len in [0, 1, 15, 16, 17, 1000] {
            prefetch(&vec![0.0_f32; len]);
        }
    }
}
