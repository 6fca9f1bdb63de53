//! Room in lists that grow with the rows.
//!
//! A list that doubles holds up to twice what it needs, and the scores of calibration rows are the one thing here that
//! grows with them. So these grow by an eighth: nine bytes for eight. Systems give a large block its further pages
//! without a copy; where one copies, old and new are there for that moment, and an entry is copied eight times on
//! average.

/// Appends entries to a list.
pub(crate) fn append<V: Copy>(list: &mut Vec<V>, more: &[V]) {
    make_room(list, more.len());
    list.extend_from_slice(more);
}

/// Makes room for so many more entries.
#[inline]
pub(crate) fn make_room<V>(list: &mut Vec<V>, more: usize) {
    // Short lists, of which there may be one for every class, would otherwise move at every entry.
    const LEAST: usize = 8;
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 8 + LEAST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_an_eighth_more_than_they_need() {
        for step in [1, 7, 1000] {
            let mut list: Vec<u64> = Vec::new();
            for _ in 0..20_000 / step {
                append(&mut list, &vec![7; step]);
                let most = (list.len() + list.len() / 8 + 8).max(list.len() + step);
                assert!(list.capacity() <= most, "{} of {} in steps of {step}", list.capacity(), list.len());
            }
        }
    }
}
