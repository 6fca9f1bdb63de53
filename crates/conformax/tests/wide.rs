//! As many classes as a language model has words, and as few as one.

use conformax::{
    Calibration, EntmaxScore, Gamma, InvProbScore, Logits, PValue, Predictor, RapsScore, Row, Score,
    ScoreSpec, Thresholds,
};

const CLASSES: usize = 200_000;

/// A few labels lead, the rest trail far behind; coarse, so that ties are common.
fn wide_row() -> Vec<f32> {
    let mut row: Vec<f32> = (0..CLASSES).map(|k| ((k * 7919) % 1009) as f32 / 256.0 - 9.0).collect();
    for (place, lead) in [3, 77_777, 77_778, 199_999].into_iter().enumerate() {
        row[lead] = 2.0 - place as f32 / 4.0;
    }
    row
}

/// Labels spread over the row, the leaders among them.
fn some_labels() -> impl Iterator<Item = u32> {
    (0..CLASSES as u32).step_by(9_973).chain([3, 77_777, 77_778, 199_999])
}

#[test]
fn sets_of_200_000_classes_are_the_definition() {
    let logits = wide_row();
    let row = Row::new(&logits).unwrap();
    let mut scores = vec![ScoreSpec::InvProb(InvProbScore), ScoreSpec::Raps(RapsScore::default())];
    for gamma in [1.0, 1.3, 1.5, 2.0, 3.0] {
        scores.push(ScoreSpec::Entmax(EntmaxScore { gamma: Gamma::new(gamma).unwrap() }));
    }
    for score in scores {
        for of in [77_778, 9_973] {
            let threshold = score.score(row, of);
            let model = Predictor::new(score, Thresholds::One(threshold));
            let sets = model.predict(Logits::new(&logits, CLASSES).unwrap()).unwrap();
            let set = sets.labels();
            assert!(set.contains(&of), "{score}: a label on the threshold is in");
            for label in some_labels() {
                assert_eq!(set.contains(&label), score.score(row, label) <= threshold, "{score} {label}");
            }
        }
    }
}

#[test]
fn probabilities_of_200_000_classes_sum_to_one() {
    let logits = wide_row();
    let model = Predictor::new(EntmaxScore::default(), Thresholds::One(1e4));
    let (sets, p) = model.predict_probabilities(Logits::new(&logits, CLASSES).unwrap()).unwrap();
    assert_eq!(sets.labels().len(), CLASSES, "so high a threshold lets everybody in");
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-10);
}

#[test]
fn one_class_is_always_right() {
    let logits = [-3.5_f32];
    let model = Predictor::new(EntmaxScore::default(), Thresholds::One(0.0));
    assert_eq!(model.predict(Logits::new(&logits, 1).unwrap()).unwrap().labels(), [0]);
}

/// Every score of the first row is a calibration score too, so that no estimate can tell on which side of it a label
/// is; of the second row none is, so that estimates do.
#[test]
fn p_values_are_the_definition_on_and_off_calibration_scores() {
    const LABELS: usize = 150;
    let row: Vec<f64> = (0..LABELS).map(|k| ((k * 7919) % 1009) as f64 / 77.0).collect();
    let other: Vec<f64> = row.iter().map(|z| z * 1.07 + 0.1).collect();
    let labels: Vec<u32> = (0..LABELS as u32).collect();
    for gamma in [1.0, 1.3, 1.5, 2.0, 3.0] {
        let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
        let calibrating = row.repeat(LABELS);
        let calibrating = Logits::new(&calibrating, LABELS).unwrap().labelled(&labels).unwrap();
        let calibration = Calibration::of(score, calibrating).unwrap();
        let scores = |logits: &[f64]| -> Vec<f64> {
            let row = Row::new(logits).unwrap();
            labels.iter().map(|label| score.score(row, *label)).collect()
        };
        let known = scores(&row);
        for logits in [&row, &other] {
            let count = |own: f64| known.iter().filter(|score| **score >= own).count() as u128 + 1;
            let wanted: Vec<PValue> =
                scores(logits).into_iter().map(|own| PValue::new(count(own), LABELS as u128 + 1)).collect();
            assert_eq!(
                calibration.p_values(Logits::new(logits, LABELS).unwrap()).unwrap(),
                wanted,
                "gamma {gamma}"
            );
        }
    }
}
