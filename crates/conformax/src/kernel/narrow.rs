//! Rows of few classes, several at a time: one lane is one row, so nothing is folded across lanes and nothing is guessed.

use super::element::{Element, Wide};
use super::isa::{Isa, Kernel};
use super::{larger, smaller, whole};

/// Rows up to this many classes are narrow: a label takes five bits, and a set fits a word.
pub(crate) const NARROW: usize = 32;

/// Rows taken together.
pub(crate) const ROWS: usize = 8;

/// Labels that are ranked: one more than the largest set that is decided here, whose successor must be seen to be out.
pub(crate) const PLACES: usize = 5;

/// What grows down a ranking and is easy to know: norms of the gaps by which other labels are ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    /// The largest gap.
    Max,
    /// Their sum.
    Sum,
    /// The sum of their squares.
    Squares,
}

/// What decides whether a label is in a set. A label with one other ahead is in when its gap is at most `distance`. One further
/// down is in where `inside` is within its limit, out where `outside` is beyond its own, and else undecided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) distance: f64,
    pub(crate) inside: (Growth, f64),
    pub(crate) outside: (Growth, f64),
}

/// The best labels of a narrow row in one word, so that those of several rows are stored at once: five bits a label, best first,
/// and above them the size of the set; labels beyond that are of no meaning, and no size says that the row itself must be
/// looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Leaders(u32);

/// Bits of a label.
const BITS: u32 = NARROW.ilog2();

impl Leaders {
    /// The size of the set and labels that begin with it; `None` where the row must be looked at.
    #[inline]
    pub(crate) fn set(self) -> Option<(usize, [u32; PLACES])> {
        let mut labels = [0; PLACES];
        for (place, label) in (0..).zip(&mut labels) {
            *label = self.0 >> (place * BITS) & (NARROW as u32 - 1);
        }
        let len = self.0 >> (PLACES as u32 * BITS);
        (len > 0).then_some((len as usize, labels))
    }
}

/// The leaders of each row of `classes` logits. A row that may be at fault is left undecided, as are the last if they are too few
/// to be taken together.
pub(crate) fn leaders<T: Element>(data: &[T], classes: usize, bounds: Bounds, out: &mut Vec<Leaders>) {
    out.clear();
    Isa::best().dispatch(Narrow { data, classes, bounds, out });
}

struct Narrow<'a, 'b, T> {
    data: &'a [T],
    classes: usize,
    bounds: Bounds,
    out: &'b mut Vec<Leaders>,
}

impl<T: Element> Kernel for Narrow<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let groups = self.data.chunks_exact(ROWS * self.classes);
        let rest = groups.remainder().len() / self.classes;
        for group in groups {
            let lanes = Lanes::rank(group, self.classes);
            self.out.extend_from_slice(&lanes.decide(self.bounds, self.classes));
        }
        self.out.extend(std::iter::repeat_n(Leaders::default(), rest));
    }
}

/// The best logits of [`ROWS`] rows and their labels, best first.
struct Lanes<W> {
    logits: [[W; ROWS]; PLACES],
    labels: [[u32; ROWS]; PLACES],
    /// Of all logits: NaN or +∞ where one is.
    sum: [W; ROWS],
}

impl<W: Wide> Lanes<W> {
    /// Labels come in index order and step aside for larger logits alone, so ties stand by index.
    #[inline(always)]
    fn rank<T: Element<Wide = W>>(group: &[T], classes: usize) -> Self {
        let mut rows = [&group[..0]; ROWS];
        for row in 0..ROWS {
            rows[row] = &group[row * classes..][..classes];
        }
        let mut logits = [[W::NEG_INFINITY; ROWS]; PLACES];
        let mut labels = [[0; ROWS]; PLACES];
        let mut sum = [W::ZERO; ROWS];
        for label in 0..classes {
            let mut column = [W::ZERO; ROWS];
            for row in 0..ROWS {
                column[row] = rows[row][label].widen();
            }
            let label = label as u32;
            for row in 0..ROWS {
                sum[row] = sum[row] + column[row];
            }
            let (mut next, mut next_label) = (column, [label; ROWS]);
            for place in 0..PLACES {
                let (here, label_here) = (logits[place], labels[place]);
                for row in 0..ROWS {
                    logits[place][row] = larger(next[row], here[row]);
                }
                for row in 0..ROWS {
                    next[row] = smaller(column[row], here[row]);
                }
                for row in 0..ROWS {
                    let rises = column[row] > here[row];
                    labels[place][row] = if rises { next_label[row] } else { label_here[row] };
                    next_label[row] = if rises { label_here[row] } else { label };
                }
            }
        }
        Self { logits, labels, sum }
    }

