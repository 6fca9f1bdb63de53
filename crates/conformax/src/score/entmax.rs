//! The γ-entmax score: `s(z, y) = ‖(z − z_y)₊‖_δ`, `δ = 1/(γ − 1)`.
//!
//! Calibrating it picks a temperature: `{y : s(z, y) ≤ q}` is the support of `γ-entmax(βz)` at `β = δ/q`, plus
//! labels that sit on the boundary. No ranking is needed and ties need no rule.

mod by_label;

use super::paths::{LabelScratch, Paths, Seal};
use super::ranking::Ranking;
use super::softmax::softmax_over;
use super::{Score, sort_best_first};
use crate::activation::normalize_gaps;
use crate::kernel::{
    Bounds, DELTAS_IN_SINGLE, Growth, Limit, LimitsByLabel, NARROW, Order, Steps, THRESHOLDS_IN_SINGLE,
    all_norms, boundary, clearly_within, error_in_single, gap_norm, keep_lanes, labels_above, math,
    near_bits, shortlist, shortlist_at_most,
};
use crate::spec::{Listed, Parameters};
use crate::thresholds::ByLabel;
use crate::{Gamma, Logit, Result, Row, ScoreSpec};

/// γ = 1 is the log-margin `max z − z_y`, 1.5 the Euclidean norm of the gaps, 2 (sparsemax) their sum.
///
/// ```
/// use conformax::{EntmaxScore, Gamma, Row, Score};
/// let row = Row::new(&[4.0_f32, 3.0, 0.0])?;
/// assert_eq!(EntmaxScore { gamma: Gamma::SOFTMAX }.score(row, 2), 4.0);
/// assert_eq!(EntmaxScore { gamma: Gamma::ENTMAX15 }.score(row, 2), 5.0);
/// assert_eq!(EntmaxScore { gamma: Gamma::SPARSEMAX }.score(row, 2), 7.0);
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EntmaxScore {
    /// Index of the family.
    pub gamma: Gamma,
}

impl Score for EntmaxScore {
    #[inline]
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        let logit = row.logit(label);
        if logit == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        gap_norm(row.logits(), row.max(), logit, Order::from(self.gamma))
    }

    fn known(&self, _: Seal) -> Option<ScoreSpec> {
        Some(ScoreSpec::Entmax(*self))
    }
}

impl Listed for EntmaxScore {
    const NAMES: &'static [&'static str] = &["entmax", "log_margin", "sparsemax"];
    const ALIASES: &'static [&'static str] = &["entmax15", "logmargin"];

    fn named(name: &str, parameters: &Parameters) -> Result<Self> {
        Ok(Self {
            gamma: match name {
                "sparsemax" => Gamma::SPARSEMAX,
                "log_margin" | "logmargin" => Gamma::SOFTMAX,
                "entmax15" => Gamma::ENTMAX15,
                _ => parameters.gamma.unwrap_or_default(),
            },
        })
    }

    fn name(&self) -> &'static str {
        match self.gamma {
            Gamma::SOFTMAX => "log_margin",
            Gamma::SPARSEMAX => "sparsemax",
            _ => "entmax",
        }
    }

    fn parameters(&self) -> Parameters {
        Parameters { gamma: Some(self.gamma), ..Parameters::default() }
    }

    fn shown(&self) -> String {
        // The other names say it.
        if self.name() == "entmax" { format!("gamma={}", self.gamma) } else { String::new() }
    }
}

impl EntmaxScore {
    /// The inverse temperature `β = δ/threshold` at which the activation's support is the set; `None` at γ = 1,
    /// where no finite temperature gives zeros.
    pub fn temperature(self, threshold: f64) -> Option<f64> {
        (self.gamma.delta() < f64::INFINITY).then(|| self.gamma.delta() / threshold)
    }
}

impl Paths for EntmaxScore {
    fn score_all<T: Logit>(&self, row: Row<'_, T>, out: &mut [f64]) {
        let order = Order::from(self.gamma);
        if row.classes() < WORTH_RANKING || order == Order::Max {
            for (label, out) in (0..).zip(out) {
                *out = self.score(row, label);
            }
            return;
        }
        let mut ranked: Vec<u32> = (0..row.classes() as u32).collect();
        sort_best_first(row, &mut ranked);
        let possible = ranked.partition_point(|label| row.logit(*label) > f64::NEG_INFINITY);
        out.fill(f64::INFINITY);
        all_norms(row.logits(), &ranked[..possible], row.max(), order, out);
    }

