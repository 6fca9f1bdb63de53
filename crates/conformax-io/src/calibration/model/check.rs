//! What must hold of every model, whether just made or just read.

use conformax::{Calibration, Evidence, Promise, Scheme, ScoreSpec, Taxonomy, Thresholds};

use super::{KeptLevel, Model, SelectionRecord, TuningRecord};
use crate::Problem;

/// The first thing that calibration could not have produced.
pub(super) fn check(model: &Model) -> Result<(), Problem> {
    check_classes(model)?;
    check_scheme(model)?;
    let calibration = check_evidence(model)?;
    check_levels(model, calibration.as_ref())?;
    if model.calibrating_rows.as_slice().len() as u64 > model.n {
        return refuse("it names more rows than calibrated");
    }
    model.tuning.as_ref().map_or(Ok(()), |tuning| check_tuning(model, tuning))?;
    model.selection.as_ref().map_or(Ok(()), |record| check_selection(model, record))
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

fn check_scheme(model: &Model) -> Result<(), Problem> {
    let per_class = |what: &str, found: usize| match found == model.classes {
        true => Ok(()),
        false => refuse(format!("it has {found} {what} for {} classes", model.classes)),
    };
    model.ranks.as_ref().map_or(Ok(()), |ranks| per_class("largest ranks", ranks.as_slice().len()))?;
    model.prior.as_ref().map_or(Ok(()), |prior| per_class("prior shares", prior.as_slice().len()))?;
    match &model.scheme {
        Scheme::Groups(taxonomy @ Taxonomy::Cluster(clusters)) => {
            per_class("clusters", clusters.len())?;
            match (model.beside.clusters.len(), taxonomy.groups(model.classes)) {
                (names, count) if names != 0 && names != count => {
                    refuse(format!("it has {names} names for {count} clusters"))
                }
                _ => Ok(()),
            }
        }
        Scheme::LabelWeights(weights) => per_class("weights", weights.len()),
        Scheme::Risk(loss) => per_class("losses", loss.classes()),
        Scheme::Groups(Taxonomy::Group(count)) if *count != model.beside.groups.len() => {
            refuse(format!("it has {} names for {count} groups", model.beside.groups.len()))
        }
        Scheme::Groups(_) | Scheme::RowWeights => Ok(()),
    }
}

fn check_evidence(model: &Model) -> Result<Option<Calibration<ScoreSpec>>, Problem> {
    if model.n == 0 {
        return refuse("no row calibrated it");
    }
    let Some(evidence) = &model.evidence else {
        return match model.scheme {
            Scheme::RowWeights => refuse("thresholds by weight need the scores, which it lacks"),
            _ => Ok(None),
        };
    };
    let Some(calibration) = model.calibration() else {
        return refuse("its scores are not those of its thresholds");
    };
    if calibration.n() != model.n {
        return refuse(format!("it has {} scores of {} calibration rows", calibration.n(), model.n));
    }
    let scores: Box<dyn Iterator<Item = f64>> = match evidence {
        Evidence::Groups(groups) => Box::new(groups.iter().flat_map(|scores| scores.as_slice()).copied()),
        Evidence::Weighted(scores) => Box::new(scores.scores().iter().copied()),
        Evidence::Losses(steps) => Box::new(steps.steps().iter().map(|(score, _)| *score)),
        _ => return refuse("its scores are of a kind that this program does not know"),
    };
    // A label beyond its largest rank is infinitely strange under any score.
    let beyond = |score: f64| model.ranks.is_some() && score == f64::INFINITY;
    let mut scores = scores;
    match scores.find(|score| !model.score.can_give(*score) && !beyond(*score)) {
        Some(score) => refuse(format!("it has the score {score}, which {} cannot give", model.score)),
        None => Ok(Some(calibration)),
    }
}

fn check_levels(model: &Model, calibration: Option<&Calibration<ScoreSpec>>) -> Result<(), Problem> {
    if model.levels.is_empty() {
        return refuse("it has no levels");
    }
    for (index, kept) in model.levels.iter().enumerate() {
        let alpha = kept.alpha();
        if model.levels[..index].iter().any(|other| other.alpha() == alpha) {
            return refuse(format!("alpha {alpha} occurs twice"));
        }
        check_level(model, kept, calibration)?;
    }
    check_order(model)
}

fn check_level(
    model: &Model,
    kept: &KeptLevel,
    calibration: Option<&Calibration<ScoreSpec>>,
) -> Result<(), Problem> {
    let alpha = kept.alpha();
    if let Some(level) = kept.ranked_level()
        && level.n() != model.n
    {
        return refuse(format!("alpha {alpha} is of {} rows, and {} calibrated", level.n(), model.n));
    }
    let levels = kept.ranked_level().into_iter().chain(kept.group_levels().iter().copied());
    if levels.clone().any(|level| level.delta() != model.delta) {
        return refuse(format!("alpha {alpha} promises something else than the model"));
    }
    let thresholds = kept.thresholds.as_slice();
    // Thresholds of clusters are kept by label, so there are other numbers of them than of levels.
    if thresholds.len() == levels.clone().count() {
        let unreached =
            levels.zip(thresholds).find(|(level, q)| level.rank().is_none() && **q != f64::INFINITY);
        if let Some((_, threshold)) = unreached {
            return refuse(format!(
                "alpha {alpha} has the threshold {threshold}, too few rows make it infinite"
            ));
        }
    }
    if let Some(threshold) = thresholds.iter().find(|q| !model.score.can_give(**q) && **q != f64::INFINITY) {
        let score = model.score;
        return refuse(format!("alpha {alpha} has the threshold {threshold}, which {score} cannot give"));
    }
    if let Some(calibration) = calibration {
        let wanted = model.level_of(calibration, alpha)?;
        if wanted.promise != kept.promise || !same_bits(&wanted.thresholds, &kept.thresholds) {
            return match (wanted.threshold(), kept.threshold()) {
                (Some(wanted), Some(threshold)) => refuse(format!(
                    "alpha {alpha} has the threshold {threshold}; the score of its rank is {wanted}"
                )),
                _ => refuse(format!("alpha {alpha} has other thresholds than its scores give")),
            };
        }
    }
    match (&kept.promise, &model.scheme) {
        (Promise::Selected(_), Scheme::Groups(Taxonomy::All)) if model.selection.is_some() => Ok(()),
        (Promise::Marginal(_), Scheme::Groups(Taxonomy::All)) if model.selection.is_none() => Ok(()),
        (Promise::Groups { .. }, Scheme::Groups(_))
        | (Promise::Weighted { .. }, Scheme::RowWeights | Scheme::LabelWeights(_))
        | (Promise::Risk { .. }, Scheme::Risk(_)) => Ok(()),
        _ => refuse(format!("alpha {alpha} promises what its thresholds cannot")),
    }
}

fn same_bits(a: &Thresholds, b: &Thresholds) -> bool {
    let bits = |thresholds: &Thresholds| -> Vec<u64> {
        thresholds.as_slice().iter().map(|threshold| threshold.to_bits()).collect()
    };
    a == b && bits(a) == bits(b)
}

/// A lower level has no smaller threshold, for any label or group.
fn check_order(model: &Model) -> Result<(), Problem> {
    let mut levels: Vec<_> = model.levels.iter().collect();
    levels.sort_by_key(|kept| std::cmp::Reverse(kept.alpha()));
    let smaller = |pair: &&[&KeptLevel]| {
        let (larger_alpha, smaller_alpha) = (pair[0].thresholds.as_slice(), pair[1].thresholds.as_slice());
        larger_alpha.iter().zip(smaller_alpha).any(|(first, second)| first > second)
    };
    match levels.windows(2).find(smaller) {
        Some(pair) => refuse(format!(
            "alpha {} has a smaller threshold than alpha {}",
            pair[1].alpha(),
            pair[0].alpha()
        )),
        None => Ok(()),
    }
}

fn check_selection(model: &Model, record: &SelectionRecord) -> Result<(), Problem> {
    let SelectionRecord { selection, wins } = record;
    let [kept] = &model.levels[..] else { return refuse("candidates were chosen among at one level") };
    let leader = &selection.rivals()[selection.leader()];
    if leader.score != model.score || !same_bits(&Thresholds::One(leader.high), &kept.thresholds) {
        return refuse("the score and its threshold are not those of the leading candidate");
    }
    let alike =
        (selection.classes(), selection.n(), selection.alpha()) == (model.classes, model.n, kept.alpha());
    if !alike || model.evidence.is_some() || model.tuning.is_some() {
        return refuse("its candidates were not chosen among on these rows");
    }
    let strange = selection.rivals().iter().find(|rival| {
        let given = |score: f64| score.is_infinite() || rival.score.can_give(score);
        !given(rival.low) || !given(rival.high) || !rival.between.iter().all(|score| given(*score))
    });
    if let Some(rival) = strange {
        return refuse(format!("the candidate {} has a score that it cannot give", rival.score));
    }
    match wins {
        Some(wins) if wins.len() != selection.rivals().len() || wins.iter().sum::<u64>() != model.n => {
            refuse("its candidates do not decide as many labels as there are rows")
        }
        _ => Ok(()),
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
