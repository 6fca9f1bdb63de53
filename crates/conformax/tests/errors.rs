//! Bad input gives an error that carries the place and the value, from any number of threads; nothing panics.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::{at, cases, entmax};
use conformax::{
    Alpha, ApsScore, Calibration, Calibrator, CoverageLaw, Draw, Entmax, EntmaxScore, Error, Evaluator,
    Gamma, Lambda, Logit, Logits, Loss, Masked, Parameters, PredictionSets, Predictor, Ranks, Result, Rivals,
    Row, Scheme, Score, ScoreSpec, SortedScores, Strata, Tally, ThresholdSearch, TuneOn, Tuner, Tuning,
    TuningSplit, calibrate, evaluate, predict_each, rows_for_precision, score_all_labels, score_labels,
    split, split_stratified, tune,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn alpha() -> Alpha {
    "0.1".parse().unwrap()
}

fn model() -> Predictor<EntmaxScore> {
    at(entmax(1.5), 1.0)
}

/// What every operation that reads rows of logits says to these, with the operation's name.
fn read_by_all<T: Logit>(logits: Logits<'_, T>, labels: &[u32]) -> Vec<(&'static str, Result<()>)> {
    let score = entmax(1.3);
    let classes = logits.classes();
    let scores = SortedScores::new(vec![1.0]).unwrap();
    let calibration = Calibration::from_scores(score, classes, scores).unwrap();
    let never = || Calibrator::new(score, classes).unwrap().with_masked(Masked::Never);
    let labelled = || logits.labelled(labels);
    let mut out = vec![0.0_f64; logits.as_slice().len()];
    vec![
        ("score_labels", labelled().and_then(|rows| score_labels(&score, rows)).map(drop)),
        ("score_labels, APS", labelled().and_then(|rows| score_labels(&ApsScore::default(), rows)).map(drop)),
        ("score_all_labels", score_all_labels(&score, logits).map(drop)),
        ("calibrate", calibrate(score, logits, labels, alpha()).map(drop)),
        ("masked never", labelled().and_then(|rows| never().extend(rows))),
        (
            "ThresholdSearch",
            labelled().and_then(|rows| ThresholdSearch::new(score, classes, &[alpha()])?.extend(rows)),
        ),
        ("Evaluator", labelled().and_then(|rows| Evaluator::new(vec![model()], classes)?.extend(rows))),
        ("p_values", calibration.p_values(logits).map(drop)),
        ("predict", model().predict(logits).map(drop)),
        ("predict_probabilities", model().predict_probabilities(logits).map(drop)),
        ("predict_each", predict_each(&[model(), model()], logits).map(drop)),
        ("SizeCounter", tuner(classes).and_then(|tuner| tuner.finish()?.extend(logits))),
        ("PairCounter", tuner(classes).and_then(|tuner| tuner.finish_selecting()?.extend(labelled()?))),
        ("forward_rows", Entmax::default().forward_rows(logits).map(drop)),
        ("forward_rows_into", Entmax::default().forward_rows_into(logits, &mut out)),
        ("loss_rows", Entmax::default().loss_rows(logits, labels).map(drop)),
        ("tune", tune_both(logits, labels)),
    ]
}

fn tune_both<T: Logit>(logits: Logits<'_, T>, labels: &[u32]) -> Result<()> {
    let rows = logits.labelled(labels)?;
    tune(tune_on(&[entmax(1.5)], rows, rows, Masked::Allowed)).map(drop)
}

fn tune_on<'a, T>(
    grid: &'a [EntmaxScore],
    tuning: conformax::Labelled<'a, T>,
    calibrating: conformax::Labelled<'a, T>,
    masked: Masked,
) -> TuneOn<'a, EntmaxScore, T> {
    TuneOn { grid, tuning, calibrating, alpha: alpha(), method: Tuning::Valid, masked }
}

/// The first pass of tuning, over a sound row.
fn tuner(classes: usize) -> Result<Tuner<EntmaxScore>> {
    let sound = vec![0.0; classes];
    let mut tuner = Tuner::new(vec![entmax(1.5)], classes, alpha())?;
    tuner.extend(Logits::new(&sound, classes)?.labelled(&[0])?)?;
    Ok(tuner)
}

