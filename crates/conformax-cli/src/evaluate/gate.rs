//! The gate: coverage that is too low to be chance is a reason not to deploy.

use conformax::Level;

use super::counted::LevelTally;
use crate::console::Console;
use crate::failure::Failure;
use crate::model::{Loaded, law_holds};
use crate::numbers::share;

/// Exit 1 below the law's 0.1 % quantile, a warning above its 99.9 %.
pub(super) fn expect_coverage(
    model: &Loaded,
    levels: &[Level],
    tallies: &[LevelTally],
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    if !law_holds(&model.model) {
        return Err(Failure::of_file(
            &model.path,
            "was tuned on the rows that calibrated it, so its coverage has no law to be held to; tune again with \
             `conformax tune`",
        ));
    }
    let mut low = Vec::new();
    for (level, tally) in levels.iter().zip(tallies) {
        let (covered, n) = (tally.tally.covered(), tally.tally.n());
        let measured = covered as f64 / n as f64;
        let least = level.law().quantile_of_count(0.001, n);
        let most = level.law().quantile_of_count(0.999, n);
        if covered < least {
            low.push(format!(
                "coverage {} at alpha = {} is below {}, which chance alone undercuts once in a thousand",
                share(measured, 4),
                level.alpha,
                share(least as f64 / n as f64, 4)
            ));
        } else if covered > most && !law_is_a_bound(model, level) {
            console.warn(format_args!(
                "coverage {} at alpha = {} is above {}, which chance alone exceeds once in a thousand: these rows \
                 are easier than those that calibrated; calibrate again on rows like these for smaller sets",
                share(measured, 4),
                level.alpha,
                share(most as f64 / n as f64, 4)
            ))?;
        }
    }
    if low.is_empty() {
        return Ok(());
    }
    let why = low.join("; ");
    Err(Failure::No(format!(
        "{why}. These rows are not like those that calibrated: calibrate again on recent, labelled rows"
    )))
}

/// Where the threshold is 0, infinite or shared by several calibration rows, coverage may exceed its law.
fn law_is_a_bound(model: &Loaded, level: &Level) -> bool {
    let tied = model.model.scores.as_ref().is_some_and(|scores| {
        scores.as_slice().iter().filter(|score| **score == level.threshold).count() > 1
    });
    tied || level.threshold == 0.0 || level.threshold == f64::INFINITY
}
