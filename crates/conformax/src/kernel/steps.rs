//! Bounds on the scores of all labels of a row at once, without ranking them.
//!
//! The row is cut into steps of one width `w`, from its maximum down. How many labels are above an edge `t`, and the
//! sum of their gaps `P(t) = Σ (z − t)₊`, follow from a count and a sum per step. So do the squares, as
//! `Σ (z − t)₊² = 2 ∫ P`: `P` is convex, so trapezoids over it are no less, and each label makes them larger by `w²/4`
//! at most. A label's score lies between those at the edges of its step, and closer bounds take its own place in it.
//!
//! Logits are read in single precision, as whole numbers of ticks below the maximum. Ticks never fall as logits fall,
//! however they are rounded, and none is off by more than [`OFF`]; the bounds make up for that and for the rounding of
//! the definition.

use super::element::{Element, Wide};
use super::gaps::Order;
use super::isa::{Isa, Kernel};
use super::single::WIDTH;
use super::{larger, smaller, whole};

/// Steps in the range of a row.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 9;

/// Ticks in the range of a row, a few more than there may be of a finite logit. That many are those of −∞.
const TICKS: u32 = 1 << 31;

/// Ticks in a step.
const STEP: u32 = TICKS >> STEP_BITS;

/// What the leading bits of ticks tell apart, so that no look-up by them has to be checked: steps, that of −∞, and more
/// that are not used.
const CELLS: usize = 2 * STEPS;

/// How far ticks may be off: gap, product and sum are rounded to 1, 1 and ½ of 256 ticks together less than this.
const OFF: f64 = 512.0;

/// Numbers of labels for which steps cost less than ranking, and whose sums fit the words that hold them.
const CLASSES: std::ops::RangeInclusive<usize> = 256..=1 << 14;

/// Ranges of rows that single precision holds, with their inverses and the gaps that count.
const RANGES: std::ops::Range<f32> = 1e-28..1e28;

/// One label, in a word that also has a sum of ticks.
const LABEL: u64 = 1 << 48;

/// What is known of a row, and memory that it leaves to the next.
pub(crate) struct Steps {
    margins: Margins,
    /// Of each label, how far below the maximum it is, and which label of its step was met before it.
    ticks: Vec<u32>,
    before: Vec<u16>,
    cells: Box<Cells>,
    edges: Box<Edges>,
    bounds: Box<Bounds>,
}

/// What the labels of each step come to.
struct Cells {
    /// Their number and the sum of their ticks in one word; all zero between rows.
    words: [u64; CELLS],
    /// Which was met last, where there is one.
    last: [u16; CELLS],
}

/// What is above each edge, the end of the last step included.
struct Edges {
    labels: [f64; STEPS + 1],
    /// The sum of their gaps over the edge, in ticks.
    gaps: [f64; STEPS + 1],
    /// No less than the sum of the squares of these, nor more by `w²/4` a label.
    squares: [f64; STEPS + 1],
}

/// What the scores of the labels of each step lie between. In single precision, as they are not close anyway.
struct Bounds {
    least: [f32; STEPS],
    most: [f32; STEPS],
}

impl Default for Steps {
    fn default() -> Self {
        let none = [0.0; STEPS + 1];
        Self {
            margins: Margins { order: Order::Max, slack: 0.0, unit: 0.0 },
            ticks: Vec::new(),
            before: Vec::new(),
            cells: Box::new(Cells { words: [0; CELLS], last: [0; CELLS] }),
            edges: Box::new(Edges { labels: none, gaps: none, squares: none }),
            bounds: Box::new(Bounds { least: [0.0; STEPS], most: [0.0; STEPS] }),
        }
    }
}

impl Steps {
    /// The step of −∞. Other logits have one before it.
    const MASKED: usize = STEPS;

    /// Looks at a row whose maximum is `max`; `slack` is how far, relatively, the definition may be off by its own
    /// rounding. `false` where steps say nothing of the row.
    pub(crate) fn look<T: Element>(&mut self, row: &[T], max: f64, order: Order, slack: f64) -> bool {
        self.look_on(Isa::best(), row, max, order, slack)
    }

    fn look_on<T: Element>(&mut self, isa: Isa, row: &[T], max: f64, order: Order, slack: f64) -> bool {
        if !CLASSES.contains(&row.len()) || matches!(order, Order::Other { .. }) {
            return false;
        }
        let max = T::Wide::nearest(max);
        let range = max.above(isa.dispatch(Lowest(row)));
        if !RANGES.contains(&range) {
            return false;
        }
        // Rounded, the largest product is still below 2²³ − 2.
        let scale = ((1 << 23) - 4) as f32 / range;
        self.margins = Margins { order, slack, unit: 1.0 / (256.0 * f64::from(scale)) };
        self.ticks.resize(row.len(), 0);
        self.before.resize(row.len(), 0);
        isa.dispatch(Look { row, max, scale, steps: self });
        true
    }