    #[inline]
    fn set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        // No score is negative, and none is within a threshold that is no number.
        if !(threshold >= 0.0) {
            return;
        }
        // s ≥ max z − z_y for every γ, so nobody further down can be in. The top label's score is 0 and the second's is
        // its gap, so of one or two labels within reach every one is in.
        if row.classes() <= NARROW {
            let near = near_bits(row.logits(), row.max(), threshold);
            let others = near & (near - 1);
            if others & others.wrapping_sub(1) == 0 {
                push_pair(row, near, others, out);
            } else {
                self.keep(Ranking::of_bits(row, out, near), threshold, true);
            }
            return;
        }
        self.wide_set_into(row, threshold, out);
    }

    #[inline]
    fn bounds(&self, threshold: f64) -> Option<Bounds> {
        bounds(self.gamma, threshold)
    }

    fn bounds_by_label(&self, thresholds: &[f64]) -> Option<Bounds<LimitsByLabel>> {
        bounds_by_label(self.gamma, thresholds)
    }

    fn set_by_label_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        by_label: ByLabel<'_>,
        out: &mut Vec<u32>,
        scratch: &mut LabelScratch<T>,
    ) {
        by_label::set_into(self, row, by_label, out, scratch);
    }

    fn scored_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        scores: &mut Vec<f64>,
    ) {
        let start = labels.len();
        self.set_into(row, threshold, labels);
        let worst = labels[start..].iter().rev().map(|label| row.logit(*label));
        let Some(worst) = worst.into_iter().find(|logit| *logit > f64::NEG_INFINITY) else { return };
        // Labels that are not ahead add nothing, so the others alone give the same bits, in less time.
        let mut ahead = Vec::new();
        shortlist(row.logits(), row.max(), row.max() - worst, &mut ahead);
        let ahead = keep_lanes(row.logits(), &ahead);
        let order = Order::from(self.gamma);
        let mut last = (f64::INFINITY, 0.0);
        for label in &labels[start..] {
            let logit = row.logit(*label);
            if logit == f64::NEG_INFINITY {
                last = (logit, f64::INFINITY);
            } else if logit != last.0 {
                last = (logit, gap_norm(&ahead, row.max(), logit, order));
            }
            scores.push(last.1);
        }
    }

    /// Scores rise down the ranking, so the last label's speaks for all, and the set holds every label ahead of it.
    fn surely_within<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64) -> bool {
        let Some(last) = set.last().map(|label| row.logit(*label)) else { return true };
        let largest = row.max() - last;
        if largest == 0.0 {
            return threshold >= 0.0;
        }
        if !ESTIMATES_ARE_SAFE.contains(&threshold) || !(largest <= threshold) {
            return false;
        }
        let limit = threshold * (1.0 - slack(row.classes()));
        let gaps = set.iter().map(|label| row.logit(*label) - last);
        let (sum, squares) = gaps.fold((0.0, 0.0), |(sum, squares), gap| (sum + gap, squares + gap * gap));
        match Order::from(self.gamma) {
            Order::Max => largest <= limit,
            Order::One => sum <= limit,
            Order::Two => squares <= limit * limit,
            // Norms of one vector fall as the order rises.
            Order::Other { delta: 1.0.., .. } if sum <= limit => true,
            Order::Other { delta: 2.0.., .. } if squares <= limit * limit => true,
            Order::Other { delta, inverse } => {
                let ratios = || set.iter().map(|label| (row.logit(*label) - last) / largest);
                if delta >= 1.0 && largest * norm_at_most(ratios(), delta) <= limit {
                    return true;
                }
                let powers: f64 = ratios().map(|ratio| math::pow_unit(ratio, delta)).sum();
                largest * math::pow(powers, inverse) <= limit
            }
        }
    }

    fn estimated_set_into<T: Logit>(
        &self,
        row: Row<'_, T>,
        threshold: f64,
        labels: &mut Vec<u32>,
        estimates: &mut Vec<f64>,
    ) -> f64 {
        let norm: fn(&GapSums) -> f64 = match Order::from(self.gamma) {
            Order::One if ESTIMATES_ARE_SAFE.contains(&threshold) => |sums| sums.gaps,
            Order::Two if ESTIMATES_ARE_SAFE.contains(&threshold) => |sums| sums.squares.sqrt(),
            _ => {
                self.scored_set_into(row, threshold, labels, estimates);
                return 0.0;
            }
        };
        let (start, first, slack) = (labels.len(), estimates.len(), slack(row.classes()));
        rank_within(row, threshold, labels);
        estimates.reserve(labels.len() - start);
        let beyond = threshold * (1.0 + slack);
        let mut sums = GapSums::new(row.max());
        for label in &labels[start..] {
            sums.step(row.logit(*label));
            let estimate = norm(&sums);
            // A −∞ logit gives +∞, or NaN where all others are on top.
            if !(estimate <= beyond) {
                break;
            }
            // Squares of smaller gaps would lose digits.
            let safe = ESTIMATES_ARE_SAFE.contains(&estimate);
            estimates.push(if safe { estimate } else { self.score(row, *label) });
        }
        labels.truncate(start + estimates.len() - first);
        slack
    }

    fn look_by_steps<T: Logit>(&self, row: Row<'_, T>, steps: &mut Steps) -> bool {
        steps.look(row.logits(), row.max(), Order::from(self.gamma), slack(row.classes()))
    }

    /// The activation itself at the calibrated temperature: `p_j = ((z_j − t)₊/q)^δ`, `t` such that they sum to 1.
    fn probabilities_into<T: Logit>(&self, row: Row<'_, T>, set: &[u32], threshold: f64, out: &mut Vec<f64>) {
        let start = out.len();
        if self.gamma == Gamma::SOFTMAX {
            softmax_over(row, set, out);
        } else if threshold > 0.0 && threshold < f64::INFINITY {
            out.extend(set.iter().map(|label| (row.max() - row.logit(*label)) / threshold));
            normalize_gaps(&mut out[start..], self.gamma);
        } else {
            // β = ∞ spreads the mass over the top label and its ties, which are the set; β = 0 over all that
            // is possible.
            out.extend(set.iter().map(|label| f64::from(row.logit(*label) > f64::NEG_INFINITY)));
            let count: f64 = out[start..].iter().sum();
            out[start..].iter_mut().for_each(|p| *p /= count);
        }
    }
}

