//! Rows to test on: coarse grids where ties are common, near-ties, huge and tiny magnitudes, masked classes.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;

/// A logit on a grid of 1/16 that every float type holds, so that ties happen and failures shrink to something
/// legible.
fn grid_logit() -> impl Strategy<Value = f64> {
    (-48_i32..=48).prop_map(|sixteenths| f64::from(sixteenths) / 16.0)
}

/// Rows on the grid.
pub fn grid(classes: RangeInclusive<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec(grid_logit(), classes)
}

/// One value throughout.
fn all_tied() -> impl Strategy<Value = Vec<f64>> {
    (grid_logit(), 1_usize..=40).prop_map(|(logit, classes)| vec![logit; classes])
}

/// Zeros of either sign among a few other values.
fn signed_zeros() -> impl Strategy<Value = Vec<f64>> {
    vec(prop::sample::select(vec![0.0, -0.0, 1.0, -1.0]), 1..=12)
}

/// A value and the floats right above it.
fn near_ties() -> impl Strategy<Value = Vec<f64>> {
    let base = prop::sample::select(vec![1.0, -3.0, 20.1, 0.1, 1e-300, 1e300]);
    (base, vec(0_u64..4, 1..=20)).prop_map(|(base, steps): (f64, Vec<u64>)| {
        steps.into_iter().map(|step| f64::from_bits(base.to_bits() + step)).collect()
    })
}

/// All of one magnitude at either end of the exponents, where squares overflow or vanish and even gaps may.
fn extreme() -> impl Strategy<Value = Vec<f64>> {
    let unit = prop::sample::select(vec![1e-323, 1e-308, 1e-300, 1e-160, 1e-140, 1e140, 1e160, 1e300, 3e307]);
    (unit, vec(-5_i32..=5, 1..=16)).prop_map(|(unit, steps): (f64, Vec<i32>)| {
        steps.into_iter().map(|step| f64::from(step) * unit).collect()
    })
}

/// Multiples of the smallest float, where every result is rounded to a whole number of them.
fn subnormal() -> impl Strategy<Value = Vec<f64>> {
    vec(0_u64..4000, 1..=16).prop_map(|steps| steps.into_iter().map(f64::from_bits).collect())
}

/// Every magnitude in one row.
fn any_magnitude() -> impl Strategy<Value = Vec<f64>> {
    let logit = (any::<bool>(), 1.0_f64..10.0, -300_i32..=300).prop_map(|(negative, digits, exponent)| {
        let size: f64 = format!("{digits}e{exponent}").parse().unwrap();
        if negative { -size } else { size }
    });
    vec(logit, 1..=16)
}

/// What a classifier gives: spread over the reals.
pub fn spread(classes: RangeInclusive<usize>) -> impl Strategy<Value = Vec<f64>> {
    (vec(-8.0_f64..8.0, classes), 0.0_f64..3.0)
        .prop_map(|(row, scale)| row.into_iter().map(|logit| logit * scale).collect())
}

/// The same rows with some classes masked, never all.
fn masked(rows: impl Strategy<Value = Vec<f64>>) -> impl Strategy<Value = Vec<f64>> {
    (rows, vec(prop::bool::weighted(0.3), 1..=40)).prop_map(|(mut row, mask)| {
        for label in 0..row.len() {
            if mask[label % mask.len()] {
                row[label] = f64::NEG_INFINITY;
            }
        }
        if row.iter().all(|logit| *logit == f64::NEG_INFINITY) {
            row[0] = 0.0;
        }
        row
    })
}

/// Rows of every kind, up to 300 classes.
pub fn rows() -> BoxedStrategy<Vec<f64>> {
    prop_oneof![
        6 => grid(1..=24),
        2 => grid(25..=300),
        1 => all_tied(),
        1 => signed_zeros(),
        3 => near_ties(),
        3 => extreme(),
        1 => subnormal(),
        2 => any_magnitude(),
        3 => spread(1..=300),
        4 => masked(prop_oneof![grid(1..=24), spread(1..=60), near_ties(), extreme()]),
    ]
    .boxed()
}

/// Rows that survive arithmetic on their logits: on the grid, some masked.
pub fn calm_rows() -> BoxedStrategy<Vec<f64>> {
    prop_oneof![3 => grid(1..=40), 1 => masked(grid(1..=40))].boxed()
}

/// Rows of a thousand classes and more.
pub fn long_rows() -> BoxedStrategy<Vec<f64>> {
    prop_oneof![spread(1000..=1300), grid(1000..=1300), masked(spread(1000..=1100))].boxed()
}

/// A caller's draw, both ends included, or none.
pub fn draws() -> BoxedStrategy<Option<f64>> {
    prop_oneof![
        2 => Just(None),
        1 => prop::sample::select(vec![0.0, -0.0, 0.5, 1.0 - f64::EPSILON / 2.0]).prop_map(Some),
        1 => (0.0_f64..1.0).prop_map(Some),
    ]
    .boxed()
}

/// Several rows of the same classes, with a true label each.
#[derive(Clone, Debug)]
pub struct Batch {
    pub classes: usize,
    pub logits: Vec<f64>,
    pub labels: Vec<u32>,
}

impl Batch {
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn labelled(&self) -> conformax::Labelled<'_, f64> {
        conformax::Logits::new(&self.logits, self.classes).unwrap().labelled(&self.labels).unwrap()
    }

    pub fn row(&self, index: usize) -> &[f64] {
        &self.logits[index * self.classes..][..self.classes]
    }
}

/// Batches on the grid, so that scores of different rows tie.
pub fn batches(classes: RangeInclusive<usize>, len: RangeInclusive<usize>) -> BoxedStrategy<Batch> {
    let logit = prop_oneof![12 => grid_logit(), 1 => Just(f64::NEG_INFINITY)];
    let logit = logit.boxed();
    (classes, len)
        .prop_flat_map(move |(classes, len)| {
            let labels = vec(0..classes as u32, len);
            (vec(logit.clone(), classes * len), labels).prop_map(move |(mut logits, labels)| {
                for row in logits.chunks_exact_mut(classes) {
                    if row.iter().all(|logit| *logit == f64::NEG_INFINITY) {
                        row[0] = 0.0;
                    }
                }
                Batch { classes, logits, labels }
            })
        })
        .boxed()
}
