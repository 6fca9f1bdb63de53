//! The calibration file's own types, apart from the core's: renaming a field there breaks a build, not a file.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conformax::{
    ARITHMETIC_VERSION, Alpha, DataFingerprint, Evidence, Level, Masked, Prior, Promise, ROW_HASH, Ranks,
    RowSet, Scheme, Taxonomy, Thresholds, WeightRule,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{KeptLevel, Model};
use crate::calibration::model::wire::choice::{SelectionEntry, TuningEntry};
use crate::calibration::model::wire::rule::{EvidenceEntry, Rule};
use crate::calibration::model::wire::score::Score;
use crate::{ClassNames, Input, Problem};

mod choice;
mod rule;
mod score;

const FORMAT: &str = "conformax-calibration";
const VERSION: u32 = 2;
/// The oldest version that is read.
const OLDEST: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    format: String,
    version: u32,
    arithmetic: u32,
    score: Score,
    masked: MaskedName,
    #[serde(default)]
    input: InputName,
    classes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    class_names: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior: Option<Vec<f64>>,
    n: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest_ranks: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    /// For people; what is promised follows from the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    promise: Option<String>,
    levels: Vec<LevelEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<EvidenceEntry>,
    row_hash: String,
    calibrating_rows: RowsEntry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choosing_rows: Option<RowsEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<TuningEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selection: Option<SelectionEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "snake_case")]
enum InputName {
    #[default]
    Logits,
    Probabilities,
    LogProbabilities,
}

/// Rows as the second version keeps them, or all of them as the first did.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RowsEntry {
    Once {
        once: String,
        up_to: String,
        rows: u64,
        pairs: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<String>,
    },
    All(String),
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum MaskedName {
    Allowed,
    Never,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelEntry {
    alpha: f64,
    /// Of the one threshold that all rows share.
    rank: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<Wide>,
    /// One per group, cluster or label; none where they go by the weight of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thresholds: Option<Vec<Wide>>,
    /// Calibration rows of each group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<Vec<u64>>,
}

/// A number that may be infinite; JSON has no infinities, so they are strings.
struct Wide(f64);

impl Serialize for Wide {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            f64::INFINITY => serializer.serialize_str("inf"),
            f64::NEG_INFINITY => serializer.serialize_str("-inf"),
            finite => serializer.serialize_f64(finite),
        }
    }
}

impl<'de> Deserialize<'de> for Wide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) if text == "inf" => Ok(Self(f64::INFINITY)),
            Either::Text(text) if text == "-inf" => Ok(Self(f64::NEG_INFINITY)),
            Either::Text(text) => Err(serde::de::Error::custom(format!("`{text}` is not a number"))),
        }
    }
}

/// Says what a file is before its fields are held to this version's.
fn check_version(text: &str) -> Result<(), Problem> {
    #[derive(Deserialize)]
    struct Start {
        format: String,
        version: u32,
        arithmetic: u32,
    }
    let start: Start =
        serde_json::from_str(text).map_err(|error| Problem::Model(format!("it is damaged: {error}")))?;
    if start.format != FORMAT {
        return Err(Problem::Model(format!("its format is `{}`, not `{FORMAT}`", start.format)));
    }
    if !(OLDEST..=VERSION).contains(&start.version) {
        let version = start.version;
        return Err(Problem::Model(format!(
            "its version is {version}, this program reads versions {OLDEST} to {VERSION}"
        )));
    }
    if start.arithmetic != ARITHMETIC_VERSION {
        return Err(Problem::Model(format!(
            "its scores were computed with arithmetic version {}, this program has version {ARITHMETIC_VERSION}; \
             calibrate again",
            start.arithmetic
        )));
    }
    Ok(())
}

impl File {
    /// The file as text, with its checksum.
    /// Writes the text with its checksum. The scores make it long, so it is nowhere as a whole.
    pub(super) fn write_to(mut self, to: &mut impl Write) -> Result<(), Problem> {
        self.checksum = None;
        self.checksum = Some(self.sum()?);
        let mut to = BufWriter::new(to);
        self.write_plain(&mut to)?;
        Ok(to.flush()?)
    }

    fn write_plain(&self, to: &mut impl Write) -> Result<(), Problem> {
        serde_json::to_writer_pretty(&mut *to, self).map_err(|error| match error.is_io() {
            true => Problem::Io(error.into()),
            false => Problem::Model(error.to_string()),
        })?;
        Ok(to.write_all(b"\n")?)
    }

    /// The checksum of the text as it stands.
    fn sum(&self) -> Result<String, Problem> {
        let mut sum = Checksum::default();
        self.write_plain(&mut sum)?;
        Ok(sum.finish())
    }

