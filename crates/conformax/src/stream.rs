//! Streams: levels that adapt, and an alarm, for labelled rows that come one by one after calibration.
//!
//! [`AdaptiveLevel`] moves its level after every row, so that misses come at the rate asked for whatever the sequence
//! (Gibbs, Candès 2021; Angelopoulos, Barber, Bates 2024). [`Alarm`] bets against exchangeability: its capital is ever at
//! least `1/δ` with probability at most δ as long as nothing changes (Vovk and others 2021). States are plain values.

use crate::kernel::math::{exp, ln, pow};
use crate::random::mix;
use crate::{Alpha, Error, Result};

/// A miscoverage level that adapts: `α ← α + η(α₀ − miss)` after every row.
///
/// It may leave (0, 1): at 0 and below sets are full, at 1 and above empty.
///
/// ```
/// use conformax::{AdaptiveLevel, Alpha};
/// let mut level = AdaptiveLevel::new(Alpha::new(0.1)?, 0.05, None)?;
/// assert!(level.update(0.02)); // a p-value of at most the level is a miss, and the level falls
/// assert_eq!(level.level(), 0.1 + 0.05 * (0.1 - 1.0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLevel {
    target: Alpha,
    step: f64,
    decay: Option<f64>,
    level: f64,
    rows: u64,
    misses: u64,
}

impl AdaptiveLevel {
    /// With the step `η`, or `η·t^−decay` where it decays: at a rate between one half and one the level settles where
    /// nothing changes. A step of 0 keeps the level.
    pub fn new(target: Alpha, step: f64, decay: Option<f64>) -> Result<Self> {
        if !(0.0..f64::INFINITY).contains(&step) {
            let (name, wanted) = ("step", "a finite number of at least 0");
            return Err(Error::Parameter { name, wanted, got: step });
        }
        if let Some(decay) = decay.filter(|decay| !(*decay > 0.0 && *decay <= 1.0)) {
            return Err(Error::Parameter { name: "decay", wanted: "above 0 and at most 1", got: decay });
        }
        Ok(Self { target, step, decay, level: target.value(), rows: 0, misses: 0 })
    }

    /// The level of the next row.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Labelled rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them were missed.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Takes in the p-value of a true label; whether its set missed it.
    pub fn update(&mut self, p_value: f64) -> bool {
        self.rows += 1;
        let miss = p_value <= self.level;
        let step = match self.decay {
            None => self.step,
            Some(decay) => self.step * pow(self.rows as f64, -decay),
        };
        self.level += step * (self.target.value() - f64::from(u8::from(miss)));
        self.misses += u64::from(miss);
        miss
    }

    /// How far the share of misses may be from the level asked for, whatever came.
    pub fn bound(&self) -> f64 {
        let (t, target) = (self.rows as f64, self.target.value());
        match self.decay {
            _ if self.step == 0.0 || self.rows == 0 => f64::INFINITY,
            None => (target.max(1.0 - target) + self.step) / (self.step * t),
            Some(decay) => (1.0 + self.step) / (t * self.step * pow(t, -decay)),
        }
    }
}

/// Capital that grows when scores stop being exchangeable: a Simple Jumper over smoothed p-values.
///
/// ```
/// use conformax::Alarm;
/// let mut alarm = Alarm::new(&[1.0, 2.0, 3.0, 4.0], 0.01, 0)?;
/// for strange in 5..60 {
///     alarm.update(f64::from(strange), None)?;
/// }
/// assert!(alarm.capital() > 20.0); // at most once in twenty streams where nothing changed
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    seen: Counted,
    jump: f64,
    seed: u64,
    updates: u64,
    /// Shares of the capital that bet on small, on no, and on large p-values.
    shares: [f64; 3],
    log_capital: f64,
    highest: f64,
}

/// What each share bets on.
const BETS: [f64; 3] = [-1.0, 0.0, 1.0];

