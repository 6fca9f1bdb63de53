//! `Stream`: a calibrated score among rows that keep changing; sets now, labels later or never.
//!
//! A row's set is `{y : p(y) > α_t}`, with `p(y) = (#{s_i ≥ s(y)} + 1)/(n + 1)` against the calibrating scores and
//! `α_t` the level of its time. Its label, when it comes, moves the level ([`AdaptiveLevel`]) and bets against
//! exchangeability ([`Alarm`]). The state is a plain value: it has a form in bytes, and a stream that is taken up from
//! there gives the same bits.

mod alarm;
mod counted;
mod level;
mod names;
mod trace;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use crate::kernel::math::ln;
use crate::{
    Alpha, Calibration, Error, Evidence, Logit, Logits, Masked, PredictionSets, Predictor, Result, Scheme,
    Score, SortedScores, Taxonomy,
};

pub use self::alarm::Alarm;
pub(crate) use self::counted::Counted;
pub use self::level::AdaptiveLevel;
pub(crate) use self::names::Names;
pub use self::trace::TracePoint;
pub(crate) use self::trace::{MOST_POINTS, Trace};

/// How a stream moves and what it keeps.
///
/// ```
/// use conformax::StreamOptions;
/// let fixed = StreamOptions { step: 0.0, decay: None, ..StreamOptions::default() };
/// assert_eq!(fixed.window, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamOptions {
    /// Step of the level after a label; 0 keeps the level.
    pub step: f64,
    /// Rate at which the step decays, where it does.
    pub decay: Option<f64>,
    /// Bound on what is kept, in rows: those waiting for a label, those that coverage and sizes are averaged over, and
    /// those the alarm compares with beside the calibrating ones; having seen that many it starts over with capital 1.
    /// Without it the alarm compares with every row so far, 1,000 are averaged over, and 10,000 may wait.
    pub window: Option<u64>,
    /// The alarm rises when the capital reaches `1/δ`.
    pub delta: Alpha,
    /// Seed of the draws by which the alarm breaks ties.
    pub seed: u64,
}

/// Recent rows where no window was asked for.
const RECENT: u64 = 1_000;
/// Rows that may wait for their labels where no window was asked for.
const WAITING: u64 = 10_000;
/// Share of the alarm's capital that changes its bet after every row.
const JUMP: f64 = 0.01;

impl Default for StreamOptions {
    /// A step of 0.2 that decays at the rate 0.6, an alarm at 1 in 100, no window.
    fn default() -> Self {
        let delta = Alpha::new(0.01).expect("one in a hundred is a level");
        Self { step: 0.2, decay: Some(0.6), window: None, delta, seed: 0 }
    }
}

/// A prediction that waits for its label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) id: String,
    pub(crate) level: f64,
    pub(crate) group: Option<u32>,
    /// Shared with copies of the stream, so that making one takes little time however many classes there are.
    pub(crate) row: Arc<[f64]>,
}

/// What became of a label.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, Feedback, Logits, SortedScores, Stream, StreamOptions};
/// let scores = SortedScores::new((0..99).map(|i| f64::from(i) / 50.0).collect())?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores)?;
/// let mut stream = Stream::new(calibration, Alpha::new(0.1)?, StreamOptions::default())?;
/// stream.predict(Logits::new(&[2.0_f32, 1.0, -3.0], 3)?, &["first"])?; // labels 0 and 1
/// assert!(matches!(stream.update("first", 0)?, Feedback::Counted { covered: true, .. }));
/// assert_eq!(stream.update("first", 0)?, Feedback::Repeated);
/// assert_eq!(stream.update("second", 0)?, Feedback::Unknown);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feedback {
    /// It counts.
    Counted {
        /// Whether it was in the set that was given.
        covered: bool,
        /// Its p-value against the calibrating scores.
        p_value: f64,
        /// Whether the alarm rose with it.
        rose: bool,
    },
    /// The row has had its label, which stays.
    Repeated,
    /// No row of this name waits: it was never predicted, or so long ago that it was forgotten.
    Unknown,
}

