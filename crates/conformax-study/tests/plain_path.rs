//! A study's numbers equal those of calibrating, predicting and evaluating one combination after another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use conformax::{
    Alpha, Logits, Masked, Metrics, ScoreSpec, Strata, TuneOn, Tuner, Tuning, TuningSplit, calibrate,
    evaluate, split, tune,
};
use conformax_io::{Block, Values};
use conformax_study::{Benchmark, Procedure, ProcedureScore, Record, Results, Study, Way};

const CLASSES: usize = 40;
const ROWS: usize = 240;

/// Logits on a coarse grid, so that ties happen, with some classes masked; labels lean to the top.
fn data() -> (Vec<f32>, Vec<u32>) {
    let mut state = 7u64;
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
    let labels = logits
        .chunks(CLASSES)
        .map(|row| {
            let mut order: Vec<u32> = (0..CLASSES as u32).collect();
            order.sort_by(|a, b| row[*b as usize].total_cmp(&row[*a as usize]));
            order[(next() % 12 * (next() % 4) / 2) as usize]
        })
        .collect();
    (logits, labels)
}

fn study() -> Study {
    let text = r#"
        name = "small"
        seed = 3
        splits = 3
        calibration = 0.4
        levels = [0.005, 0.1, 0.05, 0.3]
        strata = [0, 2, 4, 7, 11]
        sweep = [1.0, 1.3, 2.0]
        benchmarks = [{ name = "cifar10" }]
        [[procedures]]
        name = "InvProb"
        score = "inv_prob"
        [[procedures]]
        name = "RAPS"
        score = "raps"
        tune = { lambda = [0.001, 0.01, 0.1, 1.0], k_reg = [1, 5, 10, 50] }
        [[procedures]]
        name = "RAPS, not randomized"
        score = "raps"
        randomized = false
        [[procedures]]
        name = "APS"
        score = "aps"
        [[procedures]]
        name = "SAPS"
        score = "saps"
        [[procedures]]
        name = "margin"
        score = "margin"
        [[procedures]]
        name = "top-k"
        score = "top_k"
        [[procedures]]
        name = "log-margin"
        score = "log_margin"
        [[procedures]]
        name = "1.5-entmax"
        score = "entmax"
        gamma = 1.5
        [[procedures]]
        name = "sparsemax"
        score = "sparsemax"
        [[procedures]]
        name = "beyond sparsemax"
        score = "entmax"
        gamma = 3.5
        [[procedures]]
        name = "opt-entmax"
        score = "entmax"
        tune = { gamma = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9] }
    "#;
    Study::parse(text, "small.toml", Path::new(".")).unwrap()
}

fn benchmark() -> Benchmark {
    let (logits, labels) = data();
    let block = Block { classes: CLASSES, logits: Values::F32(logits), ..Block::default() };
    Benchmark::new("small", "Small", block, labels).unwrap()
}

/// Rows by index: their logits and labels, end to end.
fn pick(rows: &[usize], (logits, labels): &(Vec<f32>, Vec<u32>)) -> (Vec<f32>, Vec<u32>) {
    let values = rows.iter().flat_map(|row| logits[row * CLASSES..][..CLASSES].to_vec()).collect();
    (values, rows.iter().map(|row| labels[*row]).collect())
}

fn plain(
    study: &Study,
    procedure: &Procedure,
    number: u64,
    alpha: Alpha,
    way: Tuning,
) -> (ScoreSpec, f64, Metrics) {
    let data = data();
    let parts = split(ROWS, &[0.4, 0.6], study.seed + number).unwrap();
    let (cal, cal_labels) = pick(&parts[0], &data);
    let (test, test_labels) = pick(&parts[1], &data);
    let (cal, test) = (Logits::new(&cal, CLASSES).unwrap(), Logits::new(&test, CLASSES).unwrap());
    let model = match &procedure.choice {
        ProcedureScore::Fixed(score) => calibrate(*score, cal, &cal_labels, alpha).unwrap(),
        ProcedureScore::Tuned(grid) => {
            let grid: Vec<ScoreSpec> = grid
                .iter()
                .filter(|score| !matches!(score, ScoreSpec::Raps(raps) if raps.k_reg as usize >= CLASSES))
                .copied()
                .collect();
            let inner = TuningSplit::new(parts[0].len(), 0.4, study.seed + number).unwrap();
            let rows = |indices: &[usize]| {
                let rows: Vec<usize> = indices.iter().map(|index| parts[0][*index]).collect();
                pick(&rows, &data)
            };
            let (tuning, tuning_labels) = rows(&inner.tuning);
            let (calibrating, calibrating_labels) = rows(&inner.calibrating);
            let tuned = tune(TuneOn {
                grid: &grid,
                tuning: Logits::new(&tuning, CLASSES).unwrap().labelled(&tuning_labels).unwrap(),
                calibrating: Logits::new(&calibrating, CLASSES)
                    .unwrap()
                    .labelled(&calibrating_labels)
                    .unwrap(),
                alpha,
                method: way,
                masked: Masked::Allowed,
            });
            tuned.unwrap().calibration.at(alpha).0
        }
    };
    let sets = model.predict(test).unwrap();
    let metrics = evaluate(&sets, &test_labels, alpha, &Strata::paper()).unwrap();
    (*model.score(), model.thresholds().as_slice()[0], metrics)
}

