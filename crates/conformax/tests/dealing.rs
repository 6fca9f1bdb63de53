//! Who chooses and who calibrates, redone row by row from the definition.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::common::data::{Data, Uniform};
use conformax::{
    Alpha, Calibration, Calibrator, Choose, ClusterPlan, Dealer, Draw, EntmaxScore, Error, Generator,
    Labelled, Lambda, Logits, Masked, Ranks, Remember, RowSet, SapsScore, ScoreSpec, SortedScores, Taxonomy,
    cluster_classes, conformal_rank, row_fingerprints, score_labels,
};

const CLASSES: usize = 12;

/// Rows of which every other is one of nine, each with a label that comes often, and a draw for each row.
struct Repeated {
    data: Data,
    u: Vec<f64>,
}

impl Repeated {
    fn new(rows: usize) -> Self {
        let mut data = Data::new(rows, CLASSES, 11);
        for row in (0..rows).step_by(2) {
            let from = row / 2 % 9;
            data.logits.copy_within(from * CLASSES..(from + 1) * CLASSES, row * CLASSES);
            data.labels[row] = (from % 4) as u32;
        }
        let mut uniform = Uniform(5);
        // Few values, so that equal rows come with equal draws and with others.
        let u = (0..rows).map(|_| (uniform.next() * 4.0).floor() / 4.0).collect();
        Self { data, u }
    }

    fn rows(&self) -> Labelled<'_, f32> {
        self.data.rows().with_u(&self.u).unwrap().labelled(&self.data.labels).unwrap()
    }

    fn pick(&self, rows: &[usize]) -> Self {
        let logits = rows.iter().flat_map(|row| &self.data.logits[row * CLASSES..][..CLASSES]).copied();
        let labels = rows.iter().map(|row| self.data.labels[*row]).collect();
        let data = Data { classes: CLASSES, logits: logits.collect(), labels };
        Self { data, u: rows.iter().map(|row| self.u[*row]).collect() }
    }

    fn rank(&self, row: usize) -> u32 {
        let logits = &self.data.logits[row * CLASSES..][..CLASSES];
        let own = logits[self.data.labels[row] as usize];
        logits.iter().filter(|logit| **logit >= own).count() as u32
    }
}

/// SAPS, which uses the draws that come with rows.
fn score() -> ScoreSpec {
    ScoreSpec::Saps(SapsScore { lambda: Lambda::new(0.25).unwrap(), draw: Draw::Seeded(0) })
}