/// Where a stream stands.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, Logits, SortedScores, Stream, StreamOptions};
/// let scores = SortedScores::new((0..99).map(|i| f64::from(i) / 50.0).collect())?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores)?;
/// let mut stream = Stream::new(calibration, Alpha::new(0.1)?, StreamOptions::default())?;
/// stream.predict(Logits::new(&[2.0_f32, 1.0, -3.0], 3)?, &["first"])?; // labels 0 and 1
/// let status = stream.status();
/// assert_eq!((status.predicted, status.waiting, status.recent_size), (1, 1, Some(2.0)));
/// assert_eq!((status.labelled, status.recent_coverage), (0, None)); // no label has come
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StreamStatus {
    /// The level asked for.
    pub alpha: f64,
    /// The level of the next row.
    pub level: f64,
    /// Rows predicted.
    pub predicted: u64,
    /// Labels that count.
    pub labelled: u64,
    /// How many of them were in their sets.
    pub covered: u64,
    /// Rows whose labels may still come.
    pub waiting: u64,
    /// Rows that were dropped while waiting, for others that came after them.
    pub forgotten: u64,
    /// Labels that coverage is averaged over.
    pub recent_labelled: u64,
    /// Share of them that were in their sets.
    pub recent_coverage: Option<f64>,
    /// Sets that size is averaged over.
    pub recent_predicted: u64,
    /// Their mean size.
    pub recent_size: Option<f64>,
    /// Logarithm of the alarm's capital.
    pub log_capital: f64,
    /// The largest logarithm since the alarm last started over.
    pub highest_log_capital: f64,
    /// Whether the alarm has risen since it last started over.
    pub alarm: bool,
    /// After how many labels it rose last.
    pub raised_at: Option<u64>,
}

/// A calibrated score among rows that come one by one, with labels that come later or never.
///
/// Memory: for a row that waits eight bytes a logit, its name twice and at most 250 bytes; for a label that came lately
/// its name twice and at most 200; for a score that the alarm compares with, of calibration or since, at most 96, and
/// half as much again for a moment while its list grows. [`StreamOptions::window`] bounds all of them. A label takes
/// time logarithmic in the number of scores, but for one in so many as the window has, which makes the alarm start
/// over.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, Feedback, Logits, SortedScores, Stream, StreamOptions};
/// let scores = SortedScores::new((0..99).map(|i| f64::from(i) / 50.0).collect())?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores)?;
/// let mut stream = Stream::new(calibration, Alpha::new(0.1)?, StreamOptions::default())?;
/// let sets = stream.predict(Logits::new(&[2.0_f32, 1.0, -3.0], 3)?, &["first"])?;
/// assert_eq!(sets.get(0), Some(&[0, 1][..]));
/// assert!(matches!(stream.update("first", 2)?, Feedback::Counted { covered: false, .. }));
/// assert!(stream.level() < 0.1); // a miss makes the next sets larger
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stream<S> {
    pub(crate) calibration: Calibration<S>,
    pub(crate) options: StreamOptions,
    pub(crate) level: AdaptiveLevel,
    pub(crate) alarm: Alarm,
    /// Labels since the alarm last started over.
    pub(crate) stretch: u64,
    pub(crate) raised_at: Option<u64>,
    pub(crate) predicted: u64,
    pub(crate) forgotten: u64,
    /// Whether each of the recent labels was in its set, the latest last.
    pub(crate) hits: VecDeque<bool>,
    /// The sizes of the recent sets, the latest last.
    pub(crate) sizes: VecDeque<u32>,
    /// What waits, by when it was predicted.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    /// The names of rows that lately got their labels.
    pub(crate) labelled: Names,
    pub(crate) trace: Trace,
    /// Made from the above.
    pub(crate) places: BTreeMap<String, u64>,
    pub(crate) recent_hits: u64,
    pub(crate) recent_sizes: u64,
    pub(crate) predictor: Made<Arc<Predictor<S>>>,
}

/// Something that follows from the rest, once it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Made<T>(OnceLock<T>);

