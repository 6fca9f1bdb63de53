//! `ThresholdSearch`: thresholds in constant memory, by a few passes over the same rows.
//!
//! A score's bits, put in order, are a whole number. A pass counts the scores by the next sixteen of its bits, which
//! says in which of 65,536 parts the wanted rank lies; the next pass looks into that part alone, and keeps its scores
//! once they are few. So the r-th smallest of any number of scores is found exactly, as a rule in two passes and in
//! four at most.

use crate::fingerprint::{RowSample, RowSet, hash_rows};
use crate::level::Level;
use crate::rows::{first_fault, map_chunks};
use crate::scheme::Gathered;
use crate::taxonomy::Taxonomy;
use crate::{
    Alpha, Calibrator, Error, Labelled, Logit, Logits, Masked, Remember, Result, Scheme, Score, score_labels,
};

/// Bits that a pass looks at.
const BITS: u32 = 16;

/// Scores that are kept rather than counted, once so few are left.
const FEW: u64 = 1 << 20;

/// Takes labelled rows in any blocks and merges as `Calibrator` does, but keeps counts in place of scores: at most ten
/// megabytes a level, whatever the number of rows. Its passes must see the same rows.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, SearchStep, ThresholdSearch};
/// let rows = Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?.labelled(&[0, 0, 0])?;
/// let mut search = ThresholdSearch::new(EntmaxScore::default(), 2, &[Alpha::new(0.25)?])?;
/// let found = loop {
///     search.extend(rows)?;
///     match search.finish_pass()? {
///         SearchStep::Again(next) => search = next,
///         SearchStep::Done(found) => break found,
///     }
/// };
/// assert_eq!(found.thresholds, [2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThresholdSearch<S> {
    pub(crate) score: S,
    pub(crate) classes: usize,
    pub(crate) masked: Masked,
    pub(crate) remember: Remember,
    pub(crate) searches: Vec<Search>,
    /// Rows in this pass, and in the first where it is over.
    pub(crate) n: u64,
    pub(crate) wanted_n: Option<u64>,
    pub(crate) infinite: u64,
    pub(crate) rows: RowSample,
    pub(crate) row_set: RowSet,
}

/// The search for one level's threshold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Search {
    pub(crate) alpha: Alpha,
    /// The bits known so far, and how many.
    pub(crate) prefix: u64,
    pub(crate) known: u32,
    /// The rank among the scores that begin with them; `None` in the first pass, when it is not known how many rows
    /// there are, and where they are too few for the level.
    pub(crate) rank: Option<u64>,
    pub(crate) state: State,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// Scores by their next bits.
    Counting(Vec<u64>),
    /// The scores themselves.
    Keeping(Vec<f64>),
    Found(f64),
}

/// What a pass ends in.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, SearchStep, ThresholdSearch};
/// let mut search = ThresholdSearch::new(EntmaxScore::default(), 2, &[Alpha::new(0.25)?])?;
/// search.extend(Logits::new(&[1.0_f32, 3.0, 2.0, 0.0, 5.0, 1.0], 2)?.labelled(&[0, 0, 0])?)?;
/// assert!(matches!(search.finish_pass()?, SearchStep::Again(_))); // the first bits of the score are known
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum SearchStep<S> {
    /// The rows are wanted once more.
    Again(ThresholdSearch<S>),
    /// The thresholds are found.
    Done(FoundThresholds<S>),
}

/// Thresholds, and what they rest on.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, SearchStep, ThresholdSearch};
/// let mut search = ThresholdSearch::new(EntmaxScore::default(), 2, &[Alpha::new(0.1)?])?;
/// search.extend(Logits::new(&[1.0_f32, 3.0], 2)?.labelled(&[0])?)?;
/// let SearchStep::Done(found) = search.finish_pass()? else { unreachable!("one row is too few for the level") };
/// assert_eq!((found.thresholds[0], found.levels[0].rows_wanted()), (f64::INFINITY, Some(9)));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundThresholds<S> {
    /// The score that calibrated.
    pub score: S,
    /// What is promised at each level.
    pub levels: Vec<Level>,
    /// The threshold of each.
    pub thresholds: Vec<f64>,
    /// Rows whose score is infinite: their true label was impossible.
    pub infinite: u64,
    /// The calibration rows that can be known again, where they were remembered.
    pub rows: RowSet,
}

