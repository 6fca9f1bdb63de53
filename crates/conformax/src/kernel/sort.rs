//! Labels in the order of their logits.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};

/// Up to this many labels each one's place is the number of keys before its own: more comparisons than a sort makes,
/// but several at a time and with no branch to guess.
const FEW: usize = 64;

/// Sorts labels by falling logit; equal logits by index.
#[inline]
pub(crate) fn sort_best_first<T: Element>(row: &[T], labels: &mut [u32]) {
    let key = |label: u32| row[label as usize].widen().key(label);
    match labels.len() {
        0 | 1 => {}
        2 => {
            let [first, second] = [labels[0], labels[1]];
            let swap = key(second) < key(first);
            (labels[0], labels[1]) = if swap { (second, first) } else { (first, second) };
        }
        len @ 3..=8 => {
            let mut keys = [Default::default(); 8];
            for (key_of, label) in keys.iter_mut().zip(&*labels) {
                *key_of = key(*label);
            }
            for key in &keys[..len] {
                let place = keys[..len].iter().map(|other| usize::from(other < key)).sum::<usize>();
                labels[place] = T::Wide::label(*key);
            }
        }
        9..=FEW => Isa::best().dispatch(Few { row, labels }),
        _ => sort_many(row, labels),
    }
}

struct Few<'a, 'b, T> {
    row: &'a [T],
    labels: &'b mut [u32],
}

impl<T: Element> Kernel for Few<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut keys = [Default::default(); FEW];
        let keys = &mut keys[..self.labels.len()];
        for (key, label) in keys.iter_mut().zip(&*self.labels) {
            *key = self.row[*label as usize].widen().key(*label);
        }
        if size_of_val(&keys[0]) > size_of::<u64>() {
            // No register compares these.
            keys.sort_unstable();
            for (label, key) in self.labels.iter_mut().zip(keys) {
                *label = T::Wide::label(*key);
            }
            return;
        }
        for key in &*keys {
            let mut place = 0_u64;
            for other in &*keys {
                place += u64::from(other < key);
            }
            self.labels[place as usize] = T::Wide::label(*key);
        }
    }
}

/// Keys beside each other need no look-ups while they are sorted.
#[inline(never)]
fn sort_many<T: Element>(row: &[T], labels: &mut [u32]) {
    let mut keys: Vec<_> = labels.iter().map(|label| row[*label as usize].widen().key(*label)).collect();
    if labels.is_sorted() {
        T::Wide::sort(&mut keys);
    } else {
        keys.sort_unstable();
    }
    for (label, key) in labels.iter_mut().zip(keys) {
        *label = T::Wide::label(key);
    }
}

/// From this many keys on, going through them a few times costs less than comparing them.
const MANY: usize = 768;

/// Sorts keys by their upper half, eight bits at a time from the lowest, which leaves equal ones in the order they came
/// in.
pub(super) fn sort_by_digits(keys: &mut Vec<u64>) {
    if keys.len() < MANY {
        return keys.sort_unstable();
    }
    let digit = |key: u64, place: usize| (key >> (32 + 8 * place)) as usize & 0xff;
    let mut counts = [[0_usize; 256]; 4];
    for key in &*keys {
        for (place, counts) in counts.iter_mut().enumerate() {
            counts[digit(*key, place)] += 1;
        }
    }
    let mut sorted = vec![0; keys.len()];
    for (place, counts) in counts.iter_mut().enumerate() {
        if counts[digit(keys[0], place)] == keys.len() {
            // All alike, as the low digits of logits are that were half floats once.
            continue;
        }
        let mut next = 0;
        for count in &mut *counts {
            (*count, next) = (next, next + *count);
        }
        for key in &*keys {
            let to = &mut counts[digit(*key, place)];
            sorted[*to] = *key;
            *to += 1;
        }
        std::mem::swap(keys, &mut sorted);
    }
}

/// Sorts keys of 96 bits by the first 32 of them, with their places beside these in one word, and then the few that
/// have those in common.
pub(super) fn sort_by_leading_bits(keys: &mut Vec<u128>) {
    let head = |(key, place): (&u128, u64)| u64::from((*key >> 64) as u32) << 32 | place;
    let mut heads: Vec<u64> = keys.iter().zip(0..).map(head).collect();
    sort_by_digits(&mut heads);
    let mut sorted: Vec<u128> = heads.iter().map(|head| keys[*head as u32 as usize]).collect();
    let mut start = 0;
    for alike in heads.chunk_by(|one, other| one >> 32 == other >> 32) {
        let end = start + alike.len();
        if alike.len() > 1 {
            sorted[start..end].sort_unstable();
        }
        start = end;
    }
    *keys = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorts<T: Element + PartialOrd>(row: &[T]) {
        let mut plain: Vec<u32> = (0..row.len() as u32).collect();
        plain.sort_by(|a, b| row[*b as usize].partial_cmp(&row[*a as usize]).unwrap());
        let mut labels: Vec<u32> = (0..row.len() as u32).collect();
        sort_best_first(row, &mut labels);
        assert_eq!(labels, plain, "in index order");
        labels.reverse();
        sort_best_first(row, &mut labels);
        assert_eq!(labels, plain, "in any order");
        if (1..=FEW).contains(&row.len()) {
            for isa in Isa::available() {
                labels.reverse();
                isa.dispatch(Few { row, labels: &mut labels });
                assert_eq!(labels, plain, "{isa:?}");
            }
        }
    }

    #[test]
    fn sorts_as_a_stable_sort_whatever_the_number() {
        for len in [0, 1, 2, 3, 8, 9, 31, 32, 33, 63, 64, 65, 66, 257, 767, 768, 2000] {
            let mut row: Vec<f64> = (0..len).map(|i| f64::from((i * 7919) % 101) / 7.0 - 8.0).collect();
            if len > 4 {
                (row[1], row[2], row[3], row[4]) = (f64::NEG_INFINITY, -0.0, 0.0, f64::MIN_POSITIVE / 4.0);
            }
            sorts(&row);
            sorts(&row.iter().map(|z| *z as f32).collect::<Vec<_>>());
            sorts(&vec![2.5_f32; row.len()]);
            sorts(&row.iter().map(|z| z * 1e300).collect::<Vec<_>>());
            // Alike in all bits but the last few, of which some differ.
            sorts(&row.iter().map(|z| 4.0 + z * f64::EPSILON).collect::<Vec<_>>());
            sorts(&row.iter().map(|z| z.max(-1.0).floor() + z * f64::EPSILON).collect::<Vec<_>>());
        }
    }

    #[cfg(feature = "half")]
    #[test]
    fn sorts_every_half_float() {
        let finite = |z: &half::f16| !z.is_nan() && *z != half::f16::INFINITY;
        let row: Vec<half::f16> = (0..=u16::MAX).map(half::f16::from_bits).filter(finite).collect();
        sorts(&row);
    }
}
