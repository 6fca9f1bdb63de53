//! Where a score passes its threshold: the root `t` of `‖(z − t)₊‖_δ = q`, enclosed in single precision.
//!
//! Where many labels are within reach of a threshold, the root is found without ranking them. With `x = (z − t)₊/q` a
//! pass gives `S = Σ x^δ` and `D = Σ x^(δ−1)`: how far the norm is from the threshold, and the slope by which the
//! tangent gets there. Half a dozen passes enclose the root so closely that a label seldom lies between the ends.
//!
//! Nothing here decides a label that is near the threshold: each end is on its side by more than [`error_in_single`],
//! and what lies between them is left to the definition.

use super::element::{Element, Wide};
use super::gaps::Order;
use super::isa::{Isa, Kernel};
use super::single::{BLOCK, DELTAS_IN_SINGLE, THRESHOLDS_IN_SINGLE, WIDTH, error_in_single, fold, power};
use super::{math, smaller, whole};

/// Scores pass the threshold between two logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Boundary<W> {
    /// Labels from here up are in the set.
    pub inside: W,
    /// Labels below are not; `outside ≤ inside`.
    pub outside: W,
}

/// How close to the root an end has to be to be left there, in units of `S`.
const CLOSE: f64 = 2e-3;

/// Where the tangent undershoots, the next look is this much of a step beyond: one on the other side ends the search.
const BEYOND: f64 = 0.1;

/// Far more passes than any search needs that gets anywhere.
const MOST_PASSES: usize = 32;

/// Encloses the root for the labels of a row whose maximum is `max`, or `None` where single precision may not do.
pub(crate) fn boundary<T: Element>(
    row: &[T],
    max: f64,
    threshold: f64,
    order: Order,
) -> Option<Boundary<T::Wide>> {
    let (delta, inverse) = in_single(order, threshold)?;
    let error = error_in_single(delta);
    // Every score is at least the gap to the maximum, as rounded: a gap beyond the number after the threshold, exactly,
    // is none that rounds to the threshold, however fine the logits are for their distance.
    let mut outside = T::Wide::at_most((max - threshold.next_up()).next_down());
    let mut inside = T::Wide::nearest(max);
    let lowest = Isa::best().dispatch(Min(row));
    let mut pivot = if lowest > outside { lowest } else { outside };
    // How large the sum was at either end.
    let (mut above, mut below) = (f64::INFINITY, 0.0);
    for _ in 0..MOST_PASSES {
        let (sum, slope) = moments(row, pivot, threshold, order);
        if !(slope > 0.0) {
            break;
        }
        if sum <= 1.0 - error {
            (inside, below) = (pivot, sum);
        } else if sum >= 1.0 + error {
            (outside, above) = (pivot, sum);
        }
        let step = |sum: f64, slope: f64| {
            let rest = match order {
                Order::One => 1.0,
                Order::Two => sum.sqrt(),
                _ => sum / math::pow(sum, inverse),
            };
            threshold * (sum - rest) / slope
        };
        if delta >= 1.0 && sum >= 0.5 {
            // A norm is convex, so its tangent meets the threshold before it does: all that lies below is out. Taken at
            // the end of the error where it is least steep or least high.
            let least = sum * (1.0 - error);
            let slope = slope * if least > 1.0 { 1.0 + error } else { 1.0 - error };
            let met = T::Wide::at_most((pivot.to_f64() + step(least, slope)).next_down());
            if met > outside && met < inside {
                outside = met;
            }
            above = if (sum - 1.0).abs() <= CLOSE { 1.0 } else { above };
        }
        if above - below <= 2.0 * CLOSE {
            break;
        }
        let step = step(sum, slope);
        let margin = 4.0 * error * threshold / (delta * slope);
        let next = match sum {
            1.0.. => pivot.to_f64() + (1.0 + BEYOND) * step + margin,
            _ if delta >= 1.0 => pivot.to_f64() + step + margin,
            _ => pivot.to_f64() + step - margin,
        };
        let within = |pivot: T::Wide| pivot > outside && pivot < inside;
        // Where logits are far apart for their type, the next look may be at the same pivot.
        let last = pivot;
        pivot = T::Wide::nearest(next);
        pivot = if pivot == last { last.following() } else { pivot };
        if !within(pivot) {
            pivot = T::Wide::nearest(f64::midpoint(outside.to_f64(), inside.to_f64()));
        }
        if !within(pivot) {
            break;
        }
    }
    Some(Boundary { inside, outside })
}

