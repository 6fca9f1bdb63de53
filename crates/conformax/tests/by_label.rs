//! Thresholds of labels and p-values of all labels against the definition, label by label, on rows that make estimates
//! hard: ties, logits that differ in the last digits, masked classes, huge and tiny ones.

use conformax::{
    Calibration, Calibrator, EntmaxScore, Evidence, Gamma, InvProbScore, Logit, Logits, MarginScore, PValue,
    Predictor, RapsScore, Row, Scheme, Score, ScoreSpec, SortedScores, Taxonomy, Thresholds, TopKScore,
    WeightedScores,
};

/// Steps of the golden ratio never repeat and leave no stretch of the interval out.
fn draw(seed: usize) -> f64 {
    (seed as f64 * 0.618_033_988_749_894_9).fract()
}

/// A leader or a few, and a crowd behind: what a classifier gives.
fn crowd(classes: usize, seed: usize) -> Vec<f64> {
    let noise = |at: usize| draw(seed + 7 * at) + draw(seed + 11 * at + 3) + draw(seed + 13 * at + 5) - 1.5;
    let mut row: Vec<f64> = (0..classes).map(|at| 4.0 * noise(at + 1)).collect();
    for lead in 0..5 {
        row[(seed + lead * 37) % classes] += 9.0 * draw(seed * 3 + lead);
    }
    row
}

fn rows() -> Vec<Vec<f64>> {
    let mut rows = Vec::new();
    for (seed, classes) in [(1, 10), (2, 63), (3, 64), (4, 65), (5, 100), (6, 333), (7, 1000), (8, 1000)] {
        rows.push(crowd(classes, seed));
    }
    // Ties everywhere; far from zero; close to it; labels closer than single precision tells.
    rows.push(crowd(400, 9).iter().map(|z| (4.0 * z).round() / 4.0).collect());
    rows.push(crowd(300, 10).iter().map(|z| z + 1e6).collect());
    rows.push(crowd(200, 11).iter().map(|z| z * 1e-25).collect());
    rows.push(crowd(200, 12).iter().map(|z| z * 1e20).collect());
    rows.push(crowd(200, 13).iter().map(|z| 3.0 + z * 1e-9).collect());
    rows.push(vec![1.25; 90]);
    let mut masked = crowd(130, 14);
    masked[5..70].fill(f64::NEG_INFINITY);
    rows.push(masked);
    rows
}

fn scores_of<S: Score, T: Logit>(score: &S, logits: &[T]) -> Vec<f64> {
    let row = Row::new(logits).expect("a sound row");
    (0..logits.len() as u32).map(|label| score.score(row, label)).collect()
}

/// Thresholds of every kind, each label's by its own: its score and the numbers beside it, gaps, far below and above,
/// none at all, all there are.
fn thresholds(scores: &[f64], gaps: &[f64], seed: usize) -> Vec<f64> {
    let of = |label: usize| {
        let own = if scores[label] < f64::INFINITY { scores[label] } else { 1.0 };
        match (label + seed) * 2_654_435_761 % (9 + 5 * seed) {
            0 => own,
            1 => own.next_down(),
            2 => own.next_up(),
            3 => own * (1.0 + 3e-6),
            4 => own * (1.0 - 3e-6),
            5 => gaps[label].min(1e30),
            6 => [f64::INFINITY, -1.0, f64::NAN, 0.0][(label + seed) % 4],
            _ => own * 2.5 * draw(label + 17 * seed),
        }
    };
    (0..scores.len()).map(of).collect()
}

fn check_sets<S: Score + Copy, T: Logit>(score: S, logits: &[T], what: &str) {
    let scores = scores_of(&score, logits);
    let row = Row::new(logits).expect("a sound row");
    let gaps: Vec<f64> = (0..logits.len() as u32).map(|label| row.max() - row.logit(label)).collect();
    let mut ranked: Vec<u32> = (0..logits.len() as u32).collect();
    ranked.sort_by(|a, b| row.logit(*b).partial_cmp(&row.logit(*a)).expect("no NaN"));
    for seed in 0..6 {
        let thresholds = thresholds(&scores, &gaps, seed);
        let inside = |label: &u32| scores[*label as usize] <= thresholds[*label as usize];
        let wanted: Vec<u32> = ranked.iter().copied().filter(inside).collect();
        let model = Predictor::new(score, Thresholds::PerLabel(thresholds.clone()));
        let one = Logits::new(logits, logits.len()).expect("a whole row");
        let sets = model.predict(one).expect("a sound row");
        assert_eq!(sets.labels(), wanted, "{what}, {} classes, seed {seed}", logits.len());
    }
}

#[test]
fn sets_by_label_are_the_definition() {
    for (index, row) in rows().iter().enumerate() {
        for gamma in [1.0, 1.05, 1.3, 1.5, 1.7, 2.0, 2.1, 3.0, 16.0] {
            let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
            check_sets(score, row, &format!("row {index}, gamma {gamma}"));
            if [1.05, 1.7, 2.1, 16.0].contains(&gamma) {
                continue;
            }
            let single: Vec<f32> = row.iter().map(|z| *z as f32).collect();
            check_sets(score, &single, &format!("row {index} in f32, gamma {gamma}"));
            #[cfg(feature = "half")]
            if row.iter().all(|z| z.abs() < 6e4 || *z == f64::NEG_INFINITY) {
                let half: Vec<half::f16> = row.iter().map(|z| half::f16::from_f64(*z)).collect();
                check_sets(score, &half, &format!("row {index} in f16, gamma {gamma}"));
            }
        }
        check_sets(ScoreSpec::InvProb(InvProbScore), row, "inv_prob");
        check_sets(ScoreSpec::Margin(MarginScore), row, "margin");
        check_sets(ScoreSpec::Raps(RapsScore::default()), row, "raps");
        check_sets(ScoreSpec::TopK(TopKScore), row, "top_k");
    }
}