/// Three rows of five classes, one of which is to go wrong.
fn sound_rows() -> Vec<f64> {
    vec![1.0, 0.0, 2.0, -1.0, f64::NEG_INFINITY, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.5, 0.25, -9.0]
}

#[test]
fn sound_rows_pass_everywhere() {
    for (name, result) in read_by_all(Logits::new(&sound_rows(), 5).unwrap(), &[0, 1, 2]) {
        assert_eq!(result, Ok(()), "{name}");
    }
}

fn rejects_with_its_place<T: Logit>(convert: fn(f64) -> T, bad: f64) {
    let mut rows: Vec<T> = sound_rows().into_iter().map(convert).collect();
    rows[2 * 5 + 3] = convert(bad);
    let logits = Logits::new(&rows, 5).unwrap();
    for (name, result) in read_by_all(logits, &[0, 1, 2]) {
        let Err(Error::Logit { row: 2, class: 3, value }) = result else { panic!("{name}: {result:?}") };
        assert!(value.to_bits() == bad.to_bits() || (value.is_nan() && bad.is_nan()), "{name}: {value}");
    }
    assert!(matches!(logits.row(2), Err(Error::Logit { row: 2, class: 3, .. })));
}

#[test]
fn rejects_nan_and_infinity_with_their_place() {
    for bad in [f64::NAN, -f64::NAN, f64::INFINITY] {
        rejects_with_its_place(|value| value, bad);
        rejects_with_its_place(|value| value as f32, bad);
        #[cfg(feature = "half")]
        rejects_with_its_place(half::f16::from_f64, bad);
        #[cfg(feature = "half")]
        rejects_with_its_place(half::bf16::from_f64, bad);
    }
}

/// Lanes, tails and blocks of rows: wherever the bad logit is, it is found.
#[test]
fn finds_a_bad_logit_at_any_place() {
    for classes in (1_usize..=70).chain([999, 1_000]) {
        for class in (0..classes).step_by(classes.div_ceil(40)) {
            let mut row = vec![0.5_f32; classes];
            row[class] = f32::NAN;
            let Err(Error::Logit { row: 0, class: found, value }) = Row::new(&row) else {
                panic!("class {class} of {classes}")
            };
            assert!(found == class && value.is_nan());
            row[class] = f32::INFINITY;
            assert_eq!(Row::new(&row).unwrap_err(), Error::Logit { row: 0, class, value: f64::INFINITY });
        }
    }
}

#[test]
fn rejects_a_row_without_a_possible_class() {
    let mut rows = sound_rows();
    rows[5..10].fill(f64::NEG_INFINITY);
    for (name, result) in read_by_all(Logits::new(&rows, 5).unwrap(), &[0, 1, 2]) {
        // Where masks are taken at their word, the label is looked at first.
        let wanted = match name {
            "masked never" => Error::MaskedLabel { row: 1, label: 1 },
            _ => Error::AllMasked { row: 1 },
        };
        assert_eq!(result, Err(wanted), "{name}");
    }
}

#[test]
fn rejects_labels_that_are_no_class_and_labels_of_other_rows() {
    let rows = sound_rows();
    let logits = Logits::new(&rows, 5).unwrap();
    let reads_labels = |name: &str| {
        !["score_all_labels", "p_values", "SizeCounter"].contains(&name)
            && !name.starts_with("predict")
            && !name.starts_with("forward")
    };
    for (name, result) in read_by_all(logits, &[0, 5, 9]).into_iter().filter(|(name, _)| reads_labels(name)) {
        assert_eq!(result, Err(Error::Label { row: 1, label: 5, classes: 5 }), "{name}");
    }
    for labels in [&[0, 1][..], &[0, 1, 2, 3]] {
        let wanted = Error::Rows { what: "labels", wanted: 3, got: labels.len() };
        for (name, result) in read_by_all(logits, labels).into_iter().filter(|(name, _)| reads_labels(name)) {
            assert_eq!(result, Err(wanted.clone()), "{name}");
        }
    }
    let sets = PredictionSets::from_parts(2, vec![0, 1], vec![0]).unwrap();
    let metrics = |labels: &[u32]| evaluate(&sets, labels, alpha(), &Strata::default()).map(drop);
    assert_eq!(metrics(&[2]), Err(Error::Label { row: 0, label: 2, classes: 2 }));
    assert_eq!(metrics(&[0, 1]), Err(Error::Rows { what: "labels", wanted: 1, got: 2 }));
}