/// δ and its inverse, unless single precision may not do.
fn in_single(order: Order, threshold: f64) -> Option<(f64, f64)> {
    order
        .delta()
        .filter(|(delta, _)| DELTAS_IN_SINGLE.contains(delta) && THRESHOLDS_IN_SINGLE.contains(&threshold))
}

/// Whether a label with this logit is in, where a sum in single precision can tell. Its gap to the maximum must not
/// exceed the threshold by more than rounding.
pub(crate) fn clearly_within<T: Element>(row: &[T], logit: T, threshold: f64, order: Order) -> Option<bool> {
    let error = error_in_single(in_single(order, threshold)?.0);
    match moments(row, logit.widen(), threshold, order).0 {
        sum if sum <= 1.0 - error => Some(true),
        sum if sum >= 1.0 + error => Some(false),
        _ => None,
    }
}

struct Min<'a, T>(&'a [T]);

impl<T: Element> Kernel for Min<'_, T> {
    type Output = T::Wide;

    #[inline(always)]
    fn run(self) -> T::Wide {
        let mut least = [T::Wide::INFINITY; WIDTH];
        let (chunks, rest) = self.0.as_chunks::<WIDTH>();
        for chunk in chunks {
            for lane in 0..WIDTH {
                least[lane] = smaller(chunk[lane].widen(), least[lane]);
            }
        }
        let all = whole(least).into_iter().chain(rest.iter().map(|logit| logit.widen()));
        all.fold(T::Wide::INFINITY, |a, b| smaller(b, a))
    }
}

/// `Σ x^δ` and `Σ x^(δ−1)` for `x = (z − pivot)₊/threshold`, over the labels ahead of the pivot.
pub(super) fn moments<T: Element>(row: &[T], pivot: T::Wide, threshold: f64, order: Order) -> (f64, f64) {
    let (isa, scale) = (Isa::best(), (1.0 / threshold) as f32);
    match order {
        Order::Max | Order::One => isa.dispatch(Moments { row, pivot, scale, powers: Gaps }),
        Order::Two => isa.dispatch(Moments { row, pivot, scale, powers: Squares }),
        Order::Other { delta: 0.5, .. } => isa.dispatch(Moments { row, pivot, scale, powers: Roots }),
        Order::Other { delta, .. } => {
            isa.dispatch(Moments { row, pivot, scale, powers: Powers((delta - 1.0) as f32) })
        }
    }
}

/// `x^δ` and `x^(δ−1)`, both 0 at 0. A closure would not be inlined where the loop is compiled for another instruction
/// set.
pub(super) trait BothPowers: Copy {
    fn of(self, x: f32) -> (f32, f32);
}

#[derive(Clone, Copy)]
pub(super) struct Gaps;

