//! What follows from a score alone, and what the policies change, in rows small enough to check by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Calibrator, Draw, Empty, EntmaxScore, Error, Gamma, InvProbScore, Level, Logit, Logits,
    MarginScore, Masked, PValue, Predictor, Row, Score, ScoreSpec, SortedScores, Thresholds, entmax_grid,
    predict_each, raps_grid,
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

/// A predictor with this threshold.
fn at<S: Score>(score: S, threshold: f64) -> Predictor<S> {
    Predictor::new(score, Thresholds::One(threshold))
}

/// The set of a row.
fn set_of<S: Score>(model: &Predictor<S>, row: &[f32]) -> Vec<u32> {
    model.predict(Logits::new(row, row.len()).unwrap()).unwrap().labels().to_vec()
}

/// The masses over the set of a row, best first.
fn mass_of<S: Score, T: Logit>(model: &Predictor<S>, row: &[T]) -> Vec<f64> {
    model.predict_probabilities(Logits::new(row, row.len()).unwrap()).unwrap().1
}

#[test]
fn the_definition_is_enough() {
    let row = [1.0_f32, 3.0, 2.0];
    assert_eq!(set_of(&at(Behind, 1.0), &row), [1, 2]);
    let scores = conformax::score_all_labels(&Behind, Logits::new(&row, 3).unwrap()).unwrap();
    assert_eq!(scores, [2.0, 0.0, 1.0]);
    let by_label = Predictor::new(Behind, Thresholds::PerLabel(vec![5.0, -1.0, 1.0]));
    assert_eq!(set_of(&by_label, &row), [2, 0]);
    assert_eq!(at(Behind, 1.0).temperature(), None);
}

/// Softmax over the set: three and one parts of four where the logits are ln 3 apart.
#[test]
fn other_scores_spread_the_mass_as_softmax_does() {
    let mass = mass_of(&at(Behind, 2.0), &[5.0 + LN_3, 0.0, 5.0]);
    assert!((mass[0] - 0.75).abs() < 1e-12 && (mass[1] - 0.25).abs() < 1e-12, "{mass:?}");
}

/// Where thresholds differ by label no temperature has the set as its support, so the mass is softmax over the set: ln
/// 3 apart three and one parts of four, although the activation's own index gives other shares.
#[test]
fn thresholds_by_label_spread_the_mass_as_softmax_does() {
    let row = [5.0 + LN_3, 5.0, 4.0];
    for gamma in [Gamma::ENTMAX15, Gamma::SPARSEMAX] {
        let by_label = Predictor::new(EntmaxScore { gamma }, Thresholds::PerLabel(vec![0.5, 3.0, 0.1]));
        assert_eq!(set_of(&by_label, &row.map(|logit| logit as f32)), [0, 1]);
        let mass = mass_of(&by_label, &row);
        assert!((mass[0] - 0.75).abs() < 1e-12 && (mass[1] - 0.25).abs() < 1e-12, "{mass:?}");
        let one = mass_of(&at(EntmaxScore { gamma }, 3.0), &row);
        assert!((one[0] - 0.75).abs() > 0.01, "{one:?}");
    }
}

/// Thresholds by group are one number for a row, and the mass is the activation's at that group's temperature.
#[test]
fn thresholds_by_group_spread_the_mass_as_the_activation_does() {
    let (score, rows, groups) = (EntmaxScore::default(), [1.0, 2.0, 0.5, 1.0, 2.0, 0.5], [1, 0]);
    let by_group = Predictor::new(score, Thresholds::PerGroup(vec![0.5, 2.5]));
    let logits = Logits::new(&rows, 3).unwrap().with_groups(&groups).unwrap();
    let (sets, masses) = by_group.predict_probabilities(logits).unwrap();
    let wanted: Vec<f64> =
        [2.5, 0.5].into_iter().flat_map(|threshold| mass_of(&at(score, threshold), &rows[..3])).collect();
    assert_eq!((sets.sizes().collect::<Vec<_>>(), masses), (vec![3, 1], wanted));
}