impl Alarm {
    /// Against these calibration scores. A share `jump` of the capital changes its bet after every row; `seed` is that of
    /// the draws that break ties.
    pub fn new(scores: &[f64], jump: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&jump) {
            return Err(Error::Parameter { name: "jump", wanted: "between 0 and 1", got: jump });
        }
        let mut seen = Counted::default();
        for (row, score) in (0..).zip(scores) {
            if score.is_nan() {
                return Err(Error::ScoreIsNan { row });
            }
            seen.insert(*score);
        }
        Ok(Self { seen, jump, seed, updates: 0, shares: [1.0 / 3.0; 3], log_capital: 0.0, highest: 0.0 })
    }

    /// Takes in the score of a true label, and returns the logarithm of the capital. `u` is the draw that breaks ties, the
    /// alarm's own where not given.
    pub fn update(&mut self, score: f64, u: Option<f64>) -> Result<f64> {
        self.p_value(score, u).map(|p| self.bet(p))
    }

    /// Takes in a score and returns its smoothed p-value among all scores so far, without a bet.
    fn p_value(&mut self, score: f64, u: Option<f64>) -> Result<f64> {
        if score.is_nan() {
            return Err(Error::ScoreIsNan { row: self.updates });
        }
        let drawn = (mix(mix(self.seed) ^ self.updates) >> 11) as f64 / (1_u64 << 53) as f64;
        let u = u.unwrap_or(drawn);
        if !(0.0..1.0).contains(&u) {
            return Err(Error::Draw { row: self.updates, value: u });
        }
        self.seen.insert(score);
        self.updates += 1;
        let (above, equal) = self.seen.above_and_equal(score);
        Ok((above as f64 + u * equal as f64) / self.seen.len() as f64)
    }

    fn bet(&mut self, p: f64) -> f64 {
        let mut won = 0.0;
        for (share, bet) in self.shares.iter_mut().zip(BETS) {
            *share = ((1.0 - self.jump) * *share + self.jump / 3.0) * (1.0 + bet * (p - 0.5));
            won += *share;
        }
        self.shares.iter_mut().for_each(|share| *share /= won);
        self.log_capital += ln(won);
        self.highest = self.highest.max(self.log_capital);
        self.log_capital
    }

    /// The capital, which began at 1; it may overflow where its logarithm does not.
    pub fn capital(&self) -> f64 {
        exp(self.log_capital)
    }

    /// The logarithm of the capital.
    pub fn log_capital(&self) -> f64 {
        self.log_capital
    }

    /// The largest logarithm so far: with probability at least `1 − δ` it never reaches `ln(1/δ)` where nothing changes.
    pub fn highest(&self) -> f64 {
        self.highest
    }

    /// Scores seen, those of calibration included.
    pub fn rows(&self) -> u64 {
        self.seen.len()
    }
}

/// Numbers with repetition, in a tree that knows how many lie above one: O(log n) a call.
///
/// A treap whose priorities are hashes of the numbers, so that its shape depends on what is in it alone.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    nodes: Vec<Node>,
    root: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    key: f64,
    priority: u64,
    count: u64,
    /// With everything below.
    total: u64,
    left: Option<u32>,
    right: Option<u32>,
}

impl Counted {
    fn len(&self) -> u64 {
        self.total(self.root)
    }

    fn total(&self, node: Option<u32>) -> u64 {
        node.map_or(0, |node| self.nodes[node as usize].total)
    }

    fn insert(&mut self, key: f64) {
        // −0 is 0.
        let key = key + 0.0;
        self.root = Some(self.inserted(self.root, key));
    }

