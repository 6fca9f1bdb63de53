//! The law within classes, groups and clusters, and coverage under shift; each fault that would break them is made
//! here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Calibrator, EntmaxScore, Gamma, Logits, RankChooser, Scheme, SortedScores, Taxonomy,
    WeightedScores, cluster_classes,
};

use super::pool::Random;
use super::verdict::{Verdict, law_holds, splits_wanted};

/// Scores are the gaps, so that a row with its true label at `-x` below the top scores `x`.
const GAP: EntmaxScore = EntmaxScore { gamma: Gamma::SOFTMAX };

fn alpha(value: f64) -> Alpha {
    Alpha::new(value).unwrap()
}

/// Rows of two classes whose true label is the second, this far behind.
fn rows(gaps: &[f64]) -> (Vec<f64>, Vec<u32>) {
    (gaps.iter().flat_map(|gap| [0.0, -gap]).collect(), vec![1; gaps.len()])
}

/// Counts the second labels that are in the sets, split after split.
fn judged(n: u64, m: u64, level: Alpha, mut covered: impl FnMut(&mut Random) -> u64) -> Verdict {
    let mut random = Random::new(11);
    let counts: Vec<u64> = (0..splits_wanted(n, m, level)).map(|_| covered(&mut random)).collect();
    law_holds(&counts, n, m, level)
}

fn held(sets: &conformax::PredictionSets, labels: &[u32]) -> u64 {
    sets.iter().zip(labels).filter(|(set, label)| set.contains(label)).count() as u64
}

/// Classes of the rows of two halves: the first is always on top and never true.
const CLASSES: usize = 5;

/// Rows of two halves in turns, of which the second has larger gaps, and the labels of each half in turns.
struct Halves {
    logits: Vec<f64>,
    labels: Vec<u32>,
    groups: Vec<u32>,
}

impl Halves {
    fn new(count: usize, of_half: [&[u32]; 2], random: &mut Random) -> Self {
        let mut drawn = Self { logits: Vec::new(), labels: Vec::new(), groups: Vec::new() };
        for row in 0..count {
            let (half, turn) = (row % 2, row / 2);
            let label = of_half[half][turn % of_half[half].len()];
            let start = drawn.logits.len();
            drawn.logits.extend([0.0, -9.0, -9.0, -9.0, -9.0]);
            drawn.logits[start + label as usize] = -random.uniform() * (1 + 2 * half) as f64;
            drawn.labels.push(label);
            drawn.groups.push(half as u32);
        }
        drawn
    }

    fn logits(&self) -> Logits<'_, f64> {
        Logits::new(&self.logits, CLASSES).unwrap().with_groups(&self.groups).unwrap()
    }
}

/// Clusters of classes, found on rows that do nothing else.
fn found_clusters(of_half: [&[u32]; 2]) -> Taxonomy {
    let rows = Halves::new(400, of_half, &mut Random::new(5));
    let mut of_class = Calibrator::new(GAP, CLASSES).unwrap().by(Taxonomy::Label).unwrap();
    of_class.extend(rows.logits().labelled(&rows.labels).unwrap()).unwrap();
    let clusters = cluster_classes(of_class.finish().unwrap().groups(), 2, 1, 0).unwrap();
    assert_eq!(clusters, [None, Some(0), Some(0), Some(1), Some(1)], "the halves are told apart");
    Taxonomy::Cluster(clusters)
}

#[test]
fn every_group_class_and_cluster_covers_by_the_law_of_its_own_rows() {
    let (n, m, level) = (49, 50, alpha(0.2));
    let apart: [&[u32]; 2] = [&[1, 2], &[3, 4]];
    let cases: [(Taxonomy, [&[u32]; 2]); 3] =
        [(Taxonomy::Group(2), [&[1], &[1]]), (Taxonomy::Label, [&[1], &[3]]), (found_clusters(apart), apart)];
    for (taxonomy, of_half) in cases {
        let covered = |random: &mut Random, taxonomy: &Taxonomy, half: usize| {
            let calibrating = Halves::new(2 * n, of_half, random);
            let test = Halves::new(2 * m, of_half, random);
            let mut calibrator = Calibrator::new(GAP, CLASSES).unwrap().by(taxonomy.clone()).unwrap();
            calibrator.extend(calibrating.logits().labelled(&calibrating.labels).unwrap()).unwrap();
            let (model, _) = calibrator.finish().unwrap().at(level);
            let sets = model.predict(test.logits()).unwrap();
            let of_the_half = sets.iter().zip(&test.labels).skip(half).step_by(2);
            of_the_half.filter(|(set, label)| set.contains(label)).count() as u64
        };
        for half in [0, 1] {
            let verdict = judged(n as u64, m as u64, level, |random| covered(random, &taxonomy, half));
            assert!(verdict.is_law(), "{taxonomy:?}, half {half}: {verdict:?}");
        }
        let one = judged(n as u64, m as u64, level, |random| covered(random, &Taxonomy::All, 1));
        assert!(!one.is_at_least_law(), "one threshold for all, against {taxonomy:?}: {one:?}");
    }
}

