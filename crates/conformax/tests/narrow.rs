//! Sets of narrow rows, which are made many at a time, against the definition, a row and a label at a time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use conformax::{
    EntmaxScore, Error, Gamma, Generator, InvProbScore, Logit, Logits, Parameters, Predictor, Row, Score,
    ScoreSpec, Thresholds, predict_each,
};
use half::{bf16, f16};

const GAMMAS: [f64; 7] = [1.0, 1.3, 1.5, 1.7, 2.0, 3.0, 16.0];
const THRESHOLDS: [f64; 8] = [0.0, 1e-300, 1e-3, 0.5, 1.7, 6.0, 1e200, f64::INFINITY];
/// Whole groups of rows that are taken together, and some left over.
const ROWS: usize = 29;

fn model(gamma: f64, threshold: f64) -> Predictor<EntmaxScore> {
    Predictor::new(EntmaxScore { gamma: Gamma::new(gamma).unwrap() }, Thresholds::One(threshold))
}

/// Rows of all kinds: continuous, near one another, tied, masked, at either end of the exponents.
fn rows(classes: usize, generator: &mut Generator) -> Vec<f64> {
    let mut uniform = || generator.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    let mut data = Vec::new();
    for row in 0..ROWS {
        let logits: Vec<f64> = (0..classes).map(|_| 6.0 * uniform()).collect();
        let top = (uniform() * classes as f64) as usize;
        data.extend(logits.into_iter().enumerate().map(|(class, logit)| match row % 7 {
            0 => (2.0 * logit).round() / 2.0,
            1 => logit / 64.0,
            2 if class != top && logit < 3.0 => f64::NEG_INFINITY,
            3 => logit - 3.0,
            4 => logit.round() * 1e-3,
            5 if class % 2 == 0 => -0.0,
            6 => logit * if uniform() < 0.5 { 1e-30 } else { 1e4 },
            _ => logit,
        }));
    }
    data
}

fn check<T: Logit>(data: &[T], classes: usize) {
    let logits = Logits::new(data, classes).unwrap();
    for (gamma, threshold) in
        GAMMAS.into_iter().flat_map(|gamma| THRESHOLDS.map(|threshold| (gamma, threshold)))
    {
        let model = model(gamma, threshold);
        let sets = model.predict(logits).unwrap();
        for (row, set) in data.chunks(classes).zip(sets.iter()) {
            let row = Row::new(row).unwrap();
            let mut wanted: Vec<u32> =
                (0..classes as u32).filter(|label| model.score().score(row, *label) <= threshold).collect();
            wanted.sort_by(|a, b| row.logit(*b).partial_cmp(&row.logit(*a)).unwrap().then(a.cmp(b)));
            assert_eq!(set, wanted, "gamma {gamma}, threshold {threshold}, {row:?}");
        }
    }
}

#[test]
fn sets_are_the_definition_at_every_width() {
    let mut generator = Generator::new(11, "narrow rows");
    for classes in (1..=33).chain([48, 63, 64]) {
        let data = rows(classes, &mut generator);
        check(&data, classes);
        check(&data.iter().map(|logit| *logit as f32).collect::<Vec<_>>(), classes);
        check(&data.iter().map(|logit| f16::from_f64(*logit)).collect::<Vec<_>>(), classes);
        check(&data.iter().map(|logit| bf16::from_f64(*logit)).collect::<Vec<_>>(), classes);
    }
}

/// Thresholds that are scores of labels in the rows, and their neighbours: what an estimate cannot decide.
#[test]
fn a_threshold_that_is_a_score_takes_that_label_in() {
    let mut generator = Generator::new(12, "narrow rows");
    for classes in [3, 5, 8, 9, 10, 11, 12, 32, 33] {
        let data: Vec<f32> = rows(classes, &mut generator).into_iter().map(|logit| logit as f32).collect();
        let logits = Logits::new(&data, classes).unwrap();
        for (gamma, row) in GAMMAS.into_iter().flat_map(|gamma| (0..24).map(move |row| (gamma, row))) {
            for label in 0..classes as u32 {
                let score =
                    EntmaxScore { gamma: Gamma::new(gamma).unwrap() }.score(logits.row(row).unwrap(), label);
                let with = model(gamma, score).predict(logits).unwrap();
                assert!(with.contains(row, label), "gamma {gamma}, row {row}, label {label}");
                if score > 0.0 && score < f64::INFINITY {
                    let without = model(gamma, score.next_down()).predict(logits).unwrap();
                    assert!(!without.contains(row, label), "gamma {gamma}, row {row}, label {label}");
                }
            }
        }
    }
}

/// Each label against its own threshold: far apart, equal, and scores of labels in the rows, with their neighbours.
#[test]
fn sets_by_label_are_the_definition_at_every_width() {
    let mut generator = Generator::new(14, "narrow rows");
    for classes in (1..=33).chain([48, 63, 64]) {
        let data = rows(classes, &mut generator);
        let singles: Vec<f32> = data.iter().map(|logit| *logit as f32).collect();
        for gamma in GAMMAS {
            for kind in 0..5 {
                check_by_label(&data, (classes, gamma, kind), &mut generator);
                check_by_label(&singles, (classes, gamma, kind), &mut generator);
            }
        }
    }
}

