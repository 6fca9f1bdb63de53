//! Labels in the order of their logits.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::{larger, smaller, whole};

/// Up to this many labels each one's place is the number of keys before its own: more comparisons than a sort makes,
/// but several at a time and with no branch to mispredict.
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

/// Logits beside each other need no look-ups while they are sorted.
#[inline(never)]
fn sort_many<T: Element>(row: &[T], labels: &mut [u32]) {
    let logits: Vec<T::Wide> = labels.iter().map(|label| row[*label as usize].widen()).collect();
    T::Wide::sort(&logits, labels);
}

/// Sorts labels by keys made of their logits.
pub(super) fn sort_by_keys<W: Wide>(logits: &[W], labels: &mut [u32], sort: impl Fn(&mut Vec<W::Key>)) {
    let mut keys = logits.iter().zip(&*labels).map(|(logit, label)| logit.key(*label)).collect();
    sort(&mut keys);
    for (label, key) in labels.iter_mut().zip(keys) {
        *label = W::label(key);
    }
}

/// The same for logits in single precision.
pub(super) fn sort_single(logits: &[f32], labels: &mut [u32]) {
    if !sort_by_steps(logits, labels) {
        sort_by_keys(logits, labels, sort_by_digits);
    }
}

/// Steps that logits are told apart by: two digits of eight bits.
const STEPS: usize = 1 << 16;

/// Most labels to be sorted by steps: of more, too many would share one.
const MOST_BY_STEPS: usize = 1 << 14;

/// Sorts labels by how many steps their logits are below the best, a digit at a time. Steps are so small that few
/// logits share one. `false` where this is no use; nothing has happened then.
///
/// The number of steps never falls as logits fall, however it is rounded. So steps, logit and label in one integer are
/// in the order of logit and label, and what two digits leave out of order is seen and put right.
fn sort_by_steps(logits: &[f32], labels: &mut [u32]) -> bool {
    let largest = labels.iter().fold(0, |all, label| all | label) as usize;
    if largest >= STEPS || labels.len() > MOST_BY_STEPS {
        return false;
    }
    let isa = Isa::best();
    let (best, worst) = isa.dispatch(Ends(logits));
    let scale = (STEPS - 1) as f32 / (best - worst);
    // Not where logits are all alike or −∞, or further apart than their type can say.
    if !(best > worst && scale > 0.0 && scale < f32::INFINITY) {
        return false;
    }
    let mut packed = vec![0; labels.len()];
    isa.dispatch(Pack { logits, labels, best, scale, packed: &mut packed });
    let (mut low, mut high) = ([0; 256], [0; 256]);
    for key in &packed {
        low[digit::<6>(*key)] += 1;
        high[digit::<7>(*key)] += 1;
    }
    let mut moved = vec![0; labels.len()];
    move_to_places::<6>(&packed, low, &mut moved);
    move_to_places::<7>(&moved, high, &mut packed);
    if !isa.dispatch(Unpack { packed: &packed, labels }) {
        insert_strays(&mut packed);
        isa.dispatch(Unpack { packed: &packed, labels });
    }
    true
}

/// The best and the worst of some logits, −∞ left out.
struct Ends<'a>(&'a [f32]);

impl Kernel for Ends<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run(self) -> (f32, f32) {
        const WIDTH: usize = 32;
        let finite = |logit: f32| if logit > f32::NEG_INFINITY { logit } else { f32::INFINITY };
        let (mut best, mut worst) = ([f32::NEG_INFINITY; WIDTH], [f32::INFINITY; WIDTH]);
        let (chunks, rest) = self.0.as_chunks::<WIDTH>();
        for chunk in chunks {
            for lane in 0..WIDTH {
                best[lane] = larger(chunk[lane], best[lane]);
                worst[lane] = smaller(finite(chunk[lane]), worst[lane]);
            }
        }
        let (mut best_of, mut worst_of) = (f32::NEG_INFINITY, f32::INFINITY);
        for (best, worst) in whole(best).into_iter().zip(whole(worst)) {
            (best_of, worst_of) = (larger(best, best_of), smaller(worst, worst_of));
        }
        for logit in rest {
            (best_of, worst_of) = (larger(*logit, best_of), smaller(finite(*logit), worst_of));
        }
        (best_of, worst_of)
    }
}

/// Makes one integer of steps, logit and label, 16, 32 and 16 bits, that rises as logits fall.
struct Pack<'a> {
    logits: &'a [f32],
    labels: &'a [u32],
    best: f32,
    scale: f32,
    packed: &'a mut [u64],
}

impl Kernel for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        /// Adding it rounds to an integer and leaves that in the low bits of the sum.
        const ROUNDER: f32 = 8_388_608.0;
        for ((packed, logit), label) in self.packed.iter_mut().zip(self.logits).zip(self.labels) {
            let steps = smaller((self.best - logit) * self.scale, (STEPS - 1) as f32);
            let steps = u64::from((steps + ROUNDER).to_bits());
            *packed = steps << 48 | logit.key(*label << 16) >> 16;
        }
    }
}

/// Takes the labels out again; whether all are in order.
struct Unpack<'a> {
    packed: &'a [u64],
    labels: &'a mut [u32],
}

impl Kernel for Unpack<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        for (label, packed) in self.labels.iter_mut().zip(self.packed) {
            *label = *packed as u32 & 0xffff;
        }
        // Keys out of order share their steps, so their difference is negative and small: its first bit is set. That of
        // a very large one is too, which costs a second look.
        let mut differences = 0;
        for (before, after) in self.packed.iter().zip(&self.packed[1..]) {
            differences |= after.wrapping_sub(*before);
        }
        differences >> 63 == 0
    }
}

