//! What several accumulators are made of.

use std::sync::Arc;

use super::numbers::{Reader, Writer};
use crate::calibrate::Remember;
use crate::contest::{Rival, Rivals};
use crate::fingerprint::{RowSample, RowSet};
use crate::{
    Alpha, DRAW_SCHEME, Draw, Empty, Gamma, Lambda, Loss, Masked, Parameters, Penalty, Predictor, Ranks,
    Result, Scheme, ScoreSpec, Taxonomy, Thresholds, WeightRule, WeightedScores,
};

pub(super) fn write_alpha(to: &mut Writer, alpha: Alpha) {
    to.text(&alpha.to_string());
}

pub(super) fn read_alpha(from: &mut Reader<'_>) -> Result<Alpha> {
    from.text()?.parse()
}

pub(super) fn write_spec(to: &mut Writer, spec: ScoreSpec) {
    let Parameters { gamma, lambda, k_reg, penalty, draw } = spec.parameters();
    to.text(spec.name());
    to.option(gamma, |to, gamma| to.f64(gamma.value()));
    to.option(lambda, |to, lambda| to.f64(lambda.value()));
    to.option(k_reg, |to, k_reg| to.u32(k_reg));
    to.option(penalty, |to, penalty| to.u8(u8::from(penalty == Penalty::Fixed)));
    to.option(draw, |to, draw| match draw {
        Draw::Conservative => to.text(""),
        Draw::Seeded(seed) => {
            to.text(DRAW_SCHEME);
            to.u64(seed);
        }
    });
}

pub(super) fn read_spec(from: &mut Reader<'_>) -> Result<ScoreSpec> {
    let name = from.text()?;
    let parameters = Parameters {
        gamma: from.option(|from| Gamma::new(from.f64()?))?,
        lambda: from.option(|from| Lambda::new(from.f64()?))?,
        k_reg: from.option(Reader::u32)?,
        penalty: from.option(|from| from.choice(&[Penalty::Randomized, Penalty::Fixed]))?,
        draw: from.option(|from| match from.text()? {
            "" => Ok(Draw::Conservative),
            DRAW_SCHEME => Ok(Draw::Seeded(from.u64()?)),
            _ => Err(from.fault("their draws follow another scheme")),
        })?,
    };
    ScoreSpec::named(name, parameters)
}

pub(super) fn write_policies(to: &mut Writer, masked: Masked, remember: Remember) {
    to.u8(u8::from(masked == Masked::Never));
    to.u8(u8::from(remember == Remember::Rows));
}

pub(super) fn read_policies(from: &mut Reader<'_>) -> Result<(Masked, Remember)> {
    Ok((from.choice(&[Masked::Allowed, Masked::Never])?, from.choice(&[Remember::Nothing, Remember::Rows])?))
}

pub(super) fn write_sample(to: &mut Writer, rows: &RowSample) {
    let (kept, cut) = rows.clone().settled();
    to.u8(u8::from(cut));
    to.list(&kept, |to, (row, count)| {
        to.u64(*row);
        to.u32(*count);
    });
}

pub(super) fn read_sample(from: &mut Reader<'_>) -> Result<RowSample> {
    let cut = from.choice(&[false, true])?;
    let kept = from.list(|from| Ok((from.u64()?, from.u32()?)))?;
    RowSample::from_settled(kept, cut).ok_or(from.fault("their rows are not in order"))
}

pub(super) fn write_row_set(to: &mut Writer, rows: &RowSet) {
    [rows.up_to(), rows.rows(), rows.pairs()].iter().for_each(|word| to.u64(*word));
    to.list(rows.as_slice(), |to, row| to.u64(*row));
    to.option(rows.whole(), Writer::u64);
}

pub(super) fn read_row_set(from: &mut Reader<'_>) -> Result<RowSet> {
    let (up_to, rows, pairs) = (from.u64()?, from.u64()?, from.u64()?);
    let (once, whole) = (from.list(Reader::u64)?, from.option(Reader::u64)?);
    let set =
        RowSet::from_parts(once, up_to, rows, pairs).ok_or(from.fault("their rows are not in order"))?;
    Ok(set.with_whole(whole))
}

pub(super) fn write_predictor(to: &mut Writer, predictor: &Predictor<ScoreSpec>) {
    write_spec(to, *predictor.score());
    to.u8(match predictor.thresholds() {
        Thresholds::One(_) => 0,
        Thresholds::PerLabel(_) => 1,
        Thresholds::PerGroup(_) => 2,
        Thresholds::ByWeight(_) => 3,
    });
    to.list(predictor.thresholds().as_slice(), |to, threshold| to.f64(*threshold));
    if let Thresholds::ByWeight(rule) = predictor.thresholds() {
        write_alpha(to, rule.alpha());
        let pairs = rule.scores().scores().iter().copied().zip(rule.scores().weights().iter().copied());
        write_pairs(to, &pairs.collect::<Vec<_>>());
    }
    to.u8(u8::from(predictor.masked() == Masked::Never));
    to.u8(u8::from(predictor.empty() == Empty::TopLabel));
    write_ranks(to, predictor.ranks());
    to.option(predictor.rivals(), |to, rivals| to.list(rivals.as_slice(), write_rival));
}

pub(super) fn write_rival(to: &mut Writer, rival: &Rival<ScoreSpec>) {
    write_spec(to, rival.score);
    to.f64(rival.low);
    to.f64(rival.high);
    to.u64(rival.at_low);
    to.u64(rival.at_high);
    to.scores(&rival.between);
}

