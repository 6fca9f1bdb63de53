//! `KnownScores`: how many labels score at most a threshold, from few scores.
//!
//! Down a row's ranking the entmax score is a function of how far a label is behind the best, its gap `x`. For
//! δ ≥ 1 it is the norm of something linear in `x`, so it is convex: between two known scores it lies below
//! their chord, and beyond them above the chord's extension. Both bounds close in on a threshold much faster
//! than bisection does, and most labels are decided without being scored. Where there are many thresholds, labels
//! between them are estimated. Those near a threshold are always scored.

use super::{sizes_between, slack};

/// A row's scores, best label first.
pub(super) trait ScoresDown {
    /// Of the label at a place of the ranking.
    fn score(&self, place: usize) -> f64;

    /// About as much for less, and how far off that may be; `None` where it costs as much.
    fn estimate(&self, place: usize) -> Option<(f64, f64)>;
}

/// What visits of a row have found out about its scores.
#[derive(Clone, Debug, Default)]
pub struct KnownScores {
    /// Some labels', in the order of the ranking.
    some: Vec<Known>,
    /// By place, between which two numbers the score lies; NaN where nobody has asked.
    estimates: Vec<(f32, f32)>,
    /// All that can be asked for, ascending, where labels are few.
    pub(super) all: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    place: usize,
    gap: f64,
    score: f64,
}

/// An extension is trusted this many chord lengths beyond its ends: rounding grows with the distance, and up
/// to here stays far below the slack.
const REACH: f64 = 1e5;

/// Where thresholds outnumber the labels between them this much, those labels are scored without further ado.
const THRESHOLDS_PER_LABEL: usize = 8;

impl KnownScores {
    /// How many labels score at most each of the ascending thresholds.
    pub(super) fn sizes_at(
        &mut self,
        thresholds: &[f64],
        gaps: &[f64],
        down: &dyn ScoresDown,
        out: &mut [u32],
    ) {
        let mut size_at = |place: usize| {
            let within = gaps.partition_point(|gap| *gap <= thresholds[place]);
            self.size_at(thresholds[place], &gaps[..within], down) as u32
        };
        let Some(last) = thresholds.len().checked_sub(1) else { return };
        (out[0], out[last]) = (size_at(0), size_at(last));
        self.sizes_inside(thresholds, gaps, down, out);
    }

    /// The same where the first and the last are known.
    fn sizes_inside(&mut self, thresholds: &[f64], gaps: &[f64], down: &dyn ScoresDown, out: &mut [u32]) {
        let ([least, inside @ .., most], [low, .., high]) = (&mut *out, thresholds) else { return };
        if least == most || inside.is_empty() {
            inside.fill(*least);
            return;
        }
        let between = *least as usize..*most as usize;
        if between.len() == 1 || between.len() * THRESHOLDS_PER_LABEL <= inside.len() {
            let mut scores: Vec<f64> =
                between.clone().map(|place| self.stand_in(place, thresholds, gaps, down)).collect();
            // As many labels as these score between the two, so if these do, there are no others.
            if scores.iter().all(|score| low < score && score <= high) {
                scores.sort_unstable_by(f64::total_cmp);
                return sizes_between(between.start, &scores, thresholds, out);
            }
        }
        let middle = out.len() / 2;
        let within = gaps.partition_point(|gap| *gap <= thresholds[middle]);
        out[middle] = self.size_at(thresholds[middle], &gaps[..within], down) as u32;
        self.sizes_inside(&thresholds[..=middle], gaps, down, &mut out[..=middle]);
        self.sizes_inside(&thresholds[middle..], gaps, down, &mut out[middle..]);
    }

    /// A number on the same side of every threshold as the score of the label at a place.
    fn stand_in(&mut self, place: usize, thresholds: &[f64], gaps: &[f64], down: &dyn ScoresDown) -> f64 {
        if let Some((low, high)) = self.estimate_at(place, down) {
            let next = thresholds.partition_point(|threshold| *threshold < low);
            if thresholds.get(next).is_none_or(|threshold| *threshold > high) {
                return high;
            }
        }
        self.score_at(place, gaps, down)
    }

