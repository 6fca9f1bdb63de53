//! The p-value of every label of a row: the share of calibration scores that are as strange, the row's own included.
//!
//! It needs only which calibration scores a label's lies between, so estimates settle nearly all labels.

use crate::kernel::{PerStep, Steps};
use crate::label_scores::put_together;
use crate::rows::{first_fault, map_chunks, read_rows, visit_rows};
use crate::score::paths::{Paths, Question, ask};
use crate::sorted_scores::Places;
use crate::{
    Calibration, Error, Evidence, Logit, Logits, Masked, PValue, Ranks, Result, Row, Scheme, Score,
    SortedScores, Taxonomy,
};

impl<S: Score> Calibration<S> {
    /// The p-value of every label of every row, row after row: a label is in the set at α exactly when its p-value
    /// exceeds α. An error under risk control, where a level bounds a loss.
    pub fn p_values<T: Logit>(&self, logits: Logits<'_, T>) -> Result<Vec<PValue>> {
        if logits.classes() != self.classes {
            return Err(Error::ClassCount { wanted: self.classes, got: logits.classes() });
        }
        first_fault([self.scheme.expect(logits)], |row| read_rows(logits.rows(0..row)))?;
        let (largest, places) = match &self.evidence {
            Evidence::Groups(groups) => (
                groups.iter().filter_map(SortedScores::largest_finite).fold(f64::NEG_INFINITY, f64::max),
                groups.iter().map(|scores| Places::new(scores.as_slice())).collect(),
            ),
            Evidence::Weighted(scores) => {
                (scores.largest_finite().unwrap_or(f64::NEG_INFINITY), vec![Places::new(scores.scores())])
            }
            Evidence::Losses(_) => return Err(Error::NotWith { what: "p-values", with: "risk control" }),
        };
        let chunks = map_chunks(logits, |first, chunk| {
            let (scheme, evidence, masked) = (&self.scheme, &self.evidence, self.masked);
            let (ranks, places) = (self.ranks.as_ref(), &places[..]);
            ask(&self.score, PValues { scheme, evidence, places, masked, ranks, largest, first, chunk })
        })?;
        Ok(put_together(chunks))
    }
}

struct PValues<'a, T> {
    scheme: &'a Scheme,
    evidence: &'a Evidence,
    /// Of the scores of each group, or of all.
    places: &'a [Places<'a>],
    masked: Masked,
    ranks: Option<&'a Ranks>,
    largest: f64,
    first: usize,
    chunk: Logits<'a, T>,
}

impl<T: Logit> PValues<'_, T> {
    fn at(&self, row: Row<'_, T>, label: u32, score: f64) -> PValue {
        let score = match self.masked {
            Masked::Never if row.logit(label) == f64::NEG_INFINITY => f64::NAN,
            _ if self.ranks.is_some_and(|ranks| !ranks.hold(row, label)) => f64::INFINITY,
            _ => score,
        };
        match (self.evidence, self.scheme) {
            (Evidence::Groups(groups), Scheme::Groups(taxonomy)) => {
                groups[taxonomy.group(label, row.group())].p_value(score)
            }
            (Evidence::Weighted(scores), Scheme::LabelWeights(weights)) => {
                scores.p_value(score, weights[label as usize])
            }
            (Evidence::Weighted(scores), _) => scores.p_value(score, row.weight().unwrap_or_default()),
            (Evidence::Groups(_) | Evidence::Losses(_), _) => unreachable!("a scheme has its own evidence"),
        }
    }
}

impl<T: Logit> PValues<'_, T> {
    /// The p-value of a label whose score is finite and between these two, unless it depends on which.
    fn between(&self, row: Row<'_, T>, label: u32, least: f64, most: f64) -> Option<PValue> {
        if self.ranks.is_some() {
            let [least, most] = [least, most].map(|score| self.at(row, label, score));
            return (least == most).then_some(least);
        }
        match (self.evidence, self.scheme) {
            (Evidence::Groups(groups), Scheme::Groups(taxonomy)) => {
                let group = taxonomy.group(label, row.group());
                Some(groups[group].p_value_at(self.places[group].below_all(least, most)?))
            }
            (Evidence::Weighted(scores), scheme) => {
                let weight = match scheme {
                    Scheme::LabelWeights(weights) => weights[label as usize],
                    _ => row.weight().unwrap_or_default(),
                };
                Some(scores.p_value_at(self.places[0].below_all(least, most)?, weight))
            }
            (Evidence::Groups(_) | Evidence::Losses(_), _) => unreachable!("a scheme has its own evidence"),
        }
    }
}

impl<T: Logit> Question for PValues<'_, T> {
    type Answer = Result<Vec<PValue>>;

    fn put<P: Paths>(self, score: &P) -> Self::Answer {
        let mut all = Vec::with_capacity(self.chunk.as_slice().len());
        let mut scratch = Scratch::default();
        visit_rows(self.first, self.chunk, |_, row| {
            match score.look_by_steps(row, &mut scratch.steps) {
                true => self.append_by_steps(score, row, &mut scratch, &mut all),
                false => self.append_by_estimates(score, row, &mut scratch, &mut all),
            }
            Ok(())
        })?;
        Ok(all)
    }
}