pub(super) fn read_rival(from: &mut Reader<'_>) -> Result<Rival<ScoreSpec>> {
    let (score, low, high) = (read_spec(from)?, from.f64()?, from.f64()?);
    let (at_low, at_high, between) = (from.u64()?, from.u64()?, from.scores()?);
    match low <= high && at_low <= at_high && between.is_sorted() {
        true => Ok(Rival::new(score, (low, high), (at_low, at_high), between)),
        false => Err(from.fault("their candidates' scores are out of order")),
    }
}

pub(super) fn write_pairs(to: &mut Writer, pairs: &[(f64, f64)]) {
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable_by(|(a, v), (b, w)| a.total_cmp(b).then(v.total_cmp(w)));
    to.list(&sorted, |to, (score, weight)| {
        to.f64(*score);
        to.f64(*weight);
    });
}

pub(super) fn read_pairs(from: &mut Reader<'_>) -> Result<Vec<(f64, f64)>> {
    let pairs = from.list(|from| Ok((from.f64()?, from.f64()?)))?;
    match pairs.iter().all(|(score, weight)| !score.is_nan() && (0.0..f64::INFINITY).contains(weight)) {
        true => Ok(pairs),
        false => Err(from.fault("a score or a weight is not a number")),
    }
}

pub(super) fn write_ranks(to: &mut Writer, ranks: Option<&Ranks>) {
    to.option(ranks, |to, ranks| to.list(ranks.as_slice(), |to, rank| to.u32(*rank)));
}

pub(super) fn read_ranks(from: &mut Reader<'_>) -> Result<Option<Ranks>> {
    from.option(|from| Ranks::new(from.list(Reader::u32)?))
}

pub(super) fn write_taxonomy(to: &mut Writer, taxonomy: &Taxonomy) {
    match taxonomy {
        Taxonomy::All => to.u8(0),
        Taxonomy::Label => to.u8(1),
        Taxonomy::Cluster(clusters) => {
            to.u8(2);
            to.list(clusters, |to, cluster| to.option(*cluster, Writer::u32));
        }
        Taxonomy::Group(count) => {
            to.u8(3);
            to.u64(*count as u64);
        }
    }
}

pub(super) fn read_taxonomy(from: &mut Reader<'_>) -> Result<Taxonomy> {
    Ok(match from.u8()? {
        0 => Taxonomy::All,
        1 => Taxonomy::Label,
        2 => Taxonomy::Cluster(from.list(|from| from.option(Reader::u32))?),
        3 => Taxonomy::Group(from.usize()?),
        _ => return Err(from.fault("their taxonomy is none there is")),
    })
}

pub(super) fn write_loss(to: &mut Writer, loss: &Loss) {
    to.u8(u8::from(loss.is_cost()));
    to.u64(loss.classes() as u64);
    to.list(loss.values(), |to, value| to.f64(*value));
}

pub(super) fn read_loss(from: &mut Reader<'_>) -> Result<Loss> {
    let (is_cost, classes) = (from.choice(&[false, true])?, from.usize()?);
    let values = from.list(Reader::f64)?;
    match is_cost {
        true if classes.checked_mul(classes) == Some(values.len()) => Loss::cost(values, classes),
        false if classes == values.len() => Loss::severity(values),
        _ => Err(from.fault("their losses are not those of the classes")),
    }
}

pub(super) fn write_scheme(to: &mut Writer, scheme: &Scheme) {
    match scheme {
        Scheme::Groups(taxonomy) => {
            to.u8(0);
            write_taxonomy(to, taxonomy);
        }
        Scheme::RowWeights => to.u8(1),
        Scheme::LabelWeights(weights) => {
            to.u8(2);
            to.list(weights, |to, weight| to.f64(*weight));
        }
        Scheme::Risk(loss) => {
            to.u8(3);
            write_loss(to, loss);
        }
    }
}

pub(super) fn read_scheme(from: &mut Reader<'_>) -> Result<Scheme> {
    Ok(match from.u8()? {
        0 => Scheme::Groups(read_taxonomy(from)?),
        1 => Scheme::RowWeights,
        2 => Scheme::LabelWeights(from.list(Reader::f64)?),
        3 => Scheme::Risk(read_loss(from)?),
        _ => return Err(from.fault("their thresholds follow no rule there is")),
    })
}

pub(super) fn read_predictor(from: &mut Reader<'_>) -> Result<Predictor<ScoreSpec>> {
    let score = read_spec(from)?;
    let (kind, thresholds) = (from.u8()?, from.scores()?);
    let thresholds = match (kind, &thresholds[..]) {
        (0, [threshold]) => Thresholds::One(*threshold),
        (1, _) => Thresholds::PerLabel(thresholds),
        (2, _) => Thresholds::PerGroup(thresholds),
        (3, []) => {
            let alpha = read_alpha(from)?;
            Thresholds::ByWeight(WeightRule::new(alpha, Arc::new(WeightedScores::new(read_pairs(from)?)?)))
        }
        _ => return Err(from.fault("their thresholds follow no rule there is")),
    };
    let masked = from.choice(&[Masked::Allowed, Masked::Never])?;
    let empty = from.choice(&[Empty::Allowed, Empty::TopLabel])?;
    let predictor = Predictor::new(score, thresholds).with_masked(masked).with_empty(empty);
    let predictor = match read_ranks(from)? {
        Some(ranks) => predictor.with_ranks(ranks),
        None => predictor,
    };
    Ok(match from.option(|from| from.list(read_rival))? {
        Some(rivals) => predictor.with_rivals(Rivals::new(rivals)?),
        None => predictor,
    })
}