/// Rows of one true class among many: its gap, and how many labels stand before it, both at random.
fn ranked_rows(count: usize, classes: usize, random: &mut Random) -> (Vec<f64>, Vec<u32>) {
    let mut logits = Vec::with_capacity(count * classes);
    for _ in 0..count {
        let (gap, ahead) = (1.0 + random.uniform(), (random.uniform() * (classes - 2) as f64) as usize);
        logits.push(0.0);
        logits.push(-gap);
        logits.extend((0..classes - 2).map(|other| if other < ahead { -0.5 } else { -9.0 }));
    }
    (logits, vec![1; count])
}

#[test]
fn ranks_chosen_on_other_rows_keep_the_law_and_on_the_same_rows_do_not() {
    let (n, m, classes, level) = (19, 20, 200, alpha(0.2));
    let truncated = |random: &mut Random, honest: bool| {
        let (logits, labels) = ranked_rows(n, classes, random);
        let (other, other_labels) = ranked_rows(n, classes, random);
        let (test, test_labels) = ranked_rows(m, classes, random);
        let calibrating = Logits::new(&logits, classes).unwrap().labelled(&labels).unwrap();
        let choosing = Logits::new(&other, classes).unwrap().labelled(&other_labels).unwrap();
        let mut chooser = RankChooser::new(classes).unwrap();
        chooser.extend(if honest { choosing } else { calibrating }).unwrap();
        let calibrator = Calibrator::new(GAP, classes).unwrap().by(Taxonomy::Label).unwrap();
        let mut calibrator = calibrator.with_ranks(chooser.finish(level).unwrap()).unwrap();
        calibrator.extend(calibrating).unwrap();
        let (model, _) = calibrator.finish().unwrap().at(level);
        held(&model.predict(Logits::new(&test, classes).unwrap()).unwrap(), &test_labels)
    };
    let verdict = judged(n as u64, m as u64, level, |random| truncated(random, true));
    assert!(verdict.is_at_least_law(), "{verdict:?}");
    let reused = judged(n as u64, m as u64, level, |random| truncated(random, false));
    assert!(!reused.is_at_least_law(), "ranks chosen on calibrating rows: {reused:?}");
}

/// Gaps of classes that are all alike.
fn alike(classes: usize, of_each: usize, random: &mut Random) -> Vec<SortedScores> {
    let class = |_| SortedScores::new((0..of_each).map(|_| random.uniform()).collect()).unwrap();
    (0..classes).map(class).collect()
}

