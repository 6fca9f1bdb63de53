//! Labels against thresholds of their own: those that may be within theirs, settled many at a time.
//!
//! `F(t) = ‖(z − t)₊‖_δ` is the score of a label whose logit is `t`. It falls as `t` rises, and for δ ≥ 1 it is convex:
//! from its value and slope at a pivot, every label's score lies above the tangent there, and between two pivots below
//! the chord. A pass in single precision gives both; a handful of them settles the labels of a row, each with its own
//! threshold, without ranking any.
//!
//! Nothing here decides a label that is near its threshold: a label is settled by more than [`error_in_single`], and
//! the others are left to the definition.

use super::boundary::{BothPowers, Gaps, Squares, moments};
use super::element::{Element, Wide};
use super::gaps::Order;
use super::isa::{Isa, Kernel};
use super::single::{BLOCK, WIDTH, fold};
use super::single::{DELTAS_IN_SINGLE, error_in_single};
use super::{math, smaller, whole};

/// Labels whose outcomes make one word of bits.
const WORD: usize = 32;

/// Outcomes that are put together at once.
const LANES: usize = 8;

/// How far limits are rounded up, relatively: far more than a gap in single precision is rounded.
const LIMIT_SLACK: f64 = 1e-6;

/// Gaps whose squares single precision holds, thousands of them added up, with all their digits.
const GAPS: std::ops::Range<f64> = 1e-12..1e15;

/// Far more passes than labels need that passes can settle.
const MOST_PASSES: usize = 24;

/// A threshold in single precision, rounded up: no label within the threshold has a gap beyond it. None has one within
/// a limit below 0.
pub(crate) fn limit_of(threshold: f64) -> f32 {
    if threshold >= 0.0 { f32::at_least(threshold * (1.0 + LIMIT_SLACK)) } else { -1.0 }
}

/// Labels that may be within their thresholds, with what decides it.
pub(crate) struct Near<T: Element> {
    labels: Vec<u32>,
    logits: Vec<T::Wide>,
    limits: Vec<f32>,
    /// What is known of the row, from the top down.
    knowns: Vec<Known>,
}

impl<T: Element> Default for Near<T> {
    fn default() -> Self {
        Self { labels: Vec::new(), logits: Vec::new(), limits: Vec::new(), knowns: Vec::new() }
    }
}

/// Where a row's scores are compared with the limits of its labels.
#[derive(Clone, Copy)]
pub(crate) struct Scores<'a, T> {
    pub row: &'a [T],
    pub max: f64,
    pub order: Order,
    /// How far, relatively, the definition may be off by its own rounding.
    pub slack: f64,
}