/// Memory that one row leaves to the next.
struct Scratch {
    labels: Vec<u32>,
    scores: Vec<f64>,
    steps: Steps,
    of_steps: PerStep<PValue>,
    open: Vec<usize>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            scores: Vec::new(),
            steps: Steps::default(),
            of_steps: PerStep::new(NOTHING),
            open: Vec::new(),
        }
    }
}

/// No p-value is a share of nothing.
const NOTHING: PValue = PValue { count: 0, of: 0 };

impl<T: Logit> PValues<'_, T> {
    /// The scores and their places, where all labels of all rows share them.
    fn shared(&self) -> Option<(&SortedScores, &Places<'_>)> {
        match (self.evidence, self.scheme, self.places) {
            (Evidence::Groups(groups), Scheme::Groups(Taxonomy::All), [places]) if self.ranks.is_none() => {
                Some((&groups[0], places))
            }
            _ => None,
        }
    }

    /// Appends the p-values of a row from bounds on the scores of its labels. Between most bounds there is no
    /// calibration score; where there is one, which side of it a label is on takes closer bounds or the definition.
    fn append_by_steps<P: Paths>(
        &self,
        score: &P,
        row: Row<'_, T>,
        scratch: &mut Scratch,
        all: &mut Vec<PValue>,
    ) {
        let Scratch { open, steps, of_steps, .. } = scratch;
        let exact = |label: u32| self.at(row, label, score.score(row, label));
        let Some((scores, places)) = self.shared() else {
            all.extend((0..row.classes() as u32).map(|label| {
                let between = |(least, most)| self.between(row, label, least, most);
                let p = steps.bounds_by_step(label).and_then(between);
                p.or_else(|| between(steps.bounds_of(label)?)).unwrap_or_else(|| exact(label))
            }));
            return;
        };
        let mut between = Between::new(scores, places);
        open.clear();
        for (step, least, most) in steps.bounds() {
            match between.p_value(least, most) {
                Some(p) => of_steps.say(step, p),
                None => open.push(step),
            }
        }
        let start = all.len();
        steps.spread(of_steps, all);
        let out = &mut all[start..];
        for step in open.iter().map(|step| steps.step(*step)) {
            for label in step.labels() {
                let (least, most) = step.bounds_of(label);
                out[label as usize] = between.p_value(least, most).unwrap_or_else(|| exact(label));
            }
        }
        for label in steps.masked() {
            out[label as usize] = exact(label);
        }
    }

    /// The same from estimates of the scores up to the largest finite calibration score: beyond that a label is behind
    /// none but infinite ones, whatever its own.
    fn append_by_estimates<P: Paths>(
        &self,
        score: &P,
        row: Row<'_, T>,
        scratch: &mut Scratch,
        all: &mut Vec<PValue>,
    ) {
        let Scratch { labels, scores, .. } = scratch;
        let start = all.len();
        labels.clear();
        scores.clear();
        let off = score.estimated_set_into(row, self.largest, labels, scores);
        all.resize(start + row.classes(), NOTHING);
        let out = &mut all[start..];
        let estimates = labels.iter().copied().zip(scores.iter().copied());
        let exact = |label: u32| self.at(row, label, score.score(row, label));
        match self.shared() {
            // What is the same for every label is looked up once.
            Some((scores, places)) => {
                let mut between = Between::new(scores, places);
                fill(estimates, off, |_, least, most| between.p_value(least, most), exact, out);
            }
            None => fill(estimates, off, |y, least, most| self.between(row, y, least, most), exact, out),
        }
        if labels.len() < row.classes() {
            for (label, p) in (0..).zip(out).filter(|(_, p)| p.of == 0) {
                *p = self.at(row, label, f64::INFINITY);
            }
        }
    }
}

/// P-values of labels one after another: far down a ranking many fall between the same two scores.
struct Between<'a> {
    scores: &'a SortedScores,
    places: &'a Places<'a>,
    /// Neighbours among the calibration scores, and the p-value of what is above the first and not above the second.
    around: (f64, f64),
    p: PValue,
}

impl<'a> Between<'a> {
    fn new(scores: &'a SortedScores, places: &'a Places<'a>) -> Self {
        Self { scores, places, around: (f64::INFINITY, f64::NEG_INFINITY), p: NOTHING }
    }

    /// The p-value of a finite score between these two, unless it depends on which.
    #[inline(always)]
    fn p_value(&mut self, least: f64, most: f64) -> Option<PValue> {
        if !(self.around.0 < least && least <= self.around.1) {
            let below = self.places.below(least);
            (self.around, self.p) = (self.places.around(below), self.scores.p_value_at(below));
        }
        (most <= self.around.1).then_some(self.p)
    }
}

/// Writes the p-values of labels whose scores are known but for a relative error, each to its place.
#[inline(always)]
fn fill(
    estimates: impl Iterator<Item = (u32, f64)>,
    off: f64,
    mut between: impl FnMut(u32, f64, f64) -> Option<PValue>,
    exact: impl Fn(u32) -> PValue,
    out: &mut [PValue],
) {
    for (label, estimate) in estimates {
        let p = between(label, estimate * (1.0 - off), estimate * (1.0 + off));
        // A calibration score lies between: which side of it this one is on takes the definition.
        out[label as usize] = p.unwrap_or_else(|| exact(label));
    }
}
