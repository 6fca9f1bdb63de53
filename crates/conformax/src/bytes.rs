//! Accumulators as bytes, so that shards, processes and machines can be put together.
//!
//! A frame: `CFMX`, what it holds, its version, the version of the arithmetic, the contents, and a checksum over all of
//! it. Numbers are little-endian; lists begin with their length. The same rows give the same bytes, whatever blocks and
//! merges they came in: what has no order is put in order.

use crate::calibrate::{Calibrator, Remember};
use crate::evaluate::Evaluator;
use crate::fingerprint::{Overlap, RowSample, RowSet, mix_all};
use crate::metrics::Tally;
use crate::threshold_search::{Search, State, ThresholdSearch};
use crate::tune::{SizeCounter, Tuner};
use crate::{
    ARITHMETIC_VERSION, Alpha, DRAW_SCHEME, Draw, Empty, Error, Gamma, Lambda, Masked, Parameters, Penalty,
    Predictor, Result, ScoreSpec, Taxonomy, Thresholds,
};

const MAGIC: &[u8; 4] = b"CFMX";
const VERSION: u32 = 1;

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
    ($($accumulator:ident),+) => {
        $(impl $accumulator<ScoreSpec> {
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
framed!(Calibrator, Tuner, SizeCounter, Evaluator, ThresholdSearch);

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
    });
    to.list(predictor.thresholds().as_slice(), |to, threshold| to.f64(*threshold));
    to.u8(u8::from(predictor.masked() == Masked::Never));
    to.u8(u8::from(predictor.empty() == Empty::TopLabel));
}

fn read_predictor(from: &mut Reader<'_>) -> Result<Predictor<ScoreSpec>> {
    let score = read_spec(from)?;
    let (kind, thresholds) = (from.u8()?, from.scores()?);
    let thresholds = match (kind, &thresholds[..]) {
        (0, [threshold]) => Thresholds::One(*threshold),
        (1, _) => Thresholds::PerLabel(thresholds),
        (2, _) => Thresholds::PerGroup(thresholds),
        _ => return Err(from.fault("their thresholds follow no rule there is")),
    };
    let masked = from.choice(&[Masked::Allowed, Masked::Never])?;
    let empty = from.choice(&[Empty::Allowed, Empty::TopLabel])?;
    Ok(Predictor::new(score, thresholds).with_masked(masked).with_empty(empty))
}

impl Framed for Calibrator<ScoreSpec> {
    const WHAT: &'static str = "those of a calibration";
    const KIND: u32 = 1;

    fn write(&self, to: &mut Writer) {
        write_spec(to, self.score);
        to.u64(self.classes as u64);
        write_policies(to, self.masked, self.remember);
        match &self.taxonomy {
            Taxonomy::All => to.u8(0),
            Taxonomy::Label => to.u8(1),
            Taxonomy::Cluster(clusters) => {
                to.u8(2);
                to.list(clusters, |to, cluster| to.u32(*cluster));
            }
            Taxonomy::Group(count) => {
                to.u8(3);
                to.u64(*count as u64);
            }
        }
        to.list(&self.groups, |to, scores| to.scores(scores));
        write_sample(to, &self.rows);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, classes) = (read_spec(from)?, from.usize()?);
        let (masked, remember) = read_policies(from)?;
        let taxonomy = match from.u8()? {
            0 => Taxonomy::All,
            1 => Taxonomy::Label,
            2 => Taxonomy::Cluster(from.list(Reader::u32)?),
            3 => Taxonomy::Group(from.usize()?),
            _ => return Err(from.fault("their taxonomy is none there is")),
        };
        taxonomy.check(classes)?;
        let groups = from.list(Reader::scores)?;
        if groups.len() != taxonomy.groups(classes) {
            return Err(from.fault("their groups are not those of the taxonomy"));
        }
        let rows = read_sample(from)?;
        let empty = Self::new(score, classes)?.with_masked(masked).remembering(remember);
        Ok(Self { taxonomy, groups, rows, ..empty })
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
        let looked_at = from.u64()?;
        let met = from.list(|from| Ok((from.u64()?, (from.u64()?, from.u64()?))))?.into_iter().collect();
        if tallies.len() != predictors.len() || tallies.windows(2).any(|pair| pair[0].n() != pair[1].n()) {
            return Err(from.fault("their counts do not fit together"));
        }
        let overlap = Overlap { looked_at, met };
        Ok(Self { predictors, classes, model_rows, tallies, overlap, next_row: from.u64()? })
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