/// At β = 0 everything possible is as likely; the log-margin has no temperature at all.
#[test]
fn an_infinite_threshold_spreads_the_mass_over_the_possible() {
    for gamma in [Gamma::ENTMAX15, Gamma::SPARSEMAX] {
        let mass = mass_of(&at(EntmaxScore { gamma }, f64::INFINITY), &[1.0, NEVER, 2.0]);
        assert_eq!(mass, [0.5, 0.5, 0.0]);
        assert_eq!(at(EntmaxScore { gamma }, 2.0).temperature(), Some(gamma.delta() / 2.0));
        assert_eq!(
            at(&ScoreSpec::Entmax(EntmaxScore { gamma }), 2.0).temperature(),
            Some(gamma.delta() / 2.0)
        );
    }
    assert_eq!(at(EntmaxScore { gamma: Gamma::SOFTMAX }, 2.0).temperature(), None);
    let by_label = Predictor::new(EntmaxScore::default(), Thresholds::PerLabel(vec![2.0, 2.0]));
    assert_eq!(by_label.temperature(), None);
}

#[test]
fn impossible_classes_are_in_no_set_where_that_is_asked() {
    let row = [1.0, NEVER, 2.0, NEVER];
    for (masked, everything) in [(Masked::Allowed, &[2, 0, 1, 3][..]), (Masked::Never, &[2, 0])] {
        let model = at(Behind, f64::INFINITY).with_masked(masked);
        assert_eq!((model.masked(), set_of(&model, &row).as_slice()), (masked, everything));
        assert_eq!(set_of(&at(Behind, 0.5).with_masked(masked), &row), [2]);
    }
}

#[test]
fn an_impossible_true_label_is_refused_where_that_is_asked() {
    let flat = [1.0, 2.0, NEVER, 2.0, 1.0, NEVER];
    let calibrated = |labels: &[u32], masked| {
        let mut calibrator = Calibrator::new(InvProbScore, 2)?.with_masked(masked);
        calibrator.extend(Logits::new(&flat, 2)?.labelled(labels)?)?;
        calibrator.finish()
    };
    assert_eq!(calibrated(&[0, 0, 1], Masked::Allowed).unwrap().masked(), Masked::Allowed);
    assert_eq!(calibrated(&[0, 1, 0], Masked::Never).unwrap().masked(), Masked::Never);
    let error = calibrated(&[0, 1, 1], Masked::Never).unwrap_err();
    assert!(matches!(error, Error::MaskedLabel { row: 2, label: 1 }), "{error}");
}

/// A label that no set holds has a p-value below every level; one of probability zero has that of a full set.
#[test]
fn p_values_know_what_minus_infinity_means() {
    let flat = [1.0, 2.0, 2.0, 1.0];
    for (masked, wanted) in [(Masked::Allowed, PValue::new(1, 3)), (Masked::Never, PValue::new(0, 3))] {
        let mut calibrator = Calibrator::new(EntmaxScore::default(), 2).unwrap().with_masked(masked);
        calibrator.extend(Logits::new(&flat, 2).unwrap().labelled(&[0, 0]).unwrap()).unwrap();
        let calibration = calibrator.finish().unwrap();
        let test = [0.0, NEVER];
        let logits = Logits::new(&test, 2).unwrap();
        let p = calibration.p_values(logits).unwrap();
        assert_eq!((p[0], p[1]), (PValue::new(3, 3), wanted));
        for alpha in ["0.1", "0.3", "0.4", "0.9"] {
            let alpha: Alpha = alpha.parse().unwrap();
            let sets = calibration.at(alpha).0.predict(logits).unwrap();
            assert_eq!(p[1].in_set(alpha), sets.contains(0, 1), "{masked:?} at {alpha}");
        }
    }
}

