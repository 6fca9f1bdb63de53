//! The law of accumulators: any division of the rows into blocks, any order of merging and any number of threads give
//! the same bits, which survive a trip through bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use crate::common::data::Data;
use crate::common::entmax;
use conformax::{
    Alpha, Calibrator, Choose, Dealer, Draw, Error, Evaluator, FoundThresholds, Generator, Labelled, Logits,
    Loss, Masked, PairCounter, PredictionSets, Predictor, Ranks, Remember, Result, RowSet, Scheme, ScoreSpec,
    SearchStep, SizeCounter, Taxonomy, ThresholdSearch, Thresholds, Tuner, WeightRule, WeightedScores,
    entmax_grid, raps_grid, row_fingerprints,
};

fn alpha(value: f64) -> Alpha {
    Alpha::new(value).unwrap()
}

fn spec(gamma: f64) -> ScoreSpec {
    ScoreSpec::Entmax(entmax(gamma))
}

/// Rows some of which are equal to others, as honest data has them.
fn rows() -> Data {
    let mut data = Data::new(700, 12, 5);
    for row in (0..700).step_by(7) {
        let from = (row / 7 % 3) * 12;
        data.logits.copy_within(from..from + 12, row * 12);
    }
    data
}

/// What an accumulator must be able to do to be held to the law.
trait Accumulates: Clone {
    fn take_in(&mut self, rows: Labelled<'_, f32>) -> Result<()>;
    fn join(&mut self, other: Self) -> Result<()>;
    fn bytes(&self) -> Vec<u8>;
    fn again(bytes: &[u8]) -> Result<Self>;
    /// The same for rows that are a part of more, of which `row` is the first.
    fn starting_at(self, row: u64) -> Self;
}

macro_rules! accumulates {
    ($($accumulator:ty: $take:expr, $start:expr;)+) => {
        $(impl Accumulates for $accumulator {
            fn take_in(&mut self, rows: Labelled<'_, f32>) -> Result<()> {
                let take: fn(&mut Self, Labelled<'_, f32>) -> Result<()> = $take;
                take(self, rows)
            }
            fn join(&mut self, other: Self) -> Result<()> {
                self.merge(other)
            }
            fn bytes(&self) -> Vec<u8> {
                self.to_bytes()
            }
            fn again(bytes: &[u8]) -> Result<Self> {
                Self::from_bytes(bytes)
            }
            fn starting_at(self, row: u64) -> Self {
                let start: fn(Self, u64) -> Self = $start;
                start(self, row)
            }
        })+
    };
}
accumulates! {
    Calibrator<ScoreSpec>: |it, rows| it.extend(rows), |it, _| it;
    Tuner<ScoreSpec>: |it, rows| it.extend(rows), |it, _| it;
    SizeCounter<ScoreSpec>: |it, rows| it.extend(rows.logits()), |it, _| it;
    PairCounter<ScoreSpec>: |it, rows| it.extend(rows), |it, _| it;
    Dealer<ScoreSpec>: |it, rows| it.extend(rows), |it, _| it;
    // It says which row had a part in the model first, and so has to know where a shard begins.
    Evaluator<ScoreSpec>: |it, rows| it.extend(rows), Evaluator::from_row;
    ThresholdSearch<ScoreSpec>: |it, rows| it.extend(rows), |it, _| it;
}

/// Holds an accumulator to the law: `new` makes it without a row.
macro_rules! accumulator_laws {
    ($($name:ident: $new:expr;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn any_blocks_and_any_merges_give_the_same_bytes() {
                any_blocks_and_any_merges(&$new);
            }

            #[test]
            #[cfg(feature = "rayon")]
            fn any_number_of_threads_gives_the_same_bytes() {
                any_number_of_threads(&$new);
            }

            #[test]
            fn bytes_are_read_back_and_damage_is_seen() {
                bytes_are_read_back(&$new);
            }

            #[test]
            fn a_fault_is_named_in_the_whole_and_changes_nothing() {
                a_fault_is_named(&$new);
            }
        })+
    };
}
accumulator_laws! {
    calibrator: Calibrator::new(spec(1.5), 12).unwrap().remembering(Remember::Rows);
    calibrator_by_label: Calibrator::new(spec(1.3), 12).unwrap().by(Taxonomy::Label).unwrap();
    calibrator_by_group: Calibrator::new(spec(2.0), 12).unwrap().by(Taxonomy::Group(3)).unwrap();
    calibrator_by_cluster: Calibrator::new(spec(1.5), 12).unwrap().by(Taxonomy::Cluster(clusters())).unwrap();
    calibrator_by_row_weight: Calibrator::new(spec(1.5), 12).unwrap().under(Scheme::RowWeights).unwrap();
    calibrator_by_label_weight: Calibrator::new(spec(1.5), 12).unwrap()
        .under(Scheme::LabelWeights((1..=12).map(|weight| f64::from(weight) / 10.0).collect())).unwrap();
    calibrator_of_severity: Calibrator::new(spec(1.5), 12).unwrap().under(Scheme::Risk(severity())).unwrap();
    calibrator_of_cost: Calibrator::new(spec(1.5), 12).unwrap().under(Scheme::Risk(cost())).unwrap();
    calibrator_of_possible_labels: Calibrator::new(spec(1.5), 12).unwrap().by(Taxonomy::Group(3)).unwrap()
        .with_masked(Masked::Never);
    calibrator_of_ranks: Calibrator::new(spec(1.5), 12).unwrap()
        .with_ranks(Ranks::new((1..=12).collect()).unwrap()).unwrap();
    evaluator_by_group: Evaluator::new(vec![at(0.5), at(2.0)], 12).unwrap().by(Taxonomy::Group(3)).unwrap()
        .losing(cost()).unwrap();
    evaluator_of_models_by_group: Evaluator::new(vec![at(0.5), by_group(4), by_group(3)], 12).unwrap();
    evaluator_by_row_weight: Evaluator::new(vec![by_weight(), by_weight().with_masked(Masked::Never)], 12).unwrap();
    evaluator_by_label: Evaluator::new(vec![
        Predictor::new(spec(1.5), Thresholds::PerLabel((0..12).map(f64::from).collect())).with_masked(Masked::Never)
    ], 12).unwrap();
    tuner: tuner(entmaxes()).remembering(Remember::Rows);
    tuner_of_raps: tuner(raps());
    tuner_of_possible_labels: Tuner::new(vec![spec(1.5), spec(2.0)], 12, alpha(0.1)).unwrap().with_masked(Masked::Never);
    size_counter: sizes(entmaxes());
    size_counter_of_raps: sizes(raps());
    pair_counter: pairs(entmaxes());
    pair_counter_of_raps: pairs(raps());
    dealer_of_clusters: Dealer::new(spec(1.5), 12, Choose::Clusters(Some(2))).unwrap().with_seed(7);
    dealer_of_ranks: Dealer::new(spec(1.3), 12, Choose::Ranks).unwrap();
    dealer_of_possible_labels: Dealer::new(spec(2.0), 12, Choose::Ranks).unwrap().with_masked(Masked::Never);
    evaluator_of_a_selection: Evaluator::new(vec![selected(entmaxes()), selected(raps())], 12).unwrap();
    evaluator: Evaluator::new(vec![at(0.5), at(2.0)], 12).unwrap()
        .watching_for(vec![RowSet::new(row_fingerprints(rows().rows().rows(100..300)))]);
    threshold_search: ThresholdSearch::new(spec(1.5), 12, &[alpha(0.1), alpha(0.02)]).unwrap()
        .remembering(Remember::Rows);
    threshold_search_of_possible_labels: ThresholdSearch::new(spec(1.5), 12, &[alpha(0.1)]).unwrap()
        .with_masked(Masked::Never);
    threshold_search_second_pass: second_pass();
}

fn at(threshold: f64) -> Predictor<ScoreSpec> {
    Predictor::new(spec(1.5), Thresholds::One(threshold))
}

fn by_group(groups: u32) -> Predictor<ScoreSpec> {
    Predictor::new(spec(1.5), Thresholds::PerGroup((0..groups).map(f64::from).collect()))
}

fn by_weight() -> Predictor<ScoreSpec> {
    let rows = (1..=40).map(|row| (f64::from(row) / 8.0, 0.1 * f64::from(row % 5 + 1))).collect();
    let scores = Arc::new(WeightedScores::new(rows).unwrap());
    Predictor::new(spec(1.5), Thresholds::ByWeight(WeightRule::new(alpha(0.1), scores)))
}

fn clusters() -> Vec<Option<u32>> {
    (0..12).map(|label| (label % 4 < 3).then_some(label % 4)).collect()
}

fn severity() -> Loss {
    Loss::severity((1..=12).map(|label| 1.0 / f64::from(label)).collect()).unwrap()
}

/// Costs that are no multiples of a power of two, and of different sizes.
fn cost() -> Loss {
    let costs = (0..144).map(|place| if place % 13 == 0 { 0.0 } else { f64::from(place % 11 + 1) / 7.0 });
    Loss::cost(costs.collect(), 12).unwrap()
}

fn entmaxes() -> Vec<ScoreSpec> {
    entmax_grid().into_iter().map(ScoreSpec::Entmax).collect()
}

/// Candidates of which a row is ranked once for all.
fn raps() -> Vec<ScoreSpec> {
    raps_grid(12, Draw::Seeded(3)).into_iter().map(ScoreSpec::Raps).collect()
}

fn tuner(grid: Vec<ScoreSpec>) -> Tuner<ScoreSpec> {
    Tuner::new(grid, 12, alpha(0.1)).unwrap()
}

fn tuned(grid: Vec<ScoreSpec>) -> Tuner<ScoreSpec> {
    let mut tuner = tuner(grid);
    tuner.extend(rows().labelled()).unwrap();
    tuner
}

fn sizes(grid: Vec<ScoreSpec>) -> SizeCounter<ScoreSpec> {
    tuned(grid).finish().unwrap()
}

fn pairs(grid: Vec<ScoreSpec>) -> PairCounter<ScoreSpec> {
    tuned(grid).finish_selecting().unwrap()
}

/// Of a choice that is close: several candidates are left.
fn selected(grid: Vec<ScoreSpec>) -> Predictor<ScoreSpec> {
    let mut pairs = pairs(grid);
    pairs.extend(rows().labelled()).unwrap();
    let predictor = pairs.finish().unwrap().0.predictor();
    assert!(predictor.is_a_choice());
    predictor
}

/// The search after its first pass, over the same rows.
fn second_pass() -> ThresholdSearch<ScoreSpec> {
    let mut search = ThresholdSearch::new(spec(1.5), 12, &[alpha(0.1), alpha(0.02)]).unwrap();
    search.extend(rows().labelled()).unwrap();
    match search.finish_pass().unwrap() {
        SearchStep::Again(next) => next,
        SearchStep::Done(found) => panic!("one pass cannot be enough: {found:?}"),
    }
}

const GROUPS: [u32; 700] = {
    let mut groups = [0; 700];
    let mut row = 0;
    while row < 700 {
        groups[row] = (row % 3) as u32;
        row += 1;
    }
    groups
};

const WEIGHTS: [f64; 700] = {
    let mut weights = [0.0; 700];
    let mut row = 0;
    while row < 700 {
        weights[row] = (row % 17) as f64 * 0.1;
        row += 1;
    }
    weights
};

fn part(data: &Data, from: usize, to: usize) -> Labelled<'_, f32> {
    part_beside(data, (&GROUPS, &WEIGHTS), from, to).unwrap()
}

