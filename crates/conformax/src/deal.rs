//! `Dealer`: some rows choose clusters or ranks, the others calibrate; who does what is dealt out at the end.
//!
//! What chooses must not calibrate. Where a row stands cannot say what it is for: shards and pipes do not know that of
//! their rows. So each row has a coin, a hash of the seed, of all rows together, its label, its fingerprint and how
//! many equal rows come before it. Who chooses follows from the coins: the same in any order and any division.
//!
//! The hash stands for a coin that every row tosses by itself, and two things make it as good as one. Equal rows toss
//! theirs apart: were there one coin for all of a kind, a common kind would choose or calibrate as a whole, and
//! thresholds would be those of the other kinds (`tests/coverage/conditional.rs`). And other data have other coins: a
//! kind of row that is unlucky in one data set is no more so in the next.

use crate::fingerprint::{RowSample, RowSet, hash_rows};
use crate::label_scores::LabelScores;
use crate::random::{Generator, mix};
use crate::ranks::rank_of;
use crate::room::append;
use crate::rows::{first_fault, map_chunks, visit_rows};
use crate::score::paths::ask;
use crate::split::count_calibrating;
use crate::{
    Alpha, Calibration, Calibrator, ClusterPlan, Error, Labelled, Logit, Logits, Masked, Ranks, Remember,
    Result, Score, SortedScores, Taxonomy, cluster_classes, score_labels,
};

/// What the rows choose that then do not calibrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    /// Clusters of classes that share a threshold: so many, or as many as [`ClusterPlan`] says, on the share of the
    /// rows that it says.
    Clusters(Option<usize>),
    /// The largest rank of each label, on [`TuningSplit::FRACTION`](crate::TuningSplit::FRACTION) of the rows;
    /// thresholds are by label.
    Ranks,
}

/// A row, as far as it is needed at the end; its label is that of its list. In 20 bytes and not in 24.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(crate) struct Entry {
    pub(crate) fingerprint: u64,
    pub(crate) score: f64,
    /// Of the true label, from 1 on; 0 where nobody asks.
    pub(crate) rank: u32,
}

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same bits: to
/// clusters or ranks that some of the rows chose, and the calibration of the others.
///
/// It holds 20 bytes a row and an eighth of that to grow into; to finish takes at most nine bytes a row more, and what
/// a [`Calibrator`] takes to finish where clusters leave out classes.
///
/// ```
/// use conformax::{Alpha, Choose, Dealer, EntmaxScore, Logits};
/// let logits: Vec<f64> = (0..20).flat_map(|row| [f64::from(row), 9.0, 4.5]).collect();
/// let labels: Vec<u32> = (0..20).map(|row| row % 3).collect();
/// let mut dealer = Dealer::new(EntmaxScore::default(), 3, Choose::Ranks)?;
/// dealer.extend(Logits::new(&logits, 3)?.labelled(&labels)?)?;
/// let dealt = dealer.finish(Alpha::new(0.4)?)?;
/// assert_eq!((dealt.calibration.n(), dealt.choosing.rows()), (12, 8)); // ⌈0.6 n⌉ and the rest
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dealer<S> {
    pub(crate) score: S,
    pub(crate) masked: Masked,
    pub(crate) choose: Choose,
    pub(crate) seed: u64,
    /// The rows of each label, in the order they came.
    pub(crate) rows: Vec<Vec<Entry>>,
}

/// What rows chose, and what the others calibrated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dealt<S> {
    /// By the clusters or with the ranks that were chosen; it remembers its rows.
    pub calibration: Calibration<S>,
    /// How many rows of each label calibrated.
    pub counts: Vec<u64>,
    /// The rows that chose.
    pub choosing: RowSet,
}

