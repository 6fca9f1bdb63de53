//! logits → scores: the score of the true label, beside a row-max pass over the same array and the plain formula.
#![allow(missing_docs, clippy::unwrap_used)]

use conformax::{EntmaxScore, Gamma, InvProbScore, Logits, RapsScore, Score, score_all_labels, score_labels};
use divan::{Bencher, black_box};

#[path = "common/mod.rs"]
mod common;
use common::{CLASSES, Tiled, row_maxima};

fn main() {
    divan::main();
}

fn scores<S: Score>(bencher: Bencher, classes: usize, score: S) {
    let data = Tiled::of_width(classes);
    let logits = Logits::new(&data.logits, classes).unwrap();
    bencher
        .counter(divan::counter::BytesCount::of_slice(&data.logits))
        .bench_local(|| score_labels(black_box(&score), logits.labelled(&data.labels).unwrap()).unwrap());
}

#[divan::bench(args = CLASSES)]
fn max_pass(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    bencher
        .counter(divan::counter::BytesCount::of_slice(&data.logits))
        .bench_local(|| row_maxima(black_box(&data.logits), classes));
}

/// The formula as it stands on paper, one label after another.
#[divan::bench(args = CLASSES)]
fn entmax15_plain(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    bencher.counter(divan::counter::BytesCount::of_slice(&data.logits)).bench_local(|| {
        let rows = black_box(&data.logits).chunks_exact(classes).zip(&data.labels);
        let norm = |(row, label): (&[f32], &u32)| {
            let pivot = f64::from(row[*label as usize]);
            row.iter().map(|z| (f64::from(*z) - pivot).max(0.0)).map(|gap| gap * gap).sum::<f64>().sqrt()
        };
        rows.map(norm).collect::<Vec<f64>>()
    });
}

#[divan::bench(args = CLASSES)]
fn log_margin(bencher: Bencher, classes: usize) {
    scores(bencher, classes, EntmaxScore { gamma: Gamma::SOFTMAX });
}

#[divan::bench(args = CLASSES)]
fn entmax15(bencher: Bencher, classes: usize) {
    scores(bencher, classes, EntmaxScore { gamma: Gamma::ENTMAX15 });
}

#[divan::bench(args = CLASSES)]
fn sparsemax(bencher: Bencher, classes: usize) {
    scores(bencher, classes, EntmaxScore { gamma: Gamma::SPARSEMAX });
}

#[divan::bench(args = CLASSES)]
fn entmax13(bencher: Bencher, classes: usize) {
    scores(bencher, classes, EntmaxScore { gamma: Gamma::new(1.3).unwrap() });
}

#[divan::bench(args = CLASSES)]
fn inv_prob(bencher: Bencher, classes: usize) {
    scores(bencher, classes, InvProbScore);
}

#[divan::bench(args = CLASSES)]
fn raps(bencher: Bencher, classes: usize) {
    scores(bencher, classes, RapsScore::default());
}

/// Every label of every row: quadratic in the classes for the entmax family.
#[divan::bench(args = [10, 100, 1_000])]
fn entmax15_all_labels(bencher: Bencher, classes: usize) {
    let data = Tiled::of_width(classes);
    let logits = Logits::new(&data.logits, classes).unwrap().rows(0..data.labels.len().min(64));
    bencher.bench_local(|| score_all_labels(black_box(&EntmaxScore::default()), logits).unwrap());
}
