//! `Part`: what some rows gave, to be put together with what others gave: calibration or evaluation, shard by shard.
//!
//! The file is one line of JSON that says what it is, and then the accumulator's own bytes, which carry a checksum.

use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::Path;

use conformax::{Alpha, Evaluator, Prior, ScoreSpec};
use serde::{Deserialize, Serialize};

use crate::calibration::calibrating::Calibrating;
use crate::calibration::kind::{Kind, read_whole};
use crate::calibration::model::Beside;
use crate::error::{InFile, Problem, Result};
use crate::writing::output::Output;
use crate::{ClassNames, Input};

const FORMAT: &str = "conformax-part";
const VERSION: u32 = 1;

/// What some rows gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Part {
    /// The accumulator.
    pub of: PartOf,
    /// Names of the classes, where known.
    pub names: Option<ClassNames>,
    /// What the numbers were.
    pub input: Input,
    /// The levels asked for.
    pub alphas: Vec<Alpha>,
    /// What else the calibration file is to say: where groups or weights come from, the prior, the promise.
    pub settings: Settings,
}

/// What a calibration file says beside what its accumulator knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What comes beside the logits.
    pub beside: Beside,
    /// The shares of the classes that are taken out of the logits.
    pub prior: Option<Prior>,
    /// The probability over calibration rows that coverage may fall short.
    pub delta: Option<Alpha>,
}

/// What a part is a part of.
#[derive(Clone, Debug)]
pub enum PartOf {
    /// A calibration.
    Calibration(Calibrating),
    /// An evaluation, with the calibration file that was evaluated.
    Evaluation {
        /// The counts.
        evaluator: Evaluator<ScoreSpec>,
        /// The text of the calibration file.
        model: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: String,
    version: u32,
    of: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    class_names: Option<Vec<String>>,
    input: String,
    alphas: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clusters: Vec<String>,
    #[serde(default)]
    estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Role {
    Calibration,
    Evaluation,
}

impl Part {
    /// An accumulator with what it does not know itself.
    pub fn new(
        of: PartOf,
        names: Option<ClassNames>,
        input: Input,
        alphas: Vec<Alpha>,
        settings: Settings,
    ) -> Self {
        Self { of, names, input, alphas, settings }
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, Problem> {
        let (of, model, body) = match &self.of {
            PartOf::Calibration(calibrating) => (Role::Calibration, None, calibrating.to_bytes()),
            PartOf::Evaluation { evaluator, model } => {
                (Role::Evaluation, Some(model.clone()), evaluator.to_bytes())
            }
        };
        let head = Head {
            format: FORMAT.to_owned(),
            version: VERSION,
            of,
            class_names: self.names.as_ref().map(|names| names.as_slice().to_vec()),
            input: self.input.name().to_owned(),
            alphas: self.alphas.iter().map(Alpha::to_string).collect(),
            model,
            column: self.settings.beside.column.clone(),
            groups: self.settings.beside.groups.clone(),
            clusters: self.settings.beside.clusters.clone(),
            estimated: self.settings.beside.estimated,
            prior: self.settings.prior.as_ref().map(|prior| prior.as_slice().to_vec()),
            delta: self.settings.delta.map(|delta| delta.to_string()),
        };
        let mut bytes = serde_json::to_vec(&head).map_err(|error| Problem::Part(error.to_string()))?;
        bytes.push(b'\n');
        bytes.extend(body);
        Ok(bytes)
    }

    /// Reads the file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, Problem> {
        let refuse = |what: String| Err(Problem::Part(what));
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return refuse("it has no first line".to_owned());
        };
        let (head, body) = (&bytes[..end], &bytes[end + 1..]);
        let head: Head = serde_json::from_slice(head)
            .map_err(|error| Problem::Part(format!("its first line: {error}")))?;
        if head.format != FORMAT {
            return refuse(format!("its format is `{}`, not `{FORMAT}`", head.format));
        }
        if head.version != VERSION {
            return refuse(format!("its version is {}, this program reads version {VERSION}", head.version));
        }
        let core = |error: conformax::Error| Problem::Part(error.to_string());
        let of = match (head.of, head.model) {
            (Role::Calibration, None) => PartOf::Calibration(Calibrating::from_bytes(body).map_err(core)?),
            (Role::Evaluation, Some(model)) => {
                PartOf::Evaluation { evaluator: Evaluator::from_bytes(body).map_err(core)?, model }
            }
            _ => return refuse("it is a part of nothing there is".to_owned()),
        };
        Ok(Self {
            of,
            names: head.class_names.map(ClassNames::new).transpose()?,
            input: Input::named(&head.input)
                .ok_or_else(|| Problem::Part(format!("its input is `{}`", head.input)))?,
            alphas: head
                .alphas
                .iter()
                .map(|alpha| alpha.parse().map_err(core))
                .collect::<std::result::Result<_, _>>()?,
            settings: Settings {
                beside: Beside {
                    column: head.column,
                    groups: head.groups,
                    clusters: head.clusters,
                    estimated: head.estimated,
                },
                prior: head.prior.map(Prior::new).transpose().map_err(core)?,
                delta: head.delta.map(|delta| delta.parse()).transpose().map_err(core)?,
            },
        })
    }

    /// Reads a file; `-` is standard input.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_whole(path)?;
        Kind::Part.expect(&bytes).in_file(path)?;
        Self::from_bytes(&bytes).in_file(path)
    }

