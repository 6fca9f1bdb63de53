//! Accumulators as bytes, so that shards, processes and machines can be put together.
//!
//! A frame: `CFMX`, what it holds, its version, the version of the arithmetic, the contents, and a checksum over all of
//! it. Numbers are little-endian; lists begin with their length. The same rows give the same bytes, whatever blocks and
//! merges they came in: what has no order is put in order.

use std::sync::Arc;

use crate::calibrate::{Calibrator, Gathered, Remember};
use crate::evaluate::{Evaluator, GroupTally};
use crate::fingerprint::{Overlap, RowSample, RowSet, mix_all};
use crate::metrics::Tally;
use crate::select::{PairCounter, Rival, Rivals};
use crate::stream::{Counted, MOST_POINTS, Trace, Waiting};
use crate::threshold_search::{Search, State, ThresholdSearch};
use crate::tune::{SizeCounter, Tuner};
use crate::{
    ARITHMETIC_VERSION, AdaptiveLevel, Alarm, Alpha, Calibration, DRAW_SCHEME, Draw, Empty, Error, Evidence,
    Gamma, Lambda, Loss, LossSteps, Masked, Parameters, Penalty, Predictor, Ranks, Result, Row, Scheme,
    ScoreSpec, SortedScores, Stream, StreamOptions, Taxonomy, Thresholds, TracePoint, WeightRule,
    WeightedScores,
};

const MAGIC: &[u8; 4] = b"CFMX";
const VERSION: u32 = 2;

/// Something that has a form in bytes.
trait Framed: Sized {
    /// What it is, in the words of a message, and in the frame.
    const WHAT: &'static str;
    const KIND: u32;
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Result<Self>;

    fn framed(&self) -> Vec<u8> {
        let mut writer = Writer(MAGIC.to_vec());
        [Self::KIND, VERSION, ARITHMETIC_VERSION].iter().for_each(|word| writer.u32(*word));
        self.write(&mut writer);
        let sum = checksum(&writer.0);
        writer.u64(sum);
        writer.0
    }

    fn unframed(bytes: &[u8]) -> Result<Self> {
        let fault = |what| Error::Bytes { wanted: Self::WHAT, what };
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or(fault("they are too few"))?;
        let mut reader = Reader { bytes: body, wanted: Self::WHAT };
        if reader.take(4)? != MAGIC {
            return Err(fault("they begin with something else"));
        }
        if reader.u32()? != Self::KIND {
            return Err(fault("they hold something else"));
        }
        if reader.u32()? != VERSION {
            return Err(fault("they are of another version"));
        }
        if reader.u32()? != ARITHMETIC_VERSION {
            return Err(fault("their scores were computed with another version of the arithmetic"));
        }
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err(fault("they are damaged"));
        }
        let read = Self::read(&mut reader)?;
        if reader.bytes.is_empty() {
            Ok(read)
        } else {
            Err(fault("there are more of them than there should be"))
        }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    mix_all(bytes.chunks(8).map(word).chain([bytes.len() as u64]))
}

/// Gives an accumulator its public forms.
macro_rules! framed {
    ($($accumulator:ty),+) => {
        $(impl $accumulator {
            /// As bytes that [`from_bytes`](Self::from_bytes) reads: the same for the same rows, whatever their blocks.
            pub fn to_bytes(&self) -> Vec<u8> {
                self.framed()
            }

            /// From the bytes that [`to_bytes`](Self::to_bytes) made, here or elsewhere.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Self::unframed(bytes)
            }
        })+
    };
}
framed!(
    Calibrator<ScoreSpec>,
    Tuner<ScoreSpec>,
    SizeCounter<ScoreSpec>,
    PairCounter<ScoreSpec>,
    Evaluator<ScoreSpec>,
    ThresholdSearch<ScoreSpec>,
    Stream<ScoreSpec>,
    AdaptiveLevel,
    Alarm
);

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<V>(&mut self, values: &[V], each: impl Fn(&mut Self, &V)) {
        self.u64(values.len() as u64);
        values.iter().for_each(|value| each(self, value));
    }

    fn option<V>(&mut self, value: Option<V>, each: impl FnOnce(&mut Self, V)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            each(self, value);
        }
    }

    fn scores(&mut self, scores: &[f64]) {
        let mut sorted = scores.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        self.list(&sorted, |to, score| to.f64(*score));
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    wanted: &'static str,
}

