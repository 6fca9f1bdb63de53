//! `Calibrator`: labelled rows in any blocks become a `Calibration`.

use std::sync::Arc;

use crate::fingerprint::{RowSample, hash_rows};
use crate::label_scores::{LabelScores, RankedLabelScores, expect_numbers};
use crate::room::{append, make_room};
use crate::rows::{first_fault, map_chunks, visit_rows};
use crate::scheme::Gathered;
use crate::score::paths::{Paths, Question, ask};
use crate::{
    Alpha, Calibration, Error, Evidence, Labelled, Logit, Logits, Loss, LossSteps, Masked, Predictor, Ranks,
    Result, Scheme, Score, SortedScores, Taxonomy, WeightedScores, score_labels,
};

/// Whether an accumulator keeps the fingerprints of its rows, by which a model knows them again.
///
/// ```
/// use conformax::{Calibrator, EntmaxScore, Logits, Remember, row_fingerprints};
/// let logits = Logits::new(&[1.0_f32, 3.0], 2)?;
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?.remembering(Remember::Rows);
/// calibrator.extend(logits.labelled(&[0])?)?;
/// assert!(calibrator.finish()?.rows().contains(row_fingerprints(logits)[0]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Remember {
    /// Keep scores alone.
    #[default]
    Nothing,
    /// Keep fingerprints too: of up to 262,144 rows, beyond that of a sample.
    Rows,
}

impl Remember {
    /// The fingerprints of rows, where they are kept.
    pub(crate) fn names<T: Logit>(self, rows: Logits<'_, T>) -> Vec<u64> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Rows => hash_rows(rows),
        }
    }
}

/// Takes labelled rows in any blocks, merges with others of its kind in any order, and finishes to the same bits.
///
/// It holds eight bytes a row and an eighth of that to grow into, twice as much with weights or a severity (and for
/// every cost that a row can come down to), and at most eleven megabytes of fingerprints where rows are remembered. To
/// finish takes no more, but for weights (34 bytes a row, of which the sums are 16) and clusters that leave out
/// classes, for which the scores are there twice.
///
/// ```
/// use conformax::{Alpha, Calibrator, EntmaxScore, Logits};
/// let mut calibrator = Calibrator::new(EntmaxScore::default(), 2)?;
/// let mut elsewhere = calibrator.clone();
/// calibrator.extend(Logits::new(&[1.0_f32, 3.0], 2)?.labelled(&[0])?)?;
/// elsewhere.extend(Logits::new(&[2.0_f32, 0.0, 5.0, 1.0], 2)?.labelled(&[0, 0])?)?;
/// calibrator.merge(elsewhere)?;
/// let (model, _) = calibrator.finish()?.at(Alpha::new(0.25)?);
/// assert_eq!(model.thresholds().as_slice(), [2.0]);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calibrator<S> {
    pub(crate) score: S,
    pub(crate) classes: usize,
    pub(crate) masked: Masked,
    pub(crate) scheme: Scheme,
    pub(crate) ranks: Option<Ranks>,
    pub(crate) remember: Remember,
    pub(crate) gathered: Gathered,
    pub(crate) rows: RowSample,
}

