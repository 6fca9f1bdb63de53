//! The conditional study against sets that are made here by the definition.

// What the tests share is not itself a test, which is where the lint would allow it.
#![allow(clippy::unwrap_used)]

use conformax::{Alpha, EntmaxScore, Gamma, Logits, conformal_rank, score_all_labels, split};
use conformax_io::{Block, Values};
use conformax_study::{Benchmark, ConditionalResults, Kind, RunOptions, Study};

const CLASSES: usize = 4;
const ROWS: usize = 600;

/// Rows whose classes differ in how hard they are.
fn logits() -> (Vec<f32>, Vec<u32>) {
    let (mut logits, mut labels) = (Vec::new(), Vec::new());
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f32 / (1_u64 << 31) as f32
    };
    for row in 0..ROWS {
        let label = row % CLASSES;
        labels.push(label as u32);
        for class in 0..CLASSES {
            let pull = if class == label { 0.5 + label as f32 } else { 0.0 };
            logits.push(pull + 2.0 * next());
        }
    }
    (logits, labels)
}

fn study() -> Study {
    Study { splits: 2, ..Study::conditional() }
}

fn run() -> ConditionalResults {
    let (logits, labels) = logits();
    let rows = Block { logits: Values::F32(logits), classes: CLASSES, ..Block::default() };
    let benchmark = Benchmark::new("made", "Made", rows, labels).unwrap();
    study().run_conditional_on(&[benchmark], &()).unwrap()
}

/// The threshold of some rows' true labels.
fn threshold(scores: &[f64], labels: &[u32], rows: &[usize], alpha: Alpha) -> f64 {
    let mut own: Vec<f64> = rows.iter().map(|row| scores[row * CLASSES + labels[*row] as usize]).collect();
    own.sort_by(f64::total_cmp);
    match conformal_rank(own.len() as u64, alpha) {
        Some(rank) => own[rank as usize - 1],
        None => f64::INFINITY,
    }
}

#[test]
fn one_threshold_and_one_by_class_are_those_of_the_definition() {
    let results = run();
    let (logits, labels) = logits();
    let score = EntmaxScore { gamma: Gamma::ENTMAX15 };
    let scores = score_all_labels(&score, Logits::new(&logits, CLASSES).unwrap()).unwrap();
    for seed in 0..2 {
        let dealt = split(ROWS, &[0.4, 0.6], seed).unwrap();
        let (calibration, test) = (&dealt[0], &dealt[1]);
        for alpha in [0.1, 0.05] {
            let level = Alpha::new(alpha).unwrap();
            let one = threshold(&scores, &labels, calibration, level);
            let of_class: Vec<f64> = (0..CLASSES as u32)
                .map(|class| {
                    let own: Vec<usize> =
                        calibration.iter().copied().filter(|row| labels[*row] == class).collect();
                    threshold(&scores, &labels, &own, level)
                })
                .collect();
            for (way, limits) in [("one threshold", vec![one; CLASSES]), ("by class", of_class)] {
                let within = |row: usize, class: usize| scores[row * CLASSES + class] <= limits[class];
                let covered = test.iter().filter(|row| within(**row, labels[**row] as usize)).count();
                let size: usize =
                    test.iter().map(|row| (0..CLASSES).filter(|class| within(*row, *class)).count()).sum();
                let record = results
                    .records
                    .iter()
                    .find(|r| r.procedure == way && r.alpha == alpha && r.split == seed)
                    .unwrap();
                assert_eq!(record.coverage, covered as f64 / test.len() as f64, "{way} at {alpha}");
                assert_eq!(record.average_size, size as f64 / test.len() as f64, "{way} at {alpha}");
                let of_one = |class: u32| {
                    let rows: Vec<usize> = test.iter().copied().filter(|r| labels[*r] == class).collect();
                    let covered = rows.iter().filter(|row| within(**row, class as usize)).count();
                    covered as f64 / rows.len() as f64
                };
                let classes: Vec<f64> = (0..CLASSES as u32).map(of_one).collect();
                let worst = classes.iter().copied().fold(1.0, f64::min);
                assert_eq!(record.worst_class_coverage, worst);
                if seed == 0 {
                    let shown = results.classes.iter().filter(|c| c.procedure == way && c.alpha == alpha);
                    assert_eq!(shown.map(|class| class.coverage).collect::<Vec<_>>(), classes);
                }
            }
        }
    }
}

#[test]
fn there_is_a_record_of_everything_asked_for() {
    let results = run();
    assert_eq!(results.procedures.len(), 5);
    assert_eq!(results.weightings.len(), 4);
    assert_eq!(results.records.len(), 5 * 2 * 2, "procedures, levels, splits");
    assert_eq!(results.classes.len(), 5 * 2 * CLASSES, "of the first split alone");
    assert_eq!(results.shift.len(), 4 * 2 * 2);
    assert!(results.shift.iter().all(|record| record.coverage.is_some() && record.problem.is_none()));
    let tuned = |name: &str| results.records.iter().find(|record| record.procedure == name).unwrap().n_cal;
    assert_eq!([tuned("one threshold"), tuned("rank-truncated"), tuned("prior-adjusted")], [240, 144, 144]);
    assert!(results.classes.iter().all(|class| class.low < 0.95 && class.high > 0.85));
    assert_eq!(results.classes[..CLASSES].iter().map(|class| class.n_test).sum::<u64>(), 360);
}

#[test]
fn weights_of_labels_bring_coverage_back() {
    let options = RunOptions::default();
    let mut study = Study::conditional();
    study.benchmarks.retain(|benchmark| benchmark.name == "newsgroups");
    let results = study.run_conditional(&options, &()).unwrap();
    let mean = |weighting: &str, alpha: f64| {
        let found: Vec<f64> = results
            .shift
            .iter()
            .filter(|record| record.weighting == weighting && record.alpha == alpha)
            .map(|record| record.coverage.unwrap())
            .collect();
        found.iter().sum::<f64>() / found.len() as f64
    };
    // Hard classes are ten times as common: one threshold no longer covers, the known weights do.
    assert!(mean("unweighted", 0.1) < 0.89, "{}", mean("unweighted", 0.1));
    assert!((mean("known weights", 0.1) - 0.9).abs() < 0.01, "{}", mean("known weights", 0.1));
    assert_eq!(results, study.run_conditional(&options, &()).map(|again| same_run(again, &results)).unwrap());
}

/// Two runs differ in how long they took.
fn same_run(mut again: ConditionalResults, first: &ConditionalResults) -> ConditionalResults {
    again.provenance = first.provenance.clone();
    again
}

#[test]
fn keys_about_procedures_are_refused() {
    let text = "kind = \"conditional\"\nsweep = [1.5]\n[[benchmarks]]\nname = \"cifar10\"\n";
    let error = Study::parse(text, "mine.toml", ".".as_ref()).unwrap_err().to_string();
    assert!(error.contains("mine.toml:1") && error.contains("leave out sweep"), "{error}");
    assert_eq!(Study::conditional().kind, Kind::Conditional);
    assert_eq!(Study::paper().kind, Kind::Procedures);
}
