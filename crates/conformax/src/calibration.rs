//! `Calibration`: the evidence that rows give; a level makes a `Predictor` and a `Promise` of it.
//!
//! The threshold is the r-th smallest calibration score, `r = ⌈(n + 1)(1 − α)⌉`, of all rows or of a group's own.

use std::sync::Arc;

use crate::fingerprint::RowSet;
use crate::label_scores::RankedLabelScores;
use crate::level::{Level, Promise};
use crate::score::paths::ask;
use crate::{
    Alpha, Calibrator, Error, Labelled, Logit, Logits, LossSteps, Masked, Predictor, Ranks, Result, Scheme,
    Score, SortedScores, Taxonomy, Thresholds, WeightRule, WeightedScores, score_labels,
};

/// What calibration rows say, in order.
///
/// ```
/// use conformax::{Calibration, EntmaxScore, Evidence, SortedScores};
/// let scores = SortedScores::new(vec![0.5, 2.0])?;
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, scores.clone())?;
/// assert_eq!(*calibration.evidence(), Evidence::Groups(vec![scores]));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Evidence {
    /// The scores of each group.
    Groups(Vec<SortedScores>),
    /// Scores with the weights of their rows.
    Weighted(Arc<WeightedScores>),
    /// Where losses fall as the threshold grows.
    Losses(LossSteps),
}

/// The evidence: a score and what it gave the calibration rows. Any level, and p-values where there are scores.
///
/// ```
/// use conformax::{Alpha, Calibration, EntmaxScore, SortedScores};
/// let calibration = Calibration::from_scores(EntmaxScore::default(), 3, SortedScores::new(vec![0.5, 2.0, 1.0])?)?;
/// let (model, promise) = calibration.at(Alpha::new(0.5)?);
/// assert_eq!((model.thresholds().as_slice(), promise.alpha().value()), (&[1.0][..], 0.5));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration<S> {
    pub(crate) score: S,
    pub(crate) classes: usize,
    pub(crate) masked: Masked,
    pub(crate) scheme: Scheme,
    pub(crate) ranks: Option<Ranks>,
    pub(crate) evidence: Evidence,
    pub(crate) n: u64,
    pub(crate) rows: RowSet,
}

impl<S: Score> Calibration<S> {
    /// Of these rows, all together: the short form of [`Calibrator`].
    pub fn of<T: Logit>(score: S, rows: Labelled<'_, T>) -> Result<Self> {
        let mut calibrator = Calibrator::new(score, rows.logits().classes())?;
        calibrator.extend(rows)?;
        calibrator.finish()
    }

    /// Of scores that this very score gave before, to rows that share a threshold.
    pub fn from_scores(score: S, classes: usize, scores: SortedScores) -> Result<Self> {
        Self::from_evidence(score, classes, Scheme::default(), Evidence::Groups(vec![scores]))
    }

    /// Of evidence that this very score gave before: read from a file, say.
    pub fn from_evidence(score: S, classes: usize, scheme: Scheme, evidence: Evidence) -> Result<Self> {
        Logits::<f64>::new(&[], classes)?;
        scheme.check(classes)?;
        match (&scheme, &evidence) {
            (Scheme::Groups(taxonomy), Evidence::Groups(groups)) => {
                let (wanted, got) = (taxonomy.groups(classes), groups.len());
                if wanted != got {
                    return Err(Error::PerLabel { what: "groups of scores", wanted, got });
                }
            }
            (Scheme::RowWeights | Scheme::LabelWeights(_), Evidence::Weighted(_))
            | (Scheme::Risk(_), Evidence::Losses(_)) => {}
            _ => return Err(Error::NotWith { what: "this evidence", with: "this way to thresholds" }),
        }
        let (masked, rows) = (Masked::default(), RowSet::default());
        let calibration =
            Self { score, classes, masked, scheme, ranks: None, evidence, n: 0, rows }.counted();
        if calibration.n == 0 { Err(Error::NoCalibrationRows) } else { Ok(calibration) }
    }

    pub(crate) fn counted(self) -> Self {
        let n = match (&self.evidence, &self.scheme) {
            // The rows of all stand beside those of the clusters.
            (Evidence::Groups(groups), Scheme::Groups(Taxonomy::Cluster(clusters)))
                if clusters.contains(&None) =>
            {
                groups.last().map_or(0, SortedScores::n)
            }
            (Evidence::Groups(groups), _) => groups.iter().map(SortedScores::n).sum(),
            (Evidence::Weighted(scores), _) => scores.n(),
            (Evidence::Losses(steps), _) => steps.n(),
        };
        Self { n, ..self }
    }

    /// The same with this meaning of −∞.
    #[must_use]
    pub fn with_masked(self, masked: Masked) -> Self {
        Self { masked, ..self }
    }

    /// The same with the largest ranks that went into the scores.
    pub fn with_ranks(self, ranks: Ranks) -> Result<Self> {
        ranks.check(self.classes)?;
        Ok(Self { ranks: Some(ranks), ..self })
    }