    /// The steps that have labels, best first, −∞ left out, with what the scores of these lie between.
    #[inline]
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let (labels, Bounds { least, most }) = (&self.edges.labels, &*self.bounds);
        let some = (0..STEPS).filter(|step| labels[step + 1] > labels[*step]);
        some.map(|step| (step, f64::from(least[step]), f64::from(most[step])))
    }

    /// What a label's score lies between, by its step; `None` where it is infinite.
    #[inline]
    pub(crate) fn bounds_by_step(&self, label: u32) -> Option<(f64, f64)> {
        let (step, Bounds { least, most }) = (step_of(self.ticks[label as usize]), &*self.bounds);
        (step < Self::MASKED).then(|| (f64::from(least[step]), f64::from(most[step])))
    }

    /// The same by the label's own place in its step.
    #[inline]
    pub(crate) fn bounds_of(&self, label: u32) -> Option<(f64, f64)> {
        let step = step_of(self.ticks[label as usize]);
        (step < Self::MASKED).then(|| self.step(step).bounds_of(label))
    }

    /// A step by itself.
    #[inline]
    pub(crate) fn step(&self, step: usize) -> Step<'_> {
        Step::new(self, step)
    }

    /// The labels of −∞.
    pub(crate) fn masked(&self) -> impl Iterator<Item = u32> {
        let count = self.ticks.len() - self.edges.labels[STEPS] as usize;
        self.labels_of(Self::MASKED, count)
    }

    #[inline]
    fn labels_of(&self, step: usize, count: usize) -> impl Iterator<Item = u32> {
        let mut last = self.cells.last[step];
        (0..count).map(move |_| {
            let label = u32::from(last);
            last = self.before[usize::from(last)];
            label
        })
    }

    /// Appends what is said of each label's step.
    pub(crate) fn spread<P: Copy>(&self, said: &PerStep<P>, out: &mut Vec<P>) {
        let said = &*said.0;
        out.extend(self.ticks.iter().map(|ticks| said[step_of(*ticks)]));
    }
}

/// What is said of the labels of each step.
pub(crate) struct PerStep<P>(Box<[P; CELLS]>);

impl<P: Copy> PerStep<P> {
    pub(crate) fn new(nothing: P) -> Self {
        Self(Box::new([nothing; CELLS]))
    }

    #[inline]
    pub(crate) fn say(&mut self, step: usize, what: P) {
        self.0[step] = what;
    }
}

/// One step, for bounds on the scores of its labels by their own places in it.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    steps: &'a Steps,
    step: usize,
    start: Sums,
    /// Labels above its end, and the sum of the gaps of its own over that, in steps.
    all: f64,
    own: f64,
}

impl<'a> Step<'a> {
    fn new(steps: &'a Steps, step: usize) -> Self {
        let (start, end) = (steps.edges.at(step), steps.edges.at(step + 1));
        let own = (end.gaps - start.gaps) / f64::from(STEP) - start.labels;
        Self { steps, step, start, all: end.labels, own }
    }

    /// In no order that means anything.
    #[inline]
    pub(crate) fn labels(self) -> impl Iterator<Item = u32> + 'a {
        self.steps.labels_of(self.step, (self.all - self.start.labels) as usize)
    }

    #[inline(always)]
    pub(crate) fn bounds_of(self, label: u32) -> (f64, f64) {
        let Self { steps, start, all, own, .. } = self;
        let ticks = f64::from(steps.ticks[label as usize].cast_signed());
        let below = ticks - start.ticks;
        let gaps = start.gaps + start.labels * below;
        let squares = start.squares + below * (start.gaps + gaps);
        // Gaps `(b − y)₊` to labels of the step itself, `y` below its start: a convex function of `y`, so their sum
        // lies above that of as many labels at the mean, and below the chord from `b` at the start to 0 at the end.
        let least = larger(own * f64::from(STEP) - (all - start.labels) * (f64::from(STEP) - below), 0.0);
        let most = own * below;
        let margins = steps.margins;
        (
            margins.least(Sums { ticks, labels: all, gaps: gaps + least, squares }),
            margins.most(Sums { ticks, labels: all, gaps: gaps + most, squares: squares + most * below }),
        )
    }
}

