//! The conditional study against sets that are made here by the definition.

// What the tests share is not itself a test, which is where the lint would allow it.
#![allow(clippy::unwrap_used, clippy::panic)]

use conformax::{
    Alpha, Calibration, Calibrator, Choose, CoverageLaw, Dealer, EntmaxScore, Gamma, Generator, LabelShift,
    Logits, Prior, Scheme, TuningSplit, conformal_rank, label_weights, score_all_labels, split,
};
use conformax_io::{Block, Values};
use conformax_study::{Benchmark, ConditionalResults, Kind, RunOptions, Study};

const CLASSES: usize = 4;
const ROWS: usize = 3_000;

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

/// Rows of their own, as somebody has them who calls the library.
#[derive(Clone)]
struct Rows {
    logits: Vec<f64>,
    labels: Vec<u32>,
}

impl Rows {
    fn all() -> Self {
        let (logits, labels) = logits();
        Self { logits: logits.into_iter().map(f64::from).collect(), labels }
    }

    fn pick(&self, rows: &[usize]) -> Self {
        Self {
            logits: rows.iter().flat_map(|row| &self.logits[row * CLASSES..][..CLASSES]).copied().collect(),
            labels: rows.iter().map(|row| self.labels[*row]).collect(),
        }
    }

    fn counts(&self) -> Vec<u64> {
        let of = |class: u32| self.labels.iter().filter(|label| **label == class).count() as u64;
        (0..CLASSES as u32).map(of).collect()
    }

