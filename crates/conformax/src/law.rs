//! `CoverageLaw`: how far realised coverage strays from the promise, exactly and for any classifier.
//!
//! With a threshold at rank `r` of `n` calibration scores that do not tie, coverage given the calibration rows is
//! Beta(`r`, `n + 1 − r`), and the number of covered rows among `m` fresh ones is the Beta-Binomial it mixes.

mod beta;
mod precision;

use self::beta::{Beta, NEGLIGIBLE, Point, Tails, deviance, stirling_error};
use crate::kernel::math::{exp, ln};
use crate::{Alpha, Error, Result, conformal_rank};

pub use self::precision::rows_for_precision;

/// The exact distribution of the realised coverage of a split conformal predictor.
///
/// It holds with equality where no two scores tie; with ties coverage is stochastically at least this. The time a call
/// takes grows as `√n`: microseconds for thousands of rows, a millisecond for a billion.
///
/// ```
/// use conformax::{Alpha, CoverageLaw};
/// let law = CoverageLaw::at_level(1_000, Alpha::new(0.1)?);
/// let (low, high) = law.interval(0.95)?;
/// assert_eq!(format!("{low:.3} to {high:.3}"), "0.881 to 0.918");
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverageLaw {
    n: u64,
    rank: Option<u64>,
}

impl CoverageLaw {
    /// The law of `n` calibration rows with the threshold at the `rank`-th smallest score, or with none (`None`:
    /// the threshold is infinite and every row is covered).
    pub fn new(n: u64, rank: Option<u64>) -> Result<Self> {
        match rank {
            Some(rank) if rank == 0 || rank > n => Err(Error::Rank { rank, n }),
            _ => Ok(Self { n, rank }),
        }
    }

    /// Full sets cover every row.
    pub(crate) fn certain(n: u64) -> Self {
        Self { n, rank: None }
    }

    /// The law of a rank that is one of `n`.
    pub(crate) fn at_rank(n: u64, rank: Option<u64>) -> Self {
        Self { n, rank }
    }

    /// The law of `n` calibration rows at level `alpha`, with the conformal rank.
    pub fn at_level(n: u64, alpha: Alpha) -> Self {
        Self { n, rank: conformal_rank(n, alpha) }
    }

    /// Expected coverage, `r / (n + 1)`.
    pub fn mean(self) -> f64 {
        self.beta().map_or(1.0, |Beta { a, b }| a / (a + b))
    }

    /// Spread of coverage from one calibration set to the next, over infinitely many test rows.
    pub fn standard_deviation(self) -> f64 {
        self.beta().map_or(0.0, |Beta { a, b }| (a / (a + b) * (b / (a + b)) / (a + b + 1.0)).sqrt())
    }

    /// Probability that coverage is at most `coverage`.
    pub fn cdf(self, coverage: f64) -> f64 {
        if coverage.is_nan() {
            return f64::NAN;
        }
        match self.beta() {
            Some(beta) => beta.tails(Point::at(coverage)).lower,
            None => f64::from(u8::from(coverage >= 1.0)),
        }
    }

    /// The coverage that is not exceeded with `probability`; beyond 0 and 1, the ends of the law's support.
    pub fn quantile(self, probability: f64) -> f64 {
        self.cut(Tails { lower: probability, upper: 1.0 - probability })
    }

    /// The central interval that holds coverage with `probability`, strictly between 0 and 1, over infinitely many test
    /// rows.
    pub fn interval(self, probability: f64) -> Result<(f64, f64)> {
        let tails = outside(probability)?;
        Ok((self.cut(tails), self.cut(tails.swapped())))
    }

    /// Logarithm of the probability that exactly `covered` of `rows` fresh rows are covered.
    pub fn ln_probability(self, covered: u64, rows: u64) -> f64 {
        match self.rank {
            _ if covered > rows => f64::NEG_INFINITY,
            Some(rank) => self.ln_count(rank, covered, rows),
            None if covered == rows => 0.0,
            None => f64::NEG_INFINITY,
        }
    }

