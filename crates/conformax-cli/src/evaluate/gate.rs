//! The gate: coverage that is too low to be chance is a reason not to deploy.

use std::path::Path;

use conformax::{Tally, Verdict};
use conformax_io::{KeptLevel, Model, printable};

use super::counted::Honest;
use super::groups::GroupEvaluation;
use crate::console::Console;
use crate::failure::Failure;
use crate::numbers::share;

/// Exit 1 below the law's 0.1 % quantile, a warning above its 99.9 %.
pub(super) fn expect_coverage(
    (path, model): (&Path, &Model),
    levels: &[KeptLevel],
    (tallies, by_group): (&[Tally], &[&[GroupEvaluation]]),
    honest: Honest,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if !model.law_holds() {
        return Err(Failure::of_file(
            path,
            "was tuned on the rows that calibrated it, so its coverage has no law to be held to; tune again with \
             `conformax tune`",
        ));
    }
    if honest == Honest::No {
        return Err(Failure::error(
            "these rows calibrated or tuned the model, so their coverage has no law to be held to; give other rows",
        ));
    }
    let mut low = Vec::new();
    for ((kept, tally), groups) in levels.iter().zip(tallies).zip(by_group) {
        let (alpha, n) = (kept.alpha(), tally.n() as f64);
        let measured = share(tally.covered() as f64 / n, 4);
        let judged = groups.iter().filter(|group| group.verdict.is_some()).count();
        low.extend(groups.iter().filter_map(|group| too_low(kept, group, judged)));
        let Some(level) = kept.level() else {
            if judged == 0 {
                let promised = model.promise();
                return Err(Failure::of_file(
                    path,
                    format_args!(
                        "has no law that coverage on these rows could be held to; it promises: {promised}"
                    ),
                ));
            }
            continue;
        };
        match tally.verdict(level, &kept.thresholds, model.law_is(kept)) {
            Verdict::AsPromised => {}
            Verdict::TooLow(least) => low.push(format!(
                "coverage {measured} at alpha = {alpha} is below {}, which chance alone undercuts once in a thousand",
                share(least as f64 / n, 4)
            )),
            Verdict::TooHigh(most) => console.warn(format_args!(
                "coverage {measured} at alpha = {alpha} is above {}, which chance alone exceeds once in a thousand: \
                 these rows are easier than those that calibrated; calibrate again on rows like these for smaller sets",
                share(most as f64 / n, 4)
            )),
        }
    }
    if low.is_empty() {
        console.note("yes: coverage is not below what chance alone undercuts once in a thousand");
        return Ok(());
    }
    let why = low.join("; ");
    Err(Failure::No(format!(
        "{why}. These rows are not like those that calibrated: calibrate again on recent, labelled rows"
    )))
}

/// What to say of a group that is covered too seldom.
fn too_low(kept: &KeptLevel, group: &GroupEvaluation, groups: usize) -> Option<String> {
    let Some(Verdict::TooLow(least)) = group.verdict else { return None };
    let n = group.n as f64;
    Some(format!(
        "coverage {} of the group {} at alpha = {} is below {}, which chance alone makes one of {groups} groups \
         undercut once in a thousand",
        share(group.tally.covered as f64 / n, 4),
        printable(&group.group),
        kept.alpha(),
        share(least as f64 / n, 4),
    ))
}
