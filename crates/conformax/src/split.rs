//! Seeded splits: which rows calibrate, tune and test.

use crate::random::Generator;
use crate::units::Fractions;
use crate::{Error, Result};

/// Divides `n` rows into parts at random; part `i` holds its rows in ascending order.
///
/// The first part has `⌈f₁·n⌉` rows, the first two together `⌈(f₁ + f₂)·n⌉`, and so on, with the fractions
/// read as the decimals they were written as. The same seed gives the same split everywhere.
///
/// ```
/// use conformax::split;
/// let parts = split(5, &[0.4, 0.6], 0)?;
/// assert_eq!((parts[0].len(), parts[1].len()), (2, 3));
/// assert_eq!(parts, split(5, &[0.4, 0.6], 0)?);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn split(n: usize, fractions: &[f64], seed: u64) -> Result<Vec<Vec<usize>>> {
    let mut order: Vec<usize> = (0..n).collect();
    Generator::new(seed, "split").shuffle(&mut order);
    deal(order, &Fractions::new(fractions)?)
}

/// As [`split`], with each label's rows divided in the same proportions: in the first part to within one row. Every
/// later part is dealt out of what is left in the same way, so it may be off by what the parts before left over as
/// well.
///
/// ```
/// use conformax::split_stratified;
/// let labels = [0, 0, 0, 0, 1, 1, 1, 1];
/// let parts = split_stratified(&labels, &[0.5, 0.5], 7)?;
/// assert_eq!(parts[0].iter().filter(|row| labels[**row] == 0).count(), 2);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn split_stratified(labels: &[u32], fractions: &[f64], seed: u64) -> Result<Vec<Vec<usize>>> {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    Generator::new(seed, "split").shuffle(&mut order);
    // Stable, so that within a label the order stays random.
    order.sort_by_key(|row| labels[*row]);
    deal(order, &Fractions::new(fractions)?)
}

/// Takes each part's rows evenly spaced out of those that are left: of a random order that is a random part, of
/// an order by label a stratified one.
fn deal(mut order: Vec<usize>, fractions: &Fractions) -> Result<Vec<Vec<usize>>> {
    let n = order.len() as u64;
    let mut parts = Vec::with_capacity(fractions.len());
    let mut taken = 0;
    for part in 0..fractions.len() {
        let bound = fractions.ceil_of_sum(part, n);
        let wanted = bound - taken;
        taken = bound;
        let left = order.len() as u64;
        let picked = |place: u64| (place + 1) * wanted / left > place * wanted / left;
        let (mut chosen, mut rest) = (Vec::with_capacity(wanted as usize), Vec::new());
        for (place, row) in (0..).zip(order) {
            if picked(place) { chosen.push(row) } else { rest.push(row) }
        }
        chosen.sort_unstable();
        parts.push(chosen);
        order = rest;
    }
    Ok(parts)
}

/// Which of the rows kept for calibration choose the score's parameters, and which calibrate the choice.
///
/// ```
/// use conformax::TuningSplit;
/// let rows = TuningSplit::new(10, TuningSplit::FRACTION, 0)?;
/// assert_eq!((rows.calibrating.len(), rows.tuning.len()), (6, 4)); // ⌈0.6 n⌉ and the rest
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TuningSplit {
    /// Rows that calibrate, ascending.
    pub calibrating: Vec<usize>,
    /// Rows that tune, ascending.
    pub tuning: Vec<usize>,
}

impl TuningSplit {
    /// The usual share of the rows that choose, as in the paper: of parameters, and of the largest ranks of labels.
    pub const FRACTION: f64 = 0.4;

    /// Keeps `tuning_fraction` of `n` rows, rounded down, for tuning.
    pub fn new(n: usize, tuning_fraction: f64, seed: u64) -> Result<Self> {
        let fractions = Fractions::complement(tuning_fraction).ok_or(Error::Fraction(tuning_fraction))?;
        let mut order: Vec<usize> = (0..n).collect();
        Generator::new(seed, "tuning split").shuffle(&mut order);
        let mut parts = deal(order, &fractions)?.into_iter();
        let mut next = || parts.next().expect("two fractions make two parts");
        Ok(Self { calibrating: next(), tuning: next() })
    }
}

