//! scores → calibration, and sets → metrics: what is left once the logits have been read.
#![allow(missing_docs, clippy::unwrap_used)]

use conformax::{Alpha, Calibration, EntmaxScore, Logits, SortedScores, Strata, evaluate, score_labels};
use divan::{Bencher, black_box};

#[path = "common/mod.rs"]
mod common;
use common::Tiled;

fn main() {
    divan::main();
}

#[divan::bench]
fn thresholds_at_ten_levels(bencher: Bencher) {
    let data = Tiled::imagenet(50_000);
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let scores = score_labels(&EntmaxScore::default(), logits.labelled(&data.labels).unwrap()).unwrap();
    bencher.bench_local(|| {
        let sorted = SortedScores::new(black_box(scores.clone())).unwrap();
        (1..=10).map(|i| sorted.threshold(Alpha::new(f64::from(i) / 100.0).unwrap())).sum::<f64>()
    });
}

#[divan::bench]
fn p_values_of_64_rows(bencher: Bencher) {
    let data = Tiled::imagenet(5_000);
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let model = Calibration::of(EntmaxScore::default(), logits.labelled(&data.labels).unwrap()).unwrap();
    bencher.bench_local(|| black_box(&model).p_values(logits.rows(0..64)).unwrap());
}

#[divan::bench]
fn metrics(bencher: Bencher) {
    let data = Tiled::imagenet(50_000);
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let model = Calibration::of(EntmaxScore::default(), logits.labelled(&data.labels).unwrap()).unwrap();
    let alpha = Alpha::new(0.1).unwrap();
    let sets = model.at(alpha).0.predict(logits).unwrap();
    bencher.bench_local(|| evaluate(black_box(&sets), &data.labels, alpha, &Strata::default()).unwrap());
}
