//! The law of coverage, through the public calls on logits: the covered rows among `m` are Beta-Binomial where no
//! scores tie, and stochastically at least that where some do.
//!
//! Every fault that would break the law is made here on purpose and put before the same judge, which must see it.

mod conditional;
mod pool;
mod procedure;
mod selection;
mod verdict;

use conformax::{
    Alpha, ApsScore, Calibration, Draw, Empty, EntmaxScore, Gamma, InvProbScore, Level, Masked,
    PredictionSets, Predictor, Result, Score, ScoreSpec, SortedScores, Thresholds, TuneOn, Tuning, calibrate,
    predict_each, score_labels, split, tune,
};

use pool::{Pool, Random, Rows};
use procedure::{Procedure, Trial, covered};
use verdict::{DISTANCE, MARGIN, law_holds};

/// Rows and levels that reach both ends of the ranks: `r = n` at 9 and 199 rows, the middle at 19.
const SETTINGS: [(usize, f64); 5] = [(9, 0.1), (19, 0.5), (49, 0.2), (99, 0.1), (199, 0.005)];

const SPARSEMAX: EntmaxScore = EntmaxScore { gamma: Gamma::SPARSEMAX };
const LOG_MARGIN: EntmaxScore = EntmaxScore { gamma: Gamma::SOFTMAX };
const APS: ApsScore = ApsScore { draw: Draw::Seeded(7) };

/// Every procedure on a pool: an equality where nothing ties, one side elsewhere.
fn check_on(pool: Pool, procedures: &[Procedure], settings: &[(usize, f64)]) -> Result<()> {
    for procedure in procedures {
        let equality = procedure.grid().iter().all(|score| pool.is_free_of_ties(*score));
        for (n, alpha) in settings {
            let verdict = Trial::new(pool, *n, *alpha)?.run(procedure, 1)?;
            let holds = if equality { verdict.is_law() } else { verdict.is_at_least_law() };
            assert!(holds, "{procedure} on {pool} rows, n = {n}, alpha = {alpha}: {verdict:?}");
        }
    }
    Ok(())
}

#[test]
fn covers_by_the_law_where_nothing_ties() {
    check_on(Pool::TieFree, &Procedure::plain(), &SETTINGS).unwrap();
    check_on(Pool::TieFree, &Procedure::plain()[2..6], &[(199, 0.05)]).unwrap();
}

#[test]
fn covers_at_least_the_law_where_entmax_has_an_atom() {
    check_on(Pool::Accurate(0.85), &Procedure::plain(), &SETTINGS[1..4]).unwrap();
    check_on(Pool::Accurate(0.97), &Procedure::plain()[..4], &SETTINGS[3..]).unwrap();
}

#[test]
fn covers_at_least_the_law_on_ties_and_masks() {
    for pool in [Pool::Tied, Pool::Quantised, Pool::Masked] {
        check_on(pool, &Procedure::plain(), &SETTINGS[2..4]).unwrap();
    }
}

#[test]
fn covers_by_the_law_after_valid_tuning() {
    let tuned = [Procedure::OptEntmax(Tuning::Valid), Procedure::OptRaps(Tuning::Valid)];
    check_on(Pool::TieFree, &tuned, &[(60, 0.1), (29, 0.2)]).unwrap();
    check_on(Pool::Tied, &tuned, &[(60, 0.1)]).unwrap();
}

/// Shuffled rows follow the law that fresh ones do, at several levels of one sort.
#[test]
fn shuffled_rows_follow_the_law_too() {
    let levels = [0.05, 0.2, 0.5].map(|level| Alpha::new(level).unwrap());
    let tuned = Procedure::OptEntmax(Tuning::Valid);
    for procedure in [&Procedure::plain()[2], &Procedure::plain()[5], &tuned] {
        let trial = Trial::new(Pool::TieFree, 49, 0.2).unwrap();
        for verdict in trial.run_shuffled(procedure, &levels, 3).unwrap() {
            assert!(verdict.is_law(), "{procedure}: {verdict:?}");
        }
    }
    let tied =
        Trial::new(Pool::Tied, 49, 0.2).unwrap().run_shuffled(&Procedure::plain()[0], &levels, 3).unwrap();
    assert!(tied.iter().all(|verdict| verdict.is_at_least_law() && !verdict.is_law()), "{tied:?}");
}

/// The atom at 0 is no concern once the threshold lies above it in every split.
#[test]
fn entmax_covers_by_the_law_given_a_positive_threshold() {
    let trial = Trial::new(Pool::Accurate(0.5), 99, 0.1).unwrap();
    let verdict = trial.judge(2, |calibrating, test, _| {
        let model =
            calibrate(EntmaxScore::default(), calibrating.logits(), &calibrating.labels, trial.alpha)?;
        assert!(model.thresholds().as_slice()[0] > 0.0);
        model.predict(test.logits())
    });
    assert!(verdict.as_ref().unwrap().is_law(), "{verdict:?}");
}