fn assert_equal(record: &Record, (score, threshold, metrics): &(ScoreSpec, f64, Metrics)) {
    let place = format!("{} at {} of split {}", record.procedure, record.alpha, record.split);
    assert_eq!(record.threshold, *threshold, "{place}");
    assert_eq!(record.gamma, score.gamma().map(|gamma| gamma.value()), "{place}");
    let raps = match score {
        ScoreSpec::Raps(raps) => Some((raps.lambda.value(), u64::from(raps.k_reg))),
        _ => None,
    };
    assert_eq!(record.lambda.zip(record.k_reg), raps, "{place}");
    assert_eq!(record.coverage, metrics.coverage, "{place}");
    assert_eq!(record.average_size, metrics.average_size, "{place}");
    assert_eq!(record.singleton_ratio, metrics.singleton_ratio, "{place}");
    assert_eq!(record.singleton_coverage, metrics.singleton_coverage, "{place}");
    assert_eq!(record.empty_ratio, metrics.empty_ratio, "{place}");
    assert_eq!(record.sscv, metrics.sscv, "{place}");
    assert_eq!(record.covgap, metrics.covgap, "{place}");
    for (ours, plain) in record.strata.iter().zip(&metrics.strata) {
        assert_eq!((ours.from, ours.n, ours.coverage), (plain.from, plain.n, plain.coverage), "{place}");
        assert_eq!(ours.to, plain.to.unwrap_or(CLASSES as u64), "{place}");
    }
    assert_eq!(record.strata.len(), metrics.strata.len());
}

fn results() -> (Study, Results) {
    let study = study();
    let results = study.run_on(&[benchmark()], &()).unwrap();
    (study, results)
}

#[test]
fn equals_calibrating_predicting_and_evaluating_one_by_one() {
    let (study, results) = results();
    let mut records = results.records.iter();
    for procedure in &study.procedures {
        for alpha in &study.levels {
            for number in 0..study.splits as u64 {
                let record = records.next().unwrap();
                assert_eq!((&record.procedure, record.split), (&procedure.name, number));
                assert_eq!(record.alpha, alpha.value());
                assert_equal(record, &plain(&study, procedure, number, *alpha, Tuning::Valid));
            }
        }
    }
    assert!(records.next().is_none());
    assert!(results.records.iter().any(|record| record.threshold == f64::INFINITY), "0.005 of 96 rows");
}

#[test]
fn compares_with_the_papers_tuning() {
    let (study, results) = results();
    for comparison in &results.tuning {
        let procedure = study.procedures.iter().find(|p| p.name == comparison.procedure).unwrap();
        let alpha = Alpha::new(comparison.alpha).unwrap();
        let of = |way: Tuning| -> Vec<Metrics> {
            (0..study.splits as u64).map(|split| plain(&study, procedure, split, alpha, way).2).collect()
        };
        let mean = |metrics: &[Metrics], value: fn(&Metrics) -> f64| {
            metrics.iter().map(value).sum::<f64>() / metrics.len() as f64
        };
        let (valid, paper) = (of(Tuning::Valid), of(Tuning::Paper));
        assert_eq!(comparison.valid_coverage.mean, mean(&valid, |metrics| metrics.coverage));
        assert_eq!(comparison.paper_coverage.mean, mean(&paper, |metrics| metrics.coverage));
        assert_eq!(comparison.paper_size.mean, mean(&paper, |metrics| metrics.average_size));
        let named = format!("{} (paper’s tuning)", comparison.procedure);
        let records = results.tuned.iter().filter(|it| it.procedure == named && it.alpha == comparison.alpha);
        let (found, wanted): (Vec<_>, Vec<_>) =
            records.map(|it| it.sscv).zip(paper.iter().map(|metrics| metrics.sscv)).unzip();
        assert_eq!((found.len(), &found), (study.splits, &wanted));
    }
    assert_eq!(results.tuning.len(), 2 * study.levels.len());
    assert_eq!(results.tuned.len(), 2 * 2 * study.levels.len() * study.splits);
}

