//! The definitions again, one label at a time and without a fast path: what the library must equal to the bit.
//!
//! A sum's bits depend on its order, so the order is part of the definition: sixteen partial sums, label `k` in number
//! `k mod 16`, then added pairwise. `exp` and `pow` are the library's own source, compiled here for the instruction set
//! that every CPU has.

use conformax::{Error, Gamma};

use crate::math;

/// What is wrong with a row: its first NaN or +∞, or that it has no finite logit.
pub fn fault(row: &[f64]) -> Option<Error> {
    if row.is_empty() {
        return Some(Error::Classes(0));
    }
    if let Some(class) = row.iter().position(|logit| logit.is_nan() || *logit == f64::INFINITY) {
        return Some(Error::Logit { row: 0, class, value: row[class] });
    }
    (max(row) == f64::NEG_INFINITY).then_some(Error::AllMasked { row: 0 })
}

/// The labels with `score ≤ threshold`, by falling logit and then by index.
pub fn set(row: &[f64], scores: &[f64], threshold: f64) -> Vec<u32> {
    let mut set: Vec<u32> =
        (0..row.len() as u32).filter(|label| scores[*label as usize] <= threshold).collect();
    set.sort_by(|a, b| row[*b as usize].partial_cmp(&row[*a as usize]).expect("a row has no NaN"));
    set
}

/// `‖(z − z_y)₊‖_δ` of every label.
pub fn entmax_scores(row: &[f64], gamma: Gamma) -> Vec<f64> {
    row.iter().map(|pivot| gap_norm(row, *pivot, gamma)).collect()
}

fn gap_norm(row: &[f64], pivot: f64, gamma: Gamma) -> f64 {
    let largest = max(row) - pivot;
    if largest == 0.0 || largest == f64::INFINITY {
        return largest.abs();
    }
    let gaps = row.iter().map(|logit| if *logit > pivot { logit - pivot } else { 0.0 });
    match gamma.delta() {
        f64::INFINITY => largest,
        1.0 => lane_sum(gaps),
        2.0 => {
            let scale = middle_scale(largest);
            lane_sum(gaps.map(|gap| (gap * scale) * (gap * scale))).sqrt() / scale
        }
        delta => {
            let sum = lane_sum(gaps.map(|gap| math::pow_unit(gap / largest, delta)));
            let norm = largest * math::pow(sum, one_less(gamma));
            if norm > largest { norm } else { largest }
        }
    }
}

/// The power of two, 1 or 2^±700, by which gaps are scaled so that their squares neither overflow nor vanish.
fn middle_scale(largest: f64) -> f64 {
    match largest {
        _ if largest < 1e-140 => f64::from_bits((1023 + 700) << 52),
        _ if largest >= 1e145 => f64::from_bits((1023 - 700) << 52),
        _ => 1.0,
    }
}

/// `γ − 1` as a decimal, rounded once.
fn one_less(gamma: Gamma) -> f64 {
    let text = gamma.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    let whole: u32 = whole.parse().expect("a number is printed with its digits");
    format!("{}.{fraction}", whole - 1).parse().expect("digits around a point are a number")
}

/// `1 − softmax` of every label.
pub fn inv_prob_scores(row: &[f64]) -> Vec<f64> {
    let term = |logit: &f64| math::exp_nonpositive(logit - max(row));
    let sum = lane_sum(row.iter().map(term));
    let score =
        |logit: &f64| if *logit == f64::NEG_INFINITY { f64::INFINITY } else { 1.0 - term(logit) / sum };
    row.iter().map(score).collect()
}

fn max(row: &[f64]) -> f64 {
    row.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn lane_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 16];
    for (index, term) in terms.enumerate() {
        lanes[index % 16] += term;
    }
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}
