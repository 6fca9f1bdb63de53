//! What calibrates, tunes and chooses.

use super::Framed;
use super::numbers::{Reader, Writer};
use super::parts::{
    read_alpha, read_pairs, read_policies, read_predictor, read_ranks, read_rival, read_row_set, read_sample,
    read_scheme, read_spec, write_alpha, write_pairs, write_policies, write_predictor, write_ranks,
    write_rival, write_row_set, write_sample, write_scheme, write_spec,
};
use crate::calibrate::Calibrator;
use crate::contest::Rival;
use crate::deal::{Choose, Dealer, Entry, in_order};
use crate::scheme::Gathered;
use crate::select::{AtTruth, PairCounter};
use crate::threshold_search::{Search, State, ThresholdSearch};
use crate::tune::{SizeCounter, Tuner};
use crate::{LossSteps, Masked, Predictor, Result, Scheme, ScoreSpec, Thresholds};

impl Framed for Calibrator<ScoreSpec> {
    const WHAT: &'static str = "those of a calibration";
    const KIND: u32 = 1;

    fn write(&self, to: &mut Writer) {
        write_spec(to, self.score);
        to.u64(self.classes as u64);
        write_policies(to, self.masked, self.remember);
        write_scheme(to, &self.scheme);
        write_ranks(to, self.ranks.as_ref());
        match &self.gathered {
            Gathered::Groups(groups) => to.list(groups, |to, scores| to.scores(scores)),
            Gathered::Weighted(pairs) => write_pairs(to, pairs),
            Gathered::Steps(steps) => {
                to.u64(steps.n);
                to.u64((steps.start >> 64) as u64);
                to.u64(steps.start as u64);
                let mut sorted = steps.clone();
                sorted.sort();
                to.list(sorted.steps(), |to, (score, fall)| {
                    to.f64(*score);
                    to.u64(*fall);
                });
            }
        }
        write_sample(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, classes) = (read_spec(from)?, from.usize()?);
        let (masked, remember) = read_policies(from)?;
        let (scheme, ranks) = (read_scheme(from)?, read_ranks(from)?);
        scheme.check(classes)?;
        let gathered = match &scheme {
            Scheme::Groups(taxonomy) => {
                let groups = from.list(Reader::scores)?;
                if groups.len() != taxonomy.groups(classes) {
                    return Err(from.fault("their groups are not those of the taxonomy"));
                }
                Gathered::Groups(groups)
            }
            Scheme::RowWeights | Scheme::LabelWeights(_) => Gathered::Weighted(read_pairs(from)?),
            Scheme::Risk(_) => {
                let (n, high, low) = (from.u64()?, from.u64()?, from.u64()?);
                let start = u128::from(high) << 64 | u128::from(low);
                let steps = from.list(|from| Ok((from.f64()?, from.u64()?)))?;
                Gathered::Steps(if n == 0 {
                    LossSteps::default()
                } else {
                    LossSteps::from_parts(n, start, steps)?
                })
            }
        };
        let rows = read_sample(from)?;
        let empty = Self::new(score, classes)?.with_masked(masked).remembering(remember);
        let empty = match ranks {
            Some(ranks) => empty.with_ranks(ranks)?,
            None => empty,
        };
        Ok(Self { scheme, gathered, rows, ..empty })
    }
}

impl Framed for Tuner<ScoreSpec> {
    const WHAT: &'static str = "those of a tuning";
    const KIND: u32 = 2;

    fn write(&self, to: &mut Writer) {
        to.list(&self.grid, |to, score| write_spec(to, *score));
        to.u64(self.classes as u64);
        write_alpha(to, self.alpha);
        write_policies(to, self.masked, self.remember);
        to.list(&self.scores, |to, scores| to.scores(scores));
        write_sample(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (grid, classes) = (from.list(read_spec)?, from.usize()?);
        let alpha = read_alpha(from)?;
        let (masked, remember) = read_policies(from)?;
        let scores = from.list(Reader::scores)?;
        let rows = read_sample(from)?;
        if scores.len() != grid.len() || scores.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(from.fault("their candidates have not scored the same rows"));
        }
        let empty = Self::new(grid, classes, alpha)?.with_masked(masked).remembering(remember);
        Ok(Self { scores, rows, ..empty })
    }
}

