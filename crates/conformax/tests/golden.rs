//! The golden values: numbers of an independent oracle in 60 digits. See `fixtures/golden/README.md`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::entmax;
use crate::common::npy::{golden, read_f32, read_f64, read_i64};
use crate::common::tolerance::{PROBABILITY, ROUNDING, close};
use conformax::{
    Alpha, ApsScore, Calibration, Draw, InvProbScore, Lambda, Logits, MarginScore, Metrics, PredictionSets,
    Predictor, Promise, RapsScore, Row, SapsScore, Score, ScoreSpec, Strata, TopKScore, conformal_rank,
    evaluate, score_all_labels,
};
use serde_json::Value;

fn read(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(golden(name)).unwrap()).unwrap()
}

/// A number, or an infinity written as text.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn sorted(set: &[u32]) -> Vec<u32> {
    let mut set = set.to_vec();
    set.sort_unstable();
    set
}

fn labels(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|label| label.as_u64().unwrap() as u32).collect()
}

/// How many of each kind of number were compared, so that a file that lost cases does not pass.
#[derive(Debug, Default, PartialEq)]
struct Compared {
    rows: usize,
    scores: usize,
    sets: usize,
    temperatures: usize,
    probabilities: usize,
}

#[test]
fn scores_sets_and_probabilities_are_those_of_the_oracle() {
    let golden = read("golden.json");
    let cases = golden["scores"].as_array().unwrap();
    let mut compared = Compared::default();
    for case in cases {
        compare_row(case, &mut compared);
    }
    let wanted = Compared { rows: 228, scores: 6_924, sets: 576, temperatures: 528, probabilities: 480 };
    assert_eq!(compared, wanted);
    assert_eq!(compared.rows, cases.len());
}

fn compare_row(case: &Value, compared: &mut Compared) {
    let name = format!("{} at gamma {}", case["row"], case["gamma"]);
    let logits = numbers(&case["logits"]);
    let narrow: Vec<f32> = logits.iter().map(|logit| *logit as f32).collect();
    let score = entmax(number(&case["gamma"]));
    let row = Row::new(&logits).unwrap();
    compared.rows += 1;
    for (label, wanted) in (0..).zip(numbers(&case["scores"])) {
        let got = score.score(row, label);
        assert!(close(got, wanted, ROUNDING), "{name}, label {label}: {got} for {wanted}");
        let narrow = score.score(Row::new(&narrow).unwrap(), label);
        assert_eq!(got.to_bits(), narrow.to_bits(), "{name}, label {label} as f32");
        compared.scores += 1;
    }
    for at in case["at"].as_array().unwrap() {
        compare_set(&name, &logits, crate::common::at(score, number(&at["q"])), at, compared);
    }
}

fn compare_set<S: Score>(
    name: &str,
    logits: &[f64],
    model: Predictor<S>,
    at: &Value,
    compared: &mut Compared,
) {
    let name = format!("{name}, q = {}", at["q"]);
    let (sets, packed) = model.predict_probabilities(Logits::new(logits, logits.len()).unwrap()).unwrap();
    assert_eq!(sorted(sets.labels()), labels(&at["set"]), "{name}");
    compared.sets += 1;
    if let Some(beta) = at.get("beta") {
        assert!(close(model.temperature().unwrap(), number(beta), ROUNDING), "{name}");
        compared.temperatures += 1;
    }
    if let Some(wanted) = at.get("probabilities") {
        let mut got = vec![0.0; logits.len()];
        for (label, p) in sets.labels().iter().zip(packed) {
            got[*label as usize] = p;
        }
        for (label, (got, wanted)) in got.into_iter().zip(numbers(wanted)).enumerate() {
            assert!((got - wanted).abs() <= PROBABILITY, "{name}, label {label}: {got} for {wanted}");
        }
        compared.probabilities += 1;
    }
}

/// `<` in place of `≤` fails here.
#[test]
fn labels_on_the_boundary_are_in_the_set() {
    let golden = read("golden.json");
    let cases = golden["boundary"].as_array().unwrap();
    assert_eq!(cases.len(), 13);
    for case in cases {
        let logits = numbers(&case["logits"]);
        let model = crate::common::at(entmax(number(&case["gamma"])), number(&case["q"]));
        let sets = model.predict(Logits::new(&logits, logits.len()).unwrap()).unwrap();
        assert_eq!(sorted(sets.labels()), labels(&case["set"]), "{case}");
    }
}

#[test]
fn ranks_are_those_of_exact_arithmetic() {
    let golden = read("golden.json");
    let cases = golden["ranks"].as_array().unwrap();
    assert_eq!(cases.len(), 240);
    for case in cases {
        let alpha: Alpha = case["alpha"].as_str().unwrap().parse().unwrap();
        let rank = conformal_rank(case["n"].as_u64().unwrap(), alpha);
        assert_eq!(rank, case["rank"].as_u64(), "{case}");
    }
}