    fn inserted(&mut self, node: Option<u32>, key: f64) -> u32 {
        let Some(at) = node else {
            let priority = mix(key.to_bits());
            self.nodes.push(Node { key, priority, count: 1, total: 1, left: None, right: None });
            return self.nodes.len() as u32 - 1;
        };
        let Node { key: own, left, right, .. } = self.nodes[at as usize];
        let top = if key < own {
            let child = self.inserted(left, key);
            self.nodes[at as usize].left = Some(child);
            if self.priority(child) > self.priority(at) { self.turned(at, child, true) } else { at }
        } else if key > own {
            let child = self.inserted(right, key);
            self.nodes[at as usize].right = Some(child);
            if self.priority(child) > self.priority(at) { self.turned(at, child, false) } else { at }
        } else {
            self.nodes[at as usize].count += 1;
            at
        };
        self.recount(at);
        self.recount(top);
        top
    }

    fn priority(&self, node: u32) -> u64 {
        self.nodes[node as usize].priority
    }

    /// Puts a child above its parent.
    fn turned(&mut self, parent: u32, child: u32, from_left: bool) -> u32 {
        if from_left {
            self.nodes[parent as usize].left = self.nodes[child as usize].right;
            self.nodes[child as usize].right = Some(parent);
        } else {
            self.nodes[parent as usize].right = self.nodes[child as usize].left;
            self.nodes[child as usize].left = Some(parent);
        }
        child
    }

    fn recount(&mut self, node: u32) {
        let Node { count, left, right, .. } = self.nodes[node as usize];
        self.nodes[node as usize].total = count + self.total(left) + self.total(right);
    }

    fn above_and_equal(&self, key: f64) -> (u64, u64) {
        let (mut above, mut at) = (0, self.root);
        while let Some(node) = at {
            let Node { key: own, count, left, right, .. } = self.nodes[node as usize];
            if key < own {
                above += count + self.total(right);
                at = left;
            } else if key > own {
                at = right;
            } else {
                return (above + self.total(right), count);
            }
        }
        (above, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_counts_as_a_list_does() {
        let (mut tree, mut list, mut state) = (Counted::default(), Vec::new(), 7_u64);
        for _ in 0..2_000 {
            state = mix(state);
            let key = (state % 500) as f64 / 7.0 - 20.0;
            tree.insert(key);
            list.push(key);
            let above = list.iter().filter(|other| **other > key).count() as u64;
            let equal = list.iter().filter(|other| **other == key).count() as u64;
            assert_eq!(tree.above_and_equal(key), (above, equal));
            assert_eq!(tree.len(), list.len() as u64);
        }
        // Rising numbers make no list of the tree.
        let mut rising = Counted::default();
        (0..100_000).for_each(|key| rising.insert(f64::from(key)));
        let depth = |tree: &Counted| {
            let mut most = 0;
            let mut open = vec![(tree.root, 0)];
            while let Some((node, depth)) = open.pop() {
                if let Some(node) = node.map(|node| tree.nodes[node as usize]) {
                    most = most.max(depth);
                    open.extend([(node.left, depth + 1), (node.right, depth + 1)]);
                }
            }
            most
        };
        assert!(depth(&rising) < 64, "{}", depth(&rising));
    }

    #[test]
    fn misses_keep_to_their_bounds_whatever_comes() {
        let target = Alpha::new(0.1).unwrap();
        for (step, decay) in [(0.05, None), (0.005, None), (0.2, Some(0.6)), (1.0, Some(0.6))] {
            // An adversary who knows the level: rows that are missed as often, or as seldom, as can be.
            for stubborn in [0.0, 1.0, 0.5] {
                let mut level = AdaptiveLevel::new(target, step, decay).unwrap();
                for row in 1..=1_000_000_u64 {
                    let p = if stubborn == 0.5 {
                        if mix(row).is_multiple_of(3) { 0.0 } else { 1.0 }
                    } else {
                        stubborn
                    };
                    level.update(p);
                    if row.is_power_of_two() || row == 1_000_000 {
                        let off = (level.misses() as f64 / row as f64 - target.value()).abs();
                        assert!(off <= level.bound() + 1e-9, "{step} {decay:?} {stubborn} {row}: {off}");
                    }
                }
            }
        }
    }
}
