//! The laws of scores, for every score: to the bit where the contract says so, within `ROUNDING` elsewhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::common::rows::{Batch, batches, calm_rows, draws, long_rows, rows};
use crate::common::tolerance::{ROUNDING, close_at_scale};
use crate::common::{cases, entmax, for_all, laws, score_each};
use conformax::{
    ApsScore, Draw, InvProbScore, Lambda, Logit, MarginScore, Penalty, RapsScore, Row, SapsScore, Score,
    ScoreSpec, TopKScore,
};
use proptest::prelude::*;

/// Holds a score to every law. `scale` is the least size of what its scores are made of: 1 for sums of
/// probabilities, whose rounding is absolute, and 0 for norms of gaps, which have no unit.
macro_rules! score_laws {
    ($($name:ident: $score:expr, scale $scale:literal;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn membership_is_the_definition() {
                for_all(96, rows_and_draws(), &|(row, u)| laws::membership_is_the_definition(&$score, &row, u));
            }

            #[test]
            fn membership_is_the_definition_in_long_rows() {
                let rows = (long_rows(), draws()).boxed();
                for_all(3, rows, &|(row, u)| laws::membership_is_the_definition(&$score, &row, u));
            }

            #[test]
            fn scores_are_numbers() {
                for_all(96, rows_and_draws(), &|(row, u)| laws::scores_are_numbers(&$score, &row, u));
            }

            #[test]
            fn ties_share_their_fate() {
                for_all(96, rows_and_draws(), &|(row, u)| laws::ties_share_their_fate(&$score, &row, u));
            }

            #[test]
            fn rises_down_the_ranking() {
                for_all(96, rows_and_draws(), &|(row, u)| laws::rises_down_the_ranking(&$score, &row, u, $scale));
            }

            #[test]
            fn probabilities_sum_to_one() {
                for_all(96, rows_and_draws(), &|(row, u)| laws::probabilities_sum_to_one(&$score, &row, u));
            }

            #[test]
            fn order_does_not_matter() {
                for_all(96, rows_and_orders(), &|(row, order, u)| {
                    laws::order_does_not_matter(&$score, &row, &order, u, $scale)
                });
            }

            #[test]
            fn shift_does_not_matter() {
                for_all(96, rows_and_shifts(), &|(row, by, u)| {
                    laws::shift_does_not_matter(&$score, &row, by, u, $scale)
                });
            }

            #[test]
            fn p_values_are_dual_to_sets() {
                for_all(96, calibration_and_test(), &|(calibration, test)| {
                    laws::p_values_are_dual_to_sets(&$score, &calibration, &test)
                });
            }

            #[test]
            fn alone_or_in_a_batch() {
                for_all(96, batches(1..=80, 1..=12), &|batch| laws::alone_or_in_a_batch(&$score, &batch));
            }

            #[test]
            #[cfg(feature = "half")]
            fn float_type_does_not_matter() {
                let rows = (calm_rows(), draws()).boxed();
                for_all(96, rows, &|(row, u)| laws::float_type_does_not_matter(&$score, &row, u));
            }
        }
    )*};
}

fn rows_and_draws() -> BoxedStrategy<(Vec<f64>, Option<f64>)> {
    (rows(), draws()).boxed()
}

fn rows_and_orders() -> BoxedStrategy<(Vec<f64>, Vec<usize>, f64)> {
    let shuffled = |row: Vec<f64>| {
        let order: Vec<usize> = (0..row.len()).collect();
        (Just(row), Just(order).prop_shuffle(), 0.0..1.0)
    };
    rows().prop_flat_map(shuffled).boxed()
}

fn rows_and_shifts() -> BoxedStrategy<(Vec<f64>, f64, f64)> {
    (calm_rows(), -8.0..8.0, 0.0..1.0).boxed()
}

fn calibration_and_test() -> BoxedStrategy<(Batch, Vec<f64>)> {
    let same_classes = |k: usize| (batches(k..=k, 1..=40), batches(k..=k, 1..=6));
    (1_usize..=6).prop_flat_map(same_classes).prop_map(|(cal, test)| (cal, test.logits)).boxed()
}

fn lambda(value: f64) -> Lambda {
    Lambda::new(value).unwrap()
}

/// A score that this crate knows nothing of: its definition and nothing else. Half the gap to the best, say.
#[derive(Clone, Debug)]
struct FromElsewhere;

impl Score for FromElsewhere {
    fn score<T: Logit>(&self, row: Row<'_, T>, label: u32) -> f64 {
        (row.max() - row.logit(label)) / 2.0
    }
}

