//! Rows as JSON objects that come one by one, for a model in use: `{"id": 7, "logits": [0.1, 2.5], "label": 1}`.
//!
//! Numbers, labels and groups mean what they mean in a file of JSON Lines; what is done to them is what the model was
//! calibrated with.

use std::fmt;

use conformax::Prior;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::error::Problem;
use crate::reading::resolve::Lookup;
use crate::text::json_lines::{json_problem, label};
use crate::text::json_numbers::Numbers;
use crate::{ClassNames, Dtype, Input, Model, Values};

/// How rows of a model are read.
#[derive(Debug, Clone)]
pub struct JsonRows {
    classes: usize,
    names: Option<ClassNames>,
    input: Input,
    prior: Option<Prior>,
    /// The key of the row's group and the names of the groups, where thresholds go by them.
    groups: Option<(String, Vec<String>)>,
}

/// One object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonRow {
    /// The row's name, text or an integer.
    pub id: Option<Value>,
    /// Its logits, one for each class.
    pub logits: Option<Vec<f64>>,
    /// Its true label.
    pub label: Option<u32>,
    /// Its group, where thresholds go by it.
    pub group: Option<u32>,
    /// Whether its numbers are taken for logits and look like probabilities.
    pub doubtful: bool,
}

impl JsonRow {
    /// The row's name as text: `7`, `7.0` and `"7"` are one.
    pub fn name(&self) -> Option<String> {
        self.id.as_ref().map(plain_text)
    }
}

/// The label of a row that was predicted, before it is known which model it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonLabel {
    /// The row's name.
    pub name: String,
    /// An index or a name, as text.
    pub label: String,
}

/// A number as an id: whole, and small enough that no other integer has the same floating-point form.
pub fn whole_id(number: f64) -> Option<i64> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

/// What is wrong with a row, and the class it is wrong in where it is a logit.
#[derive(Debug)]
pub struct RowFault {
    /// What is wrong.
    pub problem: Problem,
    /// The class.
    pub class: Option<usize>,
}

impl From<Problem> for RowFault {
    fn from(problem: Problem) -> Self {
        Self { problem, class: None }
    }
}

/// Bytes of the longest name that a row may have, in whatever form it comes.
pub const LONGEST_ID: usize = 256;

impl JsonRows {
    /// Rows of this model.
    pub fn new(model: &Model) -> Self {
        let column = model.beside.column.clone().unwrap_or_else(|| "group".to_owned());
        let groups = (!model.beside.groups.is_empty()).then(|| (column, model.beside.groups.clone()));
        Self {
            classes: model.classes,
            names: model.names.clone(),
            input: model.input,
            prior: model.prior.clone(),
            groups,
        }
    }

    /// Reads one object.
    pub fn read(&self, json: &[u8]) -> Result<JsonRow, RowFault> {
        let mut from = serde_json::Deserializer::from_slice(json);
        let row = self.deserialize(&mut from).and_then(|row| from.end().map(|()| row));
        row.map_err(|error| json_problem(&error))?
    }

    /// The class that a label names.
    pub fn label(&self, text: &str) -> Result<u32, Problem> {
        Lookup { names: self.names.as_ref(), classes: self.classes, labels_are: None }.text(text)
    }

    fn object(&self, keys: Keys) -> Object<'_> {
        Object { classes: self.classes, group: self.groups.as_ref().map(|(key, _)| key.as_str()), keys }
    }

    fn finished(&self, raw: Raw) -> Result<JsonRow, RowFault> {
        raw.expect_known()?;
        let (logits, doubtful) = match raw.logits {
            None => (None, false),
            Some(numbers) => {
                let numbers = Values::F64(numbers?);
                let doubtful = self.input.is_doubtful(&numbers, self.classes);
                (Some(self.logits(numbers)?), doubtful)
            }
        };
        let label = raw.label.as_ref().and_then(|value| label(Some(value)));
        let label = label.map(|text| self.label(&text)).transpose()?;
        let row = JsonRow { id: checked_id(raw.id)?, logits, label, group: None, doubtful };
        let group = match (&self.groups, raw.group) {
            (Some((_, names)), Some(value)) if row.logits.is_some() => {
                let name = plain_text(&value);
                let found = names.iter().position(|known| *known == name);
                Some(found.ok_or(Problem::UnknownGroup(name))? as u32)
            }
            (Some((key, _)), None) if row.logits.is_some() => {
                return Err(Problem::NoGroup(key.clone()).into());
            }
            _ => None,
        };
        Ok(JsonRow { group, ..row })
    }

    fn logits(&self, mut numbers: Values) -> Result<Vec<f64>, RowFault> {
        let mut logits = Values::new(Dtype::F64);
        let made = self.input.into_logits(&mut numbers, &mut logits);
        made.map_err(|(class, problem)| RowFault { problem, class: Some(class) })?;
        let Values::F64(logits) = logits else { unreachable!("logarithms of f64 are f64") };
        let Some(prior) = &self.prior else { return Ok(logits) };
        let mut adjusted = Vec::new();
        let rows = conformax::Logits::new(&logits, self.classes);
        rows.and_then(|logits| prior.adjust(logits, &mut adjusted)).map_err(Problem::from)?;
        Ok(adjusted)
    }
}

