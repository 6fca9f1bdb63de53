//! The rows of a JSON body: `{"rows": [{…}, {…}]}`.

use std::cell::RefCell;
use std::fmt;

use axum::http::StatusCode;
use conformax_io::{JsonRow, JsonRows};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::problem::Problem;

/// Reads the rows of a body, at most so many.
pub(super) fn rows(body: &[u8], of: &JsonRows, most: usize) -> Result<Vec<JsonRow>, Problem> {
    let wanted = Wanted { of, most, fault: RefCell::new(None) };
    let mut from = serde_json::Deserializer::from_slice(body);
    let read = from.deserialize_map_with(&wanted).and_then(|rows| from.end().map(|()| rows));
    match (read, wanted.fault.into_inner()) {
        (Ok(rows), None) => Ok(rows),
        (_, Some(problem)) => Err(problem),
        (Err(error), None) => Err(Problem::bad_request(format_args!(
            "the body is not what it should be, {{\"rows\": [...]}}: {error}"
        ))),
    }
}

struct Wanted<'a> {
    of: &'a JsonRows,
    most: usize,
    /// The first row that cannot be; what comes after it is not read.
    fault: RefCell<Option<Problem>>,
}

trait DeserializeMapWith {
    fn deserialize_map_with(&mut self, wanted: &Wanted<'_>) -> serde_json::Result<Vec<JsonRow>>;
}

impl<'de, R: serde_json::de::Read<'de>> DeserializeMapWith for serde_json::Deserializer<R> {
    fn deserialize_map_with(&mut self, wanted: &Wanted<'_>) -> serde_json::Result<Vec<JsonRow>> {
        self.deserialize_map(Body(wanted))
    }
}

struct Body<'a, 'b>(&'a Wanted<'b>);

impl<'de> Visitor<'de> for Body<'_, '_> {
    type Value = Vec<JsonRow>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `rows`")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut rows = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match key.as_ref() {
                "rows" if rows.is_none() => rows = Some(map.next_value_seed(List(self.0))?),
                "rows" => return Err(M::Error::custom("`rows` occurs twice")),
                other => return Err(M::Error::custom(format_args!("only `rows` is known, not `{other}`"))),
            }
        }
        rows.ok_or_else(|| M::Error::custom("`rows` is missing"))
    }
}

struct List<'a, 'b>(&'a Wanted<'b>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = Vec<JsonRow>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = Vec<JsonRow>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        let stop = |problem| {
            *self.0.fault.borrow_mut() = Some(problem);
            Err(A::Error::custom("a row cannot be read"))
        };
        while let Some(row) = list.next_element_seed(self.0.of)? {
            match row {
                _ if rows.len() == self.0.most => {
                    let detail = format!("a request may have {} rows, and this one has more", self.0.most);
                    return stop(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
                }
                Ok(row) => rows.push(row),
                Err(fault) => return stop(Problem::of_row(rows.len(), &fault)),
            }
        }
        Ok(rows)
    }
}
