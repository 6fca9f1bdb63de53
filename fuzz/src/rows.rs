//! The fast paths on any row, score, parameter and threshold, held to the definition to the bit.
//!
//! An input is a byte that picks score and float type, a parameter and a threshold as `f64`, and the logits as the
//! bytes of that float type. Thresholds that matter lie on a score or next to one, so those are tried too.

use conformax::{
    Draw, EntmaxScore, Error, Gamma, InvProbScore, Lambda, Logit, Logits, Parameters, Penalty, Predictor,
    Row, Score, ScoreSpec, Thresholds, score_all_labels,
};
use half::{bf16, f16};

use crate::plain;

/// One input, taken apart.
struct Case<'a> {
    spec: ScoreSpec,
    threshold: f64,
    logits: &'a [u8],
}

/// Holds one input to every law.
pub fn check(input: &[u8]) {
    let Some((&pick, rest)) = input.split_first() else { return };
    let Some((parameter, rest)) = rest.split_first_chunk() else { return };
    let Some((threshold, logits)) = rest.split_first_chunk() else { return };
    let Some(spec) = spec(pick >> 2, f64::from_le_bytes(*parameter)) else { return };
    let case = Case { spec, threshold: f64::from_le_bytes(*threshold), logits };
    match pick & 3 {
        0 => check_row(&case, f16::from_le_bytes, f16::to_f64),
        1 => check_row(&case, bf16::from_le_bytes, bf16::to_f64),
        2 => check_row(&case, f32::from_le_bytes, f64::from),
        _ => check_row(&case, f64::from_le_bytes, f64::from),
    }
}

/// Indices of the family that take each path of the code, for inputs whose parameter is none.
const GAMMAS: [f64; 12] = [1.0, 1.000000001, 1.02, 1.1, 1.25, 1.3, 1.5, 1.9, 2.0, 2.5, 8.0, 16.0];

fn spec(pick: u8, parameter: f64) -> Option<ScoreSpec> {
    let gamma =
        Gamma::new(parameter).or_else(|_| Gamma::new(GAMMAS[usize::from(pick) % GAMMAS.len()])).ok()?;
    let draw = Some(if pick & 1 == 0 { Draw::Conservative } else { Draw::Seeded(parameter.to_bits()) });
    let lambda = Lambda::new(parameter.abs());
    let penalised = Parameters { lambda: lambda.ok(), draw, ..Parameters::default() };
    let penalty = Some(if pick & 2 == 0 { Penalty::Randomized } else { Penalty::Fixed });
    let (name, parameters) = match pick >> 2 {
        0..=8 => return Some(ScoreSpec::Entmax(EntmaxScore { gamma })),
        9 | 10 => return Some(ScoreSpec::InvProb(InvProbScore)),
        11 => ("aps", Parameters { draw, ..Parameters::default() }),
        12 => ("raps", Parameters { k_reg: Some(u32::from(pick & 3)), penalty, ..penalised }),
        13 => ("saps", penalised),
        14 => ("top_k", Parameters::default()),
        _ => ("margin", Parameters::default()),
    };
    let wants_lambda = matches!(name, "raps" | "saps");
    if wants_lambda && parameters.lambda.is_none() { None } else { ScoreSpec::named(name, parameters).ok() }
}

fn check_row<T: Logit, const N: usize>(case: &Case<'_>, read: fn([u8; N]) -> T, widen: fn(T) -> f64) {
    let logits: Vec<T> = case.logits.as_chunks().0.iter().map(|bytes| read(*bytes)).collect();
    let wide: Vec<f64> = logits.iter().map(|logit| widen(*logit)).collect();
    match Row::new(&logits) {
        Err(error) => {
            assert_eq!(Some(error.to_string()), plain::fault(&wide).map(|error: Error| error.to_string()))
        }
        Ok(row) => {
            assert!(plain::fault(&wide).is_none(), "a row with a fault was taken");
            let scores = check_scores(case.spec, row, &wide);
            check_sets(case, row, &wide, &scores);
        }
    }
}

fn one_row<T: Logit>(row: &[T]) -> Logits<'_, T> {
    Logits::new(row, row.len()).expect("one whole row")
}

