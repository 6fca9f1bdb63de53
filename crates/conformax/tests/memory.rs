//! What calibrating holds in memory, by a count of every allocation: a test program of its own, with one test, so that
//! nothing else is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod counting;

use common::data::Data;
use common::entmax;
use conformax::{
    Alpha, Calibration, Calibrator, Choose, Dealer, EntmaxScore, Remember, Scheme, Taxonomy, Tuner,
};
use counting::{Counting, most_held};

#[global_allocator]
static COUNTING: Counting = Counting;

const ROWS: usize = 1 << 20;
const BLOCK: usize = 1 << 12;
const CLASSES: usize = 4;
/// For a block's results, lists of threads and the like, which do not grow with the rows.
const CONSTANT: usize = 1 << 20;
/// Fingerprints of 262,144 rows with their counts, the same number of fresh ones, and both in order while they are.
const FINGERPRINTS: usize = 40 << 18;

fn new() -> Calibrator<EntmaxScore> {
    Calibrator::new(entmax(1.5), CLASSES).unwrap()
}

/// The bytes that calibrating on all rows in blocks holds at most, from the first row to the evidence and a level.
fn calibrating(mut calibrator: Calibrator<EntmaxScore>, data: &Data) -> (Calibration<EntmaxScore>, usize) {
    let weights: Vec<f64> = (0..BLOCK).map(|row| (row % 7) as f64 + 1.0).collect();
    most_held(|| {
        for block in 0..ROWS / BLOCK {
            let logits = &data.logits[block * BLOCK * CLASSES..][..BLOCK * CLASSES];
            let rows = conformax::Logits::new(logits, CLASSES).unwrap().with_weights(&weights).unwrap();
            calibrator.extend(rows.labelled(&data.labels[block * BLOCK..][..BLOCK]).unwrap()).unwrap();
        }
        let calibration = calibrator.finish().unwrap();
        calibration.at(Alpha::new(0.1).unwrap());
        calibration
    })
}

/// Eight bytes a row and an eighth of them to grow into; more only where the documentation of `Calibrator` says so.
#[test]
fn calibrating_holds_nine_bytes_a_row() {
    let data = Data::new(ROWS, CLASSES, 1);
    let clusters = |rest: Option<u32>| vec![Some(0), Some(1), Some(0), rest];
    let taxonomy = |taxonomy| new().by(taxonomy).unwrap();
    for (what, calibrator, wanted) in [
        ("all rows", new(), 9 * ROWS),
        ("by label", taxonomy(Taxonomy::Label), 9 * ROWS),
        ("by cluster", taxonomy(Taxonomy::Cluster(clusters(Some(1)))), 9 * ROWS),
        ("by cluster, some of none", taxonomy(Taxonomy::Cluster(clusters(None))), 17 * ROWS),
        ("by weight", new().under(Scheme::RowWeights).unwrap(), 34 * ROWS),
        ("with fingerprints", new().remembering(Remember::Rows), 9 * ROWS + FINGERPRINTS),
    ] {
        let (calibration, held) = calibrating(calibrator, &data);
        assert!(held <= wanted + CONSTANT, "{what}: {held} bytes for {ROWS} rows, wanted {wanted}");
        assert_eq!(calibration.n(), ROWS as u64);
        // A copy shares the scores.
        let (copy, held) = most_held(|| calibration.clone());
        assert!(held <= CONSTANT + FINGERPRINTS / 4, "{what}: a copy takes {held} bytes");
        drop((copy, calibration));
    }
    // The tuner keeps as many for every candidate.
    let blocks = || {
        (0..ROWS / BLOCK).map(|block| {
            let logits = &data.logits[block * BLOCK * CLASSES..][..BLOCK * CLASSES];
            let rows = conformax::Logits::new(logits, CLASSES).unwrap();
            rows.labelled(&data.labels[block * BLOCK..][..BLOCK]).unwrap()
        })
    };
    let tuned = || {
        let alpha = Alpha::new(0.1).unwrap();
        let mut tuner = Tuner::new(vec![entmax(1.5), entmax(2.0)], CLASSES, alpha).unwrap();
        blocks().for_each(|rows| tuner.extend(rows).unwrap());
        tuner
    };
    // Rows that are dealt out at the end are kept till then, by twenty bytes each.
    for choose in [Choose::Ranks, Choose::Clusters(Some(2))] {
        let (dealt, held) = most_held(|| {
            let mut dealer = Dealer::new(entmax(1.5), CLASSES, choose).unwrap();
            blocks().for_each(|rows| dealer.extend(rows).unwrap());
            dealer.finish(Alpha::new(0.1).unwrap()).unwrap()
        });
        let wanted = (20 + 20 / 8 + 9) * ROWS + FINGERPRINTS;
        assert!(held <= wanted + CONSTANT, "{choose:?}: {held} bytes for {ROWS} rows, wanted {wanted}");
        assert!((ROWS / 2..ROWS).contains(&(dealt.calibration.n() as usize)), "{choose:?}");
    }
    let (sizes, held) = most_held(|| tuned().finish().unwrap());
    assert!(held <= 2 * 9 * ROWS + CONSTANT, "tuning: {held} bytes for {ROWS} rows and two candidates");
    drop(sizes);
    // A choice by all rows holds that first, and then four bytes a row and candidate with the scores that lie between
    // two neighbouring ones: of these there are few.
    let (mut pairs, held) = most_held(|| tuned().finish_selecting().unwrap());
    assert!(held <= 2 * 9 * ROWS + CONSTANT, "scoring: {held} bytes for {ROWS} rows and two candidates");
    let (selection, held) = most_held(|| {
        blocks().for_each(|rows| pairs.extend(rows).unwrap());
        pairs.finish().unwrap().0
    });
    assert!(held <= 2 * 9 * ROWS / 2 + CONSTANT, "pairs: {held} bytes for {ROWS} rows and two candidates");
    assert_eq!(selection.n(), ROWS as u64);
    assert!(selection.rivals().iter().all(|rival| rival.between.len() <= 1000));
}
