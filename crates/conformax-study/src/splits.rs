//! `Split`: which rows calibrate, tune and test, and what the thresholds of a split are.

use conformax::{Alpha, SortedScores, TuningSplit, split};

use crate::error::Result;

/// One random division of a benchmark's rows.
pub(crate) struct Split {
    /// What each row is for.
    parts: Vec<Part>,
    /// Rows that test, ascending.
    pub(crate) test: Vec<u32>,
    /// Rows that tune, ascending; they calibrate procedures that have nothing to tune.
    pub(crate) tuning: Vec<u32>,
    /// Rows for calibration, those that tune included.
    pub(crate) calibration: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Test,
    Calibrating,
    Tuning,
}

impl Split {
    /// Splits `rows` rows: ⌈`calibration`·rows⌉ for calibration, of which all but ⌈(1 − `tuning`)·n⌉ tune.
    pub(crate) fn new(rows: usize, calibration: f64, tuning: f64, seed: u64) -> Result<Self> {
        // `1 − calibration` in floating point may miss the decimal; `TuningSplit` complements exactly, but the
        // shuffle of `split` is the one that other commands make from the same seed.
        let test = Alpha::new(calibration)?.confidence();
        let mut dealt = split(rows, &[calibration, test], seed)?.into_iter();
        let (calibration, test) = (dealt.next().unwrap_or_default(), dealt.next().unwrap_or_default());
        let inner = TuningSplit::new(calibration.len(), tuning, seed)?;
        let mut parts = vec![Part::Test; rows];
        inner.calibrating.iter().for_each(|index| parts[calibration[*index]] = Part::Calibrating);
        inner.tuning.iter().for_each(|index| parts[calibration[*index]] = Part::Tuning);
        let numbers = |rows: &[usize]| rows.iter().map(|row| *row as u32).collect();
        Ok(Self {
            tuning: inner.tuning.iter().map(|index| calibration[*index] as u32).collect(),
            test: numbers(&test),
            calibration: numbers(&calibration),
            parts,
        })
    }

    pub(crate) fn tests(&self, row: usize) -> bool {
        self.parts[row] == Part::Test
    }

    pub(crate) fn tunes(&self, row: usize) -> bool {
        self.parts[row] == Part::Tuning
    }

    /// The rows for calibration that do not tune.
    pub(crate) fn calibrating(&self) -> Vec<u32> {
        self.calibration.iter().copied().filter(|row| !self.tunes(*row as usize)).collect()
    }

    /// How many they are.
    pub(crate) fn n_calibrating(&self) -> usize {
        self.calibration.len() - self.tuning.len()
    }
}

/// The thresholds of one score on one split, a number per level.
pub(crate) struct Thresholds {
    /// From all rows for calibration: nothing is tuned.
    pub(crate) calibration: Vec<f64>,
    /// The scores of the ranks before those; −∞ where there are none.
    pub(crate) before: Vec<f64>,
    /// From those that do not tune.
    pub(crate) calibrating: Vec<f64>,
    /// Of the tuning rows, to judge the score as a candidate.
    pub(crate) judging: Vec<f64>,
    /// Of the calibrating rows, to judge the score as a candidate the paper's way.
    pub(crate) paper_judging: Vec<f64>,
}

impl Thresholds {
    pub(crate) fn all(&self) -> impl Iterator<Item = f64> {
        let kinds = [&self.calibration, &self.calibrating, &self.judging, &self.paper_judging];
        kinds.into_iter().flatten().copied()
    }
}

/// The true labels' scores of all rows.
pub(crate) struct Truth {
    /// By row.
    pub(crate) scores: Vec<f64>,
    /// Rows by score. A split's calibration scores are picked from it in order, so that no split sorts.
    order: Vec<u32>,
}

impl Truth {
    pub(crate) fn new(scores: Vec<f64>) -> Self {
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        order.sort_by(|a, b| scores[*a as usize].total_cmp(&scores[*b as usize]));
        Self { scores, order }
    }

    /// The split's thresholds at each level.
    pub(crate) fn thresholds(&self, split: &Split, alphas: &[Alpha]) -> Result<Thresholds> {
        let calibration = self.of_rows(split.calibration.len(), |row| split.parts[row] != Part::Test)?;
        let calibrating = self.of_rows(split.n_calibrating(), |row| split.parts[row] == Part::Calibrating)?;
        let tuning = self.of_rows(split.tuning.len(), |row| split.parts[row] == Part::Tuning)?;
        let levels = |scores: &SortedScores| alphas.iter().map(|alpha| scores.threshold(*alpha)).collect();
        let judging =
            |scores: &SortedScores| alphas.iter().map(|alpha| scores.judging_threshold(*alpha)).collect();
        let before = |alpha: &Alpha| {
            let place = calibration.level(*alpha).rank().and_then(|rank| rank.checked_sub(2));
            place.map_or(f64::NEG_INFINITY, |place| calibration.as_slice()[place as usize])
        };
        Ok(Thresholds {
            calibration: levels(&calibration),
            before: alphas.iter().map(before).collect(),
            calibrating: levels(&calibrating),
            judging: judging(&tuning),
            paper_judging: judging(&calibrating),
        })
    }

    fn of_rows(&self, count: usize, wanted: impl Fn(usize) -> bool) -> Result<SortedScores> {
        // Which rows are wanted is random, so a branch would be mispredicted half the time.
        let mut picked = vec![0.0; count + 1];
        let mut next = 0;
        for row in &self.order {
            picked[next] = self.scores[*row as usize];
            next += usize::from(wanted(*row as usize));
        }
        picked.truncate(count);
        Ok(SortedScores::new(picked)?)
    }
}