/// The score that a procedure of `experiment.json` names.
fn procedure(result: &Value) -> ScoreSpec {
    let draw = Draw::default();
    match result["kind"].as_str().unwrap() {
        "entmax" => ScoreSpec::Entmax(entmax(number(&result["arg"]))),
        "lac" => ScoreSpec::InvProb(InvProbScore),
        "aps" => ScoreSpec::Aps(ApsScore { draw }),
        "aps0" => ScoreSpec::Aps(ApsScore { draw: Draw::Conservative }),
        "raps" => {
            let [lambda, k_reg] = numbers(&result["arg"])[..] else { panic!("{result}") };
            let lambda = Lambda::new(lambda).unwrap();
            ScoreSpec::Raps(RapsScore { lambda, k_reg: k_reg as u32, draw, ..RapsScore::default() })
        }
        "saps" => ScoreSpec::Saps(SapsScore { lambda: Lambda::new(number(&result["arg"])).unwrap(), draw }),
        "top_k" => ScoreSpec::TopK(TopKScore),
        "margin" => ScoreSpec::Margin(MarginScore),
        other => panic!("no procedure is called {other}"),
    }
}

/// A whole split-conformal run, from logits to metrics, for twelve procedures at five levels.
#[test]
fn the_experiment_comes_out_as_the_oracle_ran_it() {
    let (logits, u) = (read_f32("logits.npy"), read_f64("u.npy"));
    let true_labels: Vec<u32> =
        read_i64("labels.npy").into_iter().map(|label| label.try_into().unwrap()).collect();
    let experiment = read("experiment.json");
    let size = |key: &str| experiment[key].as_u64().unwrap() as usize;
    let (n_cal, n_test, classes) = (size("n_cal"), size("n_test"), size("classes"));
    let rows = Logits::new(&logits, classes).unwrap().with_u(&u).unwrap();
    assert_eq!((rows.len(), true_labels.len()), (n_cal + n_test, n_cal + n_test));
    let (cal_labels, test_labels) = true_labels.split_at(n_cal);
    let results = experiment["results"].as_array().unwrap();
    assert_eq!(results.len(), 60);
    for result in results {
        let name = format!("{} at {}", result["procedure"], result["alpha"]);
        let alpha: Alpha = result["alpha"].as_str().unwrap().parse().unwrap();
        let calibration =
            Calibration::of(procedure(result), rows.rows(0..n_cal).labelled(cal_labels).unwrap()).unwrap();
        let (model, promise) = calibration.at(alpha);
        let Promise::Marginal(level) = promise else { panic!("{name}: {promise:?}") };
        assert_eq!(level.rank(), result["rank"].as_u64(), "{name}");
        let threshold = model.thresholds().as_slice()[0];
        assert!(close(threshold, number(&result["threshold"]), ROUNDING), "{name}: {threshold}");
        let test = rows.rows(n_cal..n_cal + n_test);
        let sets = model.predict(test).unwrap();
        compare_sizes(&name, &sets, result);
        let scores = score_all_labels(model.score(), test).unwrap();
        let boundary = scores.iter().filter(|score| **score == threshold).count();
        assert_eq!(boundary as u64, result["boundary_labels"].as_u64().unwrap(), "{name}");
        compare_metrics(&name, &evaluate(&sets, test_labels, alpha, &Strata::default()).unwrap(), result);
    }
}

fn compare_sizes(name: &str, sets: &PredictionSets, result: &Value) {
    let wanted: Vec<usize> =
        result["sizes"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    assert_eq!(sets.sizes().collect::<Vec<_>>(), wanted, "{name}");
}

fn compare_metrics(name: &str, metrics: &Metrics, result: &Value) {
    assert_eq!(metrics.coverage, number(&result["coverage"]), "{name}");
    assert_eq!(metrics.average_size, number(&result["average_size"]), "{name}");
    assert_eq!(metrics.singleton_ratio, number(&result["singleton_ratio"]), "{name}");
    assert_eq!(metrics.singleton_coverage, result["singleton_coverage"].as_f64(), "{name}");
    assert!((metrics.sscv - number(&result["sscv"])).abs() <= ROUNDING, "{name}: {}", metrics.sscv);
    let strata = result["strata"].as_array().unwrap();
    assert_eq!(metrics.strata.len(), strata.len(), "{name}");
    for (got, wanted) in metrics.strata.iter().zip(strata) {
        assert_eq!(got.from, wanted["from"].as_u64().unwrap(), "{name}");
        assert_eq!(got.n, wanted["n"].as_u64().unwrap(), "{name}, from {}", got.from);
        assert_eq!(got.coverage, wanted["coverage"].as_f64(), "{name}, from {}", got.from);
    }
}