#[test]
fn empty_sets_take_the_top_label_and_its_ties_where_that_is_asked() {
    let row = [1.0, 2.0, 2.0];
    assert_eq!(set_of(&at(Behind, -1.0), &row), Vec::<u32>::new());
    let filled = |threshold| at(Behind, threshold).with_empty(Empty::TopLabel);
    assert_eq!(filled(-1.0).empty(), Empty::TopLabel);
    assert_eq!(set_of(&filled(-1.0), &row), [1, 2]);
    assert_eq!(set_of(&filled(1.0), &row), [1, 2, 0]);
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
    let scores = SortedScores::new(vec![3.0, 1.0, 2.0]).unwrap();
    assert_eq!((scores.n(), scores.as_slice()), (3, &[1.0, 2.0, 3.0][..]));
    let few = Alpha::new(0.01).unwrap();
    assert_eq!((scores.level(few).rows_wanted(), scores.threshold(few)), (Some(99), f64::INFINITY));
    let enough = Alpha::new(0.25).unwrap();
    assert_eq!(scores.level(enough), Level::new(3, enough));
    assert_eq!((scores.level(enough).rank(), scores.threshold(enough)), (Some(3), 3.0));
    assert_eq!(scores.threshold(Alpha::new(0.75).unwrap()), 1.0);
    assert_eq!(
        SortedScores::new(vec![0.0, -0.0])
            .unwrap()
            .as_slice()
            .iter()
            .map(|score| score.to_bits())
            .collect::<Vec<_>>(),
        [0, 0]
    );
}

#[test]
fn smoothed_p_values_count_ties_by_their_draw() {
    let scores = SortedScores::new(vec![1.0, 2.0, 2.0, 2.0, 5.0, 7.0]).unwrap();
    // Two above, three ties and the row itself: (2 + v·4)/7.
    assert_eq!(scores.smoothed_p_value(2.0, 0.0), 2.0 / 7.0);
    assert_eq!(scores.smoothed_p_value(2.0, 0.25), 3.0 / 7.0);
    assert_eq!(scores.smoothed_p_value(2.0, 1.0), scores.p_value(2.0).value());
    assert_eq!((scores.p_value(2.0).count, scores.p_value(2.5).count), (6, 3));
    assert_eq!(scores.p_value(8.0).value(), 1.0 / 7.0);
    assert_eq!(scores.p_value(f64::NAN).value(), 0.0, "what is no score is in no set");
    // A p-value of one tenth: at that level the label is out.
    let tenth = SortedScores::new(vec![1.0; 9]).unwrap().p_value(2.0);
    assert!(!tenth.in_set(Alpha::new(0.1).unwrap()) && tenth.in_set(Alpha::new(0.09).unwrap()));
}

#[test]
fn candidates_are_judged_by_a_capped_rank() {
    let scores = SortedScores::new(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!(scores.judging_threshold(Alpha::new(0.4).unwrap()), 3.0);
    assert_eq!(scores.judging_threshold(Alpha::new(0.01).unwrap()), 4.0);
}

#[test]
fn grids_are_the_documented_ones() {
    let gammas: Vec<f64> = entmax_grid().iter().map(|score| score.gamma.value()).collect();
    assert_eq!(gammas, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]);
    let orders = |classes| -> Vec<u32> {
        let grid = raps_grid(classes, Draw::Conservative);
        assert!(grid.iter().all(|score| score.draw == Draw::Conservative));
        grid.iter().filter(|score| score.lambda.value() == 0.01).map(|score| score.k_reg).collect()
    };
    assert_eq!((orders(10), orders(11), orders(1000)), (vec![1, 5], vec![1, 5, 10], vec![1, 5, 10, 50]));
    assert_eq!(raps_grid(1000, Draw::Conservative).len(), 16);
}

#[cfg(feature = "serde")]
#[test]
fn levels_and_indices_are_serialised_as_numbers() {
    assert_eq!(serde_json::to_string(&Alpha::new(0.05).unwrap()).unwrap(), "0.05");
    assert_eq!(serde_json::to_string(&Gamma::ENTMAX15).unwrap(), "1.5");
}
