//! Fingerprints: a 64-bit name for a row's values, so that a model knows the rows that had a part in it.
//!
//! The hash `conformax-row-1` is fixed for ever, since calibration files carry its results. A row of K logits is a list
//! of `f64` bit patterns, −0 counted as +0, filled up with +0 to a multiple of eight. With `mix(a, b)` the two halves
//! of the 128-bit product of a and b, xor-ed, and `C₀…C₇` the first 64 fractional bits of √2, √3, √5, √7, √11, √13,
//! √17, √19: four lanes start at `C₀…C₃`; for every eight values `v₀…v₇`, lane `i` becomes
//! `mix(laneᵢ ^ v₂ᵢ, v₂ᵢ₊₁ ^ Cᵢ₊₄)`; and the hash starts at K and becomes `mix(hash ^ laneᵢ, Cᵢ)` for each lane in
//! turn. Types play no part, so the same values have the same fingerprint from any format.

use std::iter::Peekable;

use crate::kernel::{Isa, Kernel};
use crate::rows::map_chunks;
use crate::{Logit, Logits};

const C: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// Name of the hash, stored with the fingerprints it made.
pub const ROW_HASH: &str = "conformax-row-1";

/// The fingerprint of every row.
///
/// ```
/// use conformax::{Logits, row_fingerprints};
/// let single = row_fingerprints(Logits::new(&[1.0_f32, 2.0, 1.0, 2.5], 2)?);
/// assert_eq!(single, row_fingerprints(Logits::new(&[1.0_f64, 2.0, 1.0, 2.5], 2)?));
/// assert_ne!(single[0], single[1]);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn row_fingerprints<T: Logit>(logits: Logits<'_, T>) -> Vec<u64> {
    let hashed = map_chunks(logits, |_, chunk| Ok(hash_rows(chunk))).unwrap_or_default();
    hashed.concat()
}

/// The same on one thread.
pub(crate) fn hash_rows<T: Logit>(logits: Logits<'_, T>) -> Vec<u64> {
    Isa::best().dispatch(Hashes { rows: logits.as_slice(), classes: logits.classes() })
}

/// The hash of every row, some at a time: a multiplication waits for the one before it in its own row alone.
struct Hashes<'a, T> {
    rows: &'a [T],
    classes: usize,
}

impl<T: Logit> Kernel for Hashes<'_, T> {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run(self) -> Vec<u64> {
        let mut hashes = Vec::with_capacity(self.rows.len() / self.classes);
        let mut pairs = self.rows.chunks_exact(2 * self.classes);
        for pair in &mut pairs {
            let (one, other) = pair.split_at(self.classes);
            hashes.extend(hash_each([one, other]));
        }
        hashes.extend(pairs.remainder().chunks_exact(self.classes).map(|row| hash_each([row])[0]));
        hashes
    }
}

/// Values whose bits are found before any of them is mixed, a multiple of eight. In a loop of its own that is done for
/// several values at a time; next to the multiplications it was done one by one, and took twice as long as they do.
const TOGETHER: usize = 64;

/// The hashes of rows of one length. Plain loops: closures over arrays are not inlined into what an instruction set is
/// compiled for.
#[inline(always)]
fn hash_each<T: Logit, const ROWS: usize>(rows: [&[T]; ROWS]) -> [u64; ROWS] {
    let len = rows[0].len();
    let (mut lanes, mut values) = ([[C[0], C[1], C[2], C[3]]; ROWS], [[0; TOGETHER]; ROWS]);
    let whole = len / TOGETHER;
    for chunk in 0..whole {
        for row in 0..ROWS {
            let from = &rows[row].as_chunks::<TOGETHER>().0[chunk];
            for at in 0..TOGETHER {
                values[row][at] = bits(from[at]);
            }
        }
        for eight in 0..TOGETHER / 8 {
            for row in 0..ROWS {
                absorb(&mut lanes[row], &values[row].as_chunks::<8>().0[eight]);
            }
        }
    }
    let rest = len - whole * TOGETHER;
    let filled = rest.next_multiple_of(8);
    for row in 0..ROWS {
        for at in 0..rest {
            values[row][at] = bits(rows[row][whole * TOGETHER + at]);
        }
        values[row][rest..filled].fill(0);
    }
    for eight in 0..filled / 8 {
        for row in 0..ROWS {
            absorb(&mut lanes[row], &values[row].as_chunks::<8>().0[eight]);
        }
    }
    let mut hashes = [len as u64; ROWS];
    for row in 0..ROWS {
        for lane in 0..4 {
            hashes[row] = mix(hashes[row] ^ lanes[row][lane], C[lane]);
        }
    }
    hashes
}