#[inline(always)]
fn digit<const BYTE: u32>(key: u64) -> usize {
    usize::from((key >> (8 * BYTE)) as u8)
}

/// Moves keys to where their digit belongs, those of one digit in the order they came in.
#[inline(always)]
fn move_to_places<const BYTE: u32>(keys: &[u64], mut counts: [u32; 256], to: &mut [u64]) {
    let mut next = 0;
    for count in &mut counts {
        (*count, next) = (next, next + *count);
    }
    for key in keys {
        let place = &mut counts[digit::<BYTE>(*key)];
        to[*place as usize] = *key;
        *place += 1;
    }
}

/// Puts keys in order most of which are. Where that takes too long, as with logits that are all together but one,
/// another sort does it.
fn insert_strays(keys: &mut [u64]) {
    let mut patience = keys.len();
    for place in 1..keys.len() {
        let (stray, mut hole) = (keys[place], place);
        if keys[place - 1] <= stray {
            continue;
        }
        while hole > 0 && keys[hole - 1] > stray {
            keys[hole] = keys[hole - 1];
            hole -= 1;
        }
        keys[hole] = stray;
        if place - hole > patience {
            return keys.sort_unstable();
        }
        patience -= place - hole;
    }
}

/// From this many keys on, going through them a few times costs less than comparing them.
const MANY: usize = 768;

/// Sorts keys by their upper half, eight bits at a time from the lowest, which leaves equal ones in the order they came
/// in.
fn sort_by_digits(keys: &mut Vec<u64>) {
    if keys.len() < MANY || !keys.is_sorted_by_key(|key| *key as u32) {
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

    /// Everything that is compiled for an instruction set, on the same logits.
    fn by_steps_on(isa: Isa, logits: &[f32]) -> (Vec<u64>, Vec<u32>, bool) {
        let mut labels: Vec<u32> = (0..logits.len() as u32).collect();
        let (best, worst) = isa.dispatch(Ends(logits));
        let mut packed = vec![0; logits.len()];
        let scale = (STEPS - 1) as f32 / (best - worst);
        isa.dispatch(Pack { logits, labels: &labels, best, scale, packed: &mut packed });
        packed.sort_by_key(|key| key >> 48);
        let ordered = isa.dispatch(Unpack { packed: &packed, labels: &mut labels });
        (packed, labels, ordered)
    }

    #[test]
    fn steps_rise_as_logits_fall_on_every_instruction_set() {
        for len in [33, 500, 1000] {
            let mut logits: Vec<f32> = (0..len).map(|i| ((i * 7919) % 1013) as f32 / 50.0 - 9.0).collect();
            // It shares a step with the worst of the others, and comes after it.
            logits[len - 1] = f32::NEG_INFINITY;
            let wanted = by_steps_on(Isa::best(), &logits);
            assert!(wanted.0.is_sorted(), "none of the others share a step but equal ones");
            assert!(wanted.2, "and that is seen");
            let mut plain: Vec<u32> = (0..len as u32).collect();
            plain.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]));
            assert_eq!(wanted.1, plain);
            for isa in Isa::available() {
                assert_eq!(by_steps_on(isa, &logits), wanted, "{isa:?}");
                let stray: Vec<u64> = vec![1, 2, 5, 4, 7, 8, 9, 10, 11];
                assert!(!isa.dispatch(Unpack { packed: &stray, labels: &mut [0; 9] }), "{isa:?}");
            }
        }
    }

    /// Logits that share steps: all but one together, two heaps, neighbours in the last bit, so far apart that no
    /// number says how far.
    #[test]
    fn sorts_logits_that_steps_do_not_tell_apart() {
        let draw = |i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32;
        for len in [65_u32, 480, 1000, 5000, 17_000] {
            let fine: Vec<f32> = (0..len).map(|i| 1.0 + draw(i) * f32::EPSILON / 64.0).collect();
            let mut outlier = fine.clone();
            outlier[len as usize / 3] = 1e30;
            let heaps: Vec<f32> =
                fine.iter().zip(0..).map(|(z, i)| if i % 3 == 0 { -z } else { *z }).collect();
            let mut masked = heaps.clone();
            masked[7..40].fill(f32::NEG_INFINITY);
            let wide: Vec<f32> = (0..len).map(|i| (draw(i) / 8_388_608.0 - 1.0) * 3e38).collect();
            let tiny: Vec<f32> = (0..len).map(|i| f32::from_bits(draw(i) as u32 % 999)).collect();
            let any: Vec<f32> = (0..len).map(|i| draw(i) / 1e6).collect();
            for row in [fine, outlier, heaps, masked, wide, tiny, any, vec![f32::NEG_INFINITY; 100]] {
                sorts(&row);
            }
        }
    }

    #[test]
    fn sorts_labels_beyond_sixteen_bits() {
        let row: Vec<f32> = (0..70_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 20) as f32).collect();
        sorts(&row);
        let mut labels: Vec<u32> = (0..70_000).step_by(100).collect();
        sort_best_first(&row, &mut labels);
        let key = |label: &u32| (-row[*label as usize]).key(u32::MAX - label);
        assert!(labels.iter().map(key).rev().is_sorted());
        assert_eq!(labels.len(), 700);
    }

    #[test]
    fn strays_are_put_in_order_however_many() {
        for strays in [0, 1, 2, 50, 400] {
            let mut keys: Vec<u64> = (0..400).map(|i| i * 3).collect();
            for stray in 0..strays {
                keys.swap(stray, (stray * 7 + 1) % 400);
            }
            insert_strays(&mut keys);
            assert!(keys.is_sorted(), "{strays}");
        }
        let mut falling: Vec<u64> = (0..20_000).rev().collect();
        insert_strays(&mut falling);
        assert!(falling.is_sorted());
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