/// Appends the labels within a distance of the maximum, best first, and others behind them where most are within.
fn rank_within<T: Logit>(row: Row<'_, T>, distance: f64, out: &mut Vec<u32>) {
    let (start, most) = (out.len(), row.classes() / 4);
    if !shortlist_at_most(row.logits(), row.max(), f64::NEG_INFINITY, distance, most, out) {
        out.truncate(start);
        out.extend(0..row.classes() as u32);
    }
    sort_best_first(row, &mut out[start..]);
}

/// How far, relatively, an estimate of a score may be from the score without deciding anything: far above the
/// rounding of either, up to 10⁶ classes.
const SLACK: f64 = 1e-8;

/// The same for any number of classes. A sum of `K` terms is off by `K` roundings at most, which equal terms come near
/// to, and the norm by as many times 1/δ, which is 15 at most.
fn slack(classes: usize) -> f64 {
    SLACK.max(30.0 * f64::EPSILON * classes as f64)
}

/// No norm of order δ ≥ 1 of ratios up to 1, of which one is 1, exceeds this: a few multiplications, and close where
/// one of them outweighs the others. For `r ≤ 1` and `f ≤ 1`, `r^f ≤ 1 − f(1 − r)`; and `(1 + p)^(1/δ) ≤ 1 + p/δ`.
fn norm_at_most(ratios: impl Iterator<Item = f64>, delta: f64) -> f64 {
    const MOST_FACTORS: f64 = 8.0;
    let whole = delta.floor().min(MOST_FACTORS);
    let rest = (delta - whole).min(1.0);
    let power = |ratio: f64| (0..whole as u32).fold(1.0 - rest * (1.0 - ratio), |power, _| power * ratio);
    1.0 + (ratios.map(power).sum::<f64>() - 1.0) / delta
}