fn wanted(what: &'static str, wanted: &'static str, found: &Value) -> Problem {
    Problem::Dtype { what, wanted, found: found.to_string() }
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An id in its one form: text, or an integer. Numbers beyond 64 bits come rounded, so that two of them could be one.
fn checked_id(id: Option<Value>) -> Result<Option<Value>, Problem> {
    let Some(id) = id.filter(|id| !id.is_null()) else { return Ok(None) };
    let whole = match &id {
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(whole_id).map(Value::from),
        Value::String(_) | Value::Number(_) => Some(id.clone()),
        _ => None,
    };
    let Some(id) = whole else {
        return Err(wanted("id", "text or a whole number of at most 64 bits (longer ones as text)", &id));
    };
    match plain_text(&id).len() {
        1..=LONGEST_ID => Ok(Some(id)),
        len => Err(wanted("length of id", "1 to 256 bytes", &len.into())),
    }
}

/// Which keys an object may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Those of rows and of labels; others are passed over, as in files.
    Any,
    /// Those of a row that is to get a set.
    Row,
    /// Those of a label that comes later.
    Label,
}

/// What an object holds, before it is held against the model.
#[derive(Default)]
struct Raw {
    id: Option<Value>,
    logits: Option<Result<Vec<f64>, RowFault>>,
    label: Option<Value>,
    group: Option<Value>,
    /// A key that it may not have, and those it may.
    unknown: Option<(String, String)>,
}

impl Raw {
    fn expect_known(&self) -> Result<(), Problem> {
        match &self.unknown {
            Some((key, known)) => Err(Problem::UnknownKey { key: key.clone(), known: known.clone() }),
            None => Ok(()),
        }
    }
}

/// The outer error is one of JSON, after which nothing can be read; the inner one is of this row.
impl<'de> DeserializeSeed<'de> for &JsonRows {
    type Value = Result<JsonRow, RowFault>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self.object(Keys::Any)).map(|raw| self.finished(raw))
    }
}

/// The rows of a request for sets, in which every key means something.
#[derive(Clone, Copy)]
pub(super) struct RowsAlone<'a>(pub(super) &'a JsonRows);

impl<'de> DeserializeSeed<'de> for RowsAlone<'_> {
    type Value = Result<JsonRow, RowFault>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_map(self.0.object(Keys::Row)).map(|raw| self.0.finished(raw))
    }
}

/// The rows of a request that brings labels, in which every key means something.
#[derive(Clone, Copy)]
pub(super) struct LabelsAlone;

impl<'de> DeserializeSeed<'de> for LabelsAlone {
    type Value = Result<JsonLabel, RowFault>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        let raw = from.deserialize_map(Object { classes: 0, group: None, keys: Keys::Label })?;
        Ok(raw
            .expect_known()
            .and_then(|()| {
                let (name, text) =
                    (checked_id(raw.id)?, raw.label.as_ref().and_then(|value| label(Some(value))));
                match (name, text) {
                    (Some(name), Some(label)) => Ok(JsonLabel { name: plain_text(&name), label }),
                    (name, _) => {
                        let (what, wanted) = ("a label", "the `id` of its row and the `label`");
                        let found = if name.is_some() { "no `label`" } else { "no `id`" };
                        Err(Problem::Dtype { what, wanted, found: found.to_owned() })
                    }
                }
            })
            .map_err(RowFault::from))
    }
}

/// Longer keys are not repeated in messages.
const LONGEST_KEY: usize = 64;

struct Object<'a> {
    classes: usize,
    group: Option<&'a str>,
    keys: Keys,
}

