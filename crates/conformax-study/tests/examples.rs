//! The rows to try procedures on: real test rows, with the sets that the library gives when it is asked anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashSet;

use conformax::{Alpha, Logits, Parameters, Predictor, ScoreSpec, Thresholds, Tuner, split};
use conformax_io::{Block, ClassNames, Values};
use conformax_study::{Benchmark, Examples, ProcedureScore, Results, RowKind, Study, Way};

const CLASSES: usize = 60;
const ROWS: usize = 500;

/// Logits on a coarse grid, so that ties happen, with some classes masked; labels lean to the top.
fn data() -> (Vec<f32>, Vec<u32>) {
    let mut state = 11u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let logits: Vec<f32> = (0..ROWS * CLASSES)
        .map(|i| match next() % 97 {
            0 if i % CLASSES != 0 => f32::NEG_INFINITY,
            _ => ((next() % 64 + next() % 64 + next() % 64) as f32 - 94.0) / 16.0,
        })
        .collect();
    let labels = logits.chunks(CLASSES).map(|row| {
        let mut order: Vec<u32> = (0..CLASSES as u32).collect();
        order.sort_by(|a, b| row[*b as usize].total_cmp(&row[*a as usize]));
        order[(next() % 60 * (next() % 4) / 3) as usize]
    });
    let labels = labels.collect();
    (logits, labels)
}

fn results(names: Option<ClassNames>) -> Results {
    let (logits, labels) = data();
    let block = Block { classes: CLASSES, logits: Values::F32(logits), ..Block::default() };
    let benchmark = Benchmark::new("small", "Small", block, labels).unwrap().with_names(names);
    // So few rows calibrate what is tuned that sets are full at the lowest level.
    let mut study = Study { splits: 2, claim_splits: 0, ..Study::paper() };
    study.levels.insert(0, "0.005".parse().unwrap());
    study.run_on(&[benchmark], &()).unwrap()
}

fn examples(results: &Results) -> &Examples {
    let [examples] = results.examples.as_slice() else { panic!("{:?}", results.examples.len()) };
    examples
}

/// The score that a record of the first split used.
fn score_of(record: &conformax_study::Record, examples: &Examples, place: usize) -> ScoreSpec {
    let parameters = Parameters {
        gamma: record.gamma.map(|gamma| conformax::Gamma::new(gamma).unwrap()),
        lambda: record.lambda.map(|lambda| conformax::Lambda::new(lambda).unwrap()),
        k_reg: record.k_reg.map(|k| u32::try_from(k).unwrap()),
        ..Parameters::default()
    };
    let name = &examples.scores[place].name;
    let parameters = if name == "entmax" || name == "raps" { parameters } else { Parameters::default() };
    ScoreSpec::named(name, parameters).unwrap()
}

#[test]
fn answers_are_the_librarys_for_every_row_procedure_and_level() {
    let results = results(None);
    let examples = examples(&results);
    let (logits, labels) = data();
    let mut full = 0;
    for (procedure, name) in results.procedures.iter().enumerate() {
        for (level, alpha) in results.levels.iter().enumerate() {
            let of = |r: &&conformax_study::Record| r.procedure == *name && r.alpha == *alpha && r.split == 0;
            let record = results.records.iter().find(of).unwrap();
            let rule = examples.rules[procedure][level];
            assert_eq!(rule.threshold.unwrap_or(f64::INFINITY), record.threshold, "{name} at {alpha}");
            assert_eq!(examples.scores[rule.score].gamma, record.gamma, "{name} at {alpha}");
            if rule.is_a_choice {
                continue;
            }
            let score = score_of(record, examples, rule.score);
            let predictor = Predictor::new(score, Thresholds::One(record.threshold));
            for row in &examples.rows {
                let values = &logits[row.row as usize * CLASSES..][..CLASSES];
                let (sets, probabilities) =
                    predictor.predict_probabilities(Logits::new(values, CLASSES).unwrap()).unwrap();
                let set = sets.get(0).unwrap();
                let answer = &row.answers[procedure][level];
                let place = format!("{name} at {alpha}, row {}", row.row);
                assert_eq!(answer.size, set.len() as u64, "{place}");
                let kept: Vec<(u32, f64)> = set.iter().copied().zip(probabilities).collect();
                let kept: Vec<_> = kept.into_iter().filter(|(label, _)| row.labels.contains(label)).collect();
                let answered: Vec<(u32, f64)> =
                    answer.labels.iter().copied().zip(answer.probabilities.iter().copied()).collect();
                assert_eq!(answered, kept, "{place}");
                // What a page compares: one number of the label against one of the level.
                for (label, score) in row.labels.iter().zip(&row.scores[rule.score]) {
                    let (score, threshold) = (score.unwrap_or(f64::INFINITY), record.threshold);
                    assert_eq!(score <= threshold, set.contains(label), "{place}, label {label}");
                }
                full += usize::from(set.len() == CLASSES);
                assert_eq!(row.truth, labels[row.row as usize]);
            }
        }
    }
    assert!(full > 0, "no set was full");
}

