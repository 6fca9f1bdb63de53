//! What follows from a score alone, and what the policies change, in rows small enough to check by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Calibrated, CalibratingRows, Calibration, CalibrationScores, Draw, Empty, EntmaxScore, Error,
    Gamma, InvProbScore, Level, Logit, Logits, MarginScore, Masked, Row, Score, TuningRows, average_size,
    calibrate, entmax_grid, judging_threshold, predict_each, raps_grid, smallest,
};

const NEVER: f32 = f32::NEG_INFINITY;
const LN_3: f64 = 1.0986122886681098;

/// A score that has its definition and nothing else: the distance from the top.
struct Behind;

impl Score for Behind {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        row.max() - row.logit(label)
    }
}

fn alpha() -> Alpha {
    Alpha::new(0.5).unwrap()
}

/// A predictor with this threshold.
fn at<S: Score>(score: S, threshold: f64) -> Calibrated<S> {
    Calibrated::new(score, Level { alpha: alpha(), n: 1, rank: Some(1), threshold })
}

/// The set of a row, appended to a label that was there before.
fn set_after_another<S: Score>(model: &Calibrated<S>, row: &[f32]) -> Vec<u32> {
    let mut labels = vec![9];
    model.set_into(Row::new(row).unwrap(), &mut labels);
    assert_eq!(labels.remove(0), 9);
    labels
}

#[test]
fn the_definition_is_enough() {
    let row = Row::new(&[1.0_f32, 3.0, 2.0]).unwrap();
    let (mut labels, mut scores) = (vec![9], vec![9.0]);
    Behind.scored_set_into(row, 1.0, &mut labels, &mut scores);
    assert_eq!((labels, scores), (vec![9, 1, 2], vec![9.0, 0.0, 1.0]));
    let mut all = [9.0; 3];
    Behind.score_all(row, &mut all);
    assert_eq!(all, [2.0, 0.0, 1.0]);
    assert_eq!(set_after_another(&at(Behind, 1.0), &[1.0, 3.0, 2.0]), [1, 2]);
    assert_eq!(Behind.temperature(1.0), None);
}

/// Softmax over the set: three and one parts of four where the logits are ln 3 apart.
#[test]
fn other_scores_spread_the_mass_as_softmax_does() {
    let row = [5.0 + LN_3, 0.0, 5.0];
    let mut mass = Vec::new();
    Behind.probabilities_into(Row::new(&row).unwrap(), &[0, 2], 2.0, &mut mass);
    assert!((mass[0] - 0.75).abs() < 1e-12 && (mass[1] - 0.25).abs() < 1e-12, "{mass:?}");
}

/// At β = 0 everything possible is as likely; the log-margin has no temperature at all.
#[test]
fn an_infinite_threshold_spreads_the_mass_over_the_possible() {
    for gamma in [Gamma::ENTMAX15, Gamma::SPARSEMAX] {
        let mut mass = vec![9.0];
        let row = Row::new(&[1.0, NEVER, 2.0]).unwrap();
        EntmaxScore { gamma }.probabilities_into(row, &[2, 0, 1], f64::INFINITY, &mut mass);
        assert_eq!(mass, [9.0, 0.5, 0.5, 0.0]);
        assert_eq!(EntmaxScore { gamma }.temperature(2.0), Some(gamma.delta() / 2.0));
    }
    assert_eq!(EntmaxScore { gamma: Gamma::SOFTMAX }.temperature(2.0), None);
}

/// What a score says through its trait alone.
#[derive(Debug, PartialEq)]
struct Said {
    each: Vec<f64>,
    all: Vec<f64>,
    set: Vec<u32>,
    scored: (Vec<u32>, Vec<f64>),
    temperature: Option<f64>,
    mass: Vec<f64>,
}

