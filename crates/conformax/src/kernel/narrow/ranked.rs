//! The best labels of a few narrow rows, found together: one lane is one row.
//!
//! A logit and its label are one number, so that ranking is minima and maxima and nothing is carried beside them: a
//! logit in double precision whose last bits say which label it is. Logits of single precision leave these bits free.
//! Those of double precision lose theirs, and are looked up again once their labels are known.

use super::super::element::{Element, Wide};
use super::super::{larger, smaller};
use super::{NARROW, PLACES, ROWS, mask};

/// Rows ranked together: a place is a register of AVX2.
const LANES: usize = 4;

/// Labels put in order before others are added.
const FIRST: usize = 8;

/// The last bits of a key.
const LAST: u64 = NARROW as u64 - 1;

/// Stands for −∞, which would be no number with a label in it, and becomes −∞ in single precision.
const LOWEST: f64 = f64::from_bits(f64::MIN.to_bits() & !LAST);

/// No logit below this is told from −∞.
const VOID: f64 = -1e300;

/// The best labels of [`ROWS`] rows.
pub(super) struct Ranked {
    /// Best first; equal logits by index.
    keys: [[f64; ROWS]; PLACES],
    /// Of all logits: NaN or +∞ where one is.
    sums: [f64; ROWS],
}

impl Ranked {
    pub(super) const NONE: Self = Self { keys: [[LOWEST; ROWS]; PLACES], sums: [0.0; ROWS] };

    /// Ranks rows of this many classes.
    #[inline(always)]
    pub(super) fn rank<T: Element>(&mut self, group: &[T], classes: usize) {
        for (first, rows) in (0..).step_by(LANES).zip(group.chunks_exact(LANES * classes)) {
            self.rank_some(rows, classes, first);
        }
    }

    #[inline(always)]
    fn rank_some<T: Element>(&mut self, some: &[T], classes: usize, first: usize) {
        let mut rows = [&some[..0]; LANES];
        for lane in 0..LANES {
            rows[lane] = &some[lane * classes..][..classes];
        }
        let mut sums = [0.0; LANES];
        let mut head = [[LOWEST; LANES]; FIRST];
        for label in 0..classes.min(FIRST) {
            head[label] = column(rows, label, &mut sums);
        }
        let mut keys = [[LOWEST; LANES]; PLACES];
        keys[..FIRST].copy_from_slice(&head);
        sort_first(&mut keys);
        for label in FIRST..classes {
            let mut next = column(rows, label, &mut sums);
            for place in 0..PLACES {
                (keys[place], next) = ordered(keys[place], next);
            }
        }
        self.sums[first..first + LANES].copy_from_slice(&sums);
        for place in 0..PLACES {
            for lane in 0..LANES {
                self.keys[place][first + lane] = keys[place][lane];
            }
        }
    }

    /// The labels at `place`.
    #[inline(always)]
    pub(super) fn labels(&self, place: usize) -> [u64; ROWS] {
        let mut labels = [0; ROWS];
        for row in 0..ROWS {
            let key = self.keys[place][row];
            labels[row] = (key.to_bits() ^ if key < 0.0 { 0 } else { LAST }) & LAST;
        }
        labels
    }

    /// The logits at `place`.
    #[inline(always)]
    pub(super) fn logits<T: Element>(&self, place: usize, group: &[T], classes: usize) -> [T::Wide; ROWS] {
        let mut logits = [T::Wide::NEG_INFINITY; ROWS];
        if T::Wide::LEAVES_LAST_BITS {
            for row in 0..ROWS {
                logits[row] = T::Wide::nearest(without_label(self.keys[place][row]));
            }
        } else {
            let labels = self.labels(place);
            for row in 0..ROWS {
                // There may be fewer labels than places.
                let logit = group[row * classes..][..classes].get(labels[row] as usize);
                let logit = logit.filter(|_| self.keys[place][row] > VOID);
                logits[row] = logit.map_or(T::Wide::NEG_INFINITY, |logit| logit.widen());
            }
        }
        logits
    }