impl<S: Score> Calibrator<S> {
    /// Calibrates this score on rows of so many classes.
    pub fn new(score: S, classes: usize) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        let scheme = Scheme::default();
        Ok(Self {
            score,
            classes,
            masked: Masked::default(),
            gathered: scheme.nothing_gathered(classes),
            scheme,
            ranks: None,
            remember: Remember::Nothing,
            rows: RowSample::default(),
        })
    }

    /// The same with this meaning of −∞; before the first row.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same with a threshold for each group of this taxonomy; before the first row.
    pub fn by(self, taxonomy: Taxonomy) -> Result<Self> {
        self.under(Scheme::Groups(taxonomy))
    }

    /// The same with thresholds that follow by this scheme; before the first row.
    pub fn under(self, scheme: Scheme) -> Result<Self> {
        scheme.check(self.classes)?;
        if self.ranks.is_some() && matches!(scheme, Scheme::Risk(_)) {
            return Err(Error::NotWith { what: "largest ranks of labels", with: "risk control" });
        }
        Ok(Self { gathered: scheme.nothing_gathered(self.classes), scheme, ..self })
    }

    /// The same with labels that stand further down the ranking than they may taken for infinitely strange; before the
    /// first row. The ranks must come from other rows.
    pub fn with_ranks(self, ranks: Ranks) -> Result<Self> {
        ranks.check(self.classes)?;
        if matches!(self.scheme, Scheme::Risk(_)) {
            return Err(Error::NotWith { what: "largest ranks of labels", with: "risk control" });
        }
        Ok(Self { ranks: Some(ranks), ..self })
    }

    /// The same, remembering its rows or not; before the first row.
    #[must_use]
    pub fn remembering(self, remember: Remember) -> Self {
        Self { remember, ..self }
    }

    /// The same without its rows: what is taken in by it can be merged into this one.
    #[must_use]
    pub fn emptied(&self) -> Self
    where
        S: Clone,
    {
        Self {
            score: self.score.clone(),
            classes: self.classes,
            masked: self.masked,
            scheme: self.scheme.clone(),
            ranks: self.ranks.clone(),
            remember: self.remember,
            gathered: self.scheme.nothing_gathered(self.classes),
            rows: RowSample::default(),
        }
    }

    /// Rows taken in so far.
    pub fn n(&self) -> u64 {
        self.gathered.n()
    }

    /// How thresholds will follow.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Takes in rows. An error names the row in the whole, counted from the first that this accumulator took in, and
    /// leaves everything as it was.
    pub fn extend<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let before = self.n();
        let logits = rows.logits();
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        self.gather(rows).map_err(|error| error.offset_rows(before))
    }

    fn gather<T: Logit>(&mut self, rows: Labelled<'_, T>) -> Result<()> {
        let logits = rows.logits();
        first_fault([self.scheme.expect(logits), self.masked.check(rows)], |row| {
            score_labels(&self.score, rows.before(row)).map(|_| ())
        })?;
        let remember = self.remember;
        if let (Scheme::Risk(loss), Gathered::Steps(steps)) = (&self.scheme, &mut self.gathered) {
            let chunks = map_chunks(logits, |first, chunk| {
                let labels = &rows.labels()[first..first + chunk.len()];
                Ok((ask(&self.score, RowLosses { loss, first, chunk, labels })?, remember.names(chunk)))
            })?;
            for (more, names) in chunks {
                steps.merge(more);
                self.rows.extend(&names);
            }
            return Ok(());
        }
        let ranks = self.ranks.as_ref();
        let chunks = map_chunks(logits, |first, chunk| {
            let labels = &rows.labels()[first..first + chunk.len()];
            let scores = match ranks {
                None => ask(&self.score, LabelScores { first, chunk, labels })?,
                Some(ranks) => ask(&self.score, RankedLabelScores { ranks, first, chunk, labels })?,
            };
            Ok((scores, remember.names(chunk)))
        })?;
        let mut place = 0;
        for (scores, names) in chunks {
            let labels = &rows.labels()[place..place + scores.len()];
            match (&mut self.gathered, &self.scheme) {
                (Gathered::Groups(groups), Scheme::Groups(Taxonomy::All)) => {
                    append(&mut groups[0], &scores);
                }
                (Gathered::Groups(groups), Scheme::Groups(taxonomy)) => {
                    for ((index, label), score) in (place..).zip(labels).zip(&scores) {
                        append(&mut groups[taxonomy.group(*label, logits.group(index))], &[*score]);
                    }
                }
                (Gathered::Weighted(pairs), Scheme::LabelWeights(weights)) => {
                    make_room(pairs, scores.len());
                    let of_label = |(label, score): (&u32, &f64)| (*score, weights[*label as usize]);
                    pairs.extend(labels.iter().zip(&scores).map(of_label));
                }
                (Gathered::Weighted(pairs), _) => {
                    let weights = &logits.weights()?[place..place + scores.len()];
                    make_room(pairs, scores.len());
                    pairs.extend(scores.iter().copied().zip(weights.iter().copied()));
                }
                (Gathered::Groups(_) | Gathered::Steps(_), _) => unreachable!("a scheme gathers its own"),
            }
            place += scores.len();
            self.rows.extend(&names);
        }
        Ok(())
    }

    /// Takes in rows of a label whose fingerprints and scores are known, where groups are of labels.
    pub(crate) fn add(&mut self, label: u32, rows: impl Iterator<Item = (u64, f64)>) {
        let (Gathered::Groups(groups), Scheme::Groups(taxonomy)) = (&mut self.gathered, &self.scheme) else {
            unreachable!("thresholds go by groups of labels")
        };
        let group = &mut groups[taxonomy.group(label, None)];
        for (fingerprint, score) in rows {
            append(group, &[score]);
            self.rows.extend(&[fingerprint]);
        }
    }

    /// The same with its groups of rows moved: group `i` becomes `places[i]` of `count`. Other groups are empty. For
    /// whoever learns of groups as rows come.
    pub fn regrouped(self, places: &[usize], count: usize) -> Result<Self> {
        let (Scheme::Groups(Taxonomy::Group(_)), Gathered::Groups(old)) = (&self.scheme, self.gathered)
        else {
            return Err(Error::NotWith { what: "groups of rows", with: "this way to thresholds" });
        };
        let mut groups = vec![Vec::new(); count];
        for (scores, place) in old.into_iter().zip(places) {
            *groups.get_mut(*place).ok_or(Error::EmptyCluster(*place as u32))? = scores;
        }
        let scheme = Scheme::Groups(Taxonomy::Group(count));
        Ok(Self { scheme, gathered: Gathered::Groups(groups), ..self })
    }

    /// Takes in what another took in. It must be of the same score, classes, policies and scheme.
    pub fn merge(&mut self, other: Self) -> Result<()>
    where
        S: PartialEq,
    {
        let differs = match () {
            () if self.score != other.score => Some("scores"),
            () if self.classes != other.classes => Some("numbers of classes"),
            () if self.masked != other.masked => Some("policies for masked classes"),
            () if self.scheme != other.scheme => Some("ways to thresholds"),
            () if self.ranks != other.ranks => Some("largest ranks"),
            () if self.remember != other.remember => Some("remembered rows"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Error::Unlike { what });
        }
        match (&mut self.gathered, other.gathered) {
            (Gathered::Groups(mine), Gathered::Groups(theirs)) => {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| append(mine, &theirs));
            }
            (Gathered::Weighted(mine), Gathered::Weighted(theirs)) => append(mine, &theirs),
            (Gathered::Steps(mine), Gathered::Steps(theirs)) => mine.merge(theirs),
            _ => unreachable!("the same scheme gathers the same"),
        }
        self.rows.merge(other.rows);
        Ok(())
    }

    /// Sorts the scores. An error where there is no row.
    pub fn finish(self) -> Result<Calibration<S>> {
        if self.n() == 0 {
            return Err(Error::NoCalibrationRows);
        }
        let Self { score, classes, masked, scheme, ranks, gathered, rows, .. } = self;
        let evidence = match gathered {
            Gathered::Groups(mut groups) => {
                if let Scheme::Groups(Taxonomy::Cluster(clusters)) = &scheme
                    && clusters.contains(&None)
                {
                    // Labels of no cluster go by the rows of all.
                    let all = groups.concat();
                    *groups.last_mut().expect("there is a group for them") = all;
                }
                Evidence::Groups(groups.into_iter().map(SortedScores::of_any).collect::<Result<_>>()?)
            }
            Gathered::Weighted(pairs) => Evidence::Weighted(Arc::new(WeightedScores::new(pairs)?)),
            Gathered::Steps(mut steps) => {
                steps.sort();
                Evidence::Losses(steps)
            }
        };
        Ok(Calibration { score, classes, masked, scheme, ranks, evidence, n: 0, rows: rows.finish() }
            .counted())
    }
}

