//! The law within classes, groups and clusters, and coverage under shift; each fault that would break them is made
//! here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Calibrator, Choose, Dealer, EntmaxScore, Gamma, Logits, Ranks, Scheme, SortedScores, Taxonomy,
    WeightedScores, cluster_classes, conformal_rank, row_fingerprints,
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

/// Rows of which 19 calibrate where 40 % choose.
const DEALT: usize = 31;

#[test]
fn ranks_chosen_on_other_rows_keep_the_law_and_on_the_same_rows_do_not() {
    let (n, m, classes, level) = (19, 20, 200, alpha(0.2));
    let on_test = |model: &conformax::Predictor<EntmaxScore>, random: &mut Random| {
        let (test, labels) = ranked_rows(m, classes, random);
        held(&model.predict(Logits::new(&test, classes).unwrap()).unwrap(), &labels)
    };
    let verdict = judged(n as u64, m as u64, level, |random| {
        let (logits, labels) = ranked_rows(DEALT, classes, random);
        let mut dealer = Dealer::new(GAP, classes, Choose::Ranks).unwrap();
        dealer.extend(Logits::new(&logits, classes).unwrap().labelled(&labels).unwrap()).unwrap();
        let calibration = dealer.finish(level).unwrap().calibration;
        assert_eq!(calibration.n(), n as u64);
        on_test(&calibration.at(level).0, random)
    });
    assert!(verdict.is_at_least_law(), "{verdict:?}");
    let reused = judged(n as u64, m as u64, level, |random| {
        let (logits, labels) = ranked_rows(n, classes, random);
        let rank = |row: &[f64]| row.iter().filter(|logit| **logit >= row[1]).count() as u32;
        let mut ranks: Vec<u32> = logits.chunks(classes).map(rank).collect();
        ranks.sort_unstable();
        // Half of the level, as the library does.
        let mut largest = vec![classes as u32; classes];
        largest[1] = ranks[conformal_rank(n as u64, alpha(0.1)).unwrap() as usize - 1];
        let calibrator = Calibrator::new(GAP, classes).unwrap().by(Taxonomy::Label).unwrap();
        let mut calibrator = calibrator.with_ranks(Ranks::new(largest).unwrap()).unwrap();
        calibrator.extend(Logits::new(&logits, classes).unwrap().labelled(&labels).unwrap()).unwrap();
        on_test(&calibrator.finish().unwrap().at(level).0, random)
    });
    assert!(!reused.is_at_least_law(), "ranks chosen on calibrating rows: {reused:?}");
}

/// A quarter of all rows are of one kind, the hardest. Were there one coin for all of them, they would choose together
/// or calibrate together.
#[test]
fn equal_rows_keep_the_law_where_each_has_a_coin_of_its_own() {
    let (n, m, level) = (19, 20, alpha(0.2));
    let gap = |random: &mut Random| if random.uniform() < 0.25 { 3.0 } else { 1.0 + random.uniform() };
    let gaps = |count: usize, random: &mut Random| (0..count).map(|_| gap(random)).collect::<Vec<f64>>();
    let verdict = judged(n as u64, m as u64, level, |random| {
        let (logits, labels) = rows(&gaps(DEALT, random));
        let mut dealer = Dealer::new(GAP, 2, Choose::Ranks).unwrap();
        dealer.extend(Logits::new(&logits, 2).unwrap().labelled(&labels).unwrap()).unwrap();
        let calibration = dealer.finish(level).unwrap().calibration;
        let (test, labels) = rows(&gaps(m, random));
        held(&calibration.at(level).0.predict(Logits::new(&test, 2).unwrap()).unwrap(), &labels)
    });
    assert!(verdict.is_at_least_law(), "{verdict:?}");
    let together = judged(n as u64, m as u64, level, |random| {
        let calibrates = |random: &mut Random| random.uniform() < 0.6;
        let kind_calibrates = calibrates(random);
        let mut dealt = Vec::with_capacity(n);
        while dealt.len() < n {
            let gap = gap(random);
            if if gap == 3.0 { kind_calibrates } else { calibrates(random) } {
                dealt.push(gap);
            }
        }
        let scores = SortedScores::new(dealt).unwrap();
        let threshold = scores.threshold(level);
        gaps(m, random).iter().filter(|gap| **gap <= threshold).count() as u64
    });
    assert!(!together.is_at_least_law(), "equal rows dealt out together: {together:?}");
}

