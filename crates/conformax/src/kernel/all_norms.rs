//! The norms of the gaps over every label of a row, each with the bits of [`gap_norm`].
//!
//! A norm is a sum over lanes in the order of the row, so sums down a ranking have other bits as a rule. They have the
//! same where nothing is rounded: logits are multiples of some power of two, `u`, so are gaps, and squares of gaps are
//! multiples of `u²`. Below `2⁵³` of these every sum is exact, in whatever order. So the norms of the first labels are
//! read off one walk down the ranking, and those of the next off a walk that keeps lanes apart, whose sums are exact
//! for longer than their total is. What is left is summed up as the definition does it, many labels at a time.

use super::element::Element;
use super::gaps::{Order, SQUARES_ARE_SAFE, gap_norm};
use super::isa::{Isa, Kernel};
use super::{LANES, larger, math, smaller, sum_lanes, whole};

/// Writes to the place of each label of `ranked` the norm of the gaps over its logit. These are the labels of a row
/// with finite logits, best first, and `max` is its maximum.
pub(crate) fn all_norms<T: Element>(row: &[T], ranked: &[u32], max: f64, order: Order, out: &mut [f64]) {
    all_norms_on(Isa::best(), row, ranked, max, order, out);
}

fn all_norms_on<T: Element>(isa: Isa, row: &[T], ranked: &[u32], max: f64, order: Order, out: &mut [f64]) {
    let logits: Vec<f64> = ranked.iter().map(|label| row[*label as usize].to_f64()).collect();
    let largest = |logit: &f64| max - logit;
    // Labels on top, and those whose gaps overflow or whose squares may, ask for themselves.
    let is_plain = |logit: &f64| match order {
        Order::Max => false,
        Order::One | Order::Other { .. } => largest(logit) > 0.0 && largest(logit) < f64::INFINITY,
        Order::Two => SQUARES_ARE_SAFE.contains(&largest(logit)),
    };
    let start = logits.iter().position(is_plain).unwrap_or(logits.len());
    let end = logits.iter().rposition(is_plain).map_or(start, |last| last + 1);
    for place in (0..start).chain(end..logits.len()) {
        out[ranked[place] as usize] = gap_norm(row, max, logits[place], order);
    }
    let ranking = Ranking { labels: &ranked[..end], logits: &logits[..end] };
    let mut sums = Vec::with_capacity(end);
    let from = if start == end { end } else { ranking.exact_sums(isa, order, &mut sums) };
    sums.resize(end, 0.0);
    let summed = (ranking, from.max(start)..end, row.len(), &mut sums[..]);
    match order {
        _ if summed.1.is_empty() => {}
        Order::Max => {}
        Order::One => isa.dispatch(Summed::of(summed, Gap)),
        Order::Two => isa.dispatch(Summed::of(summed, Square)),
        Order::Other { delta, .. } => isa.dispatch(Summed::of(summed, Power(delta))),
    }
    isa.dispatch(Roots { max, logits: &logits[start..end], order, sums: &mut sums[start..end] });
    for (label, norm) in ranked[start..end].iter().zip(&sums[start..]) {
        out[*label as usize] = *norm;
    }
}

/// Labels best first, with their logits.
#[derive(Clone, Copy)]
struct Ranking<'a> {
    labels: &'a [u32],
    logits: &'a [f64],
}

impl Ranking<'_> {
    /// Appends the sums of the labels ahead for the first labels, as far down as they are exact; how far that is.
    fn exact_sums(self, isa: Isa, order: Order, sums: &mut Vec<f64>) -> usize {
        if matches!(order, Order::Max | Order::Other { .. }) {
            return 0;
        }
        let unit = common_unit(isa, self.logits);
        // A sum that comes out below this has never been rounded: none of what it was made of is larger, and whatever
        // is this large comes out so.
        let limit = 9_007_199_254_740_992.0 * if order == Order::One { unit } else { unit * unit };
        if limit > 0.0 && limit < f64::INFINITY {
            self.walk(order, limit, sums);
            if sums.len() < self.logits.len() {
                isa.dispatch(LanesDown { ranking: self, order, limit, sums });
            }
        }
        sums.len()
    }

    fn walk(self, order: Order, limit: f64, sums: &mut Vec<f64>) {
        let (mut gaps, mut squares, mut ahead, mut last) = (0.0, 0.0, 0.0, self.logits[0]);
        for logit in self.logits {
            let gap = last - logit;
            squares += gap * (2.0 * gaps + ahead * gap);
            gaps += ahead * gap;
            ahead += 1.0;
            last = *logit;
            let sum = if order == Order::One { gaps } else { squares };
            if !(sum < limit) {
                return;
            }
            sums.push(sum);
        }
    }
}

