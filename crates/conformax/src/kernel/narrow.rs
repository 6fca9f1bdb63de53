//! Sets of rows of few classes, several at a time: one lane is one row, so nothing is folded across lanes and
//! there is no branch to mispredict.

mod ranked;

use self::ranked::Ranked;
use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::single::power;
use super::whole;

/// Rows up to this many classes are narrow: a label takes five bits.
pub(crate) const NARROW: usize = 32;

/// Rows taken together.
pub(crate) const ROWS: usize = 8;

/// The most labels of a set that is decided here.
const MOST: usize = 10;

/// Labels that are ranked. One more, so that the last of those looked at is seen to be above the next.
const PLACES: usize = MOST + 1;

/// What grows down a ranking: a norm of the gaps by which other labels are ahead, or what stands for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    /// The largest gap, which the distance already bounds.
    Max,
    /// Their sum.
    Sum,
    /// The sum of their squares.
    Squares,
    /// The sum of the square roots of their ratios to the distance, in single precision.
    Roots,
    /// The sum of these ratios to this power, in single precision.
    Powers(f32),
    /// Nobody knows how fast.
    Unknown,
}

/// What decides whether a label is in a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds<L = Limit> {
    /// Of ratios to the distance of the widest limit, where it is of ratios.
    pub(crate) growth: Growth,
    pub(crate) limits: L,
}

/// How far a label may be. One whose gap to the best is beyond `distance` is out. Of the others the best two are in,
/// and one further down is in where the growth is at most `inside`, out where it is beyond `outside`, and else
/// undecided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) distance: f64,
    pub(crate) inside: f64,
    pub(crate) outside: f64,
}

/// A limit for every label, and the widest of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LimitsByLabel {
    distance: [f64; NARROW],
    inside: [f64; NARROW],
    outside: [f64; NARROW],
    widest: Limit,
}

impl LimitsByLabel {
    /// From the limits of the first labels; there is no other.
    pub(crate) fn new(each: impl Iterator<Item = Limit>, widest: Limit) -> Self {
        let never = [-1.0; NARROW];
        let mut limits = Self { distance: never, inside: never, outside: never, widest };
        for (label, limit) in each.enumerate() {
            limits.distance[label] = limit.distance;
            limits.inside[label] = limit.inside;
            limits.outside[label] = limit.outside;
        }
        limits
    }
}

/// One limit or several. A type, so that rows with one limit do not pay for the others.
pub(crate) trait Limits: Copy {
    const BY_LABEL: bool;
    fn widest(&self) -> Limit;
    fn of(&self, label: u64) -> Limit;
}

impl Limits for Limit {
    const BY_LABEL: bool = false;

    #[inline(always)]
    fn widest(&self) -> Limit {
        *self
    }

    #[inline(always)]
    fn of(&self, _: u64) -> Limit {
        *self
    }
}

impl Limits for &LimitsByLabel {
    const BY_LABEL: bool = true;

    #[inline(always)]
    fn widest(&self) -> Limit {
        self.widest
    }

    #[inline(always)]
    fn of(&self, label: u64) -> Limit {
        let label = label as usize % NARROW;
        Limit { distance: self.distance[label], inside: self.inside[label], outside: self.outside[label] }
    }
}

/// The set of a narrow row. Labels beyond it are of no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Leaders {
    /// Its first labels, best first, as most sets have no others.
    pub(crate) first: [u32; FIRST],
    /// The labels after these, a byte each, and in the last byte the size of the set. No size says that the row itself
    /// must be looked at.
    rest: u64,
}

const FIRST: usize = 8;

impl Leaders {
    /// The size of the set; `None` where the row must be looked at.
    #[inline]
    pub(crate) fn len(&self) -> Option<usize> {
        let len = (self.rest >> 56) as usize;
        (len > 0).then_some(len)
    }

    /// The labels after the first ones.
    pub(crate) fn rest(&self) -> impl Iterator<Item = u32> {
        self.rest.to_le_bytes().into_iter().map(u32::from)
    }
}