/// What scores are made of, in ticks.
#[derive(Clone, Copy)]
struct Sums {
    /// The gap to the maximum.
    ticks: f64,
    labels: f64,
    gaps: f64,
    squares: f64,
}

impl Edges {
    #[inline(always)]
    fn at(&self, edge: usize) -> Sums {
        let ticks = edge as f64 * f64::from(STEP);
        Sums { ticks, labels: self.labels[edge], gaps: self.gaps[edge], squares: self.squares[edge] }
    }
}

/// What makes bounds of sums.
#[derive(Clone, Copy)]
struct Margins {
    order: Order,
    slack: f64,
    /// A tick in units of logits.
    unit: f64,
}

impl Margins {
    /// No score of a label with these ahead of it, or more, is less.
    #[inline(always)]
    fn least(self, sums: Sums) -> f64 {
        let least = self.least_power(sums);
        self.unit * if self.order == Order::Two { least.sqrt() } else { least }
    }

    /// No score of a label with these ahead of it, or fewer, is more.
    #[inline(always)]
    fn most(self, sums: Sums) -> f64 {
        let most = self.most_power(sums);
        self.unit * if self.order == Order::Two { most.sqrt() } else { most }
    }

    /// The same before the root. A gap may be less than its ticks say by `2·OFF`, and `(a − h)₊² ≥ a² − 2ha`. What is
    /// left of the slack is for the rounding of these very bounds.
    #[inline(always)]
    fn least_power(self, sums: Sums) -> f64 {
        /// `w²/4`.
        const EXCESS: f64 = STEP as f64 * STEP as f64 / 4.0;
        let least = match self.order {
            Order::One => sums.gaps * (1.0 - 1.5 * self.slack) - 2.0 * OFF * sums.labels,
            Order::Two => {
                sums.squares * (1.0 - 2.5 * self.slack) - (EXCESS * sums.labels + 4.0 * OFF * sums.gaps)
            }
            Order::Max | Order::Other { .. } => (sums.ticks - OFF) * (1.0 - 1.5 * self.slack),
        };
        larger(least, 0.0)
    }

    #[inline(always)]
    fn most_power(self, sums: Sums) -> f64 {
        match self.order {
            Order::One => (sums.gaps + 2.0 * OFF * sums.labels) * (1.0 + 1.5 * self.slack),
            Order::Two => {
                (sums.squares + 4.0 * OFF * (sums.gaps + OFF * sums.labels)) * (1.0 + 2.5 * self.slack)
            }
            Order::Max | Order::Other { .. } => (sums.ticks + OFF) * (1.0 + 1.5 * self.slack),
        }
    }
}

#[inline(always)]
fn step_of(ticks: u32) -> usize {
    (ticks / STEP) as usize
}

/// The lowest logit above −∞.
struct Lowest<'a, T>(&'a [T]);

impl<T: Element> Kernel for Lowest<'_, T> {
    type Output = T::Wide;

    #[inline(always)]
    fn run(self) -> T::Wide {
        let finite = |logit: T::Wide| if logit > T::Wide::NEG_INFINITY { logit } else { T::Wide::INFINITY };
        let mut lowest = [T::Wide::INFINITY; WIDTH];
        let (chunks, rest) = self.0.as_chunks::<WIDTH>();
        for chunk in chunks {
            for lane in 0..WIDTH {
                lowest[lane] = smaller(finite(chunk[lane].widen()), lowest[lane]);
            }
        }
        let all = whole(lowest).into_iter().chain(rest.iter().map(|logit| finite(logit.widen())));
        all.fold(T::Wide::INFINITY, |a, b| smaller(b, a))
    }
}

struct Look<'a, 'b, T: Element> {
    row: &'a [T],
    max: T::Wide,
    scale: f32,
    steps: &'b mut Steps,
}