/// The law needs no population: given any rows whatever, it is the law of where a random split puts them.
#[test]
fn covers_by_the_law_over_seeded_splits_of_one_pool_at_several_levels() {
    let (n, m) = (100, 150);
    let rows = Pool::TieFree.draw(n + m, &mut Random::new(3));
    let levels = [0.05, 0.1, 0.3].map(|alpha| Alpha::new(alpha).unwrap());
    let mut counts = levels.map(|_| Vec::new());
    let splits = verdict::splits_wanted(n as u64, m as u64, levels[2]) as u64;
    for seed in 0..splits {
        let parts = split(n + m, &[0.4, 0.6], seed).unwrap();
        let (calibrating, test) = (rows.take(&parts[0]), rows.take(&parts[1]));
        let calibration =
            Calibration::of(InvProbScore, calibrating.logits().labelled(&calibrating.labels).unwrap())
                .unwrap();
        let models = levels.map(|alpha| calibration.at(alpha).0);
        for (counts, sets) in counts.iter_mut().zip(predict_each(&models, test.logits()).unwrap()) {
            counts.push(covered(&sets, &test.labels));
        }
    }
    for (alpha, counts) in levels.into_iter().zip(&counts) {
        let verdict = law_holds(counts, n as u64, m as u64, alpha);
        assert!(verdict.is_law(), "alpha = {alpha}: {verdict:?}");
    }
}

#[test]
fn covers_every_row_where_there_are_too_few_to_calibrate() {
    let verdict = Trial::new(Pool::TieFree, 8, 0.1).unwrap().run(&Procedure::plain()[1], 4).unwrap();
    assert_eq!((verdict.mean, verdict.law_mean), (1.0, 1.0));
    assert!(verdict.is_law(), "{verdict:?}");
}

#[test]
fn covers_at_least_the_law_with_the_top_label_in_empty_sets() {
    let trial = Trial::new(Pool::Accurate(0.85), 49, 0.2).unwrap();
    let verdict = trial.judge(5, |calibrating, test, _| {
        let model = calibrate(APS, calibrating.logits(), &calibrating.labels, trial.alpha)?;
        model.with_empty(Empty::TopLabel).predict(test.logits())
    });
    let verdict = verdict.unwrap();
    assert!(verdict.is_at_least_law() && verdict.surplus > DISTANCE, "{verdict:?}");
}

/// Sets at a threshold that calibration did not find by itself.
fn predict_at<S: Score + Clone>(
    score: &S,
    trial: Trial,
    calibrating: &Rows,
    test: &Rows,
    fault: impl Fn(&SortedScores, Level) -> f64,
) -> Result<PredictionSets> {
    let scores = SortedScores::new(score_labels(score, calibrating.labelled()?)?)?;
    let threshold = fault(&scores, scores.level(trial.alpha));
    Predictor::new(score.clone(), Thresholds::One(threshold)).predict(test.logits())
}

/// The threshold moved by whole ranks.
fn shifted(scores: &SortedScores, level: Level, by: i64) -> f64 {
    let rank =
        level.rank().and_then(|rank| rank.checked_add_signed(by)).expect("both ranks are within the rows");
    scores.as_slice()[rank as usize - 1]
}

#[test]
fn sees_a_rank_one_too_low_and_one_too_high() {
    for (n, alpha) in [(19, 0.5), (49, 0.2), (99, 0.1), (199, 0.05)] {
        let trial = Trial::new(Pool::TieFree, n, alpha).unwrap();
        let verdict = |by| {
            let fault = |scores: &SortedScores, level| shifted(scores, level, by);
            trial.judge(6, |cal, test, _| predict_at(&SPARSEMAX, trial, cal, test, fault)).unwrap()
        };
        let (low, right, high) = (verdict(-1), verdict(0), verdict(1));
        assert!(right.is_law(), "n = {n}: {right:?}");
        assert!(!low.is_at_least_law() && low.below < -MARGIN && low.deficit > DISTANCE, "n = {n}: {low:?}");
        assert!(!high.is_law() && high.above < -MARGIN && high.surplus > DISTANCE, "n = {n}: {high:?}");
    }
}

/// The next number below the threshold makes `≤` mean `<`.
fn strict(scores: &SortedScores, level: Level) -> f64 {
    scores.threshold(level.alpha()).next_down()
}

#[test]
fn sees_strict_membership_on_ties_and_nowhere_else() {
    let cases = [(LOG_MARGIN, 99, 0.1), (EntmaxScore::default(), 19, 0.5), (SPARSEMAX, 19, 0.5)];
    for (score, n, alpha) in cases {
        let verdict = |pool| {
            let trial = Trial::new(pool, n, alpha).unwrap();
            trial.judge(7, |cal, test, _| predict_at(&score, trial, cal, test, strict)).unwrap()
        };
        let (tied, free) = (verdict(Pool::Tied), verdict(Pool::TieFree));
        assert!(!tied.is_at_least_law() && tied.deficit > DISTANCE, "{score:?}: {tied:?}");
        assert!(free.is_law(), "{score:?}: {free:?}");
    }
}