/// The sets of rows of `classes` logits. A row that may be at fault is left undecided, as is one without a label, and
/// as are the last if they are too few to be taken together.
pub(crate) fn leaders<T: Element, L: Limits>(
    data: &[T],
    classes: usize,
    bounds: Bounds<L>,
    out: &mut Vec<Leaders>,
) {
    out.clear();
    Isa::best().dispatch(Narrow { data, classes, bounds, out });
}

struct Narrow<'a, 'b, T, L> {
    data: &'a [T],
    classes: usize,
    bounds: Bounds<L>,
    out: &'b mut Vec<Leaders>,
}

impl<T: Element, L: Limits> Kernel for Narrow<'_, '_, T, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Bounds { growth, limits } = self.bounds;
        let distance = limits.widest().distance;
        let scale = (1.0 / distance) as f32;
        match growth {
            Growth::Max => self.decide(Distance),
            Growth::Sum => self.decide(Sums::default()),
            Growth::Squares => self.decide(Squares::default()),
            Growth::Roots => self.decide(Ratios { scale, power: Root }),
            Growth::Powers(delta) if L::BY_LABEL => self.decide(Ratios { scale, power: Powers(delta) }),
            Growth::Powers(delta) => self.decide(Enclosed::new(scale, delta, distance)),
            Growth::Unknown => self.decide(Unknown),
        }
    }
}

impl<T: Element, L: Limits> Narrow<'_, '_, T, L> {
    #[inline(always)]
    fn decide(self, growing: impl Growing) {
        let groups = self.data.chunks_exact(ROWS * self.classes);
        let rest = groups.remainder().len() / self.classes;
        let mut ranked = Ranked::NONE;
        for group in groups {
            ranked.rank(group, self.classes);
            self.out.extend_from_slice(&decide(&ranked, group, self.classes, self.bounds.limits, growing));
        }
        self.out.extend(std::iter::repeat_n(Leaders::default(), rest));
    }
}

/// All bits of a lane or none: what comparisons of lanes give and take.
#[inline(always)]
fn mask(holds: bool) -> u64 {
    if holds { u64::MAX } else { 0 }
}

#[inline(always)]
fn decide<T: Element, G: Growing, L: Limits>(
    ranked: &Ranked,
    group: &[T],
    classes: usize,
    limits: L,
    mut growing: G,
) -> [Leaders; ROWS] {
    let mut logits = [[T::Wide::NEG_INFINITY; ROWS]; MOST];
    logits[0] = ranked.logits(0, group, classes);
    let mut held = Held { first: ranked.labels(0), rest: [0; ROWS], lens: [1; ROWS] };
    let (widest, mut open) = (limits.widest(), [0; ROWS]);
    if L::BY_LABEL {
        for row in 0..ROWS {
            let is_in = mask(limits.of(held.first[row]).distance >= 0.0);
            held.first[row] &= is_in;
            held.lens[row] &= is_in;
        }
    }
    // Rows of which a label further down may be in.
    let mut reach = [u64::MAX; ROWS];
    for place in 1..MOST {
        logits[place] = ranked.logits(place, group, classes);
        let labels = ranked.labels(place);
        let mut near = [0; ROWS];
        for row in 0..ROWS {
            let gap = logits[0][row].to_f64() - logits[place][row].to_f64();
            reach[row] &= mask(gap <= widest.distance);
            near[row] = reach[row];
            if L::BY_LABEL {
                near[row] &= mask(gap <= limits.of(labels[row]).distance);
            }
        }
        let mut is_in = near;
        if !G::IS_THE_DISTANCE {
            let grown = growing.at(&Near { logits: &logits, place, rows: near });
            // The second label's gap is every norm.
            for row in 0..if place > 1 { ROWS } else { 0 } {
                let limit = limits.of(labels[row]);
                is_in[row] = near[row] & mask(grown[row] <= limit.inside);
                // Nothing is known of what is no number.
                open[row] |= near[row] & !is_in[row] & !mask(grown[row] > limit.outside);
                // Scores rise down the ranking, so that nobody below a label that is out of the widest limit is in.
                reach[row] &= if L::BY_LABEL { !mask(grown[row] > widest.outside) } else { is_in[row] };
            }
        }
        let mut any = 0;
        for row in 0..ROWS {
            any |= reach[row];
        }
        if any == 0 {
            break;
        }
        match L::BY_LABEL {
            true => held.append(labels, is_in),
            false => held.put(place, labels, is_in),
        }
    }
    let sound = ranked.sound(group, classes);
    let full = mask(classes > MOST);
    let Held { first, mut rest, lens } = held;
    let mut leaders = [Leaders::default(); ROWS];
    for row in 0..ROWS {
        let decided = sound[row] & !open[row] & !(full & reach[row]);
        rest[row] |= (lens[row] & decided) << 56;
    }
    let (first, rest) = (whole(bytes(first)), whole(rest));
    for row in 0..ROWS {
        for place in 0..FIRST {
            leaders[row].first[place] = u32::from(first[row][place]);
        }
        leaders[row].rest = rest[row];
    }
    leaders
}