/// The bits of the value in `f64`; −0 counts as +0.
#[inline(always)]
fn bits<T: Logit>(value: T) -> u64 {
    (value.to_f64() + 0.0).to_bits()
}

#[inline(always)]
fn absorb(lanes: &mut [u64; 4], values: &[u64; 8]) {
    for lane in 0..4 {
        lanes[lane] = mix(lanes[lane] ^ values[2 * lane], values[2 * lane + 1] ^ C[lane + 4]);
    }
}

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// One number for a list of numbers: a checksum, or a fingerprint of rows in their order.
#[must_use]
pub(crate) fn mix_all(values: impl IntoIterator<Item = u64>) -> u64 {
    let (state, count) =
        values.into_iter().fold((0, 0u64), |(state, count), value| (mix(state ^ value, C[0]), count + 1));
    mix(state ^ count, C[1])
}

/// One number for a data set: its rows in their order.
///
/// ```
/// use conformax::DataFingerprint;
/// let (mut whole, mut parts) = (DataFingerprint::default(), DataFingerprint::default());
/// whole.extend(&[1, 2, 3]);
/// parts.extend(&[1]);
/// parts.extend(&[2, 3]);
/// assert_eq!(whole, parts);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataFingerprint {
    state: u64,
    rows: u64,
}

impl DataFingerprint {
    /// Takes in the fingerprints of further rows.
    pub fn extend(&mut self, rows: &[u64]) {
        self.state = rows.iter().fold(self.state, |state, &row| mix(state ^ row, C[0]));
        self.rows += rows.len() as u64;
    }

    /// The number.
    pub fn value(&self) -> u64 {
        mix(self.state ^ self.rows, C[1])
    }
}

impl std::fmt::Display for DataFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

/// Fingerprints kept at most: those of all rows up to here, beyond it a sample that depends on the rows alone.
const MOST: usize = 1 << 18;

/// The rows that had a part in a model, by their fingerprints: gathered in any order and in bounded memory.
///
/// The smallest fingerprints are kept, which are a random sample of the rows, the same however the rows come, and how
/// often each was met: equal rows are common in honest data (empty texts, trees, quantised models), so only a row that
/// is alone in being what it is can say that it has been seen before, and how many come in pairs says how often that is
/// chance.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSample {
    /// Fingerprints in rising order, and how often each was met.
    kept: Vec<(u64, u32)>,
    /// Those since the last time they were put in order.
    fresh: Vec<u64>,
    /// Whether fingerprints beyond the last kept have been let go.
    cut: bool,
}

impl RowSample {
    pub(crate) fn extend(&mut self, rows: &[u64]) {
        let mut up_to = self.up_to();
        for row in rows {
            // Of very many rows nearly all are too large to be kept, and are not put in order.
            if *row <= up_to {
                self.fresh.push(*row);
                if self.fresh.len() == MOST {
                    self.settle();
                    up_to = self.up_to();
                }
            }
        }
    }

    /// The largest fingerprint that may be among those kept.
    fn up_to(&self) -> u64 {
        match self.kept.last() {
            Some((last, _)) if self.cut => *last,
            _ => u64::MAX,
        }
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        other.settle();
        self.settle();
        self.take_in(other.kept.into_iter());
        self.cut |= other.cut;
    }