/// Labels within reach of a threshold that are ranked before any is decided; of more, the members are found first.
const FEW: usize = 40;

/// Rows with fewer labels than this have all of them scored one after another.
const WORTH_RANKING: usize = 48;

/// Labels left to the definition, each at the price of a pass over the row.
const MOST_OPEN: usize = 16;

/// Thresholds whose squares are safe to compare; outside, every label is scored.
const ESTIMATES_ARE_SAFE: std::ops::Range<f64> = 1e-140..1e140;

/// The bounds of [`Paths::bounds`].
fn bounds(gamma: Gamma, threshold: f64) -> Option<Bounds> {
    let distance = threshold;
    if threshold == 0.0 {
        // The top label and its ties, whatever the norm.
        let limits = Limit { distance, inside: 0.0, outside: 0.0 };
        return Some(Bounds { growth: Growth::Max, limits });
    }
    if !ESTIMATES_ARE_SAFE.contains(&threshold) {
        return None;
    }
    let (growth, limit, error) = match Order::from(gamma) {
        Order::Max => (Growth::Max, 0.0, 0.0),
        Order::One => (Growth::Sum, threshold, SLACK),
        Order::Two => (Growth::Squares, threshold * threshold, SLACK),
        Order::Other { delta, .. }
            if DELTAS_IN_SINGLE.contains(&delta) && THRESHOLDS_IN_SINGLE.contains(&threshold) =>
        {
            let growth = if delta == 0.5 { Growth::Roots } else { Growth::Powers(delta as f32) };
            (growth, 1.0, error_in_single(delta))
        }
        Order::Other { .. } => (Growth::Unknown, 0.0, 0.0),
    };
    let limits = Limit { distance, inside: limit * (1.0 - error), outside: limit * (1.0 + error) };
    Some(Bounds { growth, limits })
}

/// The bounds of [`Paths::bounds_by_label`]. Growths are those at the largest threshold.
fn bounds_by_label(gamma: Gamma, thresholds: &[f64]) -> Option<Bounds<LimitsByLabel>> {
    let largest = thresholds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let Bounds { growth, limits: widest } = bounds(gamma, largest)?;
    let (delta, in_single) = (gamma.delta(), matches!(growth, Growth::Roots | Growth::Powers(_)));
    // Half of the error is for terms of small sums, whose powers are of larger exponents.
    let error = if in_single { 2.0 * error_in_single(delta) } else { SLACK };
    let limit = |threshold: f64| {
        let (limit, is_safe) = match growth {
            Growth::Unknown => return None,
            Growth::Max => (0.0, true),
            Growth::Sum => (threshold, ESTIMATES_ARE_SAFE.contains(&threshold)),
            Growth::Squares => (threshold * threshold, ESTIMATES_ARE_SAFE.contains(&threshold)),
            Growth::Roots | Growth::Powers(_) => {
                let limit = math::pow_unit(threshold / largest, delta);
                (limit, limit > LEAST_IN_SINGLE && THRESHOLDS_IN_SINGLE.contains(&threshold))
            }
        };
        Some(match threshold {
            0.0 => Limit { distance: 0.0, inside: 0.0, outside: 0.0 },
            0.0.. if is_safe => {
                Limit { distance: threshold, inside: limit * (1.0 - error), outside: limit * (1.0 + error) }
            }
            // Undecided where a label is that near.
            0.0.. => Limit { distance: threshold, inside: -1.0, outside: f64::INFINITY },
            // No score is below 0.
            _ => Limit { distance: -1.0, inside: -1.0, outside: -1.0 },
        })
    };
    let each: Vec<Limit> = thresholds.iter().map(|threshold| limit(*threshold)).collect::<Option<_>>()?;
    Some(Bounds { growth, limits: LimitsByLabel::new(each.into_iter(), widest) })
}

/// Sums of ratios in single precision that are told from each other.
const LEAST_IN_SINGLE: f64 = 1e-9;