    /// Reads the text of any version. The checksum is over the contents, whatever the white space.
    pub(super) fn from_text(text: &str) -> Result<Self, Problem> {
        check_version(text)?;
        let damaged = |error: serde_json::Error| Problem::Model(format!("it is damaged: {error}"));
        let mut file: Self = serde_json::from_str(text).map_err(damaged)?;
        if file.version == OLDEST && file.is_of_second_version() {
            return refuse("it says version 1 and has fields of version 2: it was edited; calibrate again");
        }
        match file.checksum.take() {
            Some(sum) if sum != file.sum()? => refuse(
                "its contents do not match its checksum: it was damaged or edited since it was written; calibrate again",
            ),
            None if file.version > OLDEST => refuse("its checksum is missing"),
            _ => Ok(file),
        }
    }

    /// Whether it has what the first version had not, and with it a checksum to be held to.
    fn is_of_second_version(&self) -> bool {
        let tuned = self.tuning.as_ref().map(|tuning| &tuning.rows);
        let mut rows = [Some(&self.calibrating_rows), tuned].into_iter().flatten();
        let counted = rows.any(|rows| matches!(rows, RowsEntry::Once { .. }));
        counted
            || self.selection.is_some()
            || self.checksum.is_some()
            || !matches!(self.input, InputName::Logits)
    }

    pub(super) fn from_model(model: &Model) -> Result<Self, Problem> {
        let levels = model.levels.iter().map(|level| {
            Ok(LevelEntry {
                alpha: decimal(level.alpha())?,
                rank: level.ranked_level().and_then(Level::rank),
                threshold: level.threshold().map(Wide),
                thresholds: match &level.thresholds {
                    Thresholds::PerLabel(thresholds) | Thresholds::PerGroup(thresholds) => {
                        Some(thresholds.iter().map(|threshold| Wide(*threshold)).collect())
                    }
                    Thresholds::One(_) | Thresholds::ByWeight(_) => None,
                },
                n: match &level.promise {
                    Promise::Groups { levels, .. } => Some(levels.iter().map(|level| level.n()).collect()),
                    _ => None,
                },
            })
        });
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            arithmetic: ARITHMETIC_VERSION,
            score: Score::of(model.score),
            masked: match model.masked {
                Masked::Allowed => MaskedName::Allowed,
                Masked::Never => MaskedName::Never,
            },
            input: match model.input {
                Input::Logits => InputName::Logits,
                Input::Probabilities => InputName::Probabilities,
                Input::LogProbabilities => InputName::LogProbabilities,
            },
            classes: model.classes,
            class_names: model.names.as_ref().map(|names| names.as_slice().to_vec()),
            prior: model.prior.as_ref().map(|prior| prior.as_slice().to_vec()),
            n: model.n,
            rule: Rule::of(&model.scheme, &model.beside),
            largest_ranks: model.ranks.as_ref().map(|ranks| ranks.as_slice().to_vec()),
            delta: model.delta.map(decimal).transpose()?,
            promise: Some(model.promise()),
            levels: levels.collect::<Result<_, Problem>>()?,
            scores: model.evidence.as_ref().map(EvidenceEntry::of).transpose()?,
            row_hash: ROW_HASH.to_owned(),
            calibrating_rows: RowsEntry::of(&model.calibrating_rows),
            choosing_rows: model.choosing_rows.as_ref().map(RowsEntry::of),
            tuning: model.tuning.as_ref().map(TuningEntry::of).transpose()?,
            selection: model.selection.as_ref().map(SelectionEntry::of),
            checksum: None,
        })
    }

    pub(super) fn into_model(self) -> Result<Model, Problem> {
        if self.row_hash != ROW_HASH {
            return refuse(format!("its row hash is `{}`, this program knows `{ROW_HASH}`", self.row_hash));
        }
        if self.version == OLDEST && self.score.is_saps_without_draw() {
            return refuse(
                "it took SAPS without a draw at U = 0, where its score is smallest, not largest; calibrate again",
            );
        }
        let n = self.n;
        let delta = self.delta.map(alpha).transpose()?;
        let (scheme, beside) = self.rule.map_or_else(|| Ok(Default::default()), Rule::into_scheme)?;
        let evidence = self.scores.map(|scores| scores.into_evidence(&scheme)).transpose()?;
        let levels =
            self.levels.into_iter().map(|entry| entry.into_level(n, delta, &scheme, evidence.as_ref()));
        let mut levels = levels.collect::<Result<Vec<KeptLevel>, Problem>>()?;
        if self.selection.is_some() {
            levels.iter_mut().for_each(KeptLevel::without_law);
        }
        let masked = match self.masked {
            MaskedName::Allowed => Masked::Allowed,
            MaskedName::Never => Masked::Never,
        };
        let calibrating_rows = self.calibrating_rows.into_set("calibrating_rows")?;
        let selection = self.selection.map(|entry| {
            let alpha = levels.first().map(KeptLevel::alpha);
            entry.into_record(self.classes, alpha, (n, calibrating_rows.clone()), masked)
        });
        let damaged = |error: conformax::Error| Problem::Model(error.to_string());
        Ok(Model {
            score: self.score.into_spec()?,
            masked,
            input: match self.input {
                InputName::Logits => Input::Logits,
                InputName::Probabilities => Input::Probabilities,
                InputName::LogProbabilities => Input::LogProbabilities,
            },
            classes: self.classes,
            names: self.class_names.map(ClassNames::new).transpose()?,
            prior: self.prior.map(Prior::new).transpose().map_err(damaged)?,
            n,
            scheme,
            beside,
            ranks: self.largest_ranks.map(Ranks::new).transpose().map_err(damaged)?,
            delta,
            levels,
            evidence,
            calibrating_rows,
            choosing_rows: self.choosing_rows.map(|rows| rows.into_set("choosing_rows")).transpose()?,
            tuning: self.tuning.map(TuningEntry::into_record).transpose()?,
            selection: selection.transpose()?,
        })
    }
}