impl Said {
    fn by<S: Score>(score: S, row: &[f32], threshold: f64) -> Self {
        let row = Row::new(row).unwrap();
        let mut said = Self {
            each: (0..row.classes() as u32).map(|label| score.score(row, label)).collect(),
            all: vec![-7.0; row.classes()],
            set: Vec::new(),
            scored: (Vec::new(), Vec::new()),
            temperature: score.temperature(threshold),
            mass: Vec::new(),
        };
        score.score_all(row, &mut said.all);
        score.set_into(row, threshold, &mut said.set);
        score.scored_set_into(row, threshold, &mut said.scored.0, &mut said.scored.1);
        score.probabilities_into(row, &said.set, threshold, &mut said.mass);
        said
    }
}

#[test]
fn a_reference_says_what_its_score_says() {
    let score = EntmaxScore { gamma: Gamma::ENTMAX15 };
    let reference = &score;
    let said = Said::by(reference, &[4.0, 3.0, 0.0, 3.5], 2.5);
    assert_eq!(said, Said::by(score, &[4.0, 3.0, 0.0, 3.5], 2.5));
    assert_eq!((said.each[3], said.temperature), (0.5, Some(0.8)));
    assert_eq!((said.set.as_slice(), &said.scored.0, &said.all), (&[0, 3, 1][..], &said.set, &said.each));
    assert_eq!(said.mass.len(), 3);
}

#[test]
fn impossible_classes_are_in_no_set_where_that_is_asked() {
    let row = [1.0, NEVER, 2.0, NEVER];
    for (masked, everything) in [(Masked::Allowed, &[2, 0, 1, 3][..]), (Masked::Never, &[2, 0])] {
        let model = at(Behind, f64::INFINITY).with_masked(masked);
        assert_eq!((model.masked(), set_after_another(&model, &row).as_slice()), (masked, everything));
        assert_eq!(set_after_another(&at(Behind, 0.5).with_masked(masked), &row), [2]);
    }
}

#[test]
fn an_impossible_true_label_is_refused_where_that_is_asked() {
    let flat = [1.0, 2.0, NEVER, 2.0, 1.0, NEVER];
    let calibrated = |labels: &[u32], masked| {
        Calibration::new(InvProbScore, Logits::new(&flat, 2).unwrap(), labels, masked)
    };
    assert_eq!(calibrated(&[0, 0, 1], Masked::Allowed).unwrap().masked(), Masked::Allowed);
    assert_eq!(calibrated(&[0, 1, 0], Masked::Never).unwrap().masked(), Masked::Never);
    let error = calibrated(&[0, 1, 1], Masked::Never).unwrap_err();
    assert!(matches!(error, Error::MaskedLabel { row: 2, label: 1 }), "{error}");
}

#[test]
fn empty_sets_take_the_top_label_and_its_ties_where_that_is_asked() {
    let row = [1.0, 2.0, 2.0];
    assert_eq!(set_after_another(&at(Behind, -1.0), &row), Vec::<u32>::new());
    let filled = |threshold| at(Behind, threshold).with_empty(Empty::TopLabel);
    assert_eq!(filled(-1.0).empty(), Empty::TopLabel);
    assert_eq!(set_after_another(&filled(-1.0), &row), [1, 2]);
    assert_eq!(set_after_another(&filled(1.0), &row), [1, 2, 0]);
}

#[test]
fn several_levels_at_once_are_what_each_is_alone() {
    let flat: Vec<f32> = (0..60).map(|index| (index * 7 % 11) as f32 / 2.0).collect();
    let logits = Logits::new(&flat, 3).unwrap();
    let models = [0.5, 2.0].map(|threshold| at(MarginScore, threshold - 1.0));
    let together = predict_each(&models, logits).unwrap();
    let alone: Vec<_> = models.iter().map(|model| model.predict(logits).unwrap()).collect();
    assert_eq!(together, alone);
    assert!(alone[0] != alone[1]);
}