/// The largest power of two that all of these numbers are multiples of; ∞ if all are zero.
fn common_unit(isa: Isa, numbers: &[f64]) -> f64 {
    isa.dispatch(CommonUnit(numbers))
}

struct CommonUnit<'a>(&'a [f64]);

impl Kernel for CommonUnit<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let (chunks, rest) = self.0.as_chunks();
        let mut least = [f64::INFINITY; LANES];
        for chunk in chunks {
            let chunk: &[f64; LANES] = chunk;
            for lane in 0..LANES {
                least[lane] = smaller(last_digit(chunk[lane]), least[lane]);
            }
        }
        let all = whole(least).into_iter().chain(rest.iter().map(|number| last_digit(*number)));
        all.fold(f64::INFINITY, |a, b| smaller(b, a))
    }
}

/// What the last digit of a number that is not zero stands for; ∞ for zero.
#[inline(always)]
fn last_digit(number: f64) -> f64 {
    const FRACTION: u64 = (1 << (f64::MANTISSA_DIGITS - 1)) - 1;
    let (size, bits) = (number.abs(), number.abs().to_bits());
    // Without the last bit that is set. Powers of two have none but in the exponent.
    let rest = f64::from_bits(bits & bits.wrapping_sub(1));
    let digit = if bits & FRACTION == 0 { size } else { size - rest };
    if digit > 0.0 { digit } else { f64::INFINITY }
}

/// The walk with the sums of each lane. Sums that are known already are not made again.
struct LanesDown<'a, 'b> {
    ranking: Ranking<'a>,
    order: Order,
    limit: f64,
    sums: &'b mut Vec<f64>,
}

impl Kernel for LanesDown<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { ranking: Ranking { labels, logits }, order, limit, sums } = self;
        let known = sums.len();
        let (mut gaps, mut squares, mut ahead) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let mut last = logits[0];
        for (place, (label, logit)) in labels.iter().zip(logits).enumerate() {
            let gap = last - logit;
            last = *logit;
            for lane in 0..LANES {
                squares[lane] += gap * (2.0 * gaps[lane] + ahead[lane] * gap);
            }
            for lane in 0..LANES {
                gaps[lane] += ahead[lane] * gap;
            }
            ahead[*label as usize % LANES] += 1.0;
            if place < known {
                continue;
            }
            let lanes = if order == Order::One { gaps } else { squares };
            let mut most = lanes[0];
            for lane in lanes {
                most = larger(lane, most);
            }
            if !(most < limit) {
                return;
            }
            sums.push(sum_lanes(lanes));
        }
    }
}

/// What a gap adds to a sum; nothing where it is zero. A closure would not be inlined where the loop is compiled for
/// another instruction set.
trait Term: Copy {
    fn of(self, gap: f64, largest: f64) -> f64;
}

#[derive(Clone, Copy)]
struct Gap;

impl Term for Gap {
    #[inline(always)]
    fn of(self, gap: f64, _: f64) -> f64 {
        gap
    }
}

#[derive(Clone, Copy)]
struct Square;

impl Term for Square {
    #[inline(always)]
    fn of(self, gap: f64, _: f64) -> f64 {
        gap * gap
    }
}

/// With δ.
#[derive(Clone, Copy)]
struct Power(f64);

impl Term for Power {
    #[inline(always)]
    fn of(self, gap: f64, largest: f64) -> f64 {
        math::pow_unit(gap / largest, self.0)
    }
}