    /// Probability that at most `covered` of `rows` fresh rows are covered.
    pub fn cdf_of_count(self, covered: u64, rows: u64) -> f64 {
        self.count_tails(covered, rows).lower
    }

    /// The smallest count of covered rows that is not exceeded with `probability`.
    ///
    /// A count that falls short by rounding alone (of `probability`, or one part in 10¹² of a tail) has reached it: the
    /// `f64` nearest to 0.05 lies above one in twenty.
    pub fn quantile_of_count(self, probability: f64, rows: u64) -> u64 {
        self.count_cut(Tails { lower: probability, upper: 1.0 - probability }, rows)
    }

    /// The central interval that holds the coverage measured on `rows` fresh rows with at least `probability`.
    ///
    /// Its ends are counts over `rows`, both included; without rows it is all of `[0, 1]`. The probability lies
    /// strictly between 0 and 1.
    pub fn interval_of_rows(self, probability: f64, rows: u64) -> Result<(f64, f64)> {
        let tails = outside(probability)?;
        if rows == 0 {
            return Ok((0.0, 1.0));
        }
        let share = |tails| self.count_cut(tails, rows) as f64 / rows as f64;
        Ok((share(tails), share(tails.swapped())))
    }

    /// Probability that coverage is less than `1 − α`.
    fn falls_short(self, alpha: Alpha) -> f64 {
        self.beta().map_or(0.0, |beta| beta.tails(Point::at(alpha.confidence())).lower)
    }

    fn beta(self) -> Option<Beta> {
        self.rank.map(|rank| Beta { a: rank as f64, b: (self.n - rank) as f64 + 1.0 })
    }

    fn cut(self, tails: Tails) -> f64 {
        match self.beta() {
            _ if tails.lower.is_nan() => f64::NAN,
            None => 1.0,
            Some(_) if tails.lower <= 0.0 => 0.0,
            Some(_) if tails.upper <= 0.0 => 1.0,
            Some(beta) => beta.quantile(tails),
        }
    }

    fn count_cut(self, tails: Tails, rows: u64) -> u64 {
        if tails.upper <= 0.0 {
            return rows;
        }
        first_where(0, rows, |covered| {
            let found = self.count_tails(covered, rows);
            if tails.lower <= tails.upper {
                found.lower * SLACK >= tails.lower
            } else {
                at_most(found.upper, tails.upper)
            }
        })
    }

    /// `ln [C(m, k) B(k + r, m − k + b) / B(r, b)]`, from the two Beta kernels at the mean of the larger.
    fn ln_count(self, rank: u64, covered: u64, rows: u64) -> f64 {
        let above = self.n - rank + 1;
        let wide = |v: u64| u128::from(v);
        let missed = rows - covered;
        let total = self.n as f64 + 1.0 + rows as f64;
        // k·(n + 1) and m·r fit 128 bits, so the distance from the mean is rounded only once.
        let (have, expected) = (wide(covered) * (wide(self.n) + 1), wide(rows) * wide(rank));
        let gap = have.abs_diff(expected) as f64 / total * if have < expected { -1.0 } else { 1.0 };

        let x = (rank as f64 + covered as f64) / total;
        let y = (above as f64 + missed as f64) / total;
        let part = |v: u64, of: f64, share: f64, gap: f64| deviance(v as f64, of * share, gap);
        let (m, s) = (rows as f64, self.n as f64 + 1.0);
        let deviances = (part(covered, m, x, gap) + part(missed, m, y, -gap))
            + (part(rank, s, x, -gap) + part(above, s, y, gap));

        let prior = Beta { a: rank as f64, b: above as f64 }.ln_kernel_at_mean();
        let posterior =
            Beta { a: rank as f64 + covered as f64, b: above as f64 + missed as f64 }.ln_kernel_at_mean();
        ln_choose_at_mean(covered, missed) + prior - posterior - deviances
    }

