//! Any number of threads and any split of the rows give the same bits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![cfg(feature = "rayon")]

use crate::common::data::Data;
use crate::common::{bits, entmax};
use conformax::{
    Alpha, ApsScore, Calibration, Draw, Entmax, EntmaxScore, Gamma, Logits, Masked, Metrics, PValue,
    PredictionSets, RapsScore, Score, Strata, TuneOn, Tuning, entmax_grid, evaluate, predict_each, raps_grid,
    score_all_labels, score_labels, tune,
};

/// Seven do not divide the chunks evenly.
const THREADS: [usize; 3] = [1, 2, 7];

fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// The same value from every number of threads, which is returned.
fn same_on_any<R: Send + PartialEq + std::fmt::Debug>(work: impl Fn() -> R + Sync) -> R {
    let [one, two, seven] = THREADS.map(|threads| on_threads(threads, &work));
    assert!(one == two, "two threads differ from one");
    assert!(one == seven, "seven threads differ from one");
    one
}

fn alpha() -> Alpha {
    "0.1".parse().unwrap()
}

/// Everything that a score makes of calibration and test rows.
#[derive(Debug, PartialEq)]
struct Outcome {
    scores: Vec<u64>,
    sets: PredictionSets,
    probabilities: Vec<u64>,
    metrics: Metrics,
}

fn outcome<S: Score + Clone>(score: &S, cal: &Data, test: &Data) -> Outcome {
    let scores = score_labels(score, test.labelled()).unwrap();
    let calibration = Calibration::of(score.clone(), cal.rows().labelled(&cal.labels).unwrap()).unwrap();
    let (model, _) = calibration.at(alpha());
    let (sets, probabilities) = model.predict_probabilities(test.rows()).unwrap();
    assert_eq!(sets, model.predict(test.rows()).unwrap());
    assert_eq!(vec![sets.clone(); 2], predict_each(&vec![model; 2], test.rows()).unwrap());
    let metrics = evaluate(&sets, &test.labels, alpha(), &Strata::default()).unwrap();
    Outcome { scores: bits(&scores), sets, probabilities: bits(&probabilities), metrics }
}

/// Few classes, so that maxima are found for many rows at once, and many, where a chunk is 262 rows.
fn shapes() -> [(Data, Data); 2] {
    [(Data::new(500, 10, 1), Data::new(55_000, 10, 2)), (Data::new(300, 1_000, 3), Data::new(600, 1_000, 4))]
}

#[test]
fn scores_sets_probabilities_and_metrics() {
    for (cal, test) in shapes() {
        for gamma in [1.0, 1.3, 1.5, 3.0] {
            same_on_any(|| outcome(&entmax(gamma), &cal, &test));
        }
        same_on_any(|| outcome(&ApsScore::default(), &cal, &test));
        same_on_any(|| outcome(&RapsScore { draw: Draw::Seeded(9), ..RapsScore::default() }, &cal, &test));
    }
}

#[test]
fn p_values_and_scores_of_all_labels() {
    let (cal, test) = (Data::new(400, 10, 5), Data::new(60_000, 10, 6));
    let score = entmax(1.3);
    same_on_any(|| bits(&score_all_labels(&score, test.rows()).unwrap()));
    let calibration = Calibration::of(score, cal.rows().labelled(&cal.labels).unwrap()).unwrap();
    let p: Vec<PValue> = same_on_any(|| calibration.p_values(test.rows()).unwrap());
    assert_eq!(p.len(), 600_000);
}

#[test]
fn activations_and_losses() {
    let data = Data::new(55_000, 10, 7);
    for gamma in [1.0, 1.3, 1.5, 3.0] {
        let entmax = Entmax::new(Gamma::new(gamma).unwrap());
        same_on_any(|| bits(&entmax.forward_rows(data.rows()).unwrap()));
        same_on_any(|| bits(&entmax.loss_rows(data.rows(), &data.labels).unwrap()));
    }
}

fn tuned<S: Score + Clone>(
    grid: &[S],
    tuning: &Data,
    cal: &Data,
    how: Tuning,
) -> (usize, Vec<u64>, Vec<u64>) {
    let (tuning, calibrating) = (tuning.labelled(), cal.labelled());
    let on = TuneOn { grid, tuning, calibrating, alpha: alpha(), method: how, masked: Masked::Allowed };
    let tuned = tune(on).unwrap();
    let candidates = tuned.choice.candidates().iter();
    let found = candidates.flat_map(|c| [c.threshold.to_bits(), c.average_size.to_bits()]);
    (tuned.choice.chosen(), found.collect(), bits(tuned.calibration.groups()[0].as_slice()))
}

#[test]
fn tuning() {
    let (tuning, cal) = (Data::new(40_000, 10, 8), Data::new(60_000, 10, 9));
    for how in [Tuning::Valid, Tuning::Paper] {
        same_on_any(|| tuned(&entmax_grid()[3..6], &tuning, &cal, how));
        same_on_any(|| tuned(&raps_grid(10, Draw::default())[..2], &tuning, &cal, how));
    }
}

#[test]
fn any_split_of_the_rows_gives_the_same_sets() {
    let (cal, test) = (Data::new(400, 10, 10), Data::new(30_000, 10, 11));
    let logits: Logits<'_, f32> = test.rows();
    let calibration: Calibration<EntmaxScore> =
        Calibration::of(entmax(1.5), cal.rows().labelled(&cal.labels).unwrap()).unwrap();
    let (model, _) = calibration.at(alpha());
    let (whole, probabilities) = model.predict_probabilities(logits).unwrap();
    for cuts in
        [vec![0, 1, 30_000], vec![0, 26_214, 26_215, 30_000], vec![0, 409, 410, 12_345, 29_999, 30_000]]
    {
        let (mut sets, mut p) = (Vec::new(), Vec::new());
        for pair in cuts.windows(2) {
            let (part, of_part) = model.predict_probabilities(logits.rows(pair[0]..pair[1])).unwrap();
            sets.extend(part.iter().map(<[u32]>::to_vec));
            p.extend(of_part);
        }
        assert!(sets.iter().map(Vec::as_slice).eq(whole.iter()), "{cuts:?}");
        assert_eq!(bits(&p), bits(&probabilities), "{cuts:?}");
    }
}