impl<T: Element> Scores<'_, T> {
    fn delta(&self) -> f64 {
        match self.order {
            Order::Max => f64::INFINITY,
            Order::One => 1.0,
            Order::Two => 2.0,
            Order::Other { delta, .. } => delta,
        }
    }

    /// Whether limits up to this one and the scores near them fit single precision.
    pub(crate) fn fit(&self, largest: f64) -> bool {
        largest < GAPS.end && (self.order == Order::Max || DELTAS_IN_SINGLE.contains(&self.delta()))
    }

    /// How far, relatively, norms and slopes may be off here: the norm is a power of the sum, and limits are rounded.
    fn error(&self) -> f64 {
        let delta = self.delta();
        error_in_single(delta) / delta.min(1.0) + self.slack + 2.0 * LIMIT_SLACK
    }

    /// The score at a pivot that is below the maximum by a gap that fits.
    fn known(&self, pivot: T::Wide) -> Known {
        let (row, isa) = (self.row, Isa::best());
        let gap = self.max - pivot.to_f64();
        let (norm, slope) = match self.order {
            Order::Max => (gap, 1.0),
            Order::One => isa.dispatch(Sums { row, pivot, powers: Gaps }),
            Order::Two => {
                let (squares, gaps) = isa.dispatch(Sums { row, pivot, powers: Squares });
                (squares.sqrt(), gaps / squares.sqrt())
            }
            Order::Other { inverse, .. } => {
                let (sum, slope) = moments(row, pivot, gap, self.order);
                let root = math::pow(sum, inverse);
                (gap * root, root / sum * slope)
            }
        };
        Known { pivot: pivot.to_f64(), norm, slope }
    }

    /// A bound of the score of a label that is `below` the pivot: as if every label were ahead by that much more.
    fn most_below(&self, known: Known, below: f64) -> f64 {
        let count = self.row.len() as f64;
        match self.order {
            Order::Two => {
                let ahead = known.norm * (known.norm + 2.0 * below * known.slope);
                (ahead + count * below * below).sqrt()
            }
            // Minkowski's inequality.
            _ => known.norm + below * math::pow(count, 1.0 / self.delta()),
        }
    }

    /// The tangent at the mean of the gaps that matter; `None` where a pass costs more than it saves, or gives no
    /// tangent.
    pub(crate) fn tangent(&self, largest: f64) -> Option<Tangent<T>> {
        if !matches!(self.order, Order::One | Order::Two) {
            return None;
        }
        let (row, max) = (self.row, T::Wide::nearest(self.max));
        let mean = Isa::best().dispatch(MeanGap { row, max, most: f32::nearest(largest) });
        let pivot = T::Wide::nearest(self.max - f64::from(mean));
        let fits = GAPS.contains(&(self.max - pivot.to_f64()));
        fits.then(|| Tangent { pivot, known: self.known(pivot) })
    }

    /// Gathers the labels that may be within their limits: no score is below the gap to the maximum, nor below a
    /// tangent. Of the labels on top, whose score is 0, those within their limit are appended to `out`.
    pub(crate) fn gather(
        &self,
        limits: &[f32],
        tangent: Option<Tangent<T>>,
        near: &mut Near<T>,
        out: &mut Vec<u32>,
    ) {
        near.truncate(0);
        near.knowns.clear();
        near.knowns.push(Known { pivot: self.max, norm: 0.0, slope: 1.0 });
        let (row, max, isa) = (self.row, T::Wide::nearest(self.max), Isa::best());
        match tangent {
            Some(Tangent { pivot, known }) => {
                near.knowns.push(known);
                let Lines { least, rise: [rise, _], .. } = Lines::of(self, &near.knowns, 1, 0.0);
                let floor = Above { pivot, least, rise };
                isa.dispatch(Gather { row, max, limits, floor, labels: &mut near.labels });
            }
            None => isa.dispatch(Gather { row, max, limits, floor: Nothing, labels: &mut near.labels }),
        }
        near.labels.retain(|label| {
            let on_top = row[*label as usize].widen() == max;
            if on_top {
                out.push(*label);
            }
            !on_top
        });
        near.logits.extend(near.labels.iter().map(|label| row[*label as usize].widen()));
        near.limits.extend(near.labels.iter().map(|label| limits[*label as usize]));
        if let Some(Tangent { pivot, .. }) = tangent {
            let lines = Lines::of(self, &near.knowns, 1, near.lowest());
            near.verdicts(pivot, lines, out);
        }
    }

    /// Settles the labels that `gather` found by their own scores in single precision, or by the definition `exact`:
    /// members are appended to `out`.
    pub(crate) fn settle_each(
        &self,
        thresholds: &[f64],
        near: &Near<T>,
        exact: impl Fn(u32) -> f64,
        out: &mut Vec<u32>,
    ) {
        let error = 4.0 * self.error();
        for (label, pivot) in near.labels.iter().zip(&near.logits) {
            let threshold = thresholds[*label as usize];
            let norm = match self.max - pivot.to_f64() {
                gap if GAPS.contains(&gap) => self.known(*pivot).norm,
                _ => f64::NAN,
            };
            let is_in = match norm {
                norm if norm * (1.0 + error) <= threshold => true,
                norm if norm * (1.0 - error) > threshold => false,
                _ => exact(*label) <= threshold,
            };
            if is_in {
                out.push(*label);
            }
        }
    }

    /// Settles the labels that `gather` found: members are appended to `out`. `exact` is the definition; after it was
    /// asked for more than `most` different logits, or where passes lead nowhere, the answer is `false`, and what `out`
    /// got is of no use.
    pub(crate) fn settle(
        &self,
        thresholds: &[f64],
        near: &mut Near<T>,
        most: usize,
        exact: impl Fn(u32) -> f64,
        out: &mut Vec<u32>,
    ) -> bool {
        let mut asked = 0;
        for _ in 0..MOST_PASSES {
            if near.len() == 0 {
                return true;
            }
            let pivot = near.middle();
            if GAPS.contains(&(self.max - pivot.to_f64())) {
                let known = self.known(pivot);
                let place = near.knowns.partition_point(|other| other.pivot > known.pivot);
                near.knowns.insert(place, known);
                let lines = Lines::of(self, &near.knowns, place, near.lowest());
                near.verdicts(pivot, lines, out);
            }
            if !near.logits.contains(&pivot) {
                continue;
            }
            // Labels right at the pivot that are still open.
            let mut score = None;
            let mut kept = 0;
            for place in 0..near.len() {
                if near.logits[place] == pivot {
                    let label = near.labels[place];
                    if *score.get_or_insert_with(|| exact(label)) <= thresholds[label as usize] {
                        out.push(label);
                    }
                } else {
                    near.keep(&mut kept, place);
                }
            }
            near.truncate(kept);
            asked += usize::from(score.is_some());
            if asked > most {
                return false;
            }
        }
        near.len() == 0
    }
}