    /// Between which two numbers a label's score lies, estimated at most once.
    fn estimate_at(&mut self, place: usize, down: &dyn ScoresDown) -> Option<(f64, f64)> {
        if let Some((low, high)) = self.estimates.get(place).filter(|(low, _)| !low.is_nan()) {
            return Some((f64::from(*low), f64::from(*high)));
        }
        let (score, error) = down.estimate(place)?;
        // Rounding them to single precision is a hundredth of the error, which has as much again to spare.
        let bounds = ((score - error) as f32, (score + error) as f32);
        if self.estimates.len() <= place {
            self.estimates.resize(place + 1, (f32::NAN, f32::NAN));
        }
        self.estimates[place] = bounds;
        Some((f64::from(bounds.0), f64::from(bounds.1)))
    }

    /// The score of the label at a place, found out at most once.
    fn score_at(&mut self, place: usize, gaps: &[f64], down: &dyn ScoresDown) -> f64 {
        let index = self.some.partition_point(|known| known.place < place);
        if let Some(known) = self.some.get(index).filter(|known| known.place == place) {
            return known.score;
        }
        let known = Known { place, gap: gaps[place], score: down.score(place) };
        self.some.insert(index, known);
        known.score
    }

    /// How many labels score at most `threshold`, out of those with the given gaps, best first.
    pub(super) fn size_at(&mut self, threshold: f64, gaps: &[f64], down: &dyn ScoresDown) -> usize {
        let slack = slack(threshold);
        loop {
            let below = self.some.partition_point(|known| known.score <= threshold - slack);
            if let Some(near) = self.some.get(below).filter(|known| known.score <= threshold + slack) {
                return count_around(near.place, threshold, slack, gaps.len(), down);
            }
            let (inside, open) = self.undecided(below, threshold, slack, gaps);
            if inside >= open {
                return inside;
            }
            let place = usize::midpoint(inside, open);
            let known = Known { place, gap: gaps[place], score: down.score(place) };
            let index = self.some.partition_point(|known| known.place < place);
            self.some.insert(index, known);
        }
    }

    /// Places before the first are in, places from the second on are out; `below` scores are known to be in.
    fn undecided(&self, below: usize, threshold: f64, slack: f64, gaps: &[f64]) -> (usize, usize) {
        let last_in = below.checked_sub(1).map(|index| self.some[index]);
        let first_out = self.some.get(below).copied();
        let start = last_in.map_or(0, |known| known.place + 1);
        let end = first_out.map_or(gaps.len(), |known| known.place).clamp(start, gaps.len());
        let between = &gaps[start..end];
        let mut inside = 0;
        if let (Some(a), Some(b)) = (last_in, first_out) {
            inside = between.partition_point(|gap| chord(a, b, *gap) <= threshold - slack);
        }
        let before_last = below.checked_sub(2).map(|index| self.some[index]);
        let after_first = self.some.get(below + 1).copied();
        let extensions = [before_last.zip(last_in), first_out.zip(after_first)];
        let out = |gap: f64| {
            extensions.iter().flatten().any(|(a, b)| {
                let beyond = (a.gap - gap).max(gap - b.gap);
                beyond <= REACH * (b.gap - a.gap) && chord(*a, *b, gap) > threshold + slack
            })
        };
        let open = inside + between[inside..].partition_point(|gap| !out(*gap));
        (start + inside, start + open)
    }
}

/// The line through two known scores. Labels that tie give no line, and nothing lies between them.
fn chord(a: Known, b: Known, gap: f64) -> f64 {
    a.score + (gap - a.gap) * ((b.score - a.score) / (b.gap - a.gap))
}

