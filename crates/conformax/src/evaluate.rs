//! `Evaluator`: labelled rows in any blocks become counts of how sets fared, and of rows that had a part in the model.

use crate::fingerprint::{Overlap, RowSet, SeenRows, hash_rows};
use crate::logits::groups_below;
use crate::predict::sets_of_chunk;
use crate::rows::{drain_chunks, first_fault, read_rows};
use crate::{
    Alpha, Error, Labelled, Level, Logit, Logits, Loss, PredictionSets, Predictor, Result, Score, Tally,
    Taxonomy, Thresholds, Verdict, interval_of_share,
};

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same counts.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Evaluator, Logits, Predictor, Strata, Thresholds};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
/// let mut evaluator = Evaluator::new(vec![model], 3)?;
/// evaluator.extend(Logits::new(&[0.0_f32, 3.0, 2.0, 1.0, 5.0, 0.0], 3)?.labelled(&[2, 0])?)?;
/// let evaluated = evaluator.finish()?;
/// let metrics = evaluated.tallies[0].metrics(Alpha::new(0.1)?, &Strata::default())?;
/// assert_eq!((metrics.coverage, metrics.average_size), (0.5, 1.5));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluator<S> {
    pub(crate) predictors: Vec<Predictor<S>>,
    pub(crate) classes: usize,
    pub(crate) model_rows: Vec<RowSet>,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) taxonomy: Option<Taxonomy>,
    /// By predictor and group, where rows are told apart.
    pub(crate) groups: Vec<Vec<GroupTally>>,
    pub(crate) loss: Option<Loss>,
    /// By predictor, in the loss's units, where a loss is measured.
    pub(crate) losses: Vec<u128>,
    pub(crate) overlap: Overlap,
    /// The place of the next row, for messages.
    pub(crate) next_row: u64,
}

/// How the sets of a group's rows fared.
///
/// ```
/// use conformax::{EntmaxScore, Evaluator, Logits, Predictor, Taxonomy, Thresholds};
/// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
/// let mut evaluator = Evaluator::new(vec![model], 2)?.by(Taxonomy::Label)?;
/// evaluator.extend(Logits::new(&[0.0_f32, 3.0, 2.0, 1.5], 2)?.labelled(&[0, 0])?)?;
/// let of_label = evaluator.finish()?.groups[0][0];
/// assert_eq!((of_label.n, of_label.coverage(), of_label.average_size()), (2, Some(0.5), Some(1.5)));
/// let (alone, of_two) = (of_label.interval(0.95, 1).unwrap(), of_label.interval(0.95, 2).unwrap());
/// assert!(of_two.0 < alone.0 && alone.1 < of_two.1);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupTally {
    /// Rows.
    pub n: u64,
    /// Rows whose set holds the true label.
    pub covered: u64,
    /// Labels in their sets, all together.
    pub labels: u64,
}

impl GroupTally {
    /// The share of covered rows; `None` without a row.
    pub fn coverage(self) -> Option<f64> {
        (self.n > 0).then(|| self.covered as f64 / self.n as f64)
    }

    /// An interval of the coverage that holds, with this confidence, for every one of so many groups at once; `None`
    /// without a row. Each takes its share of the chance to be wrong (Bonferroni).
    pub fn interval(self, confidence: f64, groups: usize) -> Option<(f64, f64)> {
        let of_each = 1.0 - (1.0 - confidence) / groups as f64;
        interval_of_share(self.covered, self.n, of_each)
    }

    /// What the coverage of this group says of its promise, where it is one of so many: too low where chance would make
    /// any of them do as badly once in a thousand times. Coverage above the law is no fault here.
    pub fn verdict(self, level: Level, threshold: f64, groups: usize) -> Verdict {
        let least = Thresholds::One(threshold).law(level).quantile_of_count(0.001 / groups as f64, self.n);
        if self.covered < least { Verdict::TooLow(least) } else { Verdict::AsPromised }
    }

    /// The same for a group that is promised nothing of its own: too low where rows that are each covered with
    /// probability `1 − α` would make any of so many groups do as badly once in a thousand times.
    pub fn shortfall(self, alpha: Alpha, groups: usize) -> Verdict {
        let wanted = 1.0 - alpha.value();
        let confidence = 1.0 - 0.002 / groups as f64;
        let enough = |covered: u64| {
            interval_of_share(covered, self.n, confidence).is_none_or(|(_, highest)| highest >= wanted)
        };
        if enough(self.covered) {
            return Verdict::AsPromised;
        }
        // The highest share that agrees with a count grows with it.
        let (mut short, mut least) = (self.covered, self.n);
        while least - short > 1 {
            let middle = u64::midpoint(short, least);
            *(if enough(middle) { &mut least } else { &mut short }) = middle;
        }
        Verdict::TooLow(least)
    }

