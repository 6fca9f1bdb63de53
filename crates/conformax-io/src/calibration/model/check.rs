//! What must hold of every model, whether just made or just read.

use super::{Model, TuningRecord};
use crate::Problem;

/// The first thing that calibration could not have produced.
pub(super) fn check(model: &Model) -> Result<(), Problem> {
    check_classes(model)?;
    check_scores(model)?;
    check_levels(model)?;
    if model.calibrating_rows.as_slice().len() as u64 > model.n {
        return refuse("it names more rows than calibrated");
    }
    model.tuning.as_ref().map_or(Ok(()), |tuning| check_tuning(model, tuning))
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Model(what.into()))
}

fn check_classes(model: &Model) -> Result<(), Problem> {
    if model.classes == 0 {
        return refuse("it has no classes");
    }
    match &model.names {
        Some(names) if names.as_slice().len() != model.classes => {
            refuse(format!("it has {} class names for {} classes", names.as_slice().len(), model.classes))
        }
        _ => Ok(()),
    }
}

fn check_scores(model: &Model) -> Result<(), Problem> {
    if model.n == 0 {
        return refuse("no row calibrated it");
    }
    match &model.scores {
        Some(scores) if scores.n() != model.n => {
            refuse(format!("it has {} scores of {} calibration rows", scores.n(), model.n))
        }
        Some(scores) => match scores.as_slice().iter().find(|score| !model.score.can_give(**score)) {
            Some(score) => refuse(format!("it has the score {score}, which {} cannot give", model.score)),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

fn check_levels(model: &Model) -> Result<(), Problem> {
    if model.levels.is_empty() {
        return refuse("it has no levels");
    }
    for (index, kept) in model.levels.iter().enumerate() {
        let (level, threshold) = (kept.level, kept.threshold);
        let alpha = level.alpha();
        if model.levels[..index].iter().any(|other| other.level.alpha() == alpha) {
            return refuse(format!("alpha {alpha} occurs twice"));
        }
        if level.n() != model.n {
            return refuse(format!("alpha {alpha} is of {} rows, and {} calibrated", level.n(), model.n));
        }
        if level.rank().is_none() && threshold != f64::INFINITY {
            return refuse(format!(
                "alpha {alpha} has the threshold {threshold}, too few rows make it infinite"
            ));
        }
        if !model.score.can_give(threshold) {
            return refuse(format!(
                "alpha {alpha} has the threshold {threshold}, which {} cannot give",
                model.score
            ));
        }
        if let Some(scores) = &model.scores {
            let wanted = scores.threshold(alpha);
            if wanted.to_bits() != threshold.to_bits() {
                return refuse(format!(
                    "alpha {alpha} has the threshold {threshold}; the score of its rank is {wanted}"
                ));
            }
        }
    }
    check_order(model)
}

fn check_order(model: &Model) -> Result<(), Problem> {
    let mut levels: Vec<_> = model.levels.iter().collect();
    levels.sort_by_key(|kept| std::cmp::Reverse(kept.level.alpha()));
    match levels.windows(2).find(|pair| pair[0].threshold > pair[1].threshold) {
        Some(pair) => refuse(format!(
            "alpha {} has a smaller threshold than alpha {}",
            pair[1].level.alpha(),
            pair[0].level.alpha()
        )),
        None => Ok(()),
    }
}

fn check_tuning(model: &Model, tuning: &TuningRecord) -> Result<(), Problem> {
    let candidates = tuning.choice.candidates();
    if candidates.iter().any(|candidate| !(0.0..=model.classes as f64).contains(&candidate.average_size)) {
        return refuse("a candidate's mean set size is not one");
    }
    if candidates.iter().any(|candidate| !candidate.score.can_give(candidate.threshold)) {
        return refuse("a candidate's threshold is none that its score can give");
    }
    if *tuning.choice.score() != model.score {
        return refuse("the candidate chosen is not the score that was calibrated");
    }
    if tuning.rows.as_slice().len() as u64 > tuning.n {
        return refuse("it names more rows than tuned");
    }
    Ok(())
}
