//! One job over a given number of rows and nothing else, for counting instructions:
//! `scripts/instructions` runs it under `valgrind --tool=callgrind` with two row counts and takes the difference.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use conformax::{
    Alpha, Calibration, Calibrator, Draw, EntmaxScore, Gamma, InvProbScore, Logits, Predictor, RapsScore,
    Score, Taxonomy, Thresholds, entmax_grid, raps_grid, score_all_labels, score_labels,
};

#[path = "common/mod.rs"]
mod common;
use common::{Tiled, choose_on_all, row_maxima, tune_on_all};

const USAGE: &str = "usage: score|sets|by_class|large|half|all|full|p_values|narrow|max|tune|select|selected|alone SCORE ROWS";

fn job<S: Score + Clone>(data: &Tiled, rows: usize, score: S, what: &str) {
    let logits = Logits::new(&data.logits, data.classes).unwrap().rows(0..rows);
    match what {
        "score" => {
            black_box(score_labels(&score, logits.labelled(&data.labels[..rows]).unwrap()).unwrap());
        }
        "half" => {
            let threshold = common::threshold_of_half(&score, data);
            black_box(Predictor::new(score, Thresholds::One(threshold)).predict(logits).unwrap());
        }
        "all" => {
            black_box(score_all_labels(&score, logits).unwrap());
        }
        // Logits whose digits fill their type: those of the benchmark were half floats once.
        "full" => {
            let full: Vec<f32> = logits.as_slice().iter().map(|logit| logit / 3.0).collect();
            black_box(score_all_labels(&score, Logits::new(&full, data.classes).unwrap()).unwrap());
        }
        "by_class" => {
            let all = Logits::new(&data.logits, data.classes).unwrap();
            let mut calibrator = Calibrator::new(score, data.classes).unwrap().by(Taxonomy::Label).unwrap();
            calibrator.extend(all.labelled(&data.labels).unwrap()).unwrap();
            let model = calibrator.finish().unwrap().at(Alpha::new(0.2).unwrap()).0;
            drop(black_box(model.predict(logits).unwrap()));
        }
        _ => {
            // The threshold comes from all rows, so that it costs the same for any `rows`.
            let all = Logits::new(&data.logits, data.classes).unwrap();
            let model = Calibration::of(score, all.labelled(&data.labels).unwrap()).unwrap();
            let at = |alpha| model.at(Alpha::new(alpha).unwrap()).0.predict(logits).unwrap();
            match what {
                "sets" | "narrow" => drop(black_box(at(0.1))),
                "large" => drop(black_box(at(0.01))),
                "p_values" => drop(black_box(model.p_values(logits).unwrap())),
                _ => println!("{USAGE}"),
            }
        }
    }
}

/// Candidates chosen among on the given rows, or sets by what all rows chose.
fn choosing<S: Score + Clone>(data: &Tiled, rows: usize, grid: &[S], what: &str) {
    let all = Logits::new(&data.logits, data.classes).unwrap().labelled(&data.labels).unwrap();
    let some = all.logits().rows(0..rows);
    let labelled = some.labelled(&data.labels[..rows]).unwrap();
    let alpha = Alpha::new(0.1).unwrap();
    match what {
        "tune" => drop(black_box(tune_on_all(grid, labelled, alpha))),
        "select" => drop(black_box(choose_on_all(grid, labelled, alpha))),
        "selected" => {
            let (selection, _) = choose_on_all(grid, all, alpha);
            black_box(selection.predictor().predict(some).unwrap());
        }
        // The same candidate by itself.
        _ => {
            let (selection, _) = choose_on_all(grid, all, alpha);
            let leader = &selection.rivals()[selection.leader()];
            let alone = Predictor::new(leader.score.clone(), Thresholds::One(leader.high));
            black_box(alone.predict(some).unwrap());
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [what, score, rows] = &arguments[..] else {
        return println!("{USAGE}");
    };
    let rows = rows.parse().unwrap();
    let data = if what == "narrow" { Tiled::narrow(5_000) } else { Tiled::imagenet(5_000) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| match score.as_str() {
        "max" => {
            black_box(row_maxima(&data.logits[..rows * data.classes], data.classes));
        }
        "gammas" => choosing(&data, rows, &entmax_grid(), what),
        "two" => choosing(&data, rows, &[entmax_grid()[1], entmax_grid()[8]], what),
        "lambdas" => choosing(&data, rows, &raps_grid(data.classes, Draw::Seeded(0)), what),
        "inv_prob" => job(&data, rows, InvProbScore, what),
        "raps" => job(&data, rows, RapsScore::default(), what),
        gamma => job(&data, rows, EntmaxScore { gamma: Gamma::new(gamma.parse().unwrap()).unwrap() }, what),
    });
}
