//! The conformal rank against long division, digit by digit as on paper.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{Alpha, Level, SortedScores, conformal_rank};

/// Decimal digits, most significant first, of `number · factor`.
fn multiply(number: &str, factor: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    let mut carry = 0;
    for digit in number.bytes().rev() {
        carry += u64::from(digit - b'0') * factor;
        digits.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        digits.push((carry % 10) as u8);
        carry /= 10;
    }
    digits.reverse();
    digits
}

/// `⌈(n + 1)(1 − α)⌉ = n + 1 − ⌊(n + 1)·α⌋` for `α = 0.fraction`: the digits before the point are the floor.
fn rank_on_paper(n: u64, fraction: &str) -> Option<u64> {
    let product = multiply(fraction, n + 1);
    let whole = product.len().saturating_sub(fraction.len());
    let floor = product[..whole].iter().fold(0, |value, digit| value * 10 + u64::from(*digit));
    let rank = n + 1 - floor;
    (rank <= n).then_some(rank)
}

/// What follows the point in every level tried: common ones, awkward ones, and one of 18 digits.
fn levels() -> Vec<String> {
    let mut levels: Vec<String> = (1..=50).map(|percent| format!("{percent:02}")).collect();
    levels.extend(
        ["001", "005", "0001", "025", "125", "333", "0625", "99", "999", "123456789", "333333333333333333"]
            .map(String::from),
    );
    levels
}

#[test]
fn ranks_are_exact_for_every_n_and_level() {
    let levels = levels();
    assert!(levels.len() > 50);
    for fraction in levels {
        let text = format!("0.{fraction}");
        let alpha: Alpha = text.parse().unwrap();
        for n in (1..=2000).chain([1_000_000_007, 10_u64.pow(15), 10_u64.pow(18)]) {
            assert_eq!(conformal_rank(n, alpha), rank_on_paper(n, &fraction), "n = {n}, alpha = {text}");
        }
    }
}

/// A float stands for its shortest decimal, and a confidence is complemented in decimal.
#[test]
fn floats_and_confidences_mean_their_decimals() {
    for percent in 1..=99_u32 {
        let (alpha, confidence) = (f64::from(percent) / 100.0, f64::from(100 - percent) / 100.0);
        let written: Alpha = format!("0.{percent:02}").parse().unwrap();
        assert_eq!(Alpha::new(alpha).unwrap(), written);
        assert_eq!(Alpha::from_confidence(confidence).unwrap(), written);
    }
}

/// 150 × (1 − 0.18) is 123.00000000000001 in floating point, and its ceiling 124.
#[test]
fn rank_of_149_rows_at_0_18_is_123() {
    assert_eq!((150.0_f64 * (1.0 - 0.18)).ceil(), 124.0);
    assert_eq!(conformal_rank(149, Alpha::new(0.18).unwrap()), Some(123));
    let scores = SortedScores::new((1..=149).map(f64::from).collect()).unwrap();
    assert_eq!(scores.threshold(Alpha::new(0.18).unwrap()), 123.0);
}

/// One row fewer than needed makes the threshold infinite, and the level says how many are.
#[test]
fn too_few_rows_say_how_many_are_enough() {
    for fraction in levels().iter().filter(|fraction| fraction.len() <= 4) {
        let alpha: Alpha = format!("0.{fraction}").parse().unwrap();
        let enough = alpha.rows_needed();
        assert!(conformal_rank(enough, alpha).is_some(), "alpha = 0.{fraction}");
        if enough > 1 {
            let scores = SortedScores::new(vec![0.5; enough as usize - 1]).unwrap();
            let level = scores.level(alpha);
            assert_eq!(level, Level::new(enough - 1, alpha));
            assert_eq!(
                (scores.threshold(alpha), level.rank()),
                (f64::INFINITY, None),
                "alpha = 0.{fraction}"
            );
            assert_eq!(level.rows_wanted(), Some(enough), "alpha = 0.{fraction}");
        }
    }
}
