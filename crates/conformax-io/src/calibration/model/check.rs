//! What must hold of every model, whether just made or just read.

use conformax::{conformal_rank, smallest};

use super::{Model, TuningRecord};
use crate::Problem;

/// The first thing that calibration could not have produced.
pub(super) fn check(model: &Model) -> Result<(), Problem> {
    check_classes(model)?;
    check_scores(model)?;
    check_levels(model)?;
    if model.calibrating_rows.len() as u64 > model.n {
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
        _ => Ok(()),
    }
}

fn check_levels(model: &Model) -> Result<(), Problem> {
    if model.levels.is_empty() {
        return refuse("it has no levels");
    }
    for (index, level) in model.levels.iter().enumerate() {
        let (alpha, rank) = (level.alpha, conformal_rank(model.n, level.alpha));
        if model.levels[..index].iter().any(|other| other.alpha == alpha) {
            return refuse(format!("alpha {alpha} occurs twice"));
        }
        if level.n != model.n || level.rank != rank {
            let [got, wanted] =
                [level.rank, rank].map(|rank| rank.map_or("none".to_owned(), |rank| rank.to_string()));
            return refuse(format!("alpha {alpha} has rank {got}; {} rows give {wanted}", model.n));
        }
        if level.threshold.is_nan() || (rank.is_none() && level.threshold != f64::INFINITY) {
            return refuse(format!(
                "alpha {alpha} has the threshold {}, too few rows make it infinite",
                level.threshold
            ));
        }
        if let Some(scores) = &model.scores {
            let wanted = scores.level(alpha).threshold;
            if wanted.to_bits() != level.threshold.to_bits() {
                let got = level.threshold;
                return refuse(format!(
                    "alpha {alpha} has the threshold {got}; the score of its rank is {wanted}"
                ));
            }
        }
    }
    check_order(model)
}

/// A smaller alpha cannot have a smaller threshold.
fn check_order(model: &Model) -> Result<(), Problem> {
    let mut levels: Vec<_> = model.levels.iter().collect();
    levels.sort_by(|a, b| b.alpha.value().total_cmp(&a.alpha.value()));
    match levels.windows(2).find(|pair| pair[0].threshold > pair[1].threshold) {
        Some(pair) => {
            refuse(format!("alpha {} has a smaller threshold than alpha {}", pair[1].alpha, pair[0].alpha))
        }
        None => Ok(()),
    }
}

fn check_tuning(model: &Model, tuning: &TuningRecord) -> Result<(), Problem> {
    let sizes: Vec<f64> = tuning.candidates.iter().map(|candidate| candidate.average_size).collect();
    if sizes.iter().any(|size| !(0.0..=model.classes as f64).contains(size)) {
        return refuse("a candidate's mean set size is not one");
    }
    if tuning.candidates.iter().any(|candidate| candidate.threshold.is_nan()) {
        return refuse("a candidate's threshold is not a number");
    }
    if smallest(&sizes) != Some(tuning.chosen) {
        return refuse("the candidate chosen is not the one with the smallest sets");
    }
    if tuning.candidates[tuning.chosen].score != model.score {
        return refuse("the candidate chosen is not the score that was calibrated");
    }
    if tuning.rows.len() as u64 > tuning.n {
        return refuse("it names more rows than tuned");
    }
    Ok(())
}
