//! Selection that uses every row, against its definition written out over the `n + 1` rows.
//!
//! Its validity is exact and needs no luck: with the true label the choice is the same whichever of the `n + 1` rows is
//! the one to come, so if each of them has its turn, at least `k = ⌈(n + 1)(1 − α)⌉` are covered, and exactly `k` where
//! nothing ties. Choosing and calibrating on the same rows without that care covers fewer, which the same count shows.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use conformax::{
    Alpha, Draw, EntmaxScore, InvProbScore, Labelled, Logit, Logits, Masked, Predictor, Rival, Row, RowSet,
    Score, ScoreSpec, Selection, TopKScore, Tuner, conformal_rank, entmax_grid, raps_grid,
};

use super::pool::{CLASSES, Pool, Random, Rows};

/// A number that has nothing to do with the row, different for every seed: nothing to choose between but luck.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Noise(u64);

impl Score for Noise {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        let seen = row
            .logits()
            .iter()
            .fold(self.0, |seed, logit| Random::new(seed ^ logit.to_f64().to_bits()).next());
        Random::new(seen ^ row.logit(label).to_bits()).uniform()
    }
}

fn selected<S: Score + Clone>(grid: &[S], rows: &Rows, alpha: Alpha, masked: Masked) -> Selection<S> {
    let mut tuner = Tuner::new(grid.to_vec(), CLASSES, alpha).unwrap().with_masked(masked);
    tuner.extend(rows.labelled().unwrap()).unwrap();
    let mut pairs = tuner.finish_selecting().unwrap();
    pairs.extend(rows.labelled().unwrap()).unwrap();
    let (selection, wins) = pairs.finish().unwrap();
    // Counted in passing, they are those of the definition all the same.
    assert_eq!(wins, selection.winners(rows.labelled().unwrap()).unwrap());
    selection
}

/// The scores of all labels by candidate and row.
struct Scored {
    scores: Vec<Vec<Vec<f64>>>,
    labels: Vec<u32>,
}

impl Scored {
    fn new<S: Score>(grid: &[S], rows: &Rows) -> Self {
        let all = |score: &S, row: usize| {
            let row = rows.logits().row(row).unwrap();
            (0..CLASSES as u32).map(|label| score.score(row, label)).collect()
        };
        let of = |score: &S| (0..rows.labels.len()).map(|row| all(score, row)).collect();
        Self { scores: grid.iter().map(of).collect(), labels: rows.labels.clone() }
    }

    /// The `rank`-th smallest score of the true labels but that of one row, and another score in its place.
    fn kth(&self, candidate: usize, without: usize, with: Option<f64>, rank: usize) -> f64 {
        let truth = self.labels.iter().enumerate().filter(|(row, _)| *row != without);
        let truth = truth.map(|(row, label)| self.scores[candidate][row][*label as usize]);
        let mut scores: Vec<f64> = truth.chain(with).collect();
        scores.sort_by(f64::total_cmp);
        scores.get(rank - 1).copied().unwrap_or(f64::INFINITY)
    }

    fn pairs(&self, candidate: usize, threshold: f64) -> usize {
        self.scores[candidate].iter().flatten().filter(|score| **score <= threshold).count()
    }

    /// The set of one row by the definition, the others calibrating.
    fn set(&self, row: usize, rank: usize) -> Vec<u32> {
        let decided = |label: &u32| {
            let own = |candidate: usize| self.scores[candidate][row][*label as usize];
            let pairs = |candidate: &usize| {
                self.pairs(*candidate, self.kth(*candidate, row, Some(own(*candidate)), rank))
            };
            let winner = (0..self.scores.len()).min_by_key(pairs).unwrap();
            own(winner) <= self.kth(winner, row, None, rank)
        };
        (0..CLASSES as u32).filter(decided).collect()
    }

    /// Whether the row is covered by the candidate that has the smallest sets on the very rows that calibrate it.
    fn naively_covered(&self, row: usize, rank: usize) -> bool {
        let threshold = |candidate: usize| self.kth(candidate, row, None, rank);
        let pairs = |candidate: &usize| {
            let (own, threshold) = (&self.scores[*candidate][row], threshold(*candidate));
            self.pairs(*candidate, threshold) - own.iter().filter(|score| **score <= threshold).count()
        };
        let chosen = (0..self.scores.len()).min_by_key(pairs).unwrap();
        self.scores[chosen][row][self.labels[row] as usize] <= threshold(chosen)
    }
}

/// Gives each of `n + 1` rows its turn; how many are covered, and whether some row was contested.
fn turns<S: Score + Clone>(grid: &[S], rows: &Rows, alpha: Alpha) -> (usize, bool) {
    let n = rows.labels.len() - 1;
    let rank = conformal_rank(n as u64, alpha).unwrap() as usize;
    let scored = Scored::new(grid, rows);
    let (mut covered, mut contested) = (0, false);
    for row in 0..=n {
        let rest: Vec<usize> = (0..=n).filter(|other| *other != row).collect();
        let model = selected(grid, &rows.take(&rest), alpha, Masked::Allowed).predictor();
        let sets = model.predict(rows.take(&[row]).logits()).unwrap();
        let mut set = sets.get(0).unwrap().to_vec();
        set.sort_unstable();
        assert_eq!(set, scored.set(row, rank), "row {row} of {n}");
        covered += usize::from(set.contains(&rows.labels[row]));
        contested |= model.is_a_choice();
    }
    (covered, contested)
}

