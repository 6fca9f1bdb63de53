use super::super::{error_in_single, math};
use super::*;

const ROUNDED: f64 = 1e-8;

/// Every growth at a distance, with the limits that a score would give it.
fn all_bounds(distance: f64) -> Vec<Bounds> {
    let bounds = |growth, limit: f64, error: f64| {
        let (inside, outside) = (limit * (1.0 - error), limit * (1.0 + error));
        Bounds { growth, limits: Limit { distance, inside, outside } }
    };
    let mut all = vec![bounds(Growth::Max, 0.0, 0.0)];
    if distance > 0.0 {
        all.push(bounds(Growth::Sum, distance, ROUNDED));
        all.push(bounds(Growth::Squares, distance * distance, ROUNDED));
        all.push(bounds(Growth::Roots, 1.0, error_in_single(0.5)));
        all.push(bounds(Growth::Unknown, 0.0, 0.0));
        for delta in [0.75, 1.5, 3.25, 20.0] {
            all.push(bounds(Growth::Powers(delta), 1.0, error_in_single(f64::from(delta))));
        }
    }
    all
}

/// All labels up to 1 below the best.
fn near_ones() -> Bounds {
    Bounds { growth: Growth::Max, limits: Limit { distance: 1.0, inside: 0.0, outside: 0.0 } }
}

/// How far a label with these gaps has grown, over its limit.
fn grown(gaps: &[f64], bounds: Bounds) -> f64 {
    let ratios = gaps.iter().map(|gap| gap / bounds.limits.distance);
    match bounds.growth {
        _ if gaps.len() < 2 => 0.0,
        Growth::Max => 0.0,
        Growth::Sum => ratios.sum(),
        Growth::Squares => ratios.map(|x| x * x).sum(),
        Growth::Roots => ratios.map(f64::sqrt).sum(),
        Growth::Powers(delta) => ratios.map(|x| math::pow(x, f64::from(delta))).sum(),
        Growth::Unknown => 1.0,
    }
}

/// The set of one row, label by label, and whether all of it is clear: no label is close to its limit, and there are
/// not too many.
fn plain<T: Element>(row: &[T], bounds: Bounds) -> (Vec<u32>, bool) {
    let logit = |label: usize| row[label].to_f64();
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|a, b| logit(*b).partial_cmp(&logit(*a)).unwrap().then(a.cmp(b)));
    let (mut set, mut clear) = (Vec::new(), true);
    for (place, label) in order.iter().enumerate() {
        let gaps: Vec<f64> = order[..place].iter().map(|other| logit(*other) - logit(*label)).collect();
        if gaps.first().is_some_and(|gap| !(*gap <= bounds.limits.distance)) {
            break;
        }
        let grown = grown(&gaps, bounds);
        clear &= place < 2 || bounds.growth == Growth::Max || (grown - 1.0).abs() > 1e-4;
        if grown > 1.0 {
            break;
        }
        set.push(*label as u32);
    }
    clear &= set.len() < MOST || row.len() == MOST;
    // Different logits may be one key.
    let key = |label: usize| f64::from_bits(logit(label).to_bits() & !(NARROW as u64 - 1));
    clear &= order.windows(2).all(|pair| key(pair[0]) != key(pair[1]) || logit(pair[0]) == logit(pair[1]));
    (set, clear)
}

fn found(leaders: &Leaders) -> Option<Vec<u32>> {
    let labels = leaders.first.into_iter().chain(leaders.rest());
    leaders.len().map(|len| labels.take(len).collect())
}

/// Rows of every kind: spread, tied, masked, on both sides of zero, far apart and close together.
fn rows(count: usize, classes: usize) -> Vec<f64> {
    let mut data: Vec<f64> = (0..count * classes).map(|i| ((i * 7919) % 1013) as f64 / 64.0 - 8.0).collect();
    for (index, row) in data.chunks_mut(classes).enumerate() {
        match index % 8 {
            1 => row.fill(-0.0),
            2 => row.iter_mut().for_each(|z| *z = z.round() / 2.0),
            3 => row.iter_mut().skip(1).step_by(2).for_each(|z| *z = f64::NEG_INFINITY),
            4 => row.iter_mut().for_each(|z| *z = *z / 512.0 - 0.01),
            5 => row.iter_mut().enumerate().for_each(|(k, z)| *z = [-0.0, 0.0, -5e-324, *z][k % 4]),
            6 => row.iter_mut().for_each(|z| *z = z.abs().sqrt().round() * -1e-3),
            7 => {
                row.iter_mut().enumerate().for_each(|(k, z)| *z = if k % 3 == 1 { -5e-324 } else { z.abs() })
            }
            _ => {}
        }
    }
    data
}