    #[inline(always)]
    fn decide(self, bounds: Bounds, classes: usize) -> [Leaders; ROWS] {
        let mut logits = [[0.0; ROWS]; PLACES];
        for place in 0..PLACES {
            for row in 0..ROWS {
                logits[place][row] = self.logits[place][row].to_f64();
            }
        }
        let (mut lens, mut sound) = ([1; ROWS], [0; ROWS]);
        for row in 0..ROWS {
            let gap = logits[0][row] - logits[1][row];
            lens[row] += u32::from(gap <= bounds.distance);
            let (sum, max) = (self.sum[row], self.logits[0][row]);
            sound[row] = u32::from((sum < W::INFINITY) & (max > W::NEG_INFINITY));
        }
        for place in 2..PLACES {
            let inside = growth(&logits, place, bounds.inside.0);
            let outside = growth(&logits, place, bounds.outside.0);
            let more = place == PLACES - 1 && classes > PLACES;
            for row in 0..ROWS {
                let within = inside[row] <= bounds.inside.1;
                // NaN is the gap between two −∞, which are out.
                let doubtful = !within & (outside[row] <= bounds.outside.1);
                lens[row] += u32::from(within);
                sound[row] &= u32::from(!(doubtful | (within & more)));
            }
        }
        let mut leaders = [Leaders::default(); ROWS];
        for row in 0..ROWS {
            leaders[row].0 = lens[row] * sound[row];
        }
        for place in (0..PLACES).rev() {
            for row in 0..ROWS {
                leaders[row].0 = leaders[row].0 << BITS | self.labels[place][row];
            }
        }
        whole(leaders)
    }
}

/// How far the label at `place` has grown.
#[inline(always)]
fn growth(logits: &[[f64; ROWS]; PLACES], place: usize, growth: Growth) -> [f64; ROWS] {
    let mut grown = [0.0; ROWS];
    let ahead = if growth == Growth::Max { 1 } else { place };
    for other in 0..ahead {
        for row in 0..ROWS {
            let gap = logits[other][row] - logits[place][row];
            grown[row] += if growth == Growth::Squares { gap * gap } else { gap };
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWTHS: [Growth; 3] = [Growth::Max, Growth::Sum, Growth::Squares];

    fn rows(count: usize, classes: usize) -> Vec<f32> {
        (0..count * classes).map(|i| ((i * 7919) % 1013) as f32 / 64.0 - 8.0).collect()
    }

    /// What the bounds say of one row, label by label.
    fn plain(row: &[f32], bounds: Bounds) -> Option<Vec<u32>> {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].partial_cmp(&row[*a]).unwrap().then(a.cmp(b)));
        let mut set = Vec::new();
        for (place, label) in order.iter().enumerate() {
            let gaps = order[..place].iter().map(|other| f64::from(row[*other]) - f64::from(row[*label]));
            let grown = |growth: Growth| match growth {
                Growth::Max => gaps.clone().fold(0.0, f64::max),
                Growth::Sum => gaps.clone().sum(),
                Growth::Squares => gaps.clone().map(|gap| gap * gap).sum::<f64>(),
            };
            let inside = match place {
                0 => true,
                1 => grown(Growth::Max) <= bounds.distance,
                _ => grown(bounds.inside.0) <= bounds.inside.1,
            };
            if inside {
                set.push(*label as u32);
            } else if place > 1 && grown(bounds.outside.0) <= bounds.outside.1 {
                return None;
            } else {
                break;
            }
        }
        (set.len() < PLACES || row.len() == PLACES).then_some(set)
    }

    #[test]
    fn decides_what_the_bounds_decide_on_every_instruction_set() {
        // Miri takes its time, and sees no more in many classes than in a few.
        let widths: &[usize] = if cfg!(miri) { &[1, 6] } else { &[1, 2, 4, 5, 6, 10, 32] };
        for (&classes, inside) in widths.iter().flat_map(|k| GROWTHS.map(|g| (k, g))) {
            let mut data = rows(43, classes);
            data[classes..2 * classes].fill(-0.0);
            if classes > 1 {
                data[1] = f32::NEG_INFINITY;
            }
            for (outside, limit) in GROWTHS.into_iter().flat_map(|g| [0.0, 0.4, 3.0].map(|limit| (g, limit)))
            {
                let bounds =
                    Bounds { distance: limit, inside: (inside, limit), outside: (outside, 1.5 * limit) };
                let mut wanted: Vec<Option<Vec<u32>>> =
                    data.chunks(classes).map(|row| plain(row, bounds)).collect();
                wanted[40..].fill(None);
                for isa in Isa::available() {
                    let mut out = Vec::new();
                    isa.dispatch(Narrow { data: &data, classes, bounds, out: &mut out });
                    let sets: Vec<Option<Vec<u32>>> = out
                        .iter()
                        .map(|found| found.set().map(|(len, labels)| labels[..len].to_vec()))
                        .collect();
                    assert_eq!(sets, wanted, "{isa:?} {classes} {bounds:?}");
                }
            }
        }
    }

    #[test]
    fn leaves_what_may_be_at_fault_to_a_closer_look() {
        let bounds = Bounds { distance: 1.0, inside: (Growth::Max, 1.0), outside: (Growth::Max, 1.0) };
        for (place, bad) in (0..8).flat_map(|place| [f32::NAN, f32::INFINITY].map(|bad| (place, bad))) {
            for isa in Isa::available() {
                let mut data = rows(8, 10);
                data[place * 10 + 7] = bad;
                data[(place + 1) % 8 * 10..][..10].fill(f32::NEG_INFINITY);
                let mut out = Vec::new();
                isa.dispatch(Narrow { data: &data, classes: 10, bounds, out: &mut out });
                assert!(out[place].set().is_none() && out[(place + 1) % 8].set().is_none());
                assert!(out[(place + 2) % 8].set().is_some());
            }
        }
    }
}