/// Where the losses of rows fall.
struct RowLosses<'a, T> {
    loss: &'a Loss,
    first: usize,
    chunk: Logits<'a, T>,
    labels: &'a [u32],
}

impl<T: Logit> Question for RowLosses<'_, T> {
    type Answer = Result<LossSteps>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut steps = LossSteps { n: self.chunk.len() as u64, ..LossSteps::default() };
        let (mut labels, mut scores) = (Vec::new(), Vec::new());
        visit_rows(self.first, self.chunk, |index, row| {
            let label = self.labels[index];
            let own = score.score(row, label);
            expect_numbers(self.first + index, &[own])?;
            // A severity falls with the true label alone; a cost may fall with any label before it.
            let scored = if self.loss.is_cost() {
                labels.clear();
                scores.clear();
                score.scored_set_into(row, own, &mut labels, &mut scores);
                scores.iter().copied().zip(labels.iter().copied()).collect()
            } else {
                vec![(own, label)]
            };
            steps.start += u128::from(self.loss.of_empty(label));
            self.loss.steps_into(label, scored, &mut steps.steps);
            Ok(())
        })?;
        Ok(steps)
    }
}

/// From rows to a predictor at one level, in one call.
///
/// ```
/// use conformax::{Alpha, EntmaxScore, Logits, calibrate};
/// let cal = [3.0_f32, 1.0, 0.0, 0.5, 2.0, 1.5, 1.0, 0.0, 4.0, 2.0, 2.5, 0.0];
/// let logits = Logits::new(&cal, 3)?;
/// let model = calibrate(EntmaxScore::default(), logits, &[0, 2, 2, 0], Alpha::new(0.2)?)?;
/// let sets = model.predict(Logits::new(&[2.0_f32, 1.75, -1.0], 3)?)?;
/// assert_eq!(sets.get(0), Some(&[0, 1][..]));
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn calibrate<S: Score, T: Logit>(
    score: S,
    logits: Logits<'_, T>,
    labels: &[u32],
    alpha: Alpha,
) -> Result<Predictor<S>> {
    let calibration = Calibration::of(score, logits.labelled(labels)?)?;
    let (thresholds, _) = calibration.thresholds_at(alpha);
    Ok(Predictor::new(calibration.score, thresholds))
}