    /// Puts the fresh ones in order among the others.
    fn settle(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_unstable();
        self.take_in(fresh.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)));
    }

    /// Puts rising fingerprints, each once with how often it was met, among those that are kept, and lets go of the
    /// largest where they are too many.
    fn take_in(&mut self, others: impl Iterator<Item = (u64, u32)>) {
        let mut others = others.peekable();
        if others.peek().is_none() {
            return;
        }
        let kept = std::mem::take(&mut self.kept);
        self.kept.reserve_exact((kept.len() + others.size_hint().1.unwrap_or(MOST)).min(MOST));
        let mut kept = kept.into_iter().peekable();
        while let Some(next) = next_of(&mut kept, &mut others) {
            if self.kept.len() == MOST {
                self.cut = true;
                return;
            }
            self.kept.push(next);
        }
    }

    /// The rows that occur once, and how far up the fingerprints they are known.
    pub(crate) fn finish(mut self) -> RowSet {
        self.settle();
        let up_to = self.up_to();
        let mut all = Whole::default();
        self.kept.iter().for_each(|(row, count)| all.add(*row, u64::from(*count)));
        let whole = (self.kept.len() >= FEWEST_DIFFERENT).then_some(all.sum);
        let pairs = self.kept.iter().filter(|(_, count)| *count == 2).count() as u64;
        let once = self.kept.into_iter().filter(|(_, count)| *count == 1).map(|(row, _)| row).collect();
        RowSet { once, up_to, rows: all.rows, pairs, whole }
    }

    /// In order, for whoever writes them down.
    pub(crate) fn settled(mut self) -> (Vec<(u64, u32)>, bool) {
        self.settle();
        (self.kept, self.cut)
    }

    pub(crate) fn from_settled(kept: Vec<(u64, u32)>, cut: bool) -> Option<Self> {
        let sound = kept.len() <= MOST
            && kept.is_sorted_by(|a, b| a.0 < b.0)
            && kept.iter().all(|(_, count)| *count > 0);
        sound.then_some(Self { kept, fresh: Vec::new(), cut })
    }
}

/// The smaller of what two rising lists go on with; where both have it, counted together.
fn next_of<A: Iterator<Item = (u64, u32)>, B: Iterator<Item = (u64, u32)>>(
    a: &mut Peekable<A>,
    b: &mut Peekable<B>,
) -> Option<(u64, u32)> {
    match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if x.0 == y.0 => {
            let (x, y) = (a.next()?, b.next()?);
            Some((x.0, x.1.saturating_add(y.1)))
        }
        (Some(x), Some(y)) if x.0 > y.0 => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    }
}

/// Rows counted and summed, in any order: of two data sets the same only where they have the same rows as often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) rows: u64,
    pub(crate) sum: u64,
}

impl Whole {
    fn add(&mut self, row: u64, times: u64) {
        self.merge(Self { rows: times, sum: mix(row ^ C[2], C[3]).wrapping_mul(times) });
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// Rows of fewer kinds than this may come as often as other rows do, kind by kind, by chance. Of 16 kinds and more they
/// do so less than twice in a million times, however common each is: the largest probability is that of 16 rows all
/// different, `16!/16¹⁶`.
const FEWEST_DIFFERENT: usize = 16;

/// Fingerprints of rows that occur once among those that calibrated or tuned a model, rising, and one number for all of
/// its rows.
///
/// ```
/// use conformax::RowSet;
/// let rows = RowSet::new(vec![7, 9, 7, 2]);
/// assert!(rows.contains(9) && !rows.contains(7)); // two equal rows say nothing of a third
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    once: Vec<u64>,
    up_to: u64,
    rows: u64,
    pairs: u64,
    whole: Option<u64>,
}

impl Default for RowSet {
    fn default() -> Self {
        Self { once: Vec::new(), up_to: u64::MAX, rows: 0, pairs: 0, whole: None }
    }
}

impl RowSet {
    /// Of the fingerprints of all rows.
    pub fn new(rows: Vec<u64>) -> Self {
        let mut sample = RowSample::default();
        sample.extend(&rows);
        sample.finish()
    }

    /// From rising fingerprints, none beyond `up_to`, of so many rows, repeated ones included, and so many pairs of
    /// equal rows; `None` where they do not fit together.
    pub fn from_parts(once: Vec<u64>, up_to: u64, rows: u64, pairs: u64) -> Option<Self> {
        let sound = once.is_sorted_by(|a, b| a < b)
            && once.last().is_none_or(|last| *last <= up_to)
            && pairs
                .checked_mul(2)
                .and_then(|paired| paired.checked_add(once.len() as u64))
                .is_some_and(|least| least <= rows);
        sound.then_some(Self { once, up_to, rows, pairs, whole: None })
    }

    /// The same with the number for all of its rows, where it is known.
    #[must_use]
    pub fn with_whole(self, whole: Option<u64>) -> Self {
        Self { whole, ..self }
    }

    /// One number for all rows of which anything is known, in any order and repeated ones as often as they come; `None`
    /// where they are of so few kinds that other rows may be the same by chance.
    pub fn whole(&self) -> Option<u64> {
        self.whole
    }

