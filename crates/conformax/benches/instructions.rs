//! One job over a given number of rows and nothing else, for counting instructions:
//! `scripts/instructions` runs it under `valgrind --tool=callgrind` with two row counts and takes the difference.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use conformax::{
    Alpha, Calibration, Draw, EntmaxScore, Gamma, InvProbScore, Logits, Predictor, RapsScore, Score,
    Thresholds, entmax_grid, raps_grid, score_labels,
};

#[path = "common/mod.rs"]
mod common;
use common::{Tiled, choose_on_all, row_maxima, tune_on_all};

fn job<S: Score + Clone>(data: &Tiled, rows: usize, score: S, what: &str) {
    let logits = Logits::new(&data.logits, data.classes).unwrap().rows(0..rows);
    match what {
        "score" => {
            black_box(score_labels(&score, logits.labelled(&data.labels[..rows]).unwrap()).unwrap());
        }
        "sets" | "narrow" => {
            // The threshold comes from all rows, so that it costs the same for any `rows`.
            let all = Logits::new(&data.logits, data.classes).unwrap();
            let model = Calibration::of(score, all.labelled(&data.labels).unwrap()).unwrap();
            black_box(model.at(Alpha::new(0.1).unwrap()).0.predict(logits).unwrap());
        }
        _ => println!("wanted score, sets or narrow"),
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
            let selection = choose_on_all(grid, all, alpha);
            black_box(selection.predictor().predict(some).unwrap());
        }
        // The same candidate by itself.
        _ => {
            let selection = choose_on_all(grid, all, alpha);
            let leader = &selection.rivals()[selection.leader()];
            let alone = Predictor::new(leader.score.clone(), Thresholds::One(leader.high));
            black_box(alone.predict(some).unwrap());
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [what, score, rows] = &arguments[..] else {
        return println!("usage: score|sets|narrow|max|tune|select|selected|alone SCORE ROWS");
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