impl Framed for SizeCounter<ScoreSpec> {
    const WHAT: &'static str = "those of a count of sizes";
    const KIND: u32 = 3;
    const VERSION: u32 = 3;

    fn write(&self, to: &mut Writer) {
        to.list(&self.predictors, write_predictor);
        to.u64(self.classes as u64);
        to.list(&self.totals, |to, total| to.u64(*total));
        to.u64(self.n);
        write_row_set(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let predictors = from.list(read_predictor)?;
        let (classes, totals, n) = (from.usize()?, from.list(Reader::u64)?, from.u64()?);
        let rows = read_row_set(from)?;
        let one = |predictor: &Predictor<_>| matches!(predictor.thresholds(), Thresholds::One(_));
        if totals.len() != predictors.len() || !predictors.iter().all(one) {
            return Err(from.fault("their totals are not those of the candidates"));
        }
        Ok(Self { predictors, classes, totals, n, rows })
    }
}

impl Framed for PairCounter<ScoreSpec> {
    const WHAT: &'static str = "those of a selection";
    // Of 6 and 10 there are forms that are read no more.
    const KIND: u32 = 11;

    fn write(&self, to: &mut Writer) {
        to.list(&self.rivals, write_rival);
        to.list(&self.between, |to, between| to.scores(between));
        // Row by row, in an order that does not depend on the one in which rows came.
        let of_row = |row: usize| self.at_truth.iter().map(move |of_rows| of_rows[row]);
        let mut order: Vec<usize> = (0..self.n as usize).collect();
        order.sort_unstable_by(|a, b| of_row(*a).cmp(of_row(*b)));
        to.u64((order.len() * self.rivals.len()) as u64);
        order.into_iter().flat_map(of_row).for_each(|at_truth| to.u32(at_truth.0));
        to.u64(self.classes as u64);
        write_alpha(to, self.alpha);
        to.u8(u8::from(self.masked == Masked::Never));
        to.u64(self.scored);
        to.u64(self.n);
        write_row_set(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (rivals, between) = (from.list(read_rival)?, from.list(Reader::scores)?);
        let (at_truth, classes) = (from.list(|from| Ok(AtTruth(from.u32()?)))?, from.usize()?);
        let (alpha, masked) = (read_alpha(from)?, from.choice(&[Masked::Allowed, Masked::Never])?);
        let (scored, n) = (from.u64()?, from.u64()?);
        let rows = read_row_set(from)?;
        let counted = |(rival, between): (&Rival<_>, &Vec<f64>)| {
            rival.between.is_empty() && between.len() as u64 == rival.at_high - rival.at_low
        };
        let all_counted = rivals.len() == between.len() && rivals.iter().zip(&between).all(counted);
        let all_counted = all_counted && n.checked_mul(rivals.len() as u64) == Some(at_truth.len() as u64);
        if rivals.is_empty() || n > scored || !all_counted {
            return Err(from.fault("their counts are not those of the candidates"));
        }
        let of_candidate = |place| at_truth.iter().skip(place).step_by(rivals.len()).copied().collect();
        let at_truth = (0..rivals.len()).map(of_candidate).collect();
        Ok(Self { rivals, between, at_truth, classes, alpha, masked, scored, n, rows })
    }
}

impl Framed for Dealer<ScoreSpec> {
    const WHAT: &'static str = "those of rows to be dealt out";
    // Of 12 there is a form that is read no more.
    const KIND: u32 = 13;

