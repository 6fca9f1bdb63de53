//! What a calibration file costs in memory, by a count of every allocation: a test program of its own, with one test,
//! so that nothing else is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../conformax/tests/counting/mod.rs"]
mod counting;

use conformax::{Alpha, Calibration, ScoreSpec, SortedScores};
use conformax_io::{Model, Overwrite};
use counting::{Counting, most_held};

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 1 << 20;
/// For buffers and the like, which do not grow with the rows.
const CONSTANT: usize = 1 << 18;

/// A model shares the scores of its calibration, and a file that is written holds them as letters: four for three
/// bytes.
#[test]
fn a_model_copies_no_scores_and_a_file_takes_eleven_bytes_for_each() {
    let scores = SortedScores::new((0..ROWS).map(|row| row as f64 / 7.0).collect()).unwrap();
    let calibration = Calibration::from_scores(ScoreSpec::default(), 10, scores).unwrap();
    let alphas = ["0.1", "0.05", "0.01"].map(|text| text.parse::<Alpha>().unwrap());
    let (model, held) = most_held(|| Model::new(&calibration, &alphas, None));
    assert!(held <= CONSTANT, "a model takes {held} bytes");
    let (model, held) = most_held(|| model.with_delta(alphas[0]).unwrap());
    assert!(held <= CONSTANT, "other promises take {held} bytes");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    let ((), held) = most_held(|| model.write(&path, Overwrite::Refuse).unwrap());
    assert!(held <= 11 * ROWS + CONSTANT, "writing takes {held} bytes for {ROWS} rows");
    assert_eq!(Model::read(&path).unwrap(), model);
}