/// Rows by label and fingerprint, of equal ones by score, each with its coin.
fn coins(rows: &Repeated, seed: u64) -> Vec<(u32, u64, usize, u64)> {
    fn mix(state: u64) -> u64 {
        let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    let fingerprints = row_fingerprints(rows.data.rows());
    let scores = score_labels(&score(), rows.rows()).unwrap();
    let together = fingerprints.iter().fold(0, |sum: u64, row| sum.wrapping_add(mix(*row)));
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let of = |row: usize| (rows.data.labels[row], fingerprints[row]);
    order.sort_by(|a, b| of(*a).cmp(&of(*b)).then(scores[*a].total_cmp(&scores[*b])));
    let mut copies = std::collections::BTreeMap::new();
    let coin = |row: usize| {
        let (label, fingerprint) = of(row);
        let copy = copies.entry((label, fingerprint)).and_modify(|copies| *copies += 1).or_insert(0_u64);
        let coins = Generator::new(seed, "deal").stream(together).stream(u64::from(label));
        (label, fingerprint, row, coins.stream(fingerprint).stream(*copy).below(1 << 63))
    };
    order.into_iter().map(coin).collect()
}

fn calibrated(calibrator: Calibrator<ScoreSpec>, rows: &Repeated) -> Calibration<ScoreSpec> {
    let mut calibrator = calibrator.remembering(Remember::Rows);
    calibrator.extend(rows.rows()).unwrap();
    calibrator.finish().unwrap()
}

fn by(taxonomy: Taxonomy) -> Calibrator<ScoreSpec> {
    Calibrator::new(score(), CLASSES).unwrap().by(taxonomy).unwrap()
}

fn counts(rows: &Repeated) -> Vec<u64> {
    let of = |label: u32| rows.data.labels.iter().filter(|own| **own == label).count() as u64;
    (0..CLASSES as u32).map(of).collect()
}

fn dealt(rows: &Repeated, choose: Choose, seed: u64, alpha: Alpha) -> conformax::Dealt<ScoreSpec> {
    let mut dealer = Dealer::new(score(), CLASSES, choose).unwrap().with_seed(seed);
    dealer.extend(rows.rows()).unwrap();
    dealer.finish(alpha).unwrap()
}

fn fingerprints(rows: &Repeated) -> RowSet {
    RowSet::new(row_fingerprints(rows.data.rows()))
}

#[test]
fn ranks_are_chosen_and_rows_calibrate_by_the_definition() {
    let alpha = Alpha::new(0.2).unwrap();
    for (n, seed) in [(1, 0), (2, 0), (57, 0), (600, 0), (600, 3)] {
        let rows = Repeated::new(n);
        let mut order = coins(&rows, seed);
        order.sort_by_key(|(label, fingerprint, _, coin)| (*coin, *label, *fingerprint));
        let order: Vec<usize> = order.into_iter().map(|(_, _, row, _)| row).collect();
        let (calibrating, choosing) = order.split_at((6 * n).div_ceil(10));
        let (calibrating, choosing) = (rows.pick(calibrating), rows.pick(choosing));
        let chosen = |label: u32| {
            let own = (0..choosing.data.labels.len()).filter(|row| choosing.data.labels[*row] == label);
            let mut ranks: Vec<u32> = own.map(|row| choosing.rank(row)).collect();
            ranks.sort_unstable();
            // Half of the level is for the rank.
            let wanted = conformal_rank(ranks.len() as u64, Alpha::new(0.1).unwrap());
            wanted.map_or(CLASSES as u32, |wanted| ranks[wanted as usize - 1])
        };
        let ranks = Ranks::new((0..CLASSES as u32).map(chosen).collect()).unwrap();
        let found = dealt(&rows, Choose::Ranks, seed, alpha);
        let wanted = calibrated(by(Taxonomy::Label).with_ranks(ranks).unwrap(), &calibrating);
        assert_eq!(found.calibration, wanted, "{n} rows");
        assert_eq!(
            (found.counts, found.choosing),
            (counts(&calibrating), fingerprints(&choosing)),
            "{n} rows"
        );
    }
}

#[test]
fn clusters_are_found_and_rows_calibrate_by_the_definition() {
    let (alpha, rows) = (Alpha::new(0.1).unwrap(), Repeated::new(2_000));
    let plan = ClusterPlan::for_counts(&counts(&rows), alpha).unwrap();
    for (wanted, seed) in [(None, 0), (Some(3), 0), (Some(1), 4)] {
        // A coin of 63 bits, held against the share.
        let (part, of) = plan.share;
        let clusters = |coin: u64| u128::from(coin) * u128::from(of) < u128::from(part) << 63;
        let (choosing, calibrating): (Vec<_>, Vec<_>) =
            coins(&rows, seed).into_iter().partition(|(.., coin)| clusters(*coin));
        let of_rows = |rows: Vec<(u32, u64, usize, u64)>| -> Vec<usize> {
            rows.into_iter().map(|(_, _, row, _)| row).collect()
        };
        let (choosing, calibrating) = (rows.pick(&of_rows(choosing)), rows.pick(&of_rows(calibrating)));
        let found: Vec<SortedScores> = calibrated(by(Taxonomy::Label), &choosing).groups().to_vec();
        let clusters =
            cluster_classes(&found, wanted.unwrap_or(plan.clusters), plan.rows_wanted, seed).unwrap();
        let found = dealt(&rows, Choose::Clusters(wanted), seed, alpha);
        assert_eq!(
            found.calibration,
            calibrated(by(Taxonomy::Cluster(clusters)), &calibrating),
            "{wanted:?}"
        );
        assert_eq!((found.counts, found.choosing), (counts(&calibrating), fingerprints(&choosing)));
    }
}

/// Equal rows are dealt out one by one, and other data deal them out otherwise.
#[test]
fn equal_rows_do_not_share_their_fate() {
    let alpha = Alpha::new(0.2).unwrap();
    let calibrating = |copies: usize| {
        let logits = [3.0_f32, 1.0, 0.0].repeat(copies);
        let mut dealer = Dealer::new(EntmaxScore::default(), 3, Choose::Clusters(Some(1))).unwrap();
        let labels: Vec<u32> = (0..copies as u32).map(|row| row % 3).collect();
        dealer.extend(Logits::new(&logits, 3).unwrap().labelled(&labels).unwrap()).unwrap();
        dealer.finish(alpha).unwrap().counts
    };
    // 38 of 1,000 rows of a class cluster: ⌊1000 · 3/78⌋; the deviation is 6.
    for label in calibrating(3_000) {
        assert!((1_000 - 38 - 30..=1_000 - 38 + 30).contains(&label), "{label}");
    }
    let of_more = |more: u64| calibrating(3_000 + 3 * more as usize)[0] - more;
    let different: std::collections::BTreeSet<u64> = (0..40).map(of_more).collect();
    assert!(different.len() > 10, "{different:?}");
}

#[test]
fn what_cannot_be_dealt_is_told() {
    let dealer = |choose| Dealer::new(EntmaxScore::default(), 2, choose);
    let none = Error::Parameter { name: "clusters", wanted: "at least 1", got: 0.0 };
    assert_eq!(dealer(Choose::Clusters(Some(0))).err(), Some(none));
    let alpha = Alpha::new(0.1).unwrap();
    for choose in [Choose::Ranks, Choose::Clusters(None)] {
        assert_eq!(dealer(choose).unwrap().finish(alpha).err(), Some(Error::NoCalibrationRows));
    }
    let mut few = dealer(Choose::Clusters(None)).unwrap();
    few.extend(Logits::new(&[1.0, 0.0], 2).unwrap().labelled(&[1]).unwrap()).unwrap();
    let error = few.finish(alpha).unwrap_err();
    assert_eq!(error, Error::FewForClusters { alpha, classes: 2, rarest: 0 });
    let told = "too few rows of each class, or classes, to find clusters at alpha = 0.1: of 2 classes the rarest has 0 \
                rows; calibrate on more, or give clusters of your own";
    assert_eq!(error.to_string(), told);
    // Rows of a policy are refused whoever they would be.
    let mut dealer = dealer(Choose::Ranks).unwrap().with_masked(Masked::Never);
    let rows = [1.0, 0.0, 2.0, f64::NEG_INFINITY];
    let error = dealer.extend(Logits::new(&rows, 2).unwrap().labelled(&[1, 1]).unwrap());
    assert_eq!((error, dealer.n()), (Err(Error::MaskedLabel { row: 1, label: 1 }), 0));
}
