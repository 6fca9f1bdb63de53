//! logits → probabilities: the activations forward and backward, beside a row-max pass over the same array.
#![allow(missing_docs, clippy::unwrap_used)]

use conformax::{Entmax, Gamma, Logits};
use divan::{Bencher, black_box};

#[path = "common/mod.rs"]
mod common;
use common::{Tiled, row_maxima};

fn main() {
    divan::main();
}

const GAMMAS: [f64; 4] = [1.0, 1.3, 1.5, 2.0];
const CLASSES: usize = 1_000;

#[divan::bench]
fn max_pass(bencher: Bencher) {
    let data = Tiled::of_width(CLASSES);
    bencher.bench_local(|| row_maxima(black_box(&data.logits), CLASSES));
}

#[divan::bench(args = GAMMAS)]
fn forward(bencher: Bencher, gamma: f64) {
    let data = Tiled::of_width(CLASSES);
    let logits = Logits::new(&data.logits, CLASSES).unwrap();
    let entmax = Entmax::new(Gamma::new(gamma).unwrap());
    let mut p = vec![0.0_f32; data.logits.len()];
    bencher.bench_local(|| entmax.forward_rows_into(black_box(logits), &mut p).unwrap());
}

#[divan::bench(args = GAMMAS)]
fn backward(bencher: Bencher, gamma: f64) {
    let data = Tiled::of_width(CLASSES);
    let logits = Logits::new(&data.logits, CLASSES).unwrap();
    let entmax = Entmax::new(Gamma::new(gamma).unwrap());
    let mut p = vec![0.0_f32; data.logits.len()];
    entmax.forward_rows_into(logits, &mut p).unwrap();
    let mut gradient = vec![0.0_f32; data.logits.len()];
    bencher.bench_local(|| {
        entmax.backward_rows_into(black_box(&p), &data.logits, CLASSES, &mut gradient).unwrap();
    });
}