#[test]
fn parts_of_a_calibration_are_what_was_put_in() {
    let scores = CalibrationScores::new(vec![3.0, 1.0, 2.0]).unwrap();
    assert_eq!((scores.n(), scores.as_slice()), (3, &[1.0, 2.0, 3.0][..]));
    let few = scores.level(Alpha::new(0.01).unwrap());
    assert_eq!((few.rows_wanted(), few.threshold), (Some(99), f64::INFINITY));
    let enough = scores.level(Alpha::new(0.25).unwrap());
    assert_eq!((enough.rows_wanted(), enough.rank, enough.threshold), (None, Some(3), 3.0));
    assert_eq!(scores.level(Alpha::new(0.75).unwrap()).threshold, 1.0);
    let flat = [0.0_f32, 1.0, 2.0, 0.0];
    let model = calibrate(WithTemperature, Logits::new(&flat, 2).unwrap(), &[0, 1], alpha()).unwrap();
    assert_eq!(model.level().threshold, 2.0);
    assert_eq!(model.temperature(), Some(4.0));
}

/// As `Behind`, with a temperature.
#[derive(Clone)]
struct WithTemperature;

impl Score for WithTemperature {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        Behind.score(row, label)
    }

    fn temperature(&self, threshold: f64) -> Option<f64> {
        Some(2.0 * threshold)
    }
}

#[test]
fn smoothed_p_values_count_ties_by_their_draw() {
    let scores = CalibrationScores::new(vec![1.0, 2.0, 2.0, 2.0, 5.0, 7.0]).unwrap();
    // Two above, three ties and the row itself: (2 + v·4)/7.
    assert_eq!(scores.smoothed_p_value(2.0, 0.0), 2.0 / 7.0);
    assert_eq!(scores.smoothed_p_value(2.0, 0.25), 3.0 / 7.0);
    assert_eq!(scores.smoothed_p_value(2.0, 1.0), scores.p_value(2.0).value());
    assert_eq!((scores.p_value(2.0).at_least, scores.p_value(2.5).at_least), (5, 2));
    assert_eq!(scores.p_value(8.0).value(), 1.0 / 7.0);
    // A p-value of one tenth: at that level the label is out.
    let tenth = CalibrationScores::new(vec![1.0; 9]).unwrap().p_value(2.0);
    assert!(!tenth.in_set(Alpha::new(0.1).unwrap()) && tenth.in_set(Alpha::new(0.09).unwrap()));
}

#[test]
fn candidates_are_judged_by_a_capped_rank_and_the_first_of_the_smallest_wins() {
    let scores = CalibrationScores::new(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!(judging_threshold(&scores, Alpha::new(0.4).unwrap()), 3.0);
    assert_eq!(judging_threshold(&scores, Alpha::new(0.01).unwrap()), 4.0);
    assert_eq!(smallest(&[3.0, 2.0, 4.0, 2.0]), Some(1));
    assert_eq!((smallest(&[1.0, 2.0]), smallest(&[])), (Some(0), None));
    let flat = [0.0_f32, 1.0, 5.0, 0.0, 0.0, 0.0];
    let logits = Logits::new(&flat, 2).unwrap();
    assert_eq!(average_size(&Behind, logits, 1.0).unwrap(), 5.0 / 3.0);
    let labels = [0, 0, 1];
    assert_eq!(TuningRows::new(logits, &labels).unwrap().len(), 3);
    assert_eq!(CalibratingRows::new(logits, &labels).unwrap().len(), 3);
}

#[test]
fn grids_are_the_documented_ones() {
    let gammas: Vec<f64> = entmax_grid().iter().map(|score| score.gamma.value()).collect();
    assert_eq!(gammas, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]);
    let orders = |classes| -> Vec<u32> {
        let grid = raps_grid(classes, Draw::Zero);
        assert!(grid.iter().all(|score| score.draw == Draw::Zero));
        grid.iter().filter(|score| score.lambda == 0.01).map(|score| score.k_reg).collect()
    };
    assert_eq!((orders(10), orders(11), orders(1000)), (vec![1, 5], vec![1, 5, 10], vec![1, 5, 10, 50]));
    assert_eq!(raps_grid(1000, Draw::Zero).len(), 16);
}

#[cfg(feature = "serde")]
#[test]
fn levels_and_indices_are_serialised_as_numbers() {
    assert_eq!(serde_json::to_string(&Alpha::new(0.05).unwrap()).unwrap(), "0.05");
    assert_eq!(serde_json::to_string(&Gamma::ENTMAX15).unwrap(), "1.5");
}