impl<T: Element> Kernel for Look<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        /// Adding it rounds to an integer and leaves that in the low bits of the sum.
        const ROUNDER: f32 = 8_388_608.0;
        let Self { row, max, scale, steps } = self;
        let Steps { margins, ticks, before, cells, edges, bounds } = steps;
        let (cells, edges) = (&mut **cells, &mut **edges);
        let (ticks, before) = (&mut ticks[..row.len()], &mut before[..row.len()]);
        for (ticks, logit) in ticks.iter_mut().zip(row) {
            let product = smaller(max.above(logit.widen()) * scale, ROUNDER);
            *ticks = (product + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) << 8;
        }
        for label in 0..row.len() {
            let step = step_of(ticks[label]);
            cells.words[step] += LABEL + u64::from(ticks[label]);
            before[label] = std::mem::replace(&mut cells.last[step], label as u16);
        }
        cells.words[Steps::MASKED] = 0;
        // Areas under the sums of gaps, in halves of a step.
        let (mut all, mut edge, mut gaps, mut area) = (0, 0, 0, 0);
        for (step, word) in cells.words[..STEPS].iter_mut().enumerate() {
            all += std::mem::take(word);
            edge += u64::from(STEP);
            let last = std::mem::replace(&mut gaps, (all / LABEL * edge - all % LABEL).cast_signed());
            area += last + gaps;
            edges.labels[step + 1] = (all / LABEL) as i32 as f64;
            edges.gaps[step + 1] = gaps as f64;
            edges.squares[step + 1] = area as f64 * f64::from(STEP);
        }
        bounds.fill(*margins, edges);
    }
}

impl Bounds {
    #[inline(always)]
    fn fill(&mut self, margins: Margins, edges: &Edges) {
        // One loop for each order, in which the compiler need not ask for it again.
        match margins.order {
            Order::One => self.fill_in(Margins { order: Order::One, ..margins }, edges),
            Order::Two => self.fill_in(Margins { order: Order::Two, ..margins }, edges),
            Order::Max | Order::Other { .. } => self.fill_in(Margins { order: Order::Max, ..margins }, edges),
        }
    }

