//! Clusters of classes, for many classes with few rows each: classes whose scores are alike share a threshold.
//!
//! Some rows cluster the classes, the others calibrate a threshold per cluster (Ding, Angelopoulos, Bates, Jordan and
//! Tibshirani 2023), so the guarantee of each cluster is exact. A class is where five quantiles of its scores are;
//! weighted k-means puts near ones together. It is seeded, and its sums are in a fixed order.

use crate::random::Generator;
use crate::{Alpha, Error, Result, SortedScores};

/// The quantiles that stand for a class, in tenths.
const QUANTILES: [u64; 5] = [5, 6, 7, 8, 9];

/// Steps of k-means at most, and beginnings of which the best is kept.
const STEPS: usize = 200;
const BEGINNINGS: u64 = 10;

type Point = [f64; QUANTILES.len()];

/// How many clusters, found on what share of the rows, by the rule of the method's authors.
///
/// ```
/// use conformax::{Alpha, ClusterPlan};
/// let plan = ClusterPlan::for_counts(&[50; 100], Alpha::new(0.1)?).expect("enough rows");
/// assert_eq!((plan.clusters, plan.rows_wanted, plan.share), (14, 9, (28, 50)));
/// assert_eq!(ClusterPlan::for_counts(&[1, 1], Alpha::new(0.1)?), None);
/// // A class without a row is the rarest.
/// let counts = [&[50; 100][..], &[0]].concat();
/// let plan = ClusterPlan::for_counts(&counts, Alpha::new(0.1)?).expect("enough rows");
/// assert_eq!((plan.clusters, plan.share), (2, (5, 9)));
/// # Ok::<(), conformax::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterPlan {
    /// Clusters, beside the one of the classes with too few rows.
    pub clusters: usize,
    /// Rows a class needs among those that cluster: as many as a threshold of its own would take.
    pub rows_wanted: u64,
    /// Each row clusters with this probability, a number of so many; the others calibrate ([`Dealer`](crate::Dealer)).
    pub share: (u64, u64),
}

impl ClusterPlan {
    /// For so many rows of each class. `None` where there are too few for two clusters.
    pub fn for_counts(counts: &[u64], alpha: Alpha) -> Option<Self> {
        let least = counts.iter().copied().min()?.max(alpha.rows_needed());
        let common = counts.iter().filter(|count| **count >= least).count() as u64;
        // ⌊n_min·K'/(75 + K')⌋ rows of a class cluster, and half as many clusters are told apart by them.
        let wanted = u64::try_from(u128::from(least) * u128::from(common) / u128::from(75 + common)).ok()?;
        let clusters = (wanted / 2) as usize;
        let plan = Self { clusters, rows_wanted: alpha.rows_needed(), share: (wanted, least) };
        (clusters >= 2).then_some(plan)
    }
}

/// The cluster of each class by the scores of its rows; `None` for a class with fewer than `rows_wanted`, or with
/// infinite quantiles, which goes with the rows of all.
///
/// ```
/// use conformax::{SortedScores, cluster_classes};
/// let class = |at: f64| SortedScores::new((0..20).map(|i| at + f64::from(i) / 100.0).collect());
/// let classes = [class(0.0)?, class(5.0)?, class(0.01)?, SortedScores::default()];
/// let clusters = cluster_classes(&classes, 2, 10, 0)?;
/// assert!(clusters[0].is_some() && clusters[0] == clusters[2] && clusters[0] != clusters[1]);
/// assert_eq!(clusters[3], None);
/// # Ok::<(), conformax::Error>(())
/// ```
pub fn cluster_classes(
    scores: &[SortedScores],
    clusters: usize,
    rows_wanted: u64,
    seed: u64,
) -> Result<Vec<Option<u32>>> {
    if clusters == 0 {
        return Err(Error::Parameter { name: "clusters", wanted: "at least 1", got: 0.0 });
    }
    let points: Vec<(usize, Point, f64)> = (0..)
        .zip(scores)
        .filter(|(_, scores)| scores.n() >= rows_wanted.max(1))
        .map(|(label, scores)| (label, quantiles(scores), (scores.n() as f64).sqrt()))
        .filter(|(_, point, _)| point.iter().all(|value| value.is_finite()))
        .collect();
    let mut found = vec![None; scores.len()];
    let Some(of_point) = (0..BEGINNINGS)
        .map(|beginning| k_means(&points, clusters, &mut Generator::new(seed, "k-means").stream(beginning)))
        .reduce(|best, next| if next.1 < best.1 { next } else { best })
        .map(|(of_point, _)| of_point)
    else {
        return Ok(found);
    };
    // Numbered in the order of classes, without gaps.
    let mut numbers = vec![None; clusters];
    let mut next = 0;
    for ((label, ..), cluster) in points.iter().zip(of_point) {
        let number = *numbers[cluster].get_or_insert_with(|| {
            next += 1;
            next - 1
        });
        found[*label] = Some(number);
    }
    Ok(found)
}

/// The smallest score that so many tenths of the rows do not exceed.
fn quantiles(scores: &SortedScores) -> Point {
    QUANTILES.map(|tenths| scores.as_slice()[(scores.n() * tenths).div_ceil(10) as usize - 1])
}

fn squared_distance(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The nearest centre, and how far it is; of equals the first.
fn nearest(point: &Point, centres: &[Point]) -> (usize, f64) {
    let distances = centres.iter().map(|centre| squared_distance(point, centre)).enumerate();
    distances.reduce(|best, next| if next.1 < best.1 { next } else { best }).unwrap_or((0, f64::INFINITY))
}

/// The cluster of each point, and the weighted sum of squared distances.
fn k_means(points: &[(usize, Point, f64)], clusters: usize, generator: &mut Generator) -> (Vec<usize>, f64) {
    let mut centres: Vec<Point> = Vec::new();
    // Far points are likely beginnings (k-means++): each is drawn in proportion to its weighted squared distance.
    for _ in 0..clusters.min(points.len()) {
        let far = |(_, point, weight): &(usize, Point, f64)| match &centres[..] {
            [] => *weight,
            centres => weight * nearest(point, centres).1,
        };
        let total: f64 = points.iter().map(far).sum();
        let mut left = total * (generator.below(1 << 53) as f64 / (1_u64 << 53) as f64);
        let drawn = points.iter().find(|point| {
            left -= far(point);
            left < 0.0
        });
        match drawn {
            Some((_, point, _)) => centres.push(*point),
            None => break, // every point is a centre already
        }
    }
    let mut of_point = vec![0; points.len()];
    for _ in 0..STEPS {
        let next: Vec<usize> = points.iter().map(|(_, point, _)| nearest(point, &centres).0).collect();
        let settled = next == of_point;
        of_point = next;
        for (number, centre) in centres.iter_mut().enumerate() {
            let (mut sum, mut weights) = ([0.0; QUANTILES.len()], 0.0);
            for ((_, point, weight), _) in points.iter().zip(&of_point).filter(|(_, own)| **own == number) {
                sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += weight * value);
                weights += weight;
            }
            if weights > 0.0 {
                *centre = sum.map(|sum| sum / weights);
            }
        }
        if settled {
            break;
        }
    }
    let off = points.iter().map(|(_, point, weight)| weight * nearest(point, &centres).1).sum();
    (of_point, off)
}
