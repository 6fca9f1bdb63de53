//! Outcomes where all rows for calibration choose the score and calibrate it.

use conformax::{Logit, Predictor, ScoreSpec, SizeScratch, Tally};
use rayon::prelude::*;

use super::{Bench, CHUNK, Outcome};
use crate::error::Result;
use crate::evaluation::asked::Asked;
use crate::selection::{Contest, OwnSizes, Pairs};
use crate::splits::Split;

/// Outcomes by split and level where no rows are set aside, and by level what predicts so on the first split.
type Selected = (Vec<Vec<Outcome>>, Vec<Predictor<ScoreSpec>>);

impl<T: Logit> Bench<'_, T> {
    /// Lets all rows for calibration choose and calibrate.
    pub(super) fn select(&self, candidates: &[usize]) -> Result<Selected> {
        let levels = self.plan.alphas.len();
        let splits = &self.plan.splits[..self.plan.selection_splits];
        if splits.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut pairs = self.pairs(candidates, splits)?;
        let contests = (0..splits.len() * levels).map(|slot| {
            let (split, level) = (slot / levels, slot % levels);
            Contest::new(candidates.iter().zip(&mut pairs).map(|(place, pairs)| {
                let thresholds = &self.scored[*place].thresholds[split];
                let around = (thresholds.before[level], thresholds.calibration[level]);
                (*place, around, std::mem::take(&mut pairs[slot]))
            }))
        });
        let contests: Vec<Contest> = contests.collect::<Result<_>>()?;
        let rows = (splits[0].calibration.len(), self.logits.classes());
        let first = contests.iter().zip(self.plan.alphas);
        let first =
            first.map(|(contest, alpha)| contest.predictor(rows, *alpha, |place| self.scored[place].spec));
        let first = first.collect::<Option<_>>().unwrap_or_default();
        let decided = self.decide(candidates, splits, &contests)?;
        let judged = splits.iter().enumerate().map(|(number, split)| -> Result<Vec<Outcome>> {
            let mut tallies = vec![Tally::new(self.logits.classes())?; levels];
            for row in split.test.iter().map(|row| *row as usize) {
                for (level, tally) in tallies.iter_mut().enumerate() {
                    let (size, covered) = decided[(row * splits.len() + number) * levels + level];
                    tally.add_outcome(size as usize, covered, self.labels[row]);
                }
            }
            let outcomes = tallies.iter().zip(self.plan.alphas).enumerate();
            outcomes
                .map(|(level, (tally, alpha))| -> Result<Outcome> {
                    let leader = contests[number * levels + level].leader();
                    let metrics = tally.metrics(*alpha, self.plan.strata)?;
                    Ok(Outcome { score: self.scored[leader.score].spec, threshold: leader.high, metrics })
                })
                .collect()
        });
        Ok((judged.collect::<Result<_>>()?, first))
    }

    /// By candidate, pairs of calibration rows and labels around its threshold, by split and level.
    fn pairs(&self, candidates: &[usize], splits: &[Split]) -> Result<Vec<Vec<Pairs>>> {
        let levels = self.plan.alphas.len();
        let width = splits.len() * levels;
        let asked = candidates.iter().map(|place| self.asked_around(*place, splits));
        let asked: Vec<Asked> = asked.collect();
        self.fold_rows(
            candidates,
            || vec![Pairs::default(); width],
            |pairs, (candidate, row), sizes, table| {
                let around = asked[candidate].of_row(sizes, table);
                let thresholds = &self.scored[candidates[candidate]].thresholds;
                for (number, _) in splits.iter().enumerate().filter(|(_, split)| !split.tests(row)) {
                    let start = number * levels;
                    let counts = around.from(start).zip(around.from(width + start));
                    let calibrated = pairs[start..].iter_mut().zip(&thresholds[number].calibration);
                    for ((pairs, high), (inner, outer)) in calibrated.zip(counts) {
                        // Full sets need no count.
                        if *high < f64::INFINITY {
                            pairs.at_low += u64::from(inner);
                            pairs.at_high += u64::from(outer);
                            pairs.between.extend((inner..outer).map(|label| sizes.score_at(label as usize)));
                        }
                    }
                }
            },
            |mut pairs, other| {
                pairs.iter_mut().zip(other).for_each(|(pairs, other)| pairs.join(other));
                pairs
            },
        )
    }

    /// By split and level, the scores of the ranks before the thresholds; then the thresholds.
    fn asked_around(&self, place: usize, splits: &[Split]) -> Asked {
        let thresholds = self.scored[place].thresholds[..splits.len()].iter();
        let before = thresholds.clone().flat_map(|split| &split.before);
        Asked::new(before.chain(thresholds.flat_map(|split| &split.calibration)).copied())
    }

    /// The size of each test row's set and whether it holds the true label, by row, split and level.
    fn decide(
        &self,
        candidates: &[usize],
        splits: &[Split],
        contests: &[Contest],
    ) -> Result<Vec<(u32, bool)>> {
        let levels = self.plan.alphas.len();
        let (classes, width) = (self.logits.classes(), contests.len());
        let alive: Vec<Vec<usize>> = contests.iter().map(|contest| contest.alive(classes)).collect();
        let contested = |candidate: &usize| {
            let wanted = |slot: &usize| !contests[*slot].is_full() && alive[*slot].contains(candidate);
            (0..width).filter(wanted).collect()
        };
        // By candidate, where it can win.
        let wanted: Vec<Vec<usize>> = (0..candidates.len()).map(|candidate| contested(&candidate)).collect();
        let asked = candidates.iter().map(|place| self.asked_around(*place, splits));
        let asked: Vec<Asked> = asked.collect();
        let mut decided = vec![(0, false); self.logits.len() * width];
        let rows = decided.par_chunks_mut(CHUNK * width).enumerate();
        rows.try_for_each(|(chunk, decided)| -> Result<()> {
            let (mut scratch, mut table) = (SizeScratch::default(), Vec::new());
            let mut own = vec![vec![OwnSizes::default(); candidates.len()]; width];
            for (row, decided) in (chunk * CHUNK..).zip(decided.chunks_exact_mut(width)) {
                let tests = |slot: usize| splits[slot / levels].tests(row);
                for (candidate, place) in candidates.iter().enumerate() {
                    if !wanted[candidate].iter().any(|slot| tests(*slot)) {
                        continue;
                    }
                    self.visit(&self.scored[*place], row, &mut scratch, |sizes| {
                        let around = asked[candidate].of_row(sizes, &mut table);
                        for slot in wanted[candidate].iter().copied().filter(|slot| tests(*slot)) {
                            let own = &mut own[slot][candidate];
                            (own.at_low, own.at_high) = (around.one(slot), around.one(width + slot));
                            own.between.clear();
                            own.between.extend((own.at_low..own.at_high).map(|label| sizes.score_at(label)));
                        }
                    })?;
                }
                for (slot, out) in decided.iter_mut().enumerate() {
                    let truth = |place: usize| self.scored[place].truth[row];
                    let (size, covered) = match contests[slot].is_full() {
                        true => (classes, true),
                        false if tests(slot) => contests[slot].decide(&alive[slot], &own[slot], truth),
                        false => (0, false),
                    };
                    *out = (size as u32, covered);
                }
            }
            Ok(())
        })?;
        Ok(decided)
    }
}