impl<T> Default for Made<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> PartialEq for Made<T> {
    /// Whether it was asked for makes no difference.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<S: Score + Clone> Stream<S> {
    /// Begins at a level. An error for calibrations whose thresholds do not follow from p-values, group by group.
    pub fn new(calibration: Calibration<S>, alpha: Alpha, options: StreamOptions) -> Result<Self> {
        let with = match (calibration.scheme(), calibration.evidence()) {
            (Scheme::Groups(Taxonomy::Cluster(clusters)), _) if clusters.contains(&None) => {
                Some("clusters that leave classes out")
            }
            (Scheme::Groups(_), Evidence::Groups(_)) => None,
            (Scheme::Risk(_), _) => Some("risk control"),
            _ => Some("weights of rows or labels"),
        };
        if let Some(with) = with {
            return Err(Error::NotWith { what: "a stream", with });
        }
        if options.window == Some(0) {
            return Err(Error::Parameter { name: "window", wanted: "at least 1", got: 0.0 });
        }
        let level = AdaptiveLevel::new(alpha, options.step, options.decay)?;
        let alarm = Alarm::by_group(scores_of(&calibration), JUMP, options.seed)?;
        Ok(Self {
            calibration,
            options,
            level,
            alarm,
            stretch: 0,
            raised_at: None,
            predicted: 0,
            forgotten: 0,
            hits: VecDeque::new(),
            sizes: VecDeque::new(),
            waiting: BTreeMap::new(),
            labelled: Names::default(),
            trace: Trace::default(),
            places: BTreeMap::new(),
            recent_hits: 0,
            recent_sizes: 0,
            predictor: Made::default(),
        })
    }

    /// The level of the next row.
    pub fn level(&self) -> f64 {
        self.level.level()
    }

    /// What predicts at this level: sets of any number of rows, without a trace in the stream. The first call after a
    /// label takes time for every group.
    pub fn predictor(&self) -> Arc<Predictor<S>> {
        Arc::clone(self.made_predictor())
    }

    fn made_predictor(&self) -> &Arc<Predictor<S>> {
        let make = || Arc::new(predictor_at(&self.calibration, self.alpha(), self.level()));
        self.predictor.0.get_or_init(make)
    }

    /// The evidence behind it.
    pub fn calibration(&self) -> &Calibration<S> {
        &self.calibration
    }

    /// How it moves and what it keeps.
    pub fn options(&self) -> StreamOptions {
        self.options
    }

    /// The level asked for.
    pub fn alpha(&self) -> Alpha {
        self.level.target()
    }

    /// How far the share of misses may be from the level asked for, whatever came, where every label comes before the
    /// next row. Infinite with [`Masked::Never`]: an impossible label is in no set, however low the level.
    pub fn bound(&self) -> f64 {
        match self.calibration.masked() {
            Masked::Allowed => self.level.bound(),
            Masked::Never => f64::INFINITY,
        }
    }

    /// Labels that count, which is what the next one's draw depends on.
    pub fn labelled(&self) -> u64 {
        self.level.rows()
    }

    /// How it went: at most 512 points at equal distances.
    pub fn trace(&self) -> &[TracePoint] {
        &self.trace.points
    }

    /// The sets of rows at the current level. Each waits for its label under its name; a name that is used again stands
    /// for its latest row.
    pub fn predict<T: Logit>(&mut self, logits: Logits<'_, T>, names: &[&str]) -> Result<PredictionSets> {
        let sets = self.sets(logits)?;
        self.remember(logits, names, self.level(), &sets)?;
        Ok(sets)
    }

    /// The same without waiting for labels.
    pub fn sets<T: Logit>(&self, logits: Logits<'_, T>) -> Result<PredictionSets> {
        expect_classes(&self.calibration, logits.classes())?;
        self.made_predictor().predict(logits)
    }

    /// Takes in rows that [`predictor`](Self::predictor) gave these sets when the level was `level`, for callers who
    /// predict while others update.
    pub fn remember<T: Logit>(
        &mut self,
        logits: Logits<'_, T>,
        names: &[&str],
        level: f64,
        sets: &PredictionSets,
    ) -> Result<()> {
        let rows = logits.len();
        expect_classes(&self.calibration, logits.classes())?;
        for (what, got) in [("names", names.len()), ("sets", sets.len())] {
            if got != rows {
                return Err(Error::Rows { what, wanted: rows, got });
            }
        }
        for (index, (name, set)) in names.iter().zip(sets.iter()).enumerate() {
            let row = logits.row(index)?;
            let logits = row.logits().iter().map(|logit| logit.to_f64()).collect();
            self.wait(Waiting { id: (*name).to_owned(), level, group: row.group(), row: logits }, set.len());
        }
        Ok(())
    }