    /// Rows, repeated ones included, of which anything is known.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many different rows occur exactly twice.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// How many of `others` fresh rows are equal to one of these, and alone on both sides, by chance: as many as there
    /// are pairs here, but for how many ways there are to deal a pair out.
    fn alike_by_chance(&self, others: u64) -> f64 {
        if self.rows == 0 { 0.0 } else { 2.0 * self.pairs as f64 * (others as f64 / self.rows as f64) }
    }

    /// Whether this row is one of them.
    pub fn contains(&self, row: u64) -> bool {
        self.once.binary_search(&row).is_ok()
    }

    /// Whether anything is known of a row with this fingerprint.
    pub fn knows(&self, row: u64) -> bool {
        row <= self.up_to
    }

    /// The fingerprints, rising.
    pub fn as_slice(&self) -> &[u64] {
        &self.once
    }

    /// The largest fingerprint of which anything is known: rows beyond it were too many to keep.
    pub fn up_to(&self) -> u64 {
        self.up_to
    }
}

/// Rows looked at in an evaluation that also had a part in the model, as far as can be told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overlap {
    /// Rows whose fingerprint the model would know.
    pub(crate) looked_at: u64,
    /// Those that each of the model's sets of rows would know; nothing before the first row.
    pub(crate) wholes: Vec<Whole>,
    /// Of the fingerprints that the model has: how often each came, and in which row first.
    pub(crate) met: std::collections::BTreeMap<u64, (u64, u64)>,
}