#[test]
fn clusters_found_on_other_rows_keep_the_law_and_on_the_same_rows_do_not() {
    // Twenty classes of ten rows in two clusters; the rows of the lower cluster are looked at.
    let (classes, of_each, m, level) = (20, 10, 40, alpha(0.2));
    let mut shortfall = [0.0_f64; 2];
    let splits = 3_000;
    for (honest, shortfall) in [true, false].into_iter().zip(&mut shortfall) {
        let mut random = Random::new(17);
        for seed in 0..splits {
            let calibrating = alike(classes, of_each, &mut random);
            let other = alike(classes, of_each, &mut random);
            let finding = if honest { &other } else { &calibrating };
            let clusters = cluster_classes(finding, 2, 1, seed).unwrap();
            let median = |cluster: u32| {
                let own = clusters.iter().zip(finding).filter(|(own, _)| **own == Some(cluster));
                let medians: Vec<f64> = own.map(|(_, scores)| scores.as_slice()[of_each / 2]).collect();
                medians.iter().sum::<f64>() / medians.len() as f64
            };
            let lower = u32::from(median(1) < median(0));
            let own = clusters.iter().zip(&calibrating).filter(|(own, _)| **own == Some(lower));
            let scores: Vec<f64> = own.flat_map(|(_, scores)| scores.as_slice()).copied().collect();
            let scores = SortedScores::new(scores).unwrap();
            let (threshold, law) = (scores.threshold(level), scores.level(level).law());
            let covered = (0..m).filter(|_| random.uniform() <= threshold).count();
            *shortfall += (law.mean() - covered as f64 / m as f64) / splits as f64;
        }
    }
    // One deviation of a mean over so many splits is about 0.0017.
    assert!(shortfall[0].abs() < 0.006, "{shortfall:?}");
    assert!(shortfall[1] > 0.02, "clusters found on calibrating rows: {shortfall:?}");
}

/// Where the rows to come are drawn with density `2t` against calibration's 1, and gaps grow with `t`: `(gap, weight)`.
fn shifted(random: &mut Random, target: bool) -> (f64, f64) {
    let t = if target { random.uniform().sqrt() } else { random.uniform() };
    (t * t + 0.2 * random.uniform(), 2.0 * t)
}

#[test]
fn known_weights_keep_coverage_under_shift_and_nothing_less_does() {
    let (n, level, draws) = (19, alpha(0.2), 20_000);
    let mut random = Random::new(23);
    let mut covered = [0_u32; 4];
    for _ in 0..draws {
        let calibrating: Vec<(f64, f64)> = (0..n).map(|_| shifted(&mut random, false)).collect();
        let (gap, weight) = shifted(&mut random, true);
        // Through the public calls on logits.
        let (logits, labels) = rows(&calibrating.iter().map(|(gap, _)| *gap).collect::<Vec<_>>());
        let weights: Vec<f64> = calibrating.iter().map(|(_, weight)| *weight).collect();
        let mut calibrator = Calibrator::new(GAP, 2).unwrap().under(Scheme::RowWeights).unwrap();
        let of_rows = Logits::new(&logits, 2).unwrap().with_weights(&weights).unwrap();
        calibrator.extend(of_rows.labelled(&labels).unwrap()).unwrap();
        let (model, _) = calibrator.finish().unwrap().at(level);
        let row = [0.0, -gap];
        let of_test = [weight];
        let test = Logits::new(&row, 2).unwrap().with_weights(&of_test).unwrap();
        covered[0] += u32::from(model.predict(test).unwrap().get(0).unwrap().contains(&1));
        // Without weights.
        let plain = SortedScores::new(calibrating.iter().map(|(gap, _)| *gap).collect()).unwrap();
        covered[1] += u32::from(gap <= plain.threshold(level));
        // Scores and weights sorted apart.
        let (mut gaps, mut sorted): (Vec<f64>, Vec<f64>) = calibrating.iter().copied().unzip();
        gaps.sort_by(f64::total_cmp);
        sorted.sort_by(|a, b| b.total_cmp(a));
        let apart = |sorted: &[f64]| {
            let pairs = gaps.iter().copied().zip(sorted.iter().copied()).collect();
            WeightedScores::new(pairs).unwrap().threshold(level, weight)
        };
        covered[2] += u32::from(gap <= apart(&sorted));
        let together = WeightedScores::new(calibrating).unwrap();
        // The other way round no threshold is lower, so that nothing is missed: the heaviest weights stand last, and
        // the sum up to any score is the least there can be.
        sorted.reverse();
        assert!(apart(&sorted) >= together.threshold(level, weight));
        // The test row's own weight left out.
        covered[3] += u32::from(gap <= together.threshold(level, 0.0));
    }
    let share = covered.map(|covered| f64::from(covered) / f64::from(draws));
    let error = (0.2_f64 * 0.8 / f64::from(draws)).sqrt();
    assert!(share[0] >= 0.8 - 3.0 * error, "{share:?}");
    for (what, share) in
        ["no weights", "sorted apart", "the row's own weight left out"].iter().zip(&share[1..])
    {
        assert!(*share < 0.8 - 3.0 * error, "{what}: {share}");
    }
}