score_laws! {
    from_elsewhere: FromElsewhere, scale 0.0;
    log_margin: entmax(1.0), scale 0.0;
    entmax_almost_1: entmax(1.0 + 1e-9), scale 0.0;
    entmax_1_02: entmax(1.02), scale 0.0;
    entmax_1_1: entmax(1.1), scale 0.0;
    entmax_1_3: entmax(1.3), scale 0.0;
    entmax_1_5: entmax(1.5), scale 0.0;
    entmax_1_9: entmax(1.9), scale 0.0;
    sparsemax: entmax(2.0), scale 0.0;
    entmax_2_5: entmax(2.5), scale 0.0;
    entmax_3: entmax(3.0), scale 0.0;
    entmax_8: entmax(8.0), scale 0.0;
    entmax_16: entmax(16.0), scale 0.0;
    inv_prob: InvProbScore, scale 1.0;
    aps: ApsScore { draw: Draw::Seeded(3) }, scale 1.0;
    aps_not_randomized: ApsScore { draw: Draw::Conservative }, scale 1.0;
    raps: RapsScore { lambda: lambda(0.05), k_reg: 2, ..RapsScore::default() }, scale 1.0;
    raps_fixed_penalty:
        RapsScore { lambda: lambda(0.05), k_reg: 2, penalty: Penalty::Fixed, ..RapsScore::default() }, scale 1.0;
    raps_not_randomized: RapsScore { draw: Draw::Conservative, ..RapsScore::default() }, scale 1.0;
    raps_fixed_not_randomized:
        RapsScore { k_reg: 0, penalty: Penalty::Fixed, draw: Draw::Conservative, ..RapsScore::default() }, scale 1.0;
    saps: SapsScore::default(), scale 1.0;
    saps_not_randomized: SapsScore { lambda: lambda(0.2), draw: Draw::Conservative }, scale 1.0;
    top_k: TopKScore, scale 1.0;
    margin: MarginScore, scale 1.0;
    spec_of_entmax: ScoreSpec::Entmax(entmax(1.3)), scale 0.0;
    spec_of_raps: ScoreSpec::Raps(RapsScore::default()), scale 1.0;
}

/// Raising a label's own logit, the others as they are, does not raise its score. (APS and its kin do not obey
/// this: their score holds the label's own probability.)
fn own_logit_lowers<S: Score>(
    score: &S,
    logits: &[f64],
    label: usize,
    by: f64,
    scale: f64,
) -> Result<(), TestCaseError> {
    let mut raised = logits.to_vec();
    raised[label] += by;
    let before = score_each(score, Row::new(logits).unwrap())[label];
    let after = score_each(score, Row::new(&raised).unwrap())[label];
    let rounding = close_at_scale(after, before, ROUNDING, before.abs().max(scale));
    prop_assert!(after <= before || rounding, "from {:e} to {:e}", before, after);
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn raising_a_logit_does_not_raise_its_score(row in rows(), at in any::<prop::sample::Index>(), by in 0.0..3.0) {
        let label = at.index(row.len());
        for gamma in [1.0, 1.0 + 1e-9, 1.1, 1.3, 1.5, 1.9, 2.0, 2.5, 3.0, 16.0] {
            own_logit_lowers(&entmax(gamma), &row, label, by, 0.0)?;
        }
        own_logit_lowers(&InvProbScore, &row, label, by, 1.0)?;
        own_logit_lowers(&MarginScore, &row, label, by, 1.0)?;
        own_logit_lowers(&TopKScore, &row, label, by, 1.0)?;
    }

    /// A penalty so large that it drowns every probability is legal, and sets are still the definition.
    #[test]
    fn membership_is_the_definition_under_any_penalty(
        row in rows(),
        u in prop_oneof![draws(), Just(Some(1.0 - f64::EPSILON / 2.0))],
        exponent in prop_oneof![6_i32..=18, -300_i32..=300],
        k_reg in 0_u32..6,
        penalty in prop::sample::select(vec![Penalty::Randomized, Penalty::Fixed]),
    ) {
        let lambda = Lambda::new(format!("1e{exponent}").parse().unwrap()).unwrap();
        let raps = RapsScore { lambda, k_reg, penalty, draw: Draw::default() };
        laws::membership_is_the_definition(&raps, &row, u)?;
        laws::membership_is_the_definition(&SapsScore { lambda, draw: Draw::default() }, &row, u)?;
    }
}