impl KeptLevel {
    /// Of a choice that all rows had a say in: coverage is promised, and follows no law.
    fn without_law(&mut self) {
        if let Promise::Marginal(level) = self.promise {
            self.promise = Promise::Selected(level);
        }
    }
}

impl LevelEntry {
    fn into_level(
        self,
        n: u64,
        delta: Option<Alpha>,
        scheme: &Scheme,
        evidence: Option<&Evidence>,
    ) -> Result<KeptLevel, Problem> {
        let alpha = alpha(self.alpha)?;
        let level = |n: u64| match delta {
            Some(delta) => Level::new(n, alpha).with_delta(delta),
            None => Level::new(n, alpha),
        };
        let many = |thresholds: Vec<Wide>| thresholds.into_iter().map(|Wide(q)| q).collect::<Vec<f64>>();
        let (promise, thresholds) = match (scheme, self.threshold, self.thresholds) {
            (Scheme::Groups(Taxonomy::All), Some(Wide(threshold)), None) => {
                let level = level(n);
                if level.rank() != self.rank {
                    let [got, wanted] = [self.rank, level.rank()]
                        .map(|rank| rank.map_or("none".to_owned(), |rank| rank.to_string()));
                    return refuse(format!("alpha {alpha} has rank {got}; {n} rows give {wanted}"));
                }
                (Promise::Marginal(level), Thresholds::One(threshold))
            }
            (Scheme::Groups(taxonomy), None, Some(thresholds)) => {
                let levels = self.n.unwrap_or_default().into_iter().map(level).collect();
                let thresholds = match taxonomy {
                    Taxonomy::Group(_) => Thresholds::PerGroup(many(thresholds)),
                    _ => Thresholds::PerLabel(many(thresholds)),
                };
                (Promise::Groups { alpha, levels }, thresholds)
            }
            (Scheme::LabelWeights(_), None, Some(thresholds)) => {
                (Promise::Weighted { alpha, n }, Thresholds::PerLabel(many(thresholds)))
            }
            (Scheme::RowWeights, None, None) => match evidence {
                Some(Evidence::Weighted(scores)) => {
                    let rule = WeightRule::new(alpha, Arc::clone(scores));
                    (Promise::Weighted { alpha, n }, Thresholds::ByWeight(rule))
                }
                _ => return refuse("thresholds by weight need the scores, which it lacks"),
            },
            (Scheme::Risk(_), Some(Wide(threshold)), None) => {
                (Promise::Risk { alpha, n }, Thresholds::One(threshold))
            }
            _ => return refuse(format!("alpha {alpha} has other thresholds than its rule gives")),
        };
        Ok(KeptLevel { promise, thresholds })
    }
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Model(what.into()))
}

fn alpha(value: f64) -> Result<Alpha, Problem> {
    Alpha::new(value).map_err(|error| Problem::Model(error.to_string()))
}

/// A level as a JSON number; one with more digits than a double tells apart would come back as another level.
fn decimal(level: Alpha) -> Result<f64, Problem> {
    let value = level.value();
    match alpha(value)? == level {
        true => Ok(value),
        false => refuse(format!("alpha {level} has more digits than a file can hold")),
    }
}

fn encode(numbers: impl ExactSizeIterator<Item = u64>) -> String {
    /// Three bytes become four letters, so pieces of whole threes follow one another without a seam.
    const PIECE: usize = 3 * 8 * 1024;
    let mut text = String::with_capacity((8 * numbers.len()).div_ceil(3) * 4);
    let mut bytes = Vec::with_capacity(PIECE);
    for number in numbers {
        bytes.extend(number.to_le_bytes());
        if bytes.len() == PIECE {
            STANDARD.encode_string(&bytes, &mut text);
            bytes.clear();
        }
    }
    STANDARD.encode_string(&bytes, &mut text);
    text
}