/// What one pivot says of a row.
#[derive(Clone, Copy)]
pub(crate) struct Tangent<T: Element> {
    pivot: T::Wide,
    known: Known,
}

/// A score, and how fast scores rise below it.
#[derive(Clone, Copy)]
struct Known {
    pivot: f64,
    norm: f64,
    slope: f64,
}

/// What a pivot says of a label that is `d` below it, or `−d` above.
#[derive(Clone, Copy)]
struct Lines {
    /// Scores are at least `least + d·rise`: above the pivot, and below.
    least: f32,
    rise: [f32; 2],
    /// Scores are at most `most + d·climb` where `d` is between `from` and `to`.
    most: f32,
    climb: [f32; 2],
    from: f32,
    to: f32,
}

impl Lines {
    /// The lines of the pivot at `place`, for labels down to the logit `lowest`.
    ///
    /// Norms and slopes are off by the error, relatively. Above the pivot `n − d·s` is the difference of two such
    /// numbers, of which the second is the smaller where the bound says anything: it is off by 2 errors of `n` at most,
    /// and three more make up for the slope being taken too small there, as it must be below the pivot. Single
    /// precision adds five roundings, a hundredth of an error.
    fn of<T: Element>(scores: &Scores<'_, T>, knowns: &[Known], place: usize, lowest: f64) -> Self {
        let error = scores.error();
        let known = knowns[place];
        let least = (known.norm * (1.0 - 6.0 * error)) as f32;
        let upper = |known: Known| known.norm * (1.0 + 4.0 * error);
        let most = (upper(known) + error * known.norm) as f32;
        if scores.delta() < 1.0 {
            // Not convex. By Minkowski's inequality, which is reversed, scores rise by the distance at least; above the
            // pivot they are lower, and that is all.
            let (rise, climb) = ([f32::MAX, (1.0 - error) as f32], [0.0, 0.0]);
            return Self { least, rise, most, climb, from: f32::NEG_INFINITY, to: 0.0 };
        }
        let chord = |from: Known, to: Known| (upper(to) - upper(from)) / (from.pivot - to.pivot);
        let above = knowns[place - 1];
        let (to, below) = match knowns.get(place + 1) {
            Some(below) => (known.pivot - below.pivot, chord(known, *below)),
            None => {
                let to = (known.pivot - lowest).max(0.0);
                let rise = scores.most_below(known, to) * (1.0 + 4.0 * error) - upper(known);
                (to, if to > 0.0 { rise / to } else { 0.0 })
            }
        };
        Self {
            least,
            rise: [(known.slope * (1.0 - 3.0 * error)) as f32; 2],
            most,
            climb: [chord(above, known) as f32, below as f32],
            from: (known.pivot - above.pivot) as f32,
            to: to as f32,
        }
    }
}