    #[inline(always)]
    fn fill_in(&mut self, margins: Margins, edges: &Edges) {
        /// Far more than single precision rounds.
        const ROUNDING: f32 = 1e-6;
        for step in 0..STEPS {
            self.least[step] = margins.least_power(edges.at(step)) as f32;
        }
        for step in 0..STEPS {
            self.most[step] = margins.most_power(edges.at(step + 1)) as f32;
        }
        let unit = margins.unit as f32;
        for (bounds, unit) in
            [(&mut self.least, unit * (1.0 - ROUNDING)), (&mut self.most, unit * (1.0 + ROUNDING))]
        {
            for bound in bounds {
                *bound = unit * if margins.order == Order::Two { bound.sqrt() } else { *bound };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::gap_norm;
    use super::*;

    const ORDERS: [Order; 3] = [Order::Max, Order::One, Order::Two];

    /// What a classifier gives, ties, a label far from the others at either end, masked classes, huge and tiny ones.
    fn rows() -> Vec<Vec<f64>> {
        let spread = |len: usize, step: f64| -> Vec<f64> {
            (0..len).map(|i| ((i * 7919) % 1013) as f64 * step - 8.0).collect()
        };
        let mut rows = vec![
            spread(1000, 0.02),
            spread(257, 1e-7),
            spread(300, 1e4).iter().map(|z| z * 1e20).collect(),
            spread(300, 0.1).iter().map(|z| z * 1e-26).collect(),
            spread(999, 0.02).iter().map(|z| (2.0 * z).round()).collect(),
            (0..400).map(|i| f64::from_bits((1023 - i / 4) << 52)).collect(),
            (0..5000).map(|i| f64::from(i * 7919 % 5003).sqrt()).collect(),
        ];
        for far in [-1e5, 1e5, f64::NEG_INFINITY] {
            let mut row = spread(500, 0.01);
            row[77] = far;
            rows.push(row);
        }
        let mut masked = spread(600, 0.1);
        masked[..400].fill(f64::NEG_INFINITY);
        rows.push(masked);
        rows
    }

    fn holds<T: Element>(row: &[T], what: &str) {
        let max = row.iter().map(|z| z.to_f64()).fold(f64::NEG_INFINITY, f64::max);
        for order in ORDERS {
            let mut first: Option<Steps> = None;
            for isa in Isa::available() {
                let mut steps = Steps::default();
                // Nothing of the row before is left.
                let before: Vec<f32> = (0..300).map(|i| (i as f32).sin()).collect();
                assert!(steps.look_on(isa, &before, 1.0, order, 1e-8));
                assert!(steps.look_on(isa, row, max, order, 1e-8), "{what}");
                for (label, logit) in (0..).zip(row) {
                    let logit = logit.to_f64();
                    let bounds = [steps.bounds_by_step(label), steps.bounds_of(label)];
                    if logit == f64::NEG_INFINITY {
                        assert_eq!(bounds, [None, None], "{what}");
                        continue;
                    }
                    let score = gap_norm(row, max, logit, order);
                    for bound in bounds {
                        let (least, most) = bound.unwrap();
                        // By more than the definition may be off.
                        let is_clear = least <= score * (1.0 - 1e-8) && most >= score * (1.0 + 1e-8);
                        assert!(is_clear, "{what}, {order:?}, {label}: {score:e} in {least:e}..{most:e}");
                    }
                }
                let first = first.get_or_insert_with(|| {
                    let mut steps = Steps::default();
                    steps.look_on(isa, row, max, order, 1e-8);
                    steps
                });
                let bounds = |steps: &Steps| steps.bounds().collect::<Vec<_>>();
                assert!(first.ticks == steps.ticks && bounds(first) == bounds(&steps), "{what}, {isa:?}");
            }
        }
    }

    #[test]
    fn bounds_hold_on_every_instruction_set() {
        for (index, row) in rows().into_iter().enumerate() {
            holds(&row, &format!("row {index}"));
            let single: Vec<f32> = row.iter().map(|z| *z as f32).collect();
            holds(&single, &format!("row {index} in f32"));
        }
        #[cfg(feature = "half")]
        for index in [0, 4, 6, 10] {
            let row = &rows()[index];
            holds(&row.iter().map(|z| half::f16::from_f64(*z)).collect::<Vec<_>>(), "f16");
            holds(&row.iter().map(|z| half::bf16::from_f64(*z)).collect::<Vec<_>>(), "bf16");
        }
    }

    /// Far down a row they are closer than calibration scores are to each other.
    #[test]
    fn bounds_are_close() {
        let row = &rows()[0];
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (order, by_step, by_place) in
            [(Order::Max, 1e-2, 1e-5), (Order::One, 3e-2, 3e-4), (Order::Two, 2e-2, 1e-4)]
        {
            let mut steps = Steps::default();
            assert!(steps.look(row, max, order, 1e-8));
            for label in (0..1000).filter(|label| max - row[*label as usize] > 5.0) {
                for (bounds, close) in
                    [(steps.bounds_by_step(label), by_step), (steps.bounds_of(label), by_place)]
                {
                    let (least, most) = bounds.unwrap();
                    assert!(most <= least * (1.0 + close), "{order:?}: {least} {most}");
                }
            }
        }
    }

    #[test]
    fn says_when_steps_are_of_no_use() {
        let mut steps = Steps::default();
        let mut look = |row: &[f64], order: Order| {
            steps.look(row, row.iter().copied().fold(f64::NEG_INFINITY, f64::max), order, 1e-8)
        };
        let row: Vec<f64> = (0..300).map(f64::from).collect();
        assert!(look(&row, Order::Two));
        assert!(!look(&row[..200], Order::Two), "few labels");
        assert!(!look(&row, Order::Other { delta: 10.0, inverse: 0.1 }));
        assert!(!look(&vec![0.5; 300], Order::Two), "all alike");
        assert!(!look(&row.iter().map(|z| z * 1e-40).collect::<Vec<_>>(), Order::Two), "too close together");
        assert!(!look(&row.iter().map(|z| z * 1e40).collect::<Vec<_>>(), Order::Two), "too far apart");
        assert!(!look(&row.iter().map(|z| z * 1e306).collect::<Vec<_>>(), Order::Two), "beyond all numbers");
        assert!(
            !look(&[&[1.0][..], &[f64::NEG_INFINITY; 300]].concat(), Order::Two),
            "one that is not masked"
        );
    }

    #[test]
    fn what_is_said_of_a_step_is_said_of_its_labels() {
        let row = &rows()[10];
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for isa in Isa::available() {
            let mut steps = Steps::default();
            assert!(steps.look_on(isa, row, max, Order::One, 1e-8));
            let of_step = |label: u32| step_of(steps.ticks[label as usize]);
            let mut said = PerStep::new(9999);
            let mut met = vec![0; row.len()];
            for (step, ..) in steps.bounds() {
                said.say(step, step);
                for label in steps.step(step).labels() {
                    assert_eq!(of_step(label), step);
                    met[label as usize] += 1;
                }
            }
            let mut out = vec![5];
            steps.spread(&said, &mut out);
            assert_eq!((out[0], out.len()), (5, row.len() + 1));
            for (label, out) in (0..).zip(out.into_iter().skip(1)) {
                assert_eq!(
                    out,
                    if of_step(label) == Steps::MASKED { 9999 } else { of_step(label) },
                    "{isa:?}"
                );
            }
            for label in steps.masked() {
                assert_eq!(row[label as usize], f64::NEG_INFINITY);
                met[label as usize] += 1;
            }
            assert_eq!(met, vec![1; row.len()], "{isa:?}: every label is of one step");
        }
    }
}