    /// Whether the ranking of a row is right: no logit is NaN or +∞, one is above −∞, and no two that differ in their
    /// last bits alone stand beside each other.
    #[inline(always)]
    pub(super) fn sound<T: Element>(&self, group: &[T], classes: usize) -> [u64; ROWS] {
        let mut sound = [0; ROWS];
        for row in 0..ROWS {
            sound[row] = mask(self.sums[row] < f64::INFINITY) & mask(self.keys[0][row] > VOID);
        }
        if !T::Wide::LEAVES_LAST_BITS {
            for place in 1..PLACES {
                let (mut alike, mut any) = ([0; ROWS], 0);
                for row in 0..ROWS {
                    let (above, key) = (self.keys[place - 1][row], self.keys[place][row]);
                    alike[row] = mask(without_label(above) == without_label(key)) & mask(key > VOID);
                    any |= alike[row];
                }
                if any != 0 {
                    let above: [T::Wide; ROWS] = self.logits(place - 1, group, classes);
                    let logits: [T::Wide; ROWS] = self.logits(place, group, classes);
                    for row in 0..ROWS {
                        sound[row] &= !(alike[row] & mask(above[row] != logits[row]));
                    }
                }
            }
        }
        sound
    }
}

/// The keys of a label.
#[inline(always)]
fn column<T: Element>(rows: [&[T]; LANES], label: usize, sums: &mut [f64; LANES]) -> [f64; LANES] {
    let (mut logits, mut keys) = ([T::Wide::NEG_INFINITY; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        logits[lane] = rows[lane][label].widen();
    }
    for lane in 0..LANES {
        keys[lane] = logits[lane].to_f64();
    }
    for lane in 0..LANES {
        sums[lane] += keys[lane];
    }
    for lane in 0..LANES {
        keys[lane] = larger(keys[lane], LOWEST);
    }
    if !T::Wide::LEAVES_LAST_BITS {
        for lane in 0..LANES {
            keys[lane] = without_label(keys[lane]);
        }
    }
    for lane in 0..LANES {
        // −0 is the same logit as 0, and may be what is left of one.
        keys[lane] += 0.0;
    }
    // Of equal logits the first is the larger key: more in the last bits of a positive number, less in those of a
    // negative one.
    let label = label as u64;
    for lane in 0..LANES {
        let last = if keys[lane] < 0.0 { label } else { label ^ LAST };
        keys[lane] = f64::from_bits(keys[lane].to_bits() | last);
    }
    keys
}

#[inline(always)]
fn without_label(key: f64) -> f64 {
    f64::from_bits(key.to_bits() & !LAST)
}

/// The larger key of each lane, and the smaller. Each is one instruction, and neither key is lost where a CPU that was
/// told to take subnormals for zero sees no difference.
#[inline(always)]
fn ordered(a: [f64; LANES], b: [f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    let (mut upper, mut lower) = (a, b);
    for lane in 0..LANES {
        upper[lane] = larger(b[lane], a[lane]);
    }
    for lane in 0..LANES {
        lower[lane] = smaller(a[lane], b[lane]);
    }
    (upper, lower)
}

/// Sorts the first eight keys by the shortest network there is.
#[inline(always)]
fn sort_first(keys: &mut [[f64; LANES]; PLACES]) {
    macro_rules! layer {
        ($(($a:literal, $b:literal))*) => { $((keys[$a], keys[$b]) = ordered(keys[$a], keys[$b]);)* };
    }
    layer!((0, 2)(1, 3)(4, 6)(5, 7));
    layer!((0, 4)(1, 5)(2, 6)(3, 7));
    layer!((0, 1)(2, 3)(4, 5)(6, 7));
    layer!((2, 4)(3, 5));
    layer!((1, 4)(3, 6));
    layer!((1, 2)(3, 4)(5, 6));
}