#[test]
fn sees_strict_membership_at_a_threshold_of_zero() {
    let trial = Trial::new(Pool::Certain, 99, 0.1).unwrap();
    let right = trial.judge(8, |cal, test, _| {
        predict_at(&SPARSEMAX, trial, cal, test, |scores, level| shifted(scores, level, 0))
    });
    assert_eq!(right.unwrap().mean, 1.0, "the threshold is 0 and the top label the true one");
    let strict = trial.judge(8, |cal, test, _| predict_at(&SPARSEMAX, trial, cal, test, strict)).unwrap();
    assert_eq!(strict.mean, 0.0);
    assert!(!strict.is_at_least_law(), "{strict:?}");
}

/// Sets by APS with the caller's own draws for calibrating and for test rows.
fn aps_with(calibrating: &Rows, u: &[f64], test: &Rows, v: &[f64], alpha: Alpha) -> Result<PredictionSets> {
    let model = calibrate(APS, calibrating.logits().with_u(u)?, &calibrating.labels, alpha)?;
    model.predict(test.logits().with_u(v)?)
}

/// On rows of which the model is certain, rightly, APS's score is little but the draw. Shared draws then leave the mean
/// as it is and take the spread away: every split covers nearly the same number of rows.
#[test]
fn sees_draws_shared_by_position_between_calibrating_and_test_rows() {
    let trial = Trial { m: 99, ..Trial::new(Pool::Certain, 99, 0.1).unwrap() };
    let uniform = |random: &mut Random| -> Vec<f64> { (0..99).map(|_| random.uniform()).collect() };
    let seeded = trial.run(&Procedure::Plain(ScoreSpec::Aps(APS)), 9).unwrap();
    let apart = trial.judge(9, |cal, test, random| {
        let (u, v) = (uniform(random), uniform(random));
        aps_with(cal, &u, test, &v, trial.alpha)
    });
    let shared = trial.judge(9, |cal, test, random| {
        let u = uniform(random);
        aps_with(cal, &u, test, &u, trial.alpha)
    });
    let (apart, shared) = (apart.unwrap(), shared.unwrap());
    assert!(seeded.is_law() && apart.is_law(), "{seeded:?} {apart:?}");
    assert!(!shared.is_law() && shared.deficit > DISTANCE && shared.surplus > DISTANCE, "{shared:?}");
}

#[test]
fn sees_one_draw_for_all_rows_of_a_call() {
    for pool in [Pool::Certain, Pool::TieFree] {
        let trial = Trial { m: 99, ..Trial::new(pool, 99, 0.1).unwrap() };
        let verdict = trial.judge(10, |cal, test, random| {
            let (u, v) = (random.uniform(), random.uniform());
            aps_with(cal, &[u; 99], test, &[v; 99], trial.alpha)
        });
        let verdict = verdict.unwrap();
        assert!(!verdict.is_at_least_law() && verdict.deficit > DISTANCE, "{pool}: {verdict:?}");
    }
}

/// The choice leans on the rows that then calibrate, and the more candidates the harder.
#[test]
fn sees_the_papers_tuning() {
    for procedure in [Procedure::OptEntmax(Tuning::Paper), Procedure::OptRaps(Tuning::Paper)] {
        let verdict = Trial::new(Pool::TieFree, 60, 0.1).unwrap().run(&procedure, 11).unwrap();
        assert!(!verdict.is_at_least_law() && verdict.below < -MARGIN, "{procedure}: {verdict:?}");
    }
}

/// Forty seeds of one score: nothing to choose between them but luck, which valid tuning does not spend.
#[test]
fn sees_a_seed_chosen_on_calibrating_rows() {
    let grid: Vec<ApsScore> = (0..40).map(|seed| ApsScore { draw: Draw::Seeded(seed) }).collect();
    let trial = Trial::new(Pool::Accurate(0.85), 49, 0.2).unwrap();
    let verdict = |tuning| {
        let judged = trial.judge(12, |calibrating, test, random| {
            let choosing = trial.pool.draw(33, random);
            let tuned = tune(TuneOn {
                grid: &grid,
                tuning: choosing.labelled()?,
                calibrating: calibrating.labelled()?,
                alpha: trial.alpha,
                method: tuning,
                masked: Masked::Allowed,
            })?;
            tuned.calibration.at(trial.alpha).0.predict(test.logits())
        });
        judged.unwrap()
    };
    let (valid, paper) = (verdict(Tuning::Valid), verdict(Tuning::Paper));
    assert!(valid.is_law(), "{valid:?}");
    assert!(!paper.is_at_least_law() && paper.deficit > DISTANCE, "{paper:?}");
}
