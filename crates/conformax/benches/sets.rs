//! scores → sets: packed sets at α = 0.1, beside a row-max pass over the same array and the definition applied to
//! every label.
#![allow(missing_docs, clippy::unwrap_used)]

use conformax::{
    Alpha, Calibration, EntmaxScore, Gamma, InvProbScore, Logits, Predictor, RapsScore, Score, predict_each,
};
use divan::{Bencher, black_box};

#[path = "common/mod.rs"]
mod common;
use common::{CLASSES, Tiled, row_maxima};

fn main() {
    divan::main();
}

fn model<S: Score + Clone>(data: &Tiled, score: S, alpha: f64) -> Predictor<S> {
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    Calibration::of(score, logits.labelled(&data.labels).unwrap()).unwrap().at(Alpha::new(alpha).unwrap()).0
}

fn sets<S: Score + Clone>(bencher: Bencher, classes: usize, score: S) {
    let data = Tiled::of_width(classes);
    let logits = Logits::new(&data.logits, classes).unwrap();
    let model = model(&data, score, 0.1);
    bencher
        .counter(divan::counter::BytesCount::of_slice(&data.logits))
        .bench_local(|| black_box(&model).predict(logits).unwrap());
}

#[divan::bench(args = CLASSES)]
fn max_pass(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    bencher
        .counter(divan::counter::BytesCount::of_slice(&data.logits))
        .bench_local(|| row_maxima(black_box(&data.logits), classes));
}

/// Every label scored by the definition, on a few rows.
#[divan::bench(args = [10, 100, 1_000])]
fn entmax15_plain(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    let model = model(&data, EntmaxScore::default(), 0.1);
    let rows = Logits::new(&data.logits, classes).unwrap().rows(0..data.labels.len().min(64));
    bencher.bench_local(|| {
        let in_set = |row: usize, label: u32| {
            model.score().score(rows.row(row).unwrap(), label) <= model.thresholds().as_slice()[0]
        };
        (0..rows.len())
            .map(|row| (0..classes as u32).filter(|label| in_set(row, *label)).count())
            .sum::<usize>()
    });
}

#[divan::bench(args = CLASSES)]
fn log_margin(bencher: Bencher, classes: usize) {
    sets(bencher, classes, EntmaxScore { gamma: Gamma::SOFTMAX });
}

#[divan::bench(args = CLASSES)]
fn entmax15(bencher: Bencher, classes: usize) {
    sets(bencher, classes, EntmaxScore { gamma: Gamma::ENTMAX15 });
}

#[divan::bench(args = CLASSES)]
fn sparsemax(bencher: Bencher, classes: usize) {
    sets(bencher, classes, EntmaxScore { gamma: Gamma::SPARSEMAX });
}

#[divan::bench(args = CLASSES)]
fn entmax13(bencher: Bencher, classes: usize) {
    sets(bencher, classes, EntmaxScore { gamma: Gamma::new(1.3).unwrap() });
}

#[divan::bench(args = CLASSES)]
fn inv_prob(bencher: Bencher, classes: usize) {
    sets(bencher, classes, InvProbScore);
}

#[divan::bench(args = CLASSES)]
fn raps(bencher: Bencher, classes: usize) {
    sets(bencher, classes, RapsScore::default());
}

/// Ten levels in one pass.
#[divan::bench(args = [10, 1_000])]
fn entmax15_ten_levels(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    let logits = Logits::new(&data.logits, classes).unwrap();
    let models: Vec<_> =
        (1..=10).map(|i| model(&data, EntmaxScore::default(), f64::from(i) / 100.0)).collect();
    bencher.bench_local(|| predict_each(black_box(&models), logits).unwrap());
}

/// Sets with the sparse probabilities of their labels.
#[divan::bench(args = CLASSES)]
fn entmax15_probabilities(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    let logits = Logits::new(&data.logits, classes).unwrap();
    let model = model(&data, EntmaxScore::default(), 0.1);
    bencher.bench_local(|| black_box(&model).predict_probabilities(logits).unwrap());
}