/// Of so many rows those that calibrate where the usual share chooses: `⌈0.6 n⌉`.
pub(crate) fn count_calibrating(n: u64) -> u64 {
    let fractions = Fractions::complement(TuningSplit::FRACTION).expect("it is a fraction");
    fractions.ceil_of_sum(0, n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_row_once_with_exact_sizes() {
        for n in 0..60usize {
            let parts = split(n, &[0.1, 0.2, 0.7], 3).unwrap();
            let mut rows = parts.concat();
            rows.sort_unstable();
            assert_eq!(rows, (0..n).collect::<Vec<_>>());
            let ceil = |tenths: usize| (n * tenths).div_ceil(10);
            assert_eq!(parts[0].len(), ceil(1));
            assert_eq!(parts[1].len(), ceil(3) - ceil(1));
        }
    }

    #[test]
    fn fractions_are_decimals() {
        // 0.07 · 100 is 7.000000000000001 in floating point.
        assert_eq!(split(100, &[0.07, 0.93], 0).unwrap()[0].len(), 7);
        for bad in [&[0.5, 0.6][..], &[0.5], &[], &[f64::INFINITY, 0.5]] {
            assert!(matches!(split(10, bad, 0), Err(Error::Fractions(_))), "{bad:?}");
        }
        for bad in [&[1.2, -0.2][..], &[f64::NAN, 0.5], &[1.0, 0.0]] {
            assert!(matches!(split(10, bad, 0), Err(Error::Fraction(_))), "{bad:?}");
        }
    }

    #[test]
    fn seeds_differ_and_each_row_is_as_likely() {
        assert_ne!(split(50, &[0.5, 0.5], 0).unwrap(), split(50, &[0.5, 0.5], 1).unwrap());
        let mut counts = [0u32; 10];
        for seed in 0..4000 {
            split(10, &[0.4, 0.6], seed).unwrap()[0].iter().for_each(|row| counts[*row] += 1);
        }
        // 4000 · 0.4 = 1600, standard deviation 31.
        assert!(counts.iter().all(|count| (1600 - 160..=1600 + 160).contains(count)), "{counts:?}");
    }

    /// However rows fall on labels: a part takes of a label its share of the rows that are left to within one row, and
    /// so of all rows in the first part; then what is left may be off by one, and the second part by two.
    #[test]
    fn stratified_parts_are_off_by_a_row_each() {
        let fractions = [0.3, 0.45, 0.25];
        let mut generator = Generator::new(5, "labels");
        let mut worst = [0.0_f64; 3];
        for seed in 0..300 {
            let (n, classes) = (1 + generator.below(200), 1 + generator.below(12));
            let labels: Vec<u32> = (0..n).map(|_| generator.below(classes) as u32).collect();
            let parts = split_stratified(&labels, &fractions, seed).unwrap();
            for label in 0..classes as u32 {
                let of_label = |part: &Vec<usize>| part.iter().filter(|row| labels[**row] == label).count();
                let taken: Vec<usize> = parts.iter().map(of_label).collect();
                for part in 0..3 {
                    let (all, left) = (taken.iter().sum::<usize>(), taken[part..].iter().sum::<usize>());
                    let rows_left: usize = parts[part..].iter().map(Vec::len).sum();
                    let share = parts[part].len() as f64 / rows_left.max(1) as f64;
                    assert!(
                        (taken[part] as f64 - left as f64 * share).abs() < 1.0,
                        "{taken:?} of {labels:?}"
                    );
                    let off = taken[part] as f64 - all as f64 * parts[part].len() as f64 / n as f64;
                    worst[part] = worst[part].max(off.abs());
                }
            }
        }
        assert!(worst[0] < 1.0 && worst[1] < 2.0, "{worst:?}");
        assert!(
            worst[1] > 1.0,
            "later parts are off by more than a row, as the documentation says: {worst:?}"
        );
    }

    #[test]
    fn stratified_parts_keep_the_proportions() {
        let labels: Vec<u32> = (0..1000).map(|i| if i % 10 == 0 { 1 } else { 0 }).collect();
        let parts = split_stratified(&labels, &[0.4, 0.6], 5).unwrap();
        let ones = parts[0].iter().filter(|row| labels[**row] == 1).count();
        assert!((39..=41).contains(&ones), "{ones}");
        assert_eq!(parts[0].len(), 400);
    }
}