impl<'a> Reader<'a> {
    fn fault(&self, what: &'static str) -> Error {
        Error::Bytes { wanted: self.wanted, what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(self.fault("they end too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.fault("they end too early"))
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn usize(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(|_| self.fault("a number is too large"))
    }

    fn f64(&mut self) -> Result<f64> {
        self.u64().map(f64::from_bits)
    }

    fn text(&mut self) -> Result<&'a str> {
        let len = self.usize()?;
        std::str::from_utf8(self.take(len)?).map_err(|_| self.fault("a name is no text"))
    }

    /// A list whose entries take at least a byte each, so that no length can ask for more memory than there are bytes.
    fn list<V>(&mut self, mut each: impl FnMut(&mut Self) -> Result<V>) -> Result<Vec<V>> {
        let len = self.usize()?;
        if len > self.bytes.len() {
            return Err(self.fault("a list is longer than they are"));
        }
        (0..len).map(|_| each(self)).collect()
    }

    fn option<V>(&mut self, each: impl FnOnce(&mut Self) -> Result<V>) -> Result<Option<V>> {
        match self.u8()? {
            0 => Ok(None),
            1 => each(self).map(Some),
            _ => Err(self.fault("a mark is neither yes nor no")),
        }
    }

    fn choice<V>(&mut self, of: &[V]) -> Result<V>
    where
        V: Copy,
    {
        let index = usize::from(self.u8()?);
        of.get(index).copied().ok_or(self.fault("a choice is not one of those there are"))
    }

    fn scores(&mut self) -> Result<Vec<f64>> {
        let scores = self.list(Self::f64)?;
        match scores.iter().any(|score| score.is_nan()) {
            true => Err(self.fault("a score is not a number")),
            false => Ok(scores),
        }
    }
}

fn write_alpha(to: &mut Writer, alpha: Alpha) {
    to.text(&alpha.to_string());
}

fn read_alpha(from: &mut Reader<'_>) -> Result<Alpha> {
    from.text()?.parse()
}

fn write_spec(to: &mut Writer, spec: ScoreSpec) {
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

fn read_spec(from: &mut Reader<'_>) -> Result<ScoreSpec> {
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

fn write_policies(to: &mut Writer, masked: Masked, remember: Remember) {
    to.u8(u8::from(masked == Masked::Never));
    to.u8(u8::from(remember == Remember::Rows));
}

fn read_policies(from: &mut Reader<'_>) -> Result<(Masked, Remember)> {
    Ok((from.choice(&[Masked::Allowed, Masked::Never])?, from.choice(&[Remember::Nothing, Remember::Rows])?))
}

fn write_sample(to: &mut Writer, rows: &RowSample) {
    let (kept, cut) = rows.clone().settled();
    to.u8(u8::from(cut));
    to.list(&kept, |to, (row, count)| {
        to.u64(*row);
        to.u32(*count);
    });
}

fn read_sample(from: &mut Reader<'_>) -> Result<RowSample> {
    let cut = from.choice(&[false, true])?;
    let kept = from.list(|from| Ok((from.u64()?, from.u32()?)))?;
    RowSample::from_settled(kept, cut).ok_or(from.fault("their rows are not in order"))
}

fn write_row_set(to: &mut Writer, rows: &RowSet) {
    [rows.up_to(), rows.rows(), rows.pairs()].iter().for_each(|word| to.u64(*word));
    to.list(rows.as_slice(), |to, row| to.u64(*row));
}

fn read_row_set(from: &mut Reader<'_>) -> Result<RowSet> {
    let (up_to, rows, pairs) = (from.u64()?, from.u64()?, from.u64()?);
    let once = from.list(Reader::u64)?;
    RowSet::from_parts(once, up_to, rows, pairs).ok_or(from.fault("their rows are not in order"))
}

fn write_predictor(to: &mut Writer, predictor: &Predictor<ScoreSpec>) {
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

fn write_rival(to: &mut Writer, rival: &Rival<ScoreSpec>) {
    write_spec(to, rival.score);
    to.f64(rival.low);
    to.f64(rival.high);
    to.u64(rival.at_low);
    to.u64(rival.at_high);
    to.scores(&rival.between);
}

fn read_rival(from: &mut Reader<'_>) -> Result<Rival<ScoreSpec>> {
    let (score, low, high) = (read_spec(from)?, from.f64()?, from.f64()?);
    let (at_low, at_high, between) = (from.u64()?, from.u64()?, from.scores()?);
    match low <= high && at_low <= at_high && between.is_sorted() {
        true => Ok(Rival { score, low, high, at_low, at_high, between: Arc::from(between) }),
        false => Err(from.fault("their candidates' scores are out of order")),
    }
}

fn write_pairs(to: &mut Writer, pairs: &[(f64, f64)]) {
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable_by(|(a, v), (b, w)| a.total_cmp(b).then(v.total_cmp(w)));
    to.list(&sorted, |to, (score, weight)| {
        to.f64(*score);
        to.f64(*weight);
    });
}

fn read_pairs(from: &mut Reader<'_>) -> Result<Vec<(f64, f64)>> {
    let pairs = from.list(|from| Ok((from.f64()?, from.f64()?)))?;
    match pairs.iter().all(|(score, weight)| !score.is_nan() && (0.0..f64::INFINITY).contains(weight)) {
        true => Ok(pairs),
        false => Err(from.fault("a score or a weight is not a number")),
    }
}

fn write_ranks(to: &mut Writer, ranks: Option<&Ranks>) {
    to.option(ranks, |to, ranks| to.list(ranks.as_slice(), |to, rank| to.u32(*rank)));
}

fn read_ranks(from: &mut Reader<'_>) -> Result<Option<Ranks>> {
    from.option(|from| Ranks::new(from.list(Reader::u32)?))
}

fn write_taxonomy(to: &mut Writer, taxonomy: &Taxonomy) {
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

fn read_taxonomy(from: &mut Reader<'_>) -> Result<Taxonomy> {
    Ok(match from.u8()? {
        0 => Taxonomy::All,
        1 => Taxonomy::Label,
        2 => Taxonomy::Cluster(from.list(|from| from.option(Reader::u32))?),
        3 => Taxonomy::Group(from.usize()?),
        _ => return Err(from.fault("their taxonomy is none there is")),
    })
}

fn write_loss(to: &mut Writer, loss: &Loss) {
    to.u8(u8::from(loss.is_cost()));
    to.u64(loss.classes() as u64);
    to.list(loss.values(), |to, value| to.f64(*value));
}

fn read_loss(from: &mut Reader<'_>) -> Result<Loss> {
    let (is_cost, classes) = (from.choice(&[false, true])?, from.usize()?);
    let values = from.list(Reader::f64)?;
    match is_cost {
        true if classes.checked_mul(classes) == Some(values.len()) => Loss::cost(values, classes),
        false if classes == values.len() => Loss::severity(values),
        _ => Err(from.fault("their losses are not those of the classes")),
    }
}

fn write_scheme(to: &mut Writer, scheme: &Scheme) {
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

fn read_scheme(from: &mut Reader<'_>) -> Result<Scheme> {
    Ok(match from.u8()? {
        0 => Scheme::Groups(read_taxonomy(from)?),
        1 => Scheme::RowWeights,
        2 => Scheme::LabelWeights(from.list(Reader::f64)?),
        3 => Scheme::Risk(read_loss(from)?),
        _ => return Err(from.fault("their thresholds follow no rule there is")),
    })
}

fn read_predictor(from: &mut Reader<'_>) -> Result<Predictor<ScoreSpec>> {
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
        Some(rivals) if rivals.is_empty() => return Err(from.fault("there is no candidate")),
        Some(rivals) => predictor.with_rivals(Rivals::new(rivals)),
        None => predictor,
    })
}

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
    const KIND: u32 = 6;

    fn write(&self, to: &mut Writer) {
        to.list(&self.rivals, write_rival);
        to.list(&self.between, |to, between| to.scores(between));
        to.u64(self.classes as u64);
        write_alpha(to, self.alpha);
        to.u8(u8::from(self.masked == Masked::Never));
        to.u64(self.scored);
        to.u64(self.n);
        write_row_set(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (rivals, between, classes) = (from.list(read_rival)?, from.list(Reader::scores)?, from.usize()?);
        let (alpha, masked) = (read_alpha(from)?, from.choice(&[Masked::Allowed, Masked::Never])?);
        let (scored, n) = (from.u64()?, from.u64()?);
        let rows = read_row_set(from)?;
        let counted = |(rival, between): (&Rival<_>, &Vec<f64>)| {
            rival.between.is_empty() && between.len() as u64 == rival.at_high - rival.at_low
        };
        let all_counted = rivals.len() == between.len() && rivals.iter().zip(&between).all(counted);
        if rivals.is_empty() || n > scored || !all_counted {
            return Err(from.fault("their counts are not those of the candidates"));
        }
        Ok(Self { rivals, between, classes, alpha, masked, scored, n, rows })
    }
}

impl Framed for Evaluator<ScoreSpec> {
    const WHAT: &'static str = "those of an evaluation";
    const KIND: u32 = 4;

    fn write(&self, to: &mut Writer) {
        to.list(&self.predictors, write_predictor);
        to.u64(self.classes as u64);
        to.list(&self.model_rows, write_row_set);
        to.list(&self.tallies, |to, tally| {
            let (sizes, classes) = tally.counts();
            [sizes, classes].iter().for_each(|counts| {
                to.list(counts, |to, (n, covered)| {
                    to.u64(*n);
                    to.u64(*covered);
                });
            });
        });
        to.option(self.taxonomy.as_ref(), write_taxonomy);
        to.list(&self.groups, |to, of_predictor| {
            to.list(of_predictor, |to, group| {
                [group.n, group.covered, group.labels].iter().for_each(|count| to.u64(*count));
            });
        });
        to.option(self.loss.as_ref(), write_loss);
        to.list(&self.losses, |to, loss| {
            to.u64((loss >> 64) as u64);
            to.u64(*loss as u64);
        });
        to.u64(self.overlap.looked_at);
        let met: Vec<_> = self.overlap.met.iter().collect();
        to.list(&met, |to, (name, (count, first))| {
            [**name, *count, *first].iter().for_each(|word| to.u64(*word))
        });
        to.u64(self.next_row);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let predictors = from.list(read_predictor)?;
        let (classes, model_rows) = (from.usize()?, from.list(read_row_set)?);
        let counts = |from: &mut Reader<'_>| from.list(|from| Ok((from.u64()?, from.u64()?)));
        let tallies = from.list(|from| {
            let (sizes, by_class) = (counts(from)?, counts(from)?);
            Tally::from_counts(classes, &sizes, &by_class)
                .ok_or(from.fault("their counts do not fit together"))
        })?;
        let taxonomy = from.option(read_taxonomy)?;
        let groups = from.list(|from| {
            from.list(|from| Ok(GroupTally { n: from.u64()?, covered: from.u64()?, labels: from.u64()? }))
        })?;
        let loss = from.option(read_loss)?;
        let losses = from.list(|from| Ok(u128::from(from.u64()?) << 64 | u128::from(from.u64()?)))?;
        let fits = |count: usize, wanted: bool| count == if wanted { predictors.len() } else { 0 };
        let of_taxonomy = taxonomy.as_ref().map_or(0, |taxonomy| taxonomy.groups(classes));
        if !fits(groups.len(), taxonomy.is_some())
            || !fits(losses.len(), loss.is_some())
            || groups.iter().any(|groups| groups.len() != of_taxonomy)
        {
            return Err(from.fault("their counts do not fit together"));
        }
        let looked_at = from.u64()?;
        let met = from.list(|from| Ok((from.u64()?, (from.u64()?, from.u64()?))))?.into_iter().collect();
        if tallies.len() != predictors.len() || tallies.windows(2).any(|pair| pair[0].n() != pair[1].n()) {
            return Err(from.fault("their counts do not fit together"));
        }
        let overlap = Overlap { looked_at, met };
        let next_row = from.u64()?;
        Ok(Self {
            predictors,
            classes,
            model_rows,
            tallies,
            taxonomy,
            groups,
            loss,
            losses,
            overlap,
            next_row,
        })
    }
}

impl Framed for ThresholdSearch<ScoreSpec> {
    const WHAT: &'static str = "those of a search for thresholds";
    const KIND: u32 = 5;

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

impl Framed for AdaptiveLevel {
    const WHAT: &'static str = "those of a level";
    const KIND: u32 = 8;

    fn write(&self, to: &mut Writer) {
        write_alpha(to, self.target);
        to.f64(self.step);
        to.option(self.decay, Writer::f64);
        to.f64(self.level);
        to.u64(self.rows);
        to.u64(self.misses);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let begun = Self::new(read_alpha(from)?, from.f64()?, from.option(Reader::f64)?)?;
        let (level, rows, misses) = (from.f64()?, from.u64()?, from.u64()?);
        match level.is_finite() && misses <= rows {
            true => Ok(Self { level, rows, misses, ..begun }),
            false => Err(from.fault("their counts do not fit together")),
        }
    }
}

impl Framed for Alarm {
    const WHAT: &'static str = "those of an alarm";
    const KIND: u32 = 9;

    fn write(&self, to: &mut Writer) {
        to.list(&self.seen, |to, seen| {
            to.list(&seen.in_order(), |to, (score, count)| {
                to.f64(*score);
                to.u64(*count);
            });
        });
        to.f64(self.jump);
        to.u64(self.seed);
        to.u64(self.updates);
        self.shares.iter().for_each(|share| to.f64(*share));
        to.f64(self.log_capital);
        to.f64(self.highest);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let seen = from.list(|from| {
            let mut seen = Counted::default();
            let mut total = 0_u64;
            for (score, count) in from.list(|from| Ok((from.f64()?, from.u64()?)))? {
                let sum = total.checked_add(count).filter(|_| count > 0 && !score.is_nan());
                total = sum.ok_or(from.fault("a score is not a number, or none"))?;
                seen.insert_many(score, count);
            }
            Ok(seen)
        })?;
        let begun = Self::by_group([], from.f64()?, from.u64()?)?;
        let updates = from.u64()?;
        let shares = [from.f64()?, from.f64()?, from.f64()?];
        let (log_capital, highest) = (from.f64()?, from.f64()?);
        let held = shares.iter().all(|share| (0.0..=1.0).contains(share));
        match held && log_capital.is_finite() && highest >= log_capital {
            true => Ok(Self { seen, updates, shares, log_capital, highest, ..begun }),
            false => Err(from.fault("their capital is none there can be")),
        }
    }
}

fn write_options(to: &mut Writer, options: StreamOptions) {
    to.f64(options.step);
    to.option(options.decay, Writer::f64);
    to.option(options.window, Writer::u64);
    write_alpha(to, options.delta);
    to.u64(options.seed);
}

fn read_options(from: &mut Reader<'_>) -> Result<StreamOptions> {
    Ok(StreamOptions {
        step: from.f64()?,
        decay: from.option(Reader::f64)?,
        window: from.option(Reader::u64)?,
        delta: read_alpha(from)?,
        seed: from.u64()?,
    })
}

fn write_waiting(to: &mut Writer, (place, waiting): &(&u64, &Waiting)) {
    to.u64(**place);
    to.text(&waiting.id);
    to.f64(waiting.level);
    to.option(waiting.group, Writer::u32);
    to.list(&waiting.row, |to, logit| to.f64(*logit));
}

fn read_waiting(from: &mut Reader<'_>) -> Result<(u64, Waiting)> {
    let (place, id, level) = (from.u64()?, from.text()?.to_owned(), from.f64()?);
    let (group, row) = (from.option(Reader::u32)?, from.list(Reader::f64)?);
    Row::new(&row)?;
    Ok((place, Waiting { id, level, group, row: row.into() }))
}

impl Framed for Stream<ScoreSpec> {
    const WHAT: &'static str = "those of a stream";
    const KIND: u32 = 7;

    fn write(&self, to: &mut Writer) {
        let calibration = self.calibration();
        write_spec(to, *calibration.score());
        to.u64(calibration.classes() as u64);
        to.u8(u8::from(calibration.masked() == Masked::Never));
        write_scheme(to, calibration.scheme());
        write_ranks(to, calibration.ranks());
        to.list(calibration.groups(), |to, scores| to.scores(scores.as_slice()));
        write_options(to, self.options);
        self.level.write(to);
        self.alarm.write(to);
        to.u64(self.stretch);
        to.option(self.raised_at, Writer::u64);
        to.u64(self.predicted);
        to.u64(self.forgotten);
        to.list(&Vec::from_iter(&self.hits), |to, hit| to.u8(u8::from(**hit)));
        to.list(&Vec::from_iter(&self.sizes), |to, size| to.u32(**size));
        to.list(&Vec::from_iter(&self.waiting), write_waiting);
        to.list(&Vec::from_iter(&self.labelled), |to, id| to.text(id));
        to.u64(self.trace.every);
        to.list(&self.trace.points, |to, point| {
            to.u64(point.labelled);
            [point.coverage, point.size, point.level, point.log_capital]
                .iter()
                .for_each(|number| to.f64(*number));
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, classes) = (read_spec(from)?, from.usize()?);
        let masked = from.choice(&[Masked::Allowed, Masked::Never])?;
        let (scheme, ranks) = (read_scheme(from)?, read_ranks(from)?);
        let groups = from.list(|from| SortedScores::of_any(from.scores()?))?;
        let calibration = Calibration::from_evidence(score, classes, scheme, Evidence::Groups(groups))?;
        let calibration = match ranks {
            Some(ranks) => calibration.with_masked(masked).with_ranks(ranks)?,
            None => calibration.with_masked(masked),
        };
        let options = read_options(from)?;
        let (level, alarm) = (AdaptiveLevel::read(from)?, Alarm::read(from)?);
        let begun = Self::new(calibration, level.target(), options)?;
        let (stretch, raised_at) = (from.u64()?, from.option(Reader::u64)?);
        let (predicted, forgotten) = (from.u64()?, from.u64()?);
        let hits = from.list(|from| from.choice(&[false, true]))?.into();
        let sizes = from.list(Reader::u32)?.into();
        let waiting = from.list(read_waiting)?;
        let labelled = from.list(|from| from.text().map(str::to_owned))?.into();
        let every = from.u64()?;
        let points = from.list(|from| {
            let (labelled, coverage, size) = (from.u64()?, from.f64()?, from.f64()?);
            Ok(TracePoint { labelled, coverage, size, level: from.f64()?, log_capital: from.f64()? })
        })?;
        let fits = (level.step, level.decay) == (options.step, options.decay)
            && alarm.seen.len() == begun.calibration().groups().len()
            && waiting.iter().all(|(place, waiting)| waiting.row.len() == classes && *place < predicted)
            && every.is_power_of_two()
            && points.len() <= MOST_POINTS;
        if !fits {
            return Err(from.fault("their counts do not fit together"));
        }
        let (waiting, trace) = (waiting.into_iter().collect(), Trace { every, points });
        let read = Self {
            level,
            alarm,
            stretch,
            raised_at,
            predicted,
            forgotten,
            hits,
            sizes,
            waiting,
            labelled,
            trace,
            ..begun
        };
        Ok(read.derived())
    }
}