/// The same turns, and how many are covered where the choice leans on the rows that calibrate.
fn naive_turns<S: Score>(grid: &[S], rows: &Rows, rank: usize) -> usize {
    let scored = Scored::new(grid, rows);
    (0..rows.labels.len()).filter(|row| scored.naively_covered(*row, rank)).count()
}

/// By every setting, over many draws of rows.
fn check<S: Score + Clone>(grid: &[S], pool: Pool, ties: bool, settings: &[(usize, &str, u64)]) {
    for (n, alpha, draws) in settings {
        let alpha: Alpha = alpha.parse().unwrap();
        let rank = conformal_rank(*n as u64, alpha).unwrap() as usize;
        let mut contested = 0;
        for seed in 0..*draws {
            let rows = pool.draw(n + 1, &mut Random::new(seed));
            let (covered, some) = turns(grid, &rows, alpha);
            let holds = if ties { covered >= rank } else { covered == rank };
            assert!(holds, "{pool}, n = {n}, alpha = {alpha}, seed {seed}: {covered} of {rank}");
            contested += usize::from(some);
        }
        // The shortcut of a single candidate is not all that is tested.
        assert!(grid.len() == 1 || contested > 0, "{pool}, n = {n}, alpha = {alpha}");
    }
}

const SETTINGS: [(usize, &str, u64); 5] =
    [(14, "0.2", 30), (19, "0.1", 20), (19, "0.5", 10), (39, "0.05", 6), (99, "0.1", 2)];

#[test]
fn exactly_the_rank_is_covered_where_nothing_ties() {
    check(&entmax_grid(), Pool::TieFree, false, &SETTINGS);
    check(&raps_grid(CLASSES, Draw::Seeded(7)), Pool::TieFree, false, &SETTINGS[..3]);
    check(&[1, 2, 3, 4].map(Noise), Pool::TieFree, false, &SETTINGS);
    let mixed = [
        ScoreSpec::default(),
        ScoreSpec::InvProb(InvProbScore),
        ScoreSpec::Raps(raps_grid(CLASSES, Draw::Seeded(3))[0]),
    ];
    check(&mixed, Pool::TieFree, false, &SETTINGS[..3]);
}

#[test]
fn at_least_the_rank_is_covered_on_ties_and_masks() {
    for pool in [Pool::Accurate(0.8), Pool::Tied, Pool::Quantised, Pool::Masked] {
        check(&entmax_grid(), pool, true, &SETTINGS[..2]);
        check(&raps_grid(CLASSES, Draw::Conservative), pool, true, &SETTINGS[..1]);
    }
    check(&[TopKScore], Pool::TieFree, true, &SETTINGS[..1]);
}

/// The naive share is a mean of `draws` independent numbers between 0 and 1, so by Hoeffding's inequality it is further
/// than `√(ln 10⁶ / 2·draws)` from what is expected once in a million. The selection needs no such margin.
#[test]
fn sees_the_naive_choice_fail_where_this_holds() {
    let (n, draws) = (14, 2000);
    let alpha = Alpha::new(0.2).unwrap();
    /// The natural logarithm of a million.
    const LN_MILLION: f64 = 13.8156;
    let margin = (LN_MILLION / (2.0 * draws as f64)).sqrt();
    let (mut covered, mut naively) = (0, 0);
    let (grid, rank) = ([1, 2, 3, 4].map(Noise), conformal_rank(n as u64, alpha).unwrap() as usize);
    for seed in 0..draws {
        let rows = Pool::TieFree.draw(n + 1, &mut Random::new(seed));
        covered += turns(&grid, &rows, alpha).0;
        naively += naive_turns(&grid, &rows, rank);
    }
    let turns = (draws as usize * (n + 1)) as f64;
    assert_eq!(covered as f64 / turns, 0.8);
    let naively = naively as f64 / turns;
    assert!(naively < 0.8 - margin && (naively - 0.70).abs() < margin, "{naively}");
}

/// Nine candidates that differ by luck alone, as many as the usual grid has. On every draw exactly the rank is covered;
/// the naive choice is short of it by more than so many rows of the `n + 1` on average.
#[test]
fn sees_the_naive_choice_fail_among_nine_candidates() {
    let grid: Vec<Noise> = (1..=9).map(Noise).collect();
    for (n, alpha, draws, short) in [(19, "0.1", 60, 1.0), (39, "0.05", 30, 1.0), (99, "0.1", 10, 1.0)] {
        let alpha: Alpha = alpha.parse().unwrap();
        let rank = conformal_rank(n as u64, alpha).unwrap() as usize;
        let mut naively = 0;
        for seed in 0..draws {
            let rows = Pool::TieFree.draw(n + 1, &mut Random::new(seed));
            assert_eq!(turns(&grid, &rows, alpha).0, rank, "n = {n}, seed {seed}");
            naively += naive_turns(&grid, &rows, rank);
        }
        let naively = naively as f64 / draws as f64;
        assert!(naively < rank as f64 - short, "n = {n}: {naively} of {rank}");
    }
}