/// Labels whose sums are made together.
const TOGETHER: usize = 32;

/// The sums of some places, from the worst up. The labels of a lane are linked in the order of the row; those of places
/// that are done are ahead of nobody left and are taken out.
struct Summed<'a, 'b, F> {
    ranking: Ranking<'a>,
    places: std::ops::Range<usize>,
    classes: usize,
    term: F,
    sums: &'b mut [f64],
}

#[derive(Clone, Copy)]
struct Node {
    logit: f64,
    next: u32,
    before: u32,
}

impl<'a, 'b, F: Term> Summed<'a, 'b, F> {
    fn of(
        (ranking, places, classes, sums): (Ranking<'a>, std::ops::Range<usize>, usize, &'b mut [f64]),
        term: F,
    ) -> Self {
        Self { ranking, places, classes, term, sums }
    }

    /// A node for each label and, behind them, one for each lane: the first and the last of its labels come after it
    /// and before it.
    fn nodes(&self) -> Vec<Node> {
        const NONE: u32 = u32::MAX;
        let end = self.classes as u32;
        let mut nodes: Vec<Node> =
            (0..end + LANES as u32).map(|at| Node { logit: 0.0, next: at, before: NONE }).collect();
        for (label, logit) in self.ranking.labels.iter().zip(self.ranking.logits) {
            nodes[*label as usize] = Node { logit: *logit, next: NONE, before: 0 };
        }
        let mut last: [u32; LANES] = std::array::from_fn(|lane| end + lane as u32);
        for label in 0..end {
            let last = &mut last[label as usize % LANES];
            if nodes[label as usize].next == NONE {
                nodes[*last as usize].next = label;
                nodes[label as usize].before = *last;
                *last = label;
            }
        }
        for (lane, last) in last.into_iter().enumerate() {
            let lane = self.classes + lane;
            nodes[last as usize].next = lane as u32;
            nodes[lane].before = last;
        }
        nodes
    }
}

impl<F: Term> Kernel for Summed<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut nodes = self.nodes();
        let Self { ranking: Ranking { labels, logits }, places, classes, term, sums } = self;
        let mut end = places.end;
        while end > places.start {
            let first = places.start.max(end.saturating_sub(TOGETHER));
            let (mut pivots, mut largest) = ([logits[first]; TOGETHER], [0.0; TOGETHER]);
            pivots[..end - first].copy_from_slice(&logits[first..end]);
            for i in 0..TOGETHER {
                largest[i] = logits[0] - pivots[i];
            }
            let mut lanes = [[0.0; TOGETHER]; LANES];
            for lane in 0..LANES {
                let mut all = [0.0; TOGETHER];
                let mut at = nodes[classes + lane].next as usize;
                while at < classes {
                    let node = nodes[at];
                    let mut gaps = [0.0; TOGETHER];
                    for i in 0..TOGETHER {
                        let gap = node.logit - pivots[i];
                        gaps[i] = if gap > 0.0 { gap } else { 0.0 };
                    }
                    for i in 0..TOGETHER {
                        all[i] += term.of(gaps[i], largest[i]);
                    }
                    at = node.next as usize;
                }
                lanes[lane] = all;
            }
            for half in [8, 4, 2, 1] {
                for lane in 0..half {
                    for i in 0..TOGETHER {
                        lanes[lane][i] += lanes[lane + half][i];
                    }
                }
            }
            sums[first..end].copy_from_slice(&lanes[0][..end - first]);
            for label in &labels[first..end] {
                let Node { next, before, .. } = nodes[*label as usize];
                nodes[before as usize].next = next;
                nodes[next as usize].before = before;
            }
            end = first;
        }
    }
}

/// Norms of sums, in their place.
struct Roots<'a, 'b> {
    max: f64,
    logits: &'a [f64],
    order: Order,
    sums: &'b mut [f64],
}