#[test]
fn rejects_a_masked_true_label_where_the_mask_says_never() {
    let rows = sound_rows();
    let logits = Logits::new(&rows, 5).unwrap();
    let calibration = |masked| {
        let mut calibrator = Calibrator::new(entmax(1.5), 5).unwrap().with_masked(masked);
        calibrator.extend(logits.labelled(&[4, 0, 0]).unwrap())
    };
    assert_eq!(calibration(Masked::Never), Err(Error::MaskedLabel { row: 0, label: 4 }));
    assert_eq!(calibration(Masked::Allowed), Ok(()));
    let tuned = |masked| {
        let labels = [0, 0, 4];
        let reversed: Vec<f64> = rows.chunks(5).rev().flatten().copied().collect();
        let calibrating = Logits::new(&reversed, 5).unwrap();
        let (tuning, calibrating) = (logits.labelled(&[0, 0, 0])?, calibrating.labelled(&labels)?);
        tune(tune_on(&[entmax(1.5)], tuning, calibrating, masked)).map(drop)
    };
    assert_eq!(tuned(Masked::Never), Err(Error::MaskedLabel { row: 2, label: 4 }));
    assert_eq!(tuned(Masked::Allowed), Ok(()));
}

#[test]
fn rejects_shapes_that_are_no_matrix() {
    assert_eq!(Logits::<f32>::new(&[], 0).unwrap_err(), Error::Classes(0));
    assert_eq!(Logits::new(&[1.0_f32; 4], 0).unwrap_err(), Error::Classes(0));
    assert_eq!(Row::<f64>::new(&[]).unwrap_err(), Error::Classes(0));
    assert_eq!(Logits::new(&[1.0_f32; 7], 3).unwrap_err(), Error::Shape { len: 7, classes: 3 });
    let two = [1.0_f32; 4];
    let logits = Logits::new(&two, 2).unwrap();
    for draws in [&[0.5][..], &[0.5; 3]] {
        let wanted = Error::Rows { what: "uniform draws", wanted: 2, got: draws.len() };
        assert_eq!(logits.with_u(draws).unwrap_err(), wanted);
    }
    for bad in [1.0, -0.1, f64::INFINITY] {
        assert_eq!(logits.with_u(&[0.0, bad]).unwrap_err(), Error::Draw { row: 1, value: bad });
        assert!(logits.row(0).unwrap().with_u(bad).is_err());
    }
    assert!(matches!(logits.with_u(&[f64::NAN, 0.0]), Err(Error::Draw { row: 0, .. })));
}

/// Above 7 it forgets that scores are numbers.
#[derive(Clone)]
struct Faulty;

impl Score for Faulty {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        if row.max() > 7.0 { f64::NAN } else { row.max() - row.logit(label) }
    }
}

/// A score of the caller's own that is no number is named as any other fault is: by the first row that has one.
#[test]
fn rejects_a_score_that_is_no_number_with_its_row() {
    let mut data = vec![1.0_f32; 3000];
    (data[5 * 3], data[9 * 3]) = (8.0, f32::NAN);
    data[600 * 3] = f32::NEG_INFINITY;
    let rows = Logits::new(&data, 3).unwrap().labelled(&[0; 1000]).unwrap();
    let wanted = Err(Error::ScoreIsNan { row: 5 });
    let severity = Scheme::Risk(Loss::severity(vec![1.0; 3]).unwrap());
    let new = || Calibrator::new(Faulty, 3).unwrap();
    for masked in [Masked::Allowed, Masked::Never] {
        for calibrator in [
            new(),
            new().under(severity.clone()).unwrap(),
            new().with_ranks(Ranks::new(vec![3; 3]).unwrap()).unwrap(),
        ] {
            assert_eq!(calibrator.with_masked(masked).extend(rows), wanted);
        }
        let mut tuner = Tuner::new(vec![Faulty], 3, alpha()).unwrap().with_masked(masked);
        assert_eq!(tuner.extend(rows), wanted);
        let mut search = ThresholdSearch::new(Faulty, 3, &[alpha()]).unwrap().with_masked(masked);
        assert_eq!(search.extend(rows), wanted);
    }
}