/// What comes beside the logits of each row.
type Beside<'a> = (&'a [u32; 700], &'a [f64; 700]);

fn part_beside<'a>(
    data: &'a Data,
    (groups, weights): Beside<'a>,
    from: usize,
    to: usize,
) -> Result<Labelled<'a, f32>> {
    let rows = data.rows().rows(from..to).with_groups(&groups[from..to])?;
    let labelled =
        rows.with_weights(&weights[from..to]).and_then(|rows| rows.labelled(&data.labels[from..to]));
    labelled.map_err(|error| error.offset_rows(from as u64))
}

fn whole<A: Accumulates>(new: &A, data: &Data) -> A {
    let mut whole = new.clone();
    whole.take_in(part(data, 0, 700)).unwrap();
    whole
}

fn any_blocks_and_any_merges<A: Accumulates>(new: &A) {
    let data = rows();
    let wanted = whole(new, &data).bytes();
    let mut generator = Generator::new(3, "blocks");
    for _ in 0..6 {
        // Seven shards of any size, each in blocks of its own, merged in any order and any grouping.
        let mut cuts: Vec<usize> = (0..6).map(|_| generator.below(701) as usize).chain([0, 700]).collect();
        cuts.sort_unstable();
        let mut shards: Vec<A> = cuts
            .windows(2)
            .map(|ends| {
                let (mut shard, step) =
                    (new.clone().starting_at(ends[0] as u64), 1 + generator.below(90) as usize);
                for from in (ends[0]..ends[1]).step_by(step) {
                    shard.take_in(part(&data, from, (from + step).min(ends[1]))).unwrap();
                }
                shard
            })
            .collect();
        generator.shuffle(&mut shards);
        while shards.len() > 1 {
            let other = shards.swap_remove(generator.below(shards.len() as u64) as usize);
            let place = generator.below(shards.len() as u64) as usize;
            shards[place].join(other).unwrap();
        }
        assert!(shards[0].bytes() == wanted, "{cuts:?}");
    }
}