impl<S: Score> Dealer<S> {
    /// For this score, on rows of so many classes.
    pub fn new(score: S, classes: usize, choose: Choose) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        if choose == Choose::Clusters(Some(0)) {
            return Err(Error::Parameter { name: "clusters", wanted: "at least 1", got: 0.0 });
        }
        Ok(Self { score, masked: Masked::default(), choose, seed: 0, rows: vec![Vec::new(); classes] })
    }

    /// The same with this meaning of −∞; before the first row.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same with other coins; 0 unless said.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same without its rows: what is taken in by it can be merged into this one.
    #[must_use]
    pub fn emptied(&self) -> Self
    where
        S: Clone,
    {
        let Self { score, masked, choose, seed, rows } = self;
        let (score, rows) = (score.clone(), vec![Vec::new(); rows.len()]);
        Self { score, masked: *masked, choose: *choose, seed: *seed, rows }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }

    /// Takes in rows. An error names the row in the whole, counted from the first that this accumulator took in, and
    /// leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let (wanted, got) = (self.rows.len(), rows.logits().classes());
        if wanted != got {
            return Err(Error::ClassCount { wanted, got });
        }
        let chunks = self.entries(rows).map_err(|error| error.offset_rows(self.n()))?;
        for (label, entry) in rows.labels().iter().zip(chunks.into_iter().flatten()) {
            append(&mut self.rows[*label as usize], &[entry]);
        }
        Ok(())
    }

    fn entries<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<Vec<Entry>>> {
        first_fault([self.masked.check(rows)], |row| {
            score_labels(&self.score, rows.before(row)).map(|_| ())
        })?;
        map_chunks(rows.logits(), |first, chunk| {
            let labels = &rows.labels()[first..first + chunk.len()];
            let scores = ask(&self.score, LabelScores { first, chunk, labels })?;
            let scored = hash_rows(chunk).into_iter().zip(scores);
            let mut entries: Vec<Entry> =
                scored.map(|(fingerprint, score)| Entry { fingerprint, score, rank: 0 }).collect();
            if self.choose == Choose::Ranks {
                visit_rows(first, chunk, |index, row| {
                    entries[index].rank = rank_of(row, labels[index]) as u32;
                    Ok(())
                })?;
            }
            Ok(entries)
        })
    }

    /// Takes in what another took in. It must be of the same score, classes, policies and choice.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != other.score => Some("scores"),
            () if self.rows.len() != other.rows.len() => Some("numbers of classes"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.choose != other.choose => Some("ways to thresholds"),
            () if self.seed != other.seed => Some("seeds"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        self.rows.iter_mut().zip(other.rows).for_each(|(mine, theirs)| append(mine, &theirs));
        Ok(())
    }

    /// Deals out the rows, lets some choose at a level, and calibrates on the others. An error where there is no row,
    /// or where they are too few to find clusters.
    pub fn finish(self, alpha: Alpha) -> Result<Dealt<S>> {
        if self.n() == 0 {
            return Err(Error::NoCalibrationRows);
        }
        let Self { score, masked, choose, seed, mut rows } = self;
        rows.iter_mut().for_each(|rows| in_order(rows));
        let (counts, coins) = (counted(&rows), coins_of(&rows, seed));
        let empty = Calibrator::new(score, rows.len())?.with_masked(masked).remembering(Remember::Rows);
        let (choosing, mut calibrator) = match choose {
            Choose::Clusters(wanted) => {
                let too_few = || Error::FewForClusters {
                    alpha,
                    classes: counts.len(),
                    rarest: counts.iter().copied().min().unwrap_or_default(),
                };
                let plan = ClusterPlan::for_counts(&counts, alpha).ok_or_else(too_few)?;
                let calibrates = |coin| !is_below(coin, plan.share);
                let (scores, choosing) = taken_out(&mut rows, &coins, calibrates, |row| row.score);
                let scores = scores.into_iter().map(SortedScores::of_any).collect::<Result<Vec<_>>>()?;
                let clusters = wanted.unwrap_or(plan.clusters);
                let clusters = cluster_classes(&scores, clusters, plan.rows_wanted, seed)?;
                if clusters.iter().all(Option::is_none) {
                    return Err(too_few());
                }
                (choosing, empty.by(Taxonomy::Cluster(clusters))?)
            }
            Choose::Ranks => {
                let wanted = count_calibrating(counts.iter().sum());
                let calibrates = smallest(tossed(&rows, &coins), wanted);
                let (ranks, choosing) = taken_out(&mut rows, &coins, calibrates, |row| row.rank);
                (choosing, empty.by(Taxonomy::Label)?.with_ranks(Ranks::chosen(ranks, alpha)?)?)
            }
        };
        let (counts, ranks) = (counted(&rows), calibrator.ranks.clone());
        for (label, rows) in (0..).zip(rows) {
            let stands_behind = |rank| ranks.as_ref().is_some_and(|ranks| !ranks.allow(label, rank));
            let scored = rows.iter().map(|row| match stands_behind(row.rank) {
                true => (row.fingerprint, f64::INFINITY),
                false => (row.fingerprint, row.score),
            });
            calibrator.add(label, scored);
        }
        Ok(Dealt { calibration: calibrator.finish()?, counts, choosing })
    }
}

/// Puts rows of one label in an order that does not depend on the one in which they came.
pub(crate) fn in_order(rows: &mut [Entry]) {
    let of_row = |row: &Entry| (row.fingerprint, row.rank);
    rows.sort_unstable_by(|a, b| of_row(a).cmp(&of_row(b)).then({ a.score }.total_cmp(&{ b.score })));
}

fn counted(rows: &[Vec<Entry>]) -> Vec<u64> {
    rows.iter().map(|rows| rows.len() as u64).collect()
}

/// Where the coins of these rows come from.
fn coins_of(rows: &[Vec<Entry>], seed: u64) -> Generator {
    let together = rows.iter().flatten().fold(0, |sum: u64, row| sum.wrapping_add(mix(row.fingerprint)));
    Generator::new(seed, "deal").stream(together)
}

