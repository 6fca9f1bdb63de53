//! How a score was chosen, as the file keeps it: by rows set aside, or by all rows and label by label.

use conformax::{Alpha, Candidate, Choice, Masked, Rival, RowSet, Selection, Tuning};
use serde::{Deserialize, Serialize};

use super::{RowsEntry, Score, Wide, alpha, decimal, decode, encode, refuse};
use crate::Problem;
use crate::calibration::model::{SelectionRecord, TuningRecord};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TuningEntry {
    method: TuningName,
    alpha: f64,
    n: u64,
    candidates: Vec<CandidateEntry>,
    chosen: usize,
    pub(super) rows: RowsEntry,
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

impl TuningEntry {
    pub(super) fn of(record: &TuningRecord) -> Result<Self, Problem> {
        let candidates = record.choice.candidates().iter().map(|candidate| {
            let (threshold, average_size) = (Wide(candidate.threshold), candidate.average_size);
            CandidateEntry { score: Score::of(candidate.score), threshold, average_size }
        });
        Ok(Self {
            method: match record.tuning {
                Tuning::Valid => TuningName::Valid,
                Tuning::Paper => TuningName::Paper,
            },
            alpha: decimal(record.alpha)?,
            n: record.n,
            candidates: candidates.collect(),
            chosen: record.choice.chosen(),
            rows: RowsEntry::of(&record.rows),
        })
    }

    pub(super) fn into_record(self) -> Result<TuningRecord, Problem> {
        let candidates = self.candidates.into_iter().map(|entry| {
            let (threshold, average_size) = (entry.threshold.0, entry.average_size);
            Ok(Candidate::new(entry.score.into_spec()?, threshold, average_size))
        });
        let candidates = candidates.collect::<Result<Vec<_>, Problem>>()?;
        let choice = Choice::of(candidates).map_err(|error| Problem::Model(error.to_string()))?;
        if choice.chosen() != self.chosen {
            return refuse("the candidate chosen is not the one with the smallest sets");
        }
        Ok(TuningRecord {
            tuning: match self.method {
                TuningName::Valid => Tuning::Valid,
                TuningName::Paper => Tuning::Paper,
            },
            alpha: alpha(self.alpha)?,
            n: self.n,
            choice,
            rows: self.rows.into_set("tuning.rows")?,
        })
    }
}

/// Candidates that all rows chose among and calibrated.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SelectionEntry {
    candidates: Vec<RivalEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RivalEntry {
    score: Score,
    low: Wide,
    high: Wide,
    at_low: u64,
    at_high: u64,
    /// Absent for a candidate that cannot win.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    between: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wins: Option<u64>,
}

impl SelectionEntry {
    pub(super) fn of(record: &SelectionRecord) -> Self {
        let SelectionRecord { selection, wins } = record;
        let rivals = selection.rivals().iter().zip(selection.alive()).enumerate();
        let candidates = rivals.map(|(place, (rival, alive))| RivalEntry {
            score: Score::of(rival.score),
            low: Wide(rival.low),
            high: Wide(rival.high),
            at_low: rival.at_low,
            at_high: rival.at_high,
            between: alive.then(|| encode(rival.between.iter().map(|score| score.to_bits()))),
            wins: wins.as_ref().map(|wins| wins[place]),
        });
        Self { candidates: candidates.collect() }
    }

    pub(super) fn into_record(
        self,
        classes: usize,
        alpha: Option<Alpha>,
        rows: (u64, RowSet),
        masked: Masked,
    ) -> Result<SelectionRecord, Problem> {
        let wins = self.candidates.iter().map(|entry| entry.wins).collect::<Option<Vec<u64>>>();
        if wins.is_none() && self.candidates.iter().any(|entry| entry.wins.is_some()) {
            return refuse("it says of some candidates how often they decide, and not of others");
        }
        let rivals = self.candidates.into_iter().map(|entry| {
            let between = entry.between.as_deref().map_or(Ok(Vec::new()), decode)?;
            let (around, pairs) = ((entry.low.0, entry.high.0), (entry.at_low, entry.at_high));
            Ok(Rival::new(entry.score.into_spec()?, around, pairs, between))
        });
        let rivals = rivals.collect::<Result<Vec<_>, Problem>>()?;
        let selection = alpha.and_then(|alpha| Selection::from_parts(rivals, classes, alpha, rows, masked));
        match selection {
            Some(selection) => Ok(SelectionRecord { selection, wins }),
            None => refuse("the counts of its candidates are not those of calibration rows"),
        }
    }
}