/// Counted one by one.
fn p_value(calibration: &[f64], score: f64) -> PValue {
    let count = calibration.iter().filter(|other| **other >= score).count() as u128 + 1;
    PValue::new(count, calibration.len() as u128 + 1)
}

/// Rows whose p-values come from steps: a label far behind the others, or far ahead of them, so that most share a step;
/// ties, masked classes, logits at either end of what steps take and beyond.
fn rows_in_steps() -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.25; 300]];
    for (seed, far) in [(21, -1e4), (22, 1e4), (23, f64::NEG_INFINITY)] {
        let mut row = crowd(300 + seed, seed);
        row[seed] = far;
        rows.push(row);
    }
    let mut masked = crowd(1000, 24);
    masked[300..900].fill(f64::NEG_INFINITY);
    rows.push(masked);
    rows.push(crowd(700, 25).iter().map(|z| z.round()).collect());
    let scales = [1e-320, 1e-200, 1e-30, 1e-26, 1e-3, 1e20, 1e26, 1e40, 1e200, 1e300];
    rows.extend(scales.map(|scale| crowd(256, 26).iter().map(|z| z * scale).collect()));
    rows.push(crowd(300, 27).iter().map(|z| 1e9 + z).collect());
    rows
}

fn check_p_values<T: Logit>(score: EntmaxScore, row: &[T], calibrating: &[f64], what: &str) {
    let logits = Logits::new(row, row.len()).expect("a whole row");
    let own = scores_of(&score, row);
    // Scores of other rows, and of this one with their neighbours.
    let mut calibrating = calibrating.to_vec();
    calibrating.extend(own.iter().step_by(3).flat_map(|s| [*s, s.next_up(), s * (1.0 + 1e-9)]));
    calibrating.extend([0.0; 50]);
    calibrating.retain(|s| *s < f64::INFINITY);
    calibrating.push(f64::INFINITY);
    let sorted = SortedScores::new(calibrating.clone()).expect("numbers");
    let calibration = Calibration::from_scores(score, row.len(), sorted).expect("scores");
    let wanted: Vec<PValue> = own.iter().map(|score| p_value(&calibrating, *score)).collect();
    assert_eq!(calibration.p_values(logits).expect("a sound row"), wanted, "{what}");

    let weighted: Vec<(f64, f64)> =
        calibrating.iter().enumerate().map(|(at, score)| (*score, 1.0 + (at % 5) as f64)).collect();
    let weighted = std::sync::Arc::new(WeightedScores::new(weighted).expect("weights"));
    let wanted: Vec<PValue> = own.iter().map(|score| weighted.p_value(*score, 2.0)).collect();
    let evidence = Evidence::Weighted(weighted);
    let calibration =
        Calibration::from_evidence(score, row.len(), Scheme::RowWeights, evidence).expect("weighted scores");
    let logits = logits.with_weights(&[2.0]).expect("a weight");
    assert_eq!(calibration.p_values(logits).expect("a sound row"), wanted, "{what}, weights");
}

#[test]
fn p_values_are_counted_scores() {
    for (index, row) in rows().iter().chain(&rows_in_steps()).enumerate() {
        for gamma in [1.0, 1.3, 1.5, 2.0, 3.0] {
            let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
            let calibrating = scores_of(&score, &crowd(400, 77 + index));
            check_p_values(score, row, &calibrating, &format!("row {index}, gamma {gamma}"));
            if row.iter().any(|z| z.is_finite() && z.abs() > 6e4) {
                continue;
            }
            let single: Vec<f32> = row.iter().map(|z| *z as f32).collect();
            check_p_values(score, &single, &calibrating, &format!("row {index} in f32, gamma {gamma}"));
            #[cfg(feature = "half")]
            {
                let half: Vec<half::f16> = row.iter().map(|z| half::f16::from_f64(*z)).collect();
                check_p_values(score, &half, &calibrating, &format!("row {index} in f16, gamma {gamma}"));
                let half: Vec<half::bf16> = row.iter().map(|z| half::bf16::from_f64(*z)).collect();
                check_p_values(score, &half, &calibrating, &format!("row {index} in bf16, gamma {gamma}"));
            }
        }
    }
}

/// A predictor by class and its p-values say the same of every label.
#[test]
fn sets_by_class_are_the_labels_whose_p_value_exceeds_the_level() {
    let classes = 80;
    let data: Vec<f64> = (0..900).flat_map(|row| crowd(classes, 1000 + row)).collect();
    let logits = Logits::new(&data, classes).unwrap();
    let best = |row: &[f64]| (0..classes).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
    let labels: Vec<u32> = data.chunks(classes).map(|row| ((best(row) * 7 + 3) % classes) as u32).collect();
    let alpha = conformax::Alpha::new(0.2).unwrap();
    for gamma in [1.0, 1.5, 2.0, 3.0] {
        let score = EntmaxScore { gamma: Gamma::new(gamma).unwrap() };
        let mut calibrator = Calibrator::new(score, classes).unwrap().by(Taxonomy::Label).unwrap();
        calibrator.extend(logits.labelled(&labels).unwrap()).unwrap();
        let calibration = calibrator.finish().unwrap();
        let some = logits.rows(0..150);
        let (sets, p) = (calibration.at(alpha).0.predict(some).unwrap(), calibration.p_values(some).unwrap());
        for (row, set) in sets.iter().enumerate() {
            for label in 0..classes as u32 {
                let inside = p[row * classes + label as usize].in_set(alpha);
                assert_eq!(set.contains(&label), inside, "gamma {gamma}, row {row}, label {label}");
            }
        }
    }
}