/// Appends the label of the lowest bit of `near` and that of `others`, if it has one, best first.
#[inline]
fn push_pair<T: Logit>(row: Row<'_, T>, near: u32, others: u32, out: &mut Vec<u32>) {
    let first = near.trailing_zeros();
    let second = if others == 0 { first } else { others.trailing_zeros() };
    let swap = row.logit(second) > row.logit(first);
    out.extend_from_slice(&if swap { [second, first] } else { [first, second] });
    out.truncate(out.len() - usize::from(others == 0));
}

/// Sums of the gaps and of their squares over the labels ahead, updated down the ranking by adding
/// non-negative terms only.
struct GapSums {
    gaps: f64,
    squares: f64,
    ahead: f64,
    logit: f64,
}

impl GapSums {
    #[inline]
    fn new(max: f64) -> Self {
        Self { gaps: 0.0, squares: 0.0, ahead: 0.0, logit: max }
    }

    /// How far below the maximum a label may lie whose gaps to the labels so far add up to `sum` at most.
    #[inline]
    fn reach(&self, max: f64, sum: f64) -> f64 {
        (max - self.logit) + (sum - self.gaps) / self.ahead
    }

    /// Bounds of the norm of order δ: norms of one vector fall as the order rises, from the sum of the gaps at 1
    /// over the Euclidean norm at 2 to the largest gap. A single gap is every norm.
    #[inline]
    fn bounds(&self, delta: f64) -> (f64, f64) {
        let (sum, euclidean) = (self.gaps, self.squares.sqrt());
        match delta {
            _ if self.ahead <= 2.0 => (sum, sum),
            ..1.0 => (sum, f64::INFINITY),
            ..2.0 => (euclidean, sum),
            _ => (0.0, euclidean),
        }
    }

    #[inline]
    fn step(&mut self, logit: f64) {
        let gap = self.logit - logit;
        self.squares += 2.0 * gap * self.gaps + self.ahead * gap * gap;
        self.gaps += self.ahead * gap;
        self.ahead += 1.0;
        self.logit = logit;
    }
}