/// The metrics of a selection on all rows for calibration, and whether some row had several candidates.
fn select(study: &Study, procedure: &Procedure, number: u64, alpha: Alpha) -> (Metrics, bool) {
    let data = data();
    let parts = split(ROWS, &[0.4, 0.6], study.seed + number).unwrap();
    let (cal, cal_labels) = pick(&parts[0], &data);
    let (test, test_labels) = pick(&parts[1], &data);
    let (cal, test) = (Logits::new(&cal, CLASSES).unwrap(), Logits::new(&test, CLASSES).unwrap());
    let ProcedureScore::Tuned(grid) = &procedure.choice else { panic!("it is not tuned") };
    let grid = grid.iter().filter(|score| score.fits(CLASSES)).copied().collect();
    let mut tuner = Tuner::new(grid, CLASSES, alpha).unwrap();
    let cal = cal.labelled(&cal_labels).unwrap();
    tuner.extend(cal).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(cal).unwrap();
    let model = pairs.finish().unwrap().0.predictor();
    let sets = model.predict(test).unwrap();
    (evaluate(&sets, &test_labels, alpha, &Strata::paper()).unwrap(), model.is_a_choice())
}

#[test]
fn tuning_without_rows_set_aside_equals_the_selection() {
    let (study, results) = results();
    let mut contested = 0;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for way in results.tuning_ways.iter().filter(|way| way.way == Way::AllRows) {
        let procedure = study.procedures.iter().find(|p| p.name == way.procedure).unwrap();
        let alpha = Alpha::new(way.alpha).unwrap();
        let plain: Vec<(Metrics, bool)> =
            (0..study.splits as u64).map(|number| select(&study, procedure, number, alpha)).collect();
        let (coverage, size): (Vec<f64>, Vec<f64>) =
            plain.iter().map(|(metrics, _)| (metrics.coverage, metrics.average_size)).unzip();
        let place = format!("{} at {}", way.procedure, way.alpha);
        assert_eq!((way.coverage.mean, way.average_size.mean), (mean(&coverage), mean(&size)), "{place}");
        let named = format!("{} (all rows)", way.procedure);
        let records = results.tuned.iter().filter(|it| it.procedure == named && it.alpha == way.alpha);
        let found: Vec<(f64, f64)> = records.clone().map(|it| (it.coverage, it.average_size)).collect();
        assert_eq!(found, coverage.into_iter().zip(size).collect::<Vec<_>>(), "{place}");
        assert!(records.into_iter().all(|it| (it.n_cal, it.n_tune, it.n_test) == (96, 0, 144)), "{place}");
        contested += plain.iter().filter(|(_, choice)| *choice).count();
    }
    assert!(contested > 6, "{contested} of 24 were contested");
    assert_eq!(results.tuning_ways.len(), 3 * 2 * study.levels.len());
    // The other two ways are those of the tables, on the same splits.
    for way in results.tuning_ways.iter().filter(|way| way.way != Way::AllRows) {
        let same = |it: &&conformax_study::TuningComparison| {
            (&it.procedure, it.alpha) == (&way.procedure, way.alpha)
        };
        let comparison = results.tuning.iter().find(same).unwrap();
        let spread = match way.way {
            Way::Paper => comparison.paper_size,
            Way::Split | Way::AllRows => comparison.valid_size,
        };
        assert_eq!(way.average_size, spread);
    }
}

#[test]
fn sweeps_equal_fixed_procedures() {
    let (_, results) = results();
    for record in results.records.iter().filter(|record| record.procedure == "sparsemax") {
        let same = results
            .gamma_on_test
            .iter()
            .find(|size| (size.gamma, size.alpha, size.split) == (2.0, record.alpha, record.split));
        assert_eq!(same.unwrap().average_size, record.average_size);
    }
    assert_eq!(results.gamma_on_test.len(), 3 * 4 * 3);
    // What the choice saw: the chosen γ has the smallest size among the candidates.
    for record in results.records.iter().filter(|record| record.procedure == "opt-entmax") {
        let seen =
            |size: &&conformax_study::GammaSize| (size.alpha, size.split) == (record.alpha, record.split);
        let sizes: Vec<_> = results.gamma_on_tuning.iter().filter(seen).collect();
        assert_eq!(sizes.len(), 9);
        let chosen = sizes.iter().find(|size| Some(size.gamma) == record.gamma).unwrap();
        assert!(sizes.iter().all(|size| size.average_size >= chosen.average_size));
    }
}