    fn as_logits(&self) -> Logits<'_, f64> {
        Logits::new(&self.logits, CLASSES).unwrap()
    }

    fn less(&self, prior: &Prior) -> Self {
        let mut logits = Vec::new();
        prior.adjust(self.as_logits(), &mut logits).unwrap();
        Self { logits, labels: self.labels.clone() }
    }

    fn calibrated(&self, calibrator: Calibrator<EntmaxScore>) -> Calibration<EntmaxScore> {
        let mut calibrator = calibrator;
        calibrator.extend(self.as_logits().labelled(&self.labels).unwrap()).unwrap();
        calibrator.finish().unwrap()
    }

    /// The calibration of those that do not choose, and how many of each class they are; of all under one threshold
    /// where they are too few for clusters.
    fn dealt(&self, choose: Choose, seed: u64, alpha: Alpha) -> (Calibration<EntmaxScore>, Vec<u64>) {
        let score = EntmaxScore { gamma: Gamma::ENTMAX15 };
        let mut dealer = Dealer::new(score, CLASSES, choose).unwrap().with_seed(seed);
        dealer.extend(self.as_logits().labelled(&self.labels).unwrap()).unwrap();
        match dealer.finish(alpha) {
            Ok(dealt) => (dealt.calibration, dealt.counts),
            Err(conformax::Error::FewForClusters { .. }) => {
                (self.calibrated(under(Scheme::default())), self.counts())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Coverage and average size of a calibration's sets on these rows.
    fn judged(&self, calibration: &Calibration<EntmaxScore>, alpha: Alpha) -> (f64, f64) {
        let sets = calibration.at(alpha).0.predict(self.as_logits()).unwrap();
        let covered = sets.iter().zip(&self.labels).filter(|(set, label)| set.contains(label)).count();
        let n = self.labels.len() as f64;
        (covered as f64 / n, sets.labels().len() as f64 / n)
    }
}

fn under(scheme: Scheme) -> Calibrator<EntmaxScore> {
    Calibrator::new(EntmaxScore { gamma: Gamma::ENTMAX15 }, CLASSES).unwrap().under(scheme).unwrap()
}

/// Rows for calibration, the places among them of those that tune and of those that do not, and test rows.
fn dealt(seed: u64) -> (Rows, [Vec<usize>; 2], Rows) {
    let (all, parts) = (Rows::all(), split(ROWS, &[0.4, 0.6], seed).unwrap());
    let TuningSplit { calibrating, tuning, .. } = TuningSplit::new(parts[0].len(), 0.4, seed).unwrap();
    (all.pick(&parts[0]), [tuning, calibrating], all.pick(&parts[1]))
}

#[test]
fn the_other_ways_are_those_of_the_library_called_by_hand() {
    let results = run();
    for seed in 0..2 {
        let (calibration, [tuning, calibrating], test) = dealt(seed);
        let (tuning, calibrating) = (calibration.pick(&tuning), calibration.pick(&calibrating));
        for alpha in [0.1, 0.05] {
            let level = Alpha::new(alpha).unwrap();
            let of = |way: &str| {
                let is_its = |r: &&conformax_study::ConditionalRecord| {
                    (r.procedure.as_str(), r.alpha, r.split) == (way, alpha, seed)
                };
                let record = results.records.iter().find(is_its).unwrap();
                (record.coverage, record.average_size)
            };
            let counts = tuning.counts().iter().map(|count| count + 1).collect::<Vec<_>>();
            let prior = Prior::of_counts(&counts).unwrap();
            let adjusted = calibrating.less(&prior).calibrated(under(Scheme::default()));
            assert_eq!(of("prior-adjusted"), test.less(&prior).judged(&adjusted, level), "{alpha}, {seed}");

            for (way, choose) in
                [("rank-truncated", Choose::Ranks), ("clustered classes", Choose::Clusters(None))]
            {
                let (dealt, _) = calibration.dealt(choose, seed, level);
                assert_eq!(of(way), test.judged(&dealt, level), "{way}: {alpha}, {seed}");
                let is_by_class = dealt.scheme() != &Scheme::default();
                assert!(is_by_class || alpha == 0.05, "{way}: rows are enough at 0.1");
            }
        }
    }
}

/// Shares of the classes where rows are drawn anew: from the hardest class to the easiest they fall evenly to a tenth.
/// The classes of these rows are in that order.
fn shares() -> Vec<f64> {
    // The third root of a tenth: three steps from the first class to the last.
    const STEP: f64 = 0.464_158_883_361_277_9;
    let fallen: Vec<f64> = (0..CLASSES as i32).map(|class| STEP.powi(class)).collect();
    let total: f64 = fallen.iter().sum();
    fallen.iter().map(|share| share / total).collect()
}

/// As many rows as test, each of a class by its share, and then any of that class.
fn drawn(test: &Rows, shares: &[f64], seed: u64) -> Vec<usize> {
    let mut random = Generator::new(seed, "label shift");
    let of_class = |class: usize| -> Vec<usize> {
        (0..test.labels.len()).filter(|row| test.labels[*row] as usize == class).collect()
    };
    let of_class: Vec<Vec<usize>> = (0..CLASSES).map(of_class).collect();
    let ends: Vec<f64> = (0..CLASSES).map(|class| shares[..=class].iter().sum()).collect();
    let one = |_| {
        let at = random.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let rows = &of_class[ends.iter().position(|end| at < *end).unwrap_or(CLASSES - 1)];
        rows[random.below(rows.len() as u64) as usize]
    };
    (0..test.labels.len()).map(one).collect()
}

#[test]
fn weights_under_label_shift_are_those_of_the_library_called_by_hand() {
    let results = run();
    let shares = shares();
    for seed in 0..2 {
        let (calibration, _, test) = dealt(seed);
        let rows = drawn(&test, &shares, seed);
        let (unlabelled, judged) = rows.split_at(rows.len() / 2);
        let (unlabelled, judged) = (test.pick(unlabelled), test.pick(judged));
        let estimated = |method| {
            let known = calibration.as_logits().labelled(&calibration.labels).unwrap();
            label_weights(known, unlabelled.as_logits(), method).unwrap()
        };
        let of_each = (ROWS / CLASSES) as f64;
        let known: Vec<f64> = shares.iter().map(|share| share * ROWS as f64 / of_each).collect();
        let schemes = [
            ("unweighted", Scheme::default()),
            ("known weights", Scheme::LabelWeights(known)),
            ("weights by EM", Scheme::LabelWeights(estimated(LabelShift::Em))),
            ("weights by BBSE", Scheme::LabelWeights(estimated(LabelShift::Bbse))),
        ];
        for (weighting, scheme) in schemes {
            let calibrated = calibration.calibrated(under(scheme));
            for alpha in [0.1, 0.05] {
                let is_its = |r: &&conformax_study::ShiftRecord| {
                    (r.weighting.as_str(), r.alpha, r.split) == (weighting, alpha, seed)
                };
                let record = results.shift.iter().find(is_its).unwrap();
                let wanted = judged.judged(&calibrated, Alpha::new(alpha).unwrap());
                assert_eq!(
                    (record.coverage, record.average_size),
                    (Some(wanted.0), Some(wanted.1)),
                    "{weighting} at {alpha}, split {seed}"
                );
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
    assert_eq!([tuned("one threshold"), tuned("rank-truncated"), tuned("prior-adjusted")], [1200, 720, 720]);
    assert_eq!(results.classes[..CLASSES].iter().map(|class| class.n_test).sum::<u64>(), 1800);
}

/// Some ways set rows aside, which then do not calibrate.
#[test]
fn the_band_of_a_class_is_that_of_its_rows_that_calibrate() {
    let results = run();
    let (calibration, [_, calibrating], test) = dealt(0);
    let (all, rest) = (calibration.counts(), calibration.pick(&calibrating).counts());
    assert_ne!(all, rest);
    for alpha in [0.1, 0.05] {
        let level = Alpha::new(alpha).unwrap();
        let dealt = |choose| calibration.dealt(choose, 0, level).1;
        for (way, counts) in [
            ("one threshold", &all),
            ("by class", &all),
            ("clustered classes", &dealt(Choose::Clusters(None))),
            ("rank-truncated", &dealt(Choose::Ranks)),
            ("prior-adjusted", &rest),
        ] {
            let shown = results.classes.iter().filter(|c| c.procedure == way && c.alpha == alpha);
            let found = shown.map(|class| (class.n_cal, (class.low, class.high))).collect::<Vec<_>>();
            let band = |(n, m): (&u64, u64)| {
                (*n, CoverageLaw::at_level(*n, level).interval_of_rows(0.95, m).unwrap())
            };
            let wanted = counts.iter().zip(test.counts()).map(band).collect::<Vec<_>>();
            assert_eq!(found, wanted, "{way} at {alpha}");
        }
    }
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