impl Object<'_> {
    /// The keys that mean something, for a message.
    fn known(&self) -> String {
        let keys: &[&str] = if self.keys == Keys::Label { &["id", "label"] } else { &["id", "logits"] };
        let keys: Vec<String> =
            keys.iter().copied().chain(self.group).map(|key| format!("`{key}`")).collect();
        keys.join(", ")
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `logits`, or with `id` and `label`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Raw, M::Error> {
        let mut raw = Raw::default();
        let (for_row, for_label) = (self.keys != Keys::Label, self.keys != Keys::Row);
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let twice = |there: bool| match there {
                true => Err(M::Error::custom(format_args!("`{key}` occurs twice"))),
                false => Ok(()),
            };
            match key.as_ref() {
                "logits" if for_row => {
                    twice(raw.logits.is_some())?;
                    raw.logits = Some(map.next_value_seed(Numbers(self.classes))?);
                }
                "id" => {
                    twice(raw.id.is_some())?;
                    raw.id = Some(map.next_value()?);
                }
                "label" | "labels" if for_label => {
                    twice(raw.label.is_some())?;
                    raw.label = Some(map.next_value()?);
                }
                other if Some(other) == self.group => {
                    twice(raw.group.is_some())?;
                    raw.group = Some(map.next_value()?);
                }
                other => {
                    if self.keys != Keys::Any && raw.unknown.is_none() {
                        let key = other.chars().take(LONGEST_KEY).collect();
                        raw.unknown = Some((key, self.known()));
                    }
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use conformax::{Alpha, Calibration, ScoreSpec, SortedScores};

    use super::*;

    fn rows() -> JsonRows {
        let scores = SortedScores::new(vec![0.0, 1.0, 2.0]).unwrap();
        let calibration = Calibration::from_scores(ScoreSpec::default(), 3, scores).unwrap();
        let names = ClassNames::new(["cat", "dog", "owl"].map(str::to_owned).to_vec()).unwrap();
        JsonRows::new(&Model::new(&calibration, &[Alpha::new(0.25).unwrap()], Some(names)))
    }

    #[test]
    fn reads_what_a_row_may_hold() {
        let row = rows().read(br#"{"id": 7, "logits": [1, -2.5, "-inf"], "more": [{}], "label": "owl"}"#);
        let row = row.unwrap();
        assert_eq!(row.logits, Some(vec![1.0, -2.5, f64::NEG_INFINITY]));
        assert_eq!((row.name().as_deref(), row.label), (Some("7"), Some(2)));
        let row = rows().read(br#"{"id": "7", "label": [1]}"#).unwrap();
        assert_eq!((row.name().as_deref(), row.label, row.logits), (Some("7"), Some(1), None));
    }

    /// However a whole number is written it is one id, and what could be two numbers is none.
    #[test]
    fn an_id_has_one_form() {
        let name = |id: &str| rows().read(format!("{{\"id\": {id}, \"label\": 1}}").as_bytes());
        for (id, wanted) in [
            ("7", "7"),
            ("7.0", "7"),
            ("70e-1", "7"),
            ("\"7\"", "7"),
            ("\"7.0\"", "7.0"),
            ("-0", "0"),
            ("-3.0", "-3"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740991.0", "9007199254740991"),
        ] {
            assert_eq!(name(id).unwrap().name().as_deref(), Some(wanted), "{id}");
        }
        for id in ["18446744073709551616", "-9223372036854775809", "1.5", "9007199254740992.0", "true", "[7]"]
        {
            let message = name(id).unwrap_err().problem.to_string();
            assert!(
                message.contains("id must be text or a whole number of at most 64 bits"),
                "{id}: {message}"
            );
        }
    }

    #[test]
    fn faults_say_what_came_and_in_which_class() {
        let fault = |json: &str| {
            let RowFault { problem, class } = rows().read(json.as_bytes()).unwrap_err();
            (problem.to_string(), class)
        };
        let (message, class) = fault(r#"{"logits": [1, "x", null]}"#);
        assert!(message.contains("`x` is not a number") && class == Some(1), "{message} {class:?}");
        assert_eq!(fault(r#"{"logits": [1, 2, null]}"#).1, Some(2));
        assert_eq!(fault(r#"{"logits": [1, 2, [3]]}"#).1, Some(2));
        assert!(fault(r#"{"logits": [1, 2]}"#).0.contains('2'));
        assert!(fault(r#"{"logits": [1, 2, 3, 4, 5]}"#).0.contains('5'));
        assert!(fault(r#"{"logits": [1, 2, 3], "label": "emu"}"#).0.contains("emu"));
        assert!(fault(r#"{"logits": [1, 2, 3], "id": {}}"#).0.contains("text or a whole number"));
        assert!(fault(r#"{"logits": [1, 2, 3]"#).0.contains("JSON"));
        assert!(fault(r#"{"id": 1, "id": 2}"#).0.contains("`id` occurs twice"));
        assert!(fault(r#"[1]"#).0.contains("an object with `logits`"));
    }
}