/// What all rows choose, answered by a selection on the first split's rows for calibration.
#[test]
fn answers_of_what_all_rows_choose_are_those_of_a_selection() {
    let results = results(None);
    let examples = examples(&results);
    let (logits, labels) = data();
    let calibration = &split(ROWS, &[0.4, 0.6], 0).unwrap()[0];
    let rows: Vec<f32> =
        calibration.iter().flat_map(|row| &logits[row * CLASSES..][..CLASSES]).copied().collect();
    let truth: Vec<u32> = calibration.iter().map(|row| labels[*row]).collect();
    let rows = Logits::new(&rows, CLASSES).unwrap();
    let names = ["RAPS", "opt-entmax"];
    assert_eq!(examples.procedures[results.procedures.len()..], names.map(|name| Way::AllRows.named(name)));
    let mut choices = 0;
    for name in names {
        let place = examples.procedures.iter().position(|own| *own == Way::AllRows.named(name)).unwrap();
        let study = Study::paper();
        let procedure = study.procedures.iter().find(|procedure| procedure.name == name).unwrap();
        let ProcedureScore::Tuned(grid) = &procedure.choice else { panic!("{name} is not tuned") };
        let grid: Vec<ScoreSpec> = grid.iter().filter(|score| score.fits(CLASSES)).copied().collect();
        for (level, alpha) in results.levels.iter().enumerate() {
            let mut tuner = Tuner::new(grid.clone(), CLASSES, Alpha::new(*alpha).unwrap()).unwrap();
            let rows = rows.labelled(&truth).unwrap();
            tuner.extend(rows).unwrap();
            let mut pairs = tuner.finish_selecting().unwrap();
            pairs.extend(rows).unwrap();
            let predictor = pairs.finish().unwrap().0.predictor();
            let rule = examples.rules[place][level];
            assert_eq!(rule.is_a_choice, predictor.is_a_choice(), "{name} at {alpha}");
            choices += usize::from(rule.is_a_choice);
            for row in &examples.rows {
                let values = &logits[row.row as usize * CLASSES..][..CLASSES];
                let one = Logits::new(values, CLASSES).unwrap();
                let (sets, probabilities) = predictor.predict_probabilities(one).unwrap();
                let set = sets.get(0).unwrap();
                let kept =
                    set.iter().copied().zip(probabilities).filter(|(label, _)| row.labels.contains(label));
                let answer = &row.answers[place][level];
                let answered = answer.labels.iter().copied().zip(answer.probabilities.iter().copied());
                assert_eq!(answer.size, set.len() as u64, "{name} at {alpha}, row {}", row.row);
                assert!(answered.eq(kept), "{name} at {alpha}, row {}", row.row);
            }
        }
    }
    assert!(choices > 0, "candidates of one are not all that is tested");
}

#[test]
fn rows_are_test_rows_of_the_first_split_and_of_every_kind() {
    let results = results(None);
    let examples = examples(&results);
    let (logits, _) = data();
    let test: HashSet<u64> = split(ROWS, &[0.4, 0.6], 0).unwrap()[1].iter().map(|row| *row as u64).collect();
    for kind in [RowKind::Easy, RowKind::Ambiguous, RowKind::Wrong] {
        assert_eq!(examples.rows.iter().filter(|row| row.kind == kind).count(), 3, "{kind:?}");
    }
    for row in &examples.rows {
        assert!(test.contains(&row.row), "row {} calibrates", row.row);
        let values = &logits[row.row as usize * CLASSES..][..CLASSES];
        let top = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(row.kind == RowKind::Wrong, values[row.truth as usize] < top, "row {}", row.row);
        assert!(row.labels.contains(&row.truth));
        for (label, logit) in row.labels.iter().zip(&row.logits) {
            assert_eq!(logit.unwrap_or(f64::NEG_INFINITY), f64::from(values[*label as usize]));
        }
        assert_eq!(row.names, row.labels.iter().map(u32::to_string).collect::<Vec<_>>());
    }
    let far = |row: &conformax_study::ExampleRow| row.labels.len() == 25 && row.labels[24] == row.truth;
    assert!(examples.rows.iter().any(far), "no true label lies far down");
}

#[test]
fn classes_have_the_names_they_are_given() {
    let names = ClassNames::new((0..CLASSES).map(|class| format!("class {class}")).collect()).unwrap();
    let results = results(Some(names));
    for row in &examples(&results).rows {
        for (label, name) in row.labels.iter().zip(&row.names) {
            assert_eq!(*name, format!("class {label}"));
        }
    }
}