    /// A number over all it holds: parts of the same rows have the same, and hardly any others.
    pub fn fingerprint(&self) -> std::result::Result<u64, Problem> {
        let mut hasher = std::hash::DefaultHasher::new();
        self.to_bytes()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    /// Writes into an output, whole or not at all.
    pub fn write(&self, mut output: Output) -> Result<()> {
        let path = output.path().to_owned();
        let bytes = self.to_bytes().in_file(&path)?;
        output.write_all(&bytes).in_file(&path)?;
        output.finish()
    }

    /// The same with these groups, which hold those it has; an error where they do not.
    pub fn regrouped(mut self, groups: &[String]) -> std::result::Result<Self, Problem> {
        let core = |error: conformax::Error| Problem::Part(error.to_string());
        let mine = &self.settings.beside.groups;
        let place = |name: &String| groups.iter().position(|other| other == name);
        let Some(places) = mine.iter().map(place).collect::<Option<Vec<usize>>>() else {
            return Err(Problem::Part("it has groups that are not among those wanted".to_owned()));
        };
        self.of = match self.of {
            PartOf::Calibration(calibrating) => {
                PartOf::Calibration(calibrating.regrouped(&places, groups.len()).map_err(core)?)
            }
            PartOf::Evaluation { evaluator, model } => PartOf::Evaluation {
                evaluator: evaluator.regrouped(&places, groups.len()).map_err(core)?,
                model,
            },
        };
        self.settings.beside.groups = groups.to_vec();
        Ok(self)
    }

    /// Gives two parts the groups of both, in the order of their names.
    fn share_groups(&mut self, other: &mut Self) -> std::result::Result<(), Problem> {
        let (mine, theirs) = (&self.settings.beside.groups, &other.settings.beside.groups);
        if mine == theirs || mine.is_empty() || theirs.is_empty() {
            return Ok(());
        }
        let mut all: Vec<String> = mine.iter().chain(theirs).cloned().collect();
        all.sort();
        all.dedup();
        for part in [self, other] {
            *part = part.clone().regrouped(&all)?;
        }
        Ok(())
    }

    /// Takes in another part of the same.
    pub fn merge(&mut self, mut other: Self) -> std::result::Result<(), Problem> {
        // Whatever else differs, differs because of it.
        if self.role() != other.role() {
            let what = "some parts are of a calibration and some of an evaluation";
            return Err(Problem::Part(what.to_owned()));
        }
        self.share_groups(&mut other)?;
        let differs = match () {
            () if self.names != other.names => Some("class names"),
            () if self.input != other.input => Some("kinds of input"),
            () if self.alphas != other.alphas => Some("levels"),
            () if self.settings != other.settings => Some("ways to thresholds"),
            () => None,
        };
        if let Some(what) = differs {
            return Err(Problem::Part(format!("it does not belong to the others: their {what} differ")));
        }
        let core = |error: conformax::Error| Problem::Part(error.to_string());
        match (&mut self.of, other.of) {
            (PartOf::Calibration(mine), PartOf::Calibration(theirs)) => mine.merge(theirs).map_err(core),
            (
                PartOf::Evaluation { evaluator: mine, model },
                PartOf::Evaluation { evaluator: theirs, model: their_model },
            ) if *model == their_model => mine.merge(theirs).map_err(core),
            (PartOf::Evaluation { .. }, PartOf::Evaluation { .. }) => {
                Err(Problem::Part("it evaluates another calibration file than the others".to_owned()))
            }
            _ => unreachable!("parts of two roles are refused above"),
        }
    }

    fn role(&self) -> Role {
        match self.of {
            PartOf::Calibration(_) => Role::Calibration,
            PartOf::Evaluation { .. } => Role::Evaluation,
        }
    }
}