    /// The mass up to and beyond `covered`, in a number of steps that grows as the root of the smaller sample.
    ///
    /// At most `k` rows are covered exactly when the `k + r` smallest of all scores, fresh and calibrating together,
    /// hold at least `r` calibrating ones. That count is hypergeometric, and its sums are short even where the
    /// Beta-Binomial's, with few calibration rows and many fresh ones, would run over every row.
    fn count_tails(self, covered: u64, rows: u64) -> Tails {
        let Some(rank) = self.rank.filter(|_| covered < rows) else {
            return Tails::from_upper(f64::from(u8::from(covered < rows)));
        };
        let (k, missed) = (covered as f64, (rows - covered) as f64);
        let (r, b) = (rank as f64, (self.n - rank) as f64 + 1.0);
        let at_rank = exp(self.ln_count(rank, covered, rows)) * ((k + r) / r);
        // The cut lies between k and k + 1; the tail away from the mean is the smaller one.
        if (k + 0.5) * (r + b) < (k + missed) * r {
            let rest = sum_of_products(|j| (b - 1.0 - j) * (k - j) / ((r + 1.0 + j) * (missed + 1.0 + j)));
            Tails::from_lower(at_rank * (1.0 + rest))
        } else {
            Tails::from_upper(
                at_rank * sum_of_products(|j| (r - j) * (missed - j) / ((b + j) * (k + 1.0 + j))),
            )
        }
    }
}

/// A tail this close in ratio to the one asked for has reached it.
const SLACK: f64 = 1.0 + 1e-12;

/// Whether a tail is no larger than `allowed = 1 − probability`, rounding aside.
fn at_most(tail: f64, allowed: f64) -> bool {
    // A probability just below one is off by up to a quarter of epsilon, and its small complement inherits that whole.
    tail <= allowed * SLACK + f64::EPSILON / 4.0
}

/// The tails that a central interval of `probability` leaves out on its lower side, and everything else.
fn outside(probability: f64) -> Result<Tails> {
    if !(probability > 0.0 && probability < 1.0) {
        return Err(Error::Probability(probability));
    }
    let tail = (1.0 - probability) / 2.0;
    Ok(Tails { lower: tail, upper: 1.0 - tail })
}

/// `ln C(m, k)` less its deviances, for `k` hits and `m − k` misses.
fn ln_choose_at_mean(hits: u64, misses: u64) -> f64 {
    if hits == 0 || misses == 0 {
        return 0.0;
    }
    let (k, l) = (hits as f64, misses as f64);
    let error = stirling_error(k + l) - stirling_error(k) - stirling_error(l);
    error - 0.5 * ln(std::f64::consts::TAU * k * (l / (k + l)))
}

/// `f(0) + f(0)f(1) + f(0)f(1)f(2) + …` for factors that fall below one and reach zero.
fn sum_of_products(factor: impl Fn(f64) -> f64) -> f64 {
    let (mut sum, mut term, mut j) = (0.0, 1.0, 0.0);
    while term > NEGLIGIBLE * sum {
        term *= factor(j);
        sum += term;
        j += 1.0;
    }
    sum
}

/// The smallest number in `low..=high` from which `holds` is true, given that it changes once; `high` if none below is.
fn first_where(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The smallest rank at which coverage is at least `1 − α` with probability `1 − δ` over the calibration rows; `None`
/// where no rank of `n` rows will do.
///
/// ```
/// use conformax::{Alpha, conformal_rank, pac_rank};
/// let alpha = Alpha::new(0.1)?;
/// assert_eq!((conformal_rank(99, alpha), pac_rank(99, alpha, 0.05)?), (Some(90), Some(95)));
/// assert_eq!(pac_rank(28, alpha, 0.05)?, None); // it takes 29 rows: 0.9²⁹ < 0.05
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn pac_rank(n: u64, alpha: Alpha, delta: f64) -> Result<Option<u64>> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Error::Probability(delta));
    }
    Ok(pac_rank_at(n, alpha, delta))
}