impl Overlap {
    pub(crate) fn extend(&mut self, first_row: u64, fingerprints: &[u64], model: &[RowSet]) {
        self.wholes.resize(model.len(), Whole::default());
        for (row, name) in (first_row..).zip(fingerprints) {
            let (mut known, mut is_there) = (false, false);
            for (whole, rows) in self.wholes.iter_mut().zip(model).filter(|(_, rows)| rows.knows(*name)) {
                whole.add(*name, 1);
                known = true;
                is_there |= rows.contains(*name);
            }
            self.looked_at += u64::from(known);
            if is_there {
                let met = self.met.entry(*name).or_insert((0, row));
                *met = (met.0 + 1, met.1.min(row));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.looked_at += other.looked_at;
        self.wholes.resize(self.wholes.len().max(other.wholes.len()), Whole::default());
        self.wholes.iter_mut().zip(&other.wholes).for_each(|(mine, theirs)| mine.merge(*theirs));
        for (name, (count, first)) in &other.met {
            let met = self.met.entry(*name).or_insert((0, *first));
            *met = (met.0 + count, met.1.min(*first));
        }
    }

    /// Whether these are, in whatever order, all the rows of one of the model's sets, or of all of them together.
    fn is_of(&self, model: &[RowSet]) -> bool {
        let of_set = |rows: &RowSet| Some(Whole { rows: rows.rows, sum: rows.whole? });
        let of_one = self.wholes.iter().zip(model).any(|(met, rows)| of_set(rows) == Some(*met));
        let together = model.iter().filter(|rows| rows.up_to == u64::MAX).map(of_set);
        let together = together.collect::<Option<Vec<_>>>().filter(|sets| sets.len() == model.len());
        let together = together.and_then(|sets| {
            sets.into_iter().reduce(|mut all, rows| {
                all.merge(rows);
                all
            })
        });
        of_one || together.is_some_and(|all| self.wholes.first() == Some(&all))
    }

    pub(crate) fn finish(&self, model: &[RowSet]) -> SeenRows {
        if self.is_of(model) {
            let rows = self.looked_at;
            return SeenRows { rows, seen: rows, first: Some(0), by_chance: 0.0 };
        }
        let alone = self.met.values().filter(|(count, _)| *count == 1);
        SeenRows {
            rows: self.looked_at,
            seen: alone.clone().count() as u64,
            first: alone.map(|(_, row)| *row).min(),
            by_chance: model.iter().map(|rows| rows.alike_by_chance(self.looked_at)).sum(),
        }
    }
}

/// How many test rows had a part in the model: rows whose logits occur once among the model's rows and once here.
///
/// Equal rows are common in honest data and are no evidence. How many are alike by chance is told by the pairs among
/// the model's own rows; where [`SeenRows::MOST`] of the rows and more are alike beyond that, it is the same data. So
/// are all the rows of the model, each as often as there, in whatever order: that is seen also where every row has an
/// equal.
///
/// ```
/// use conformax::{EntmaxScore, Evaluator, Logits, Predictor, RowSet, Thresholds, row_fingerprints};
/// let (logits, mine) = (Logits::new(&[0.0_f32, 3.0, 2.0, 1.0], 2)?, row_fingerprints);
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
/// let mut evaluator = Evaluator::new(vec![model], 2)?.watching_for(vec![RowSet::new(mine(logits))]);
/// evaluator.extend(logits.labelled(&[1, 0])?)?;
/// let seen = evaluator.finish()?.seen;
/// assert!(seen.first == Some(0) && seen.are_the_same_data());
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SeenRows {
    /// Rows that could be looked up.
    pub rows: u64,
    /// Rows among them that had a part in the model.
    pub seen: u64,
    /// The first of those.
    pub first: Option<u64>,
    /// How many would be alike by chance.
    pub by_chance: f64,
}

impl SeenRows {
    /// The share of rows up to which an evaluation goes on, with a warning.
    pub const MOST: f64 = 0.05;

    /// Whether more rows were seen than chance explains: three deviations beyond what it gives on average.
    pub fn are_no_chance(&self) -> bool {
        self.beyond_chance() > 0.0
    }

    /// Whether so many rows were seen that the evaluation says nothing about new ones.
    pub fn are_the_same_data(&self) -> bool {
        self.beyond_chance() > Self::MOST * self.rows as f64
    }

    fn beyond_chance(&self) -> f64 {
        self.seen as f64 - (self.by_chance + 3.0 * self.by_chance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(logits: &[f64], classes: usize) -> Vec<u64> {
        row_fingerprints(Logits::new(logits, classes).unwrap())
    }

    #[test]
    fn bits_never_change() {
        assert_eq!(hashes(&[1.0, 2.0, 3.0], 3), [FIXED[0]]);
        let long: Vec<f64> = (0..20).map(|value| f64::from(value) / 4.0 - 2.0).collect();
        assert_eq!(hashes(&long, 10), [FIXED[1], FIXED[2]]);
        let mut data = DataFingerprint::default();
        data.extend(&hashes(&long, 10));
        assert_eq!(data.value(), FIXED[3]);
        assert_eq!(mix_all(hashes(&long, 10)), FIXED[3]);
    }

    /// Computed by the description at the top of this file, in another language.
    const FIXED: [u64; 4] =
        [0x17d0_cfcf_b41a_4dfb, 0xd5cd_e2d3_1e67_b2df, 0xfce6_1cc3_70c3_ef41, 0xdd70_1ced_2413_d222];

    #[test]
    #[cfg(feature = "half")]
    fn depends_on_values_and_not_on_types() {
        use half::f16;
        let wide: Vec<f64> = (0..90).map(|value| f64::from(value) / 8.0 - 3.0).collect();
        let single: Vec<f32> = wide.iter().map(|&value| value as f32).collect();
        let half: Vec<f16> = wide.iter().map(|&value| f16::from_f64(value)).collect();
        let expected = hashes(&wide, 9);
        assert_eq!(row_fingerprints(Logits::new(&single, 9).unwrap()), expected);
        assert_eq!(row_fingerprints(Logits::new(&half, 9).unwrap()), expected);
    }

    #[test]
    fn minus_zero_is_zero_and_minus_infinity_is_not() {
        let zero = hashes(&[0.0, 1.0], 2);
        assert_eq!(hashes(&[-0.0, 1.0], 2), zero);
        assert_ne!(hashes(&[f64::NEG_INFINITY, 1.0], 2), zero);
    }

    /// Rows of any length, long ones among them, are what the description says of them.
    #[test]
    fn values_that_are_taken_together_are_mixed_eight_at_a_time() {
        for len in (1..140).chain([1000]) {
            let row: Vec<f32> = (0..len).map(|value| (value * 37 % 101) as f32 - 50.0).collect();
            let mut lanes = [C[0], C[1], C[2], C[3]];
            for eight in row.chunks(8) {
                let value = |index: usize| eight.get(index).map_or(0, |value| f64::from(*value).to_bits());
                for lane in 0..4 {
                    lanes[lane] = mix(lanes[lane] ^ value(2 * lane), value(2 * lane + 1) ^ C[lane + 4]);
                }
            }
            let wanted = lanes.iter().zip(C).fold(len as u64, |hash, (lane, c)| mix(hash ^ lane, c));
            for isa in Isa::available() {
                let three = [&row[..], &row, &row].concat();
                let found = isa.dispatch(Hashes { rows: &three, classes: len });
                assert_eq!(found, [wanted; 3], "{len} values, {isa:?}");
            }
        }
    }

    #[test]
    fn small_changes_and_lengths_matter() {
        let rows: [&[f64]; 5] = [&[0.0], &[0.0; 2], &[0.0; 8], &[1.0, 0.0], &[0.0, 1.0]];
        let mut all: Vec<u64> = rows.iter().flat_map(|row| hashes(row, row.len())).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    /// Any blocks, any order: the same rows are kept, and the same ones known to be repeated.
    #[test]
    fn a_sample_depends_on_the_rows_alone() {
        let rows: Vec<u64> =
            (0..3 * MOST as u64).map(|row| crate::random::mix(row % (2 * MOST as u64 + 77))).collect();
        let whole = RowSet::new(rows.clone());
        assert!(whole.up_to() < u64::MAX && whole.as_slice().len() < MOST);
        let mut merged = RowSample::default();
        for part in rows.chunks(MOST / 3 + 1).rev() {
            let mut sample = RowSample::default();
            sample.extend(part);
            merged.merge(sample);
        }
        assert_eq!(merged.finish(), whole);
        let plain: Vec<u64> = {
            let mut counts = std::collections::BTreeMap::new();
            rows.iter().for_each(|row| *counts.entry(*row).or_insert(0) += 1);
            counts.into_iter().take(MOST).filter(|(_, count)| *count == 1).map(|(row, _)| row).collect()
        };
        assert_eq!(whole.as_slice(), plain);
    }

    /// A random forest's rows: none is alone, and still they are known where all of them come again.
    #[test]
    fn all_rows_of_a_model_are_known_again_where_every_row_has_an_equal() {
        let rows = |kinds: u64| (0..3 * kinds).map(|row| crate::random::mix(row % kinds)).collect::<Vec<_>>();
        let seen = |met: &[u64], model: &[RowSet]| {
            let mut shards = [Overlap::default(), Overlap::default()];
            shards[0].extend(0, &met[..met.len() / 3], model);
            shards[1].extend(met.len() as u64 / 3, &met[met.len() / 3..], model);
            let [mut all, other] = shards;
            all.merge(&other);
            all.finish(model)
        };
        let model = [RowSet::new(rows(40))];
        assert!(model[0].as_slice().is_empty());
        let backwards: Vec<u64> = rows(40).into_iter().rev().collect();
        let found = seen(&backwards, &model);
        assert_eq!((found.seen, found.first, found.are_the_same_data()), (120, Some(0), true));
        assert_eq!(seen(&backwards[1..], &model).seen, 0, "one row less");
        let mut other = backwards.clone();
        other[0] = other[1];
        assert_eq!(seen(&other, &model).seen, 0, "as many, one of them another");
        let few = [RowSet::new(rows(15))];
        assert_eq!(
            (few[0].whole(), seen(&rows(15), &few).seen),
            (None, 0),
            "of so few kinds that may be chance"
        );
        // Those that tuned and those that calibrated, which were one file.
        let parts = [RowSet::new(backwards[..70].to_vec()), RowSet::new(backwards[70..].to_vec())];
        assert!(seen(&backwards, &parts).are_the_same_data());
        assert!(seen(&backwards[70..], &parts).are_the_same_data());
    }

    #[test]
    fn equal_rows_are_no_evidence() {
        let model = [RowSet::new(vec![1, 2, 2, 3, 4])];
        let mut overlap = Overlap::default();
        overlap.extend(10, &[9, 2, 2, 3, 3, 4], &model);
        let seen = overlap.finish(&model);
        assert_eq!((seen.rows, seen.seen, seen.first), (6, 1, Some(15)), "only 4 is alone on both sides");
        assert_eq!(seen.by_chance, 2.4, "one pair among five rows, six others");
        assert!(!seen.are_no_chance());
        let distinct = [RowSet::new(vec![1, 2, 3, 4])];
        let mut all = Overlap::default();
        all.extend(0, &[1, 2, 3, 4], &distinct);
        assert!(all.finish(&distinct).are_the_same_data());
        let mut other = Overlap::default();
        other.extend(0, &[4], &model);
        overlap.merge(&other);
        assert_eq!(overlap.finish(&model).seen, 0, "together it came twice");
    }
}