#[test]
fn rejects_nothing_to_work_on() {
    let none = Logits::<f32>::new(&[], 3).unwrap();
    assert_eq!(calibrate(entmax(1.5), none, &[], alpha()).unwrap_err(), Error::NoCalibrationRows);
    assert_eq!(SortedScores::new(vec![]).unwrap_err(), Error::NoCalibrationRows);
    let nothing = Calibration::from_scores(entmax(1.5), 3, SortedScores::default());
    assert_eq!(nothing.unwrap_err(), Error::NoCalibrationRows);
    assert_eq!(Evaluator::new(vec![model()], 3).unwrap().finish().unwrap_err(), Error::NoTestRows);
    assert_eq!(Tuner::new(vec![entmax(1.5)], 3, alpha()).unwrap().finish().unwrap_err(), Error::NoTuningRows);
    let search = ThresholdSearch::new(entmax(1.5), 3, &[alpha()]).unwrap();
    assert_eq!(search.finish_pass().unwrap_err(), Error::NoCalibrationRows);
    assert_eq!(SortedScores::new(vec![0.0, f64::NAN]).unwrap_err(), Error::ScoreIsNan { row: 1 });
    assert_eq!(Rivals::<EntmaxScore>::new(Vec::new()).unwrap_err(), Error::NoCandidates);
    assert_eq!(Tally::new(0).unwrap_err(), Error::Classes(0));
    let empty = model().predict(none).unwrap();
    assert!(empty.is_empty());
    assert_eq!(evaluate(&empty, &[], alpha(), &Strata::default()).unwrap_err(), Error::NoTestRows);
    let (three, two) = ([1.0_f32, 2.0, 3.0], [1.0_f32, 2.0]);
    let same = Logits::new(&three, 3).unwrap().labelled(&[0]).unwrap();
    let other = Logits::new(&two, 2).unwrap().labelled(&[0]).unwrap();
    let no_rows = none.labelled(&[]).unwrap();
    let tuned = |grid: &[EntmaxScore], tuning, calibrating| {
        tune(tune_on(grid, tuning, calibrating, Masked::Allowed)).unwrap_err()
    };
    assert_eq!(tuned(&[], same, same), Error::NoCandidates);
    assert_eq!(tuned(&[entmax(1.5)], same, other), Error::ClassCount { wanted: 3, got: 2 });
    assert_eq!(tuned(&[entmax(1.5)], no_rows, same), Error::NoTuningRows);
    assert_eq!(tuned(&[entmax(1.5)], same, no_rows), Error::NoCalibrationRows);
}

#[test]
fn rejects_numbers_out_of_their_range() {
    for bad in [0.0, 1.0, -0.1, 1.1, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Alpha::new(bad), Err(Error::Alpha(bad)));
        assert_eq!(Alpha::from_confidence(bad), Err(Error::Confidence(bad)));
    }
    assert!(Alpha::new(f64::NAN).is_err() && Alpha::from_confidence(f64::NAN).is_err());
    for bad in ["0", "1", "1.0", "2", "0.0"] {
        assert!(matches!(bad.parse::<Alpha>(), Err(Error::Alpha(_))), "{bad}");
    }
    for bad in ["", "ten", "0.1.2", "-", "--0.1", "0.1234567890123456789"] {
        assert_eq!(bad.parse::<Alpha>(), Err(Error::Decimal(bad.to_owned())), "{bad}");
    }
    // Numbers all the same, and told as what they are out of.
    assert_eq!("-0.1".parse::<Alpha>(), Err(Error::Alpha(-0.1)));
    assert_eq!("-1.5".parse::<Gamma>(), Err(Error::Gamma(-1.5)));
    for bad in [0.999, 0.0, -1.0, 16.5, f64::INFINITY] {
        assert_eq!(Gamma::new(bad), Err(Error::Gamma(bad)));
    }
    assert!(Gamma::new(f64::NAN).is_err());
    for bad in [-0.5, f64::INFINITY] {
        let wanted = Err(Error::Parameter { name: "lambda", wanted: "finite and not negative", got: bad });
        assert_eq!(Lambda::new(bad).map(drop), wanted);
        assert!(matches!(Entmax::default().with_beta(bad), Err(Error::Parameter { name: "beta", .. })));
    }
    let unknown =
        ScoreSpec::named("softmax", Parameters { draw: Some(Draw::Conservative), ..Parameters::default() });
    assert_eq!(unknown.unwrap_err(), Error::UnknownScore("softmax".to_owned()));
    for bad in [&[0.5, 0.6][..], &[]] {
        assert!(matches!(split(10, bad, 0), Err(Error::Fractions(_))), "{bad:?}");
        assert!(matches!(split_stratified(&[0; 10], bad, 0), Err(Error::Fractions(_))), "{bad:?}");
    }
    assert_eq!(split(10, &[1.0, 0.0], 0), Err(Error::Fraction(0.0)));
    assert_eq!(split_stratified(&[0; 10], &[1.5, -0.5], 0), Err(Error::Fraction(-0.5)));
    assert_eq!(TuningSplit::new(10, 1.5, 0), Err(Error::Fraction(1.5)));
    assert_eq!(Strata::new(&[0, 3, 3]), Err(Error::Strata { from: 3 }));
    assert_eq!(CoverageLaw::new(9, Some(10)).map(drop), Err(Error::Rank { rank: 10, n: 9 }));
    assert_eq!(CoverageLaw::new(9, Some(0)).map(drop), Err(Error::Rank { rank: 0, n: 9 }));
    assert_eq!(rows_for_precision(alpha(), 0.0, 0.9), Err(Error::Precision(0.0)));
    assert_eq!(rows_for_precision(alpha(), 0.01, 1.0), Err(Error::Probability(1.0)));
}