/// The size where some scores lie within rounding of the threshold: all of those are looked at.
fn count_around(near: usize, threshold: f64, slack: f64, labels: usize, down: &dyn ScoresDown) -> usize {
    let mut start = near;
    while start > 0 && down.score(start - 1) > threshold - slack {
        start -= 1;
    }
    let scores = (start..labels).map(|place| down.score(place));
    let around = scores.take_while(|score| *score <= threshold + slack);
    start + around.filter(|score| *score <= threshold).count()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "scores to search among need no fixed bits")]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Scores that count how often they are asked for, with estimates that are off by a share.
    struct Counted<'a> {
        scores: &'a [f64],
        calls: Cell<usize>,
        off: Option<f64>,
    }

    impl ScoresDown for Counted<'_> {
        fn score(&self, place: usize) -> f64 {
            self.calls.set(self.calls.get() + 1);
            self.scores[place]
        }

        fn estimate(&self, place: usize) -> Option<(f64, f64)> {
            let score = self.scores[place];
            self.off.map(|off| (score + score * off, score * 1.1e-5 + 1e-9))
        }
    }

    fn check(scores: &[f64], gaps: &[f64], thresholds: &[f64]) -> usize {
        let down = Counted { scores, calls: Cell::new(0), off: None };
        let plain = |threshold: &f64| scores.iter().filter(|score| *score <= threshold).count();
        let mut known = KnownScores::default();
        for threshold in thresholds {
            let within = gaps.partition_point(|gap| gap <= threshold);
            let found = known.size_at(*threshold, &gaps[..within], &down);
            assert_eq!(found, plain(threshold), "{threshold}");
        }
        let one_by_one = down.calls.get();
        let mut ascending = thresholds.to_vec();
        ascending.sort_unstable_by(f64::total_cmp);
        let wanted: Vec<u32> = ascending.iter().map(|threshold| plain(threshold) as u32).collect();
        for off in [None, Some(-1e-5), Some(0.0), Some(1e-5)] {
            let down = Counted { scores, calls: Cell::new(0), off };
            let (mut known, mut together) = (KnownScores::default(), vec![0; ascending.len()]);
            // Twice: the second time by what the first found out.
            for _ in 0..2 {
                known.sizes_at(&ascending, gaps, &down, &mut together);
                assert_eq!(together, wanted, "{off:?}");
            }
        }
        one_by_one
    }

    /// `‖(x − x_k)₊‖_δ` for each of the gaps themselves.
    fn norms(gaps: &[f64], delta: f64) -> Vec<f64> {
        let norm = |gap: f64| {
            let sum: f64 = gaps.iter().map(|other| (gap - other).max(0.0).powf(delta)).sum();
            sum.powf(1.0 / delta).max(gap)
        };
        gaps.iter().map(|gap| norm(*gap)).collect()
    }

    #[test]
    fn counts_as_plain_counting_does_and_scores_few_labels() {
        let gaps: Vec<f64> = (0..400).map(|i| (f64::from(i) / 40.0).powf(0.7)).collect();
        for delta in [1.0, 1.25, 2.5, 10.0] {
            let scores = norms(&gaps, delta);
            let mut thresholds: Vec<f64> =
                (0..300).map(|i| scores[(i * 37) % 400] * (0.97 + f64::from(i as u32 % 7) / 100.0)).collect();
            thresholds.extend(&scores[..100]);
            let calls = check(&scores, &gaps, &thresholds);
            assert!(calls < 1200, "{calls} scores for 400 thresholds");
        }
    }

    #[test]
    fn counts_ties_and_scores_that_rounding_put_out_of_order() {
        let scores = [0.0, 0.0, 1.0, 2.0 + 1e-12, 2.0, 2.0 + 2e-12, 2.0, 3.0];
        let gaps = [0.0, 0.0, 0.5, 0.75, 0.75, 0.75, 0.75, 1.0];
        check(&scores, &gaps, &[0.0, 2.0, 1.5, 2.0 + 1e-12, 0.5, 2.5, 3.0, 4.0, 1.0]);
    }
}