impl<T: Element> Near<T> {
    fn len(&self) -> usize {
        self.labels.len()
    }

    pub(crate) fn labels(&self) -> &[u32] {
        &self.labels
    }

    fn keep(&mut self, kept: &mut usize, place: usize) {
        self.labels[*kept] = self.labels[place];
        self.logits[*kept] = self.logits[place];
        self.limits[*kept] = self.limits[place];
        *kept += 1;
    }

    fn truncate(&mut self, len: usize) {
        self.labels.truncate(len);
        self.logits.truncate(len);
        self.limits.truncate(len);
    }

    /// The lowest of their logits.
    pub(crate) fn lowest(&self) -> f64 {
        self.logits.iter().fold(T::Wide::INFINITY, |low, logit| smaller(*logit, low)).to_f64()
    }

    /// The logit nearest to the mean: what is known there says most about the others.
    fn middle(&self) -> T::Wide {
        let sum: f64 = self.logits.iter().map(|logit| logit.to_f64()).sum();
        let mean = sum / self.len() as f64;
        let mut best = (f64::INFINITY, self.logits[0]);
        for logit in &self.logits {
            let distance = (logit.to_f64() - mean).abs();
            best = if distance < best.0 { (distance, *logit) } else { best };
        }
        best.1
    }

    /// Appends the members to `out` and keeps the labels that are open. Free of branches: what a label comes to is a
    /// coin toss, and every label is written to both places, from which the next one takes what is not its own.
    fn verdicts(&mut self, pivot: T::Wide, lines: Lines, out: &mut Vec<u32>) {
        let Lines { least, rise, most, climb, from, to } = lines;
        let (mut kept, mut members) = (0, out.len());
        out.resize(members + self.len() + 1, 0);
        for place in 0..self.len() {
            let d = pivot.above(self.logits[place]);
            let below = usize::from(d > 0.0);
            let (least, most, limit) = (least + d * rise[below], most + d * climb[below], self.limits[place]);
            let member = (most <= limit) & (d >= from) & (d <= to);
            out[members] = self.labels[place];
            members += usize::from(member);
            let mut next = kept;
            self.keep(&mut next, place);
            kept += usize::from(!member & (least <= limit));
        }
        out.truncate(members);
        self.truncate(kept);
    }
}