impl BothPowers for Gaps {
    #[inline(always)]
    fn of(self, x: f32) -> (f32, f32) {
        (x, if x > 0.0 { 1.0 } else { 0.0 })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Squares;

impl BothPowers for Squares {
    #[inline(always)]
    fn of(self, x: f32) -> (f32, f32) {
        (x * x, x)
    }
}

/// δ = ½: one instruction, and rounded once.
#[derive(Clone, Copy)]
struct Roots;

impl BothPowers for Roots {
    #[inline(always)]
    fn of(self, x: f32) -> (f32, f32) {
        let root = x.sqrt();
        let inverse = 1.0 / root;
        (root, if x > 0.0 { inverse } else { 0.0 })
    }
}

/// With δ − 1.
#[derive(Clone, Copy)]
struct Powers(f32);

impl BothPowers for Powers {
    #[inline(always)]
    fn of(self, x: f32) -> (f32, f32) {
        let power = power(x, self.0);
        let power = if x > 0.0 { power } else { 0.0 };
        (x * power, power)
    }
}

struct Moments<'a, T: Element, P> {
    row: &'a [T],
    pivot: T::Wide,
    scale: f32,
    powers: P,
}

impl<T: Element, P: BothPowers> Kernel for Moments<'_, T, P> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let mut total = (0.0, 0.0);
        for block in self.row.chunks(BLOCK) {
            let (mut sums, mut slopes) = ([0.0; WIDTH], [0.0; WIDTH]);
            let (chunks, rest) = block.as_chunks::<WIDTH>();
            for chunk in chunks {
                self.add(&mut sums, &mut slopes, |lane| chunk[lane].widen());
            }
            if !rest.is_empty() {
                let mut padded = [T::Wide::NEG_INFINITY; WIDTH];
                for (wide, logit) in padded.iter_mut().zip(rest) {
                    *wide = logit.widen();
                }
                self.add(&mut sums, &mut slopes, |lane| padded[lane]);
            }
            total.0 += f64::from(fold(whole(sums)));
            total.1 += f64::from(fold(whole(slopes)));
        }
        total
    }
}