fn decides_as_the_plain_rule<T: Element>(data: &[T], classes: usize) {
    for bounds in [0.0, 0.02, 0.4, 3.0, 20.0].into_iter().flat_map(all_bounds) {
        let mut all = Vec::new();
        for isa in Isa::available() {
            let mut out = Vec::new();
            isa.dispatch(Narrow { data, classes, bounds, out: &mut out });
            all.push(out);
        }
        assert!(all.iter().all(|out| *out == all[0]), "instruction sets agree: {classes} {bounds:?}");
        let whole = data.len() / classes / ROWS * ROWS;
        for (index, (row, leaders)) in data.chunks(classes).zip(&all[0]).enumerate() {
            let (set, clear) = plain(row, bounds);
            match found(leaders) {
                Some(found) => assert_eq!(found, set, "{classes} {bounds:?} {row:?}"),
                None => assert!(!clear || index >= whole, "left open: {classes} {bounds:?} {row:?}"),
            }
        }
        assert!(all[0][whole..].iter().all(|leaders| leaders.len().is_none()));
    }
}

/// With one limit for all labels, rows that are decided have the set they have with that limit; and a label whose own
/// limit lets nobody in is missing from it.
fn decides_label_by_label<T: Element>(data: &[T], classes: usize) {
    let never = Limit { distance: -1.0, inside: -1.0, outside: -1.0 };
    for bounds in [0.0, 0.02, 0.4, 3.0, 20.0].into_iter().flat_map(all_bounds) {
        let widest = bounds.limits;
        for step in [1, 2] {
            let each = (0..NARROW).map(|label| if label % step == 0 { widest } else { never });
            let limits = &LimitsByLabel::new(each, widest);
            let mut all = Vec::new();
            for isa in Isa::available() {
                let (mut out, growth) = (Vec::new(), bounds.growth);
                isa.dispatch(Narrow { data, classes, bounds: Bounds { growth, limits }, out: &mut out });
                all.push(out);
            }
            assert!(all.iter().all(|out| *out == all[0]), "instruction sets agree: {classes} {bounds:?}");
            for (row, leaders) in data.chunks(classes).zip(&all[0]) {
                let Some(found) = found(leaders) else { continue };
                let mut wanted = plain(row, bounds).0;
                wanted.retain(|label| (*label as usize).is_multiple_of(step));
                assert_eq!(found, wanted, "{classes} {bounds:?} {row:?}");
            }
        }
    }
}

#[test]
fn decides_what_the_bounds_decide_on_every_instruction_set() {
    // Miri takes its time, and sees no more in many classes than in a few.
    let widths: &[usize] = if cfg!(miri) { &[1, 11] } else { &[1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 19, 32] };
    let count = if cfg!(miri) { 9 } else { 43 };
    for &classes in widths {
        let data = rows(count, classes);
        let singles: Vec<f32> = data.iter().map(|z| *z as f32).collect();
        decides_as_the_plain_rule(&data, classes);
        decides_as_the_plain_rule(&singles, classes);
        decides_label_by_label(&data, classes);
        decides_label_by_label(&singles, classes);
        #[cfg(feature = "half")]
        decides_as_the_plain_rule(&data.iter().map(|z| half::f16::from_f64(*z)).collect::<Vec<_>>(), classes);
    }
}

/// Logits that differ in bits where keys hold labels are left to a closer look, wherever they stand; where they are
/// equal there is nothing to see.
#[test]
fn logits_that_keys_cannot_tell_apart_are_left_open() {
    let bounds = near_ones();
    for (top, next) in [(1.0_f64, 0.5_f64), (-1.0, -1.5), (0.3, 0.1)] {
        for close in [next.next_down(), next] {
            let mut data = vec![-9.0; ROWS * 12];
            for (index, row) in data.chunks_mut(12).enumerate() {
                // Below by a hair and before it, so that keys have them in the wrong order.
                (row[index], row[index + 2], row[index + 4]) = (close, next, top);
            }
            for isa in Isa::available() {
                let mut out = Vec::new();
                isa.dispatch(Narrow { data: &data, classes: 12, bounds, out: &mut out });
                for (row, leaders) in data.chunks(12).zip(&out) {
                    let told_apart = close == next || close.to_bits() ^ next.to_bits() >= NARROW as u64;
                    let wanted = told_apart.then(|| plain(row, bounds).0);
                    assert_eq!(found(leaders), wanted, "{isa:?} {row:?}");
                }
            }
        }
    }
}

#[test]
fn leaves_what_may_be_at_fault_to_a_closer_look() {
    let bounds = near_ones();
    for (place, bad) in (0..8).flat_map(|place| [f32::NAN, f32::INFINITY].map(|bad| (place, bad))) {
        for isa in Isa::available() {
            let mut data: Vec<f32> = (0..80).map(|i| ((i * 7919) % 1013) as f32 / 64.0).collect();
            data[place * 10 + 7] = bad;
            data[(place + 1) % 8 * 10..][..10].fill(f32::NEG_INFINITY);
            let mut out = Vec::new();
            isa.dispatch(Narrow { data: &data, classes: 10, bounds, out: &mut out });
            assert!(out[place].len().is_none() && out[(place + 1) % 8].len().is_none());
            assert!(out[(place + 2) % 8].len().is_some());
        }
    }
}