    /// The score.
    pub fn score(&self) -> &S {
        &self.score
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// What −∞ logits mean.
    pub fn masked(&self) -> Masked {
        self.masked
    }

    /// How thresholds follow.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// How far down the ranking a label may stand, where that is limited.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// What the calibration rows say.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The scores of each group; of one group where all rows share a threshold, of none where thresholds go by weights
    /// or a loss.
    pub fn groups(&self) -> &[SortedScores] {
        match &self.evidence {
            Evidence::Groups(groups) => groups,
            Evidence::Weighted(_) | Evidence::Losses(_) => &[],
        }
    }

    /// The calibration rows that can be known again, where they were remembered.
    pub fn rows(&self) -> &RowSet {
        &self.rows
    }

    /// Number of calibration rows.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// What predicts at a level, and what is promised.
    pub fn at(&self, alpha: Alpha) -> (Predictor<S>, Promise)
    where
        S: Clone,
    {
        let (thresholds, promise) = self.thresholds_at(alpha);
        (self.predictor(thresholds), promise)
    }

    pub(crate) fn thresholds_at(&self, alpha: Alpha) -> (Thresholds, Promise) {
        match (&self.scheme, &self.evidence) {
            (Scheme::Groups(taxonomy), Evidence::Groups(groups)) => {
                by_group(taxonomy, groups, alpha, |scores| scores.level(alpha))
            }
            (Scheme::Risk(loss), Evidence::Losses(steps)) => {
                (Thresholds::One(steps.threshold(loss, alpha)), Promise::Risk { alpha, n: self.n })
            }
            (Scheme::LabelWeights(weights), Evidence::Weighted(scores)) => {
                let of_label = weights.iter().map(|weight| scores.threshold(alpha, *weight)).collect();
                (Thresholds::PerLabel(of_label), Promise::Weighted { alpha, n: self.n })
            }
            (_, Evidence::Weighted(scores)) => {
                let rule = WeightRule::new(alpha, Arc::clone(scores));
                (Thresholds::ByWeight(rule), Promise::Weighted { alpha, n: self.n })
            }
            (_, Evidence::Groups(_) | Evidence::Losses(_)) => unreachable!("a scheme has its own evidence"),
        }
    }

    /// The same with coverage of at least `1 − α` with probability `1 − δ` over the calibration rows, in every group.
    /// An error where thresholds go by weights or a loss.
    pub fn at_with_delta(&self, alpha: Alpha, delta: Alpha) -> Result<(Predictor<S>, Promise)>
    where
        S: Clone,
    {
        let (Scheme::Groups(taxonomy), Evidence::Groups(groups)) = (&self.scheme, &self.evidence) else {
            let (what, with) = ("a probability over calibration rows", "weights or risk control");
            return Err(Error::NotWith { what, with });
        };
        let (thresholds, promise) =
            by_group(taxonomy, groups, alpha, |scores| scores.level(alpha).with_delta(delta));
        Ok((self.predictor(thresholds), promise))
    }

    /// What predicts with these thresholds of the groups.
    pub(crate) fn with_group_thresholds(&self, each: Vec<f64>) -> Predictor<S>
    where
        S: Clone,
    {
        let Scheme::Groups(taxonomy) = &self.scheme else { unreachable!("there are groups") };
        self.predictor(thresholds_of(taxonomy, each))
    }

    /// The scores of true labels as calibration takes them: infinite where they stand too far down.
    pub(crate) fn label_scores<T: Logit>(&self, logits: Logits<'_, T>, labels: &[u32]) -> Result<Vec<f64>> {
        match &self.ranks {
            None => score_labels(&self.score, logits.labelled(labels)?),
            Some(ranks) => ask(&self.score, RankedLabelScores { ranks, first: 0, chunk: logits, labels }),
        }
    }

    fn predictor(&self, thresholds: Thresholds) -> Predictor<S>
    where
        S: Clone,
    {
        let predictor = Predictor::new(self.score.clone(), thresholds).with_masked(self.masked);
        match &self.ranks {
            Some(ranks) => predictor.with_ranks(ranks.clone()),
            None => predictor,
        }
    }
}

/// The thresholds of each group's level, and the promise.
fn by_group(
    taxonomy: &Taxonomy,
    groups: &[SortedScores],
    alpha: Alpha,
    level: impl Fn(&SortedScores) -> Level,
) -> (Thresholds, Promise) {
    let levels: Vec<Level> = groups.iter().map(level).collect();
    let each: Vec<f64> = groups.iter().zip(&levels).map(|(scores, level)| scores.at(*level)).collect();
    let thresholds = thresholds_of(taxonomy, each);
    let promise = match (taxonomy, &levels[..]) {
        (Taxonomy::All, [level]) => Promise::Marginal(*level),
        _ => Promise::Groups { alpha, levels },
    };
    (thresholds, promise)
}

/// The thresholds of each group as they apply to rows.
fn thresholds_of(taxonomy: &Taxonomy, each: Vec<f64>) -> Thresholds {
    match taxonomy {
        Taxonomy::All => Thresholds::One(each[0]),
        Taxonomy::Label => Thresholds::PerLabel(each),
        Taxonomy::Cluster(clusters) => {
            let of_label = (0..clusters.len() as u32).map(|label| each[taxonomy.group(label, None)]);
            Thresholds::PerLabel(of_label.collect())
        }
        Taxonomy::Group(_) => Thresholds::PerGroup(each),
    }
}