/// `score` is `score_all_labels`, is the same in `f64`, and is the plain reference where there is one.
fn check_scores<T: Logit>(spec: ScoreSpec, row: Row<'_, T>, wide: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> = (0..wide.len() as u32).map(|label| spec.score(row, label)).collect();
    let all = score_all_labels(&spec, one_row(row.logits())).expect("a sound row");
    assert_eq!(bits(&all), bits(&scores), "all at once differ: {all:?} for {scores:?}");
    let all = score_all_labels(&spec, one_row(wide)).expect("the same values are a row in f64");
    assert_eq!(bits(&all), bits(&scores), "another float type differs: {all:?} for {scores:?}");
    let reference = match spec {
        ScoreSpec::Entmax(EntmaxScore { gamma }) => plain::entmax_scores(wide, gamma),
        ScoreSpec::InvProb(_) => plain::inv_prob_scores(wide),
        _ => return scores,
    };
    assert_eq!(bits(&scores), bits(&reference), "{scores:?}, plainly {reference:?}");
    scores
}

fn check_sets<T: Logit>(case: &Case<'_>, row: Row<'_, T>, wide: &[f64], scores: &[f64]) {
    let picked = scores[case.threshold.to_bits() as usize % scores.len()];
    let around = [picked.next_down(), picked, picked.next_up(), 0.0, f64::INFINITY];
    for threshold in around.into_iter().chain((!case.threshold.is_nan()).then_some(case.threshold)) {
        let wanted = plain::set(wide, scores, threshold);
        let predictor = Predictor::new(case.spec, Thresholds::One(threshold));
        let sets = predictor.predict(one_row(row.logits())).expect("a sound row");
        assert_eq!(sets.labels(), wanted, "the set at {threshold:e} for scores {scores:?}");
        check_many(&predictor, row, &wanted);
        check_by_label(case.spec, row, scores, threshold);
        check_probabilities(&predictor, row, &wanted);
    }
}

/// Each label at its own score or right below it, and at most this threshold: the scores that decide are the
/// definition's.
fn check_by_label<T: Logit>(spec: ScoreSpec, row: Row<'_, T>, scores: &[f64], threshold: f64) {
    let own = |(label, score): (usize, &f64)| {
        if label.is_multiple_of(2) { *score } else { score.next_down() }.min(threshold)
    };
    let own: Vec<f64> = scores.iter().enumerate().map(own).collect();
    let wide: Vec<f64> = (0..scores.len() as u32).map(|label| row.logit(label)).collect();
    let mut wanted = plain::set(&wide, scores, f64::INFINITY);
    wanted.retain(|label| scores[*label as usize] <= own[*label as usize]);
    let predictor = Predictor::new(spec, Thresholds::PerLabel(own));
    let sets = predictor.predict(one_row(row.logits())).expect("a sound row");
    assert_eq!(sets.labels(), wanted, "the set by label, up to {threshold:e}, for scores {scores:?}");
}

/// Narrow rows are taken several at a time: one row many times over, in every lane.
fn check_many<T: Logit>(predictor: &Predictor<ScoreSpec>, row: Row<'_, T>, wanted: &[u32]) {
    let data = row.logits().repeat(9);
    let logits = Logits::new(&data, row.classes()).expect("whole rows");
    let sets = predictor.predict(logits).expect("sound rows");
    assert!(
        sets.iter().all(|set| set == wanted),
        "sets of many rows at {:?}: {sets:?}, wanted {wanted:?}",
        predictor.thresholds()
    );
}

/// How far a sum of probabilities may be from one: it is not promised to the bit.
const ROUNDING: f64 = 1e-12;

fn check_probabilities<T: Logit>(predictor: &Predictor<ScoreSpec>, row: Row<'_, T>, set: &[u32]) {
    let (sets, probabilities) = predictor.predict_probabilities(one_row(row.logits())).expect("a sound row");
    assert_eq!(sets.labels(), set);
    assert_eq!(probabilities.len(), set.len());
    assert!(probabilities.iter().all(|p| (0.0..=1.0 + ROUNDING).contains(p)), "{probabilities:?}");
    let sum: f64 = probabilities.iter().sum();
    assert!(set.is_empty() || (sum - 1.0).abs() <= ROUNDING, "they sum to {sum}: {probabilities:?}");
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