/// Rows and labels as one block, to be counted.
fn labelled(rows: &Rows) -> Labelled<'_, f64> {
    rows.labelled().unwrap()
}

#[test]
fn winners_are_those_of_the_definition() {
    let alpha = Alpha::new(0.2).unwrap();
    for seed in 0..20 {
        let rows = Pool::TieFree.draw(29, &mut Random::new(seed));
        let test = Pool::TieFree.draw(40, &mut Random::new(1000 + seed));
        let grid = entmax_grid();
        let selection = selected(&grid, &rows, alpha, Masked::Allowed);
        let rank = conformal_rank(29, alpha).unwrap() as usize;
        let mut wanted = vec![0; grid.len()];
        for row in 0..40 {
            let mut all = rows.clone();
            all.extend(&test.take(&[row]));
            let scored = Scored::new(&grid, &all);
            let own = |candidate: usize| scored.scores[candidate][29][test.labels[row] as usize];
            let pairs = |candidate: &usize| {
                scored.pairs(*candidate, scored.kth(*candidate, 29, Some(own(*candidate)), rank))
            };
            wanted[(0..grid.len()).min_by_key(pairs).unwrap()] += 1;
        }
        assert_eq!(selection.winners(labelled(&test)).unwrap(), wanted, "seed {seed}");
    }
}

#[test]
fn too_few_rows_and_impossible_labels_make_full_sets() {
    let few = Pool::TieFree.draw(8, &mut Random::new(1));
    let selection = selected(&entmax_grid(), &few, Alpha::new(0.1).unwrap(), Masked::Allowed);
    let model = selection.predictor();
    assert!(!model.is_a_choice());
    assert!(model.predict(few.logits()).unwrap().sizes().all(|size| size == CLASSES));
    assert_eq!(selection.rivals().iter().map(|rival| rival.between.len()).sum::<usize>(), 0);
    // A class that may be in no set is in none, however infinite the threshold.
    let row: Vec<f64> = (0..CLASSES).map(|label| if label == 3 { f64::NEG_INFINITY } else { 0.0 }).collect();
    let never = selected(&entmax_grid(), &few, Alpha::new(0.1).unwrap(), Masked::Never).predictor();
    let set = never.predict(Logits::new(&row, CLASSES).unwrap()).unwrap();
    assert_eq!(set.get(0).unwrap().len(), CLASSES - 1);
}

#[test]
fn a_selection_is_made_again_from_its_parts_and_from_no_others() {
    let rows = Pool::TieFree.draw(39, &mut Random::new(5));
    let alpha = Alpha::new(0.1).unwrap();
    let grid = entmax_grid();
    let made = selected(&grid, &rows, alpha, Masked::Allowed);
    let again = |rivals: Vec<Rival<EntmaxScore>>| {
        let parts = (made.n(), RowSet::default());
        Selection::from_parts(rivals, CLASSES, alpha, parts, Masked::Allowed)
    };
    assert_eq!(again(made.rivals().to_vec()).unwrap(), made);
    assert!(made.alive().iter().filter(|alive| **alive).count() > 1);
    let leader = made.leader();
    let faults: [fn(&mut Rival<EntmaxScore>); 5] = [
        |rival| rival.between = rival.between[1..].into(),
        |rival| rival.between = rival.between.iter().map(|score| score + 1.0).collect(),
        |rival| rival.low = f64::NAN,
        |rival| rival.at_high = 39 * CLASSES as u64 + 1,
        |rival| rival.at_low = rival.at_high + 1,
    ];
    for (number, fault) in faults.iter().enumerate() {
        let mut rivals = made.rivals().to_vec();
        fault(&mut rivals[leader]);
        assert_eq!(again(rivals), None, "fault {number}");
    }
    assert_eq!(again(Vec::new()), None);
}

/// What is left alone by the shortcut is what the definition gives: the same predictor without it.
#[test]
fn sets_do_not_depend_on_blocks_or_policies() {
    let rows = Pool::Masked.draw(60, &mut Random::new(9));
    let test = Pool::Masked.draw(50, &mut Random::new(10));
    let model: Predictor<EntmaxScore> =
        selected(&entmax_grid(), &rows, Alpha::new(0.2).unwrap(), Masked::Allowed).predictor();
    let whole = model.predict(test.logits()).unwrap();
    for row in 0..50 {
        let one = model.predict(test.take(&[row]).logits()).unwrap();
        assert_eq!(one.get(0), whole.get(row));
    }
}
