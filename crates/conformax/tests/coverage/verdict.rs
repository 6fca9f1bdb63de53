//! `Verdict`: whether counts of covered rows follow the law of coverage, or are stochastically at least it.
//!
//! Two measures, because each sees what the other misses. The log-likelihood of the rank against its neighbours
//! tells one rank from the next; the distance between the distribution functions sees a wrong spread around the
//! right mean. Beta-Binomials with neighbouring ranks have a likelihood ratio that rises with the count, so counts
//! that are stochastically larger can only beat the rank below by more: one check serves both sides.

use conformax::{Alpha, CoverageLaw, conformal_rank};

/// By how much the rank's log-likelihood must beat that of its neighbours.
pub const MARGIN: f64 = 10.0;

/// Largest `√splits · sup(F − G)` that is put down to chance: by the Dvoretzky–Kiefer–Wolfowitz inequality true
/// counts exceed it with probability below `exp(−2·3²)`, two in a hundred million.
pub const DISTANCE: f64 = 3.0;

/// What the counts say about the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub splits: usize,
    /// Covered rows among all test rows.
    pub mean: f64,
    /// The same by the law, `r/(n + 1)`.
    pub law_mean: f64,
    /// Log-likelihood of the rank over that of the rank below.
    pub below: f64,
    /// Log-likelihood of the rank over that of the rank above.
    pub above: f64,
    /// How far the counts' distribution function rises over the law's: too few rows covered.
    pub deficit: f64,
    /// How far it falls under the law's: too many rows covered.
    pub surplus: f64,
}

impl Verdict {
    /// The counts follow the law: what calibration owes where no scores tie.
    pub fn is_law(&self) -> bool {
        self.is_at_least_law() && self.above >= MARGIN && self.surplus <= DISTANCE
    }

    /// The counts are stochastically at least the law: what calibration owes everywhere.
    pub fn is_at_least_law(&self) -> bool {
        self.below >= MARGIN && self.deficit <= DISTANCE
    }
}

/// Splits that tell the rank from its neighbours with certainty.
///
/// `72·α(1 − α)(n + 1)(1 + (n + 1)/m)` splits make the likelihood margin 36 ± 8.5 under the law, three deviations
/// above what is asked. Half as many again make it 54 ± 10.4 and leave room for thousands of verdicts. The floor is
/// for the shortest samples, which are skew.
pub fn splits_wanted(n: u64, m: u64, alpha: Alpha) -> usize {
    let (alpha, places) = (alpha.value(), n as f64 + 1.0);
    let splits = 108.0 * alpha * (1.0 - alpha) * places * (1.0 + places / m as f64);
    (splits.ceil() as usize).max(600)
}

/// Compares the covered rows among `m` in each of many splits with `n` calibrating rows.
pub fn law_holds(counts: &[u64], n: u64, m: u64, alpha: Alpha) -> Verdict {
    let rank = conformal_rank(n, alpha).unwrap_or(n + 1);
    let law = law_of(n, rank).expect("a conformal rank is at least 1");
    let mut histogram = vec![0_u64; m as usize + 1];
    counts.iter().for_each(|count| histogram[*count as usize] += 1);

    let splits = counts.len() as f64;
    let (mut deficit, mut surplus, mut so_far) = (0.0_f64, 0.0_f64, 0);
    for (count, frequency) in (0..).zip(&histogram) {
        so_far += frequency;
        let over = so_far as f64 / splits - law.cdf_of_count(count, m);
        deficit = deficit.max(over);
        surplus = surplus.max(-over);
    }
    let at_rank = ln_likelihood(law, &histogram);
    let margin =
        |rank| law_of(n, rank).map_or(f64::INFINITY, |other| at_rank - ln_likelihood(other, &histogram));
    Verdict {
        splits: counts.len(),
        mean: counts.iter().sum::<u64>() as f64 / (splits * m as f64),
        law_mean: law.mean(),
        below: margin(rank - 1),
        above: margin(rank + 1),
        deficit: deficit * splits.sqrt(),
        surplus: surplus * splits.sqrt(),
    }
}

/// The law at a rank from 1 to `n + 1`, the last of which is the infinite threshold.
fn law_of(n: u64, rank: u64) -> Option<CoverageLaw> {
    let rank = if rank == n + 1 { None } else { Some(rank) };
    CoverageLaw::new(n, rank).ok()
}

fn ln_likelihood(law: CoverageLaw, histogram: &[u64]) -> f64 {
    let m = histogram.len() as u64 - 1;
    let seen = (0..).zip(histogram).filter(|(_, frequency)| **frequency > 0);
    seen.map(|(count, frequency)| *frequency as f64 * law.ln_probability(count, m)).sum()
}