/// The labels of each row's set, a byte each, and how many they are.
struct Held {
    first: [u64; ROWS],
    rest: [u64; ROWS],
    lens: [u64; ROWS],
}

impl Held {
    /// Puts labels where they stand in the ranking: sets without holes end at the last that is in.
    #[inline(always)]
    fn put(&mut self, place: usize, labels: [u64; ROWS], is_in: [u64; ROWS]) {
        for row in 0..ROWS {
            self.lens[row] = self.lens[row].wrapping_sub(is_in[row]);
        }
        for row in 0..ROWS {
            match place {
                ..FIRST => self.first[row] |= labels[row] << (8 * place),
                _ => self.rest[row] |= labels[row] << (8 * (place - FIRST)),
            }
        }
    }

    /// Appends those that are in.
    #[inline(always)]
    fn append(&mut self, labels: [u64; ROWS], is_in: [u64; ROWS]) {
        const FULL: u64 = FIRST as u64;
        for row in 0..ROWS {
            let (label, len) = (labels[row] & is_in[row], self.lens[row]);
            self.first[row] |= if len < FULL { label << (8 * len) } else { 0 };
            self.rest[row] |= if len >= FULL { label << (8 * (len - FULL)) } else { 0 };
            self.lens[row] = len.wrapping_sub(is_in[row]);
        }
    }
}

#[inline(always)]
fn bytes(words: [u64; ROWS]) -> [[u8; FIRST]; ROWS] {
    let mut bytes = [[0; FIRST]; ROWS];
    for row in 0..ROWS {
        bytes[row] = words[row].to_le_bytes();
    }
    bytes
}

/// How far labels have grown, place by place from 1. A type, as a closure would not be inlined where the loop is
/// compiled for another instruction set.
trait Growing: Copy {
    /// Whether the distance alone decides.
    const IS_THE_DISTANCE: bool = false;
    fn at<W: Wide>(&mut self, near: &Near<'_, W>) -> [f64; ROWS];
}

/// The logits down to a place, and whom to look at there.
struct Near<'a, W> {
    logits: &'a [[W; ROWS]; MOST],
    place: usize,
    /// Rows whose label there is within the distance.
    rows: [u64; ROWS],
}

impl<W: Wide> Near<'_, W> {
    /// The gap to the label before, and how many are ahead.
    #[inline(always)]
    fn step(&self) -> ([f64; ROWS], f64) {
        let mut gaps = [0.0; ROWS];
        for row in 0..ROWS {
            gaps[row] = self.logits[self.place - 1][row].to_f64() - self.logits[self.place][row].to_f64();
        }
        (gaps, self.place as f64)
    }
}

#[derive(Clone, Copy)]
struct Distance;

impl Growing for Distance {
    const IS_THE_DISTANCE: bool = true;

    #[inline(always)]
    fn at<W: Wide>(&mut self, _: &Near<'_, W>) -> [f64; ROWS] {
        [0.0; ROWS]
    }
}

#[derive(Clone, Copy)]
struct Unknown;

impl Growing for Unknown {
    #[inline(always)]
    fn at<W: Wide>(&mut self, _: &Near<'_, W>) -> [f64; ROWS] {
        [f64::NAN; ROWS]
    }
}

#[derive(Clone, Copy, Default)]
struct Sums([f64; ROWS]);

impl Growing for Sums {
    #[inline(always)]
    fn at<W: Wide>(&mut self, near: &Near<'_, W>) -> [f64; ROWS] {
        let (gaps, ahead) = near.step();
        for row in 0..ROWS {
            self.0[row] += ahead * gaps[row];
        }
        self.0
    }
}