impl<T: Element, P: BothPowers> Moments<'_, T, P> {
    #[inline(always)]
    fn add(&self, sums: &mut [f32; WIDTH], slopes: &mut [f32; WIDTH], logit: impl Fn(usize) -> T::Wide) {
        let (mut ratios, mut powers) = ([0.0; WIDTH], [0.0; WIDTH]);
        for lane in 0..WIDTH {
            let ratio = logit(lane).above(self.pivot) * self.scale;
            ratios[lane] = if ratio > 0.0 { ratio } else { 0.0 };
        }
        for lane in 0..WIDTH {
            (ratios[lane], powers[lane]) = self.powers.of(ratios[lane]);
        }
        for lane in 0..WIDTH {
            sums[lane] += ratios[lane];
        }
        for lane in 0..WIDTH {
            slopes[lane] += powers[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gap_norm;
    use super::*;
    use crate::Gamma;

    const GAMMAS: [f64; 10] = [1.016, 1.1, 1.3, 1.5, 1.6, 1.9, 2.0, 2.1, 2.5, 3.0];

    /// Rows on which a sum in single precision has the hardest time: many equal terms, gaps of every size, huge logits
    /// that differ little, masked classes.
    fn rows() -> Vec<Vec<f32>> {
        let spread = |len: usize, step: f32| -> Vec<f32> {
            (0..len).map(|i| ((i * 7919) % 1013) as f32 * step - 8.0).collect()
        };
        let mut rows = vec![
            vec![0.5; 1000],
            spread(33, 0.01),
            spread(1000, 0.02),
            spread(1100, 1e-6),
            spread(299, 1e4),
            (0..300).map(|i| 1e6 + i as f32 / 16.0).collect(),
            (0..120).map(|i| 2.0_f32.powi(-i)).collect(),
            (0..1100).map(|i| if i == 7 { 9.0 } else { 1.0 / 3.0 }).collect(),
        ];
        let mut masked = spread(100, 0.1);
        masked[..40].fill(f32::NEG_INFINITY);
        rows.push(masked);
        rows
    }

    #[test]
    fn sums_in_single_precision_are_as_close_as_is_said() {
        for row in rows() {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let finite = row.iter().copied().filter(|z| z.is_finite());
            let min = finite.fold(f32::INFINITY, f32::min);
            for gamma in GAMMAS {
                let gamma = Gamma::new(gamma).unwrap();
                let delta = gamma.delta();
                for pivot in [min, min - 1e-3, f32::midpoint(min, max), max - (max - min) / 64.0] {
                    let exact = |q: f64| -> f64 {
                        let ratios = row.iter().map(|z| ((f64::from(*z) - f64::from(pivot)) / q).max(0.0));
                        ratios.map(|x| math::pow(x, delta)).sum()
                    };
                    // The threshold of the pivot itself, so that the sum is 1 as it is where it matters.
                    let q = math::pow(exact(1.0), gamma.inverse_delta());
                    if !THRESHOLDS_IN_SINGLE.contains(&q) {
                        continue;
                    }
                    let (sum, _) = moments(&row, pivot, q, Order::from(gamma));
                    let off = (sum / exact(q) - 1.0).abs();
                    assert!(off <= error_in_single(delta) / 1.5, "{gamma} {pivot} {q}: off by {off:e}");
                }
            }
        }
    }

    #[test]
    fn instruction_sets_agree_to_the_bit() {
        let row = &rows()[2];
        for y in [-0.5_f32, 2.333, 9.0] {
            let sums = Isa::available()
                .into_iter()
                .map(|isa| isa.dispatch(Moments { row, pivot: 1.0, scale: 0.1, powers: Powers(y) }));
            let bits: Vec<_> = sums.map(|(sum, slope)| (sum.to_bits(), slope.to_bits())).collect();
            assert!(bits.iter().all(|b| *b == bits[0]), "{y} {bits:?}");
        }
    }

    /// The ends are where the definition says they are, and few labels lie between them.
    #[test]
    fn encloses_the_threshold_closely() {
        for (index, row) in rows().into_iter().enumerate() {
            let wide: Vec<f64> = row.iter().map(|z| f64::from(*z)).collect();
            let max = wide.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for gamma in GAMMAS {
                let order = Order::from(Gamma::new(gamma).unwrap());
                let score = |z: f64| match z {
                    f64::NEG_INFINITY => f64::INFINITY,
                    z => gap_norm(&row, max, z, order),
                };
                let scores: Vec<f64> = wide.iter().map(|z| score(*z)).collect();
                for of in (0..row.len()).step_by(row.len().div_ceil(9)) {
                    for threshold in [scores[of], scores[of].next_down(), scores[of] * 1.1 + 1e-20] {
                        let narrow = boundary(&row, max, threshold, order);
                        let double = boundary(&wide, max, threshold, order);
                        assert_eq!(
                            narrow.is_some(),
                            THRESHOLDS_IN_SINGLE.contains(&threshold),
                            "{index} {gamma}"
                        );
                        let (Some(narrow), Some(double)) = (narrow, double) else { continue };
                        for (logit, score) in row.iter().zip(&scores) {
                            // Of the labels that the definition is asked for, as a caller does.
                            if *logit >= narrow.outside && *logit < narrow.inside {
                                let within = clearly_within(&row, *logit, threshold, order);
                                assert!(within.is_none_or(|within| within == (*score <= threshold)));
                            }
                        }
                        // One that is clear of its threshold is told apart.
                        let (own, at) = (scores[of], row[of]);
                        if own > 0.0 && own < f64::INFINITY && THRESHOLDS_IN_SINGLE.contains(&(own * 0.9)) {
                            assert_eq!(clearly_within(&row, at, own * 1.1, order), Some(true));
                            assert_eq!(clearly_within(&row, at, own * 0.9, order), Some(false));
                        }
                        let ends = [
                            (f64::from(narrow.outside), f64::from(narrow.inside)),
                            (double.outside, double.inside),
                        ];
                        for (outside, inside) in ends {
                            assert!(outside <= inside);
                            for (z, score) in wide.iter().zip(&scores) {
                                assert!(*z < inside || *score <= threshold, "{index} {gamma} {threshold:e}");
                                assert!(*z >= outside || *score > threshold, "{index} {gamma} {threshold:e}");
                            }
                            let mut open: Vec<f64> =
                                wide.iter().copied().filter(|z| *z >= outside && *z < inside).collect();
                            open.sort_by(f64::total_cmp);
                            open.dedup();
                            // In two of the rows labels are closer than any sum in single precision can tell.
                            let most = if matches!(index, 3 | 6) { row.len() } else { 24 };
                            assert!(open.len() <= most, "{index} {gamma} {threshold:e}: {} open", open.len());
                        }
                    }
                }
            }
        }
    }
}
