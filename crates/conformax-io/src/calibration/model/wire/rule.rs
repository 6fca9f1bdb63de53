//! How thresholds follow from calibration rows, and what those rows said, as a file keeps them.

use std::sync::Arc;

use conformax::{Evidence, Loss, LossSteps, Scheme, SortedScores, Taxonomy, WeightedScores};
use serde::{Deserialize, Serialize};

use super::{decode, decode_words, encode, refuse};
use crate::Problem;
use crate::calibration::model::Beside;

/// Where thresholds differ; a file without it has one for all rows.
#[derive(Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Rule {
    Class,
    Cluster {
        clusters: Vec<Option<u32>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
    Group {
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<String>,
        groups: Vec<String>,
    },
    RowWeight {
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<String>,
        estimated: bool,
    },
    LabelWeight {
        weights: Vec<f64>,
        estimated: bool,
    },
    Severity {
        severity: Vec<f64>,
    },
    Cost {
        cost: Vec<Vec<f64>>,
    },
}

impl Rule {
    pub(super) fn of(scheme: &Scheme, beside: &Beside) -> Option<Self> {
        let Beside { column, groups, clusters: names, estimated } = beside.clone();
        Some(match scheme {
            Scheme::Groups(Taxonomy::All) => return None,
            Scheme::Groups(Taxonomy::Label) => Self::Class,
            Scheme::Groups(Taxonomy::Cluster(clusters)) => {
                Self::Cluster { clusters: clusters.clone(), names }
            }
            Scheme::Groups(Taxonomy::Group(_)) => Self::Group { column, groups },
            Scheme::RowWeights => Self::RowWeight { column, estimated },
            Scheme::LabelWeights(weights) => Self::LabelWeight { weights: weights.clone(), estimated },
            Scheme::Risk(loss) if loss.is_cost() => {
                Self::Cost { cost: loss.values().chunks(loss.classes()).map(<[f64]>::to_vec).collect() }
            }
            Scheme::Risk(loss) => Self::Severity { severity: loss.values().to_vec() },
        })
    }

    pub(super) fn into_scheme(self) -> Result<(Scheme, Beside), Problem> {
        let damaged = |error: conformax::Error| Problem::Model(error.to_string());
        let none = Beside::default();
        Ok(match self {
            Self::Class => (Scheme::Groups(Taxonomy::Label), none),
            Self::Cluster { clusters, names } => {
                (Scheme::Groups(Taxonomy::Cluster(clusters)), Beside { clusters: names, ..none })
            }
            Self::Group { column, groups } => {
                let scheme = Scheme::Groups(Taxonomy::Group(groups.len()));
                (scheme, Beside { column, groups, ..none })
            }
            Self::RowWeight { column, estimated } => {
                (Scheme::RowWeights, Beside { column, estimated, ..none })
            }
            Self::LabelWeight { weights, estimated } => {
                (Scheme::LabelWeights(weights), Beside { estimated, ..none })
            }
            Self::Severity { severity } => (Scheme::Risk(Loss::severity(severity).map_err(damaged)?), none),
            Self::Cost { cost } => {
                let classes = cost.len();
                (Scheme::Risk(Loss::cost(cost.concat(), classes).map_err(damaged)?), none)
            }
        })
    }
}

/// What calibration rows said. Scores are ascending, as base64 of little-endian doubles.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum EvidenceEntry {
    /// Of rows that share a threshold.
    One(String),
    /// Of each group.
    Groups(Vec<String>),
    Weighted {
        scores: String,
        weights: String,
    },
    /// Where losses fall, by how many units, and from where.
    Losses {
        scores: String,
        falls: String,
        start: String,
        n: u64,
    },
}

impl EvidenceEntry {
    pub(super) fn of(evidence: &Evidence) -> Result<Self, Problem> {
        let bits = |scores: &[f64]| encode(scores.iter().map(|score| score.to_bits()));
        Ok(match evidence {
            Evidence::Groups(groups) => match &groups[..] {
                [scores] => Self::One(bits(scores.as_slice())),
                groups => Self::Groups(groups.iter().map(|scores| bits(scores.as_slice())).collect()),
            },
            Evidence::Weighted(scores) => {
                Self::Weighted { scores: bits(scores.scores()), weights: bits(scores.weights()) }
            }
            Evidence::Losses(steps) => Self::Losses {
                scores: encode(steps.steps().iter().map(|(score, _)| score.to_bits())),
                falls: encode(steps.steps().iter().map(|(_, fall)| *fall)),
                start: steps.start().to_string(),
                n: steps.n(),
            },
            _ => return refuse("its scores are of a kind that a file cannot hold"),
        })
    }

    pub(super) fn into_evidence(self, scheme: &Scheme) -> Result<Evidence, Problem> {
        let damaged = |error: conformax::Error| Problem::Model(format!("its scores are damaged: {error}"));
        Ok(match self {
            Self::One(scores) => {
                Evidence::Groups(vec![SortedScores::new(decode(&scores)?).map_err(damaged)?])
            }
            Self::Groups(groups) => {
                let group = |scores: &String| match decode(scores)? {
                    scores if scores.is_empty() => Ok(SortedScores::default()),
                    scores => SortedScores::new(scores).map_err(damaged),
                };
                Evidence::Groups(groups.iter().map(group).collect::<Result<_, _>>()?)
            }
            Self::Weighted { scores, weights } => {
                let scores = decode(&scores)?;
                let weights: Vec<f64> = decode_words(&weights)?.into_iter().map(f64::from_bits).collect();
                if scores.len() != weights.len() {
                    return refuse("its scores are damaged: they are not as many as their weights");
                }
                let pairs = scores.into_iter().zip(weights).collect();
                Evidence::Weighted(Arc::new(WeightedScores::new(pairs).map_err(damaged)?))
            }
            Self::Losses { scores, falls, start, n } => {
                let Ok(start) = start.parse() else {
                    return refuse("its scores are damaged: where losses start");
                };
                let (scores, falls) = (decode(&scores)?, decode_words(&falls)?);
                if scores.len() != falls.len() || !matches!(scheme, Scheme::Risk(_)) {
                    return refuse("its scores are damaged: they are not as many as the falls of losses");
                }
                let steps = scores.into_iter().zip(falls).collect();
                Evidence::Losses(LossSteps::from_parts(n, start, steps).map_err(damaged)?)
            }
        })
    }
}