fn check_by_label<T: Logit>(
    data: &[T],
    (classes, gamma, kind): (usize, f64, usize),
    generator: &mut Generator,
) {
    let (logits, score) =
        (Logits::new(data, classes).unwrap(), EntmaxScore { gamma: Gamma::new(gamma).unwrap() });
    let mut below = |count: usize| generator.below(count as u64) as usize;
    let thresholds: Vec<f64> = (0..classes as u32)
        .map(|label| match kind {
            0 => THRESHOLDS[below(THRESHOLDS.len())],
            1 => [0.0, 0.3, 0.9, 1.7, 4.0][below(5)],
            2 => 0.25 + below(8) as f64,
            3 => [-1.0, f64::NEG_INFINITY, 0.0, 1e-3, 0.5][below(5)],
            // What no estimate can decide.
            _ => {
                let score = score.score(logits.row(below(ROWS)).unwrap(), label);
                let score = if score.is_finite() { score } else { 1.0 };
                [score, score.next_down(), score.next_up()][below(3)]
            }
        })
        .collect();
    let sets = Predictor::new(score, Thresholds::PerLabel(thresholds.clone())).predict(logits).unwrap();
    for (row, set) in data.chunks(classes).zip(sets.iter()) {
        let row = Row::new(row).unwrap();
        let is_in = |label: &u32| score.score(row, *label) <= thresholds[*label as usize];
        let mut wanted: Vec<u32> = (0..classes as u32).filter(is_in).collect();
        wanted.sort_by(|a, b| row.logit(*b).partial_cmp(&row.logit(*a)).unwrap().then(a.cmp(b)));
        assert_eq!(set, wanted, "gamma {gamma}, {thresholds:?}, {row:?}");
    }
}

#[test]
fn the_first_row_at_fault_is_named() {
    for bad in [f32::NAN, f32::INFINITY] {
        for place in 0..20 {
            let mut data = vec![0.5; 20 * 10];
            data[place * 10 + 3] = bad;
            data[19 * 10 + 9] = bad;
            let error = model(1.5, 1.0).predict(Logits::new(&data, 10).unwrap()).unwrap_err();
            let found = matches!(error, Error::Logit { row, class: 3, .. } if row == place as u64);
            assert!(found, "row {place}: {error}");
            data[place * 10..][..10].fill(f32::NEG_INFINITY);
            let error = model(1.5, 1.0).predict(Logits::new(&data, 10).unwrap()).unwrap_err();
            assert!(matches!(error, Error::AllMasked { row } if row == place as u64), "{error}");
        }
    }
}

/// Sums of finite logits may overflow; that is no fault.
#[test]
fn huge_logits_are_no_fault() {
    let data = vec![f32::MAX; 16 * 10];
    let sets = model(1.5, 1.0).predict(Logits::new(&data, 10).unwrap()).unwrap();
    assert!(sets.iter().all(|set| set == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
}

/// A wrapper that forwards the definition, as a user's would.
struct Wrapped<S>(S);

impl<S: Score> Score for Wrapped<S> {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        self.0.score(row, label)
    }
}

/// However a score is handed over, its sets are the same: by itself, by reference, by name, and in a wrapper that knows
/// nothing of faster paths; alone and beside others.
#[test]
fn every_wrapper_of_a_score_gives_the_same_sets() {
    for classes in [1, 5, 10, 32, 33, 100] {
        let data = rows(classes, &mut Generator::new(13, "narrow rows"));
        let logits = Logits::new(&data, classes).unwrap();
        for threshold in [0.0, 0.4, 0.8, 1.7, f64::INFINITY] {
            for name in ScoreSpec::names() {
                let spec = ScoreSpec::named(name, Parameters::default()).unwrap();
                let at = Thresholds::One(threshold);
                let by_definition = Predictor::new(Wrapped(spec), at.clone()).predict(logits).unwrap();
                let named = Predictor::new(spec, at.clone());
                assert_eq!(
                    named.predict(logits).unwrap(),
                    by_definition,
                    "{name}, {classes} classes, {threshold}"
                );
                let reference = &&spec;
                let borrowed = Predictor::new(reference, at.clone());
                assert_eq!(borrowed.predict(logits).unwrap(), by_definition, "{name} by reference");
                assert_eq!(
                    named.predict_probabilities(logits).unwrap().0,
                    by_definition,
                    "{name}, probabilities"
                );
                let other = Predictor::new(spec, Thresholds::One(threshold / 2.0));
                let several = predict_each(&[other, named], logits).unwrap();
                assert_eq!(several[1], by_definition, "{name} beside another level");
            }
            let own = Predictor::new(InvProbScore, Thresholds::One(threshold)).predict(logits).unwrap();
            let wrapped =
                Predictor::new(Wrapped(InvProbScore), Thresholds::One(threshold)).predict(logits).unwrap();
            assert_eq!(own, wrapped);
        }
    }
}