impl EntmaxScore {
    /// Kept out of the way of narrow rows, which take less time than this function's prologue.
    #[inline(never)]
    fn wide_set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        if self.gamma == Gamma::SOFTMAX {
            // The score is the gap.
            let start = out.len();
            shortlist(row.logits(), row.max(), threshold, out);
            return sort_best_first(row, &mut out[start..]);
        }
        // For γ > 2 few labels come near that, as several ahead add up to more than any gap: `search` starts with the
        // nearest and learns from them how far to look.
        let nearest = self.gamma.delta() < 1.0 && ESTIMATES_ARE_SAFE.contains(&threshold);
        let reach = if nearest { 0.4 * threshold } else { threshold };
        let Some(ranking) = Ranking::within_at_most(row, out, reach, FEW) else {
            return self.large_set_into(row, threshold, out);
        };
        match nearest {
            true => self.keep(ranking, threshold, false),
            false if ranking.len() <= 2 => ranking.finish_all(),
            false => self.keep(ranking, threshold, true),
        }
    }

    /// Many labels are within reach: the place where scores pass the threshold comes first, and only members are
    /// sorted.
    fn large_set_into<T: Logit>(&self, row: Row<'_, T>, threshold: f64, out: &mut Vec<u32>) {
        let start = out.len();
        let mut open = usize::MAX;
        if let Some(ends) = boundary(row.logits(), row.max(), threshold, Order::from(self.gamma)) {
            let inside = labels_above(row.logits(), ends, out);
            open = out.len() - start - inside;
            if open > 0 && open <= MOST_OPEN {
                let mut kept = start;
                for place in start..out.len() {
                    let label = out[place];
                    let logit = row.logits()[label as usize];
                    out[kept] = label;
                    kept += usize::from(logit.widen() >= ends.inside || self.within(row, label, threshold));
                }
                out.truncate(kept);
            }
        }
        if open <= MOST_OPEN {
            sort_best_first(row, &mut out[start..]);
        } else {
            // Estimates in double precision leave fewer open.
            out.truncate(start);
            self.keep(Ranking::within(row, out, threshold), threshold, true);
        }
    }

    /// Whether a label is in that is close to the threshold: a look at its own sum in single precision settles most,
    /// and costs a fifth of the definition.
    fn within<T: Logit>(&self, row: Row<'_, T>, label: u32, threshold: f64) -> bool {
        clearly_within(row.logits(), row.logits()[label as usize], threshold, Order::from(self.gamma))
            .unwrap_or_else(|| self.score(row, label) <= threshold)
    }

    /// Keeps the labels that are in; `all` says that the ranking holds every label within reach.
    #[inline(never)]
    fn keep<T: Logit>(&self, ranking: Ranking<'_, '_, T>, threshold: f64, all: bool) {
        match Order::from(self.gamma) {
            Order::Max => ranking.finish_all(),
            _ if threshold == f64::INFINITY => ranking.finish_all(),
            _ if threshold > 0.0 && !ESTIMATES_ARE_SAFE.contains(&threshold) => {
                self.keep_by_score(ranking, threshold, 0, usize::MAX);
            }
            Order::One => self.walk(ranking, threshold, |sums| sums.gaps, threshold),
            Order::Two => self.walk(ranking, threshold, |sums| sums.squares, threshold * threshold),
            Order::Other { delta, inverse } => self.search(ranking, threshold, all, (delta, inverse)),
        }
    }

    /// Keeps the labels that are in: `estimate` is compared with `limit`, and the score itself decides wherever
    /// they are close.
    fn walk<T: Logit>(
        &self,
        mut ranking: Ranking<'_, '_, T>,
        threshold: f64,
        estimate: impl Fn(&GapSums) -> f64,
        limit: f64,
    ) {
        let row = ranking.row();
        let slack = slack(row.classes());
        let mut sums = GapSums::new(row.max());
        let (mut kept, mut place) = (0, 0);
        while let Some(label) = ranking.get(place) {
            sums.step(row.logit(label));
            let estimate = estimate(&sums);
            if estimate > limit * (1.0 + slack) {
                break;
            }
            if estimate <= limit * (1.0 - slack) || self.score(row, label) <= threshold {
                ranking.keep(&mut kept, label);
            }
            place += 1;
        }
        ranking.finish(kept);
    }

    /// As `walk` where no recurrence gives the next estimate from the last: norms that have one enclose the
    /// boundary, and estimates bisect what they leave open.
    fn search<T: Logit>(
        &self,
        mut ranking: Ranking<'_, '_, T>,
        threshold: f64,
        mut all: bool,
        (delta, inverse): (f64, f64),
    ) {
        let row = ranking.row();
        let slack = slack(row.classes());
        let (below, above) = (threshold * (1.0 - slack), threshold * (1.0 + slack));
        let mut sums = GapSums::new(row.max());
        let (mut inside, mut outside) = (0, 0);
        loop {
            let Some(label) = ranking.get(outside) else {
                if all {
                    break;
                }
                ranking.reach(sums.reach(row.max(), above).min(threshold));
                all = true;
                continue;
            };
            sums.step(row.logit(label));
            let (least, most) = sums.bounds(delta);
            if least > above {
                break;
            }
            outside += 1;
            // Scores rise down the ranking, so all before this one are in too.
            inside = if most <= below { outside } else { inside };
        }
        let estimate = |ranking: &Ranking<'_, '_, T>, place: usize| {
            let ranked = ranking.first(place + 1);
            let logit = row.logit(ranked[place]);
            let largest = row.max() - logit;
            if largest == 0.0 {
                return 0.0;
            }
            let ratio = |label: &u32| (row.logit(*label) - logit) / largest;
            let sum: f64 = ranked[..place].iter().map(|label| math::pow_unit(ratio(label), delta)).sum();
            largest * math::pow(sum, inverse)
        };
        let mut open = outside;
        while inside < open {
            let middle = usize::midpoint(inside, open);
            if estimate(&ranking, middle) <= below { inside = middle + 1 } else { open = middle }
        }
        while open < outside && estimate(&ranking, open) <= above {
            open += 1;
        }
        self.keep_by_score(ranking, threshold, inside, open);
    }

    /// Keeps the first `inside` labels and, of those up to `open`, the ones whose score says so.
    fn keep_by_score<T: Logit>(
        &self,
        mut ranking: Ranking<'_, '_, T>,
        threshold: f64,
        inside: usize,
        open: usize,
    ) {
        let row = ranking.row();
        let mut kept = inside;
        let mut place = inside;
        while let Some(label) = ranking.get(place).filter(|_| place < open) {
            if self.score(row, label) <= threshold {
                ranking.keep(&mut kept, label);
            }
            place += 1;
        }
        ranking.finish(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_norm_exceeds_its_bound_and_one_label_ahead_meets_it() {
        for gamma in [1.016, 1.1, 1.2, 1.3, 1.4, 1.45, 1.6, 1.7, 1.9, 2.0] {
            let (delta, inverse) =
                (Gamma::new(gamma).unwrap().delta(), Gamma::new(gamma).unwrap().inverse_delta());
            assert_eq!(norm_at_most([1.0, 0.0].into_iter(), delta), 1.0);
            for ratio in [1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1.0] {
                for others in 1..40 {
                    let ratios =
                        || (0..others).map(move |i| ratio * (1.0 - 0.01 * f64::from(i))).chain([1.0]);
                    let powers: f64 = ratios().map(|ratio| math::pow_unit(ratio, delta)).sum();
                    let (norm, most) = (math::pow(powers, inverse), norm_at_most(ratios(), delta));
                    assert!(norm <= most * (1.0 + 1e-14), "{gamma} {ratio} {others}: {norm} {most}");
                }
            }
        }
    }

    /// Millions of equal terms round the same way every time, so a sum drifts as far as it can: by less than the slack.
    #[test]
    fn sums_of_millions_of_equal_terms_stay_within_the_slack() {
        let score = EntmaxScore { gamma: Gamma::new(16.0).unwrap() };
        for classes in [1_000_003_usize, 3_000_017] {
            let mut logits = vec![1.0_f32; classes];
            logits[classes / 3] = 0.3;
            let row = Row::new(&logits).unwrap();
            let found = score.score(row, (classes / 3) as u32);
            let gap = 1.0 - f64::from(0.3_f32);
            // Exact up to the rounding of a few operations: K − 1 gaps are equal.
            let exact = gap * math::pow((classes - 1) as f64, 15.0);
            assert!((found / exact - 1.0).abs() < slack(classes) / 4.0, "{classes}: {found} {exact}");
            for (threshold, size) in [(found.next_down(), classes - 1), (found, classes)] {
                let mut set = Vec::new();
                score.set_into(row, threshold, &mut set);
                assert_eq!(set.len(), size, "{classes}");
            }
        }
    }

    /// What is said to be within is within, for every label, whatever its logits and however many; and where the
    /// threshold is well above the scores it is said, so that the shortcut is one.
    #[test]
    fn surely_within_is_within() {
        let draw = |i: usize| ((i * 7919) % 1013) as f64;
        let mut masked: Vec<f64> = (0..100).map(|i| draw(i) / 64.0).collect();
        masked[40..60].fill(f64::NEG_INFINITY);
        let rows: [Vec<f64>; 7] = [
            (0..20).map(|i| draw(i) / 50.0).collect(),
            (0..200).map(|i| draw(i) / 50.0 - 9.0).collect(),
            (0..100).map(|i| (draw(i) / 100.0).floor()).collect(),
            (0..100).map(|i| draw(i) * 1e-30).collect(),
            (0..100).map(|i| draw(i) * 1e150).collect(),
            vec![0.25; 50],
            masked,
        ];
        let mut said = 0;
        let gammas = [1.0, 1.05, 1.2, 1.5, 1.8, 2.0, 3.0, 16.0];
        for (logits, gamma) in rows.iter().flat_map(|row| gammas.map(|gamma| (row, gamma))) {
            let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
            let (row, mut labels, mut scores) = (Row::new(logits).unwrap(), Vec::new(), Vec::new());
            score.scored_set_into(row, f64::INFINITY, &mut labels, &mut scores);
            for end in (0..=labels.len()).step_by(3).chain([1, 2]) {
                let (set, worst) =
                    (&labels[..end], scores[..end].iter().copied().fold(f64::NEG_INFINITY, f64::max));
                let is_within = |threshold: f64| score.surely_within(row, set, threshold);
                for threshold in [0.0, worst.next_down(), worst, worst.next_up(), f64::INFINITY] {
                    let sound = !is_within(threshold) || worst <= threshold;
                    assert!(sound, "gamma {gamma}, {end} labels: {worst:e} is not within {threshold:e}");
                }
                let well_above = 1.001 * worst;
                if well_above.is_finite() && ESTIMATES_ARE_SAFE.contains(&well_above) {
                    assert!(is_within(well_above), "gamma {gamma}, {end} labels within {well_above:e}");
                    said += 1;
                }
            }
        }
        assert!(said > 300, "{said}");
    }

    /// Sets around the number from which members are found before they are ranked, with thresholds on the scores of
    /// labels and right beside them.
    #[test]
    fn large_sets_are_the_definition() {
        let draw = |i: usize| ((i * 7919) % 1013) as f32;
        let ties: Vec<f32> = (0..600).map(|i| (draw(i) / 100.0).floor() - 3.0).collect();
        let mut masked: Vec<f32> = (0..300).map(|i| draw(i) / 64.0).collect();
        masked[100..180].fill(f32::NEG_INFINITY);
        let rows = [
            (0..1000).map(|i| draw(i) / 50.0 - 9.0).collect(),
            (0..65).map(|i| draw(i) * 1e-3).collect(),
            (0..300).map(|i| draw(i) * 1e5).collect(),
            (0..300).map(|i| draw(i) * 1e-30).collect(),
            (0..300).map(|i| 1e7 + draw(i)).collect(),
            vec![0.25; 200],
            ties,
            masked,
        ];
        // Logits that are finer than the rounding of their gaps: 60 labels whose gaps round to one number.
        let fine = |top: f64, other: f64| [vec![top], vec![other; 60]].concat();
        same_sets(&fine(10.0, 0.5 - f64::EPSILON / 2.0));
        same_sets(&fine(10.0, -1e-20));
        same_sets(&[vec![10.0_f32], vec![-1e-20; 60]].concat());
        for logits in rows {
            same_sets(&logits);
            same_sets(&logits.iter().map(|z| f64::from(*z) / 3.0).collect::<Vec<_>>());
            #[cfg(feature = "half")]
            same_sets(&logits.iter().map(|z| half::bf16::from_f32(*z)).collect::<Vec<_>>());
        }
    }

    fn same_sets<T: Logit>(logits: &[T]) {
        let row = Row::new(logits).unwrap();
        let mut ranked: Vec<u32> = (0..row.classes() as u32).collect();
        sort_best_first(row, &mut ranked);
        for gamma in [1.0, 1.1, 1.3, 1.5, 1.7, 2.0, 2.2, 3.0, 5.0] {
            let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
            let scores: Vec<f64> = ranked.iter().map(|label| score.score(row, *label)).collect();
            for size in [1, 2, FEW - 1, FEW, FEW + 1, 64, 65, 120, ranked.len() / 2, ranked.len()] {
                let own = scores[size.min(ranked.len()) - 1];
                for threshold in [own.next_down(), own, own.next_up(), own * 1.01] {
                    let mut set = vec![7];
                    score.set_into(row, threshold, &mut set);
                    let inside = |place: &usize| scores[*place] <= threshold;
                    let wanted: Vec<u32> =
                        (0..ranked.len()).filter(inside).map(|place| ranked[place]).collect();
                    assert_eq!(set[1..], wanted, "gamma {gamma}, threshold {threshold:e}, size {size}");
                }
            }
        }
    }

    /// Sets are right without bounds too, only slowly.
    #[test]
    fn every_usual_threshold_has_bounds() {
        for gamma in [1.0, 1.3, 1.5, 1.7, 2.0, 3.0] {
            let gamma = Gamma::new(gamma).unwrap();
            for threshold in [0.0, 1e-100, 0.5, 1.0, 50.0, 1e100] {
                let bounds = bounds(gamma, threshold).unwrap();
                assert_eq!(bounds.limits.distance, threshold);
            }
            for threshold in [1e-200, 1e200, f64::INFINITY, f64::NAN] {
                assert_eq!(bounds(gamma, threshold), None);
            }
        }
    }
}