/// [`pac_rank`] for a δ that is a probability.
pub(crate) fn pac_rank_at(n: u64, alpha: Alpha, delta: f64) -> Option<u64> {
    let enough = |rank: u64| CoverageLaw { n, rank: Some(rank) }.falls_short(alpha) <= delta;
    if n == 0 || !enough(n) {
        return None;
    }
    // It falls as the rank grows: the first that is enough lies in low + 1..=high.
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative to the smaller of the two numbers.
    fn close(left: f64, right: f64, tolerance: f64) -> bool {
        left == right || (left - right).abs() <= tolerance * left.abs().min(right.abs())
    }

    /// The lines of a table, split at the commas, without its header.
    fn table(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().skip(1).map(|line| line.split(',').collect())
    }

    fn law(n: &str, rank: &str) -> CoverageLaw {
        CoverageLaw::new(n.parse().unwrap(), Some(rank.parse().unwrap())).unwrap()
    }

    #[test]
    fn agrees_with_the_binomial_sums() {
        for row in table(include_str!("../../../fixtures/law/beta.csv")) {
            let [n, rank, coverage, lower, upper] = row[..] else { panic!("{row:?}") };
            let law = law(n, rank);
            let x: f64 = coverage.parse().unwrap();
            let want = Tails { lower: lower.parse().unwrap(), upper: upper.parse().unwrap() };
            let got = law.beta().unwrap().tails(Point::at(x));
            assert!(
                close(got.lower, want.lower, 1e-11) && close(got.upper, want.upper, 1e-11),
                "{row:?} {got:?}"
            );
            assert!(close(law.cut(want), x, 1e-14), "{row:?} {}", law.cut(want));
        }
    }

    #[test]
    fn agrees_with_the_beta_binomial_sums() {
        for row in table(include_str!("../../../fixtures/law/count.csv")) {
            let [n, rank, rows, covered, ln_probability, lower, upper] = row[..] else { panic!("{row:?}") };
            let (law, covered, rows) = (law(n, rank), covered.parse().unwrap(), rows.parse().unwrap());
            let got = law.ln_probability(covered, rows);
            assert!((got - ln_probability.parse::<f64>().unwrap()).abs() < 1e-11, "{row:?} {got}");
            let got = law.count_tails(covered, rows);
            assert!(close(got.lower, lower.parse().unwrap(), 1e-11), "{row:?} {got:?}");
            assert!(close(got.upper, upper.parse().unwrap(), 1e-11), "{row:?} {got:?}");
        }
    }

    #[test]
    fn finds_the_exact_quantile_of_counts() {
        for row in table(include_str!("../../../fixtures/law/quantile.csv")) {
            let [n, rank, rows, probability, covered] = row[..] else { panic!("{row:?}") };
            let got = law(n, rank).quantile_of_count(probability.parse().unwrap(), rows.parse().unwrap());
            assert_eq!(got, covered.parse().unwrap(), "{row:?}");
        }
    }

    fn choose(n: u64, k: u64) -> u128 {
        (0..k).fold(1, |product, i| product * u128::from(n - i) / u128::from(i + 1))
    }

    #[test]
    fn agrees_with_counting_the_orders() {
        for (n, rows) in [(1, 1), (1, 7), (2, 5), (6, 1), (9, 20), (20, 9), (31, 30)] {
            for rank in 1..=n {
                let law = CoverageLaw::new(n, Some(rank)).unwrap();
                let all = choose(n + rows, rows);
                let orders = all as f64;
                let mut below = 0;
                for covered in 0..=rows {
                    let here =
                        choose(covered + rank - 1, covered) * choose(rows - covered + n - rank, n - rank);
                    below += here;
                    let place = format!("n {n} rank {rank} covered {covered} of {rows}");
                    assert!(
                        close(exp(law.ln_probability(covered, rows)), here as f64 / orders, 1e-13),
                        "{place}"
                    );
                    assert!(close(law.cdf_of_count(covered, rows), below as f64 / orders, 1e-13), "{place}");
                    let reached =
                        Tails { lower: below as f64 / orders, upper: (all - below) as f64 / orders };
                    assert!(law.count_cut(reached, rows) == covered, "{place}");
                }
            }
        }
    }

    #[test]
    fn probabilities_of_counts_sum_to_one() {
        for (n, rank, rows) in
            [(3, 2, 5_000), (999, 900, 3_000), (1_000_000, 1_000_000, 500), (99_999, 1, 4_000)]
        {
            let law = CoverageLaw::new(n, Some(rank)).unwrap();
            let sum: f64 = (0..=rows).map(|covered| exp(law.ln_probability(covered, rows))).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{n} {rank} {rows}: {sum}");
        }
    }

    #[test]
    fn quantile_inverts_the_cdf() {
        for n in [1, 2, 10, 999, 50_000, 3_000_000_000] {
            for rank in [1, n / 2 + 1, n - n / 10, n] {
                let law = CoverageLaw::new(n, Some(rank)).unwrap();
                for p in [1e-9, 1e-3, 0.025, 0.5, 0.8, 0.975, 0.999] {
                    let x = law.quantile(p);
                    // Near one, neighbouring floats are this far apart in probability.
                    let density = law.cdf(x.next_up()) - law.cdf(x);
                    assert!((law.cdf(x) - p).abs() <= 1e-11 * p + 2.0 * density, "{n} {rank} {p}");
                }
            }
        }
    }

    #[test]
    fn covers_everything_without_a_rank() {
        let law = CoverageLaw::new(3, None).unwrap();
        assert_eq!((law.mean(), law.standard_deviation()), (1.0, 0.0));
        assert_eq!((law.cdf(0.999), law.cdf(1.0)), (0.0, 1.0));
        assert_eq!((law.interval(0.9), law.interval_of_rows(0.9, 7)), (Ok((1.0, 1.0)), Ok((1.0, 1.0))));
        assert_eq!((law.ln_probability(7, 7), law.ln_probability(6, 7)), (0.0, f64::NEG_INFINITY));
        assert_eq!((law.cdf_of_count(6, 7), law.cdf_of_count(7, 7)), (0.0, 1.0));
    }

    #[test]
    fn ends_of_the_range_are_the_ends_of_the_support() {
        let law = CoverageLaw::new(9, Some(9)).unwrap();
        assert_eq!((law.cdf(-1.0), law.cdf(0.0), law.cdf(1.0), law.cdf(2.0)), (0.0, 0.0, 1.0, 1.0));
        assert_eq!((law.quantile(0.0), law.quantile(1.0)), (0.0, 1.0));
        assert!(law.quantile(f64::NAN).is_nan() && law.cdf(f64::NAN).is_nan());
        assert_eq!((law.quantile_of_count(0.0, 5), law.quantile_of_count(1.0, 5)), (0, 5));
        assert_eq!((law.ln_probability(6, 5), law.cdf_of_count(6, 5)), (f64::NEG_INFINITY, 1.0));
        assert_eq!((law.ln_probability(0, 0), law.interval_of_rows(0.9, 0)), (0.0, Ok((0.0, 1.0))));
        // A percentage, a certainty and nothing at all.
        for bad in [95.0, 1.0, 0.0, -0.5, f64::INFINITY] {
            assert_eq!(law.interval(bad), Err(Error::Probability(bad)));
            assert_eq!(law.interval_of_rows(bad, 5), Err(Error::Probability(bad)));
        }
        assert!(law.interval(f64::NAN).is_err());
        assert_eq!(CoverageLaw::new(9, Some(0)), Err(Error::Rank { rank: 0, n: 9 }));
    }
}