/// Eight outcomes, each 0 or 1, as bits.
#[inline(always)]
fn bits_of(outcomes: [u8; LANES]) -> u32 {
    // Of the eight copies that this adds up, one puts each outcome into its place in the upper byte, and no two sums
    // overlap, so nothing is carried.
    (u64::from_le_bytes(outcomes).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

struct Gather<'a, 'b, T: Element, F> {
    row: &'a [T],
    max: T::Wide,
    limits: &'a [f32],
    floor: F,
    labels: &'b mut Vec<u32>,
}

/// What scores lie above, beside their gaps to the maximum. A type, as a closure would not be inlined where the loop is
/// compiled for another instruction set.
trait Floor<W> {
    fn under(&self, logit: W) -> f32;
}

struct Nothing;

impl<W> Floor<W> for Nothing {
    #[inline(always)]
    fn under(&self, _: W) -> f32 {
        f32::NEG_INFINITY
    }
}

/// A tangent.
struct Above<W> {
    pivot: W,
    least: f32,
    rise: f32,
}

impl<W: Wide> Floor<W> for Above<W> {
    #[inline(always)]
    fn under(&self, logit: W) -> f32 {
        self.least + self.rise * self.pivot.above(logit)
    }
}

impl<T: Element, F: Floor<T::Wide>> Kernel for Gather<'_, '_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (words, rest) = self.row.as_chunks::<WORD>();
        let (limits, last) = self.limits.as_chunks::<WORD>();
        let mut first = 0;
        for (logits, limits) in words.iter().zip(limits) {
            let mut within = [0; WORD];
            for at in 0..WORD {
                within[at] = u8::from(self.least(logits[at].widen()) <= limits[at]);
            }
            let mut word = 0;
            for (eight, shift) in whole(within).as_chunks().0.iter().zip((0..).step_by(LANES)) {
                word |= bits_of(*eight) << shift;
            }
            while word != 0 {
                self.labels.push(first + word.trailing_zeros());
                word &= word - 1;
            }
            first += WORD as u32;
        }
        for ((label, logit), limit) in (first..).zip(rest).zip(last) {
            if self.least(logit.widen()) <= *limit {
                self.labels.push(label);
            }
        }
    }
}

impl<T: Element, F: Floor<T::Wide>> Gather<'_, '_, T, F> {
    /// No score is below this.
    #[inline(always)]
    fn least(&self, logit: T::Wide) -> f32 {
        let (gap, floor) = (self.max.above(logit), self.floor.under(logit));
        if floor > gap { floor } else { gap }
    }
}

/// About the mean of the gaps to the maximum, none of which counts for more than `most`: of every fourth chunk, since
/// what is made of it is exact wherever it is.
struct MeanGap<'a, T: Element> {
    row: &'a [T],
    max: T::Wide,
    most: f32,
}

impl<T: Element> Kernel for MeanGap<'_, T> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut lanes = [0.0; WIDTH];
        let (chunks, _) = self.row.as_chunks::<WIDTH>();
        let some = chunks.iter().step_by(4);
        let count = some.len() * WIDTH;
        for chunk in some {
            for lane in 0..WIDTH {
                lanes[lane] += smaller(self.max.above(chunk[lane].widen()), self.most);
            }
        }
        fold(whole(lanes)) / count as f32
    }
}

/// Sums of both powers of the gaps over the pivot.
struct Sums<'a, T: Element, P> {
    row: &'a [T],
    pivot: T::Wide,
    powers: P,
}

impl<T: Element, P: BothPowers> Kernel for Sums<'_, T, P> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let mut total = (0.0, 0.0);
        for block in self.row.chunks(BLOCK) {
            let (mut sums, mut slopes) = ([0.0; WIDTH], [0.0; WIDTH]);
            let (chunks, rest) = block.as_chunks::<WIDTH>();
            for chunk in chunks {
                let mut gaps = [0.0; WIDTH];
                for lane in 0..WIDTH {
                    let gap = chunk[lane].widen().above(self.pivot);
                    gaps[lane] = if gap > 0.0 { gap } else { 0.0 };
                }
                for lane in 0..WIDTH {
                    sums[lane] += self.powers.of(gaps[lane]).0;
                }
                for lane in 0..WIDTH {
                    slopes[lane] += self.powers.of(gaps[lane]).1;
                }
            }
            for (lane, logit) in rest.iter().enumerate() {
                let gap = logit.widen().above(self.pivot);
                let (power, slope) = self.powers.of(if gap > 0.0 { gap } else { 0.0 });
                sums[lane] += power;
                slopes[lane] += slope;
            }
            // One after the other: together, the compiler would shuffle the lanes of both into each other.
            total.0 += std::hint::black_box(f64::from(fold(whole(sums))));
            total.1 += f64::from(fold(whole(slopes)));
        }
        total
    }
}