/// Gaps of classes that are all alike.
fn alike(classes: usize, of_each: usize, random: &mut Random) -> Vec<SortedScores> {
    let class = |_| SortedScores::new((0..of_each).map(|_| random.uniform()).collect()).unwrap();
    (0..classes).map(class).collect()
}

/// How far the coverage of the lower of two clusters stays behind the mean of its law, over many splits.
fn shortfall(mut calibrated: impl FnMut(u64, &mut Random) -> SortedScores) -> f64 {
    let (m, level, splits) = (40, alpha(0.2), 3_000);
    let mut random = Random::new(17);
    let of_split = |seed| {
        let scores = calibrated(seed, &mut random);
        let (threshold, law) = (scores.threshold(level), scores.level(level).law());
        let covered = (0..m).filter(|_| random.uniform() <= threshold).count();
        law.mean() - covered as f64 / f64::from(m)
    };
    (0..splits).map(of_split).sum::<f64>() / splits as f64
}

/// The lower cluster, by the medians of the scores that found it.
fn lower(clusters: &[Option<u32>], finding: &[SortedScores]) -> u32 {
    let median = |cluster: u32| {
        let own = clusters.iter().zip(finding).filter(|(own, _)| **own == Some(cluster));
        let medians: Vec<f64> = own.map(|(_, scores)| scores.as_slice()[scores.n() as usize / 2]).collect();
        medians.iter().sum::<f64>() / medians.len() as f64
    };
    u32::from(median(1) < median(0))
}

#[test]
fn clusters_found_on_other_rows_keep_the_law_and_on_the_same_rows_do_not() {
    // Twenty classes of ten rows in two clusters; the rows of the lower cluster are looked at.
    let (classes, of_each) = (20, 10);
    let found_on = |honest: bool| {
        shortfall(|seed, random| {
            let calibrating = alike(classes, of_each, random);
            let other = alike(classes, of_each, random);
            let finding = if honest { &other } else { &calibrating };
            let clusters = cluster_classes(finding, 2, 1, seed).unwrap();
            let lower = lower(&clusters, finding);
            let own = clusters.iter().zip(&calibrating).filter(|(own, _)| **own == Some(lower));
            SortedScores::new(own.flat_map(|(_, scores)| scores.as_slice()).copied().collect()).unwrap()
        })
    };
    // One deviation of a mean over so many splits is about 0.0017.
    let (other, same) = (found_on(true), found_on(false));
    assert!(other.abs() < 0.006, "{other}");
    assert!(same > 0.02, "clusters found on calibrating rows: {same}");
}

/// The same from rows that are dealt out, of which a fifth finds the clusters.
#[test]
fn clusters_found_on_rows_that_are_dealt_out_keep_the_law() {
    let (classes, of_each) = (20, 30);
    let dealt = shortfall(|_, random| {
        let labels: Vec<u32> = (0..(classes * of_each) as u32).map(|row| row % classes as u32).collect();
        let mut logits = vec![-9.0; labels.len() * classes];
        let mut gaps = Vec::with_capacity(labels.len());
        for (row, label) in logits.chunks_exact_mut(classes).zip(&labels) {
            gaps.push(random.uniform());
            row[(*label as usize + 1) % classes] = 0.0;
            row[*label as usize] = -gaps[gaps.len() - 1];
        }
        let rows = Logits::new(&logits, classes).unwrap();
        let mut dealer = Dealer::new(GAP, classes, Choose::Clusters(Some(2))).unwrap();
        dealer.extend(rows.labelled(&labels).unwrap()).unwrap();
        let dealt = dealer.finish(alpha(0.2)).unwrap();
        let Scheme::Groups(Taxonomy::Cluster(clusters)) = dealt.calibration.scheme() else {
            unreachable!("clusters were asked for")
        };
        let mut finding = vec![Vec::new(); classes];
        for ((row, label), gap) in row_fingerprints(rows).into_iter().zip(&labels).zip(gaps) {
            if dealt.choosing.contains(row) {
                finding[*label as usize].push(gap);
            }
        }
        let sorted = |gaps: Vec<f64>| SortedScores::new(gaps).unwrap_or_default();
        let finding: Vec<SortedScores> = finding.into_iter().map(sorted).collect();
        dealt.calibration.groups()[lower(clusters, &finding) as usize].clone()
    });
    assert!(dealt.abs() < 0.006, "{dealt}");
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