    /// Whether a row of this name waits for its label.
    pub fn waits(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Whether the stream knows what became of a row of this name: it waits for its label, or had it lately.
    pub fn knows(&self, name: &str) -> bool {
        self.waits(name) || self.labelled.contains(name)
    }

    fn wait(&mut self, waiting: Waiting, size: usize) {
        if let Some(earlier) = self.places.insert(waiting.id.clone(), self.predicted) {
            self.waiting.remove(&earlier);
        }
        self.labelled.remove(&waiting.id);
        self.waiting.insert(self.predicted, waiting);
        self.predicted += 1;
        while self.waiting.len() as u64 > self.most_waiting() {
            if let Some((_, oldest)) = self.waiting.pop_first() {
                self.places.remove(&oldest.id);
                self.forgotten += 1;
            }
        }
        self.sizes.push_back(size as u32);
        self.recent_sizes += size as u64;
        if self.sizes.len() as u64 > self.most_recent() {
            self.recent_sizes -= u64::from(self.sizes.pop_front().unwrap_or_default());
        }
    }

    /// Takes in the label of a row that was predicted under this name. An error leaves everything as it was.
    pub fn update(&mut self, name: &str, label: u32) -> Result<Feedback> {
        let Some(place) = self.places.get(name) else {
            return Ok(if self.labelled.contains(name) { Feedback::Repeated } else { Feedback::Unknown });
        };
        let Some(waiting) = self.waiting.get(place) else { unreachable!("a place is of a row that waits") };
        let classes = self.calibration.classes();
        if label as usize >= classes {
            return Err(Error::Label { row: 0, label, classes });
        }
        let (group, score) = self.score(waiting, label)?;
        let scores = &self.calibration.groups()[group];
        // An impossible label is in no set, however low the level; to the alarm it is as strange as can be.
        let covered = !score.is_nan() && score <= threshold(scores, self.alpha(), waiting.level);
        let p_value = scores.p_value(score).value();
        let strangeness = if score.is_nan() { f64::INFINITY } else { score };
        self.alarm.update_in(group, strangeness, None)?;
        let place = *place;
        self.places.remove(name);
        self.waiting.remove(&place);
        self.level.take_in(!covered);
        self.predictor = Made::default();
        self.note_label(name, covered);
        let rose = self.note_alarm()?;
        Ok(Feedback::Counted { covered, p_value, rose })
    }

    /// The group of a label in a row, and its score; NaN where it is impossible.
    fn score(&self, waiting: &Waiting, label: u32) -> Result<(usize, f64)> {
        let groups = waiting.group.map(|group| [group]);
        let logits = Logits::new(&waiting.row, self.calibration.classes())?;
        let logits = match &groups {
            Some(groups) => logits.with_groups(groups)?,
            None => logits,
        };
        let Scheme::Groups(taxonomy) = self.calibration.scheme() else {
            unreachable!("a stream goes group by group")
        };
        taxonomy.expect(logits)?;
        let group = taxonomy.group(label, waiting.group);
        let impossible =
            self.calibration.masked() == Masked::Never && waiting.row[label as usize] == f64::NEG_INFINITY;
        let score = match impossible {
            true => f64::NAN,
            false => self.calibration.label_scores(logits, &[label])?[0],
        };
        Ok((group, score))
    }

    fn note_label(&mut self, name: &str, covered: bool) {
        self.hits.push_back(covered);
        self.recent_hits += u64::from(covered);
        if self.hits.len() as u64 > self.most_recent() {
            self.recent_hits -= u64::from(self.hits.pop_front().unwrap_or_default());
        }
        self.labelled.push(name);
        if self.labelled.len() as u64 > self.most_waiting() {
            self.labelled.remove_first();
        }
        let status = self.status();
        self.trace.push(TracePoint {
            labelled: status.labelled,
            coverage: status.recent_coverage.unwrap_or_default(),
            size: status.recent_size.unwrap_or_default(),
            level: status.level,
            log_capital: status.log_capital,
        });
    }

    /// Whether the alarm rose with the label just taken in; after a window it starts over.
    fn note_alarm(&mut self) -> Result<bool> {
        let risen = self.has_risen();
        let rose = risen && self.raised_at.is_none_or(|at| at.saturating_add(self.stretch) < self.labelled());
        self.stretch += 1;
        if rose {
            self.raised_at = Some(self.labelled());
        }
        if self.options.window.is_some_and(|window| self.stretch >= window) {
            self.alarm = self.alarm.restarted(scores_of(&self.calibration))?;
            self.stretch = 0;
        }
        Ok(rose)
    }

    fn has_risen(&self) -> bool {
        self.alarm.highest() >= -ln(self.options.delta.value())
    }

    /// Rows that coverage and sizes are averaged over at most.
    pub fn most_recent(&self) -> u64 {
        self.options.window.unwrap_or(RECENT)
    }

    fn most_waiting(&self) -> u64 {
        self.options.window.unwrap_or(WAITING)
    }

    /// Where it stands.
    pub fn status(&self) -> StreamStatus {
        let (labelled, predicted) = (self.hits.len() as u64, self.sizes.len() as u64);
        let share = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        StreamStatus {
            alpha: self.alpha().value(),
            level: self.level(),
            predicted: self.predicted,
            labelled: self.labelled(),
            covered: self.level.rows() - self.level.misses(),
            waiting: self.waiting.len() as u64,
            forgotten: self.forgotten,
            recent_labelled: labelled,
            recent_coverage: share(self.recent_hits, labelled),
            recent_predicted: predicted,
            recent_size: share(self.recent_sizes, predicted),
            log_capital: self.alarm.log_capital(),
            highest_log_capital: self.alarm.highest(),
            alarm: self.has_risen(),
            raised_at: self.raised_at,
        }
    }

    /// Makes what follows from the rest, after reading bytes.
    pub(crate) fn derived(mut self) -> Self {
        self.places = self.waiting.iter().map(|(place, waiting)| (waiting.id.clone(), *place)).collect();
        self.recent_hits = self.hits.iter().map(|hit| u64::from(*hit)).sum();
        self.recent_sizes = self.sizes.iter().map(|size| u64::from(*size)).sum();
        self
    }
}

fn expect_classes<S: Score>(calibration: &Calibration<S>, got: usize) -> Result<()> {
    let wanted = calibration.classes();
    if wanted == got { Ok(()) } else { Err(Error::ClassCount { wanted, got }) }
}

/// The calibrating scores, group by group.
fn scores_of<S: Score>(calibration: &Calibration<S>) -> impl Iterator<Item = &[f64]> {
    calibration.groups().iter().map(SortedScores::as_slice)
}

fn predictor_at<S: Score + Clone>(calibration: &Calibration<S>, alpha: Alpha, level: f64) -> Predictor<S> {
    let each: Vec<f64> = calibration.groups().iter().map(|scores| threshold(scores, alpha, level)).collect();
    calibration.with_group_thresholds(each)
}

/// The threshold at a level that may be anything: the largest score whose p-value exceeds it. The level asked for is a
/// decimal, and has the threshold that calibration gives it.
fn threshold(scores: &SortedScores, alpha: Alpha, level: f64) -> f64 {
    if level == alpha.value() {
        return scores.threshold(alpha);
    }
    let (n, of) = (scores.n(), scores.n() as f64 + 1.0);
    // How many calibrating scores must be at least as large: p = (count + 1)/(n + 1) > level.
    let (mut low, mut high) = (0, n + 1);
    while low < high {
        let count = low + (high - low) / 2;
        if (count as f64 + 1.0) / of > level { high = count } else { low = count + 1 }
    }
    match low {
        0 => f64::INFINITY,
        count if count > n => f64::NEG_INFINITY,
        count => scores.as_slice()[(n - count) as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EntmaxScore;

    /// However many groups there are, a label asks for no threshold: the row after it does.
    #[test]
    fn a_label_makes_no_predictor() {
        let scores = SortedScores::new((0..50).map(f64::from).collect()).unwrap();
        let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores).unwrap();
        let alpha = Alpha::new(0.1).unwrap();
        let mut stream = Stream::new(calibration, alpha, StreamOptions::default()).unwrap();
        for name in ["a", "b"] {
            stream.predict(Logits::new(&[2.0, 1.0, 0.0], 3).unwrap(), &[name]).unwrap();
            assert!(stream.predictor.0.get().is_some());
            stream.update(name, 2).unwrap();
            assert!(stream.predictor.0.get().is_none());
        }
    }

    #[test]
    fn a_threshold_takes_exactly_the_scores_whose_p_value_exceeds_the_level() {
        let scores = SortedScores::new([0.0, 0.5, 0.5, 0.5, 1.0, 2.0, f64::INFINITY].to_vec()).unwrap();
        let alpha = Alpha::new(0.25).unwrap();
        let levels =
            [-0.5, 0.0, 0.01, 0.125, 0.2, 0.25, 0.3, 0.5, 0.625, 0.75, 0.874, 0.875, 0.999, 1.0, 1.5];
        for level in levels {
            let threshold = threshold(&scores, alpha, level);
            for score in [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, f64::INFINITY] {
                let above = scores.p_value(score).value() > level;
                assert_eq!(score <= threshold, above, "score {score} at level {level}: {threshold}");
            }
        }
    }
}
