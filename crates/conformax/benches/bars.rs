//! Every speed bar of the library as a ratio to a row-max pass in the same run; `scripts/bars` prints the table.
//!
//! Each line on standard output is `name <TAB> bar <TAB> measured <TAB> GB/s <TAB> note`. Data: ImageNet-5k tiled to
//! 50,000 × 1,000 f32, true labels, threshold at α = 0.1. Times are the best of several rounds, and the pass that a job
//! is compared with runs in the same rounds, so that a busy machine slows both.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use conformax::{
    Alpha, Calibration, Calibrator, Draw, EntmaxScore, Gamma, InvProbScore, Logits, Predictor, RapsScore,
    Scheme, Score, Taxonomy, Thresholds, entmax_grid, raps_grid, score_all_labels, score_labels,
};

#[path = "common/mod.rs"]
mod common;
use common::{Tiled, choose_on_all, row_maxima, tune_on_all};

/// Best times of jobs that take turns, in seconds.
fn best<const N: usize>(rounds: usize, mut jobs: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..rounds {
        for (best, job) in best.iter_mut().zip(&mut jobs) {
            let start = Instant::now();
            job();
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn line(name: &str, bar: &str, measured: f64, bytes: f64, seconds: f64, note: &str) {
    println!("{name}\t{bar}\t{measured:.2}\t{:.1}\t{note}", bytes / seconds / 1e9);
}

/// Score and sets of one procedure against the max pass.
fn procedure<S: Score + Clone>(data: &Tiled, score: S, name: &str, score_bar: Option<&str>, set_bar: &str) {
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let model = Calibration::of(score.clone(), logits.labelled(&data.labels).unwrap()).unwrap();
    let model = model.at(Alpha::new(0.1).unwrap()).0;
    let size = model.predict(logits).unwrap().labels().len() as f64 / logits.len() as f64;
    let [max, scores, sets] = pool(1).install(|| {
        best(
            7,
            [
                &mut || {
                    black_box(row_maxima(&data.logits, data.classes));
                },
                &mut || {
                    black_box(score_labels(&score, logits.labelled(&data.labels).unwrap()).unwrap());
                },
                &mut || {
                    black_box(model.predict(logits).unwrap());
                },
            ],
        )
    });
    let bytes = size_of_val(&data.logits[..]) as f64;
    let note = format!("threshold {:.4}, mean size {size:.2}", model.thresholds().as_slice()[0]);
    if let Some(bar) = score_bar {
        line(&format!("score {name}"), bar, scores / max, bytes, scores, "");
    }
    line(&format!("sets {name}"), set_bar, sets / max, bytes, sets, &note);
}

fn calibrated<S: Score + Clone>(data: &Tiled, score: S, scheme: Scheme) -> Calibration<S> {
    let mut calibrator = Calibrator::new(score, data.classes).unwrap().under(scheme).unwrap();
    let weights = weights_of(data.labels.len());
    let logits = Logits::new(&data.logits, data.classes).unwrap().with_weights(&weights).unwrap();
    calibrator.extend(logits.labelled(&data.labels).unwrap()).unwrap();
    calibrator.finish().unwrap()
}

/// One job over all rows on one thread, against the max pass.
fn over_max(data: &Tiled, name: &str, bar: &str, note: &str, mut job: impl FnMut() + Send) {
    let mut pass = || drop(black_box(row_maxima(&data.logits, data.classes)));
    let [max, seconds] = pool(1).install(|| best(7, [&mut pass, &mut job]));
    line(name, bar, seconds / max, size_of_val(&data.logits[..]) as f64, seconds, note);
}

fn sets<S: Score + Clone>(data: &Tiled, model: &Predictor<S>, name: &str, bar: &str) {
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let size = model.predict(logits).unwrap().labels().len() as f64 / logits.len() as f64;
    let note = format!("threshold {:.4}, mean size {size:.2}", model.thresholds().as_slice()[0]);
    over_max(data, name, bar, &note, || drop(black_box(model.predict(logits).unwrap())));
}

/// Scores and p-values of all labels.
fn every_label(data: &Tiled) {
    let some = data.first(200);
    let logits = Logits::new(&some.logits, some.classes).unwrap();
    for (gamma, bar) in [(1.5, "<= 15"), (2.0, "<= 15"), (1.3, "<= 80"), (3.0, "<= 80")] {
        let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
        over_max(&some, &format!("scores of all labels, gamma {gamma}"), bar, "", || {
            drop(black_box(score_all_labels(&score, logits).unwrap()));
        });
    }
    let model = calibrated(&data.first(5_000), EntmaxScore::default(), Scheme::default());
    over_max(&some, "p-values of all labels, 5,000 calibrating rows", "<= 30", "", || {
        drop(black_box(model.p_values(logits).unwrap()));
    });
}

/// Sets by class against those of one threshold, on a benchmark whose classes have rows enough for thresholds of their
/// own.
fn by_class(name: &str, rows: usize) {
    let data = Tiled::benchmark(name, rows);
    let [plain, by_class] = [Scheme::default(), Scheme::Groups(Taxonomy::Label)]
        .map(|scheme| calibrated(&data, EntmaxScore::default(), scheme).at(Alpha::new(0.1).unwrap()).0);
    over_plain(&data, &format!("sets by class, over plain, {name}"), "<= 1.5", [&plain, &by_class]);
}

/// Sets of the second model against those of the first, which has one threshold.
fn over_plain(data: &Tiled, name: &str, bar: &str, [plain, other]: [&Predictor<EntmaxScore>; 2]) {
    let weights = weights_of(data.labels.len());
    let logits = Logits::new(&data.logits, data.classes).unwrap().with_weights(&weights).unwrap();
    let predict = |model: &Predictor<EntmaxScore>| drop(black_box(model.predict(logits).unwrap()));
    let [base, time] = pool(1).install(|| best(7, [&mut || predict(plain), &mut || predict(other)]));
    let bytes = size_of_val(&data.logits[..]) as f64;
    let note = format!("mean size {:.2}, plain {:.2}", mean_size(other, logits), mean_size(plain, logits));
    line(name, bar, time / base, bytes, time, &note);
}

fn weights_of(rows: usize) -> Vec<f64> {
    (0..rows).map(|row| 0.5 + (row % 16) as f64 / 16.0).collect()
}

/// Sets by weights of rows and, where every class has five rows (and the rows are tiled), by class. Each class takes
/// its largest score there and sets hold eight times the labels, so they are also held against sets as large that one
/// threshold gives: that is the part of the first ratio which is not the labels themselves.
fn promises(data: &Tiled, score: EntmaxScore) {
    let model = |scheme: Scheme| calibrated(data, score, scheme).at(Alpha::new(0.1).unwrap()).0;
    let (plain, by_class) = (model(Scheme::default()), model(Scheme::Groups(Taxonomy::Label)));
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let threshold = threshold_of_size(score, logits, mean_size(&by_class, logits));
    let as_large = Predictor::new(score, Thresholds::One(threshold));
    over_plain(data, "sets by class, over plain", "<= 1.5", [&plain, &by_class]);
    over_plain(data, "sets by class, over one threshold of their size", "<= 1.5", [&as_large, &by_class]);
    over_plain(data, "sets by row weight, over plain", "<= 2", [&plain, &model(Scheme::RowWeights)]);
}

fn mean_size<S: Score + Clone>(model: &Predictor<S>, logits: Logits<'_, f32>) -> f64 {
    model.predict(logits).unwrap().labels().len() as f64 / logits.len() as f64
}

/// The threshold at which sets of the first rows have so many labels on average, to a few parts in a thousand.
fn threshold_of_size(score: EntmaxScore, logits: Logits<'_, f32>, size: f64) -> f64 {
    let some = logits.rows(0..logits.len().min(2_000));
    let size_at = |threshold| mean_size(&Predictor::new(score, Thresholds::One(threshold)), some);
    let (mut low, mut high) = (0.0, 1.0);
    while size_at(high) < size {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..12 {
        let middle = f64::midpoint(low, high);
        *(if size_at(middle) < size { &mut low } else { &mut high }) = middle;
    }
    high
}

/// Speed-up of two threads over one, beside that of the max pass.
fn two_threads<S: Score + Clone>(data: &Tiled, score: S, name: &str, bar: impl Fn(f64) -> String) {
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let model = Calibration::of(score, logits.labelled(&data.labels).unwrap())
        .unwrap()
        .at(Alpha::new(0.1).unwrap())
        .0;
    let (one, two) = (pool(1), pool(2));
    let [max_one, max_two, sets_one, sets_two] = best(
        7,
        [
            &mut || {
                one.install(|| black_box(row_maxima(&data.logits, data.classes)));
            },
            &mut || {
                two.install(|| {
                    let middle = data.labels.len() / 2 * data.classes;
                    let (left, right) = data.logits.split_at(middle);
                    black_box(rayon::join(
                        || row_maxima(left, data.classes),
                        || row_maxima(right, data.classes),
                    ));
                });
            },
            &mut || {
                one.install(|| black_box(model.predict(logits).unwrap()));
            },
            &mut || {
                two.install(|| black_box(model.predict(logits).unwrap()));
            },
        ],
    );
    let bytes = size_of_val(&data.logits[..]) as f64;
    let pass = max_one / max_two;
    line(
        &format!("two threads, sets {name}"),
        &bar(pass),
        sets_one / sets_two,
        bytes,
        sets_two,
        &format!("max pass {pass:.2}"),
    );
}

/// A choice by all rows, who decides counted, against tuning on as many, and its sets against those of the winner by
/// itself; `left` of the candidates can win.
fn selection<S: Score + Clone>(data: &Tiled, grid: &[S], name: &str, left: usize) {
    let logits = Logits::new(&data.logits, data.classes).unwrap();
    let (rows, alpha) = (logits.labelled(&data.labels).unwrap(), Alpha::new(0.1).unwrap());
    let (chosen, _) = choose_on_all(grid, rows, alpha);
    let alive = chosen.alive().iter().filter(|alive| **alive).count();
    assert_eq!(alive, left, "candidates left of {name}");
    let leader = &chosen.rivals()[chosen.leader()];
    let alone = Predictor::new(leader.score.clone(), Thresholds::One(leader.high));
    let model = chosen.predictor();
    let [tuned, selected, by_one, by_all] = pool(1).install(|| {
        best(
            5,
            [
                &mut || drop(black_box(tune_on_all(grid, rows, alpha))),
                &mut || drop(black_box(choose_on_all(grid, rows, alpha))),
                &mut || drop(black_box(alone.predict(logits).unwrap())),
                &mut || drop(black_box(model.predict(logits).unwrap())),
            ],
        )
    });
    let bytes = size_of_val(&data.logits[..]) as f64;
    line(
        &format!("choosing by all rows over tuning, {name}"),
        "<= 1.5",
        selected / tuned,
        bytes,
        selected,
        "who decides is counted",
    );
    let note = format!("{alive} of {} alive", grid.len());
    let bar = if alive == 1 { "<= 1.3" } else { "none" };
    line(&format!("its sets over those of the leader, {name}"), bar, by_all / by_one, bytes, by_all, &note);
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let data = Tiled::imagenet(if quick { 10_000 } else { 50_000 });
    let entmax = |gamma| EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
    for gamma in [1.0, 1.5, 2.0] {
        procedure(&data, entmax(gamma), &format!("gamma {gamma}"), Some("<= 1.5"), "<= 2.5");
    }
    for gamma in [1.1, 1.3, 3.0] {
        procedure(&data, entmax(gamma), &format!("gamma {gamma}"), Some("<= 2.5"), "<= 3.5");
    }
    procedure(&data, InvProbScore, "inv_prob", None, "<= 5");
    let raps = RapsScore { draw: Draw::Seeded(0), ..RapsScore::default() };
    procedure(&data, raps, "raps", None, "<= 10");
    two_threads(&data, entmax(1.5), "gamma 1.5", |pass| format!(">= {:.2}", 0.9 * pass));
    two_threads(&data, InvProbScore, "inv_prob", |_| ">= 1.7".into());
    two_threads(&data, raps, "raps", |_| ">= 1.7".into());
    let narrow = Tiled::narrow(if quick { 500_000 } else { 2_000_000 });
    for (gamma, bar) in [(1.0, "<= 6"), (1.5, "<= 6"), (2.0, "<= 6"), (1.3, "<= 12"), (3.0, "<= 12")] {
        procedure(&narrow, entmax(gamma), &format!("gamma {gamma}, K = 10"), None, bar);
    }
    drop(narrow);
    procedure(
        &Tiled::wide(if quick { 100 } else { 400 }),
        entmax(1.5),
        "gamma 1.5, K = 128,256",
        None,
        "<= 2",
    );
    let few = Tiled::imagenet(5_000);
    selection(&few, &entmax_grid(), "gamma", 9);
    selection(&few, &[entmax(1.5), entmax(8.0)], "gamma 1.5 and 8", 1);
    selection(&few, &raps_grid(few.classes, Draw::Seeded(0)), "raps", 2);
    selection(&Tiled::narrow(50_000), &entmax_grid(), "gamma, K = 10", 2);
    for (gamma, alpha, bar) in [(2.0, 0.01, "<= 12"), (1.5, 0.01, "<= 12"), (1.5, 0.05, "<= 2.5")] {
        let model = calibrated(&data, entmax(gamma), Scheme::default()).at(Alpha::new(alpha).unwrap()).0;
        sets(&data, &model, &format!("sets gamma {gamma}, alpha {alpha}"), bar);
    }
    let some = data.first(2_000);
    for gamma in [1.0, 1.3, 1.5, 2.0, 3.0] {
        let threshold = Thresholds::One(common::threshold_of_half(&entmax(gamma), &data));
        let model = Predictor::new(entmax(gamma), threshold);
        sets(&some, &model, &format!("sets gamma {gamma}, half the labels"), "<= 40");
    }
    every_label(&data);
    promises(&data, entmax(1.5));
    for (name, rows) in [("cifar10", 2_000_000), ("newsgroups", 1_000_000), ("cifar100", 200_000)] {
        by_class(name, if quick { rows / 10 } else { rows });
    }
    let adversarial = data.with_random_labels().first(2_000);
    let logits = Logits::new(&adversarial.logits, adversarial.classes).unwrap();
    let labelled = logits.labelled(&adversarial.labels).unwrap();
    over_max(&adversarial, "adversarial: score gamma 2, random labels", "none", "", || {
        drop(black_box(score_labels(&entmax(2.0), labelled).unwrap()));
    });
}