#[cfg(feature = "rayon")]
fn any_number_of_threads<A: Accumulates + Sync>(new: &A) {
    let data = rows();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| whole(new, &data).bytes())
    };
    let one = on(1);
    assert!(one == on(2) && one == on(7));
}

fn bytes_are_read_back<A: Accumulates>(new: &A) {
    let bytes = whole(new, &rows()).bytes();
    assert_eq!(A::again(&bytes).unwrap().bytes(), bytes);
    assert_eq!(A::again(&new.bytes()).unwrap().bytes(), new.bytes());
    for place in (0..bytes.len()).step_by(bytes.len().div_ceil(97)) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        assert!(matches!(A::again(&damaged), Err(Error::Bytes { .. })), "byte {place}");
        assert!(matches!(A::again(&bytes[..place]), Err(Error::Bytes { .. })), "cut at {place}");
    }
}

fn a_fault_is_named<A: Accumulates>(new: &A) {
    let mut data = rows();
    let mut filled = new.clone();
    filled.take_in(part(&data, 0, 300)).unwrap();
    let before = filled.bytes();
    data.logits[450 * 12 + 4] = f32::NAN;
    let error = filled.take_in(part(&data, 300, 700)).unwrap_err();
    assert!(matches!(error, Error::Logit { row: 450, class: 4, .. }), "{error}");
    assert_eq!(filled.bytes(), before);
    let narrow = Data::new(3, 5, 1);
    assert_eq!(filled.take_in(narrow.labelled()), Err(Error::ClassCount { wanted: 12, got: 5 }));
    // Of two faults the first row's, whatever blocks they come in; but weights and then labels are looked at before any
    // row of their block is.
    type Fault = fn(&mut Data, (&mut [u32; 700], &mut [f64; 700]), usize);
    let kinds: [(u32, Fault); 6] = [
        (0, |_, (_, weights), row| weights[row] = f64::NAN),
        (1, |data, _, row| data.labels[row] = 12),
        (2, |data, _, row| data.logits[row * 12 + 4] = f32::NAN),
        (2, |data, _, row| data.logits[row * 12 + data.labels[row] as usize] = f32::NEG_INFINITY),
        (2, |_, (groups, _), row| groups[row] = 3),
        (2, |_, (groups, _), row| groups[row] = 4),
    ];
    let first = |faults: &[(Fault, usize)], step: usize| {
        let (mut data, mut groups, mut weights) = (rows(), GROUPS, WEIGHTS);
        faults.iter().rev().for_each(|(fault, row)| fault(&mut data, (&mut groups, &mut weights), *row));
        let mut filled = new.clone();
        let mut blocks = (0..700).step_by(step).map(|from| {
            let block = part_beside(&data, (&groups, &weights), from, (from + step).min(700))?;
            filled.take_in(block)
        });
        blocks.find_map(Result::err).map(|error| error.to_string())
    };
    for ((looked_at, early), (before, late)) in
        kinds.iter().flat_map(|early| kinds.iter().map(move |late| (early, late)))
    {
        let both = [(*early, 305), (*late, 600)];
        let wanted = first(&both, 1);
        assert_eq!([7, 311].map(|step| first(&both, step)), [wanted.clone(), wanted.clone()]);
        let in_one_block = if before < looked_at { first(&both[1..], 1) } else { wanted };
        assert_eq!(first(&both, 700), in_one_block);
    }
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let calibrator = |gamma| Calibrator::new(spec(gamma), 12).unwrap();
    let unlike = |mut a: Calibrator<ScoreSpec>, b: Calibrator<ScoreSpec>| match a.merge(b) {
        Err(Error::Unlike { what }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(unlike(calibrator(1.5), calibrator(1.6)), "scores");
    assert_eq!(unlike(calibrator(1.5), Calibrator::new(spec(1.5), 13).unwrap()), "numbers of classes");
    assert_eq!(unlike(calibrator(1.5), calibrator(1.5).by(Taxonomy::Label).unwrap()), "ways to thresholds");
    assert_eq!(unlike(calibrator(1.5), calibrator(1.5).remembering(Remember::Rows)), "remembered rows");
    let never = calibrator(1.5).with_masked(Masked::Never);
    assert_eq!(unlike(calibrator(1.5), never), "policies for masked classes");
    let mut search = ThresholdSearch::new(spec(1.5), 12, &[alpha(0.1)]).unwrap();
    assert!(search.merge(second_pass()).is_err());
    let dealer = |classes, choose| Dealer::new(spec(1.5), classes, choose).unwrap();
    let ranks = || dealer(12, Choose::Ranks);
    for (other, what) in [
        (Dealer::new(spec(1.6), 12, Choose::Ranks).unwrap(), "scores"),
        (dealer(11, Choose::Ranks), "numbers of classes"),
        (ranks().with_masked(Masked::Never), "policies for masked classes"),
        (dealer(12, Choose::Clusters(None)), "ways to thresholds"),
        (ranks().with_seed(1), "seeds"),
    ] {
        assert_eq!(ranks().merge(other), Err(Error::Unlike { what }));
    }
    let [mut any, two] = [None, Some(2)].map(|count| dealer(12, Choose::Clusters(count)));
    assert_eq!(any.merge(two), Err(Error::Unlike { what: "ways to thresholds" }));
    let mut evaluator = Evaluator::new(vec![at(0.5)], 12).unwrap();
    assert!(evaluator.merge(Evaluator::new(vec![at(0.6)], 12).unwrap()).is_err());
}

#[test]
fn sets_found_elsewhere_count_as_their_rows_do() {
    let data = rows();
    let predictors = vec![at(0.5), at(2.0).with_masked(Masked::Never)];
    let none = Evaluator::new(predictors.clone(), 12).unwrap().by(Taxonomy::Group(3)).unwrap();
    let none = none.losing(cost()).unwrap();
    let none = none.watching_for(vec![RowSet::new(row_fingerprints(data.rows().rows(100..300)))]);
    let (wanted, mut found) = (whole(&none, &data), none.from_row(0));
    let sets_of = |from: usize, to: usize| -> Vec<_> {
        predictors.iter().map(|predictor| predictor.predict(data.rows().rows(from..to)).unwrap()).collect()
    };
    for (from, to) in [(0, 300), (300, 300), (300, 700)] {
        let fingerprints = row_fingerprints(data.rows().rows(from..to));
        let groups = Some(&GROUPS[from..to]);
        found.extend_with_sets(&sets_of(from, to), &data.labels[from..to], groups, &fingerprints).unwrap();
    }
    assert_eq!(found, wanted);
    // What does not belong together is refused, and changes nothing.
    let (sets, fingerprints) = (sets_of(0, 2), [0; 2]);
    let mut fault = |sets: &[_], labels: &[u32], groups: Option<&[u32]>, fingerprints: &[u64]| {
        found.extend_with_sets(sets, labels, groups, fingerprints).unwrap_err()
    };
    let rows = |what, got| Error::Rows { what, wanted: 2, got };
    assert_eq!(fault(&sets, &[1], Some(&[0, 1]), &fingerprints), rows("labels", 1));
    assert_eq!(fault(&sets, &[1, 2], Some(&[0]), &fingerprints), rows("groups", 1));
    assert_eq!(fault(&sets_of(0, 3), &[1, 2], Some(&[0, 1]), &fingerprints), rows("sets", 3));
    let label = Error::Label { row: 701, label: 12, classes: 12 };
    assert_eq!(fault(&sets, &[1, 12], Some(&[0, 1]), &fingerprints), label);
    let group = Error::Group { row: 700, group: 3, groups: 3 };
    assert_eq!(fault(&sets, &[1, 2], Some(&[3, 1]), &fingerprints), group);
    assert_eq!(fault(&sets, &[1, 2], None, &fingerprints), Error::Missing { what: "groups" });
    let missing = Error::Missing { what: "the sets of each predictor" };
    assert_eq!(fault(&sets[..1], &[1, 2], Some(&[0, 1]), &fingerprints), missing);
    let other = vec![PredictionSets::from_parts(3, vec![0, 0, 0], vec![]).unwrap(); 2];
    let classes = Error::ClassCount { wanted: 12, got: 3 };
    assert_eq!(fault(&other, &[1, 2], Some(&[0, 1]), &fingerprints), classes);
    assert_eq!(found, wanted);
}

/// Every part of a later pass begins with what the first pass counted, which is counted once all the same.
#[test]
fn impossible_labels_are_counted_once_however_many_parts_there_are() {
    let mut data = Data::new(300, 6, 8);
    for row in (0..300).step_by(30) {
        let label = data.labels[row] as usize;
        data.logits[row * 6 + label] = f32::NEG_INFINITY;
    }
    let mut search = ThresholdSearch::new(spec(1.5), 6, &[alpha(0.3)]).unwrap();
    let found = loop {
        let mut parts = [search.clone(), search.clone(), search];
        for (place, part) in parts.iter_mut().enumerate() {
            let (rows, labels) = (&data.logits[place * 600..][..600], &data.labels[place * 100..][..100]);
            part.extend(Logits::new(rows, 6).unwrap().labelled(labels).unwrap()).unwrap();
        }
        let whole = parts.into_iter().reduce(|mut whole, part| {
            whole.merge(part).unwrap();
            whole
        });
        match whole.unwrap().finish_pass().unwrap() {
            SearchStep::Again(next) => search = next,
            SearchStep::Done(found) => break found,
        }
    };
    assert_eq!(found.infinite, 10);
}

/// Counting bits finds the very score that sorting finds, whatever ties there are and wherever the rank lies.
#[test]
fn a_search_finds_the_thresholds_of_sorted_scores() {
    let never = f32::NEG_INFINITY;
    for (seed, rows) in [(1, 1), (2, 9), (3, 40), (4, 500), (5, 3000)] {
        let mut data = Data::new(rows, 6, seed);
        // Certain rows score 0; some true labels are impossible and score infinity.
        for row in (0..rows).step_by(3) {
            let label = data.labels[row] as usize;
            data.logits[row * 6 + label] = if row.is_multiple_of(21) { never } else { 9.0 };
        }
        let alphas: Vec<Alpha> =
            ["0.9", "0.5", "0.4", "0.1", "0.05", "0.01", "0.0001"].map(|text| text.parse().unwrap()).to_vec();
        for gamma in [1.0, 1.3, 2.0] {
            let mut calibrator = Calibrator::new(spec(gamma), 6).unwrap().remembering(Remember::Rows);
            calibrator.extend(data.labelled()).unwrap();
            let calibration = calibrator.finish().unwrap();
            let search = ThresholdSearch::new(spec(gamma), 6, &alphas).unwrap();
            let (mut search, mut passes) = (search.remembering(Remember::Rows), 0);
            let found = loop {
                passes += 1;
                search.extend(data.labelled()).unwrap();
                match search.finish_pass().unwrap() {
                    SearchStep::Again(next) => search = next,
                    SearchStep::Done(found) => break found,
                }
            };
            let sorted = &calibration.groups()[0];
            for (alpha, threshold) in alphas.iter().zip(&found.thresholds) {
                assert_eq!(threshold.to_bits(), sorted.threshold(*alpha).to_bits(), "{rows} rows at {alpha}");
            }
            assert_eq!((found.infinite, &found.rows), (sorted.ties(f64::INFINITY), calibration.rows()));
            assert!(passes <= 4);
            assert_eq!(found_in_kept_scores(&data, rows, spec(gamma), &alphas), found);
        }
    }
}

/// The search in which calibrators, by their bytes, stand for the rows that they took in.
fn found_in_kept_scores(
    data: &Data,
    rows: usize,
    score: ScoreSpec,
    alphas: &[Alpha],
) -> FoundThresholds<ScoreSpec> {
    let kept: Vec<Vec<u8>> = [0..rows / 3, rows / 3..rows]
        .map(|part| {
            let mut calibrator = Calibrator::new(score, 6).unwrap().remembering(Remember::Rows);
            let labels = &data.labels[part.clone()];
            calibrator.extend(data.rows().rows(part).labelled(labels).unwrap()).unwrap();
            calibrator.to_bytes()
        })
        .to_vec();
    let mut search = ThresholdSearch::new(score, 6, alphas).unwrap().remembering(Remember::Rows);
    loop {
        let mut second = search.clone();
        search.extend_scored(&Calibrator::from_bytes(&kept[1]).unwrap()).unwrap();
        second.extend_scored(&Calibrator::from_bytes(&kept[0]).unwrap()).unwrap();
        search.merge(second).unwrap();
        match search.finish_pass().unwrap() {
            SearchStep::Again(next) => search = next,
            SearchStep::Done(found) => return found,
        }
    }
}

/// Scores of other rows than the search is for are refused, and nothing is counted.
#[test]
fn a_search_refuses_scores_that_are_not_its_own() {
    let data = rows();
    let calibrator = |gamma| Calibrator::new(spec(gamma), 12).unwrap();
    let mut search = ThresholdSearch::new(spec(1.5), 12, &[alpha(0.1)]).unwrap();
    let ranks = Ranks::new(vec![12; 12]).unwrap();
    for (wanted, mut other) in [
        ("scores", calibrator(1.6)),
        ("policies for masked classes", calibrator(1.5).with_masked(Masked::Never)),
        ("remembered rows", calibrator(1.5).remembering(Remember::Rows)),
        ("ways to thresholds", calibrator(1.5).by(Taxonomy::Label).unwrap()),
        ("largest ranks", calibrator(1.5).with_ranks(ranks).unwrap()),
    ] {
        other.extend(data.labelled()).unwrap();
        match search.extend_scored(&other) {
            Err(Error::Unlike { what }) => assert_eq!(what, wanted),
            taken => panic!("{wanted}: {taken:?}"),
        }
    }
    let mut fewer = Calibrator::new(spec(1.5), 11).unwrap();
    fewer.extend(Logits::new(&data.logits[..110], 11).unwrap().labelled(&[0; 10]).unwrap()).unwrap();
    assert!(search.extend_scored(&fewer).is_err());
    assert_eq!(search.n(), 0);
}

#[test]
fn a_search_sees_that_its_rows_changed() {
    let data = rows();
    let mut search = second_pass();
    search.extend(part(&data, 0, 699)).unwrap();
    assert!(matches!(search.finish_pass(), Err(Error::Unlike { what: "rows from pass to pass" })));
}

/// Groups must come with the rows, and be among those there are.
#[test]
fn groups_are_checked_with_their_place() {
    let data = rows();
    let mut calibrator = Calibrator::new(spec(1.5), 12).unwrap().by(Taxonomy::Group(2)).unwrap();
    assert_eq!(calibrator.extend(data.labelled()), Err(Error::Missing { what: "groups" }));
    let error = calibrator.extend(part(&data, 0, 10)).unwrap_err();
    assert_eq!(error, Error::Group { row: 2, group: 2, groups: 2 });
    let by_group = Predictor::new(spec(1.5), Thresholds::PerGroup(vec![0.0, 1.0]));
    assert_eq!(by_group.predict(data.rows()).unwrap_err(), Error::Missing { what: "groups" });
    let clusters = |of: Vec<u32>| {
        let of = of.into_iter().map(Some).collect();
        Calibrator::new(spec(1.5), 3).unwrap().by(Taxonomy::Cluster(of)).map(drop)
    };
    assert_eq!(clusters(vec![0, 1]), Err(Error::Clusters { wanted: 3, got: 2 }));
    assert_eq!(clusters(vec![0, 2, 2]), Err(Error::EmptyCluster(1)));
    assert_eq!(
        Logits::new(&[0.0_f32; 4], 2).unwrap().with_groups(&[0]).unwrap_err(),
        Error::Rows { what: "groups", wanted: 2, got: 1 }
    );
}

/// A class without calibration rows has full threshold: it is in every set, and the level says how many rows it needs.
#[test]
fn a_class_without_rows_is_in_every_set() {
    let logits = [3.0_f32, 0.0, 1.0, 2.0, 0.5, 1.0, 5.0, 0.0, 4.0];
    let mut calibrator = Calibrator::new(spec(1.5), 3).unwrap().by(Taxonomy::Label).unwrap();
    calibrator.extend(Logits::new(&logits, 3).unwrap().labelled(&[0, 0, 2]).unwrap()).unwrap();
    let (model, _) = calibrator.finish().unwrap().at(alpha(0.5));
    let sets = model.predict(Logits::new(&[9.0_f32, -5.0, 0.0], 3).unwrap()).unwrap();
    assert_eq!(sets.get(0), Some(&[0, 1][..]));
}