fn decode_words(text: &str) -> Result<Vec<u64>, Problem> {
    let bytes =
        STANDARD.decode(text).map_err(|error| Problem::Model(format!("its scores are damaged: {error}")))?;
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return refuse("its scores are damaged: their bytes are no whole number of doubles");
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn decode(text: &str) -> Result<Vec<f64>, Problem> {
    let scores: Vec<f64> = decode_words(text)?.into_iter().map(f64::from_bits).collect();
    // Negative zero is no score, and it would sort below zero while being equal to it.
    if scores.iter().any(|score| score.is_nan() || score.to_bits() == (-0.0_f64).to_bits()) {
        return refuse("its scores are damaged: one is not a number, or is minus zero");
    }
    if !scores.is_sorted() {
        return refuse("its scores are damaged: they are not in ascending order");
    }
    Ok(scores)
}

impl RowsEntry {
    fn of(rows: &RowSet) -> Self {
        let word = |word: u64| format!("{word:016x}");
        Self::Once {
            once: encode(rows.as_slice().iter().copied()),
            up_to: word(rows.up_to()),
            rows: rows.rows(),
            pairs: rows.pairs(),
            whole: rows.whole().map(word),
        }
    }

    fn into_set(self, field: &str) -> Result<RowSet, Problem> {
        let read = |text: &str| -> Option<Vec<u64>> {
            let bytes = STANDARD.decode(text).ok()?;
            let (rows, rest) = bytes.as_chunks::<8>();
            rest.is_empty().then(|| rows.iter().map(|row| u64::from_le_bytes(*row)).collect())
        };
        let set = match &self {
            Self::Once { once, up_to, rows, pairs, whole } => {
                let word = |text: &String| u64::from_str_radix(text, 16);
                let set = read(once).zip(word(up_to).ok());
                let set = set.and_then(|(once, up_to)| RowSet::from_parts(once, up_to, *rows, *pairs));
                set.zip(whole.as_ref().map(word).transpose().ok()).map(|(set, whole)| set.with_whole(whole))
            }
            // The first version does not say which rows were repeated.
            Self::All(all) => read(all).and_then(|all| {
                let rows = all.len() as u64;
                RowSet::from_parts(all, u64::MAX, rows, 0)
            }),
        };
        set.ok_or_else(|| Problem::Model(format!("its `{field}` are damaged")))
    }
}

/// A number over what is written to it: eight bytes at a time, with zeros behind the last, and then their number.
#[derive(Default)]
struct Checksum {
    sum: DataFingerprint,
    /// The bytes of an unfinished word come first.
    word: [u8; 8],
    bytes: u64,
}

impl Checksum {
    /// In hexadecimal.
    fn finish(mut self) -> String {
        let unfinished = (self.bytes % 8) as usize;
        if unfinished > 0 {
            self.word[unfinished..].fill(0);
            self.sum.extend(&[u64::from_le_bytes(self.word)]);
        }
        self.sum.extend(&[self.bytes]);
        self.sum.to_string()
    }
}

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let held = (self.bytes % 8) as usize;
        let (first, rest) = bytes.split_at(bytes.len().min((8 - held) % 8));
        self.word[held..held + first.len()].copy_from_slice(first);
        if !first.is_empty() && held + first.len() == 8 {
            self.sum.extend(&[u64::from_le_bytes(self.word)]);
        }
        // Nothing is left where the first word is not finished.
        let (words, last) = rest.as_chunks::<8>();
        words.iter().for_each(|word| self.sum.extend(&[u64::from_le_bytes(*word)]));
        self.word[..last.len()].copy_from_slice(last);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it comes, a text has one checksum: that of `docs/calibration-file.md`, plainly computed.
    #[test]
    fn a_checksum_does_not_depend_on_the_pieces() {
        for len in (0..40).chain([1000]) {
            let text: Vec<u8> = (0..len).map(|place| (place * 37 % 251) as u8).collect();
            let words = text
                .chunks(8)
                .map(|chunk| chunk.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte)));
            let mut plain = DataFingerprint::default();
            plain.extend(&words.chain([len as u64]).collect::<Vec<u64>>());
            for piece in 1..=17 {
                let mut sum = Checksum::default();
                text.chunks(piece).for_each(|piece| sum.write_all(piece).unwrap());
                assert_eq!(sum.finish(), plain.to_string(), "{len} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn numbers_in_pieces_are_those_at_once() {
        for count in [0, 1, 2, 3, 3071, 3072, 3073, 10_000] {
            let numbers = (0..count).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bytes: Vec<u8> = numbers.clone().flat_map(u64::to_le_bytes).collect();
            let numbers: Vec<u64> = numbers.collect();
            assert_eq!(encode(numbers.into_iter()), STANDARD.encode(bytes), "{count} numbers");
        }
    }
}