/// Adds nothing that is negative, so nothing cancels.
#[derive(Clone, Copy, Default)]
struct Squares {
    sums: [f64; ROWS],
    squares: [f64; ROWS],
}

impl Growing for Squares {
    #[inline(always)]
    fn at<W: Wide>(&mut self, near: &Near<'_, W>) -> [f64; ROWS] {
        let (gaps, ahead) = near.step();
        for row in 0..ROWS {
            let all = ahead * gaps[row];
            self.squares[row] += gaps[row] * (2.0 * self.sums[row] + all);
            self.sums[row] += all;
        }
        self.squares
    }
}

#[derive(Clone, Copy)]
struct Ratios<P> {
    scale: f32,
    power: P,
}

impl<P: Power> Growing for Ratios<P> {
    #[inline(always)]
    fn at<W: Wide>(&mut self, near: &Near<'_, W>) -> [f64; ROWS] {
        let mut grown = [0.0_f32; ROWS];
        for other in 0..near.place {
            let mut ratios = [0.0; ROWS];
            for row in 0..ROWS {
                ratios[row] = near.logits[other][row].above(near.logits[near.place][row]) * self.scale;
            }
            for row in 0..ROWS {
                ratios[row] = self.power.of(ratios[row]);
            }
            for row in 0..ROWS {
                grown[row] += ratios[row];
            }
        }
        let mut wide = [0.0; ROWS];
        for row in 0..ROWS {
            wide[row] = f64::from(grown[row]);
        }
        wide
    }
}

/// Powers are only taken where norms that are easy to know leave a label open: norms of one vector fall as the order
/// rises, from the sum at 1 over the Euclidean at 2 to the largest.
#[derive(Clone, Copy)]
struct Enclosed {
    norms: Squares,
    ratios: Ratios<Powers>,
    /// The sum and the squares up to which a label is in for sure, and those beyond which it is out.
    inside: (f64, f64),
    outside: (f64, f64),
}

impl Enclosed {
    #[inline(always)]
    fn new(scale: f32, delta: f32, distance: f64) -> Self {
        let (below, above) = (1.0 - ROUNDING, 1.0 + ROUNDING);
        let square = distance * distance;
        let (inside, outside) = match delta {
            ..1.0 => ((NEVER, NEVER), (distance * above, f64::INFINITY)),
            ..2.0 => ((distance * below, NEVER), (f64::INFINITY, square * above)),
            _ => ((NEVER, square * below), (f64::INFINITY, f64::INFINITY)),
        };
        Self { norms: Squares::default(), ratios: Ratios { scale, power: Powers(delta) }, inside, outside }
    }
}

/// Below every sum.
const NEVER: f64 = -1.0;

/// Far above the rounding of sums of a few terms in double precision.
const ROUNDING: f64 = 1e-8;

impl Growing for Enclosed {
    #[inline(always)]
    fn at<W: Wide>(&mut self, near: &Near<'_, W>) -> [f64; ROWS] {
        self.norms.at(near);
        let Squares { sums, squares } = self.norms;
        let (mut grown, mut open) = ([0.0; ROWS], 0);
        for row in 0..ROWS {
            let inside = mask(sums[row] <= self.inside.0) | mask(squares[row] <= self.inside.1);
            let outside = mask(sums[row] > self.outside.0) | mask(squares[row] > self.outside.1);
            grown[row] = f64::from_bits(outside & f64::INFINITY.to_bits());
            open |= near.rows[row] & !inside & !outside;
        }
        if open == 0 || near.place == 1 { grown } else { self.ratios.at(near) }
    }
}

/// A power that is 0 at 0.
trait Power: Copy {
    fn of(self, x: f32) -> f32;
}

#[derive(Clone, Copy)]
struct Root;

impl Power for Root {
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        x.sqrt()
    }
}

#[derive(Clone, Copy)]
struct Powers(f32);

impl Power for Powers {
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        // NaN is the gap between two −∞, of which nobody asks.
        let power = power(if x > 0.0 { x } else { 1.0 }, self.0);
        if x > 0.0 { power } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