    fn write(&self, to: &mut Writer) {
        write_spec(to, self.score);
        to.u8(u8::from(self.masked == Masked::Never));
        match self.choose {
            Choose::Clusters(count) => {
                to.u8(0);
                to.option(count, |to, count| to.u64(count as u64));
            }
            Choose::Ranks => to.u8(1),
        }
        to.u64(self.seed);
        let ranked = self.choose == Choose::Ranks;
        to.list(&self.rows, |to, rows| {
            let mut rows = rows.clone();
            in_order(&mut rows);
            to.list(&rows, |to, row| {
                to.u64(row.fingerprint);
                to.f64(row.score);
                if ranked {
                    to.u32(row.rank);
                }
            });
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, masked) = (read_spec(from)?, from.choice(&[Masked::Allowed, Masked::Never])?);
        let choose = match from.u8()? {
            0 => Choose::Clusters(from.option(Reader::usize)?),
            1 => Choose::Ranks,
            _ => return Err(from.fault("they choose nothing there is to choose")),
        };
        let (seed, ranked) = (from.u64()?, choose == Choose::Ranks);
        let rows = from.list(|from| {
            from.list(|from| {
                let (fingerprint, score) = (from.u64()?, from.f64()?);
                let rank = if ranked { from.u32()? } else { 0 };
                Ok(Entry { fingerprint, score, rank })
            })
        })?;
        let ranks = if ranked { 1..=rows.len() as u32 } else { 0..=0 };
        if !rows.iter().flatten().all(|row| !{ row.score }.is_nan() && ranks.contains(&{ row.rank })) {
            return Err(from.fault("a score is not a number, or a rank none there is"));
        }
        let empty = Self::new(score, rows.len(), choose)?.with_masked(masked).with_seed(seed);
        Ok(Self { rows, ..empty })
    }
}

impl Framed for ThresholdSearch<ScoreSpec> {
    const WHAT: &'static str = "those of a search for thresholds";
    const KIND: u32 = 5;
    const VERSION: u32 = 3;

    fn write(&self, to: &mut Writer) {
        write_spec(to, self.score);
        to.u64(self.classes as u64);
        write_policies(to, self.masked, self.remember);
        to.list(&self.searches, |to, search| {
            write_alpha(to, search.alpha);
            to.u64(search.prefix);
            to.u32(search.known);
            to.option(search.rank, Writer::u64);
            match &search.state {
                State::Counting(counts) => {
                    to.u8(0);
                    let there: Vec<(u64, u64)> = (0..)
                        .zip(counts)
                        .filter(|(_, count)| **count > 0)
                        .map(|(at, count)| (at, *count))
                        .collect();
                    to.list(&there, |to, (at, count)| {
                        to.u64(*at);
                        to.u64(*count);
                    });
                }
                State::Keeping(scores) => {
                    to.u8(1);
                    to.scores(scores);
                }
                State::Found(threshold) => {
                    to.u8(2);
                    to.f64(*threshold);
                }
            }
        });
        to.u64(self.n);
        to.option(self.wanted_n, Writer::u64);
        to.u64(self.infinite);
        write_sample(to, &self.rows);
        write_row_set(to, &self.row_set);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, classes) = (read_spec(from)?, from.usize()?);
        let (masked, remember) = read_policies(from)?;
        let searches = from.list(|from| {
            let (alpha, prefix, known) = (read_alpha(from)?, from.u64()?, from.u32()?);
            let rank = from.option(Reader::u64)?;
            if known > 64 || known % 16 != 0 {
                return Err(from.fault("a pass looks at bits there are not"));
            }
            let state = match from.u8()? {
                0 => {
                    let mut counts = vec![0; 1 << 16];
                    for (at, count) in from.list(|from| Ok((from.usize()?, from.u64()?)))? {
                        *counts.get_mut(at).ok_or(from.fault("a count is of bits there are not"))? = count;
                    }
                    State::Counting(counts)
                }
                1 => State::Keeping(from.scores()?),
                2 => State::Found(from.f64()?),
                _ => return Err(from.fault("a search is in no state there is")),
            };
            if known == 64 && !matches!(state, State::Found(_)) {
                return Err(from.fault("a pass looks at bits there are not"));
            }
            Ok(Search { alpha, prefix, known, rank, state })
        })?;
        let (n, wanted_n, infinite) = (from.u64()?, from.option(Reader::u64)?, from.u64()?);
        let (rows, row_set) = (read_sample(from)?, read_row_set(from)?);
        let empty = Self::new(score, classes, &[])?.with_masked(masked).remembering(remember);
        Ok(Self { searches, n, wanted_n, infinite, rows, row_set, ..empty })
    }
}