    /// Mean number of labels in a set; `None` without a row.
    pub fn average_size(self) -> Option<f64> {
        (self.n > 0).then(|| self.labels as f64 / self.n as f64)
    }
}

/// What an [`Evaluator`] counted.
///
/// ```
/// use conformax::{EntmaxScore, Evaluator, Logits, Predictor, Thresholds};
/// let mut evaluator = Evaluator::new(vec![Predictor::new(EntmaxScore::default(), Thresholds::One(1.0))], 2)?;
/// evaluator.extend(Logits::new(&[0.0_f32, 3.0], 2)?.labelled(&[1])?)?;
/// let evaluated = evaluator.finish()?;
/// assert_eq!((evaluated.tallies[0].covered(), evaluated.seen.seen), (1, 0));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluated {
    /// How the sets of each predictor fared.
    pub tallies: Vec<Tally>,
    /// The same by group, where rows are told apart; by predictor and group.
    pub groups: Vec<Vec<GroupTally>>,
    /// What these groups are, where rows are told apart.
    pub taxonomy: Option<Taxonomy>,
    /// The mean loss of each predictor's sets, where one is measured.
    pub losses: Vec<f64>,
    /// Rows that had a part in the model.
    pub seen: SeenRows,
}

/// By predictor, what the sets of some rows add to.
struct Counts {
    tallies: Vec<Tally>,
    groups: Vec<Vec<GroupTally>>,
    losses: Vec<u128>,
}

impl<S: Score> Evaluator<S> {
    /// Evaluates these predictors, one per level say, on rows of so many classes.
    pub fn new(predictors: Vec<Predictor<S>>, classes: usize) -> Result<Self> {
        let tallies = vec![Tally::new(classes)?; predictors.len()];
        let (model_rows, overlap) = (Vec::new(), Overlap::default());
        Ok(Self {
            predictors,
            classes,
            model_rows,
            tallies,
            taxonomy: None,
            groups: Vec::new(),
            loss: None,
            losses: Vec::new(),
            overlap,
            next_row: 0,
        })
    }

    /// The same, with rows of different groups also counted apart; before the first row. By label a row belongs to its
    /// true one.
    pub fn by(self, taxonomy: Taxonomy) -> Result<Self> {
        taxonomy.check(self.classes)?;
        let none = vec![GroupTally::default(); taxonomy.groups(self.classes)];
        let groups = vec![none; self.predictors.len()];
        Ok(Self { taxonomy: Some(taxonomy), groups, ..self })
    }

    /// The same, also measuring a loss; before the first row.
    pub fn losing(self, loss: Loss) -> Result<Self> {
        if loss.classes() != self.classes {
            let (what, wanted, got) = ("classes of a loss", self.classes, loss.classes());
            return Err(Error::PerLabel { what, wanted, got });
        }
        let losses = vec![0; self.predictors.len()];
        Ok(Self { loss: Some(loss), losses, ..self })
    }

    /// The same, looking out for rows that had a part in the model; before the first row.
    #[must_use]
    pub fn watching_for(self, model_rows: Vec<RowSet>) -> Self {
        Self { model_rows, ..self }
    }

    /// The same with rows counted from here, where they are a part of more; before the first row.
    #[must_use]
    pub fn from_row(self, next_row: u64) -> Self {
        Self { next_row, ..self }
    }

    /// The same with its groups of rows moved: group `i` becomes `places[i]` of `count`. Other groups are empty. For
    /// whoever learns of groups as rows come.
    pub fn regrouped(self, places: &[usize], count: usize) -> Result<Self> {
        let Some(Taxonomy::Group(_)) = self.taxonomy else {
            return Err(Error::NotWith { what: "groups of rows", with: "this evaluation" });
        };
        let moved = |old: &Vec<GroupTally>| {
            let mut groups = vec![GroupTally::default(); count];
            for (tally, place) in old.iter().zip(places) {
                *groups.get_mut(*place).ok_or(Error::EmptyCluster(*place as u32))? = *tally;
            }
            Ok(groups)
        };
        let groups = self.groups.iter().map(moved).collect::<Result<_>>()?;
        Ok(Self { taxonomy: Some(Taxonomy::Group(count)), groups, ..self })
    }