/// The bits of a score in an order that is the scores'.
fn ordered(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The score of these bits.
fn unordered(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

impl Search {
    fn first(alpha: Alpha) -> Self {
        Self { alpha, prefix: 0, known: 0, rank: None, state: State::counting() }
    }

    /// The next bits of a score that begins with those known.
    fn place(&self, bits: u64) -> Option<usize> {
        // A shift by all 64 bits is not defined.
        let begins = self.known == 0 || bits >> (64 - self.known) == self.prefix;
        begins.then(|| (bits >> (64 - self.known - BITS)) as usize & ((1 << BITS) - 1))
    }

    fn add(&mut self, score: f64) {
        let place = self.place(ordered(score));
        match (&mut self.state, place) {
            (State::Counting(counts), Some(place)) => counts[place] += 1,
            (State::Keeping(scores), Some(_)) => scores.push(score),
            (State::Found(_), _) | (_, None) => {}
        }
    }

    fn merge(&mut self, other: Self) -> Result<()> {
        let place = |search: &Self| (search.alpha, search.prefix, search.known, search.rank);
        if place(self) != place(&other) {
            return Err(Error::Unlike { what: "levels or passes" });
        }
        match (&mut self.state, other.state) {
            (State::Counting(mine), State::Counting(theirs)) => {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
            }
            (State::Keeping(mine), State::Keeping(theirs)) => mine.extend(theirs),
            (State::Found(mine), State::Found(theirs)) if *mine == theirs => {}
            _ => return Err(Error::Unlike { what: "levels or passes" }),
        }
        Ok(())
    }

    /// Looks at what the pass found and prepares the next; `n` rows in all.
    fn step(self, n: u64) -> Result<Self> {
        let Self { alpha, prefix, known, state, .. } = self;
        let rank = if known == 0 { Level::new(n, alpha).rank() } else { self.rank };
        let found = |score| Ok(Self { alpha, prefix, known, rank, state: State::Found(score) });
        let Some(rank) = rank else { return found(f64::INFINITY) };
        match state {
            State::Found(score) => found(score),
            State::Keeping(mut scores) => match rank.checked_sub(1).filter(|at| *at < scores.len() as u64) {
                Some(at) => {
                    scores.sort_unstable_by(f64::total_cmp);
                    found(scores[at as usize] + 0.0)
                }
                None => Err(changed()),
            },
            State::Counting(counts) => {
                let mut before = 0;
                let inside = counts.iter().position(|count| {
                    let reached = before + count >= rank;
                    before += if reached { 0 } else { *count };
                    reached
                });
                let place = inside.ok_or_else(changed)?;
                let (prefix, known) = (prefix << BITS | place as u64, known + BITS);
                if known == 64 {
                    return found(unordered(prefix));
                }
                let state = if counts[place] <= FEW { State::Keeping(Vec::new()) } else { State::counting() };
                Ok(Self { alpha, prefix, known, rank: Some(rank - before), state })
            }
        }
    }
}

/// The error of rows that are not those of the first pass.
fn changed() -> Error {
    Error::Unlike { what: "rows from pass to pass" }
}

impl State {
    fn counting() -> Self {
        Self::Counting(vec![0; 1 << BITS])
    }
}

impl<S: Score> ThresholdSearch<S> {
    /// Searches the thresholds of these levels, on rows of so many classes.
    pub fn new(score: S, classes: usize, alphas: &[Alpha]) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        Ok(Self {
            score,
            classes,
            masked: Masked::default(),
            remember: Remember::default(),
            searches: alphas.iter().map(|alpha| Search::first(*alpha)).collect(),
            n: 0,
            wanted_n: None,
            infinite: 0,
            rows: RowSample::default(),
            row_set: RowSet::default(),
        })
    }

    /// The same with this meaning of −∞; before the first row.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same, remembering its rows or not; before the first row.
    #[must_use]
    pub fn remembering(self, remember: Remember) -> Self {
        Self { remember, ..self }
    }

    /// Rows taken in so far in this pass.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        let scores = self.scored(rows).map_err(|error| error.offset_rows(self.n))?;
        self.add(&scores);
        // The first pass is enough to remember rows.
        if self.wanted_n.is_none() && self.remember == Remember::Rows {
            map_chunks(logits, |_, chunk| Ok(hash_rows(chunk)))?
                .iter()
                .for_each(|names| self.rows.extend(names));
        }
        Ok(())
    }

    /// Takes in the rows that a calibrator took in, by the scores that it keeps: whoever has room for these, on disks
    /// say, reads the rows once and not in every pass. It must be of the same score, classes and policies, with one
    /// threshold for all rows.
    pub fn extend_scored(&mut self, rows: &Calibrator<S>) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != rows.score => Some("scores"),
            () if self.classes != rows.classes => Some("numbers of classes"),
            () if self.masked != rows.masked => Some("policies for masked classes"),
            () if rows.ranks.is_some() => Some("largest ranks"),
            () if self.remember != rows.remember => Some("remembered rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        let (Scheme::Groups(Taxonomy::All), Gathered::Groups(groups)) = (&rows.scheme, &rows.gathered) else {
            return Err(Error::Unlike { what: "ways to thresholds" });
        };
        groups.iter().for_each(|scores| self.add(scores));
        if self.wanted_n.is_none() {
            self.rows.merge(rows.rows.clone());
        }
        Ok(())
    }

    fn add(&mut self, scores: &[f64]) {
        for search in &mut self.searches {
            scores.iter().for_each(|score| search.add(*score));
        }
        self.n += scores.len() as u64;
        // Later passes bring along what the first one counted.
        if self.wanted_n.is_none() {
            self.infinite += scores.iter().filter(|score| **score == f64::INFINITY).count() as u64;
        }
    }

    fn scored<T: Logit>(&self, rows: Labelled<'_, T>) -> Result<Vec<f64>> {
        let scores = |rows| score_labels(&self.score, rows);
        first_fault([self.masked.check(rows)], |row| scores(rows.before(row)).map(|_| ()))?;
        scores(rows)
    }

    /// Takes in what another took in in the same pass.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != other.score => Some("scores"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.remember != other.remember => Some("remembered rows"),
            () if self.wanted_n != other.wanted_n || self.searches.len() != other.searches.len() => {
                Some("levels or passes")
            }
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        self.searches.iter_mut().zip(other.searches).try_for_each(|(mine, theirs)| mine.merge(theirs))?;
        self.n += other.n;
        // Later passes bring along what the first one counted.
        if self.wanted_n.is_none() {
            self.infinite += other.infinite;
        }
        self.rows.merge(other.rows);
        Ok(())
    }

    /// Ends a pass: the thresholds, or what the next pass looks for. An error where there is no row, or where the rows
    /// are not those of the pass before.
    pub fn finish_pass(self) -> Result<SearchStep<S>> {
        let first = self.wanted_n.is_none();
        let n = match self.wanted_n {
            None if self.n == 0 => return Err(Error::NoCalibrationRows),
            None => self.n,
            Some(wanted) if wanted == self.n => wanted,
            Some(_) => return Err(changed()),
        };
        let searches = self.searches.into_iter().map(|search| search.step(n)).collect::<Result<Vec<_>>>()?;
        let row_set = if first { self.rows.finish() } else { self.row_set };
        let found = |search: &Search| match search.state {
            State::Found(threshold) => Some(threshold),
            State::Counting(_) | State::Keeping(_) => None,
        };
        Ok(match searches.iter().map(found).collect::<Option<Vec<f64>>>() {
            Some(thresholds) => SearchStep::Done(FoundThresholds {
                score: self.score,
                levels: searches.iter().map(|search| Level::new(n, search.alpha)).collect(),
                thresholds,
                infinite: self.infinite,
                rows: row_set,
            }),
            None => SearchStep::Again(Self {
                searches,
                n: 0,
                wanted_n: Some(n),
                rows: RowSample::default(),
                row_set,
                ..self
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_in_the_order_of_the_scores() {
        let rising =
            [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 5e-324, 1e-300, 1.0, 1.5, f64::MAX, f64::INFINITY];
        for pair in rising.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
        }
        for score in rising {
            assert_eq!(unordered(ordered(score)).to_bits(), score.to_bits());
        }
        assert_eq!(ordered(-0.0), ordered(0.0));
    }

    /// With parts that hold more than may be kept the search goes on by counting.
    #[test]
    fn counts_to_the_last_bit_where_scores_are_too_many_to_keep() {
        let alpha = Alpha::new(0.5).unwrap();
        let mut search = Search::first(alpha);
        let copies = FEW + 10;
        for pass in 0..4 {
            assert!(matches!(search.state, State::Counting(_)), "pass {pass}");
            let place = search.place(ordered(1.5)).unwrap();
            let State::Counting(counts) = &mut search.state else { unreachable!("it counts") };
            counts[place] += copies;
            search = search.step(copies).unwrap();
        }
        assert_eq!(search.state, State::Found(1.5));
    }
}