impl Kernel for Roots<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.order {
            Order::Max | Order::One => {}
            Order::Two => {
                for sum in self.sums {
                    *sum = sum.sqrt();
                }
            }
            Order::Other { inverse, .. } => {
                for (sum, logit) in self.sums.iter_mut().zip(self.logits) {
                    let largest = self.max - logit;
                    *sum = larger(largest * math::pow(*sum, inverse), largest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: [Order; 5] = [
        Order::Max,
        Order::One,
        Order::Two,
        Order::Other { delta: 10.0, inverse: 0.1 },
        Order::Other { delta: 0.5, inverse: 2.0 },
    ];

    fn draw(seed: u32) -> f64 {
        (f64::from(seed) * 0.618_033_988_749_894_9).fract()
    }

    fn power_of_two(exponent: i32) -> f64 {
        f64::from_bits(((1023 + exponent) as u64) << 52)
    }

    fn ranked<T: Element>(row: &[T]) -> Vec<u32> {
        let mut ranked: Vec<u32> = (0..row.len() as u32).collect();
        ranked.retain(|label| row[*label as usize].to_f64() > f64::NEG_INFINITY);
        super::super::sort_best_first(row, &mut ranked);
        ranked
    }

    fn same<T: Element>(row: &[T], what: &str) {
        let ranked = ranked(row);
        let max = row[ranked[0] as usize].to_f64();
        for order in ORDERS {
            for isa in Isa::available() {
                let mut found = vec![f64::INFINITY; row.len()];
                all_norms_on(isa, row, &ranked, max, order, &mut found);
                for (label, (logit, found)) in row.iter().zip(found).enumerate() {
                    let wanted = match logit.to_f64() {
                        f64::NEG_INFINITY => f64::INFINITY,
                        logit => gap_norm(row, max, logit, order),
                    };
                    let equal = found.to_bits() == wanted.to_bits();
                    assert!(equal, "{what}, {order:?}, {isa:?}, label {label}: {found:e} for {wanted:e}");
                }
            }
        }
    }

    /// How many of a row's first sums are exact, of how many.
    fn exact(row: &[f64], order: Order) -> (usize, usize) {
        let labels = ranked(row);
        let logits: Vec<f64> = labels.iter().map(|label| row[*label as usize]).collect();
        let mut sums = Vec::new();
        Ranking { labels: &labels, logits: &logits }.exact_sums(Isa::best(), order, &mut sums);
        (sums.len(), labels.len())
    }

    fn rows() -> Vec<Vec<f64>> {
        let spread =
            |len: u32, by: f64| -> Vec<f64> { (0..len).map(|i| draw(i + len) * by - by / 2.0).collect() };
        let mut rows: Vec<Vec<f64>> =
            [1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 333].map(|len| spread(len, 20.0)).into();
        // Multiples of powers of two, with ties.
        for digits in [1.0, 64.0, 1024.0, 65_536.0, 16_777_216.0] {
            rows.push(spread(200, 20.0).iter().map(|z| (z * digits).round() / digits).collect());
        }
        for scale in [5e-324, 1e-310, 1e-250, 1e-150, 1e-141, 1e139, 1e145, 1e200, 1e306] {
            rows.push(spread(70, 20.0).iter().map(|z| z.round() * scale).collect());
            rows.push(spread(50, 3.0).iter().map(|z| z * scale).collect());
        }
        rows.push(vec![-0.0; 40]);
        rows.push((0..60).map(|i| if i % 3 == 0 { 0.0 } else { -0.0 }).chain([1.5]).collect());
        // Huge and tiny gaps together.
        rows.push((0..90).map(|i| power_of_two(23 * (i % 80) - 900)).collect());
        rows.push((0..90).map(|i| f64::from_bits(1.0_f64.to_bits() + i % 11)).collect());
        let mut masked = spread(150, 9.0);
        masked[20..90].fill(f64::NEG_INFINITY);
        rows.push(masked);
        // One lane has all that is ahead.
        rows.push((0..320).map(|i| if i % 16 == 5 { draw(i) } else { -draw(i) }).collect());
        rows
    }

    #[test]
    fn norms_of_all_labels_have_the_bits_of_each() {
        for (index, row) in rows().iter().enumerate() {
            same(row, &format!("row {index}"));
            let single: Vec<f32> = row.iter().map(|z| *z as f32).collect();
            if single.iter().all(|z| *z < f32::INFINITY) && single.iter().any(|z| *z > f32::NEG_INFINITY) {
                same(&single, &format!("row {index} in f32"));
                #[cfg(feature = "half")]
                same(&single.iter().map(|z| half::bf16::from_f32(*z)).collect::<Vec<_>>(), "bf16");
            }
        }
    }

    /// Rows of whole numbers whose sums pass 2⁵³ on the way down: there the total is rounded first, and lanes later.
    #[test]
    fn sums_at_the_edge_of_exactness_have_the_bits_of_each() {
        let mut seen = [false; 3];
        for bits in 40..=53 {
            for (classes, order) in [(40, Order::One), (300, Order::One), (40, Order::Two), (300, Order::Two)]
            {
                // Of squares, gaps have half as many bits.
                let size = power_of_two(if order == Order::Two { bits / 2 } else { bits });
                for scale in [1.0, power_of_two(-300), power_of_two(300)] {
                    let row: Vec<f64> = (0..classes).map(|i| (draw(i) * size).round() * scale).collect();
                    same(&row, &format!("{bits} bits, {classes} classes"));
                    let (exact, all) = exact(&row, order);
                    let total = {
                        let ranked = ranked(&row);
                        let last = row[*ranked.last().unwrap() as usize];
                        let gaps = row.iter().map(|z| (z - last) / scale);
                        gaps.map(|gap| if order == Order::Two { gap * gap } else { gap }).sum::<f64>()
                    };
                    // All by the total, some by their lanes, some by neither.
                    let is_exact = total < 9e15;
                    assert!(!is_exact || exact == all, "{bits} {classes} {order:?}: {exact} of {all}");
                    seen[0] |= is_exact;
                    seen[1] |= total > 9.1e15 && exact == all;
                    seen[2] |= exact < all;
                }
            }
        }
        assert_eq!(seen, [true; 3]);
    }

    /// Right at the edge: totals one below 2⁵³ units, at it and one above, of one lane and of several.
    #[test]
    fn a_sum_is_exact_below_two_to_the_53() {
        let edge = 9_007_199_254_740_992.0;
        for lanes in [1_usize, 2, 16] {
            for (total, fits) in [(edge - 1.0, true), (edge, lanes > 1), (edge + 2.0, lanes > 1)] {
                let mut row = vec![0.0; 40 * LANES];
                // A gap of one unit keeps the others from having more in common.
                let parts = lanes as f64;
                let each = (total / parts).floor();
                for lane in 0..lanes {
                    row[LANES + lane] = each;
                }
                row[LANES] += total - each * parts - 1.0;
                row[3 * LANES] = 1.0;
                same(&row, &format!("{lanes} lanes, {total}"));
                let (found, all) = exact(&row, Order::One);
                assert_eq!(found == all, fits, "{lanes} lanes, {total}: {found} of {all}");
            }
        }
    }

    #[test]
    fn finds_the_unit_that_numbers_have_in_common() {
        for isa in Isa::available() {
            let unit = |numbers: &[f64]| common_unit(isa, numbers);
            assert_eq!(unit(&[3.0, -0.5, 1024.0]), 0.5);
            assert_eq!(unit(&[-12.0, 0.0, 24.0]), 4.0);
            assert_eq!(unit(&[0.0, -0.0]), f64::INFINITY);
            assert_eq!(unit(&[5e-324, 1.0]), 5e-324);
            assert_eq!(unit(&[-f64::from_bits(12)]), f64::from_bits(4));
            assert_eq!(unit(&[f64::MIN_POSITIVE]), f64::MIN_POSITIVE);
            assert_eq!(unit(&[3.0 * f64::MIN_POSITIVE / 4.0]), f64::MIN_POSITIVE / 4.0);
            assert_eq!(unit(&[power_of_two(1023), f64::MAX]), power_of_two(971));
            assert_eq!(unit(&[0.1]), power_of_two(-55));
            let mut many = vec![96.0; 40];
            many[23] = 2.5;
            assert_eq!(unit(&many), 0.5);
        }
    }
}