/// The coins of the rows of a label, which come in order.
struct Coins {
    of_label: Generator,
    last: Option<u64>,
    equal_before: u64,
}

/// Coins are numbers below this.
const COINS: u64 = 1 << 63;

impl Coins {
    fn new(coins: &Generator, label: u32) -> Self {
        Self { of_label: coins.stream(u64::from(label)), last: None, equal_before: 0 }
    }

    fn toss(&mut self, fingerprint: u64) -> u64 {
        self.equal_before = if self.last == Some(fingerprint) { self.equal_before + 1 } else { 0 };
        self.last = Some(fingerprint);
        self.of_label.stream(fingerprint).stream(self.equal_before).below(COINS)
    }
}

/// The coins of all rows, which are in order.
fn tossed(rows: &[Vec<Entry>], coins: &Generator) -> Vec<u64> {
    let mut all = Vec::with_capacity(rows.iter().map(Vec::len).sum());
    for (label, rows) in (0..).zip(rows) {
        let mut coins = Coins::new(coins, label);
        all.extend(rows.iter().map(|row| coins.toss(row.fingerprint)));
    }
    all
}

/// Whether a coin falls so that so many of so many do.
fn is_below(coin: u64, (part, of): (u64, u64)) -> bool {
    u128::from(coin) * u128::from(of) < u128::from(part) * u128::from(COINS)
}

/// Whether a coin is one of so many smallest, asked of each in order: of equal ones the first are.
fn smallest(mut coins: Vec<u64>, count: u64) -> impl FnMut(u64) -> bool {
    let last = (count as usize).min(coins.len()).checked_sub(1);
    let (largest, mut left) = match last.map(|last| coins.select_nth_unstable(last)) {
        Some((smaller, largest, _)) => {
            (*largest, 1 + smaller.iter().filter(|coin| **coin == *largest).count())
        }
        None => (0, 0),
    };
    move |coin| {
        let is_last = coin == largest && left > 0;
        left -= usize::from(is_last);
        is_last || coin < largest
    }
}

/// Takes out the rows that choose, whose coins say that they do not calibrate: what they choose with, label by label,
/// and who they were.
fn taken_out<V: Copy>(
    rows: &mut [Vec<Entry>],
    coins: &Generator,
    mut calibrates: impl FnMut(u64) -> bool,
    chooses_with: impl Fn(&Entry) -> V,
) -> (Vec<Vec<V>>, RowSet) {
    let mut names = RowSample::default();
    let of_label = |(label, rows): (u32, &mut Vec<Entry>)| {
        let (mut coins, mut choosing) = (Coins::new(coins, label), Vec::new());
        rows.retain(|row| {
            let stays = calibrates(coins.toss(row.fingerprint));
            if !stays {
                append(&mut choosing, &[chooses_with(row)]);
                names.extend(&[row.fingerprint]);
            }
            stays
        });
        choosing
    };
    let choosing = (0..).zip(rows).map(of_label).collect();
    (choosing, names.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_twenty_bytes() {
        assert_eq!(size_of::<Entry>(), 20);
    }

    /// They decide who calibrates, so that the same rows give the same file. Computed in another language.
    #[test]
    fn coins_never_change() {
        let first = |seed, label| Coins::new(&Generator::new(seed, "deal"), label);
        let mut coins = first(0, 3);
        assert_eq!([7, 7, 9].map(|row| coins.toss(row)), FIXED);
        assert_eq!(first(0, 3).toss(9), FIXED[2]);
        assert!(first(1, 3).toss(9) != FIXED[2] && first(0, 4).toss(9) != FIXED[2]);
    }

    const FIXED: [u64; 3] = [0x4f44_f63b_2b9f_9504, 0x3692_3bc4_6874_0340, 0x7e03_fbe4_04ea_b1b1];

    #[test]
    fn shares_are_exact_at_their_ends() {
        assert!(is_below(COINS / 3, (1, 3)) && !is_below(COINS / 3 + 1, (1, 3)));
        assert!(is_below(COINS - 1, (5, 5)) && !is_below(0, (0, 5)) && is_below(0, (1, u64::MAX)));
    }

    #[test]
    fn of_equal_coins_the_first_are_the_smallest() {
        let coins = [5, 9, 5, 1, 5, 9];
        let taken = |count| -> Vec<u64> {
            let mut is_taken = smallest(coins.to_vec(), count);
            coins.iter().map(|coin| u64::from(is_taken(*coin))).collect()
        };
        assert_eq!(taken(0), [0; 6]);
        assert_eq!(taken(1), [0, 0, 0, 1, 0, 0]);
        assert_eq!(taken(3), [1, 0, 1, 1, 0, 0]);
        assert_eq!(taken(4), [1, 0, 1, 1, 1, 0]);
        assert_eq!(taken(5), [1, 1, 1, 1, 1, 0]);
        assert_eq!(taken(6), [1; 6]);
    }
}
