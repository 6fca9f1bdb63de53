//! The calibration file's own types, apart from the core's: renaming a field there breaks a build, not a file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conformax::{ARITHMETIC_VERSION, Alpha, CalibrationScores, Candidate, Level, Masked, Tuning};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Model, TuningRecord};
use crate::calibration::fingerprint::ROW_HASH;
use crate::calibration::model::wire::score::Score;
use crate::{ClassNames, Problem, RowSet};

mod score;

const FORMAT: &str = "conformax-calibration";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    format: String,
    version: u32,
    arithmetic: u32,
    score: Score,
    masked: MaskedName,
    classes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    class_names: Option<Vec<String>>,
    n: u64,
    levels: Vec<LevelEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<String>,
    row_hash: String,
    calibrating_rows: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<TuningEntry>,
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
    rank: Option<u64>,
    threshold: Wide,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TuningEntry {
    method: TuningName,
    alpha: f64,
    n: u64,
    candidates: Vec<CandidateEntry>,
    chosen: usize,
    rows: String,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum TuningName {
    Valid,
    Paper,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CandidateEntry {
    score: Score,
    threshold: Wide,
    average_size: f64,
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
pub(super) fn check_version(text: &str) -> Result<(), Problem> {
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
    if start.version != VERSION {
        let version = start.version;
        return Err(Problem::Model(format!(
            "its version is {version}, this program reads version {VERSION}"
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
    pub(super) fn from_model(model: &Model) -> Result<Self, Problem> {
        let levels = model.levels.iter().map(|level| {
            Ok(LevelEntry {
                alpha: decimal(level.alpha)?,
                rank: level.rank,
                threshold: Wide(level.threshold),
            })
        });
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            arithmetic: ARITHMETIC_VERSION,
            score: Score::of(model.score)?,
            masked: match model.masked {
                Masked::Allowed => MaskedName::Allowed,
                Masked::Never => MaskedName::Never,
            },
            classes: model.classes,
            class_names: model.names.as_ref().map(|names| names.as_slice().to_vec()),
            n: model.n,
            levels: levels.collect::<Result<_, Problem>>()?,
            scores: model.scores.as_ref().map(|scores| encode(scores.as_slice())),
            row_hash: ROW_HASH.to_owned(),
            calibrating_rows: model.calibrating_rows.to_base64(),
            tuning: model.tuning.as_ref().map(TuningEntry::of).transpose()?,
        })
    }

    pub(super) fn into_model(self) -> Result<Model, Problem> {
        if self.row_hash != ROW_HASH {
            return refuse(format!("its row hash is `{}`, this program knows `{ROW_HASH}`", self.row_hash));
        }
        let n = self.n;
        let levels = self.levels.into_iter().map(|entry| {
            let alpha = alpha(entry.alpha)?;
            Ok(Level { alpha, n, rank: entry.rank, threshold: entry.threshold.0 })
        });
        Ok(Model {
            score: self.score.into_spec()?,
            masked: match self.masked {
                MaskedName::Allowed => Masked::Allowed,
                MaskedName::Never => Masked::Never,
            },
            classes: self.classes,
            names: self.class_names.map(ClassNames::new).transpose()?,
            n,
            levels: levels.collect::<Result<_, Problem>>()?,
            scores: self.scores.as_deref().map(decode).transpose()?,
            calibrating_rows: row_set(&self.calibrating_rows, "calibrating_rows")?,
            tuning: self.tuning.map(TuningEntry::into_record).transpose()?,
        })
    }
}

impl TuningEntry {
    fn of(record: &TuningRecord) -> Result<Self, Problem> {
        let candidates = record.candidates.iter().map(|candidate| {
            let (threshold, average_size) = (Wide(candidate.threshold), candidate.average_size);
            Ok(CandidateEntry { score: Score::of(candidate.score)?, threshold, average_size })
        });
        Ok(Self {
            method: match record.tuning {
                Tuning::Valid => TuningName::Valid,
                Tuning::Paper => TuningName::Paper,
            },
            alpha: decimal(record.alpha)?,
            n: record.n,
            candidates: candidates.collect::<Result<_, Problem>>()?,
            chosen: record.chosen,
            rows: record.rows.to_base64(),
        })
    }

    fn into_record(self) -> Result<TuningRecord, Problem> {
        let candidates = self.candidates.into_iter().map(|entry| {
            let (threshold, average_size) = (entry.threshold.0, entry.average_size);
            Ok(Candidate { score: entry.score.into_spec()?, threshold, average_size })
        });
        Ok(TuningRecord {
            tuning: match self.method {
                TuningName::Valid => Tuning::Valid,
                TuningName::Paper => Tuning::Paper,
            },
            alpha: alpha(self.alpha)?,
            n: self.n,
            candidates: candidates.collect::<Result<_, Problem>>()?,
            chosen: self.chosen,
            rows: row_set(&self.rows, "tuning.rows")?,
        })
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

fn encode(scores: &[f64]) -> String {
    let bytes: Vec<u8> = scores.iter().flat_map(|score| score.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

fn decode(text: &str) -> Result<CalibrationScores, Problem> {
    let bytes =
        STANDARD.decode(text).map_err(|error| Problem::Model(format!("its scores are damaged: {error}")))?;
    let (scores, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return refuse("its scores are damaged: their bytes are no whole number of doubles");
    }
    let scores: Vec<f64> = scores.iter().map(|score| f64::from_le_bytes(*score)).collect();
    // Negative zero is no score, and it would sort below zero while being equal to it.
    if scores.iter().any(|score| score.is_nan() || score.to_bits() == (-0.0_f64).to_bits()) {
        return refuse("its scores are damaged: one is not a number, or is minus zero");
    }
    if !scores.is_sorted() {
        return refuse("its scores are damaged: they are not in ascending order");
    }
    CalibrationScores::new(scores).map_err(|error| Problem::Model(error.to_string()))
}

fn row_set(text: &str, field: &str) -> Result<RowSet, Problem> {
    RowSet::from_base64(text).ok_or_else(|| Problem::Model(format!("its `{field}` are damaged")))
}