    /// The same without its rows, which goes on where this one is: what it takes in can be merged into this one.
    pub fn emptied(&self) -> Result<Self>
    where
        S: Clone,
    {
        let mut empty = Self::new(self.predictors.clone(), self.classes)?.from_row(self.next_row);
        if let Some(taxonomy) = &self.taxonomy {
            empty = empty.by(taxonomy.clone())?;
        }
        if let Some(loss) = &self.loss {
            empty = empty.losing(loss.clone())?;
        }
        Ok(empty.watching_for(self.model_rows.clone()))
    }

    /// Groups that rows are counted in, where they are told apart.
    pub fn groups(&self) -> usize {
        self.groups.first().map_or(0, Vec::len)
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.tallies.first().map_or(0, Tally::n)
    }

    /// Takes in rows. An error names the row in the whole and leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        self.take_in(rows, rows.logits())
    }

    /// The same with rows counted in groups of their own, whatever groups their thresholds go by.
    pub fn extend_counted_by<T: Logit>(&mut self, rows: Labelled<'_, T>, groups: &[u32]) -> Result<()> {
        self.take_in(rows, rows.logits().with_groups(groups)?)
    }

    /// `counted` are the same rows, with the groups that they are counted in.
    fn take_in<T: Logit>(&mut self, rows: Labelled<'_, T>, counted: Logits<'_, T>) -> Result<()> {
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        let offset = |error: Error| error.offset_rows(self.next_row);
        let fits = self.predictors.iter().map(|predictor| predictor.expect(logits));
        let fits = fits.chain(self.taxonomy.iter().map(|taxonomy| taxonomy.expect(counted)));
        first_fault(fits, |row| read_rows(logits.rows(0..row))).map_err(offset)?;
        let (mut counts, mut overlap, mut place) = (self.counts(), self.overlap_with(0, &[]), 0);
        // Rows are looked up where their sets are made: they are in that thread's cache.
        let work = |first: usize, chunk: Logits<'_, T>| {
            let names = if self.model_rows.is_empty() { Vec::new() } else { hash_rows(chunk) };
            Ok((sets_of_chunk(&self.predictors, first, chunk)?, self.overlap_with(first as u64, &names)))
        };
        drain_chunks(logits, work, |(by_predictor, seen)| {
            let count = by_predictor.first().map_or(0, PredictionSets::len);
            let labels = &rows.labels()[place..place + count];
            self.count(&mut counts, &by_predictor, labels, |row| counted.group(place + row));
            overlap.merge(&seen);
            place += count;
        })
        .map_err(offset)?;
        self.keep(counts, &overlap, rows.len());
        Ok(())
    }

    /// Takes in rows whose sets were found elsewhere, on a GPU say: those that each predictor gives them, with their
    /// true labels, their fingerprints and, where they are counted by groups that come with rows, those. An error names
    /// the row in the whole and leaves everything as it was.
    ///
    /// ```
    /// use conformax::{EntmaxScore, Evaluator, Logits, Predictor, Thresholds, row_fingerprints};
    /// let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1.0));
    /// let logits = Logits::new(&[0.0_f32, 3.0, 2.0, 1.0, 5.0, 0.0], 3)?;
    /// let mut evaluator = Evaluator::new(vec![model.clone()], 3)?;
    /// let mut other = evaluator.clone();
    /// evaluator.extend(logits.labelled(&[2, 0])?)?;
    /// other.extend_with_sets(&[model.predict(logits)?], &[2, 0], None, &row_fingerprints(logits))?;
    /// assert_eq!(evaluator, other);
    /// # Ok::<(), conformax::Error>(())
    /// ```
    pub fn extend_with_sets(
        &mut self,
        sets: &[PredictionSets],
        labels: &[u32],
        groups: Option<&[u32]>,
        fingerprints: &[u64],
    ) -> Result<()> {
        let (classes, wanted) = (self.classes, fingerprints.len());
        if sets.len() != self.predictors.len() {
            return Err(Error::Missing { what: "the sets of each predictor" });
        }
        let lengths = [("labels", labels.len()), ("groups", groups.map_or(wanted, <[u32]>::len))];
        let lengths = lengths.into_iter().chain(sets.iter().map(|sets| ("sets", sets.len())));
        if let Some((what, got)) = lengths.into_iter().find(|(_, got)| *got != wanted) {
            return Err(Error::Rows { what, wanted, got });
        }
        if let Some(other) = sets.iter().find(|sets| sets.classes() != classes) {
            return Err(Error::ClassCount { wanted: classes, got: other.classes() });
        }
        let offset = |error: Error| error.offset_rows(self.next_row);
        if let Some(row) = labels.iter().position(|label| *label as usize >= classes) {
            return Err(offset(Error::Label { row: row as u64, label: labels[row], classes }));
        }
        if let Some(Taxonomy::Group(count)) = self.taxonomy {
            groups_below(groups, count).map_err(offset)?;
        }
        let mut counts = self.counts();
        self.count(&mut counts, sets, labels, |row| groups.map(|groups| groups[row]));
        self.keep(counts, &self.overlap_with(0, fingerprints), wanted);
        Ok(())
    }

    fn counts(&self) -> Counts {
        Counts { tallies: self.tallies.clone(), groups: self.groups.clone(), losses: self.losses.clone() }
    }

    /// Counts the sets that each predictor gives rows with these labels, counted in these groups.
    fn count(
        &self,
        counts: &mut Counts,
        by_predictor: &[PredictionSets],
        labels: &[u32],
        of_row: impl Fn(usize) -> Option<u32>,
    ) {
        for (tally, sets) in counts.tallies.iter_mut().zip(by_predictor) {
            sets.iter().zip(labels).for_each(|(set, label)| tally.add(set, *label));
        }
        if let Some(taxonomy) = &self.taxonomy {
            for (groups, sets) in counts.groups.iter_mut().zip(by_predictor) {
                for ((row, label), set) in (0..).zip(labels).zip(sets.iter()) {
                    let group = &mut groups[taxonomy.group(*label, of_row(row))];
                    group.n += 1;
                    group.covered += u64::from(set.contains(label));
                    group.labels += set.len() as u64;
                }
            }
        }
        if let Some(loss) = &self.loss {
            for (total, sets) in counts.losses.iter_mut().zip(by_predictor) {
                let of_rows = sets.iter().zip(labels).map(|(set, label)| loss.units_of(set, *label));
                *total += of_rows.map(u128::from).sum::<u128>();
            }
        }
    }

    /// Which of the next rows, from the one at `place` on, are the model's.
    fn overlap_with(&self, place: u64, fingerprints: &[u64]) -> Overlap {
        let mut overlap = Overlap::default();
        overlap.extend(self.next_row + place, fingerprints, &self.model_rows);
        overlap
    }

    /// What was counted with so many more rows, and which of them are the model's.
    fn keep(&mut self, counts: Counts, overlap: &Overlap, rows: usize) {
        (self.tallies, self.groups, self.losses) = (counts.tallies, counts.groups, counts.losses);
        self.overlap.merge(overlap);
        self.next_row += rows as u64;
    }

    /// Takes in what another took in, with the same predictors. Rows of both count.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.predictors != other.predictors => Some("predictors"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.model_rows != other.model_rows => Some("models' rows"),
            () if self.taxonomy != other.taxonomy => Some("groups"),
            () if self.loss != other.loss => Some("losses"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        self.tallies.iter_mut().zip(&other.tallies).for_each(|(mine, theirs)| mine.merge(theirs));
        for (mine, theirs) in self.groups.iter_mut().flatten().zip(other.groups.iter().flatten()) {
            mine.n += theirs.n;
            mine.covered += theirs.covered;
            mine.labels += theirs.labels;
        }
        self.losses.iter_mut().zip(&other.losses).for_each(|(mine, theirs)| *mine += theirs);
        self.overlap.merge(&other.overlap);
        self.next_row = self.next_row.max(other.next_row);
        Ok(())
    }

    /// The counts. An error where there is no row.
    pub fn finish(self) -> Result<Evaluated> {
        if self.n() == 0 {
            return Err(Error::NoTestRows);
        }
        let n = self.n() as f64;
        let mean = |total: &u128| self.loss.as_ref().map(|loss| loss.value(*total) / n);
        let losses = self.losses.iter().filter_map(mean).collect();
        let seen = self.overlap.finish(&self.model_rows);
        let Self { tallies, groups, taxonomy, .. } = self;
        Ok(Evaluated { tallies, groups, taxonomy, losses, seen })
    }
}