#[test]
fn messages_name_the_place_and_the_value() {
    for (error, words) in [
        (Error::Logit { row: 12, class: 34, value: f64::NAN }, vec!["row 12", "class 34", "NaN"]),
        (Error::AllMasked { row: 12 }, vec!["row 12", "-inf"]),
        (Error::Label { row: 12, label: 7, classes: 5 }, vec!["row 12", "7", "0..5"]),
        (Error::MaskedLabel { row: 12, label: 7 }, vec!["row 12", "label 7"]),
        (Error::Alpha(1.5), vec!["alpha", "1.5"]),
        (Error::Gamma(0.5), vec!["gamma", "0.5"]),
        (Error::Shape { len: 7, classes: 3 }, vec!["7", "3 classes"]),
        (Error::Rows { what: "labels", wanted: 3, got: 2 }, vec!["3 rows", "2 labels"]),
    ] {
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!message.ends_with('.'), "{message}");
    }
}

/// Faults in several chunks of work: the first row's is the one reported, whichever thread meets one first.
#[test]
#[cfg(feature = "rayon")]
fn the_first_row_at_fault_is_reported_from_any_number_of_threads() {
    let classes = 10;
    let mut rows = vec![0.25_f32; 80_000 * classes];
    for (row, bad) in
        [(30_001, f32::NAN), (30_002, f32::INFINITY), (60_000, f32::NAN), (79_999, f32::INFINITY)]
    {
        rows[row * classes + 7] = bad;
    }
    let labels = vec![0; 80_000];
    let logits = Logits::new(&rows, classes).unwrap();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for (name, result) in pool.install(|| read_by_all(logits, &labels)) {
            assert!(
                matches!(result, Err(Error::Logit { row: 30_001, class: 7, value }) if value.is_nan()),
                "{name} on {threads} threads: {result:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// Any bits at all: an error exactly where a logit is NaN or +∞ or a row has no possible class, and never a
    /// panic.
    #[test]
    fn any_bits_are_rows_or_an_error(
        classes in 1_usize..=9,
        words in vec(prop_oneof![any::<f64>(), Just(f64::NEG_INFINITY), -3.0..3.0, prop::num::f64::ANY], 9..=54),
        label in 0_u32..12,
        threshold in prop::num::f64::ANY,
    ) {
        let rows = words.len() / classes;
        let logits = Logits::new(&words[..rows * classes], classes).unwrap();
        let labels = vec![label; rows];
        let sound = logits.as_slice().chunks(classes).all(|row| {
            row.iter().all(|logit| *logit < f64::INFINITY) && row.iter().any(|logit| *logit > f64::NEG_INFINITY)
        });
        for (name, result) in read_by_all(logits, &labels) {
            if !sound {
                prop_assert!(result.is_err(), "{} took a bad row", name);
            } else if label < classes as u32 && name != "masked never" {
                prop_assert_eq!(result, Ok(()), "{}", name);
            }
        }
        prop_assert_eq!(at(entmax(1.3), threshold).predict(logits).is_ok(), sound);
    }
}
